/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that wait for what another thread, that of a CPT, does: how they poll
 * before they sleep (lnet_cpt_wait(3)). At most one of them polls at a time for
 * each CPT; and a thread that makes the turns itself, with LNET_RUN_SHARED, is
 * the loop's to let poll.
 */
#ifndef LNET_WAITS_H
#define LNET_WAITS_H

#include <stdatomic.h>
#include "base/spin.h"

struct waits {
	/* the node, and threads that will say how long they have slept: these
	 * may be the last users, since a thread wakes up because its node is
	 * closed */
	_Alignas(CACHE_LINE) atomic_uint users;
	/* Whoever has set this polls, or learns: it guards what follows. */
	atomic_bool taken;
	bool ended; /* the node does not exist any more, nor does what
		     * follows point to anything */
	struct spin spin;
	struct env *env;
};

/* @spin: with the fields that its user sets. Returns NULL: no memory. */
struct waits *waits_new(struct env *env, const struct spin *spin) must_check;
/* The node is being closed, and no thread begins to wait any more. NULL is
 * allowed. */
void waits_end(struct waits *w);

/* Any thread. Polls @done(@arg) for a while, if that seems to pay, and calls
 * @sleep(@arg) unless it has become true. @w NULL: nobody polls. */
void waits_wait(struct waits *w, bool (*done)(void *arg),
		void (*sleep)(void *arg), void *arg);

#endif
