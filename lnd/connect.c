/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/connect.h"

#include <errno.h>

#include "base/backoff.h"

#define TO(state) FSM_TO(CONNECT_##state)

const struct fsm_state connect_states[CONNECT_STATES] = {
	[CONNECT_IDLE] = { "idle", TO(QUEUED) | TO(CONNECTING) | TO(PAUSED) },
	[CONNECT_QUEUED] = { "waits for its turn",
			     TO(IDLE) | TO(CONNECTING) | TO(PAUSED) },
	[CONNECT_CONNECTING] = { "connecting", TO(IDLE) | TO(QUEUED) |
						       TO(AGAIN) | TO(PAUSED) },
	[CONNECT_AGAIN] = { "again", TO(IDLE) | TO(QUEUED) | TO(CONNECTING) |
					     TO(PAUSED) },
	[CONNECT_PAUSED] = { "paused", TO(IDLE) },
};

static struct connect_law connect_law(const struct connect *c)
{
	struct connect_law law;

	c->set->ops->law(c, &law);
	return law;
}

static void connect_arm(struct connect *c)
{
	uint64_t at = c->next;

	if (c->give_up && c->fsm.state != CONNECT_PAUSED)
		at = MIN(at, c->give_up);
	if (at == TIME_NEVER)
		loop_timer_cancel(c->set->loop, &c->timer);
	else
		loop_timer_arm(c->set->loop, &c->timer, at);
}

void connect_move(struct connect *c, enum connect_state to)
{
	const struct connect_ops *ops = c->set->ops;

	if (ops->leave)
		ops->leave(c, to);
	if ((enum connect_state)c->fsm.state != to)
		fsm_move(&c->fsm, connect_states, to);
	connect_look_at(c, TIME_NEVER);
	ops->settle(c);
}

void connect_look_at(struct connect *c, uint64_t at)
{
	c->next = at;
	connect_arm(c);
}

bool connect_is_idle(const struct connect *c)
{
	return c->fsm.state == CONNECT_IDLE && !c->wanted &&
	       !timer_armed(&c->timer);
}

/* ---- those who wait ---- */

static void connect_wait(struct connect *c)
{
	if (c->give_up)
		return;
	c->began = connect_now(c);
	c->give_up = c->began + connect_law(c).timeout;
	connect_arm(c);
}

static void connect_no_wait(struct connect *c)
{
	c->give_up = 0;
	connect_arm(c);
}

void connect_want(struct connect *c)
{
	c->wanted = true;
	connect_unremember(c);
	c->set->ops->settle(c);
}

/* ops->tell() comes last, since it may call connect_want() again. */
void connect_tell(struct connect *c, int status, enum ulnet_cause cause)
{
	bool wanted = c->wanted;

	c->wanted = c->told_silent = false;
	/* An attempt that goes on keeps its time-out. */
	if (c->fsm.state != CONNECT_CONNECTING)
		connect_no_wait(c);
	if (!wanted && status)
		return;
	c->set->ops->settle(c);
	c->set->ops->tell(c, wanted, status, cause);
}

void connect_tell_silent(struct connect *c, uint64_t least)
{
	uint64_t ns = connect_now(c) - c->began;

	if (!c->wanted || c->told_silent || ns < least)
		return;
	c->told_silent = true;
	c->set->ops->silent(c, ns);
}

/* ---- failures that are remembered ---- */

void connect_unremember(struct connect *c)
{
	if (list_empty(&c->failed))
		return;
	list_del(&c->failed);
	c->set->nfailed--;
}

static void connect_forget(struct connect *c)
{
	connect_unremember(c);
	c->failures = 0;
	connect_move(c, CONNECT_IDLE);
}

void connect_remember(struct connect *c)
{
	struct connect_set *set = c->set;

	if (c->wanted || !list_empty(&c->failed))
		return;
	list_add_tail(&set->failed, &c->failed);
	if (++set->nfailed > CONNECT_FAILURES_MAX)
		connect_forget(
			list_first(&set->failed, struct connect, failed));
}

/* ---- attempts ---- */

uint64_t connect_pause_ns(const struct connect *c, unsigned int n)
{
	struct connect_law law = connect_law(c);
	const struct backoff_law pauses = { .base = law.min_pause,
					    .cap = law.max_pause };

	return backoff_pause(&pauses, n, loop_random(c->set->loop));
}

void connect_pause(struct connect *c)
{
	uint64_t ns = connect_pause_ns(c, ++c->failures);

	connect_move(c, CONNECT_PAUSED);
	/* A new time-out starts with the attempt that follows the pause. */
	c->give_up = 0;
	connect_look_at(c, connect_now(c) + ns);
}

void connect_failed(struct connect *c, int status, enum ulnet_cause cause)
{
	connect_pause(c);
	c->retries = 0;
	c->set->ops->failed(c, status, c->failures == 1);
	connect_tell(c, status, cause);
	connect_remember(c);
}

void connect_again(struct connect *c, uint64_t at, int status,
		   enum ulnet_cause cause)
{
	connect_move(c, CONNECT_AGAIN);
	c->status = status;
	c->cause = cause;
	if (at > connect_now(c))
		connect_look_at(c, at);
}

void connect_settle(struct connect *c)
{
	enum connect_state state = c->fsm.state;
	bool ready = state == CONNECT_IDLE ||
		     (state == CONNECT_AGAIN && c->next == TIME_NEVER);
	int rc;

	if (state == CONNECT_PAUSED)
		return;
	rc = c->set->ops->is_due(c);
	if (c->wanted && (!rc || rc == -EINPROGRESS))
		connect_wait(c);
	if (!ready || rc == -EAGAIN || rc == -EINPROGRESS)
		return;
	if (!rc) {
		connect_unremember(c);
		connect_wait(c);
		c->set->ops->begin(c);
		return;
	}
	if (state == CONNECT_AGAIN)
		connect_move(c, CONNECT_IDLE);
	if (rc == -ENOENT)
		connect_no_wait(c);
	else
		connect_tell(c, rc,
			     rc == -EHOSTUNREACH ? LNET_CAUSE_REMOTE_DROPPED
						 : LNET_CAUSE_LOCAL_NO_ROUTE);
}

/* ---- time ---- */

/* Those who wait for a connection have timed out. */
static void connect_give_up(struct connect *c)
{
	enum connect_state state = c->fsm.state;

	if (state == CONNECT_AGAIN) {
		connect_failed(c, c->status, c->cause);
	} else if (state == CONNECT_IDLE ||
		   (state == CONNECT_CONNECTING && c->set->ops->outlasts)) {
		c->give_up = 0;
		connect_arm(c);
		connect_tell(c, -ETIMEDOUT, LNET_CAUSE_REMOTE_DROPPED);
	} else {
		connect_failed(c, -ETIMEDOUT, LNET_CAUSE_REMOTE_DROPPED);
	}
}

/* If nobody waits, remembers the failure for a while, unless failures have been
 * reset since (a connection has lasted in between). */
static void connect_on_pause_over(struct connect *c)
{
	uint64_t memory = connect_law(c).memory;

	connect_move(c, CONNECT_IDLE);
	if (!c->failures)
		connect_unremember(c);
	else if (!c->wanted && memory != TIME_NEVER)
		connect_look_at(c, connect_now(c) + memory);
}

static void on_connect_timer(struct timer *t)
{
	struct connect *c = container_of(t, struct connect, timer);
	enum connect_state state = c->fsm.state;

	if (c->give_up && connect_now(c) >= c->give_up &&
	    state != CONNECT_PAUSED) {
		connect_give_up(c);
		return;
	}
	connect_look_at(c, TIME_NEVER);
	if (state == CONNECT_IDLE)
		connect_forget(c);
	else if (state == CONNECT_PAUSED)
		connect_on_pause_over(c);
	else if (state == CONNECT_AGAIN)
		c->set->ops->settle(c);
	else if (state == CONNECT_CONNECTING)
		c->set->ops->look(c);
}

void connect_retry_now(struct connect *c)
{
	if (c->fsm.state == CONNECT_PAUSED || c->fsm.state == CONNECT_AGAIN)
		connect_look_at(c, connect_now(c));
}

void connect_opened(struct connect *c)
{
	if (c->fsm.state != CONNECT_CONNECTING || c->set->ops->outlasts)
		connect_move(c, CONNECT_IDLE);
	connect_unremember(c);
}

void connect_reset(struct connect *c)
{
	connect_unremember(c);
	c->retries = c->failures = 0;
	c->give_up = 0;
	connect_move(c, CONNECT_IDLE);
}

/* ---- */

void connect_init(struct connect *c, struct connect_set *set)
{
	c->set = set;
	c->next = TIME_NEVER;
	list_init(&c->failed);
	timer_init(&c->timer, on_connect_timer);
}

void connect_set_init(struct connect_set *set, struct loop *loop,
		      const struct connect_ops *ops)
{
	set->loop = loop;
	set->ops = ops;
	list_init(&set->failed);
}
