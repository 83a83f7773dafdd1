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
 * Handles @request, whose body is @length bytes at @body, valid until the
 * request is replied to. The handler, or any thread later, calls exactly one of
 * ulrpc_reply(), ulrpc_fail() and the like.
 */
typedef void (*ulrpc_handler_fn)(void *arg, struct ulrpc_request *request,
				 const void *body, size_t length);

struct ulrpc_method_conf {
	const char *name; /* the number is ulrpc_method(name); two methods with
			   * one number: -EEXIST */
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
	const char *name; /* copied, as is all that pointers here point to */
	const struct ulrpc_method_conf *methods;
	unsigned int nmethods;
	unsigned int portal; /* 0: a free one */
	/* Workers are threads; in virtual time one runs at a time. */
	unsigned int workers_min; /* 0 = 1, if a method wants workers */
	unsigned int workers_max; /* 0 = workers_min: a fixed number. As many
				   * more, at most, stand in for workers that
				   * wait for bulk */
	uint32_t request_max;	  /* bytes of a body; 0 = 64 KiB; at most
				   * ULRPC_BODY_MAX */
	uint32_t buffers;	  /* request buffers of each CPT: 2 to
			      * ULRPC_BUFFERS_MAX; 0 = 4 */
	uint32_t buffer_size;	  /* bytes; 0: room for several messages */
	/* What one client may have if it is alone. All clients together have
	 * four times as much. Of that a host may have at most as much as it
	 * leaves free for others, and so may a client of its host's part.
	 * Requests beyond that are refused as overloaded, never executed. */
	uint32_t queue_max;	  /* requests that wait for a worker, or for
				   * their handler's reply; 0 = 4096 */
	uint64_t queue_bytes_max; /* of memory for these requests, with room for
				   * replies of reply_max, and for replies that
				   * clients have not taken; 0 = 32 MiB */
	uint32_t window; /* calls in flight granted to each client, at most;
			  * 0 = 1024 */
	uint64_t queue_target; /* us: a client's window shrinks while all its
				* requests wait for longer than this; 0 = 5 ms,
				* or the time of two requests, if longer */
	uint64_t retry_after;  /* us after which a client that is refused may
				* call again, at least; 0 = 10 ms */
	uint64_t stuck;	  /* us after which a handler that has not replied is
			   * logged, once; 0 = 60 s; ULRPC_NEVER */
	uint64_t stalled; /* us after which a handler that has neither replied,
			   * nor called ulrpc_progress(), nor moved bulk, is
			   * not waited for any more: ULRPC_CAUSE_STALLED; 0 =
			   * ULRPC_NEVER */
	const char *policy;  /* "[ORDER [quantum=N]] [tbf RULES]": orders are
			     * "fair" between hosts, and between the clients of
			     * each; "rr", the same by quanta; "fifo"; "edf";
			     * rules limit rates, as in "tbf
			     * nid=10.0.0.[1-9]@tcp rate=1000 depth=3;
			     * rate=10000"; NULL = "fair" */
	uint32_t high_ratio; /* high-priority requests in a row while others
			      * wait; 0 = 10 */
	uint32_t segments; /* bulk messages in flight for each request; 0 = 8 */
	/* Called once for each client that has opened the service and has gone
	 * without disconnecting: it was silent for its lease, or could not be
	 * reached after its connection was lost, or was replaced by a process
	 * with the same client id. On the CPT of the client, in a turn, after
	 * its requests have been canceled; must not block. May be NULL. */
	void (*gone)(void *arg, const struct ulnet_id *client);
	void *gone_arg;
	/* The store of a service that remembers its requests beyond its own
	 * end; NULL: it does not. */
	const struct ulrpc_durable *durable;
	/* Called once, on any thread, when nothing of the service runs any
	 * more, whatever ended it. Not called if ulrpc_service_start() fails.
	 * May be NULL. */
	void (*ended)(void *arg);
	void *ended_arg;
};

/* ---- durable services: ulrpc_request_record(3) ---- */

#define ULRPC_RECORD_KEY 20 /* bytes of a key */

/* A store of records, which the service keeps together with its data. */
struct ulrpc_durable {
	uint8_t incarnation[16]; /* of the store: random, made with it; not all
				  * 0 */
	/* Returns what was last stored under @key, of ULRPC_RECORD_KEY bytes,
	 * in memory from malloc(), which ulnet frees. Called on the thread that
	 * is to run the handler. -ENOENT: nothing was stored; another -errno:
	 * the store cannot tell, and the call ends with its execution
	 * unknown. */
	int (*lookup)(void *arg, const void *key, void **value_p,
		      size_t *length_p);
	void *arg;
};

/* Is to be stored under its key, and replaces what is there. */
struct ulrpc_record {
	const void *key;   /* ULRPC_RECORD_KEY bytes */
	const void *value; /* of @length bytes */
	size_t length;
	uint64_t keep; /* us after which it may be deleted; ULRPC_NEVER: it may
			* be needed at any time */
};

ULNET_EXPORT void ulrpc_service_conf_init(struct ulrpc_service_conf *conf);
/*
 * Starts a service. @service_p may be NULL: then the service ends with RPC.
 * -EINVAL; -EEXIST: name, method or portal is in use; -ENOSPC: no portal is
 * left; -EOPNOTSUPP: the policy has no such order; -ENOMEM; -errno of making
 * threads. Waits, as *_wait.
 */
ULNET_EXPORT int ulrpc_service_start(struct ulrpc *rpc,
				     const struct ulrpc_service_conf *conf,
				     struct ulrpc_service **service_p);
/*
 * Refuses new requests, and waits at most @timeout us until those under way are
 * answered. Callers of requests that are not answered by then are told that
 * the call may have been executed, and the replies to these are dropped. Waits
 * until no handler runs, and frees the service. -ETIMEDOUT: some requests were
 * not answered in time. -EDEADLK: called in a turn, or by a worker of the
 * service; nothing is done.
 */
ULNET_EXPORT int ulrpc_service_stop(struct ulrpc_service *service,
				    uint64_t timeout);
ULNET_EXPORT unsigned int ulrpc_service_portal(
	const struct ulrpc_service *service);

/* ---- requests: ulrpc_reply(3) ---- */

/*
 * A request is valid until it is replied to, on any thread, even if its service
 * has been stopped or RPC closed meanwhile. In that case ulrpc_request_info()
 * says that no time is left, no bulk can be moved (-ENOENT), what
 * ulrpc_request_rpc() returns may have been freed, and the reply, which is
 * still to be made, is dropped.
 */

/*
 * Any thread. Takes @request. @body is copied. A reply that is longer than the
 * caller has room for is held until the caller has fetched it; if there is no
 * room to hold it, or it is longer than ULRPC_BODY_MAX, the caller gets
 * ULRPC_CAUSE_TOO_LONG. Bulk of the request that is still being moved is waited
 * for first; if any of that fails, the caller gets ULRPC_CAUSE_BULK instead.
 */
ULNET_EXPORT void ulrpc_reply(struct ulrpc_request *request, const void *body,
			      size_t length);
/* Replies with a negative errno for outcome.status. As ulrpc_reply(). */
ULNET_EXPORT void ulrpc_fail(struct ulrpc_request *request, int status);
/* As ulrpc_fail(), with a text in UTF-8 for outcome.text, which is copied, and
 * cut off if there is no room for it. */
ULNET_EXPORT void ulrpc_fail_text(struct ulrpc_request *request, int status,
				  const char *text);
/* Replies that the body cannot be read: ULRPC_CAUSE_BAD_REQUEST, certainly not
 * executed. As ulrpc_reply(). */
ULNET_EXPORT void ulrpc_refuse(struct ulrpc_request *request);
/* Replies that there is no room for the request now: ULRPC_CAUSE_OVERLOADED,
 * certainly not executed, with the service's retry_after. As ulrpc_reply(). */
ULNET_EXPORT void ulrpc_overloaded(struct ulrpc_request *request);

/*
 * For methods of a durable service that are executed exactly once: makes
 * *@record, which the handler stores in the transaction with the effects of
 * @request, before it replies with @body, or (with @length 0) fails with the
 * negative errno @status. The memory of @record is the request's until the
 * reply, or the next call of this. Called by the thread that has @request.
 * After it nothing more can be put to the caller's bulk. -EBUSY: bulk is still
 * being moved; -EOPNOTSUPP: another kind of method or service; -EINVAL;
 * -EMSGSIZE: more than the caller has room for; -ENOMEM.
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
	const char *service;	      /* valid as long as the request */
	const char *method_name;      /* the same */
	char trace[ULRPC_TRACE_SIZE]; /* as the caller has given it; or "" */
};

/* Any thread, before the reply. */
ULNET_EXPORT void ulrpc_request_info(const struct ulrpc_request *request,
				     struct ulrpc_request_info *info);
ULNET_EXPORT struct ulrpc *ulrpc_request_rpc(
	const struct ulrpc_request *request);

/*
 * Calls @fn(@arg, @request) on a worker of the service, in the order of its
 * queue. For example for work that may block and that is to be done when bulk
 * has been moved, so that no worker waits for the bulk. Any thread. The caller
 * does not use the request any more; @fn replies to it, or calls this again.
 * @fn is always called; if the service ends, perhaps before this returns.
 * -EOPNOTSUPP: the service has no workers, and @fn is not called.
 */
typedef void (*ulrpc_continue_fn)(void *arg, struct ulrpc_request *request);
ULNET_EXPORT int ulrpc_request_continue(struct ulrpc_request *request,
					ulrpc_continue_fn fn, void *arg);

/*
 * Is the request canceled? That is so if its caller has canceled it, or has no
 * time left, or is gone, or the service stops. Then its handler may end early.
 * It still replies, but nobody gets that; bulk of the request ends with
 * -ECANCELED, under way or begun later. Any thread, before the reply.
 */
ULNET_EXPORT bool ulrpc_request_canceled(const struct ulrpc_request *request);
/*
 * Has @fn(@arg, @request) called once, on the request's CPT, if the request is
 * canceled before the reply. @fn must not block, and may reply. ulrpc_reply()
 * waits while @fn runs, so it must not be called with a lock that @fn takes;
 * after ulrpc_reply() @fn is not called. Any thread, before the reply.
 * -ECANCELED: the request is canceled already; -EALREADY: there is a function
 * already; @fn is not called.
 */
typedef void (*ulrpc_cancel_fn)(void *arg, struct ulrpc_request *request);
ULNET_EXPORT int ulrpc_request_on_cancel(struct ulrpc_request *request,
					 ulrpc_cancel_fn fn, void *arg);

/*
 * For workers: sleeps for @us. -ECANCELED: the request was canceled, or, in the
 * simulator, the node has crashed. -EDEADLK on a CPT's thread.
 */
ULNET_EXPORT int ulrpc_request_sleep(struct ulrpc_request *request,
				     uint64_t us);
/*
 * Says that the handler makes progress, and that @permille of the work is done.
 * The caller is told with the next message that says that the request is being
 * served. Any thread, before the reply; costs a store.
 */
ULNET_EXPORT void ulrpc_progress(struct ulrpc_request *request,
				 uint32_t permille);

/* The CPT that the request belongs to, where callbacks run. */
ULNET_EXPORT unsigned int ulrpc_request_cpt(
	const struct ulrpc_request *request);

/* ---- bulk, the service's side: ulrpc_bulk_get(3) ---- */

struct ulrpc_bulk_info {
	enum ulrpc_bulk_access access;
	uint64_t length;
	unsigned int segments;
	bool checksum;
};

/* Describes the bulk @index: as in the call's list, or in the field of the
 * message. -ENOENT. */
ULNET_EXPORT int ulrpc_request_bulk(const struct ulrpc_request *request,
				    unsigned int index,
				    struct ulrpc_bulk_info *info);

/* @status: 0: all @moved bytes were moved (and checked, if there are
 * checksums); else why the first segment that failed could not be moved;
 * -EBADMSG: its checksum is wrong. */
typedef void (*ulrpc_bulk_fn)(void *arg, int status, uint64_t moved);

/*
 * Moves data from the caller's bulk @index (a source) to @iov, or from @iov to
 * that bulk (a sink), at @offset of the bulk; the length is @iov's. @iov is
 * copied, its memory borrowed until @done. Segments that were certainly or
 * perhaps not moved are tried again until the caller's deadline; without one,
 * as long as a silent client is remembered. Any thread. -ENOENT; -EACCES: the
 * bulk is not for this direction; -ERANGE: beyond its end; -ENOMEM.
 */
ULNET_EXPORT int ulrpc_bulk_get(struct ulrpc_request *request,
				unsigned int index, uint64_t offset,
				const struct iovec *iov, unsigned int niov,
				ulrpc_bulk_fn done, void *arg);
ULNET_EXPORT int ulrpc_bulk_put(struct ulrpc_request *request,
				unsigned int index, uint64_t offset,
				const struct iovec *iov, unsigned int niov,
				ulrpc_bulk_fn done, void *arg);
/* For workers: the same, and waits for the end. Meanwhile a spare thread serves
 * other requests that wait for a worker. If no spare thread is left, the wait
 * for a client that has been silent for a second may end with -ETIMEDOUT.
 * -EDEADLK on a CPT's thread. */
ULNET_EXPORT int ulrpc_bulk_get_wait(struct ulrpc_request *request,
				     unsigned int index, uint64_t offset,
				     const struct iovec *iov,
				     unsigned int niov);
ULNET_EXPORT int ulrpc_bulk_put_wait(struct ulrpc_request *request,
				     unsigned int index, uint64_t offset,
				     const struct iovec *iov,
				     unsigned int niov);
/*
 * Limits transfers of bulk @index that begin after this to @timeout us, after
 * which they end with -ETIMEDOUT; 0: only the caller's deadline limits them.
 * Any thread. -ENOENT.
 */
ULNET_EXPORT int ulrpc_bulk_timeout(struct ulrpc_request *request,
				    unsigned int index, uint64_t timeout);
/*
 * Ends transfers of bulk @index that were begun before this, as soon as nothing
 * uses their memory: with -ECANCELED, unless all was moved. Any thread, never
 * waits. -ENOENT.
 */
ULNET_EXPORT int ulrpc_bulk_cancel(struct ulrpc_request *request,
				   unsigned int index);

#ifdef __cplusplus
}
#endif

#endif
