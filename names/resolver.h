/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The resolver of a node: a thread that looks up names of hosts, services of
 * DNS (SRV), lists of hosts and lists in files, and looks them up again before
 * its answers are too old. It is a thread because /etc/hosts and lists may be
 * on a file system that hangs, which must not keep a CPT waiting. It starts
 * with the first name that needs it.
 *
 * What is bounded: how many queries more are under way in a period than at its
 * beginning, so that a name server gets no more at a time than its socket can
 * take. Whose query is answered makes room for the next one at once; a name
 * server that is silent delays the names of others by a period at most for each
 * RESOLVER_QUERIES. Names take turns in the order in which they are due.
 *
 * Answers go to lnet_name_answer(). Lock: the resolver's own, which guards its
 * list of names; nothing is called while it is held.
 */
#ifndef NAMES_RESOLVER_H
#define NAMES_RESOLVER_H

#include "names/target.h"

struct resolver;

/* s: for how long an answer is good, at least and at most. After a failure, the
 * look-up is repeated after 1, 2, 4 ... 30 s. */
#define RESOLVER_TTL_MIN   UINT64_C(5)
#define RESOLVER_TTL_MAX   UINT64_C(3600)
#define RESOLVER_RETRY_MAX UINT64_C(30)
/* s: a list in a file is read again after this time even if inotify tells
 * nothing */
#define RESOLVER_LIST_MAX UINT64_C(30)
/* ns: a file that changes all the time is read, and its hosts are looked up,
 * after this time and not at once: who may write it shall not make the thread
 * busy, nor flood the name servers */
#define RESOLVER_EVENT_MIN (250 * NSEC_PER_MSEC)
/* queries, each for the IPv4 and the IPv6 addresses of one host, and the ns of
 * a period; a look-up that has begun asks for all its hosts */
#define RESOLVER_QUERIES 128u
#define RESOLVER_PERIOD	 (100 * NSEC_PER_MSEC)

/* Can the resolver look up names of this scheme? */
bool resolver_knows(const struct name_text *name);
/* Starts the thread. Returns 0 or -errno. */
int resolver_start(struct lnet *node, struct resolver **r_p) must_check;
/* Ends the thread, waits for that, and frees @r, which may be NULL. */
void resolver_stop(struct resolver *r);
/* Looks up @name for @feed again and again from now on, for the first time
 * after @wait ns (a file: at once). Returns 0 or -ENOMEM. Any thread. */
int resolver_open(struct resolver *r, uint64_t feed,
		  const struct name_text *name, uint64_t wait) must_check;
/* Stops looking up the name of @feed. Any thread. */
void resolver_close(struct resolver *r, uint64_t feed);

#endif
