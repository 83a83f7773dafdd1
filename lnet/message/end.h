/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a message, and of a try to send it: what a failed try is evidence
 * of, and whether another one follows (requirements D3, D4, D5).
 *
 * A message is sent again if it is certain that the peer has not got it, if
 * there is time, and if there is another path. A path that the message has not
 * tried yet is tried at once, as often as there is one; a path that it has
 * tried before is tried after a pause, retry_count times in all. If only one
 * path leads to the peer there is no other try: the sender hears at once, and
 * knows better whether to send again. The path of the next try is chosen once,
 * when it is decided that there is one. The message has that path while it
 * waits, and chooses again only if the path has gone or lost health meanwhile,
 * or if a gateway of another CPT has a part in it.
 *
 * Each try gets a part of the time that is left, so that one that waits for a
 * peer NI which does not answer leaves time for others. A try may take all of
 * the time if a part of it has been sent, or if no other one could follow.
 */
#ifndef LNET_END_H
#define LNET_END_H

#include "lnet/core/cpt.h"
#include "lnet/path/select.h"

struct msg_out;
struct lnet_ni;
struct lnet_peer_ni;

/* What is known of a message's failed tries. */
struct msg_again {
	struct failed_paths failed;
	uint32_t repeats; /* of tries over a path that was tried before */
	/* Of the next path, if it is chosen, as it was then: */
	uint64_t topology; /* cpt.topology */
	int32_t health;	   /* of both ends together */
};

/* The funnel: whatever state it is in, the message is over, unless it has
 * failed and is sent again. What it holds goes back, who waited for it goes on,
 * statistics are kept; then msg->done(). */
void out_finalize(struct msg_out *msg, int status, enum ulnet_cause cause);

/* As out_finalize(), but msg->done() runs later: for callers that walk queues,
 * which users' handlers may change. */
void out_finalize_post(struct msg_out *msg, int status, enum ulnet_cause cause);

/* As out_finalize(), at the end of this turn. */
void out_fail_later(struct msg_out *msg, int status, enum ulnet_cause cause);

/* Stops what the message is doing; it ends through the funnel before return. */
void out_cancel(struct msg_out *msg, int status, enum ulnet_cause cause);

/* msg_out.timer: what the message waits for has not come in time, or is due. */
void out_late(struct timer *t);

/* If the try of @msg, which has a path, were given up now, would there be
 * another one? */
bool resend_could(const struct msg_out *msg);

/* When the try of @msg that is about to begin is to end, ns. */
uint64_t resend_deadline(const struct msg_out *msg);

/* @ni goes away on @cpt, or @lpni from it (NULL: not): what waits for another
 * try over it will choose another path. */
void resend_leave(struct lnet_cpt *cpt, const struct lnet_ni *ni,
		  const struct lnet_peer_ni *lpni);

/* @msg is over: what is known of its tries is forgotten. */
void resend_end(struct msg_out *msg);

/* The CPT closes: what waits for another try ends. */
void resend_discard(struct lnet_cpt *cpt);

#endif
