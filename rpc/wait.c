/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/wait.h"

#include <errno.h>

#include "ulnet/loop.h"

/* us of one lnet_poll(), at most; it is called again. */
#define POLL_MAX UINT64_C(3600000000)

int wait_init(struct wait *w)
{
	int rc = pthread_mutex_init(&w->lock, NULL);

	if (rc)
		return -rc;
	rc = lnet_cond_init(&w->changed);
	if (rc)
		pthread_mutex_destroy(&w->lock);
	return rc;
}

void wait_fini(struct wait *w)
{
	lnet_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
}

/* Other threads make the turns. */
static int wait_sleep(struct wait *w, bool (*ready)(void *arg), void *arg,
		      uint64_t until)
{
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	while (!rc && !ready(arg))
		rc = lnet_cond_wait(&w->changed, &w->lock, until);
	if (rc && ready(arg))
		rc = 0;
	pthread_mutex_unlock(&w->lock);
	return rc;
}

static bool wait_ready(struct wait *w, bool (*ready)(void *arg), void *arg)
{
	bool yes;

	pthread_mutex_lock(&w->lock);
	yes = ready(arg);
	pthread_mutex_unlock(&w->lock);
	return yes;
}

int wait_until(struct wait *w, struct lnet *node, bool (*ready)(void *arg),
	       void *arg, uint64_t until)
{
	if (lnet_in_turn())
		return -EDEADLK;
	while (!wait_ready(w, ready, arg)) {
		uint64_t now = lnet_now(node, 0), left;
		int rc;

		if (now >= until)
			return -ETIMEDOUT;
		if (until != TIME_NEVER)
			left = MIN(POLL_MAX, (until - now + NSEC_PER_USEC - 1) /
						     NSEC_PER_USEC);
		else /* only the simulator can tell that nothing will happen */
			left = lnet_is_virtual(node) ? UINT64_MAX : POLL_MAX;
		rc = lnet_poll(node, left);
		if (rc == -EBUSY || rc == -EXDEV)
			return wait_sleep(w, ready, arg, until);
		if (rc == -EAGAIN && until == TIME_NEVER)
			return wait_ready(w, ready, arg) ? 0 : -EDEADLK;
		if (rc && rc != -EAGAIN)
			return rc;
	}
	return 0;
}
