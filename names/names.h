/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of a node: which are in use, by whom, and what is known of them.
 * Where they are looked up is not known here: a scheme does that
 * (ulnet/names.h), of which the node's own is the resolver (resolver.h).
 *
 * What is bounded: NAMES_MAX names in use, and NAMES_KEPT that are not, whose
 * answers are good for those who come back soon. Both are the program's own.
 *
 * Locks: one for all names of a node. No scheme and no user's function is
 * called with it.
 */
#ifndef NAMES_NAMES_H
#define NAMES_NAMES_H

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
	/* an answer has come, or a posted work has run */
	struct ulnet_cond changed;
	bool closed;
	uint64_t feeds;	  /* the last number given */
	struct list used; /* name_entry.link */
	struct list kept; /* the same, without users; oldest first */
	unsigned int nused, nkept;
	unsigned int posted;	   /* works of users that have not run */
	struct list schemes;	   /* ulnet_name_scheme.opaque */
	struct resolver *resolver; /* NULL: not needed so far */
};

#endif
