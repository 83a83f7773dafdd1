/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routing: a message for another node is first received completely into a
 * buffer, and then sent unchanged to its next hop (requirement B2).
 *
 * Each CPT has pools of tiny (without payload), small and large buffers. A
 * message takes a buffer of the smallest kind that fits its payload, and
 * returns it when it has been sent or has failed. Buffers are allocated when
 * first needed, and kept until routing is turned off, so the memory of a router
 * is bounded.
 *
 * Shares. A sender may use as many buffers as its NI has peer_buffer_credits,
 * but not more than a share (base/share.h) of each pool; its further messages
 * stay unread in their connections (lnd.h). A destination NID has such a share,
 * too, so that a destination that does not read takes no buffers from others.
 * All destinations to which the last message failed share a quarter of each
 * pool, since many may be dead at once. Messages that wait for a buffer get one
 * in order of arrival, except those whose share is used up. No message waits
 * while it may have a buffer; sim/check.c verifies that.
 *
 * Time. A message must be passed on within the node's lnd_timeout: its sender
 * gives each attempt no more time. If its next hop has failed lately, or the
 * last message to its destination has failed, the message has only
 * FORWARD_SUSPECT; and once its next hop is silent (lnet_peer_silent()), it has
 * no time at all. Otherwise one dead node would soon use up the share of each
 * sender. A message that is late, or that cannot be sent, is dropped and
 * counted; its sender notices that there is no answer.
 *
 * All functions are called on the CPT that received the message.
 */
#ifndef LNET_FORWARD_H
#define LNET_FORWARD_H

#include "base/list.h"
#include "base/loop.h"
#include "ulnet/route.h"

/* ns: how long a message may wait for a next hop that has failed lately. */
#define FORWARD_SUSPECT (250 * NSEC_PER_MSEC)

struct lnet_cpt;
struct msg_in;
struct lnet_ni;

struct router_pool {
	uint32_t size; /* bytes of each buffer */
	uint32_t max;
	uint32_t used;
	/* buffers with messages to NIDs whose last message failed */
	uint32_t failing;
	int64_t free_min;  /* lowest value that max - used - waits has had */
	uint32_t made;	   /* number of buffers that exist, in use or spare */
	struct list spare; /* of router_buf.link */
	/* of msg_in.out.link: messages that wait for a buffer, in order of
	 * arrival */
	struct list waiting;
	uint32_t waits; /* length of @waiting */
};

struct router {
	bool on;
	struct router_pool pool[LNET_BUFFER_KINDS];
	struct work wake;
	bool waking; /* @wake has been scheduled */
};

void router_init(struct lnet_cpt *cpt);
/* To be called when no message is being forwarded any more. */
void router_fini(struct lnet_cpt *cpt);

/* Turns routing on or off on @cpt; @buffers is the share of this CPT. When
 * routing is turned off, messages that wait for a buffer are dropped, and
 * messages that have one are sent on. */
void router_set(struct lnet_cpt *cpt, bool on,
		const uint32_t buffers[LNET_BUFFER_KINDS]);

/* Takes over @msg: forwards it, perhaps after it has waited for a buffer; or
 * drops it. */
void forward_msg(struct msg_in *msg);

/* @msg has waited for a buffer until its deadline: drops it. */
void forward_late(struct msg_in *msg);

/* Drops messages that wait for a buffer and came through @ni (NULL: any). */
void forward_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni);

/* Returns the pool for payloads of @length bytes. */
struct router_pool *router_pool_of(struct lnet_cpt *cpt, uint32_t length);
/* May @msg, which waits for a buffer, have one now? */
bool forward_has_room(const struct msg_in *msg);

#endif
