/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What o2iblnd needs of RDMA: queue pairs, the connection manager (CM), and
 * registered memory. The interface of two backends:
 *
 *	rdma.c		rdma-core: libibverbs and librdmacm
 *	simqp/		simulated queue pairs in virtual time, with every
 *			failure that the other backend can report
 *
 * A backend does not interpret what it carries: the bytes of connect requests,
 * messages and WRITEs are the LND's (wire.h), as are credits, time-outs and
 * retries. It has no timers but the CM's.
 *
 * Threads. A port belongs to an NI; CPT 0 opens and closes it, and listens. A
 * queue pair belongs to one CPT, from its first event or call to destroy(): all
 * its calls and events are on that CPT's thread. Memory may be registered by
 * any CPT, and used by all.
 *
 * Events come in turns of the loop, never from inside a call of the LND. An
 * event may make any call, even destroy() of its queue pair, after which no
 * event follows for it. No call blocks for longer than the driver needs; what
 * takes an answer of the peer or the subnet ends with an event.
 *
 * The life of a queue pair:
 *
 *	active		resolve()  -> resolved  -> create(), post_recv()...,
 *			connect()  -> established | rejected | failed
 *	passive		request    -> create(), post_recv()...,
 *			accept()   -> established | failed
 *			           or reject(), and destroy()
 *	both		established -> ... -> disconnected | failed
 *			disconnect() -> flushed completions -> destroy()
 *
 * Completions may come before "established", as the peer's first message may
 * overtake the CM's; the LND keeps them until then. The completions of each
 * queue are in order, but not those of different queues. After disconnect() or
 * reject() only completions follow.
 */
#ifndef LND_O2IBLND_VERBS_H
#define LND_O2IBLND_VERBS_H

#include "lnd/lnd.h"

/* Bytes of private data in a connect request, its acceptance and its rejection.
 * Received data always has the full size, padded with zeros. */
#define IB_PRIVATE_REQUEST_SIZE 56
#define IB_PRIVATE_ACCEPT_SIZE	196
#define IB_PRIVATE_REJECT_SIZE	148

/* Reasons of the CM for a rejection. */
enum {
	IB_CM_REJECT_NO_LISTENER = 8, /* the host has no such service */
	IB_CM_REJECT_STALE = 10,      /* the connection is a stale one */
	/* the peer's LND has rejected, with private data */
	IB_CM_REJECT_CONSUMER = 28,
};

struct ib_port;
struct ib_qp;
struct ib_mr;

/* Limits of a device; 0: unknown. */
struct ib_limits {
	uint32_t max_qp_wr;   /* work requests of one queue of a queue pair */
	uint32_t max_cqe;     /* entries of a completion queue */
	uint32_t max_sge;     /* scatter/gather entries of a work request */
	uint64_t max_mr_size; /* bytes of one registration */
};

/* What create() is asked for. The counts are for one queue pair. */
struct ib_qp_conf {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	/* bytes that can be posted inline; the device may grant less */
	uint32_t max_inline;
};

struct ib_port_conf {
	uint16_t service;	 /* port to listen on and to connect to */
	bool listen;		 /* false: the NI accepts no connections */
	bool privileged;	 /* connect from ports below 1024 */
	int tos;		 /* type of service; -1: the system's default */
	uint8_t retry_count;	 /* 0 to 7 */
	uint8_t rnr_retry_count; /* 0 to 7; 7: without limit */
	/* ms to resolve the address, and as many for the route */
	uint32_t resolve_ms;
};

/* Registered memory; owned by the backend, read by the LND. */
struct ib_mr {
	void *addr;
	size_t length; /* bytes of the memory */
	uint32_t lkey; /* key for local work requests */
	uint32_t rkey; /* key for peers */
};

/* A scatter/gather entry: part of registered local memory. */
struct ib_sge {
	void *addr;
	uint32_t length;
	uint32_t lkey;
};

enum ib_wr_type {
	/* writes to the peer's memory; a completion is reported only if it
	 * fails */
	IB_WR_WRITE,
	IB_WR_SEND, /* goes to the peer's next receive; always completes */
};

struct ib_wr {
	enum ib_wr_type type;
	const struct ib_sge *sge;
	unsigned int nsge;
	bool inlined;	      /* SEND: post_send() copies the bytes */
	uint64_t remote_addr; /* WRITE: address in the peer's memory */
	uint32_t rkey;	      /* WRITE: key of the peer's memory */
	void *cookie;	      /* SEND: handed to sent() */
};

/* The source of a connect request, according to the CM. */
struct ib_source {
	/* a NID on the port's net; LNET_NID_ANY: the source has none */
	struct ulnet_nid nid;
	uint16_t port;
};

/* How a work request has completed. */
enum ib_wc_status {
	IB_WC_OK,
	/* it was not carried out, since the queue pair was in error already */
	IB_WC_FLUSHED,
	IB_WC_SILENT,	     /* the peer's device does not acknowledge */
	IB_WC_NOT_READY,     /* the peer had no receive, for all retries */
	IB_WC_REMOTE_ACCESS, /* the peer's device refuses key or address */
	IB_WC_REMOTE_ERROR,  /* the peer's device refuses or fails otherwise */
	IB_WC_LOCAL_ERROR,   /* wrong length or key, or a local device error */
	IB_WC_STATUSES
};

/* Returns the name of @status, constant text. */
const char *ib_wc_status_name(enum ib_wc_status status);

/* The events: functions of the LND that backends call. */
struct ib_events {
	/* Which CPT will own the connection of this request? Any thread; may
	 * only look at @private. */
	unsigned int (*request_cpt)(struct ib_port *port, const void *private,
				    size_t length);
	/* A connect request from @from; @private may claim otherwise. Both are
	 * borrowed until return. The LND may set qp->user. It must call
	 * create() and accept(), or reject(), now or later. If the requester
	 * gives up meanwhile there may be no event, but accept() fails. */
	void (*request)(struct ib_port *port, struct ib_qp *qp,
			const struct ib_source *from, const void *private,
			size_t length);
	/* resolve() has found the peer: create() is next. */
	void (*resolved)(struct ib_qp *qp);
	/* The connection is established. @private: private data of the
	 * acceptance, on the active side; NULL on the passive side. */
	void (*established)(struct ib_qp *qp, const void *private,
			    size_t length);
	/* The peer, or its CM, has rejected the request. @reason:
	 * IB_CM_REJECT_* or another one of the CM. The queue pair is in error.
	 */
	void (*rejected)(struct ib_qp *qp, int reason, const void *private,
			 size_t length);
	/* The connection cannot be established:
	 *	-EHOSTUNREACH	no address, or no route to it
	 *	-ETIMEDOUT	resolving took too long
	 *	-ENETDOWN	the peer does not answer
	 *	-ENOTCONN	a local failure while it was completed
	 *	-ECONNRESET	the peer gave up before it was complete
	 *	-ENODEV		the device is gone
	 * or has failed: -EIO, the device says so of the queue pair; -ENODEV.
	 * The queue pair is in error. */
	void (*failed)(struct ib_qp *qp, int status);
	/* The peer has disconnected. The LND must call disconnect() as well. */
	void (*disconnected)(struct ib_qp *qp);
	/* A receive has completed, with @cookie of post_recv(); with IB_WC_OK
	 * it holds @length bytes. */
	void (*received)(struct ib_qp *qp, void *cookie, uint32_t length,
			 enum ib_wc_status status);
	/* A SEND has completed, with @cookie of post_send(). IB_WC_OK: all work
	 * requests before it have succeeded, too. A WRITE that fails is
	 * reported once, as the failure of the SEND behind it. */
	void (*sent)(struct ib_qp *qp, void *cookie, enum ib_wc_status status);
	/* @up: the port can be used again; false: it cannot, because of @why:
	 * link, address or device. From open() on it can, until this function
	 * is called. CPT 0's thread. @removed: the device is being removed, and
	 * waits for the LND to destroy all queue pairs, deregister all memory,
	 * and call close(). Connections get failed() with -ENODEV, before this
	 * call or after. */
	void (*port_changed)(struct ib_port *port, bool up, bool removed,
			     const char *why);
};

/* What both sides know of a port and of a queue pair. */
struct ib_port {
	const struct ib_verbs *verbs;
	const struct ib_events *events;
	struct lnd_ni *ni;
	struct ib_limits limits;
	void *user; /* the LND's own; set before open() returns */
};

struct ib_qp {
	struct ib_port *port;
	unsigned int cpt;
	void *user; /* the LND's own */
	/* bytes that can be posted inline; valid after create() */
	uint32_t max_inline;
};

/* A backend. Functions return 0 or -errno. */
struct ib_verbs {
	const char *name;

	/*
	 * Opens the port with the address of @ni's NID and, if @conf says so,
	 * listens. Sets ni->numa_node, if known. CPT 0's thread. -ENODEV: no
	 * RDMA device has this address; -EADDRINUSE: the port to listen on is
	 * in use; -EACCES: listening on it, or connecting from privileged ports
	 * as @conf wants, is not permitted; -ENOMEM; others of the system.
	 * @why, if not NULL, gets constant text.
	 */
	int (*open)(struct lnd_ni *ni, const struct ib_port_conf *conf,
		    const struct ib_events *events, void *user,
		    struct ib_port **port_p, const char **why);
	/* Closes the port. No queue pair and no registered memory may be left.
	 * Requests under way to another CPT are dropped, without an event. */
	void (*close)(struct ib_port *port);
	/* Stops listening: no request comes after this. */
	void (*stop_listening)(struct ib_port *port);

	/* Resolves address and route of @dst. Returns 0: *@qp_p is set, and an
	 * event follows; -ENOMEM; -EMFILE; -EADDRINUSE: no port is left;
	 * -ENODEV; others of the system. */
	int (*resolve)(struct ib_port *port, unsigned int cpt,
		       const struct ulnet_nid *dst, void *user,
		       struct ib_qp **qp_p);
	/* Makes the queues. -ENOMEM: they are too large for the device, or for
	 * the limit on locked memory; smaller ones may succeed. */
	int (*create)(struct ib_qp *qp, const struct ib_qp_conf *conf);
	/* Request, accept or reject a connection. @private is copied.
	 * -ENOTCONN: the connection has ended in the meantime, and only flushed
	 * completions follow; -ENODEV; others of the system. After an error the
	 * queue pair can only be destroyed or, if something is posted,
	 * disconnected. */
	int (*connect)(struct ib_qp *qp, const void *private, size_t length);
	int (*accept)(struct ib_qp *qp, const void *private, size_t length);
	void (*reject)(struct ib_qp *qp, const void *private, size_t length);
	/* Puts the queue pair in error: unfinished work requests are flushed.
	 * On return no device writes to our memory for this peer. May be called
	 * at any time after create(), and again. Only completions follow. */
	void (*disconnect)(struct ib_qp *qp);
	/* Destroys the queue pair, on which no work request may be posted.
	 * Tells the peer that the connection has ended, if it was not told
	 * before. */
	void (*destroy)(struct ib_qp *qp);

	/* Posts a receive of one entry. At most max_recv_wr may be posted at a
	 * time; more: -ENOMEM. On a queue pair in error the receive is flushed,
	 * or refused with -ENOTCONN. */
	int (*post_recv)(struct ib_qp *qp, const struct ib_sge *sge,
			 void *cookie);
	/* Posts @n work requests in order, the last of which is a SEND. At most
	 * max_send_wr may be posted at a time, where a WRITE counts until the
	 * SEND behind it has completed; more: -ENOMEM. -ENOTCONN: the
	 * connection is not established yet. On a queue pair in error: as
	 * post_recv(). After -errno none of the @n is posted. */
	int (*post_send)(struct ib_qp *qp, const struct ib_wr *wrs,
			 unsigned int n);

	/* Registers memory for local access and, with @remote, for peers to
	 * write to. May take long. Any thread. -ENOMEM: also if the limit on
	 * locked memory (RLIMIT_MEMLOCK) is reached; -EFAULT; -EINVAL. */
	int (*reg)(struct ib_port *port, void *addr, size_t length, bool remote,
		   struct ib_mr **mr_p);
	/* Deregisters memory: on return no device accesses it. A peer that
	 * still writes to it gets REMOTE_ACCESS, and loses its connection. Any
	 * thread. */
	void (*dereg)(struct ib_port *port, struct ib_mr *mr);
};

/* The head of a network of simulated devices, to which lnd_ni.fabric points. */
struct ib_fabric {
	const struct ib_verbs *verbs;
};

/* Returns the backend on rdma-core; NULL: it was not built. */
const struct ib_verbs *ib_verbs_rdma(void);

#endif
