/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote procedure calls over LNet: the caller's side, and what both sides
 * share. The other side is ulnet/service.h; protobuf-c stubs are ulnet/stub.h.
 * Manual: ulrpc(7), ulrpc_tutorial(7), and a page for each function in
 * section 3.
 *
 * Conventions, unless a function says otherwise:
 * - 0 or a negative errno is returned; results come last and are left alone on
 *   error; times are microseconds, lengths and offsets bytes;
 * - any thread may call; what belongs to a CPT is done on the CPT's thread.
 *   Only the functions named *_wait, and those that open and close, wait until
 *   it is done; in a turn of a CPT, that is, in a callback, they return
 *   -EDEADLK;
 * - callbacks run on the thread of the CPT that owns the peer, must not block,
 *   and never run inside of the function that leads to them (though a function
 *   that was called on another thread may not have returned yet);
 * - the owner of an object ends it with its close function, and may not use it
 *   after that.
 */
#ifndef ULNET_RPC_H
#define ULNET_RPC_H

#include <limits.h>
#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lnet_control; /* ulnet/control.h */
struct ulrpc;	     /* RPC on a node */
struct ulrpc_client; /* a service of a target */
struct ulrpc_call;
struct ulrpc_bulk; /* memory that a server may move data to or from */

/* ---- when calls are sent again: ulrpc_retry(7) ---- */

enum ulrpc_backoff {
	ULRPC_BACKOFF_DEFAULT = 0, /* ULRPC_BACKOFF_FULL; in force_policy: no
				    * policy is forced */
	ULRPC_BACKOFF_FULL,
	ULRPC_BACKOFF_EQUAL,
	ULRPC_BACKOFF_MAD,
	ULRPC_BACKOFF_NONE, /* no pauses but what servers ask for */
};

#define ULRPC_RETRIES_ANY UINT32_MAX

struct ulrpc_retry {
	enum ulrpc_backoff policy;
	uint32_t max; /* 0 = none at all; ULRPC_RETRIES_ANY = as many as there
		       * is time for */
	uint64_t base; /* us: the range of the first pause; 0 = half of the
			* attempt's timeout, but at least 10 ms, and two round
			* trips */
	uint64_t cap;  /* us: the range of the longest one; 0 = 5 s */
	bool tell_overloaded; /* a call that a server is too busy for is not
			       * sent again, but ends at once, with
			       * ULRPC_CAUSE_OVERLOADED */
};

/* ---- RPC on a node: ulrpc_open(3) ---- */

#define ULRPC_PORTAL_CONTROL 61
#define ULRPC_PORTAL_REPLY   62
#define ULRPC_PORTAL_BULK    63
/* Services get portals from this range, unless they ask for one. */
#define ULRPC_PORTAL_FIRST 36
#define ULRPC_PORTAL_LAST  60

#define ULRPC_ID_SIZE 16

struct ulrpc_conf {
	uint64_t keepalive; /* us without traffic until a peer is asked whether
			     * it is there; of a connection, the smaller one of
			     * client and server counts; 0 = 10 s */
	uint64_t idle;	    /* us without a call after which a client's
			     * connection is closed; the next call makes a new
			     * one; 0 = 300 s; ULRPC_NEVER */
	uint64_t connect_timeout; /* us for one attempt to connect; 0 = 5 s */
	/* us: bounds of an attempt's timeout: how long the server has before
	 * the client asks what became of the attempt. The timeout is never more
	 * than half of the time that the call has left. 0 = 50 ms, and 30 s. A
	 * minimum above the maximum is refused. */
	uint64_t timeout_min, timeout_max;
	/* The policy of all calls, whatever they say; 0 = their own. */
	enum ulrpc_backoff force_policy;
	/* An id by which servers know this client again after a restart; all 0:
	 * a random one. Two processes must not have the same: the second is
	 * refused. An id needs a generation: a number that is higher at each
	 * start, such as the time in seconds, so that servers do not take a
	 * call for one of the process before. It is not 0, and higher by at
	 * least one for each 2^32 calls that the process before has made. */
	uint8_t client_id[ULRPC_ID_SIZE];
	uint32_t client_generation;
	/* What strangers can make the node hold, each for one CPT: */
	uint32_t exports_max;	  /* connections of clients; 0 = 65536 */
	uint32_t control_buffers; /* of 16 KiB each, for control: 2 to
				   * ULRPC_BUFFERS_MAX; 0 = 4 */
};

#define ULRPC_BUFFERS_MAX 1024

#define ULRPC_NEVER UINT64_MAX

ULNET_EXPORT void ulrpc_conf_init(struct ulrpc_conf *conf);
/*
 * @node: borrowed; needs its interfaces only when calls are made. One for each
 * node (-EBUSY). lnet_close() ends what is still open, too: as ulrpc_close().
 * When a simulated node crashes, everything on it is gone without a callback;
 * calls that the user has, and sets, are still to be given back.
 * -EINVAL, -ENOMEM, -EDEADLK.
 */
ULNET_EXPORT int ulrpc_open(struct lnet *node, const struct ulrpc_conf *conf,
			    struct ulrpc **rpc_p);
/*
 * From now on new calls are refused, and so are new requests (as certainly not
 * executed). Calls @done once, when all that was under way has ended, at the
 * latest after @timeout: calls that have not ended by then are canceled, and
 * requests stay without an answer. @status: 0: all has ended by itself;
 * -ETIMEDOUT: some had to be ended; -ECANCELED: some had to be ended earlier,
 * by ulrpc_close() or lnet_close(). @done may be NULL. -EALREADY: it has been
 * called before. Never waits.
 */
ULNET_EXPORT int ulrpc_shutdown(struct ulrpc *rpc, uint64_t timeout,
				void (*done)(void *arg, int status), void *arg);
/* Shuts down at once, waits for the memory of all calls, and frees. Handlers
 * that run now are waited for. NULL is fine. -EDEADLK, as above. */
ULNET_EXPORT int ulrpc_close(struct ulrpc *rpc);
ULNET_EXPORT struct lnet *ulrpc_node(struct ulrpc *rpc);

/* ---- what became of a call: ulrpc_outcome(3) ---- */

/* What is known of the execution of a call that ended. */
enum ulrpc_execution {
	ULRPC_EXECUTED,	    /* the service has answered */
	ULRPC_NOT_EXECUTED, /* certainly not, nor later: safe to call again */
	ULRPC_EXECUTION_UNKNOWN, /* the call may have run, or may yet run */
};

#define ULRPC_TEXT_MAX 256 /* bytes of an error's text, with its terminator */

/* Why a call ended as it did. */
enum ulrpc_cause {
	ULRPC_CAUSE_OK = 0,
	ULRPC_CAUSE_HANDLER,	 /* the service failed the call, with status */
	ULRPC_CAUSE_DEADLINE,	 /* the caller's deadline passed */
	ULRPC_CAUSE_EXPIRED,	 /* the server dropped the call as too late */
	ULRPC_CAUSE_CANCELED,	 /* by the caller */
	ULRPC_CAUSE_OVERLOADED,	 /* the server has no room */
	ULRPC_CAUSE_NO_SERVICE,	 /* the target has none of that name */
	ULRPC_CAUSE_NO_METHOD,	 /* the service has none of that name */
	ULRPC_CAUSE_BAD_REQUEST, /* the service cannot read the request */
	ULRPC_CAUSE_BAD_REPLY,	 /* the caller cannot read the reply */
	ULRPC_CAUSE_TOO_LONG,	 /* the reply is longer than the caller takes,
				  * or than the server can hold for it */
	ULRPC_CAUSE_BULK,	 /* bulk data could not be moved */
	ULRPC_CAUSE_CHECKSUM,	 /* bulk data arrived changed */
	ULRPC_CAUSE_UNREACHABLE, /* no connection until the deadline */
	ULRPC_CAUSE_REFUSED,	 /* the server does not want this client */
	ULRPC_CAUSE_RESTARTED,	 /* the server no longer knows the call */
	ULRPC_CAUSE_SHUTDOWN,  /* the server shuts down; stubs: or this side */
	ULRPC_CAUSE_NO_MEMORY, /* on this node */
	ULRPC_CAUSE_STALLED,   /* the service makes no progress with it */
	ULRPC_CAUSE_COUNT
};

struct ulrpc_outcome {
	int status; /* 0 or a negative errno: the service's own with
		     * ULRPC_CAUSE_HANDLER; with ULRPC_CAUSE_BULK the reason */
	enum ulrpc_cause cause;
	enum ulrpc_execution execution;
	bool bulk_free;	   /* the memory of all its bulks is the caller's again;
			    * if false: not before ulrpc_bulk_close() says so */
	uint32_t attempts; /* messages that carried it */
	uint32_t paths;	   /* transmissions begun for these */
	struct ulnet_nid local; /* rail of the last attempt; ANY: none */
	struct ulnet_nid target;
	/* Times, us, of which @total is the sum. Those of a CPT are its turns':
	 * what begins and ends in one turn takes 0, as @service of an inline
	 * handler that replies at once does. */
	uint64_t total;
	uint64_t connecting;	   /* waiting for the connection */
	uint64_t window;	   /* waiting for a place in flight */
	uint64_t wire;		   /* from sending to answer, less the time at
				    * the server, which is: */
	uint64_t server_throttled; /* held back by the service's rules, */
	uint64_t server_queue;	   /* then queued, until the handler began, */
	uint64_t service;	   /* then in the handler, until the reply */
	uint64_t fetch;		   /* fetching a reply longer than reply_max */
	uint64_t retry_after;	   /* OVERLOADED: us the server asks to wait */
	uint32_t reply_needed;	   /* TOO_LONG: bytes that the reply has */
	/* Of @attempts: */
	uint32_t retries;    /* repetitions of a message that was delivered */
	uint32_t queries;    /* questions what became of an attempt */
	/* Answers that did not end the call: */
	uint32_t extensions; /* the server needs longer */
	uint32_t refusals;   /* the server refused, and was called again */
	/* The service's explanation of its failure, for people; "": none. Not
	 * to be trusted, but without control characters. */
	char text[ULRPC_TEXT_MAX];
};

ULNET_EXPORT const char *ulrpc_cause_name(enum ulrpc_cause cause);
ULNET_EXPORT const char *ulrpc_execution_name(enum ulrpc_execution execution);

/* ---- clients: ulrpc_client_open(3) ---- */

struct ulrpc_client_conf {
	const struct ulnet_nid *nids; /* of one node, best first; copied */
	unsigned int nnids; /* 1 .. 16; the CPT that owns the first owns the
			     * client: lnet_cpt_of() */
	uint32_t pid;		 /* of the node; 0 = LNet's usual one, 12345 */
	const char *service;	 /* name; copied */
	uint32_t inflight_max;	 /* calls in flight; more wait; 0 = 1024 */
	uint32_t inflight_begin; /* slow start: calls in flight with a new
				  * connection. Doubles when that many were
				  * answered, or when calls have waited for half
				  * a second without any answer; 0 = 2 */
	uint32_t batch_max;	 /* calls that may travel in one message: up to
				* ULRPC_BATCH_MAX, which 0 stands for */
	const struct ulrpc_retry *retry; /* of calls that say nothing of it;
					  * copied; NULL = the default: full
					  * jitter, ULRPC_RETRIES_ANY */
};

#define ULRPC_NIDS_MAX	   16
#define ULRPC_BATCH_MAX	   256
#define ULRPC_SERVICE_NAME 64 /* bytes of a name, with its terminator */
#define ULRPC_BODY_MAX	   UINT32_C(983040) /* of a request or a reply */

ULNET_EXPORT void ulrpc_client_conf_init(struct ulrpc_client_conf *conf);
/* Does not connect yet: the first call does. Clients of the same NIDs share a
 * connection if they name the same NID first. -EINVAL, -ENOMEM, -ESHUTDOWN;
 * -EDEADLK: in a turn of another CPT than the first NID's. */
ULNET_EXPORT int ulrpc_client_open(struct ulrpc *rpc,
				   const struct ulrpc_client_conf *conf,
				   struct ulrpc_client **client_p);
ULNET_EXPORT struct ulrpc *ulrpc_client_rpc(struct ulrpc_client *client);
/* The CPT that owns the target of @client, and runs its callbacks. */
ULNET_EXPORT unsigned int ulrpc_client_cpt(const struct ulrpc_client *client);
/* The calls of @client end as canceled; their callbacks are called as ever.
 * Does not wait for that. NULL is fine. */
ULNET_EXPORT void ulrpc_client_close(struct ulrpc_client *client);

/* ---- calls: ulrpc_call(3) ---- */

enum ulrpc_priority {
	ULRPC_PRIORITY_DEFAULT = 0, /* the method's */
	ULRPC_PRIORITY_NORMAL,
	ULRPC_PRIORITY_HIGH,
	ULRPC_PRIORITY_BACKGROUND,
};

/* May a request be executed more than once? */
enum ulrpc_semantics {
	ULRPC_AT_MOST_ONCE = 0,
	ULRPC_IDEMPOTENT,
	ULRPC_EXACTLY_ONCE, /* by a durable service, even if its server is
			     * restarted meanwhile; by others as at most once */
};

#define ULRPC_BULKS_MAX	 16 /* of one call */
#define ULRPC_TRACE_SIZE 56 /* bytes of a trace's context, as text, with its
			     * terminator */

/* What the server is doing with a call that takes longer than expected. */
enum ulrpc_stage {
	ULRPC_STAGE_QUEUED,    /* the call waits for a worker */
	ULRPC_STAGE_THROTTLED, /* rules of the service hold it back */
	ULRPC_STAGE_RUNNING,   /* its handler has been called */
	ULRPC_STAGE_BULK,      /* the same, and bulk data is being moved */
};

struct ulrpc_call_progress {
	enum ulrpc_stage stage;
	uint32_t position; /* QUEUED: so many calls are before it */
	uint32_t permille; /* of the work is done, as the handler says, 0 to
			    * 1000: ulrpc_progress() */
};

/* Called on the CPT of the client whenever the server says that the call takes
 * longer, which may be never; not after the end of the call. */
typedef void (*ulrpc_progress_fn)(void *arg,
				  const struct ulrpc_call_progress *progress);

struct ulrpc_call_conf {
	uint64_t deadline; /* us from now; ULRPC_NEVER: none; 0 is refused, so
			    * that none is a choice */
	uint32_t reply_max; /* bytes of the reply's body for which there is room
			     * from the beginning; 0 = 4096; at most
			     * ULRPC_BODY_MAX. A longer one is held by the
			     * server, and fetched */
	uint32_t reply_limit; /* bytes of a body that is fetched, at most; a
			       * longer one is ULRPC_CAUSE_TOO_LONG; 0 =
			       * ULRPC_BODY_MAX */
	enum ulrpc_priority priority;
	enum ulrpc_semantics semantics;
	struct ulrpc_bulk *const *bulks; /* the server may use; by index */
	unsigned int nbulks;		 /* at most ULRPC_BULKS_MAX */
	const char *trace; /* W3C's "traceparent", for the service; copied;
			    * NULL: none */
	const struct ulrpc_retry *retry; /* copied; NULL = the client's */
	ulrpc_progress_fn progress;	 /* NULL: nobody wants to know */
	void *progress_arg;
};

/* @reply, of @length bytes, ends with the call; NULL without a reply. */
typedef void (*ulrpc_done_fn)(void *arg, const struct ulrpc_outcome *outcome,
			      const void *reply, size_t length);

/* A method's number on the wire: CRC32C of its name. */
ULNET_EXPORT uint32_t ulrpc_method(const char *name);

/*
 * @body, of @length bytes, at most ULRPC_BODY_MAX, is copied. @done is called
 * exactly once, by the deadline. *@call_p (unless NULL) is a reference for
 * ulrpc_cancel(), to be given back with ulrpc_call_put(). Bulks are in use
 * until the call ended, and a bulk serves one call at a time (-EBUSY). -EINVAL:
 * no deadline, a bulk of another node, an unknown priority or semantics, a
 * trace that is none;
 * -EMSGSIZE; -ENOMEM; -ESHUTDOWN.
 */
ULNET_EXPORT int ulrpc_call(struct ulrpc_client *client, uint32_t method,
			    const void *body, size_t length,
			    const struct ulrpc_call_conf *conf,
			    ulrpc_done_fn done, void *arg,
			    struct ulrpc_call **call_p);
/* @call ends soon, as canceled, unless it has ended before. */
ULNET_EXPORT void ulrpc_cancel(struct ulrpc_call *call);
ULNET_EXPORT void ulrpc_call_put(struct ulrpc_call *call);

/*
 * Calls, and waits for the end, polling or running the node's loop when it is
 * the application's. *@outcome is always filled when 0 is returned, whatever
 * the call's status; up to @size bytes of the reply are put to @reply (which
 * may be NULL), and *@length_p (unless NULL) is its whole length.
 */
ULNET_EXPORT int ulrpc_call_wait(struct ulrpc_client *client, uint32_t method,
				 const void *body, size_t length,
				 const struct ulrpc_call_conf *conf,
				 void *reply, size_t size, size_t *length_p,
				 struct ulrpc_outcome *outcome);
/* The same, for replies whose length nobody knows: *@reply_p is NULL, or a
 * piece of memory of *@length_p bytes, to be given back with free(); without
 * memory for it the cause is ULRPC_CAUSE_NO_MEMORY. */
ULNET_EXPORT int ulrpc_call_wait_alloc(struct ulrpc_client *client,
				       uint32_t method, const void *body,
				       size_t length,
				       const struct ulrpc_call_conf *conf,
				       void **reply_p, size_t *length_p,
				       struct ulrpc_outcome *outcome);

/* ---- sets of calls: ulrpc_set_new(3) ---- */

struct ulrpc_set;

struct ulrpc_result {
	void *arg; /* as given to ulrpc_set_call() */
	uint32_t method;
	struct ulrpc_outcome outcome;
	void *reply; /* NULL, or to be given back with free(); without memory
		      * for it the cause is ULRPC_CAUSE_NO_MEMORY */
	size_t length;
};

#define ULRPC_SET_ALL UINT_MAX

ULNET_EXPORT int ulrpc_set_new(struct ulrpc *rpc, struct ulrpc_set **set_p);
/* Cancels the calls that are under way; results that were not taken are
 * lost. */
ULNET_EXPORT void ulrpc_set_free(struct ulrpc_set *set);
/* As ulrpc_call(), with a result instead of a callback. */
ULNET_EXPORT int ulrpc_set_call(struct ulrpc_set *set,
				struct ulrpc_client *client, uint32_t method,
				const void *body, size_t length,
				const struct ulrpc_call_conf *conf, void *arg,
				struct ulrpc_call **call_p);
/* Waits until @n results (1: any; ULRPC_SET_ALL: those of all calls that were
 * made) wait to be taken, at most @timeout us. Returns how many there are;
 * -ETIMEDOUT: fewer than @n. Waits, as *_wait. */
ULNET_EXPORT int ulrpc_set_wait(struct ulrpc_set *set, unsigned int n,
				uint64_t timeout);
/* Takes the result that has waited longest; -EAGAIN: none. */
ULNET_EXPORT int ulrpc_set_next(struct ulrpc_set *set,
				struct ulrpc_result *result);
/* A descriptor that is readable while results wait, for other loops. The set's;
 * -errno. */
ULNET_EXPORT int ulrpc_set_fd(struct ulrpc_set *set);

/* ---- bulk, the caller's side: ulrpc_bulk_new(3) ---- */

enum ulrpc_bulk_access {
	ULRPC_BULK_SOURCE = 1, /* the server reads it (LNet GET) */
	ULRPC_BULK_SINK = 2,   /* the server writes to it (LNet PUT) */
};

#define ULRPC_BULK_CHECKSUM 0x1u /* CRC32C of each segment */

#define ULRPC_SEGMENTS_MAX 256
#define ULRPC_BULK_MAX	   (ULRPC_SEGMENTS_MAX * (uint64_t)LNET_MTU)

struct ulrpc_bulk_conf {
	const struct iovec *iov; /* copied; the memory is borrowed */
	unsigned int niov;	 /* any number; a segment has at most
				  * LNET_MAX_IOV fragments, and is shorter if
				  * it would need more */
	enum ulrpc_bulk_access access;
	uint32_t flags;
	uint32_t segment; /* bytes of each message but the last; 0 = LNET_MTU,
			   * which is the most */
};

/* -EINVAL; -EMSGSIZE: longer than ULRPC_BULK_MAX, or more than
 * ULRPC_SEGMENTS_MAX segments; -ENOMEM. */
ULNET_EXPORT int ulrpc_bulk_new(struct ulrpc *rpc,
				const struct ulrpc_bulk_conf *conf,
				struct ulrpc_bulk **bulk_p);
/*
 * Gives the bulk up. Its memory is the caller's again when @released is called:
 * before the return if nothing uses the memory, and else when no message can
 * touch it any more. @released may be NULL when outcome.bulk_free was true.
 */
ULNET_EXPORT void ulrpc_bulk_close(struct ulrpc_bulk *bulk,
				   void (*released)(void *arg), void *arg);
ULNET_EXPORT uint64_t ulrpc_bulk_length(const struct ulrpc_bulk *bulk);

/* ---- statistics: ulrpc_stats(3) ---- */

/*
 * YAML of everything counted: by service and method, and by peer, with
 * histograms of times; to be given back with free(). -ENOMEM. Waits, as *_wait.
 */
ULNET_EXPORT int ulrpc_stats(struct ulrpc *rpc, char **yaml_p);

enum ulrpc_counter_kind {
	ULRPC_COUNTER_GROWS,
	ULRPC_COUNTER_NOW,   /* goes up and down */
	ULRPC_COUNTER_TIMES, /* of a method: a sum of times */
};

/* One number of the statistics. */
struct ulrpc_counter {
	const char *name, *help; /* constant texts */
	enum ulrpc_counter_kind kind;
	uint64_t value;	     /* TIMES: ns */
	uint64_t samples;    /* TIMES: how many have been added up */
	const char *service; /* of a method; NULL: of none */
	const char *method;  /* NULL: its name is not known */
	uint32_t number;     /* of the method */
	bool served;	     /* requests that came, not calls from here */
};

/* @c is borrowed until return. */
typedef void (*ulrpc_counter_fn)(void *arg, const struct ulrpc_counter *c);

/*
 * Calls @fn, on the caller's thread, for each number that does not belong to a
 * peer: first for those of no method, then for those of methods, where numbers
 * of the same name follow each other. -ENOMEM: @fn was not called. Waits, as
 * *_wait, before the first call.
 */
ULNET_EXPORT int ulrpc_counters(struct ulrpc *rpc, ulrpc_counter_fn fn,
				void *arg);
/* Sets all statistics to 0. Waits, as *_wait. */
ULNET_EXPORT int ulrpc_stats_reset(struct ulrpc *rpc);
/* Statistics show @name, which is copied, for its number, ulrpc_method(name).
 * Methods of this node's services have their names without this. -ENOMEM. */
ULNET_EXPORT int ulrpc_method_declare(struct ulrpc *rpc, const char *name);
/*
 * Lets the node's @control (ulnet/control.h) answer "rpc show" and "rpc reset"
 * of lnetctl(8), until this is called with NULL, or @rpc or @control is closed.
 * Waits, as *_wait. -EEXIST: another one answers them; -ENOMEM.
 */
ULNET_EXPORT int ulrpc_control(struct ulrpc *rpc, struct lnet_control *control);

#ifdef __cplusplus
}
#endif

#endif
