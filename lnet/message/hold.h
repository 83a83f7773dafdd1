/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests (PUTs and GETs) that found no buffer on the CPT that received them,
 * their home. They wait there, in order of arrival, in one of two states:
 *
 *	IN_OFFERED	the message visits the CPTs in msg->asks, one after the
 *			other, and asks each of them for a buffer
 *	IN_HELD	all were asked, the portal is lazy, and the message
 *			waits for a buffer that comes
 *
 * Whoever attaches a buffer sends a query to the CPTs where messages wait for
 * that portal: the query visits one after the other, and fetches from each what
 * the buffer takes, one message at a time.
 *
 * Invariant: no message is held while there is a buffer for it on any CPT,
 * unless a query for that buffer is under way. The invariant holds because a
 * message first says that it waits (portal_shared.waiting) and then asks, and a
 * buffer is first attached and then looks who waits: one of the two sees the
 * other. A query that passes by while a message is away being offered marks the
 * message (msg->came), so that the message asks again. node_check() looks.
 *
 * Why messages ask, and buffers look, instead of both going to one CPT that
 * owns the portal: what matches is decided where the MD lives, because its
 * offset, threshold and events are that CPT's alone, on lazy portals and others
 * (LNetMEAttach(3)), so an owner of the portal would have to pass each message
 * on all the same. A message's share, deadline and interface, and the order of
 * its peer's messages, belong to its home, so that leaving an owner's queue
 * would be a question to another CPT whenever time is over, an interface stops,
 * or a newcomer must not overtake. And a server's CPT that attaches its next
 * buffer finds what it holds itself, which is nearly all, without another CPT.
 *
 * A payload is put aside by its LND, if that can, so that what comes behind it
 * can be received: a short one at once; a long one, whose copy would cost more,
 * when the message is to be held, or when the CPTs that it asks have not
 * answered for a millisecond (in_stands()). That is within the share of its
 * sender (base/share.h) of lazy_max messages and lazy_bytes_max bytes on each
 * CPT. Beyond that the LND's connection stands still while the message is
 * offered, and then the message is dropped instead of being held. There is one
 * exception: if its sender has nothing held and others have all the room, as
 * when very many call at once, the connection goes on standing still (IN_HELD
 * without msg_in.aside), within the sender's share of a quarter of
 * messages_max on each CPT, and only as long as the sender owes us no answer,
 * which might stand behind the message (park.h).
 *
 * Order: of the messages that one CPT holds, the first that a buffer matches
 * gets it. A newcomer does not overtake them on the way to a buffer of its own
 * CPT; it may, to one of another CPT.
 */
#ifndef LNET_HOLD_H
#define LNET_HOLD_H

#include "lnet/portal/match.h"

struct lnet_cpt;
struct msg_in;
struct lnet_ni;

/* What waits for buffers of a portal on a CPT. Owner: CPT. */
struct hold {
	struct list waiting;	       /* of msg_in.link, by arrival */
	struct hash waiting_by_bits;   /* the same, of msg_in.by_bits */
	enum portal_kind waiting_kind; /* the portal's, when they were hashed */
	struct list queries;	  /* of lnet_query.link: to look here, soon */
	struct me_args passed_by; /* an entry like that did not match ... */
	uint64_t passed;	  /* ... those that came up to this one */
};
void holds_init(struct lnet_cpt *cpt);
void holds_fini(struct lnet_cpt *cpt);

/* A request has come in: finds its buffer, or waits for one, or is dropped. On
 * its home. */
void hold_request(struct msg_in *msg);

/* portal_users.buffer_came: the messages that wait for the MD get it, soon. */
int hold_buffer_came(const struct lnet_me *me) must_check;

/* The directory says of @nid something else than before: messages of its peer
 * that are held look for a buffer again. */
void hold_renamed(struct lnet_cpt *cpt, const struct ulnet_nid *nid);

/* What is held on @cpt, received through @ni (NULL: any), is dropped. */
void hold_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni);

/* A parked request (park.h): its payload is put aside, if the sender's share
 * allows it. False: it is not. */
bool hold_aside(struct msg_in *msg);
/* @msg is parked no more. */
void hold_not_aside(struct msg_in *msg);

/* A CPT that @msg asks for a buffer takes its time: the connection of @msg
 * stands no longer, if the sender's share allows it. */
void hold_offer_late(struct msg_in *msg);

/* The time is over for which @msg was to be held, or to stand still. */
void hold_late(struct msg_in *msg);

#endif
