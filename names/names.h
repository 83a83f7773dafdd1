/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of a node: which names are in use, who uses them, and what is known
 * of them. How a name is looked up is not known here: a scheme does that
 * (ulnet/names.h), or the node's resolver (resolver.h).
 *
 * What is bounded: NAMES_MAX names in use, and NAMES_KEPT names without users,
 * whose answers are kept for users that come back soon.
 *
 * Locks: one for all names of a node. No scheme and no user's function is
 * called while it is held.
 */
#ifndef NAMES_NAMES_H
#define NAMES_NAMES_H

#include "base/hash.h"
#include "base/list.h"
#include "names/answer.h"
#include "ulnet/loop.h"
#include "ulnet/thread.h"

#define NAMES_MAX  65536u
#define NAMES_KEPT 64u

struct resolver;

struct names {
	struct ulnet_layer layer;
	struct lnet *node;
	pthread_mutex_t lock;
	/* signaled when an answer has come, or a posted work has run */
	struct ulnet_cond changed;
	bool closed;
	uint64_t feeds;	  /* the last name_entry.feed that was given */
	struct list used; /* of name_entry.link: names with users */
	/* the same names by their texts, and those that are looked up by their
	 * feeds */
	struct hash by_text, by_feed;
	/* of name_entry.link: names without users, the oldest first */
	struct list kept;
	unsigned int nused, nkept;
	unsigned int posted;	   /* works of users that are posted */
	struct list schemes;	   /* linked by ulnet_name_scheme.opaque */
	struct resolver *resolver; /* NULL: no name has needed it so far */
};

#endif
