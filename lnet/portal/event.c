/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/portal/event.h"

#include <errno.h>
#include <time.h>

#include "lnet/portal/portal.h"

#define EQ_SIZE_MAX (1u << 24)

int eqs_init(struct eqs *q)
{
	int rc;

	id_table_init(&q->table, ID_TAG(0, ID_EQ));
	rc = pthread_mutex_init(&q->lock, NULL);
	if (rc)
		return -rc;
	rc = cond_init(&q->filled);
	if (rc)
		pthread_mutex_destroy(&q->lock);
	return rc;
}

void eqs_fini(struct eqs *q)
{
	uint32_t pos = 0;
	struct eq *eq;

	while ((eq = id_walk(&q->table, &pos)))
		free(eq);
	id_table_fini(&q->table);
	cond_destroy(&q->filled);
	pthread_mutex_destroy(&q->lock);
}

uint32_t eqs_count(struct eqs *q)
{
	uint32_t n;

	pthread_mutex_lock(&q->lock);
	n = q->table.used;
	pthread_mutex_unlock(&q->lock);
	return n;
}

static bool reserve_locked(struct eq *eq, uint32_t slots)
{
	if (eq->size - eq->count - eq->reserved < slots)
		return false;
	eq->reserved += slots;
	return true;
}

int eq_use(struct eqs *q, uint64_t cookie, uint32_t slots, struct eq **eq_p)
{
	struct eq *eq;
	int rc = -ENOENT;

	pthread_mutex_lock(&q->lock);
	eq = id_lookup(&q->table, cookie);
	if (eq)
		rc = reserve_locked(eq, slots) ? 0 : -ENOBUFS;
	if (!rc) {
		eq->mds++;
		*eq_p = eq;
	}
	pthread_mutex_unlock(&q->lock);
	return rc;
}

bool eq_reserve(struct eqs *q, struct eq *eq, uint32_t slots)
{
	bool ok;

	pthread_mutex_lock(&q->lock);
	ok = reserve_locked(eq, slots);
	pthread_mutex_unlock(&q->lock);
	return ok;
}

void eq_unreserve(struct eqs *q, struct eq *eq, uint32_t slots, bool last)
{
	pthread_mutex_lock(&q->lock);
	eq->reserved -= slots;
	eq->mds -= last;
	pthread_mutex_unlock(&q->lock);
}

void eq_push(struct eqs *q, struct eq *eq, const struct ulnet_event *ev,
	     bool last)
{
	pthread_mutex_lock(&q->lock);
	BUG_ON(eq->reserved == 0);
	eq->reserved--;
	eq->ring[(eq->head + eq->count) % eq->size] = *ev;
	eq->count++;
	if (last)
		eq->mds--;
	cond_broadcast(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

int LNetEQAlloc(struct lnet *node, uint32_t count, struct ulnet_eq_handle *eq_p)
{
	struct eq *eq;
	int rc;

	if (count == 0 || count > EQ_SIZE_MAX)
		return -EINVAL;
	if (node->forked)
		return -ESHUTDOWN;
	eq = calloc(1, sizeof(*eq) + count * sizeof(eq->ring[0]));
	if (!eq)
		return -ENOMEM;
	eq->size = count;
	pthread_mutex_lock(&portal_node(node)->eqs.lock);
	rc = id_alloc(&portal_node(node)->eqs.table, eq, &eq->cookie);
	pthread_mutex_unlock(&portal_node(node)->eqs.lock);
	if (rc) {
		free(eq);
		return rc;
	}
	*eq_p = (struct ulnet_eq_handle){ node, eq->cookie };
	return 0;
}

int LNetEQFree(struct ulnet_eq_handle h)
{
	struct eqs *q;
	struct eq *eq;
	bool used = false;

	if (!h.node)
		return -ENOENT;
	/* Not freed in a child of fork(): the node there is the parent's. */
	if (h.node->forked)
		return -ESHUTDOWN;
	q = &portal_node(h.node)->eqs;
	pthread_mutex_lock(&q->lock);
	eq = id_lookup(&q->table, h.cookie);
	if (eq)
		used = eq->mds;
	if (eq && !used) {
		id_free(&q->table, h.cookie);
		free(eq);
		/* Wakes threads that sleep on the queue: their calls return
		 * -ENOENT. */
		cond_broadcast(&q->filled);
	}
	pthread_mutex_unlock(&q->lock);
	return used ? -EBUSY : eq ? 0 : -ENOENT;
}

/* Returns 1 and the first event; 0 if there is no event; or -ENOENT. */
static int event_get_locked(struct eqs *q, const struct ulnet_eq_handle *eqs,
			    int neq, struct ulnet_event *event, int *which)
{
	for (int i = 0; i < neq; i++) {
		struct eq *eq = id_lookup(&q->table, eqs[i].cookie);

		if (!eq)
			return -ENOENT;
		if (!eq->count)
			continue;
		*event = eq->ring[eq->head];
		eq->head = (eq->head + 1) % eq->size;
		eq->count--;
		if (which)
			*which = i;
		return 1;
	}
	return 0;
}

static int eqs_get(struct eqs *q, const struct ulnet_eq_handle *eqs, int neq,
		   struct ulnet_event *event, int *which)
{
	int rc;

	pthread_mutex_lock(&q->lock);
	rc = event_get_locked(q, eqs, neq, event, which);
	pthread_mutex_unlock(&q->lock);
	return rc;
}

int LNetEQGet(struct ulnet_eq_handle h, struct ulnet_event *event)
{
	if (!h.node)
		return -ENOENT;
	if (h.node->forked)
		return -ESHUTDOWN;
	return eqs_get(&portal_node(h.node)->eqs, &h, 1, event, NULL);
}

/* Sleeps while the threads of CPTs fill the queues. */
static int poll_sleep(struct eqs *q, const struct ulnet_eq_handle *eqs, int neq,
		      uint64_t timeout, struct ulnet_event *event, int *which)
{
	struct timespec now;
	uint64_t until;
	int rc, late = 0;

	clock_gettime(CLOCK_MONOTONIC, &now);
	timeout = MIN(timeout, UINT64_C(1000000) * INT32_MAX);
	until = (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec +
		timeout * NSEC_PER_USEC;
	pthread_mutex_lock(&q->lock);
	for (;;) {
		rc = event_get_locked(q, eqs, neq, event, which);
		if (rc || late)
			break;
		late = cond_wait(&q->filled, &q->lock, until);
	}
	pthread_mutex_unlock(&q->lock);
	return rc;
}

/* Makes turns of the node's loop: they fill the queues. */
static int poll_drive(struct lnet *node, const struct ulnet_eq_handle *eqs,
		      int neq, uint64_t timeout, struct ulnet_event *event,
		      int *which)
{
	struct env *env = node->loops[0]->env;
	uint64_t now = env->ops->clock(env);
	uint64_t until = now + MIN(timeout, TIME_NEVER / 2000) * NSEC_PER_USEC;
	int rc;

	while (!(rc = eqs_get(&portal_node(node)->eqs, eqs, neq, event,
			      which))) {
		now = env->ops->clock(env);
		if (now >= until)
			break;
		rc = portal_node(node)->poll(node,
					     (until - now + NSEC_PER_USEC - 1) /
						     NSEC_PER_USEC);
		if (rc)
			return rc == -EAGAIN ? 0 : rc;
	}
	return rc;
}

int LNetEQPoll(const struct ulnet_eq_handle *eqs, int neq, uint64_t timeout,
	       struct ulnet_event *event, int *which)
{
	struct lnet *node;
	int rc;

	if (neq <= 0)
		return -EINVAL;
	node = eqs[0].node;
	for (int i = 0; i < neq; i++)
		if (!eqs[i].node || eqs[i].node != node)
			return -EINVAL;
	if (node->forked)
		return -ESHUTDOWN;
	rc = eqs_get(&portal_node(node)->eqs, eqs, neq, event, which);
	if (rc || timeout == 0)
		return rc;
	/* Queues are filled in turns: the caller, who is in a turn, would wait
	 * for ever. */
	if (loop_current())
		return -EDEADLK;
	if (node->own_loops && (node->conf.run == LNET_RUN_THREADS ||
				node->conf.run == LNET_RUN_SHARED))
		return poll_sleep(&portal_node(node)->eqs, eqs, neq, timeout,
				  event, which);
	return poll_drive(node, eqs, neq, timeout, event, which);
}
