/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of a node under virtual time, at its end. The contract of the others
 * is in ulnet/thread.h. */
#ifndef LNET_THREAD_PRIV_H
#define LNET_THREAD_PRIV_H

#include "base/util.h"

struct lnet;

/* The node has crashed, and is marked: what its threads wait for is canceled,
 * and so is what they, and threads that are still started, will want to wait
 * for. */
void threads_end(struct lnet *node);
/* Is one of its threads in the middle of something that a crash would leave
 * half done: loop_call(), say? */
bool threads_are_busy(const struct lnet *node);
/* Has the function of each returned? */
bool threads_ended(const struct lnet *node);

#endif
