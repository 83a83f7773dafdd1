/* SPDX-License-Identifier: BSD-3-Clause */
#include "ulnet/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cond.h"
#include "base/lockstep.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/misuse.h"
#include "lnet/node/node.h"

struct ulnet_thread {
	void (*fn)(void *arg);
	void *arg;
	struct lnet *node;
	bool in_lockstep;
	pid_t pid;	  /* the process that has the thread */
	struct list link; /* in whole_node.threads, under lnet.ended_lock */
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

static _Thread_local const struct ulnet_thread *thread_here
	__attribute__((tls_model("initial-exec")));

static void thread_run(void *arg)
{
	struct ulnet_thread *t = arg;

	thread_here = t;
	t->fn(t->arg);
}

static void *thread_main(void *arg)
{
	thread_run(arg);
	return NULL;
}

static const char *thread_name(const struct ulnet_thread *t,
			       char name[CODE_NAME])
{
	return code_name((code_fn)t->fn, name);
}

/* Adds @t to the threads of its node. To be called before @t starts, since any
 * thread may join @t as soon as it runs. */
static void thread_enlist(struct ulnet_thread *t)
{
	pthread_mutex_lock(&t->node->ended_lock);
	list_add_tail(&whole_node(t->node)->threads, &t->link);
	pthread_mutex_unlock(&t->node->ended_lock);
}

static void thread_delist(struct ulnet_thread *t)
{
	pthread_mutex_lock(&t->node->ended_lock);
	list_del(&t->link);
	pthread_mutex_unlock(&t->node->ended_lock);
}

static int thread_start(struct ulnet_thread *t)
{
	const struct env *env = t->node->loops[0]->env;
	struct lockstep *ls = env->lockstep;
	int rc;

	t->in_lockstep = ls;
	if (!ls)
		return -pthread_create(&t->real, NULL, thread_main, t);
	rc = lockstep_start(ls, &t->lockstep, env->held, thread_run, t);
	if (!rc && t->node->crashed)
		lockstep_end(&t->lockstep);
	return rc;
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
	t->node = node;
	/* Set before fn runs, since fn may call lnet_thread_is_self(). */
	*thread_p = t;
	thread_enlist(t);
	rc = thread_start(t);
	if (rc) {
		thread_delist(t);
		free(t);
	}
	return rc;
}

/* Lets virtual time pass until the function of @t has returned. */
static void thread_drive(const struct ulnet_thread *t)
{
	char name[CODE_NAME];

	while (!lockstep_ended(&t->lockstep)) {
		MISUSE_IF(
			loop_current(),
			"lnet_thread_join(): called in a turn of a CPT, "
			"where nothing may wait, before the thread \"%s\" has "
			"returned",
			thread_name(t, name));
		MISUSE_IF(!node_drive(t->node, TIME_NEVER),
			  "lnet_thread_join(): the thread \"%s\" waits for "
			  "what cannot happen any more",
			  thread_name(t, name));
	}
}

void lnet_thread_join(struct ulnet_thread *thread)
{
	char name[CODE_NAME];

	MISUSE_IF(lnet_thread_is_self(thread),
		  "lnet_thread_join(): the thread \"%s\" joins itself",
		  thread_name(thread, name));
	/* A child of fork() does not have the thread, and the node may have
	 * been closed there. */
	if (thread->pid == getpid()) {
		if (!thread->in_lockstep) {
			pthread_join(thread->real, NULL);
		} else {
			if (!lockstep_current())
				thread_drive(thread);
			lockstep_join(&thread->lockstep);
		}
		thread_delist(thread);
	}
	free(thread);
}

bool lnet_thread_is_self(const struct ulnet_thread *thread)
{
	return thread_here == thread;
}

void threads_check_closer(const struct lnet *node)
{
	char name[CODE_NAME];

	MISUSE_IF(thread_here && thread_here->node == node,
		  "lnet_close(): called by the thread \"%s\" of "
		  "lnet_thread_start(), which must be joined before",
		  thread_name(thread_here, name));
}

void threads_check_joined(const struct lnet *node)
{
	const struct ulnet_thread *t;
	char name[CODE_NAME];

	list_for_each_entry (t, &whole_node(node)->threads, link)
		misuse("%s: the thread \"%s\" of lnet_thread_start() has not "
		       "been joined",
		       node->crashed ? "lnet_sim_crash()" : "lnet_close()",
		       thread_name(t, name));
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
	MISUSE_IF(cond_has_waiters(cond_of(cond)),
		  "lnet_cond_destroy(): a thread waits in lnet_cond_wait()");
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
