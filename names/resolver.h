/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The resolver of a node: a thread that looks up names of hosts, services of
 * DNS and lists in files, and looks them up again before what it knows is too
 * old. A thread, because /etc/hosts and lists may be on a file system that
 * hangs, and that must hold up no CPT. It starts with the first name that needs
 * it.
 *
 * Answers go to lnet_name_answer(). Locks: its own, for the list of sources;
 * nothing of others is called with it.
 */
#ifndef NAMES_RESOLVER_H
#define NAMES_RESOLVER_H

#include "names/target.h"

struct resolver;

/* s: the shortest and the longest time for which an answer is good. A look-up
 * that has failed is repeated after 1, 2, 4 ... 30 s. */
#define RESOLVER_TTL_MIN   UINT64_C(5)
#define RESOLVER_TTL_MAX   UINT64_C(3600)
#define RESOLVER_RETRY_MAX UINT64_C(30)
/* A list in a file is looked at again so often, whatever is told of it. */
#define RESOLVER_LIST_MAX UINT64_C(30)

/* Can the resolver look up names of this scheme? */
bool resolver_knows(const struct name_text *name);
/* Starts the thread. Returns 0 or -errno. */
int resolver_start(struct lnet *node, struct resolver **r_p) must_check;
/* Waits for the end of the thread, and frees @r, which may be NULL. */
void resolver_stop(struct resolver *r);
/* Looks up @name for @feed from now on, for the first time after @wait ns.
 * Returns 0 or -ENOMEM. Any thread. */
int resolver_open(struct resolver *r, uint64_t feed,
		  const struct name_text *name, uint64_t wait) must_check;
/* Stops looking up the name of @feed. Any thread. */
void resolver_close(struct resolver *r, uint64_t feed);

#endif
