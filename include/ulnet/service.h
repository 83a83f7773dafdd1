/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote procedure calls over LNet: services. Conventions as in ulnet/rpc.h.
 * Manual: ulrpc(7), ulrpc_tutorial(7), ulrpc_service_start(3),
 * ulrpc_reply(3), ulrpc_bulk_get(3).
 */
#ifndef ULNET_SERVICE_H
#define ULNET_SERVICE_H

#include "ulnet/rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ulrpc_service;
struct ulrpc_request; /* one that is being served */

/* ---- services: ulrpc_service_start(3) ---- */

enum ulrpc_run {
	ULRPC_RUN_WORKER = 0, /* on a worker thread; may block */
	ULRPC_RUN_INLINE,     /* on the CPT's thread; must not block */
};

/*
 * @body, of @length bytes, is valid until the request is replied to. Must lead
 * to exactly one ulrpc_reply() (or ulrpc_fail()), inside or, from any thread,
 * later.
 */
typedef void (*ulrpc_handler_fn)(void *arg, struct ulrpc_request *request,
				 const void *body, size_t length);

struct ulrpc_method_conf {
	const char *name; /* its number is ulrpc_method(name); two of the same
			   * number: -EEXIST */
	ulrpc_handler_fn handler;
	void *arg;
	enum ulrpc_run run;
	enum ulrpc_priority priority;	/* default: normal */
	enum ulrpc_semantics semantics; /* a call that may have been executed
					 * before is executed again only if
					 * both this and the call say
					 * ULRPC_IDEMPOTENT */
};

struct ulrpc_service_conf {
	const char *name; /* copied, as all of it */
	const struct ulrpc_method_conf *methods;
	unsigned int nmethods;
	unsigned int portal; /* 0: a free one */
	/* Workers are threads; also where time is virtual, one at a time. */
	unsigned int workers_min; /* 0 = 1, if a method wants workers */
	unsigned int workers_max; /* 0 = workers_min: a fixed number. As many
				   * spare ones, at most, stand in for workers
				   * that wait for bulk */
	uint32_t request_max;	  /* bytes of a body; 0 = 64 KiB; at most
				   * ULRPC_BODY_MAX */
	uint32_t buffers;	  /* request buffers of each CPT: 2 to
			      * ULRPC_BUFFERS_MAX; 0 = 4 */
	uint32_t buffer_size;	  /* bytes; 0: room for several messages */
	/* What one client may have if it is alone. All clients together have
	 * four times as much. Of that a host may have at most as much as it
	 * leaves free for others, and so may a client of its host's part. */
	uint32_t queue_max;	  /* requests waiting for a worker, or for their
			     * handler's reply; more are refused as overloaded,
			     * never executed; 0 = 4096 */
	uint64_t queue_bytes_max; /* of memory for them, with room for replies
				   * of reply_max, and of replies that clients
				   * have not taken; 0 = 32 MiB */
	uint32_t window; /* calls in flight granted to each client, at most;
			  * 0 = 1024 */
	uint64_t queue_target; /* us: windows shrink while all requests wait for
				* longer than this; 0 = 5 ms, or the time of two
				* requests, if that is longer */
	uint64_t retry_after;  /* us after which a client that is refused may
				* call again, at least; 0 = 10 ms */
	uint64_t stuck;	  /* us in a handler without a reply, after which it is
			 * reported, once; 0 = 60 s; ULRPC_NEVER */
	uint64_t stalled; /* us in a handler without a reply, and without
			   * ulrpc_progress() or bulk being moved, after which
			   * callers are not asked to wait any more:
			   * ULRPC_CAUSE_STALLED; 0 = ULRPC_NEVER */
	const char *policy;  /* "[ORDER [quantum=N]] [tbf RULES]": orders are
			     * "fair" between hosts, and between the clients of
			     * each; "rr", the same by quanta; "fifo"; "edf";
			     * rules limit rates, as in "tbf
			     * nid=10.0.0.[1-9]@tcp rate=1000 depth=3;
			     * rate=10000"; NULL = "fair" */
	uint32_t high_ratio; /* high-priority requests in a row while others
			      * wait; 0 = 10 */
	uint32_t segments; /* bulk messages in flight for each request; 0 = 8 */
	/* Called once for each client that had opened the service and has gone
	 * without saying so: it was silent for its lease, or was not alive any
	 * more when its connection had ended, or was replaced by a process with
	 * the same client id. On the CPT of the client, in a turn, when its
	 * requests have been canceled; must not block. May be NULL. */
	void (*gone)(void *arg, const struct ulnet_id *client);
	void *gone_arg;
	/* The service remembers its requests beyond its own end; NULL: it
	 * does not. Copied. */
	const struct ulrpc_durable *durable;
	/* Called once, on any thread, when nothing of the service runs any
	 * more, whatever ended it; not if it could not be started. May be
	 * NULL. */
	void (*ended)(void *arg);
	void *ended_arg;
};

/* ---- services that remember: ulrpc_request_record(3) ---- */

#define ULRPC_RECORD_KEY 20 /* bytes of a key */

/* A store of records, which the service keeps together with its data. */
struct ulrpc_durable {
	uint8_t incarnation[16]; /* of the store: random, made with it; not all
				  * 0 */
	/* Brings what was last stored under @key, of ULRPC_RECORD_KEY bytes, as
	 * memory from malloc(), which ulnet frees. On the thread that would run
	 * the handler. -ENOENT: nothing was; another -errno: that cannot be
	 * known, and the call ends with its execution unknown. */
	int (*lookup)(void *arg, const void *key, void **value_p,
		      size_t *length_p);
	void *arg;
};

/* To be stored under its key, in place of what is there. */
struct ulrpc_record {
	const void *key;   /* ULRPC_RECORD_KEY bytes */
	const void *value; /* of @length bytes */
	size_t length;
	uint64_t keep; /* us: nobody looks for it after that; ULRPC_NEVER:
			* somebody may, at any time */
};

ULNET_EXPORT void ulrpc_service_conf_init(struct ulrpc_service_conf *conf);
/*
 * @service_p may be NULL: the service ends with RPC, then.
 * -EINVAL; -EEXIST: name, method or portal is in use; -ENOSPC: no portal is
 * left; -EOPNOTSUPP: no such order; -ENOMEM; -errno of making threads. Waits,
 * as *_wait.
 */
ULNET_EXPORT int ulrpc_service_start(struct ulrpc *rpc,
				     const struct ulrpc_service_conf *conf,
				     struct ulrpc_service **service_p);
/*
 * New requests are refused; those under way have @timeout us to be answered.
 * Callers of the others are told that the call may have been executed, and the
 * replies to these go nowhere. Waits until all are replied to and no handler
 * runs, and frees the service. -ETIMEDOUT: some were not answered in time.
 * -EDEADLK: in a turn, or by a worker of its own; nothing is done.
 */
ULNET_EXPORT int ulrpc_service_stop(struct ulrpc_service *service,
				    uint64_t timeout);
ULNET_EXPORT unsigned int ulrpc_service_portal(
	const struct ulrpc_service *service);

/* ---- requests: ulrpc_reply(3) ---- */

/*
 * A request is valid until it is replied to, on any thread, also when its
 * service has been stopped or RPC closed meanwhile, or is being. Then
 * ulrpc_request_info() says that no time is left, no bulk can be moved
 * (-ENOENT), what ulrpc_request_rpc() returns may be gone, and the reply goes
 * nowhere. It has to be made all the same.
 */

/*
 * Any thread. Takes @request. @body is copied. A reply that is longer than the
 * caller has room for is held until the caller has fetched it; without room for
 * that, or beyond ULRPC_BODY_MAX, it is ULRPC_CAUSE_TOO_LONG. Bulk of the
 * request that is still being moved is waited for first; if any has failed
 * then, the caller gets ULRPC_CAUSE_BULK instead.
 */
ULNET_EXPORT void ulrpc_reply(struct ulrpc_request *request, const void *body,
			      size_t length);
/* The same, with a negative errno for outcome.status. */
ULNET_EXPORT void ulrpc_fail(struct ulrpc_request *request, int status);
/* The same, with a text in UTF-8 for outcome.text, which is copied, and cut off
 * if there is no room for it. */
ULNET_EXPORT void ulrpc_fail_text(struct ulrpc_request *request, int status,
				  const char *text);
/* The same, for a body that cannot be read: ULRPC_CAUSE_BAD_REQUEST, certainly
 * not executed. */
ULNET_EXPORT void ulrpc_refuse(struct ulrpc_request *request);
/* The same, for what there is no room for now: ULRPC_CAUSE_OVERLOADED,
 * certainly not executed, with the service's retry_after. */
ULNET_EXPORT void ulrpc_overloaded(struct ulrpc_request *request);

/*
 * For methods of a durable service that are executed exactly once. *@record is
 * what the handler is to store, in the transaction that has the effects of
 * @request, before it replies with @body, or (with @length 0) fails with the
 * negative errno @status. The memory of @record is the request's until the
 * reply, or the next call of this. Called by whoever has @request. After it
 * nothing more can be put to the caller's bulk. -EBUSY: bulk is still being
 * moved; -EOPNOTSUPP: another kind of method or service; -EINVAL; -EMSGSIZE:
 * more than the caller has room for; -ENOMEM.
 */
ULNET_EXPORT int ulrpc_request_record(struct ulrpc_request *request, int status,
				      const void *body, size_t length,
				      struct ulrpc_record *record);

struct ulrpc_request_info {
	struct ulnet_id client;	 /* process that called */
	struct ulnet_nid source; /* NID that the request came from */
	struct ulnet_nid local;	 /* NID of ours that it came to */
	uint64_t xid;
	uint32_t attempt; /* 1 for the first */
	uint32_t method;
	uint32_t reply_max;
	uint64_t time_left; /* us until the caller's deadline; ULRPC_NEVER */
	enum ulrpc_priority priority;
	unsigned int nbulks;
	const char *service; /* constant as long as the request */
	const char *method_name;
	char trace[ULRPC_TRACE_SIZE]; /* as the caller has given it; or "" */
};

/* Any thread, before the reply. */
ULNET_EXPORT void ulrpc_request_info(const struct ulrpc_request *request,
				     struct ulrpc_request_info *info);
ULNET_EXPORT struct ulrpc *ulrpc_request_rpc(
	const struct ulrpc_request *request);

/*
 * Calls @fn(@arg, @request) on a worker of the service, in the order of its
 * queue. For what is left to do when bulk has been moved, for example, if it
 * takes time or may block: so no worker has to wait for the bulk. Any thread.
 * The request is still to be replied to; nobody may use it until @fn is called,
 * which may do the same again. @fn is always called; if the service ends,
 * perhaps before this returns. -EOPNOTSUPP: the service has no workers, and @fn
 * is not called.
 */
typedef void (*ulrpc_continue_fn)(void *arg, struct ulrpc_request *request);
ULNET_EXPORT int ulrpc_request_continue(struct ulrpc_request *request,
					ulrpc_continue_fn fn, void *arg);

/*
 * Nobody waits for the request any more: its caller has canceled it, or has no
 * time left, or is gone, or the service stops. Its handler may end early. It
 * still replies, to nobody; bulk of the request that is under way ends with
 * -ECANCELED, and so does what is begun later. Any thread, before the reply.
 */
ULNET_EXPORT bool ulrpc_request_canceled(const struct ulrpc_request *request);
/*
 * Calls @fn(@arg, @request), once, on the request's CPT, when that happens
 * before the reply; @fn must not block, and may reply. ulrpc_reply() waits for
 * @fn while that runs, so it must not be called with a lock that @fn takes;
 * after it, @fn is not called. Any thread, before the reply.
 * -ECANCELED: it has happened, and @fn is not called; -EALREADY: there is one.
 */
typedef void (*ulrpc_cancel_fn)(void *arg, struct ulrpc_request *request);
ULNET_EXPORT int ulrpc_request_on_cancel(struct ulrpc_request *request,
					 ulrpc_cancel_fn fn, void *arg);

/*
 * For workers: waits for @us, or until the request is canceled: -ECANCELED; so
 * too in the simulator when the node has crashed. -EDEADLK on a CPT's thread.
 */
ULNET_EXPORT int ulrpc_request_sleep(struct ulrpc_request *request,
				     uint64_t us);
/*
 * Says how much of the request has been done, of 1000, and that it is not
 * stalled. Its caller is told that with the next message that says that the
 * request is being served. Any thread, before the reply; costs a store.
 */
ULNET_EXPORT void ulrpc_progress(struct ulrpc_request *request,
				 uint32_t permille);

/* CPT that the request belongs to, where callbacks run. */
ULNET_EXPORT unsigned int ulrpc_request_cpt(
	const struct ulrpc_request *request);

/* ---- bulk, the service's side: ulrpc_bulk_get(3) ---- */

struct ulrpc_bulk_info {
	enum ulrpc_bulk_access access;
	uint64_t length;
	unsigned int segments;
	bool checksum;
};

/* @index: as in the call's list, or in the field of the message. -ENOENT. */
ULNET_EXPORT int ulrpc_request_bulk(const struct ulrpc_request *request,
				    unsigned int index,
				    struct ulrpc_bulk_info *info);

/* @status: 0: all @moved bytes are where they belong (and, where asked for,
 * checked); or what hindered the first segment that could not be moved:
 * -EBADMSG: the checksum is wrong. */
typedef void (*ulrpc_bulk_fn)(void *arg, int status, uint64_t moved);

/*
 * Moves data from the caller's bulk @index (a source) to @iov, or from @iov to
 * it (a sink), from @offset of the bulk; the length is @iov's. @iov is copied,
 * its memory borrowed until @done. Segments that were certainly or perhaps not
 * moved are tried again until the caller's deadline; without one, as long as a
 * silent client is remembered. Any thread.
 * -ENOENT, -EACCES: not for this direction; -ERANGE: beyond its end; -ENOMEM.
 */
ULNET_EXPORT int ulrpc_bulk_get(struct ulrpc_request *request,
				unsigned int index, uint64_t offset,
				const struct iovec *iov, unsigned int niov,
				ulrpc_bulk_fn done, void *arg);
ULNET_EXPORT int ulrpc_bulk_put(struct ulrpc_request *request,
				unsigned int index, uint64_t offset,
				const struct iovec *iov, unsigned int niov,
				ulrpc_bulk_fn done, void *arg);
/* For workers: the same, and wait for the end. Meanwhile a spare thread serves
 * what waits for a worker. If there is no spare thread left, the wait for a
 * client that has been silent for a second may end with -ETIMEDOUT. -EDEADLK on
 * a CPT's thread. */
ULNET_EXPORT int ulrpc_bulk_get_wait(struct ulrpc_request *request,
				     unsigned int index, uint64_t offset,
				     const struct iovec *iov,
				     unsigned int niov);
ULNET_EXPORT int ulrpc_bulk_put_wait(struct ulrpc_request *request,
				     unsigned int index, uint64_t offset,
				     const struct iovec *iov,
				     unsigned int niov);
/*
 * Transfers of bulk @index that begin after this end with -ETIMEDOUT when they
 * have taken @timeout us; 0: by the caller's deadline only. Any thread.
 * -ENOENT.
 */
ULNET_EXPORT int ulrpc_bulk_timeout(struct ulrpc_request *request,
				    unsigned int index, uint64_t timeout);
/*
 * Transfers of bulk @index that were begun before this end soon, as soon as
 * nothing uses their memory: with -ECANCELED, unless all was moved. Any thread,
 * never waits. -ENOENT.
 */
ULNET_EXPORT int ulrpc_bulk_cancel(struct ulrpc_request *request,
				   unsigned int index);

#ifdef __cplusplus
}
#endif

#endif
