/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node offers to the layers above LNet (ulnet/loop.h): the loops of its
 * CPTs, and a list of layers to close before the node. The .opaque field of a
 * user's work, timer or layer holds a structure of ours.
 */
#include "ulnet/loop.h"

#include <errno.h>

#include "base/caretaker.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/misuse.h"
#include "lnet/node/node.h"
#include "lnet/node/waits.h"

_Static_assert(sizeof(struct work) <= sizeof((struct ulnet_work){ 0 }.opaque),
	       "room for work");
_Static_assert(sizeof(struct timer) <= sizeof((struct ulnet_timer){ 0 }.opaque),
	       "room for a timer");
_Static_assert(_Alignof(struct work) <= _Alignof(struct ulnet_work) &&
		       _Alignof(struct timer) <= _Alignof(struct ulnet_timer),
	       "alignment");
_Static_assert(sizeof(struct list) == sizeof((struct ulnet_layer){ 0 }.opaque),
	       "room for a link");

/* ---- where and when ---- */

bool lnet_is_virtual(struct lnet *node)
{
	return node->loops[0]->env->ops->is_virtual;
}

bool lnet_cpt_owned(struct lnet *node, unsigned int cpt)
{
	return loop_is_owner(node->loops[cpt]);
}

int lnet_cpt_current(struct lnet *node)
{
	for (unsigned int i = 0; i < node->cpts; i++)
		if (loop_is_owner(node->loops[i]))
			return (int)i;
	return -1;
}

/* The caller has borrowed @l. */
static void cpt_run_turns(struct loop *l, void (*begin)(void *arg),
			  bool (*done)(void *arg), void *arg)
{
	struct loop *before = loop_enter(l);

	begin(arg);
	loop_leave(before);
	while (!done(arg))
		loop_run_once(l, true);
}

int lnet_cpt_run(struct lnet *node, unsigned int cpt, void (*begin)(void *arg),
		 bool (*done)(void *arg), void *arg)
{
	struct caretaker *caretaker = whole_cpt(node->cpt[cpt])->caretaker;
	int rc = -EBUSY, cancel;

	if (!caretaker)
		return -EBUSY;
	if (loop_current())
		return -EDEADLK;
	if (node->forked)
		return -ESHUTDOWN;
	/* A thread that was canceled meanwhile would never return the loop. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (caretaker_borrow(caretaker)) {
		cpt_run_turns(node->loops[cpt], begin, done, arg);
		caretaker_return(caretaker);
		rc = 0;
	}
	pthread_setcancelstate(cancel, NULL);
	return rc;
}

void lnet_cpt_wait(struct lnet *node, unsigned int cpt, bool (*done)(void *arg),
		   void (*sleep)(void *arg), void *arg)
{
	waits_wait(whole_cpt(node->cpt[cpt])->waits, done, sleep, arg);
}

bool lnet_in_turn(void)
{
	return loop_current() != NULL;
}

uint64_t lnet_now(struct lnet *node, unsigned int cpt)
{
	struct loop *l = node->loops[cpt];

	/* Whether @l is in a turn may be asked only by its owner. */
	return likely(loop_current() == l) ? loop_now(l)
					   : l->env->ops->clock(l->env);
}

uint64_t lnet_turn(struct lnet *node, unsigned int cpt)
{
	const struct loop *l = node->loops[cpt];

	return likely(loop_current() == l && l->in_turn) ? l->now : 0;
}

uint64_t lnet_clock(struct lnet *node, unsigned int cpt)
{
	struct env *env = node->loops[cpt]->env;

	return env->ops->clock(env);
}

void lnet_random(struct lnet *node, unsigned int cpt, void *buf, size_t len)
{
	struct loop *l = node->loops[cpt];

	node_check_owner(node, cpt, "lnet_random");
	l->env->ops->random(l->env, buf, len);
}

/* ---- calls that take too long ---- */

const uint64_t *lnet_guard_late(struct lnet *node, unsigned int cpt)
{
	return &node->loops[cpt]->guard.late;
}

const uint64_t *lnet_tick_rate(struct lnet *node, unsigned int cpt)
{
	return &node->loops[cpt]->guard.rate.ns;
}

void lnet_guard_end(struct lnet *node, unsigned int cpt, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	loop_guard_vend(node->loops[cpt], fmt, args);
	va_end(args);
}

/* ---- work ---- */

/* Does not use the work after the user's function was called, since that may
 * free it. Nor does timer_run() use the timer then. */
static void work_run(struct work *w)
{
	struct ulnet_work *work = container_of(w, struct ulnet_work, opaque);
	void (*fn)(struct ulnet_work * work) = work->fn;
	struct loop *l = loop_current();

	fn(work);
	if (unlikely(loop_guard_is_late(l)))
		loop_guard_end(l, "work %s",
			       code_name((code_fn)fn, (char[CODE_NAME]){ 0 }));
}

static struct work *work_of(struct ulnet_work *work)
{
	struct work *w = (void *)work->opaque;

	w->fn = work_run;
	return w;
}

void lnet_post(struct lnet *node, unsigned int cpt, struct ulnet_work *work)
{
	loop_post(node->loops[cpt], work_of(work));
}

static out_of_line void defer_outside(struct lnet *node, unsigned int cpt,
				      struct ulnet_work *work)
{
	node_check_owner(node, cpt, "lnet_defer");
	loop_defer_owned(node->loops[cpt], work_of(work));
}

void lnet_defer(struct lnet *node, unsigned int cpt, struct ulnet_work *work)
{
	struct loop *l = node->loops[cpt];

	if (likely(loop_current() == l))
		loop_defer_owned(l, work_of(work));
	else
		defer_outside(node, cpt, work);
}

/* ---- timers ---- */

static void timer_run(struct timer *t)
{
	struct ulnet_timer *timer = container_of(t, struct ulnet_timer, opaque);
	void (*fn)(struct ulnet_timer * timer) = timer->fn;
	struct loop *l = loop_current();

	fn(timer);
	if (unlikely(loop_guard_is_late(l)))
		loop_guard_end(l, "the timer %s",
			       code_name((code_fn)fn, (char[CODE_NAME]){ 0 }));
}

void lnet_timer_init(struct ulnet_timer *timer,
		     void (*fn)(struct ulnet_timer *timer))
{
	timer->fn = fn;
	timer_init((void *)timer->opaque, timer_run);
}

void lnet_timer_arm(struct lnet *node, unsigned int cpt,
		    struct ulnet_timer *timer, uint64_t at)
{
	node_check_owner(node, cpt, "lnet_timer_arm");
	loop_timer_arm(node->loops[cpt], (void *)timer->opaque, at);
}

void lnet_timer_cancel(struct lnet *node, unsigned int cpt,
		       struct ulnet_timer *timer)
{
	node_check_owner(node, cpt, "lnet_timer_cancel");
	loop_timer_cancel(node->loops[cpt], (void *)timer->opaque);
}

void timers_check(const struct loop *loop, const char *fn)
{
	const struct timer *t = timer_wheel_any(&loop->wheel);
	char name[CODE_NAME];

	if (!t || t->fn != timer_run)
		return;
	misuse("%s(): the timer \"%s\" is armed", fn,
	       code_name(
		       (code_fn)container_of(t, struct ulnet_timer, opaque)->fn,
		       name));
}

bool lnet_timer_armed(const struct ulnet_timer *timer)
{
	return timer_armed((const void *)timer->opaque);
}

/* ---- messages ---- */

void lnet_withhold_ack(struct lnet *node, unsigned int cpt)
{
	node_check_owner(node, cpt, "lnet_withhold_ack");
	portal_cpt(node->cpt[cpt])->ack_withheld = true;
}

/* ---- layers ---- */

static struct list *layer_link(struct ulnet_layer *layer)
{
	return (void *)layer->opaque;
}

static struct ulnet_layer *layer_of(struct list *link)
{
	return container_of(link, struct ulnet_layer, opaque);
}

void lnet_layer_add(struct lnet *node, struct ulnet_layer *layer)
{
	MISUSE_IF(!layer->close,
		  "lnet_layer_add(): a layer without the function close");
	layer->mute = false;
	pthread_mutex_lock(&node->ended_lock);
	list_add(&whole_node(node)->layers, layer_link(layer));
	pthread_mutex_unlock(&node->ended_lock);
}

struct ulnet_layer *lnet_layer_find(struct lnet *node,
				    void (*close)(struct ulnet_layer *layer))
{
	struct list *layers = &whole_node(node)->layers, *link;
	struct ulnet_layer *found = NULL;

	pthread_mutex_lock(&node->ended_lock);
	for (link = layers->next; !found && link != layers; link = link->next)
		if (layer_of(link)->close == close)
			found = layer_of(link);
	pthread_mutex_unlock(&node->ended_lock);
	return found;
}

void lnet_layer_del(struct lnet *node, struct ulnet_layer *layer)
{
	pthread_mutex_lock(&node->ended_lock);
	list_del(layer_link(layer));
	pthread_mutex_unlock(&node->ended_lock);
}

void layers_close(struct lnet *node)
{
	struct list *layers = &whole_node(node)->layers;
	void (*close)(struct ulnet_layer * layer);
	char name[CODE_NAME];

	while (!list_empty(layers)) {
		struct list *link = layers->next;

		close = layer_of(link)->close;
		close(layer_of(link));
		MISUSE_IF(layers->next == link,
			  "%s: the function close \"%s\" of a layer has not "
			  "called lnet_layer_del()",
			  node->crashed ? "lnet_sim_crash()" : "lnet_close()",
			  code_name((code_fn)close, name));
	}
}

void layers_mute(struct lnet *node)
{
	struct list *layers = &whole_node(node)->layers, *link;

	for (link = layers->next; link != layers; link = link->next)
		layer_of(link)->mute = true;
}
