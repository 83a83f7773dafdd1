/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of an outgoing message, and of each attempt to send it. When an
 * attempt fails, it is decided here which NIs lose health, and whether the
 * message is sent again (requirements D3, D4, D5).
 *
 * A message is sent again if the peer has certainly not received it, if there
 * is time left. As long as there are paths that the message has not tried, it
 * tries one of these at once. Otherwise it pauses, and tries again a path that
 * it has tried; it does that retry_count times in all.
 *
 * That path may be the only one. But then the sender hears of the
 * failure at once if waiting is of no use to it: if the peer has refused the
 * connection; if the LND pauses before it connects again, and for longer than
 * the message would; if this side lacks something; if the peer was silent,
 * because the LND has repeated what it sent for long enough; if the
 * message belongs to a layer, which repeats it by itself (LNET_MD_OF_LAYER); or
 * if this node only passes it on, and needs its buffer. And a repeat over the
 * only path does not wait for a connection for longer than SAME_CONNECT: then
 * it ends with the failure that it had before.
 *
 * The next path is chosen when the attempt fails, and is kept during the pause.
 * Another one is chosen after the pause only if the path is gone or has lost
 * health meanwhile, or if it leads through a gateway that another CPT owns.
 *
 * Each attempt may take a part of the time that is left, so that waiting for a
 * peer NI that does not answer leaves time for other paths. An attempt may take
 * all of that time if a part of the message has been sent, or if there is no
 * other path.
 */
#ifndef LNET_END_H
#define LNET_END_H

#include "lnet/core/cpt.h"
#include "lnet/path/select.h"

struct msg_out;
struct lnet_ni;
struct lnet_peer_ni;

/* The failed attempts of a message. */
struct msg_retries {
	struct failed_paths failed;
	struct ulnet_nid peer; /* the target of the last failed attempt */
	uint32_t repeats; /* attempts over a path that had been tried before */
	/* status of the last failed attempt */
	int status;
	enum ulnet_cause cause;
	/* When the next path was chosen, if it has been: */
	uint64_t topology; /* cpt.topology at that time */
	/* sum of the healths of both ends of that path, at that time */
	int32_t health;
};

/* Ends @msg, whatever its state is; or, if it has failed and is sent again,
 * ends only the attempt. Returns what @msg has taken, updates statistics, and,
 * if @msg has ended, calls msg->done(). */
void out_finalize(struct msg_out *msg, int status, enum ulnet_cause cause);

/* As out_finalize(), but msg->done() runs later: for callers that walk through
 * queues, which users' handlers may change. */
void out_finalize_post(struct msg_out *msg, int status, enum ulnet_cause cause);

/* Counts @msg as sent, while it has its path. */
void out_count_sent(struct msg_out *msg);

/* Ends @msg, which the LND has taken by push(). msg->done() runs at the end of
 * this turn, after the LND's own work there: the peer need not wait until
 * users' handlers have run. */
void out_pushed(struct msg_out *msg);

/* Calls out_finalize() at the end of this turn. */
void out_fail_later(struct msg_out *msg, int status, enum ulnet_cause cause);

/* Cancels @msg. Calls out_finalize() before it returns, unless @msg is new or
 * about to end. */
void out_cancel(struct msg_out *msg, int status, enum ulnet_cause cause);

/* The function of msg_out.timer: what @msg has waited for has not come in time;
 * or, if @msg was delayed or paused, it is due. */
void out_late(struct timer *t);

/* Is it evidence against the peer NI that a message to it, which was sent once,
 * has ended with @status and @cause? It is not if the message has not left this
 * node, unless it has waited for the peer. */
bool attempt_tells_of_peer(int status, enum ulnet_cause cause);

/* If the present attempt of @msg, which has a path, failed: would there be
 * another one, over another path? */
bool resend_could(const struct msg_out *msg);

/* Returns the deadline, in ns, of the attempt of @msg that is about to begin.
 */
uint64_t resend_deadline(const struct msg_out *msg);

/* Does @msg repeat an attempt over its only path, and wait for a connection?
 * Then it does so until resend_connect_until(), ns, unless the peer falls
 * silent before. */
bool resend_waits_to_repeat(const struct msg_out *msg);
uint64_t resend_connect_until(const struct msg_out *msg);
/* Ends @msg, of which resend_waits_to_repeat() is true, with the failure that
 * it had before. msg->done() runs later. */
void resend_give_up(struct msg_out *msg);

/* @ni or @lpni (NULL: none) goes away on @cpt: makes messages that pause before
 * an attempt over it choose another path. */
void resend_leave(struct lnet_cpt *cpt, const struct lnet_ni *ni,
		  const struct lnet_peer_ni *lpni);

/* Frees msg->retries of @msg, which has ended. */
void resend_end(struct msg_out *msg);

/* Ends the messages that pause before another attempt, because @cpt closes. */
void resend_discard(struct lnet_cpt *cpt);

#endif
