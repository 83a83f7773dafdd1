/* SPDX-License-Identifier: BSD-3-Clause */
#include "ulnet/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cond.h"
#include "base/lockstep.h"
#include "base/loop.h"
#include "lnet/node/node.h"

struct ulnet_thread {
	void (*fn)(void *arg);
	void *arg;
	bool in_lockstep;
	pid_t pid;	  /* the process that has the thread */
	struct list link; /* with virtual time: whole_node.threads */
	union {
		pthread_t real;
		struct lockstep_thread lockstep;
	};
};

_Static_assert(sizeof(struct cond) <= sizeof(struct ulnet_cond) &&
		       offsetof(struct cond, guests) ==
			       offsetof(struct ulnet_cond, opaque),
	       "room for a condition variable");

/* ---- threads ---- */

static void *thread_main(void *arg)
{
	struct ulnet_thread *t = arg;

	t->fn(t->arg);
	return NULL;
}

static int thread_start(struct lnet *node, struct ulnet_thread *t)
{
	struct lockstep *ls = node->loops[0]->env->lockstep;
	int rc;

	t->in_lockstep = ls;
	if (!ls)
		return -pthread_create(&t->real, NULL, thread_main, t);
	rc = lockstep_start(ls, &t->lockstep, t->fn, t->arg);
	if (rc)
		return rc;
	list_add_tail(&whole_node(node)->threads, &t->link);
	if (node->crashed)
		lockstep_end(&t->lockstep);
	return 0;
}

int lnet_thread_start(struct lnet *node, void (*fn)(void *arg), void *arg,
		      struct ulnet_thread **thread_p)
{
	struct ulnet_thread *t;
	int rc;

	if (node->forked)
		return -ESHUTDOWN;
	t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->pid = getpid();
	t->fn = fn;
	t->arg = arg;
	/* Set before fn runs, since fn may call lnet_thread_is_self(). */
	*thread_p = t;
	rc = thread_start(node, t);
	if (rc)
		free(t);
	return rc;
}

void lnet_thread_join(struct ulnet_thread *thread)
{
	if (thread->in_lockstep) {
		lockstep_join(&thread->lockstep);
		list_del(&thread->link);
	} else if (thread->pid == getpid()) {
		/* In a child of fork() there is no such thread. */
		pthread_join(thread->real, NULL);
	}
	free(thread);
}

bool lnet_thread_is_self(const struct ulnet_thread *thread)
{
	if (thread->in_lockstep)
		return lockstep_current() == &thread->lockstep;
	return pthread_equal(thread->real, pthread_self());
}

void threads_end(struct lnet *node)
{
	struct ulnet_thread *t;

	list_for_each_entry (t, &whole_node(node)->threads, link)
		lockstep_end(&t->lockstep);
}

bool threads_are_busy(const struct lnet *node)
{
	const struct ulnet_thread *t;

	list_for_each_entry (t, &whole_node(node)->threads, link)
		if (t->lockstep.fsm.state == LOCKSTEP_WAITING &&
		    !t->lockstep.endable)
			return true;
	return false;
}

bool threads_ended(const struct lnet *node)
{
	const struct ulnet_thread *t;

	list_for_each_entry (t, &whole_node(node)->threads, link)
		if (t->lockstep.fsm.state != LOCKSTEP_ENDED)
			return false;
	return true;
}

/* ---- condition variables ---- */

static struct cond *cond_of(struct ulnet_cond *cond)
{
	return (struct cond *)cond;
}

int lnet_cond_init(struct ulnet_cond *cond)
{
	return cond_init(cond_of(cond));
}

void lnet_cond_destroy(struct ulnet_cond *cond)
{
	cond_destroy(cond_of(cond));
}

int lnet_cond_wait(struct ulnet_cond *cond, pthread_mutex_t *lock,
		   uint64_t until)
{
	return cond_wait_or_end(cond_of(cond), lock, until);
}

void lnet_cond_signal(struct ulnet_cond *cond)
{
	cond_signal(cond_of(cond));
}

void lnet_cond_broadcast(struct ulnet_cond *cond)
{
	cond_broadcast(cond_of(cond));
}
