/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that is to be added, to have more NIDs, to have fewer, or to be
 * deleted: what a step of a plan does, and takes back.
 */
#ifndef CONFIG_PEER_WISH_H
#define CONFIG_PEER_WISH_H

#include "config/peer_list.h"

enum peer_wish_kind {
	PEER_ADD,      /* it has these NIDs, and maybe others */
	PEER_DEL,      /* it has none of these NIDs but the first */
	PEER_DEL_WHOLE, /* it is not there */
	PEER_IS_US,    /* of ADD, when it has turned out to be this node:
			* nothing was done */
	PEER_STAYS_US, /* DEL_WHOLE of what is no peer, but this node: nothing
			* is to be done */
};

struct peer_wish {
	enum peer_wish_kind kind;
	bool multi_rail; /* ADD */
	bool may_be_us;	 /* ADD: kernel nodes list themselves among their
			  * peers, and that is to be passed over */
	unsigned int at; /* the number of the NID that it has failed with */
	/* What it was: NIs of a configured peer, borrowed; 0: it was none. */
	const struct ulnet_peer_info *before;
	unsigned int nbefore;
	unsigned int n;
	struct ulnet_nid nids[]; /* the primary one, and others */
};

/* With room for @n NIDs, and the first of them. NULL: no memory. free() it. */
struct peer_wish *peer_wish_new(enum peer_wish_kind kind, unsigned int n,
				const struct ulnet_nid *primary) must_check;

/* One more NID. False: it is the first, and not there twice. */
bool peer_wish_nid(struct peer_wish *w, const struct ulnet_nid *nid);

/* Remembers what the peer is now, according to @list, which has configured
 * peers only and outlives the wish. */
void peer_wish_before(struct peer_wish *w, const struct peer_list *list);

/* 0 or a negative errno; what was done before it failed is undone by
 * peer_wish_undo(), as all of it is. */
int peer_wish_do(struct lnet *node, struct peer_wish *w) must_check;
int peer_wish_undo(struct lnet *node, const struct peer_wish *w) must_check;

#define PEER_WISH_TEXT_SIZE 256
/* Writes why it has failed, for users. Returns @text. */
const char *peer_wish_complaint(const struct peer_wish *w, int rc,
				char text[PEER_WISH_TEXT_SIZE]);

/* Deletes all peers that were added. 0 or a negative errno. */
int peer_unconfigure_all(struct lnet *node) must_check;

#endif
