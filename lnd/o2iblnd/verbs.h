/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What o2iblnd needs of RDMA: queue pairs, the messages that connect them, and
 * registered memory. A contract with two backends:
 *
 *	rdma.c		rdma-core: libibverbs and librdmacm
 *	simqp/		queue pairs in memory, under virtual time, with every
 *			failure that the other one can report
 *
 * A backend knows nothing of LNet's messages: bytes that it connects with,
 * sends, and writes to remote memory are the LND's business (wire.h), and so
 * are credits, time-outs and retries. It has no timers but the CM's own.
 *
 * Threads. A port belongs to an NI, and is opened and closed on the thread of
 * CPT 0, where it listens. A queue pair belongs to one CPT from its first event
 * or call to destroy(): all calls for it, and all its events, are on that
 * CPT's thread. Memory is registered by any CPT, and is good for all of them.
 *
 * Events come in turns of the loop, out of no call of the LND. In an event any
 * call may be made, destroy() of the same queue pair among them: no event
 * follows for one that is destroyed. No call blocks for longer than the driver
 * needs; those that wait for the peer or the subnet end with an event.
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
 * Completions may come before "established": who is connected may send at once,
 * and its message may overtake the CM's. The LND holds them until then. Those
 * of each queue come in its order; SENDs and receives have none among each
 * other. After disconnect() or reject() nothing but completions follows.
 */
#ifndef LND_O2IBLND_VERBS_H
#define LND_O2IBLND_VERBS_H

#include "lnd/lnd.h"

/* Bytes that the LND can say with a connect request, its acceptance, its
 * rejection. What is received always has the full size, zeros at its end. */
#define IB_PRIVATE_REQUEST_SIZE 56
#define IB_PRIVATE_ACCEPT_SIZE	196
#define IB_PRIVATE_REJECT_SIZE	148

/* Why the CM rejected: its own numbers. */
enum {
	IB_CM_REJECT_NO_LISTENER = 8, /* invalid service id */
	IB_CM_REJECT_STALE = 10,      /* stale connection */
	IB_CM_REJECT_CONSUMER = 28,   /* by the LND there, with private data */
};

struct ib_port;
struct ib_qp;
struct ib_mr;

/* What a device can do; 0: it does not say, so no limit is known. */
struct ib_limits {
	uint32_t max_qp_wr;   /* work requests of one queue of a queue pair */
	uint32_t max_cqe;     /* entries of a completion queue */
	uint32_t max_sge;     /* pieces of local memory in a work request */
	uint64_t max_mr_size; /* bytes of one registration */
};

/* How queue pairs are to be. */
struct ib_qp_conf {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t
		max_inline; /* bytes; what is too much for the device is less */
};

struct ib_port_conf {
	uint16_t service;	 /* port that is listened on and connected to */
	bool listen;		 /* false: nobody can connect to this NI */
	bool privileged;	 /* connect from a port below 1024 */
	int tos;		 /* -1: the system's */
	uint8_t retry_count;	 /* 0..7, of the transport */
	uint8_t rnr_retry_count; /* 0..7; 7: for ever */
	uint32_t resolve_ms;	 /* for each of address and route */
};

/* Registered memory. The backend's; the LND reads it. */
struct ib_mr {
	void *addr;
	size_t length; /* bytes */
	uint32_t lkey; /* for post_recv() and post_send() here */
	uint32_t rkey; /* for peers that write to it */
};

/* A piece of registered local memory. */
struct ib_sge {
	void *addr;
	uint32_t length;
	uint32_t lkey;
};

enum ib_wr_type {
	IB_WR_WRITE, /* to the peer's memory; says nothing when it is done */
	IB_WR_SEND,  /* to the peer's next receive; completes, also if failed */
};

struct ib_wr {
	enum ib_wr_type type;
	const struct ib_sge *sge;
	unsigned int nsge;
	bool inlined;	      /* SEND: its bytes are copied by post_send() */
	uint64_t remote_addr; /* WRITE */
	uint32_t rkey;	      /* WRITE */
	void *cookie;	      /* SEND: the LND's name for it */
};

/* Who sends a connect request, as the CM knows it. */
struct ib_source {
	/* Of the port's net, with the address; ANY: no NID has that. */
	struct ulnet_nid nid;
	uint16_t port;
};

/* How a work request has ended. */
enum ib_wc_status {
	IB_WC_OK,
	IB_WC_FLUSHED,	     /* the queue pair was in error before its turn */
	IB_WC_SILENT,	     /* the peer's device does not acknowledge */
	IB_WC_NOT_READY,     /* the peer has had no receive posted, for long */
	IB_WC_REMOTE_ACCESS, /* the peer's device refuses key or address */
	IB_WC_REMOTE_ERROR,  /* it refuses, or fails to do, something else */
	IB_WC_LOCAL_ERROR,   /* length, protection, or device here */
	IB_WC_STATUSES
};

/* Constant text. */
const char *ib_wc_status_name(enum ib_wc_status status);

/* The LND's side: what backends call. */
struct ib_events {
	/* Any thread; looks at bytes only. On which CPT is what sends this
	 * connect request to be? */
	unsigned int (*request_cpt)(struct ib_port *port, const void *private,
				    size_t length);
	/* A connect request @from somebody, which may say something else of
	 * itself in @private: @qp->user is the LND's to set. Both are borrowed
	 * until return. The LND calls create() and accept(), or reject(); then
	 * or later. If the sender gives up meanwhile, there may be no event:
	 * accept() fails. */
	void (*request)(struct ib_port *port, struct ib_qp *qp,
			const struct ib_source *from, const void *private,
			size_t length);
	/* resolve() has found the peer: the LND calls create(). */
	void (*resolved)(struct ib_qp *qp);
	/* Connected. @private: active, what the peer has accepted with;
	 * passive, NULL. */
	void (*established)(struct ib_qp *qp, const void *private,
			    size_t length);
	/* The peer, or its system, rejects. @reason: IB_CM_REJECT_* or another
	 * number of the CM. The queue pair is in error now. */
	void (*rejected)(struct ib_qp *qp, int reason, const void *private,
			 size_t length);
	/* There is no connection, and will be none:
	 *	-EHOSTUNREACH	no address, or no route to it
	 *	-ETIMEDOUT	resolving took too long
	 *	-ENETDOWN	the peer does not answer
	 *	-ENOTCONN	it could not be completed here
	 *	-ECONNRESET	the peer gave up before it was complete
	 *	-ENODEV		the device has gone
	 * Or there was one and it has failed (-EIO: the device says so of the
	 * queue pair; -ENODEV). The queue pair is in error now. */
	void (*failed)(struct ib_qp *qp, int status);
	/* The peer has disconnected. The LND calls disconnect(), too. */
	void (*disconnected)(struct ib_qp *qp);
	/* A receive has ended. @cookie: of post_recv(). OK: @length bytes. */
	void (*received)(struct ib_qp *qp, void *cookie, uint32_t length,
			 enum ib_wc_status status);
	/* A SEND has ended, and with OK all that was posted before it. For a
	 * WRITE that fails: @cookie of the SEND behind it, once. */
	void (*sent)(struct ib_qp *qp, void *cookie, enum ib_wc_status status);
	/* The port can be used or not: link, address, device; @why for the log.
	 * It can from open() on, until this says otherwise. CPT 0's thread.
	 * @removed: the device goes, and waits for that: all queue pairs are to
	 * be destroyed, all memory deregistered, and then close() called.
	 * Connections have had failed() with -ENODEV, or get it in turns of
	 * their own. */
	void (*port_changed)(struct ib_port *port, bool up, bool removed,
			     const char *why);
};

/* The part of a port and of a queue pair that both sides know. */
struct ib_port {
	const struct ib_verbs *verbs;
	const struct ib_events *events;
	struct lnd_ni *ni;
	struct ib_limits limits;
	void *user; /* the LND's; set before open() returns */
};

struct ib_qp {
	struct ib_port *port;
	unsigned int cpt;
	void *user;	     /* the LND's */
	uint32_t max_inline; /* since create(): bytes that can be inlined */
};

/* A backend. Returned errors are negative errnos. */
struct ib_verbs {
	const char *name;

	/*
	 * The port of @ni, whose NID says the address. Listens, if @conf says
	 * so, from now on. Sets ni->numa_node, if that is known. CPT 0's
	 * thread. -ENODEV: no RDMA device has this address, or there is none at
	 * all; -EADDRINUSE: of the port that is to be listened on; -EACCES: of
	 * that, or of ports to connect from if @conf wants privileged ones;
	 * -ENOMEM; others of the system. @why, if not NULL: constant text that
	 * says what is missing.
	 */
	int (*open)(struct lnd_ni *ni, const struct ib_port_conf *conf,
		    const struct ib_events *events, void *user,
		    struct ib_port **port_p, const char **why);
	/* No queue pair and no registered memory is left. What is on its way to
	 * another CPT's loop ends there, without an event. */
	void (*close)(struct ib_port *port);
	/* Listens no more: no request comes after that. */
	void (*deafen)(struct ib_port *port);

	/* Looks for the way to @dst: an event follows. @qp_p is set before
	 * that. -ENOMEM, -EMFILE, -EADDRINUSE (no port is left), -ENODEV;
	 * others of the system. */
	int (*resolve)(struct ib_port *port, unsigned int cpt,
		       const struct ulnet_nid *dst, void *user,
		       struct ib_qp **qp_p);
	/* Makes the queues. -ENOMEM: they are too large, for the device or for
	 * the memory that may be locked: smaller ones may do. */
	int (*create)(struct ib_qp *qp, const struct ib_qp_conf *conf);
	/* @private is copied. -ENOTCONN: it has ended meanwhile, and no event
	 * is to come but flushed completions; -ENODEV; others of the system.
	 * After an error the queue pair is only good for destroy(), or for
	 * disconnect() if something is posted. */
	int (*connect)(struct ib_qp *qp, const void *private, size_t length);
	int (*accept)(struct ib_qp *qp, const void *private, size_t length);
	void (*reject)(struct ib_qp *qp, const void *private, size_t length);
	/* The queue pair goes to error: what is posted ends, flushed, if it is
	 * not done. On return no device writes to this side's memory on behalf
	 * of the peer any more. Fine at any time after create(), and again.
	 * After it the only events of this queue pair are completions. */
	void (*disconnect)(struct ib_qp *qp);
	/* All that was posted has ended, or nothing ever was. A peer that has
	 * not been told is. */
	void (*destroy)(struct ib_qp *qp);

	/* At most max_recv_wr at a time, of one piece each; more: -ENOMEM. What
	 * is posted in error ends as FLUSHED, or is refused: -ENOTCONN, once
	 * the backend knows; the same for post_send(). */
	int (*post_recv)(struct ib_qp *qp, const struct ib_sge *sge,
			 void *cookie);
	/* @wrs in their order, the last one a SEND. At most max_send_wr at a
	 * time, counted until the SEND behind them has ended; more: -ENOMEM.
	 * -ENOTCONN: before "established". In error: ends as FLUSHED. -errno:
	 * none of them was posted. */
	int (*post_send)(struct ib_qp *qp, const struct ib_wr *wrs,
			 unsigned int n);

	/* @addr to be read and written here, and, with @remote, to be written
	 * by peers. May take long. Any thread. -ENOMEM: also what may be locked
	 * (RLIMIT_MEMLOCK); -EFAULT; -EINVAL. */
	int (*reg)(struct ib_port *port, void *addr, size_t length, bool remote,
		   struct ib_mr **mr_p);
	/* On return no device touches the memory. A peer that still writes to
	 * it gets REMOTE_ACCESS, and its connection ends. Any thread. */
	void (*dereg)(struct ib_port *port, struct ib_mr *mr);
};

/* What a network of simulated devices begins with, which lnd_ni.fabric points
 * to: the backend of its ports. */
struct ib_fabric {
	const struct ib_verbs *verbs;
};

/* rdma-core's; NULL: this library was built without it. */
const struct ib_verbs *ib_verbs_rdma(void);

#endif
