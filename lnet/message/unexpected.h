/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The unexpected-message queues: PUTs and GETs that have found no buffer on the
 * CPT that received them, which is called their home. Such a message waits at
 * its home, in order of arrival, in one of two states:
 *
 *	IN_OFFERED	the message visits the CPTs in msg->asks, one after the
 *			other, and asks each of them for a buffer
 *	IN_UNEXPECTED	all CPTs were asked, the portal is lazy, and the message
 *			waits for a buffer to be attached
 *
 * The CPT that attaches a buffer sends a match query to the CPTs where messages
 * wait for that portal. The query visits one CPT after the other, and fetches
 * from each what the buffer takes, one message at a time.
 *
 * Invariant: no message waits while there is a buffer for it on any CPT, unless
 * a query for that buffer is under way. The invariant holds because a message
 * first announces that it waits (portal_shared.waiting) and then asks for
 * buffers, and a buffer is first attached and then looks for messages that
 * wait: one of the two sees the other. A query that finds a message on its
 * visits to other CPTs marks the message (msg->came), and the message then asks
 * the query's CPT again. sim/check.c verifies the invariant.
 *
 * Portals have no owner CPT, for three reasons. Whether a buffer matches is
 * decided on the CPT of its MD, which owns the MD's offset, threshold and
 * events, so the owner of a portal would have to pass on each message. The
 * share, deadline, interface and order of a message belong to its home, so the
 * home would have to ask the owner at each timeout and each shutdown. And
 * nearly always a server's new buffer serves the queue of its own CPT.
 *
 * Bounce buffers. The LND copies the payload of a message that waits into a
 * bounce buffer, if it can, so that what follows on the connection can be read:
 * a short payload at once; a long one, whose copy costs more, when the message
 * is queued, or when the CPTs that the message asks have not answered for a
 * millisecond (in_stays_unread()). Each sender has a share (base/share.h) of
 * lazy_max messages and lazy_bytes_max bytes on each CPT. A message beyond that
 * share leaves its payload unread in the connection while the message is
 * offered, and is dropped instead of being queued.
 *
 * One exception: when other senders have used up all bounce buffers and the
 * sender has none, its message may be queued with its payload unread
 * (IN_UNEXPECTED without msg_in.bounced). Such messages are limited to the
 * sender's share of a quarter of messages_max on each CPT. They are allowed
 * only while the sender owes this node no answer, which might be queued behind
 * the message (throttle.h).
 *
 * Order: of the messages that one CPT has queued, the first that matches a
 * buffer gets it. A new message does not overtake them to a buffer of its own
 * CPT, but may overtake them to a buffer of another CPT.
 */
#ifndef LNET_UNEXPECTED_H
#define LNET_UNEXPECTED_H

#include "lnet/portal/match.h"

struct lnet_cpt;
struct msg_in;
struct lnet_ni;

/* The messages on a CPT that wait for buffers of one portal. Owner: the CPT. */
struct unexpected_queue {
	/* of msg_in.out.link, in order of arrival */
	struct list waiting;
	/* the messages of @waiting, hashed: of msg_in.by_bits */
	struct hash waiting_by_bits;
	/* kind of the portal when the messages were hashed */
	enum portal_kind waiting_kind;
	/* of lnet_query.link: queries that are about to look here */
	struct list queries;
	/* arguments of an entry that has looked at the messages and has not
	 * matched those up to @passed */
	struct me_args passed_by;
	/* in @waiting: the last of the messages not matched; the head: none */
	struct list *passed;
};
void unexpected_init(struct lnet_cpt *cpt);
void unexpected_fini(struct lnet_cpt *cpt);

/* Takes over @msg, a new request: finds a buffer for it and delivers it, or
 * queues or drops it. On msg->out.home. */
void unexpected_or_deliver(struct msg_in *msg);

/* As portal_users.buffer_came: an MD was attached to @me. Sends a query for it;
 * messages are delivered after return. Returns 0 or -ENOMEM. */
int unexpected_buffer_came(const struct lnet_me *me) must_check;

/* The directory entry of @nid has changed: queued messages of its peer ask all
 * CPTs for a buffer again. */
void unexpected_renamed(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* Drops the queued messages on @cpt that came through @ni (NULL: any). */
void unexpected_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni);

/* Copies the payload of @msg, which is throttled or delayed, into a bounce
 * buffer. Returns false if the sender's share, or memory, is used up. */
bool unexpected_bounce(struct msg_in *msg);
/* If @msg has a bounce buffer, that does not count any more. */
void unexpected_unbounce(struct msg_in *msg);

/* The CPTs that @msg asks for a buffer have not answered yet: if the sender's
 * share allows it, copies the payload into a bounce buffer. */
void unexpected_offer_late(struct msg_in *msg);

/* The function of the timer of @msg while @msg is queued. */
void unexpected_late(struct msg_in *msg);

#endif
