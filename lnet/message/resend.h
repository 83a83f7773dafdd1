/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a failed send is evidence of, and another try for the message
 * (requirements D3, D4, D5).
 *
 * A message is sent again if it is certain that the peer has not got it, if
 * there is time, and if there is another path. A path that the message has not
 * tried yet is tried at once, as often as there is one; a path that it has
 * tried before is tried after a pause, retry_count times in all. If only one
 * path leads to the peer there is no other try: the sender hears at once, and
 * knows better whether to send again.
 *
 * Each try gets a part of the time that is left, so that one that waits for a
 * peer NI which does not answer leaves time for others. A try may take all of
 * the time if it has begun to leave, or if no other one could follow.
 */
#ifndef LNET_RESEND_H
#define LNET_RESEND_H

#include "lnet/core/cpt.h"
#include "lnet/path/tried.h"

struct lnet_msg;
struct lnet_peer_ni;

/* What is known of a message's failed tries. */
struct msg_again {
	struct paths_tried tried;
	/* While it waits: that of the target, referenced, so that no other CPT
	 * becomes the owner of both, and looks for the message there. */
	struct lnet_peer_ni *target;
	uint32_t repeats; /* of tries over a path that was tried before */
};

/*
 * The first part of the end of a message that was to be sent, and could not be:
 * @msg, still as it was, has failed with @status and @cause. (The rest is
 * msg_finalize()'s, in msg.h.) In this order:
 *	1. it is counted, and noted whether the peer may have got the message;
 *	2. whose fault it may be loses health: see lnd/cause.h; a message that
 *	   was too late was so for want of what it waited for;
 *	3. what was not delivered is sent again, if it may and can be.
 * True: there will be another try; the message waits for that (MSG_PAUSED), and
 * has let go of all that it had. On its CPT.
 */
bool resend_failed(struct lnet_msg *msg, int status, enum ulnet_cause cause);

/* If the try of @msg, which has a path, were given up now, would there be
 * another one? */
bool resend_could(const struct lnet_msg *msg);

/* When the try of @msg that is about to begin is to end, ns. */
uint64_t resend_deadline(const struct lnet_msg *msg);

/* The pause of @msg is over. */
void resend_due(struct lnet_msg *msg);

/* @msg waits for no other try any more. */
void resend_unpause(struct lnet_msg *msg);

/* @msg is over: what is known of its tries is forgotten. */
void resend_end(struct lnet_msg *msg);

/* The CPT closes: what waits for another try ends. */
void resend_discard(struct lnet_cpt *cpt);

#endif
