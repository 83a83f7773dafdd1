/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backend on rdma-core: what its files share.
 *
 *	rdma.c		what the LND calls; ports, from open to close; the
 *			device that has the port's address, and that may go;
 *			registered memory
 *	rdma_conn.c	a connection: identifier, events of the connection
 *			manager (CM), and what the LND says; addresses
 *	rdma_qp.c	the queues: made, posted to, put in error, unmade; their
 *			completions
 *
 * Each port has a context of its own of its device, and makes its queue pairs
 * on it, not on the context that librdmacm keeps: that one is the process's,
 * and whoever reads its asynchronous events takes them from all others. So
 * librdmacm does not know the queue pairs, and rdma_qp.c moves them through
 * their states, with the attributes that librdmacm has for that.
 *
 * Threads. The port's own channel, the one for its listener, and the device's
 * events are CPT 0's. Each CPT has a channel of the CM and one for completions:
 * made with the port, watched by the CPT while it has queue pairs, so that
 * nobody needs to be waited for when the port is closed.
 *
 * A port lives until nobody refers to it: the LND (until close()), each queue
 * pair, also one that is on its way to its CPT, and whoever is in an event.
 *
 * Names begin with ibr_, since rdma_ is librdmacm's.
 */
#ifndef LND_O2IBLND_RDMA_H
#define LND_O2IBLND_RDMA_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "base/log.h"
#include "lnd/netif.h"
#include "lnd/o2iblnd/verbs.h"

/* Pieces of a work request: what devices have, and not more than this. */
#define IBR_SGE_MAX 32

/* Immutable but for what is below "owner", whose thread is the CPT's. */
struct ibr_cpt {
	struct ibr_port *port;
	struct loop *loop;
	unsigned int index;
	struct rdma_event_channel *channel;
	struct ibv_comp_channel *comp;
	/* owner */
	unsigned int users; /* queue pairs: both channels are watched */
	struct env_io cm_io, comp_io;
	struct list qps;   /* ibr_qp.link */
	struct list ready; /* ibr_qp.ready: may have completions */
	struct work ready_work;
	bool ready_deferred;
	/* CPT 0 posts it, once */
	struct work removal;
};

struct ibr_port {
	struct ib_port port;
	void (*free)(struct ibr_port *p); /* nobody refers to it; any thread */
	/* immutable after open() */
	struct ib_port_conf conf;
	struct loop *loop; /* CPT 0's */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint8_t number; /* of the device's port */
	unsigned int ncpts;
	/* any thread, atomic */
	atomic_uint refs;
	atomic_bool deaf;
	atomic_uint arriving; /* requests on their way to their CPT */
	atomic_bool locked;   /* it was said that memory cannot be locked */
	/* CPT 0's thread */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;	     /* bound to the address: is the device
				      * there? NULL: it has gone */
	struct rdma_cm_id *listener; /* NULL: does not listen */
	struct env_io cm_io, async_io, files_io;
	bool closed;
	bool fatal; /* the device says so */
	const char *fault;
	struct work look;
	struct log_limit complaints;
	struct ibr_cpt cpts[];
};

enum ibr_state {
	IBR_ARRIVING,	/* passive: on its way to its CPT */
	IBR_RESOLVING,	/* address */
	IBR_ROUTING,	/* route */
	IBR_READY,	/* the LND is asked: connect(); accept() or reject() */
	IBR_CONNECTING, /* connect() */
	IBR_ACCEPTING,	/* accept() */
	IBR_UP,
	IBR_DOWN, /* nothing more is heard of the CM */
};

/* What the device says of a queue pair, for its CPT. */
enum {
	IBR_NEWS_HEARD = 1,  /* the peer has sent: it is connected */
	IBR_NEWS_FAILED = 2, /* it is in error, or completions are lost */
};

/* What is posted, in rings: the first is the next to end. What has ended is in
 * front, until the LND hears of it. */
struct ibr_recv {
	void *cookie;
	uint32_t length; /* bytes; these two once it has ended */
	enum ib_wc_status status;
};

struct ibr_send {
	void *cookie;
	unsigned int slots; /* work requests: the SEND and its WRITEs */
	/* Once it has ended; before that, of the first WRITE that has
	 * failed. */
	enum ib_wc_status status;
};

/* Owner: its CPT. */
struct ibr_qp {
	struct ib_qp qp;
	struct ibr_port *port;
	struct ibr_cpt *cpt;
	struct list link;
	struct rdma_cm_id *id;
	enum ibr_state state;
	bool active;
	bool cut; /* disconnect() has told the peer */

	/* active, while it is looked for */
	union netif_addr to;
	uint32_t look_ms;   /* that this look may take, */
	uint32_t looked_ms; /* and those before it have taken */

	/* The queues; all NULL and 0 unless they are made. */
	struct ibv_cq *cq;
	struct ibv_qp *ibqp; /* NULL also once it is buried */
	struct ibr_recv *recvs;
	unsigned int max_recvs, first_recv, nrecvs, ended_recvs;
	struct ibr_send *sends;
	unsigned int max_sends, first_send, nsends, ended_sends;
	unsigned int slots; /* in use, of max_sends */
	struct list ready;
	bool unarmed; /* the completion queue tells of nothing new */
	struct work flush;

	/* Who may still touch it after destroy(), all on its thread: those who
	 * have made it busy, and the two that are posted to it. */
	bool gone;
	unsigned int busy;

	/* any thread, atomic */
	atomic_uint news; /* IBR_NEWS_* */
	atomic_bool news_posted;
	struct work news_work;

	/* passive, while it arrives */
	struct work arrive;
	uint8_t private[IB_PRIVATE_REQUEST_SIZE];
	size_t private_length;
	struct ib_source from;
};

static inline struct ibr_port *ibr_port(struct ib_port *port)
{
	return container_of(port, struct ibr_port, port);
}

static inline struct ibr_qp *ibr_qp(struct ib_qp *qp)
{
	return container_of(qp, struct ibr_qp, qp);
}

/* ---- ports ---- */

/* Any thread. */
static inline void ibr_port_hold(struct ibr_port *p)
{
	atomic_fetch_add(&p->refs, 1);
}
static inline void ibr_port_put(struct ibr_port *p)
{
	if (atomic_fetch_sub(&p->refs, 1) == 1)
		p->free(p);
}

/* The NID, in @text, of LNET_NIDSTR_SIZE bytes. While the port is open. */
static inline const char *ibr_port_name(const struct ibr_port *p, char *text)
{
	return lnet_nid_format(&p->port.ni->nid, text, LNET_NIDSTR_SIZE);
}

/* ---- rdma.c ---- */

/* Looks how device, link, and address are, and tells the LND what has
 * changed. CPT 0's thread, out of no call of the LND. */
void ibr_device_look(struct ibr_port *p);
/* Is @id at the port's device? */
bool ibr_device_is(const struct ibr_port *p, const struct rdma_cm_id *id);
/* What failed with @rc, a negative errno, may have wanted locked memory: says
 * so once. Returns @rc. Any thread. */
int ibr_port_complain(struct ibr_port *p, const char *what, int rc);

/*
 * When a device is to go, the kernel tells those who use it one after the
 * other: the CM, which tells us, and waits until our identifiers have gone; and
 * the verbs, which take the device's file from /dev/infiniband, and, if the
 * driver cannot take the device from its users (Soft-RoCE's cannot), tell
 * nobody and wait until all have closed it. Which of them is the first depends
 * on the order in which their modules were loaded. So the port listens to the
 * CM, and watches the files.
 */

/*
 * Devices that wait until nobody has them open are let go of; returns whether
 * there are others. Any thread.
 *
 * librdmacm opens each device that an identifier gets, and keeps it open. When
 * it is asked for all devices, it sees which ones have gone, and closes those,
 * with their last identifier; if none is left it does not, nor is there another
 * way (rdma-core 56). It opens all the others, too, so it is asked only if one
 * waits; and they are closed the same way, since ports watch the files of all
 * devices, and who has lost its port comes here each time it looks for it.
 */
bool ibr_removal_check(void);
/* The port's device goes: the LND is told, unless it was. CPT 0's thread, out
 * of no call of the LND, which may close the port. */
void ibr_removal_begin(struct ibr_port *p);

/* ---- rdma_conn.c ---- */

/* Why the address of @nid cannot be used: constant text; NULL: it can. */
const char *ibr_addr_fault(const struct ulnet_nid *nid);
/* Channels of the port and its CPTs, and the identifier that is bound to its
 * address. 0, or -errno and *@why; ibr_cm_close() also after that. */
int ibr_cm_open(struct ibr_port *p, const char **why);
/* Any thread: nobody uses them any more. */
void ibr_cm_close(struct ibr_port *p);
/* CPT 0's thread. */
int ibr_cm_listen(struct ibr_port *p, const char **why);
int ibr_cm_watch(struct ibr_port *p);
void ibr_cm_unwatch(struct ibr_port *p);
void ibr_cm_deafen(struct ibr_port *p);
/* The CPT's queue pairs all fail with @status; its thread, out of no call of
 * the LND. */
void ibr_cpt_fail(struct ibr_cpt *cpt, int status);

int ibr_conn_resolve(struct ib_port *port, unsigned int cpt,
		     const struct ulnet_nid *dst, void *user,
		     struct ib_qp **qp_p);
int ibr_conn_connect(struct ib_qp *qp, const void *private, size_t length);
int ibr_conn_accept(struct ib_qp *qp, const void *private, size_t length);
void ibr_conn_reject(struct ib_qp *qp, const void *private, size_t length);
void ibr_conn_disconnect(struct ib_qp *qp);
void ibr_conn_destroy(struct ib_qp *qp);
/* The CM has said that the device goes. Its CPT's thread: the queue pair may be
 * gone after that. */
void ibr_conn_removed(struct ibr_qp *qp);

/* ---- rdma_qp.c ---- */

int ibr_qp_create(struct ib_qp *qp, const struct ib_qp_conf *conf);
/* To be connected: 0 or -errno. */
int ibr_qp_start(struct ibr_qp *qp);
/*
 * Takes it away from the device: on return nothing is read or written for it
 * any more. All that was posted ends, flushed unless the device says that it is
 * done; the LND hears that in a turn soon. No effect if there is none.
 *
 * The state "error" would not do: there are devices that still finish what they
 * are at, and others that are gone and flush nothing.
 */
void ibr_qp_bury(struct ibr_qp *qp);
void ibr_qp_unmake(struct ibr_qp *qp);
/* @busy no more; frees what is gone and was not freed because of that. */
void ibr_qp_put(struct ibr_qp *qp);
/* Any thread; its CPT is told. The queue pair must exist until return. */
void ibr_qp_tell(struct ibr_qp *qp, unsigned int news);
int ibr_qp_post_recv(struct ib_qp *qp, const struct ib_sge *sge, void *cookie);
int ibr_qp_post_send(struct ib_qp *qp, const struct ib_wr *wrs, unsigned int n);

/* wr_id: queues end in their order, so nothing else is to be known. */
enum { IBR_WR_RECV, IBR_WR_WRITE, IBR_WR_SEND };

void ibr_cq_init(struct ibr_cpt *cpt);
/* Watches the CPT's completions, or does so no more. */
int ibr_cq_watch(struct ibr_cpt *cpt);
void ibr_cq_unwatch(struct ibr_cpt *cpt);

#endif
