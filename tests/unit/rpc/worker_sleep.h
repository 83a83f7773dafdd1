/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps a worker busy in virtual time. */
#ifndef TESTS_WORKER_SLEEP_H
#define TESTS_WORKER_SLEEP_H

#include "ulnet/loop.h"
#include "ulnet/thread.h"

/* Sleeps on a worker for @ns. Returns nonzero if the node has crashed. */
static inline int worker_sleep(struct lnet *node, uint64_t ns)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t until = lnet_now(node, 0) + ns;
	struct ulnet_cond never;
	int rc = lnet_cond_init(&never);

	pthread_mutex_lock(&lock);
	while (!rc && lnet_now(node, 0) < until)
		rc = lnet_cond_wait(&never, &lock, until);
	pthread_mutex_unlock(&lock);
	lnet_cond_destroy(&never);
	return rc == -ETIMEDOUT ? 0 : rc;
}

#endif
