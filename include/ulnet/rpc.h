/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote procedure calls over LNet: the caller's side, and what caller and
 * service share. The service's side is ulnet/service.h; stubs for protobuf-c
 * are in ulnet/stub.h. Manual: ulrpc(7), ulrpc_tutorial(7), and a page for each
 * function in section 3.
 *
 * Conventions, unless a function says otherwise:
 * - functions return 0 or a negative errno; results come last and are left
 *   alone on error; times are microseconds, lengths and offsets bytes;
 * - any thread may call a function; what belongs to a CPT is done on the CPT's
 *   thread. Only functions that are named *_wait or marked "Waits, as *_wait",
 *   and functions that open and close, wait until it is done: in a turn of a
 *   CPT, and so in callbacks, they return -EDEADLK;
 * - callbacks run on the thread of the CPT that owns the peer, and must not
 *   block. A callback never runs inside of the function that leads to it; but
 *   if that function was called on another thread, the callback may run before
 *   the function has returned;
 * - the owner of an object ends it with its close function, and must not use it
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
struct ulrpc_keys;   /* ulnet/keys.h */
struct ulrpc;	     /* RPC on a node */
struct ulrpc_client; /* a service at a target */
struct ulrpc_call;
struct ulrpc_context; /* ulnet/context.h */
struct ulrpc_call_interceptor;	  /* ulnet/intercept.h */
struct ulrpc_request_interceptor; /* the same */
struct ulrpc_bulk; /* memory that a server may move data to or from */

/* ---- who is at the other side: ulnet_security(7) ---- */

/* What calls are protected from; each flavour from more than the one before. */
enum ulrpc_flavour {
	/* ULRPC_FLAVOUR_AUTH if the node has keys, else ULRPC_FLAVOUR_NONE */
	ULRPC_FLAVOUR_DEFAULT = 0,
	/* nobody is known, and everybody on the way can read and change all */
	ULRPC_FLAVOUR_NONE,
	/* Both sides have proved who they are. Messages cannot be made up,
	 * changed or repeated; they, and bulk, can be read. Bulk is not
	 * protected from changes. */
	ULRPC_FLAVOUR_AUTH,
	/* bulk cannot be changed, repeated or exchanged, either */
	ULRPC_FLAVOUR_INTEGRITY,
	/* messages and bulk cannot be read, either */
	ULRPC_FLAVOUR_PRIVACY,
};

/* Returns "default", "none", "auth", "integrity" or "privacy"; "unknown" for
 * any other value. */
ULNET_EXPORT const char *ulrpc_flavour_name(enum ulrpc_flavour flavour);

#define ULRPC_PEER_NAME_SIZE  256
#define ULRPC_PEER_GROUP_SIZE 64

enum ulrpc_peer_kind {
	ULRPC_PEER_UNKNOWN = 0, /* it has proved nothing */
	ULRPC_PEER_CERTIFICATE, /* it has the key of a certificate */
	ULRPC_PEER_CLUSTER,	/* it has a key that all of a cluster have */
	ULRPC_PEER_MUNGE,	/* it is a user of whom MUNGE says so */
};

/* Who a peer has proved to be. */
struct ulrpc_peer {
	enum ulrpc_peer_kind kind;
	enum ulrpc_flavour flavour; /* flavour of the call */
	/* the certificate's first DNS name, or its common name; or the name of
	 * the cluster's key, of letters, digits and ._-@:/; or "user=NAME" of
	 * a user, who may have no name: "uid=NUMBER"; "": unknown */
	char name[ULRPC_PEER_NAME_SIZE];
	/* common name of the authority that has signed the certificate; "":
	 * none */
	char issuer[ULRPC_PEER_NAME_SIZE];
	/* of ULRPC_PEER_MUNGE: the user and the group of the process */
	uint32_t uid, gid;
	char group[ULRPC_PEER_GROUP_SIZE]; /* its name, or "gid=NUMBER" */
};

/* ---- sending calls again: ulrpc_retry(7) ---- */

enum ulrpc_backoff {
	/* the same as ULRPC_BACKOFF_FULL; but in ulrpc_conf.force_policy it
	 * means that no policy is forced */
	ULRPC_BACKOFF_DEFAULT = 0,
	ULRPC_BACKOFF_FULL,
	ULRPC_BACKOFF_EQUAL,
	ULRPC_BACKOFF_MAD,
	ULRPC_BACKOFF_NONE, /* no pauses, except those that servers ask for */
};

#define ULRPC_RETRIES_ANY UINT32_MAX

struct ulrpc_retry {
	enum ulrpc_backoff policy;
	/* how often a call is sent again, at most; 0 = never; ULRPC_RETRIES_ANY
	 * = as often as there is time for */
	uint32_t max;
	/* us: the first pause is at most this long; 0 = half of the attempt's
	 * timeout, but at least 10 ms and two round trips */
	uint64_t base;
	uint64_t cap; /* us: no pause is longer than this; 0 = 5 s */
	/* us: the least time between an attempt that is not answered and the
	 * next one, and between a refusal and the next attempt; the pause comes
	 * on top of it */
	uint64_t least;
	/* a call that the server has no room for is not sent again: it ends at
	 * once, with ULRPC_CAUSE_OVERLOADED */
	bool tell_overloaded;
};

/* Does a call wait for a server that cannot be reached, or does not have the
 * service? Nothing of it was executed then. */
enum ulrpc_wait {
	/* of a call: as its client says; of a client: its calls wait, except
	 * for those whose retry policy allows no retries */
	ULRPC_WAIT_DEFAULT = 0,
	ULRPC_WAIT_READY, /* until there is one, or the call's deadline */
	ULRPC_WAIT_NOT,	  /* it ends as soon as an answer says so */
};

/* ---- RPC on a node: ulrpc_open(3) ---- */

#define ULRPC_PORTAL_CONTROL 61
#define ULRPC_PORTAL_REPLY   62
#define ULRPC_PORTAL_BULK    63
/* Range of the portals that services get unless they ask for one. */
#define ULRPC_PORTAL_FIRST 36
#define ULRPC_PORTAL_LAST  60

#define ULRPC_ID_SIZE 16

/* Which CPT serves a new client. A client that connects again stays where it
 * is. */
enum ulrpc_spread {
	/* the CPT that owns its NID; but if four clients of that NID are there
	 * already, one that a hash of its id selects, if that one has at least
	 * a quarter fewer clients */
	ULRPC_SPREAD_CROWDS,
	/* the CPT that owns its NID */
	ULRPC_SPREAD_NIDS,
	/* the CPT that a hash of its id selects */
	ULRPC_SPREAD_CLIENTS,
};

struct ulrpc_conf {
	/* us without traffic after which a node asks its peer whether it is
	 * still there; client and server use the smaller of their two values; 0
	 * = 10 s */
	uint64_t keepalive;
	/* us without a call after which a client's connection is closed, until
	 * the next call makes a new one; 0 = 300 s; ULRPC_NEVER */
	uint64_t idle;
	uint64_t connect_timeout; /* us for one attempt to connect; 0 = 5 s */
	/* us: bounds of an attempt's timeout, after which the client asks the
	 * server what became of the attempt. Whatever the bounds, the timeout
	 * is at most half of the time that the call has left. 0 = 50 ms for the
	 * minimum, 30 s for the maximum. A minimum above the maximum is
	 * refused. */
	uint64_t timeout_min, timeout_max;
	/* The back-off policy of all calls, whatever the calls say; 0 = each
	 * call has its own. */
	enum ulrpc_backoff force_policy;
	/* An id by which servers recognize this client after a restart; all 0:
	 * a random id. No two processes may have the same id: the second one is
	 * refused. A client with an id must also have a generation, not 0, that
	 * is higher at each start, such as the time in seconds: by it servers
	 * tell the calls of this process from those of the process before. It
	 * must be higher by at least one for each 2^32 calls that the process
	 * before has made. */
	uint8_t client_id[ULRPC_ID_SIZE];
	uint32_t client_generation;
	/* Bounds of what strangers can make each CPT keep in memory: */
	uint32_t exports_max; /* connections of clients; 0 = 65536 */
	/* buffers of 16 KiB for control messages: 2 to ULRPC_BUFFERS_MAX; 0 = 4
	 */
	uint32_t control_buffers;
	/* bytes of replies that the clients of a CPT fetch at a time, because
	 * they were longer than their calls had room for: each server has its
	 * share, and what is more waits. No reply may be longer. 0 = 4 GiB */
	uint64_t reply_bytes_max;
	enum ulrpc_spread spread; /* of the node's clients over its CPTs */
	/* Interceptors of all calls, and of all requests, of this node, in the
	 * order of ulrpc_interceptors(7); copied. What their args point to must
	 * last until RPC is closed and all requests are replied to. */
	const struct ulrpc_call_interceptor *call_interceptors;
	unsigned int ncall_interceptors;
	const struct ulrpc_request_interceptor *request_interceptors;
	unsigned int nrequest_interceptors;
	/* What this node shows to others, and whom it believes; borrowed until
	 * ulrpc_open() returns; NULL: it proves nothing, and believes
	 * everybody. */
	struct ulrpc_keys *keys;
	/* result if the configuration is refused; NULL: not wanted */
	struct ulnet_conf_error *err;
};

#define ULRPC_BUFFERS_MAX 1024

#define ULRPC_NEVER UINT64_MAX

ULNET_EXPORT void ulrpc_conf_init(struct ulrpc_conf *conf);
/*
 * Opens RPC on @node, which is borrowed, and needs its NIs only when calls are
 * made. A node can have RPC only once (-EBUSY). lnet_close() closes RPC that is
 * still open, as ulrpc_close() does. When the simulator crashes a node,
 * everything on it ends without a callback; the user must still give back
 * references to calls, and free sets. -EINVAL: *@conf->err, unless it is NULL,
 * says which field is refused, and why, as the log does; -ENOMEM, -EDEADLK.
 */
ULNET_EXPORT int ulrpc_open(struct lnet *node, const struct ulrpc_conf *conf,
			    struct ulrpc **rpc_p);
/*
 * From now on refuses new calls, and new requests (whose outcome is: not
 * executed). Calls @done once, when all calls and requests that are under way
 * have ended, at the latest after @timeout: then calls are canceled, and
 * requests are not answered any more. @status of @done is 0: all ended by
 * themselves; -ETIMEDOUT: some were ended because of @timeout; -ECANCELED: some
 * were ended before, by ulrpc_close() or lnet_close(). @done may be NULL.
 * -EALREADY: ulrpc_shutdown() has been called before. Never waits.
 */
ULNET_EXPORT int ulrpc_shutdown(struct ulrpc *rpc, uint64_t timeout,
				void (*done)(void *arg, int status), void *arg);
/* As ulrpc_shutdown(), and waits for the end. Returns what @done would be told,
 * or an error of ulrpc_shutdown(). A handler must not call it: it would wait
 * for itself. -EDEADLK: called in a turn. */
ULNET_EXPORT int ulrpc_shutdown_wait(struct ulrpc *rpc, uint64_t timeout);
/* Shuts down at once, waits until handlers have returned and the memory of all
 * calls is free, and frees @rpc. NULL is fine. -EDEADLK: called in a turn. */
ULNET_EXPORT int ulrpc_close(struct ulrpc *rpc);
ULNET_EXPORT struct lnet *ulrpc_node(struct ulrpc *rpc);

/* ---- what became of a call: ulrpc_outcome(3) ---- */

/* What is known about the execution of a call that has ended. */
enum ulrpc_execution {
	ULRPC_EXECUTED, /* the service has answered */
	/* not executed, and never will be: safe to call again */
	ULRPC_NOT_EXECUTED,
	/* may have been executed, or may yet be executed */
	ULRPC_EXECUTION_UNKNOWN,
};

#define ULRPC_TEXT_MAX 256 /* bytes of an error's text, with its terminator */

/* Why a call ended as it did. */
enum ulrpc_cause {
	ULRPC_CAUSE_OK = 0,
	/* the service has failed the call, with the status of its choice */
	ULRPC_CAUSE_HANDLER,
	ULRPC_CAUSE_DEADLINE,	 /* the caller's deadline passed */
	ULRPC_CAUSE_EXPIRED,	 /* the server dropped the call as too late */
	ULRPC_CAUSE_CANCELED,	 /* the caller has canceled the call */
	ULRPC_CAUSE_OVERLOADED,	 /* the server has no room */
	ULRPC_CAUSE_NO_SERVICE,	 /* the target has no service of that name */
	ULRPC_CAUSE_NO_METHOD,	 /* the service has no method of that name */
	ULRPC_CAUSE_BAD_REQUEST, /* the service cannot read the request */
	ULRPC_CAUSE_BAD_REPLY,	 /* the caller cannot read the reply */
	ULRPC_CAUSE_TOO_LONG,	 /* the reply is longer than the caller takes,
				  * or than the server can hold for it */
	ULRPC_CAUSE_BULK,	 /* bulk data could not be moved */
	ULRPC_CAUSE_CHECKSUM, /* bulk data arrived changed, or tampered with */
	/* there was no connection until the deadline, or when one was tried:
	 * wait_for_ready */
	ULRPC_CAUSE_UNREACHABLE,
	ULRPC_CAUSE_REFUSED,   /* the server does not want this client */
	ULRPC_CAUSE_RESTARTED, /* the server, or service, has ended */
	/* The server shuts down. A call through a stub, which cannot return
	 * -ESHUTDOWN, also ends so if RPC on this node shuts down. */
	ULRPC_CAUSE_SHUTDOWN,
	ULRPC_CAUSE_NO_MEMORY, /* this node has no memory left */
	ULRPC_CAUSE_STALLED,   /* the service makes no progress with the call */
	/* the call was lost on its way, and there was no retry, or no time for
	 * one, left */
	ULRPC_CAUSE_LOST,
	/* the server no longer knows the call, although it has not restarted */
	ULRPC_CAUSE_FORGOTTEN,
	/* the target's name was not known until the deadline; the outcome's
	 * text says why */
	ULRPC_CAUSE_NAME,
	/* an interceptor of this node has refused the call, with the status of
	 * its choice: ulrpc_interceptors(7) */
	ULRPC_CAUSE_INTERCEPTED,
	ULRPC_CAUSE_COUNT
};

struct ulrpc_outcome {
	/* 0 or a negative errno; with ULRPC_CAUSE_HANDLER the service's own;
	 * with ULRPC_CAUSE_INTERCEPTED the interceptor's; with ULRPC_CAUSE_BULK
	 * the reason */
	int status;
	enum ulrpc_cause cause;
	enum ulrpc_execution execution;
	/* the memory of all bulks of the call is the caller's again; if false,
	 * ulrpc_bulk_close() tells when it is */
	bool bulk_free;
	/* messages that carried the call or asked about it */
	uint32_t attempts;
	uint32_t paths; /* sends of these messages that LNet has begun */
	/* with @target: the NIDs of the last attempt, its own and the server's;
	 * LNET_NID_ANY: no attempt was sent */
	struct ulnet_nid local;
	struct ulnet_nid target;
	/* Times, in us; @total is the sum of the seven below. A CPT reads the
	 * clock once in a turn, so what begins and ends in one turn takes 0:
	 * for example @service, if an inline handler replies at once. */
	uint64_t total;
	uint64_t connecting; /* until there was a connection */
	/* until inflight_max and the server's window had room */
	uint64_t window;
	/* from sending to the answer, less the time at the server, which is in
	 * the next three fields: */
	uint64_t wire;
	/* held back by the rules of the service's policy */
	uint64_t server_throttled;
	/* after that, in the queue, until the handler began */
	uint64_t server_queue;
	/* after that, in the handler, until it replied */
	uint64_t service;
	/* for fetching a reply that was longer than reply_max */
	uint64_t fetch;
	/* ULRPC_CAUSE_OVERLOADED: us that the server asks to wait before the
	 * next call */
	uint64_t retry_after;
	/* ULRPC_CAUSE_TOO_LONG: bytes of the reply */
	uint32_t reply_needed;
	/* Included in @attempts: */
	/* messages that repeated the call after one that was, or may have been,
	 * delivered */
	uint32_t retries;
	uint32_t queries; /* messages that asked what became of the call */
	/* Answers that did not end the call: */
	/* how often the server said that the call takes longer */
	uint32_t extensions;
	/* how often the server refused the call, which was then sent again */
	uint32_t refusals;
	/* The service's explanation of its failure, for people; "": none. It
	 * comes from the peer, so do not trust it: it is UTF-8, and may have
	 * control characters, which lnet_text_clean() replaces. */
	char text[ULRPC_TEXT_MAX];
};

ULNET_EXPORT const char *ulrpc_cause_name(enum ulrpc_cause cause);
ULNET_EXPORT const char *ulrpc_execution_name(enum ulrpc_execution execution);

/* ---- clients: ulrpc_client_open(3) ---- */

struct ulrpc_client_conf {
	/* What the user has, instead of @nids and @pid: NIDs, a host's name, or
	 * whatever else lnet_target_parse(3) takes; copied; NULL: @nids.
	 *
	 * If it is a name, it is looked up as long as the client is open. The
	 * client calls one server at a time: the first that answers. It goes to
	 * another one when it cannot connect to its server, or a new answer
	 * does not have it, and no call is under way that may have been
	 * executed; those that certainly were not go with it. */
	const char *target;
	/* NIDs of one node, the best first; copied */
	const struct ulnet_nid *nids;
	/* 1 to ULRPC_NIDS_MAX; the CPT that owns the first NID owns the client:
	 * lnet_cpt_of() */
	unsigned int nnids;
	uint32_t pid;	     /* pid of that node; 0 = LNET_PID_LUSTRE */
	const char *service; /* name of the service; copied */
	/* calls that may be in flight; further calls wait; 0 = 1024 */
	uint32_t inflight_max;
	/* calls that have not ended, whether they are in flight or wait, and
	 * bytes of the bodies of their requests: when there are so many,
	 * ulrpc_call() refuses further calls (-EAGAIN); 0 = 1048576 calls, 1
	 * GiB */
	uint32_t queue_max;
	uint64_t queue_bytes;
	/* reply_limit of calls that have none, up to ULRPC_REPLY_MAX; 0 = they
	 * take whatever the service sends, up to ulrpc_conf.reply_bytes_max */
	uint32_t reply_limit;
	/* slow start: calls that may be in flight on a new connection. The
	 * number doubles when as many calls were answered, or when calls have
	 * waited for half a second without any answer; 0 = what the server can
	 * take at once, but at least 2 */
	uint32_t inflight_begin;
	/* calls that may travel in one message, up to ULRPC_BATCH_MAX; 0 =
	 * ULRPC_BATCH_MAX */
	uint32_t batch_max;
	/* retry policy of calls whose configuration has none; copied; NULL =
	 * ULRPC_BACKOFF_FULL, ULRPC_RETRIES_ANY */
	const struct ulrpc_retry *retry;
	/* do calls wait that do not say so themselves? */
	enum ulrpc_wait wait_for_ready;
	/* Bodies of requests and replies have checksums. Those that arrive
	 * changed are dropped, and sent again as if they had been lost. The
	 * service can ask for that, too. */
	bool checksum;
	/* The lowest flavour that is good enough. If the service demands a
	 * higher one, that is used. -ENOKEY: the flavour needs keys, and RPC
	 * was opened without. */
	enum ulrpc_flavour flavour;
	/* the name that the server has to prove by a certificate; a pattern of
	 * fnmatch(3); copied; NULL: any certificate, or cluster's key, that is
	 * believed is good enough */
	const char *server;
	/* Interceptors of the client's calls, which are called before those of
	 * the node: ulrpc_interceptors(7); copied. What their args point to
	 * must last until all calls have ended. */
	const struct ulrpc_call_interceptor *interceptors;
	unsigned int ninterceptors; /* at most ULRPC_INTERCEPTORS_MAX */
	/* result if the configuration is refused; NULL: not wanted */
	struct ulnet_conf_error *err;
};

#define ULRPC_NIDS_MAX	   16
#define ULRPC_BATCH_MAX	   256
#define ULRPC_SERVICE_NAME 64 /* bytes of a name, with its terminator */
/* bytes of a body that goes in a message: what is longer is lent by its caller,
 * or held until its caller has fetched it */
#define ULRPC_BODY_MAX UINT32_C(983040)
/* bytes of a reply's body, at most: 4 GiB less 1 */
#define ULRPC_REPLY_MAX UINT32_MAX
/* bytes of a request that is lent, at most: 4 GiB less 1 */
#define ULRPC_LENT_MAX UINT32_MAX

ULNET_EXPORT void ulrpc_client_conf_init(struct ulrpc_client_conf *conf);
/* Opens a client. Does not connect yet: the first call does that. If the target
 * is a name, waits for its first answer, but at most a second, and not in a
 * turn: the client belongs to the CPT of the first address, or, in a turn, to
 * the CPT of that turn; whether there is an answer or not, it is opened.
 * Clients share a connection if they name the same NIDs, with the same NID
 * first. -EINVAL; -ENETUNREACH, and other errors of lnet_ni_reach(), which adds
 * NIs to a node that does not listen and was given none: with these
 * *@conf->err, unless it is NULL, says why, as the log does. -ENOMEM,
 * -ESHUTDOWN; -EDEADLK: called in a turn of a CPT that does not own the first
 * NID. */
ULNET_EXPORT int ulrpc_client_open(struct ulrpc *rpc,
				   const struct ulrpc_client_conf *conf,
				   struct ulrpc_client **client_p);
ULNET_EXPORT struct ulrpc *ulrpc_client_rpc(struct ulrpc_client *client);
/* Returns the CPT that owns the target of @client, and on which callbacks run.
 */
ULNET_EXPORT unsigned int ulrpc_client_cpt(const struct ulrpc_client *client);
/* Closes @client. Its calls end as canceled, and their callbacks are called;
 * this function does not wait for that. NULL is fine. */
ULNET_EXPORT void ulrpc_client_close(struct ulrpc_client *client);

/* ---- calls: ulrpc_call(3) ---- */

enum ulrpc_priority {
	ULRPC_PRIORITY_DEFAULT = 0, /* the priority of the method */
	ULRPC_PRIORITY_NORMAL,
	ULRPC_PRIORITY_HIGH,
	ULRPC_PRIORITY_BACKGROUND,
};

/* May a request be executed more than once? */
enum ulrpc_semantics {
	ULRPC_AT_MOST_ONCE = 0,
	ULRPC_IDEMPOTENT,
	/* A durable service executes the request once, even if its server
	 * restarts. Other services treat this as ULRPC_AT_MOST_ONCE. */
	ULRPC_EXACTLY_ONCE,
};

#define ULRPC_BULKS_MAX 16 /* most bulks of one call */
/* bytes of ulrpc_call_conf.trace, with its terminator */
#define ULRPC_TRACE_SIZE 56

/* What the server is doing with a call that takes longer than the attempt's
 * timeout. */
enum ulrpc_stage {
	ULRPC_STAGE_QUEUED,    /* the call waits for a worker */
	ULRPC_STAGE_THROTTLED, /* rules of the service hold it back */
	ULRPC_STAGE_RUNNING,   /* its handler has been called */
	/* its handler has been called, and its bulk data is being moved */
	ULRPC_STAGE_BULK,
};

struct ulrpc_call_progress {
	enum ulrpc_stage stage;
	/* ULRPC_STAGE_QUEUED: number of calls before this one */
	uint32_t position;
	/* how much of the work is done, from 0 to 1000, as the handler says
	 * with ulrpc_progress() */
	uint32_t permille;
};

/* Called on the CPT of the client whenever the server says that the call takes
 * longer. That may never happen; not called after the call has ended. */
typedef void (*ulrpc_progress_fn)(void *arg,
				  const struct ulrpc_call_progress *progress);

struct ulrpc_call_conf {
	/* us from now; ULRPC_NEVER: none. 0 is refused, so that a call without
	 * a deadline is a decision */
	uint64_t deadline;
	/* bytes of the reply's body that are reserved from the beginning; 0 =
	 * 4096; at most ULRPC_BODY_MAX. The server holds a longer reply until
	 * the client has fetched it */
	uint32_t reply_max;
	/* bytes of the longest reply that is fetched, up to ULRPC_REPLY_MAX, or
	 * ulrpc_conf.reply_bytes_max if that is less; the service is told, and
	 * a longer one is ULRPC_CAUSE_TOO_LONG; 0 = that of the client */
	uint32_t reply_limit;
	enum ulrpc_priority priority;
	enum ulrpc_semantics semantics;
	/* bulks that the server may use; it names them by their index here */
	struct ulrpc_bulk *const *bulks;
	unsigned int nbulks; /* number of bulks, at most ULRPC_BULKS_MAX */
	/* does the call wait for a server that is not there? */
	enum ulrpc_wait wait_for_ready;
	/* W3C's "traceparent", which the service gets; copied; NULL: none */
	const char *trace;
	/* retry policy of the call; copied; NULL = that of the client */
	const struct ulrpc_retry *retry;
	ulrpc_progress_fn progress; /* NULL: not called */
	void *progress_arg;
	/* what goes with the request and the reply beside their bodies; -EBUSY:
	 * another call has it; NULL: nothing */
	struct ulrpc_context *context;
};

/* A call has ended. @reply, of @length bytes, is valid only during the call of
 * this function; NULL if there is no reply. */
typedef void (*ulrpc_done_fn)(void *arg, const struct ulrpc_outcome *outcome,
			      const void *reply, size_t length);

/* Returns a method's number on the wire: the CRC32C of its name. */
ULNET_EXPORT uint32_t ulrpc_method(const char *name);

/*
 * Makes a call. @body, of @length bytes, at most ULRPC_BODY_MAX, is copied.
 * @done is called exactly once, by the deadline. *@call_p (unless @call_p is
 * NULL) is a reference for ulrpc_cancel(), to be given back with
 * ulrpc_call_put(). Bulks are in use until the call has ended, and a bulk
 * serves one call at a time (-EBUSY). -EINVAL: there is no deadline, a bulk is
 * of another node, the priority or the semantics are unknown, or the trace is
 * not a traceparent; -EAGAIN: too many calls of the client have not ended
 * (queue_max, queue_bytes); -EMSGSIZE; -ENOMEM; -ESHUTDOWN.
 */
ULNET_EXPORT int ulrpc_call(struct ulrpc_client *client, uint32_t method,
			    const void *body, size_t length,
			    const struct ulrpc_call_conf *conf,
			    ulrpc_done_fn done, void *arg,
			    struct ulrpc_call **call_p);
/* Ends @call soon, as canceled, unless it has ended before. */
ULNET_EXPORT void ulrpc_cancel(struct ulrpc_call *call);
ULNET_EXPORT void ulrpc_call_put(struct ulrpc_call *call);

/*
 * Makes a call, and waits for its end. If the application drives the node, this
 * polls it or runs its loop. If 0 is returned, *@outcome is filled, whatever
 * its status; up to @size bytes of the reply are copied to @reply (which may be
 * NULL), and *@length_p (unless @length_p is NULL) is the length of the whole
 * reply.
 */
ULNET_EXPORT int ulrpc_call_wait(struct ulrpc_client *client, uint32_t method,
				 const void *body, size_t length,
				 const struct ulrpc_call_conf *conf,
				 void *reply, size_t size, size_t *length_p,
				 struct ulrpc_outcome *outcome);
/* As ulrpc_call_wait(), for replies of unknown length. *@reply_p is NULL, or
 * memory of *@length_p bytes, to be freed with free(). If there is no memory
 * for it, the cause is ULRPC_CAUSE_NO_MEMORY. */
ULNET_EXPORT int ulrpc_call_wait_alloc(struct ulrpc_client *client,
				       uint32_t method, const void *body,
				       size_t length,
				       const struct ulrpc_call_conf *conf,
				       void **reply_p, size_t *length_p,
				       struct ulrpc_outcome *outcome);

/* ---- sets of calls: ulrpc_set_new(3) ---- */

struct ulrpc_set;

struct ulrpc_result {
	void *arg; /* the argument of ulrpc_set_call() */
	uint32_t method;
	struct ulrpc_outcome outcome;
	/* to be freed with free(); NULL: there is no reply. Without memory for
	 * it the cause is ULRPC_CAUSE_NO_MEMORY */
	void *reply;
	size_t length;
};

#define ULRPC_SET_ALL UINT_MAX

ULNET_EXPORT int ulrpc_set_new(struct ulrpc *rpc, struct ulrpc_set **set_p);
/* Cancels the calls of @set that are under way, and frees @set with the results
 * that were not taken. */
ULNET_EXPORT void ulrpc_set_free(struct ulrpc_set *set);
/* As ulrpc_call(), with a result in @set instead of a callback. */
ULNET_EXPORT int ulrpc_set_call(struct ulrpc_set *set,
				struct ulrpc_client *client, uint32_t method,
				const void *body, size_t length,
				const struct ulrpc_call_conf *conf, void *arg,
				struct ulrpc_call **call_p);
/* Waits, at most @timeout us, until @n results can be taken. @n = 1: any
 * result; ULRPC_SET_ALL: the results of all calls that were made. Returns how
 * many results can be taken; -ETIMEDOUT: fewer than @n. Waits, as *_wait. */
ULNET_EXPORT int ulrpc_set_wait(struct ulrpc_set *set, unsigned int n,
				uint64_t timeout);
/* As ulrpc_set_wait(), but waits for @n results with ULRPC_CAUSE_OK, and ends
 * also when so many calls have failed that the set cannot get @n such results
 * any more. Returns how many results with ULRPC_CAUSE_OK can be taken. Results
 * of failed calls can be taken, too. */
ULNET_EXPORT int ulrpc_set_wait_good(struct ulrpc_set *set, unsigned int n,
				     uint64_t timeout);
/* Takes the oldest result. -EAGAIN: there is no result. */
ULNET_EXPORT int ulrpc_set_next(struct ulrpc_set *set,
				struct ulrpc_result *result);
/* Returns a descriptor that is readable while there are results, for use in
 * other event loops. It belongs to @set. -errno. */
ULNET_EXPORT int ulrpc_set_fd(struct ulrpc_set *set);

/* ---- bulk, the caller's side: ulrpc_bulk_new(3) ---- */

enum ulrpc_bulk_access {
	ULRPC_BULK_SOURCE = 1, /* the server reads it (LNet GET) */
	ULRPC_BULK_SINK = 2,   /* the server writes to it (LNet PUT) */
};

/* each segment has a CRC32C, which is checked */
#define ULRPC_BULK_CHECKSUM 0x1u

#define ULRPC_SEGMENTS_MAX 256
#define ULRPC_BULK_MAX	   (ULRPC_SEGMENTS_MAX * (uint64_t)LNET_MTU)

struct ulrpc_bulk_conf {
	const struct iovec *iov; /* copied; the memory is borrowed */
	/* any number; a segment has at most LNET_MAX_IOV fragments, and is
	 * shorter than .segment if it would need more */
	unsigned int niov;
	enum ulrpc_bulk_access access;
	uint32_t flags;
	/* bytes that each message but the last moves; at most LNET_MTU; 0 =
	 * LNET_MTU */
	uint32_t segment;
};

/* Makes a bulk. -EINVAL; -EMSGSIZE: it is longer than ULRPC_BULK_MAX, or has
 * more than ULRPC_SEGMENTS_MAX segments; -ENOMEM. */
ULNET_EXPORT int ulrpc_bulk_new(struct ulrpc *rpc,
				const struct ulrpc_bulk_conf *conf,
				struct ulrpc_bulk **bulk_p);
/*
 * Gives @bulk up. Its memory is the caller's again when @released is called:
 * before this function returns, if nothing uses the memory; otherwise later,
 * when no message can touch it any more. @released may be NULL if the outcome
 * of the call had bulk_free.
 */
ULNET_EXPORT void ulrpc_bulk_close(struct ulrpc_bulk *bulk,
				   void (*released)(void *arg), void *arg);
/* Gives @bulk up, and waits until its memory is the caller's again. NULL is
 * fine. -EDEADLK: called in a turn; nothing was done. Waits, as *_wait. */
ULNET_EXPORT int ulrpc_bulk_close_wait(struct ulrpc_bulk *bulk);
ULNET_EXPORT uint64_t ulrpc_bulk_length(const struct ulrpc_bulk *bulk);

/* ---- statistics: ulrpc_stats(3) ---- */

/*
 * Makes a YAML text of all counters: by service and method, and by peer, with
 * histograms of times. *@yaml_p is to be freed with free(). -ENOMEM. Waits, as
 * *_wait.
 */
ULNET_EXPORT int ulrpc_stats(struct ulrpc *rpc, char **yaml_p);

enum ulrpc_counter_kind {
	ULRPC_COUNTER_GROWS,
	ULRPC_COUNTER_NOW,   /* a gauge, which goes up and down */
	ULRPC_COUNTER_TIMES, /* a sum of times, of a method */
};

/* One number of the statistics. */
struct ulrpc_counter {
	const char *name, *help; /* both texts are constant */
	enum ulrpc_counter_kind kind;
	uint64_t value; /* ULRPC_COUNTER_TIMES: ns */
	/* ULRPC_COUNTER_TIMES: how many times were added up */
	uint64_t samples;
	/* service of the method; NULL: the number belongs to no method */
	const char *service;
	const char *method; /* name of the method; NULL: not known */
	uint32_t number;    /* ulrpc_method() of its name */
	/* true: requests that this node served; false: calls that it made */
	bool served;
};

/* @c is valid only during the call. */
typedef void (*ulrpc_counter_fn)(void *arg, const struct ulrpc_counter *c);

/*
 * Calls @fn, on the caller's thread, for each number of the statistics that
 * does not belong to a peer: first for those that belong to no method, then for
 * those of methods, where numbers of the same name follow each other. -ENOMEM:
 * @fn was not called. Before the first call of @fn this waits, as *_wait.
 */
ULNET_EXPORT int ulrpc_counters(struct ulrpc *rpc, ulrpc_counter_fn fn,
				void *arg);
/* Sets all statistics to 0. Waits, as *_wait. */
ULNET_EXPORT int ulrpc_stats_reset(struct ulrpc *rpc);
/* From now on statistics show @name, which is copied, for the method with the
 * number ulrpc_method(name). For methods of services on this node that is not
 * needed. -ENOMEM. */
ULNET_EXPORT int ulrpc_method_declare(struct ulrpc *rpc, const char *name);
/* Returns the name of the method with the number @method, valid as long as
 * @rpc; NULL: it was not declared, nor is it of a service on this node. Takes a
 * lock. Any thread. */
ULNET_EXPORT const char *ulrpc_method_name(struct ulrpc *rpc, uint32_t method);
/*
 * Lets @control of the node (ulnet/control.h) answer the requests "rpc show",
 * "rpc reset" and "rpc metrics" of lnetctl(8), until this function is called
 * with @control NULL, or @rpc or the control is closed. Waits, as *_wait.
 * -EEXIST: @control has a command of one of these names already; -ENOMEM.
 */
ULNET_EXPORT int ulrpc_control(struct ulrpc *rpc, struct lnet_control *control);

#ifdef __cplusplus
}
#endif

#endif
