/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPTs' loops, for programs on them. What is embedded in theirs is one of
 * ours, which nobody else looks into, with a function that calls theirs.
 */
#include "ulnet/loop.h"

#include "base/code.h"
#include "base/loop.h"
#include "lnet/node/node.h"

_Static_assert(sizeof(struct work) <= sizeof((struct ulnet_work){ 0 }.opaque),
	       "room for work");
_Static_assert(sizeof(struct timer) <= sizeof((struct ulnet_timer){ 0 }.opaque),
	       "room for a timer");
_Static_assert(_Alignof(struct work) <= _Alignof(struct ulnet_work) &&
		       _Alignof(struct timer) <= _Alignof(struct ulnet_timer),
	       "alignment");

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

bool lnet_in_turn(void)
{
	return loop_current() != NULL;
}

uint64_t lnet_now(struct lnet *node, unsigned int cpt)
{
	struct loop *l = node->loops[cpt];

	/* Others may not even look whether @l is in a turn. */
	return likely(loop_current() == l) ? loop_now(l)
					   : l->env->ops->clock(l->env);
}

uint64_t lnet_turn(struct lnet *node, unsigned int cpt)
{
	const struct loop *l = node->loops[cpt];

	return likely(loop_current() == l && l->in_turn) ? l->now : 0;
}

void lnet_random(struct lnet *node, unsigned int cpt, void *buf, size_t len)
{
	struct loop *l = node->loops[cpt];

	loop_assert_owner(l);
	l->env->ops->random(l->env, buf, len);
}

/* ---- who takes too long ---- */

const uint64_t *lnet_guard_late(struct lnet *node, unsigned int cpt)
{
	return &node->loops[cpt]->guard.late;
}

void lnet_guard_end(struct lnet *node, unsigned int cpt, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	loop_guard_vend(node->loops[cpt], fmt, args);
	va_end(args);
}

/* ---- work ---- */

/* @work, or @timer, may be gone after its call. */
static void work_run(struct work *w)
{
	struct ulnet_work *work = container_of(w, struct ulnet_work, opaque);
	void (*fn)(struct ulnet_work *work) = work->fn;
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

void lnet_defer(struct lnet *node, unsigned int cpt, struct ulnet_work *work)
{
	loop_defer(node->loops[cpt], work_of(work));
}

/* ---- timers ---- */

static void timer_run(struct timer *t)
{
	struct ulnet_timer *timer = container_of(t, struct ulnet_timer, opaque);
	void (*fn)(struct ulnet_timer *timer) = timer->fn;
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
	loop_assert_owner(node->loops[cpt]);
	loop_timer_arm(node->loops[cpt], (void *)timer->opaque, at);
}

void lnet_timer_cancel(struct lnet *node, unsigned int cpt,
		       struct ulnet_timer *timer)
{
	loop_assert_owner(node->loops[cpt]);
	loop_timer_cancel(node->loops[cpt], (void *)timer->opaque);
}

bool lnet_timer_armed(const struct ulnet_timer *timer)
{
	return timer_armed((const void *)timer->opaque);
}
