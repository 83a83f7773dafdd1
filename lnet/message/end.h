/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of an outgoing message, and of each attempt to send it: whose health
 * a failed attempt lowers, and whether the message is sent again (requirements
 * D3, D4, D5).
 *
 * A message is sent again if the peer has certainly not received it, and there
 * are both time and another path. A path that the message has not tried is
 * tried at once, as long as there are such paths; a path that it has tried is
 * tried again after a pause, retry_count times in all. If only one path leads
 * to the peer, the message is not sent again, and its sender hears of the
 * failure at once. The next path is chosen when the attempt fails, and is kept
 * during the pause. It is chosen anew only if it has gone or lost health
 * meanwhile, or if it involves a gateway of another CPT.
 *
 * Each attempt may take a part of the time that is left, so that waiting for a
 * peer NI that does not answer leaves time for other paths. An attempt may take
 * all of the time if a part of the message has been sent, or if no other
 * attempt could follow.
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
	uint32_t repeats; /* attempts over a path that was tried before */
	/* When the next path was chosen, if it is: */
	uint64_t topology; /* cpt.topology */
	int32_t health;	   /* of both ends of the path together */
};

/* Ends @msg, in whatever state, unless it has failed and is sent again: returns
 * what it has taken, updates statistics and calls msg->done(). */
void out_finalize(struct msg_out *msg, int status, enum ulnet_cause cause);

/* As out_finalize(), but msg->done() runs later: for callers that walk queues,
 * which users' handlers may change. */
void out_finalize_post(struct msg_out *msg, int status, enum ulnet_cause cause);

/* As out_finalize(), at the end of this turn. */
void out_fail_later(struct msg_out *msg, int status, enum ulnet_cause cause);

/* Cancels @msg; unless it is new or about to end, out_finalize() is called
 * before return. */
void out_cancel(struct msg_out *msg, int status, enum ulnet_cause cause);

/* The function of msg_out.timer: what @msg waits for has not come in time, or
 * is due. */
void out_late(struct timer *t);

/* Would another attempt follow if that of @msg, which has a path, failed? */
bool resend_could(const struct msg_out *msg);

/* The deadline, ns, of the attempt of @msg that is about to begin. */
uint64_t resend_deadline(const struct msg_out *msg);

/* Messages that pause before an attempt over @ni or @lpni (NULL: none), which
 * go away on @cpt, will choose another path. */
void resend_leave(struct lnet_cpt *cpt, const struct lnet_ni *ni,
		  const struct lnet_peer_ni *lpni);

/* @msg is over: frees msg->retries. */
void resend_end(struct msg_out *msg);

/* @cpt closes: ends the messages that pause before another attempt. */
void resend_discard(struct lnet_cpt *cpt);

#endif
