/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to a service that several servers offer: which of them is called, and
 * which one next if that one cannot do it. Manual: ulrpc_replicas(7),
 * ulrpc_replicas_open(3), ulrpc_replicas_call(3). Conventions are those of
 * ulnet/rpc.h.
 */
#ifndef ULNET_REPLICAS_H
#define ULNET_REPLICAS_H

#include "ulnet/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ulrpc_replicas;	    /* servers of one service */
struct ulrpc_replicas_call; /* a call to one of them */

/* ---- servers: ulrpc_replicas_open(3) ---- */

#define ULRPC_REPLICAS_MAX 256 /* servers; further ones are not called */

/* Which server a call goes to, of those that are in use and have the best
 * priority. */
enum ulrpc_choice {
	/* of two, drawn by lot, the one with fewer calls under way and streams
	 * open */
	ULRPC_CHOOSE_LEAST = 0,
	ULRPC_CHOOSE_FIRST, /* the first one */
	ULRPC_CHOOSE_TURNS, /* each in turn, as often as its weight says */
};

struct ulrpc_replicas_conf {
	/* How each server is called. Instead of one server, client.target names
	 * all of them: each address that it stands for is a server, as long as
	 * it stands for it. Or client.nids has the NIDs of up to
	 * ULRPC_REPLICAS_MAX servers, one of each. */
	struct ulrpc_client_conf client;
	enum ulrpc_choice choice;
	/* Of 1000 idempotent calls, how many may be made at a second server,
	 * too, if they take longer than 19 of 20 calls of their method; 0:
	 * none; at most 1000 */
	unsigned int hedge;
	/* of streams, as in struct ulrpc_streams_conf: */
	uint32_t window_messages, window_bytes;
	uint64_t patience;
};

ULNET_EXPORT void ulrpc_replicas_conf_init(struct ulrpc_replicas_conf *conf);
/*
 * Opens a set of servers, and connects to none yet. It belongs to one CPT: in a
 * turn to the CPT of that turn, else to that of the first server, if that is
 * known within a second, and whether it is or not, it is opened. Errors are
 * those of ulrpc_client_open(); *@conf->client.err says why, unless
 * conf->client.err is NULL.
 */
ULNET_EXPORT int ulrpc_replicas_open(struct ulrpc *rpc,
				     const struct ulrpc_replicas_conf *conf,
				     struct ulrpc_replicas **replicas_p);
/* Closes @replicas. Calls end as canceled, and their callbacks are called; this
 * function does not wait for that. NULL is fine. */
ULNET_EXPORT void ulrpc_replicas_close(struct ulrpc_replicas *replicas);
ULNET_EXPORT struct ulrpc *ulrpc_replicas_rpc(struct ulrpc_replicas *replicas);
/* Returns the CPT that @replicas belongs to, and on which callbacks run. */
ULNET_EXPORT unsigned int ulrpc_replicas_cpt(
	const struct ulrpc_replicas *replicas);

/* ---- calls: ulrpc_replicas_call(3) ---- */

struct ulrpc_replicas_call_conf {
	/* as for ulrpc_call(); the deadline is that of the call, whatever
	 * number of servers it is made at */
	struct ulrpc_call_conf call;
	/* Calls with the same key go to the same server as long as it is in
	 * use, whoever makes them, and whatever the choice is. NULL: none. */
	const void *key;
	size_t key_length;
};

/* What became of a call. */
struct ulrpc_replicas_outcome {
	/* The last answer, or why there is none. execution says what is known
	 * of all servers together: ULRPC_NOT_EXECUTED if none of them has
	 * executed the call. */
	struct ulrpc_outcome call;
	/* NID of the server whose outcome that is, as the target or the user
	 * names it; LNET_NID_ANY: no server was known */
	struct ulnet_nid server;
	/* how often the call went on to another server */
	uint32_t moves;
	/* it was made at a second server, too, as the first was slow */
	bool hedged;
};

/* As ulrpc_done_fn. */
typedef void (*ulrpc_replicas_done_fn)(
	void *arg, const struct ulrpc_replicas_outcome *outcome,
	const void *reply, size_t length);

ULNET_EXPORT void ulrpc_replicas_call_conf_init(
	struct ulrpc_replicas_call_conf *conf);
/*
 * Makes a call at one of the servers. If it certainly was not executed there,
 * or if it is idempotent, it goes on to another one, within its deadline and as
 * often as its retry policy allows. @body and the key are copied. @done is
 * called exactly once, by the deadline. *@call_p (unless @call_p is NULL) is a
 * reference for ulrpc_replicas_cancel(), to be given back with
 * ulrpc_replicas_call_put(). Errors are those of ulrpc_call(); some of them,
 * for calls made on other threads than the CPT's, are statuses of the outcome
 * instead.
 */
ULNET_EXPORT int ulrpc_replicas_call(
	struct ulrpc_replicas *replicas, uint32_t method, const void *body,
	size_t length, const struct ulrpc_replicas_call_conf *conf,
	ulrpc_replicas_done_fn done, void *arg,
	struct ulrpc_replicas_call **call_p);
/* Ends @call soon, as canceled, unless it has ended before. */
ULNET_EXPORT void ulrpc_replicas_cancel(struct ulrpc_replicas_call *call);
ULNET_EXPORT void ulrpc_replicas_call_put(struct ulrpc_replicas_call *call);
/* As ulrpc_call_wait(). */
ULNET_EXPORT int ulrpc_replicas_call_wait(
	struct ulrpc_replicas *replicas, uint32_t method, const void *body,
	size_t length, const struct ulrpc_replicas_call_conf *conf, void *reply,
	size_t size, size_t *length_p, struct ulrpc_replicas_outcome *outcome);
/* As ulrpc_call_wait_alloc(). */
ULNET_EXPORT int ulrpc_replicas_call_wait_alloc(
	struct ulrpc_replicas *replicas, uint32_t method, const void *body,
	size_t length, const struct ulrpc_replicas_call_conf *conf,
	void **reply_p, size_t *length_p,
	struct ulrpc_replicas_outcome *outcome);

/* ---- streams: ulrpc_replicas_stream_open(3) ---- */

struct ulrpc_replicas_stream_conf {
	/* us from now, for opening the stream and for the whole stream;
	 * ULRPC_NEVER: none. 0 is refused */
	uint64_t deadline;
	struct ulrpc_stream_events events; /* of the stream, once it is open */
	/* as in struct ulrpc_replicas_call_conf */
	const void *key;
	size_t key_length;
	/* as in struct ulrpc_stream_conf */
	struct ulrpc_context *context;
};

ULNET_EXPORT void ulrpc_replicas_stream_conf_init(
	struct ulrpc_replicas_stream_conf *conf);
/* Called once, on the CPT of the set. @stream, which is to be given back with
 * ulrpc_stream_put(), is open at the server outcome->server; NULL: it could not
 * be opened, and outcome->call says why. */
typedef void (*ulrpc_replicas_stream_fn)(
	void *arg, const struct ulrpc_replicas_outcome *outcome,
	struct ulrpc_stream *stream);
/*
 * Opens a stream of a method of the service at one of the servers, which is
 * chosen as for a call. If the stream certainly did not start there, it is
 * opened at another one; a stream that has started stays where it is. @body, of
 * @length bytes, at most ULRPC_STREAM_MESSAGE_MAX, is copied, and given to the
 * handler. *@call_p (unless @call_p is NULL) is a reference for
 * ulrpc_replicas_cancel(), as long as the stream is not open, to be given back
 * with ulrpc_replicas_call_put(). Errors are those of ulrpc_replicas_call().
 */
ULNET_EXPORT int ulrpc_replicas_stream_open(
	struct ulrpc_replicas *replicas, const char *method, const void *body,
	size_t length, const struct ulrpc_replicas_stream_conf *conf,
	ulrpc_replicas_stream_fn fn, void *arg,
	struct ulrpc_replicas_call **call_p);
/* The same, and waits. 0: *@outcome says what has become of it, and *@stream_p
 * is NULL if it could not be opened. Waits, as *_wait. */
ULNET_EXPORT int ulrpc_replicas_stream_open_wait(
	struct ulrpc_replicas *replicas, const char *method, const void *body,
	size_t length, const struct ulrpc_replicas_stream_conf *conf,
	struct ulrpc_stream **stream_p, struct ulrpc_replicas_outcome *outcome);

#ifdef __cplusplus
}
#endif

#endif
