/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a program that is a node, in bounded time. A peer that has been
 * stopped takes nothing more, and what is half sent to it is in LNet's hands
 * until the peer is given up. So when the program has had its time, a thread
 * takes the node's networks away, and all of that ends.
 */
#ifndef TOOLS_CUTOFF_H
#define TOOLS_CUTOFF_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct lnet;

struct cutoff {
	struct lnet *node;
	struct timespec at;
	bool running; /* there is a thread */
	pthread_t thread;
	pthread_mutex_t lock; /* for over */
	pthread_cond_t changed;
	bool over;	   /* nothing is to be cut off any more */
	atomic_bool ended; /* the thread will do nothing more */
};

/* In @us the networks go. Without a thread, for lack of resources, they do not.
 * @node must stay open until cutoff_end(). */
void cutoff_begin(struct cutoff *c, struct lnet *node, uint64_t us);
/* They stay, unless they have gone. Makes the turns of a polled node that the
 * thread waits for. */
void cutoff_end(struct cutoff *c);

#endif
