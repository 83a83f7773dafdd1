/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote procedure calls over LNet: services. Conventions as in ulnet/rpc.h.
 * Manual: ulrpc(7), ulrpc_tutorial(7), ulrpc_service_start(3),
 * ulrpc_services(3),
 * ulrpc_reply(3), ulrpc_bulk_get(3).
 */
#ifndef ULNET_SERVICE_H
#define ULNET_SERVICE_H

#include "ulnet/rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ulrpc_service;
struct ulrpc_request; /* a request that is being served */
struct ProtobufCServiceDescriptor; /* protobuf-c's */

/* ---- services: ulrpc_service_start(3) ---- */

enum ulrpc_run {
	ULRPC_RUN_WORKER = 0, /* on a worker thread: the handler may block */
	/* on the CPT's thread: the handler must not block */
	ULRPC_RUN_INLINE,
};

/*
 * Handles @request. Its body, @length bytes at @body, is valid until the
 * request is replied to. The handler must lead to exactly one call of
 * ulrpc_reply(), ulrpc_fail() or the like: in the handler, or later, on any
 * thread.
 */
typedef void (*ulrpc_handler_fn)(void *arg, struct ulrpc_request *request,
				 const void *body, size_t length);

struct ulrpc_method_conf {
	/* the method's number is ulrpc_method(name); two methods with the same
	 * number: -EEXIST */
	const char *name;
	ulrpc_handler_fn handler;
	void *arg;
	enum ulrpc_run run;
	/* priority of calls that choose none; default: ULRPC_PRIORITY_NORMAL */
	enum ulrpc_priority priority;
	/* a call that may have been executed before is executed again only if
	 * both the method and the call are ULRPC_IDEMPOTENT */
	enum ulrpc_semantics semantics;
	/* the lowest flavour that calls may have, if it is higher than the
	 * service's; a client that has proved who it is raises its flavour by
	 * itself */
	enum ulrpc_flavour flavour;
};

struct ulrpc_service_conf {
	const char *name; /* copied, as is all that this structure points to */
	const struct ulrpc_method_conf *methods;
	unsigned int nmethods;
	/* portal for requests; 0: any free one, or if only one is left, one
	 * that services share */
	unsigned int portal;
	/* Workers are threads; in virtual time one runs at a time. */
	/* 0 = 1, or no worker if all methods run inline */
	unsigned int workers_min;
	/* 0 = workers_min: a fixed number. While workers wait for bulk, up to
	 * workers_max spare threads stand in for them */
	unsigned int workers_max;
	/* bytes of the longest body; 0 = 64 KiB; at most ULRPC_BODY_MAX */
	uint32_t request_max;
	/* Bytes of the longest body if it is longer than request_max: callers
	 * lend such a body, and the service gets it before the method is
	 * called. What it takes is charged as queue_bytes_max says. 0 = 16 MiB,
	 * or request_max if that is set; at most ULRPC_LENT_MAX */
	uint32_t request_limit;
	/* Bytes of the longest reply. One that is longer than its caller's
	 * reply_max is held until the caller has fetched it, and charged as
	 * queue_bytes_max says. 0 = 16 MiB; at most ULRPC_REPLY_MAX */
	uint32_t reply_limit;
	uint32_t buffers; /* request buffers of each CPT: 2 to
			      * ULRPC_BUFFERS_MAX; 0 = 4 */
	/* bytes of a request buffer; 0: room for several messages */
	uint32_t buffer_size;
	/* How much a client may have if it is the only one. All clients
	 * together may have four times as much. Of that, a host may have at
	 * most as much as it leaves free for other hosts; of its host's share,
	 * a client may have at most as much as it leaves free for other
	 * clients. Further requests are refused as overloaded, and not
	 * executed. */
	/* requests that wait for a worker or for their handler's reply; 0 =
	 * 4096 */
	uint32_t queue_max;
	/* bytes of memory for these requests, each with room for a reply of
	 * reply_max bytes, and for replies that clients have not taken yet; 0 =
	 * 32 MiB */
	uint64_t queue_bytes_max;
	/* calls in flight that each client is granted, at most; 0 = 1024 */
	uint32_t window;
	/* us: while all requests of a client wait longer than this, its window
	 * shrinks; 0 = 5 ms, or the time that two requests take, if that is
	 * longer */
	uint64_t queue_target;
	/* us that a refused client is asked to wait before it calls again, at
	 * least; 0 = 10 ms */
	uint64_t retry_after;
	/* us after which a handler that has not replied is logged, once; 0 = 60
	 * s; ULRPC_NEVER: it is not logged */
	uint64_t stuck;
	/* us after which callers stop waiting for a handler that has not
	 * replied, called ulrpc_progress() or moved bulk: ULRPC_CAUSE_STALLED;
	 * 0 = ULRPC_NEVER */
	uint64_t stalled;
	/* the order in which requests are served, and limits of rates: "[ORDER
	 * [quantum=N]] [tbf RULES]". ORDER is "fair": in turn between hosts,
	 * and between the clients of each host; "rr": the same by quanta;
	 * "fifo"; or "edf". RULES limit rates: "tbf nid=10.0.0.[1-9]@tcp
	 * rate=1000 depth=3; rate=10000". NULL = "fair" */
	const char *policy;
	/* how many requests of high priority are served in a row while others
	 * wait; 0 = 10 */
	uint32_t high_ratio;
	/* bulk messages that a request may have in flight; 0 = 8 */
	uint32_t segments;
	/* Called once for each client that has used the service and has
	 * vanished without disconnecting: it was silent for its lease; or it
	 * could not be reached after its connection was lost; or a process with
	 * the same client id replaced it. Called on the CPT of the client, in a
	 * turn, after its requests have been canceled; must not block. May be
	 * NULL. */
	void (*gone)(void *arg, const struct ulnet_id *client);
	void *gone_arg;
	/* The store of a durable service, which remembers its requests beyond
	 * its own end; NULL: the service is not durable. */
	const struct ulrpc_durable *durable;
	/* Called once, on any thread, when nothing of the service runs any
	 * more, however it was ended. Not called if ulrpc_service_start()
	 * fails. May be NULL. */
	void (*ended)(void *arg);
	void *ended_arg;
	/* Asks all clients for checksums of bodies, as if each had asked for
	 * them: checksum of struct ulrpc_client_conf. */
	bool checksum;
	/* The lowest flavour that clients may have. Others are refused, with a
	 * text that says so. -ENOKEY: the flavour needs keys, and RPC was
	 * opened without. */
	enum ulrpc_flavour flavour;
	/* Interceptors of the service's requests, which are called after those
	 * of the node: ulrpc_interceptors(7). What their args point to must
	 * last until `ended`. */
	const struct ulrpc_request_interceptor *interceptors;
	unsigned int ninterceptors; /* at most ULRPC_INTERCEPTORS_MAX */
	/* What protoc-c has generated for the service, if its messages are
	 * those: for whoever asks, see ulrpc_about_start(3). Borrowed until RPC
	 * is closed. ulrpc_serve(3) fills it in. NULL: not known */
	const struct ProtobufCServiceDescriptor *descriptor;
	/* Which methods of @descriptor stream, as it does not say: for each of
	 * them an enum ulrpc_streaming (ulnet/stub.h). Borrowed until @ended.
	 * ulrpc_serve_streams(3) fills it in. NULL: none of them */
	const uint8_t *streaming;
	/* result if the configuration is refused; NULL: not wanted */
	struct ulnet_conf_error *err;
};

/* ---- who may call what: ulrpc_rules_new(3), ulnet_security(7) ---- */

/*
 * A rule lets those whom it names call what it names. Lists end with NULL; all
 * lists and texts of a rule have to fit. In a list, * stands for any text and ?
 * for any character.
 */
struct ulrpc_rule {
	/* services that may be called; NULL: all */
	const char *const *services;
	const char *const *methods; /* methods that may be called; NULL: all */
	/* names that peers have proved, and groups of such names; the rule fits
	 * a peer whose name is in either list. Both NULL: it fits anybody, even
	 * who has proved nothing */
	const char *const *names, *const *groups;
	/* list of NIDs from which peers connect: lnet_nidlist(3); NULL: any */
	const char *nids;
	/* how peers must have proved their names; ULRPC_PEER_UNKNOWN: in any
	 * way */
	enum ulrpc_peer_kind kind;
	/* the lowest flavour that calls may have, if it is higher than the
	 * service's and the method's */
	enum ulrpc_flavour flavour;
	/* line of the rule in its file, for messages; 0: it is not from a file
	 */
	unsigned int line;
};

struct ulrpc_group {
	const char *name;
	const char *const *names;
	unsigned int line;
};

/* All rules. A call that no rule lets in is refused. */
struct ulrpc_rules_conf {
	const struct ulrpc_rule *rules;
	unsigned int nrules;
	const struct ulrpc_group *groups;
	unsigned int ngroups;
};

struct ulrpc_rules;

/*
 * Makes rules, which do not change any more; @conf is copied. The caller owes
 * ulrpc_rules_put(). On error @why, of @size bytes, gets a sentence that names
 * the item, and its line. -EINVAL, -ENOENT: no such group, -EEXIST,
 * -ENAMETOOLONG; -E2BIG: more than 1000 rules or groups, or 10,000 texts to
 * compare with in all lists; -ENOMEM. Any thread.
 */
ULNET_EXPORT int ulrpc_rules_new(const struct ulrpc_rules_conf *conf,
				 struct ulrpc_rules **rules_p, char *why,
				 size_t size);
/* NULL is fine. */
ULNET_EXPORT void ulrpc_rules_put(struct ulrpc_rules *rules);
/*
 * From the return on, @rules, to which it takes a reference of its own, decide
 * about all calls that come; NULL: there are no rules. Calls that have come
 * before go on. -EDEADLK: called in a turn. Waits, as *_wait.
 */
ULNET_EXPORT int ulrpc_use_rules(struct ulrpc *rpc, struct ulrpc_rules *rules);

/* ---- durable services: ulrpc_request_record(3) ---- */

#define ULRPC_RECORD_KEY 20 /* bytes of a key */

/* A store of records, which the service keeps together with its data. */
struct ulrpc_durable {
	/* id of the store: random bytes, made with the store; not all 0 */
	uint8_t incarnation[16];
	/* Looks up what was last stored under @key, of ULRPC_RECORD_KEY bytes.
	 * *@value_p is memory from malloc(), which ulnet frees. Called on the
	 * thread on which the handler is going to run. -ENOENT: nothing was
	 * stored; any other -errno: the store cannot tell, and the call ends
	 * with its execution unknown. */
	int (*lookup)(void *arg, const void *key, void **value_p,
		      size_t *length_p);
	void *arg;
};

/* What the handler must store under .key, where it replaces what was stored
 * before. */
struct ulrpc_record {
	const void *key;   /* ULRPC_RECORD_KEY bytes */
	const void *value; /* the value, of @length bytes */
	size_t length;
	/* us after which the record may be deleted; ULRPC_NEVER: it may be
	 * needed at any time */
	uint64_t keep;
};

ULNET_EXPORT void ulrpc_service_conf_init(struct ulrpc_service_conf *conf);
/*
 * Starts a service. @service_p may be NULL: then the service ends when RPC is
 * closed. -EINVAL; -EEXIST: the name, a method or the portal is in use;
 * -ENOSPC: no portal is left; -EOPNOTSUPP: the policy names an unknown order;
 * -EPERM: the portal is for unique match entries. With each of these
 * *@conf->err, unless it is NULL, says which field is refused, and why, as the
 * log does. -ENOMEM; -errno of making threads. Waits, as *_wait.
 */
ULNET_EXPORT int ulrpc_service_start(struct ulrpc *rpc,
				     const struct ulrpc_service_conf *conf,
				     struct ulrpc_service **service_p);
/*
 * Refuses new requests, waits at most @timeout us until those under way have
 * been answered, then waits until no handler runs, and frees the service. If a
 * request has not been answered in time, its caller is told that the call may
 * have been executed, and the reply of its handler is dropped; returns
 * -ETIMEDOUT. -EDEADLK: called in a turn, or by a worker of the service;
 * nothing was done.
 */
ULNET_EXPORT int ulrpc_service_stop(struct ulrpc_service *service,
				    uint64_t timeout);
ULNET_EXPORT unsigned int ulrpc_service_portal(
	const struct ulrpc_service *service);

/* ---- what runs: ulrpc_services(3) ---- */

enum ulrpc_health {
	ULRPC_HEALTH_UNKNOWN = 0, /* no such service runs */
	ULRPC_HEALTH_SERVING,
	/* its program says so, or it is being stopped, or RPC is */
	ULRPC_HEALTH_NOT_SERVING,
};

/* Says how @service is: ULRPC_HEALTH_SERVING, which it is from its start on, or
 * ULRPC_HEALTH_NOT_SERVING. Requests are served in any case. Any thread. */
ULNET_EXPORT void ulrpc_service_health(struct ulrpc_service *service,
				       enum ulrpc_health health);

/* A service that runs; valid during the call of the function that gets it. */
struct ulrpc_service_info {
	const char *name;
	unsigned int portal;
	enum ulrpc_health health;
	/* those of struct ulrpc_service_conf */
	const struct ProtobufCServiceDescriptor *descriptor; /* NULL: unknown */
	const uint8_t *streaming;   /* NULL: no method streams */
	const char *const *methods; /* names of all methods, up to NULL */
};

typedef void (*ulrpc_service_fn)(void *arg,
				 const struct ulrpc_service_info *info);
/* Calls @fn for each service of @rpc, in the order in which they were started.
 * @fn must not call functions of this library, except ulrpc_method(). Any
 * thread. */
ULNET_EXPORT void ulrpc_services(struct ulrpc *rpc, ulrpc_service_fn fn,
				 void *arg);

/* ---- requests: ulrpc_reply(3) ---- */

/*
 * A request is valid, on any thread, until it is replied to, even if its
 * service has been stopped or RPC has been closed meanwhile. In that case the
 * handler must still reply, but the reply is dropped; ulrpc_request_info() says
 * that no time is left, bulk cannot be moved (-ENOENT), and the result of
 * ulrpc_request_rpc() may have been freed.
 */

/*
 * Replies to @request, which must not be used afterwards. Any thread. @body is
 * copied. If the reply is longer than the caller has room for, it is held until
 * the caller has fetched it; if there is no room to hold it, or it is longer
 * than reply_limit of the service or of the caller, the caller gets
 * ULRPC_CAUSE_TOO_LONG. The reply is sent after all bulk of the request has
 * been moved; if any bulk failed, the caller gets ULRPC_CAUSE_BULK instead.
 */
ULNET_EXPORT void ulrpc_reply(struct ulrpc_request *request, const void *body,
			      size_t length);
/* Replies with a negative errno, which becomes outcome.status. Otherwise as
 * ulrpc_reply(). */
ULNET_EXPORT void ulrpc_fail(struct ulrpc_request *request, int status);
/* As ulrpc_fail(), with a text in UTF-8, which becomes outcome.text; it is
 * copied, and cut off if it is too long. */
ULNET_EXPORT void ulrpc_fail_text(struct ulrpc_request *request, int status,
				  const char *text);
/* Replies that the body cannot be read: the caller gets
 * ULRPC_CAUSE_BAD_REQUEST, and the call counts as not executed. Otherwise as
 * ulrpc_reply(). */
ULNET_EXPORT void ulrpc_refuse(struct ulrpc_request *request);
/* Replies that there is no room for the request now: the caller gets
 * ULRPC_CAUSE_OVERLOADED with the service's retry_after, and the call counts as
 * not executed. Otherwise as ulrpc_reply(). */
ULNET_EXPORT void ulrpc_overloaded(struct ulrpc_request *request);

/*
 * For methods of a durable service that are executed exactly once. Makes
 * *@record, which the handler must store in the same transaction as the effects
 * of @request, before it replies with @body or (with @length 0) fails with the
 * negative errno @status. The memory of *@record belongs to the request, and is
 * valid until the reply or the next call of this function. Called by the thread
 * that has @request. After this call no data can be put to the caller's bulk.
 * -EBUSY: bulk is still being moved; -EOPNOTSUPP: the service is not durable,
 * or the method is not executed exactly once; -EINVAL; -EMSGSIZE: the reply is
 * longer than the caller has room for; -ENOMEM.
 */
ULNET_EXPORT int ulrpc_request_record(struct ulrpc_request *request, int status,
				      const void *body, size_t length,
				      struct ulrpc_record *record);

struct ulrpc_request_info {
	struct ulnet_id client;	 /* the process that made the call */
	struct ulnet_nid source; /* NID that the request was sent from */
	struct ulnet_nid local;	 /* NID of this node that the request came to */
	uint64_t xid;
	uint32_t attempt; /* number of the attempt, from 1 */
	uint32_t method;
	uint32_t reply_max;
	/* bytes of the longest reply that the caller takes, as it has said, or
	 * ULRPC_BODY_MAX. One in a process of an earlier release says nothing,
	 * and may take up to 16 MiB */
	uint32_t reply_limit;
	/* us until the caller's deadline; ULRPC_NEVER: there is none */
	uint64_t time_left;
	enum ulrpc_priority priority;
	unsigned int nbulks;
	const char *service;	 /* valid as long as the request */
	const char *method_name; /* valid as long as the request */
	/* the trace that the caller gave; "": none */
	char trace[ULRPC_TRACE_SIZE];
};

/* Describes @request. Any thread, before the reply. */
ULNET_EXPORT void ulrpc_request_info(const struct ulrpc_request *request,
				     struct ulrpc_request_info *info);
/* Sets *@peer to who has made the call. Any thread, before the reply. If the
 * service has ended meanwhile, so that nobody gets the reply, the peer may be
 * unknown. */
ULNET_EXPORT void ulrpc_request_peer(const struct ulrpc_request *request,
				     struct ulrpc_peer *peer);
ULNET_EXPORT struct ulrpc *ulrpc_request_rpc(
	const struct ulrpc_request *request);

/*
 * Calls @fn(@arg, @request) on a worker of the service, in the order of its
 * queue. This is for work that may block and that can only be done after bulk
 * has been moved: no worker has to wait for the bulk. Any thread. The caller
 * must not use the request any more; @fn replies to it, or calls this function
 * again. @fn is called even if the service ends; in that case perhaps before
 * this function returns. -EOPNOTSUPP: the service has no workers; @fn is not
 * called.
 */
typedef void (*ulrpc_continue_fn)(void *arg, struct ulrpc_request *request);
ULNET_EXPORT int ulrpc_request_continue(struct ulrpc_request *request,
					ulrpc_continue_fn fn, void *arg);

/*
 * Has the request been canceled? That is so if its caller has canceled it, has
 * no time left or is gone, or if the service is being stopped. The handler may
 * then end early. It must still reply, but nobody gets the reply; transfers of
 * bulk of the request, both those under way and later ones, end with
 * -ECANCELED. Any thread, before the reply.
 */
ULNET_EXPORT bool ulrpc_request_canceled(const struct ulrpc_request *request);
/*
 * If the request is canceled before the reply, calls @fn(@arg, @request) once,
 * on the CPT of the request. @fn must not block, and may reply. ulrpc_reply()
 * waits while @fn runs, so a thread that holds a lock that @fn takes must not
 * call it. After ulrpc_reply() @fn is not called. Any thread, before the reply.
 * -ECANCELED: the request has been canceled already; -EALREADY: it has such a
 * function already; with both errors @fn is not called.
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
 * Tells ulnet that the handler makes progress, and that @permille of the work
 * is done. The caller learns it from the next message that says that the call
 * takes longer. Any thread, before the reply; costs one store to memory.
 */
ULNET_EXPORT void ulrpc_progress(struct ulrpc_request *request,
				 uint32_t permille);

/* Returns the CPT that the request belongs to, where its callbacks run. */
ULNET_EXPORT unsigned int ulrpc_request_cpt(
	const struct ulrpc_request *request);

/* ---- bulk, the service's side: ulrpc_bulk_get(3) ---- */

struct ulrpc_bulk_info {
	enum ulrpc_bulk_access access;
	uint64_t length;
	unsigned int segments;
	bool checksum;
};

/* Describes the bulk @index. The index is that in ulrpc_call_conf.bulks, or
 * that in the Bulk field of the message. -ENOENT: there is none. */
ULNET_EXPORT int ulrpc_request_bulk(const struct ulrpc_request *request,
				    unsigned int index,
				    struct ulrpc_bulk_info *info);

/* @status: 0: all @moved bytes were moved, and checked if the bulk has
 * checksums; else the error of the first segment that failed; -EBADMSG: its
 * checksum is wrong. */
typedef void (*ulrpc_bulk_fn)(void *arg, int status, uint64_t moved);

/*
 * Get data from the caller's bulk @index (a source), from @offset on, into
 * @iov; put data from @iov to that bulk (a sink). The length is that of @iov.
 * @iov is copied; its memory is borrowed until @done is called. A segment that
 * was not moved, or may not have been, is tried again until the caller's
 * deadline; without a deadline, until a silent client is forgotten. Any thread.
 * -ENOENT: there is no such bulk; -EACCES: the bulk is not for this direction;
 * -ERANGE: the bulk ends before @offset plus the length; -ENOMEM.
 */
ULNET_EXPORT int ulrpc_bulk_get(struct ulrpc_request *request,
				unsigned int index, uint64_t offset,
				const struct iovec *iov, unsigned int niov,
				ulrpc_bulk_fn done, void *arg);
ULNET_EXPORT int ulrpc_bulk_put(struct ulrpc_request *request,
				unsigned int index, uint64_t offset,
				const struct iovec *iov, unsigned int niov,
				ulrpc_bulk_fn done, void *arg);
/* As ulrpc_bulk_get() and ulrpc_bulk_put(), for workers: wait for the end.
 * Meanwhile a spare thread serves other requests that wait for a worker. If no
 * spare thread is left, and the client has been silent for a second, the wait
 * may end with -ETIMEDOUT. -EDEADLK: called on a CPT's thread. */
ULNET_EXPORT int ulrpc_bulk_get_wait(struct ulrpc_request *request,
				     unsigned int index, uint64_t offset,
				     const struct iovec *iov,
				     unsigned int niov);
ULNET_EXPORT int ulrpc_bulk_put_wait(struct ulrpc_request *request,
				     unsigned int index, uint64_t offset,
				     const struct iovec *iov,
				     unsigned int niov);
/*
 * Sets the timeout, in us, of transfers of bulk @index that begin after this
 * call: they then end with -ETIMEDOUT. 0: only the caller's deadline limits
 * them. Any thread. -ENOENT.
 */
ULNET_EXPORT int ulrpc_bulk_timeout(struct ulrpc_request *request,
				    unsigned int index, uint64_t timeout);
/*
 * Ends transfers of bulk @index that began before this call, as soon as nothing
 * uses their memory. They end with -ECANCELED, unless all data was moved. Any
 * thread; never waits. -ENOENT.
 */
ULNET_EXPORT int ulrpc_bulk_cancel(struct ulrpc_request *request,
				   unsigned int index);

#ifdef __cplusplus
}
#endif

#endif
