/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routing: messages of others are taken whole into a buffer, and then sent to
 * their next hop, otherwise unchanged (requirement B2).
 *
 * Each CPT has pools of buffers: tiny ones for messages without payload, small
 * and large ones. A message takes one from the smallest kind that holds its
 * payload, and gives it back when it has been sent, or cannot be. Buffers are
 * made when they are first needed, and kept until routing is turned off: what a
 * router takes is bounded in bytes.
 *
 * Shares. A sender may have peer_buffer_credits of its NI in buffers, and a
 * share (base/share.h) of each pool: all that it sends beyond stays on its
 * connections, which stand still (lnd.h). A NID that messages are for has such
 * a share, too, so that one that does not read keeps no buffer from the others.
 * Many NIDs may be dead at a time: those whose last message could not be sent
 * on have a quarter of each pool together. Of the messages that wait, the first
 * that may go on does so; none waits while a buffer is free that it may have
 * (node_check()).
 *
 * A message has the node's lnd_timeout to get through: the sender gives each of
 * its tries no more, and goes on when it hears nothing. A message has far less
 * if its next hop has failed, or the last message to its NID was not sent on;
 * and none when the next hop has become silent (lnet_peer_silent()). Otherwise
 * all that a sender may have here would soon wait for one dead node. A message
 * that is late, or cannot be sent on, is dropped and counted. Nobody tells the
 * sender, who knows by the answer that does not come.
 *
 * All functions are for the CPT that received the message, its home.
 */
#ifndef LNET_FORWARD_H
#define LNET_FORWARD_H

#include "base/list.h"
#include "base/loop.h"
#include "ulnet/route.h"

/* How long a message may wait for a next hop that has failed lately. */
#define FORWARD_ILL (250 * NSEC_PER_MSEC)

struct lnet_cpt;
struct msg_in;
struct lnet_ni;

struct router_pool {
	uint32_t size; /* bytes of a buffer */
	uint32_t max;
	uint32_t used;
	uint32_t failing;    /* of these: for NIDs whose last message failed */
	int64_t free_min;    /* max - used - waits: the lowest so far */
	uint32_t made;	     /* used ones, and ... */
	struct list spare;   /* ... router_buf.link */
	struct list waiting; /* msg_in.link, first come first */
	uint32_t waits;	     /* of them */
};

struct router {
	bool on;
	struct router_pool pool[LNET_BUFFER_KINDS];
	struct work wake;
	bool waking; /* @wake is under way */
};

void router_init(struct lnet_cpt *cpt);
/* When no message is being forwarded. */
void router_fini(struct lnet_cpt *cpt);

/* @buffers: of this CPT. What is on its way goes on; what waits is dropped when
 * routing is turned off. */
void router_set(struct lnet_cpt *cpt, bool on,
		const uint32_t buffers[LNET_BUFFER_KINDS]);

/* @msg, which is for others, waits for a buffer, takes it, and goes on; or it
 * is dropped. Takes @msg. */
void forward_msg(struct msg_in *msg);

/* @msg has waited for a buffer until its time was over. */
void forward_late(struct msg_in *msg);

/* What waits and came in on @ni (NULL: any) is dropped. */
void forward_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni);

/* The pool whose buffers a payload of @length takes. */
struct router_pool *router_pool_of(struct lnet_cpt *cpt, uint32_t length);
/* May @msg, which waits, have a buffer now? */
bool forward_has_room(const struct msg_in *msg);

#endif
