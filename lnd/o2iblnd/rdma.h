/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backend on rdma-core: what its files share.
 *
 *	rdma.c		the table of functions; ports, their devices and the
 *			removal of devices; registered memory
 *	rdma_conn.c	connections: identifiers and events of the connection
 *			manager (CM); addresses
 *	rdma_qp.c	queues: their life, posting, and completions
 *
 * Each port opens its device itself, and makes its queue pairs in that context,
 * not in librdmacm's: the latter is shared by the process, and whoever reads
 * its asynchronous events takes them from all others. So librdmacm does not
 * know the queue pairs, and rdma_qp.c changes their states, with the attributes
 * that librdmacm provides.
 *
 * Threads. The port's own channel, its listener, and device events belong to
 * CPT 0. Each CPT has a channel for CM events and one for completions. They
 * live as long as the port, and the CPT watches them while it has queue pairs,
 * so that closing a port has to wait for no thread.
 *
 * A port is freed with its last reference. References are held by the LND
 * (until close()), each queue pair, also while it is under way to its CPT, and
 * functions that handle events.
 *
 * Names begin with ibr_, since rdma_ is librdmacm's.
 */
#ifndef LND_O2IBLND_RDMA_H
#define LND_O2IBLND_RDMA_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "base/log.h"
#include "lnd/link.h"
#include "lnd/netif.h"
#include "lnd/o2iblnd/verbs.h"

/* A work request has so many scatter/gather entries at most, or as many as the
 * device allows. */
#define IBR_SGE_MAX 32

/* The part of a port that belongs to one CPT. Immutable, except for what the
 * CPT's thread owns. */
struct ibr_cpt {
	struct ibr_port *port;
	struct loop *loop;
	unsigned int index;
	struct rdma_event_channel *channel;
	struct ibv_comp_channel *comp;
	/* owned by the CPT's thread */
	/* number of queue pairs; the channels are watched while it is not 0 */
	unsigned int users;
	struct env_io cm_io, comp_io;
	struct list qps; /* of ibr_qp.link */
	/* of ibr_qp.ready: queue pairs that may have completions */
	struct list ready;
	struct work ready_work;
	bool ready_deferred;
	/* posted by CPT 0, once: the device is being removed */
	struct work removal;
};

struct ibr_port {
	struct ib_port port;
	/* called with the last reference, on any thread */
	void (*free)(struct ibr_port *p);
	/* immutable after open() */
	struct ib_port_conf conf;
	struct loop *loop; /* the loop of CPT 0 */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint8_t number; /* number of the port on its device */
	unsigned int ncpts;
	/* number of references; any thread */
	atomic_uint refs;
	atomic_bool listen_stopped;
	atomic_uint arriving; /* number of requests under way to their CPTs */
	atomic_bool locked;   /* the limit on locked memory was logged */
	/* For CPT 0's thread: */
	struct rdma_event_channel *channel;
	/* an identifier bound to the port's address; NULL: the device was
	 * removed */
	struct rdma_cm_id *id;
	/* the identifier that listens; NULL: none */
	struct rdma_cm_id *listener;
	struct env_io cm_io, async_io, files_io;
	/* its place in the watch of links, *lnd_ni.shared */
	struct lnd_link link;
	bool closed;
	bool fatal; /* the device has reported a fatal error */
	const char *fault;
	struct work look;
	struct log_limit complaints;
	struct ibr_cpt cpts[];
};

enum ibr_state {
	IBR_ARRIVING,	/* passive: the request is under way to its CPT */
	IBR_RESOLVING,	/* the address is being resolved */
	IBR_ROUTING,	/* the route is being resolved */
	IBR_READY,	/* the LND must connect(), accept() or reject() */
	IBR_CONNECTING, /* connect() was called */
	IBR_ACCEPTING,	/* accept() was called */
	IBR_UP,
	IBR_DOWN, /* the CM has nothing more to say */
};

/* Asynchronous events of a queue pair, for its CPT. */
enum {
	IBR_EVENT_HEARD = 1, /* the peer has sent something */
	/* the queue pair is in error, or completions are lost */
	IBR_EVENT_FAILED = 2,
};

/* Rings of what is posted, oldest first. Those that have completed, but were
 * not reported to the LND yet, are in front. */
struct ibr_recv {
	void *cookie;
	/* number of bytes; this and @status are valid once it has completed */
	uint32_t length;
	enum ib_wc_status status;
};

struct ibr_send {
	void *cookie;
	/* number of work requests: the SEND and its WRITEs */
	unsigned int slots;
	/* status of the SEND, or of a WRITE before it that failed */
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
	bool cut; /* rdma_disconnect() was called */

	union netif_addr to;  /* active: the address that is being resolved */
	uint32_t resolve_ms;  /* ms: time-out of this attempt to resolve */
	uint32_t resolved_ms; /* ms that the earlier attempts have taken */

	/* The queues; NULL and 0 until create(). */
	struct ibv_cq *cq;
	struct ibv_qp *ibqp; /* NULL after ibr_qp_abort(), too */
	struct ibr_recv *recvs;
	unsigned int max_recvs, first_recv, nrecvs, ended_recvs;
	struct ibr_send *sends;
	unsigned int max_sends, first_send, nsends, ended_sends;
	/* number of work requests in use, at most @max_sends */
	unsigned int slots;
	struct list ready;
	bool unarmed; /* no notification is armed for the completion queue */
	struct work flush;

	/* destroy() was called: freed once nobody may access it any more,
	 * neither functions on its thread, which have raised @busy, nor posted
	 * work. */
	bool gone;
	unsigned int busy;

	/* any thread, atomic */
	atomic_uint events; /* IBR_EVENT_* */
	atomic_bool events_posted;
	struct work events_work;

	/* passive: while the request is under way */
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

/* Takes, and drops, a reference. Any thread. */
static inline void ibr_port_hold(struct ibr_port *p)
{
	atomic_fetch_add(&p->refs, 1);
}
static inline void ibr_port_put(struct ibr_port *p)
{
	if (atomic_fetch_sub(&p->refs, 1) == 1)
		p->free(p);
}

/* Formats the NID of the port into @text, of LNET_NIDSTR_SIZE bytes. Only while
 * the port is open. */
static inline const char *ibr_port_name(const struct ibr_port *p, char *text)
{
	return lnet_nid_format(&p->port.ni->nid, text, LNET_NIDSTR_SIZE);
}

/* ---- rdma.c ---- */

/* Checks device, link and address, and tells the LND if the port has become
 * usable or unusable. CPT 0's thread; not from inside a call of the LND. */
void ibr_device_look(struct ibr_port *p);
/* Is @id bound to the port's device? */
bool ibr_device_is(const struct ibr_port *p, const struct rdma_cm_id *id);
/* Logs once that the limit on locked memory may be why @what failed with @rc, a
 * negative errno. Returns @rc. Any thread. */
int ibr_port_complain(struct ibr_port *p, const char *what, int rc);

/*
 * Device removal. The kernel tells the users of a device one after the other:
 * the CM, which tells us and waits until our identifiers are destroyed; and the
 * verbs, which remove the device's file from /dev/infiniband and, for drivers
 * that cannot revoke a device (Soft-RoCE), tell nobody and wait until all have
 * closed it. Which of them is told first depends on the order in which modules
 * were loaded. So the port listens to the CM, and watches the files.
 */

/*
 * Closes removed devices that wait for their last user; returns whether there
 * are other devices. Any thread.
 *
 * librdmacm opens each device that an identifier is bound to, and keeps it
 * open. Only when it is asked for the list of all devices does it notice those
 * that were removed, and close them with their last identifier, unless no other
 * device is left (rdma-core 56). Asking opens all other devices, too, so this
 * is only done if a removed one waits. Ports watch the files of all devices,
 * and call this when one is removed, and while they wait for their own to
 * return.
 */
bool ibr_removal_check(void);
/* The port's device is being removed: tells the LND, once. CPT 0's thread; not
 * from inside a call of the LND, which may close the port. */
void ibr_removal_begin(struct ibr_port *p);

/* ---- rdma_conn.c ---- */

/* Opens the channels of the port and its CPTs, and binds an identifier to its
 * address. Returns 0, or -errno and *@why; ibr_cm_close() must follow in both
 * cases. */
int ibr_cm_open(struct ibr_port *p, const char **why);
/* Any thread, with the last reference. */
void ibr_cm_close(struct ibr_port *p);
/* CPT 0's thread. */
int ibr_cm_listen(struct ibr_port *p, const char **why);
int ibr_cm_watch(struct ibr_port *p);
void ibr_cm_unwatch(struct ibr_port *p);
void ibr_cm_stop_listening(struct ibr_port *p);
/* Makes all queue pairs of the CPT fail with @status. On its thread; not from
 * inside a call of the LND. */
void ibr_cpt_fail(struct ibr_cpt *cpt, int status);

int ibr_conn_resolve(struct ib_port *port, unsigned int cpt,
		     const struct ulnet_nid *dst, void *user,
		     struct ib_qp **qp_p);
int ibr_conn_connect(struct ib_qp *qp, const void *private, size_t length);
int ibr_conn_accept(struct ib_qp *qp, const void *private, size_t length);
void ibr_conn_reject(struct ib_qp *qp, const void *private, size_t length);
void ibr_conn_disconnect(struct ib_qp *qp);
void ibr_conn_destroy(struct ib_qp *qp);
/* The connection fails with @status, unless it has ended; its queue pair is
 * destroyed in any case. The CPT's thread; @qp may be gone on return. */
void ibr_conn_abort(struct ibr_qp *qp, int status);

/* ---- rdma_qp.c ---- */

int ibr_qp_create(struct ib_qp *qp, const struct ib_qp_conf *conf);
/* Makes the queue pair ready to send and receive. Returns 0 or -errno. */
int ibr_qp_start(struct ibr_qp *qp);
/*
 * Destroys the device's queue pair: on return nothing is read or written for it
 * any more. Unfinished work requests complete as flushed; the LND is told in a
 * turn of its own. No effect without a queue pair.
 *
 * The state "error" would not be enough: some devices still finish what they
 * have begun, and removed ones flush nothing.
 */
void ibr_qp_abort(struct ibr_qp *qp);
void ibr_qp_unmake(struct ibr_qp *qp);
/* Lowers qp->busy. When it is 0, frees a destroyed queue pair. */
void ibr_qp_put(struct ibr_qp *qp);
/* Tells the CPT of @events (IBR_EVENT_*). Any thread; @qp must exist until
 * return. */
void ibr_qp_tell(struct ibr_qp *qp, unsigned int events);
int ibr_qp_post_recv(struct ib_qp *qp, const struct ib_sge *sge, void *cookie);
int ibr_qp_post_send(struct ib_qp *qp, const struct ib_wr *wrs, unsigned int n);

/* Values of wr_id. Each queue completes in order, so the kind of work request
 * is enough. */
enum { IBR_WR_RECV, IBR_WR_WRITE, IBR_WR_SEND };

void ibr_cq_init(struct ibr_cpt *cpt);

#endif
