/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy of connecting, with a fake LND. Times in ms. */
#include "lnd/connect.h"

#include <criterion/criterion.h>
#include <errno.h>

#define MS	 NSEC_PER_MSEC
#define PATIENCE 1000
#define PAUSE	 100
#define MEMORY	 500

struct rig {
	struct connect_ops ops;
	struct connect_set set;
	struct connect c;
	struct work work;
	bool settling;
	struct env_sim *world;
	int due;    /* result of is_due() if somebody waits */
	bool queue; /* begin() only queues */
	unsigned int begun, left, looked, told, failed, first;
	int status;
	enum ulnet_cause cause;
	uint64_t silent; /* ns */
};

static struct rig *rig_of(const struct connect *c)
{
	return container_of(c, struct rig, c);
}

static void on_law(const struct connect *c, struct connect_law *law)
{
	(void)c;
	*law = (struct connect_law){ PAUSE * MS, PAUSE * MS, PATIENCE * MS,
				     MEMORY * MS };
}

static int on_is_due(const struct connect *c)
{
	return c->wanted ? rig_of(c)->due : -ENOENT;
}

static void on_begin(struct connect *c)
{
	struct rig *r = rig_of(c);

	if (r->queue) {
		connect_move(c, CONNECT_QUEUED);
		return;
	}
	connect_move(c, CONNECT_CONNECTING);
	r->begun++;
	connect_look_at(c, connect_now(c) + 300 * MS);
}

static void on_leave(struct connect *c, enum connect_state to)
{
	rig_of(c)->left +=
		c->fsm.state == CONNECT_CONNECTING && to != CONNECT_CONNECTING;
}

static void on_look(struct connect *c)
{
	rig_of(c)->looked++;
	connect_tell_silent(c, 200 * MS);
}

static void on_failed(struct connect *c, int status, bool first)
{
	(void)status;
	rig_of(c)->failed++;
	rig_of(c)->first += first;
}

static void on_tell(struct connect *c, bool wanted, int status,
		    enum ulnet_cause cause)
{
	struct rig *r = rig_of(c);

	cr_expect(wanted || !status);
	r->told++;
	r->status = status;
	r->cause = cause;
}

static void on_silent(struct connect *c, uint64_t ns)
{
	rig_of(c)->silent = ns;
}

static void on_settle(struct connect *c)
{
	struct rig *r = rig_of(c);

	if (r->settling)
		return;
	r->settling = true;
	loop_defer(c->set->loop, &r->work);
}

static void on_work(struct work *w)
{
	struct rig *r = container_of(w, struct rig, work);

	r->settling = false;
	connect_settle(&r->c);
}

static void rig_up(struct rig *r, bool outlasts)
{
	struct loop *loop;
	struct env *env;

	*r = (struct rig){
		.ops = { on_law, on_is_due, on_begin, on_leave, on_look,
			 on_failed, on_tell, on_silent, on_settle, outlasts },
		.work = { .fn = on_work },
	};
	cr_assert_eq(env_sim_new(1, &r->world), 0);
	cr_assert_eq(env_sim_env(r->world, &env), 0);
	cr_assert_eq(loop_new(env, &loop), 0);
	connect_set_init(&r->set, loop, &r->ops);
	connect_init(&r->c, &r->set);
}

static void rig_down(struct rig *r)
{
	r->c.wanted = false;
	connect_reset(&r->c);
	while (env_sim_step(r->world, TIME_NEVER))
		;
	cr_expect(connect_is_idle(&r->c));
	cr_expect_eq(r->set.nfailed, 0);
	loop_free(r->set.loop);
	env_sim_free(r->world);
}

static void run(struct rig *r, uint64_t ms)
{
	uint64_t until = env_sim_now(r->world) + ms * MS;

	while (env_sim_step(r->world, until))
		;
}

static void expect_state(const struct rig *r, enum connect_state state)
{
	cr_expect_eq(r->c.fsm.state, state, "%s, not %s",
		     fsm_name(&r->c.fsm, connect_states),
		     connect_states[state].name);
}

Test(connect, opened)
{
	struct rig r;

	rig_up(&r, false);
	connect_want(&r.c);
	cr_expect_eq(r.begun, 0);
	run(&r, 1);
	expect_state(&r, CONNECT_CONNECTING);
	/* An LND whose attempts do not outlast those who wait. */
	connect_opened(&r.c);
	expect_state(&r, CONNECT_CONNECTING);
	connect_move(&r.c, CONNECT_IDLE);
	connect_tell(&r.c, 0, LNET_CAUSE_OK);
	cr_expect(r.told == 1 && !r.status && r.left == 1);
	run(&r, 10 * PATIENCE);
	cr_expect(r.begun == 1 && connect_is_idle(&r.c));
	rig_down(&r);
}

Test(connect, failures_are_remembered)
{
	struct rig r;

	rig_up(&r, false);
	connect_want(&r.c);
	run(&r, 1);
	connect_failed(&r.c, -ECONNREFUSED, LNET_CAUSE_REMOTE_DROPPED);
	expect_state(&r, CONNECT_PAUSED);
	cr_expect(r.told == 1 && r.status == -ECONNREFUSED);
	cr_expect(r.failed == 1 && r.first == 1 && r.set.nfailed == 1);
	cr_expect(connect_paused_until(&r.c) > connect_now(&r.c));
	cr_expect(connect_paused_until(&r.c) <= connect_now(&r.c) + PAUSE * MS);
	/* A new message waits for the end of the pause. */
	connect_want(&r.c);
	cr_expect_eq(r.set.nfailed, 0);
	run(&r, PAUSE + 1);
	cr_expect_eq(r.begun, 2);
	cr_expect_eq(connect_paused_until(&r.c), 0);
	connect_failed(&r.c, -ECONNREFUSED, LNET_CAUSE_REMOTE_DROPPED);
	cr_expect(r.failed == 2 && r.first == 1 && r.c.failures == 2);
	run(&r, PAUSE + MEMORY / 2);
	expect_state(&r, CONNECT_IDLE);
	cr_expect(!connect_is_idle(&r.c) && r.set.nfailed == 1);
	run(&r, MEMORY);
	cr_expect(connect_is_idle(&r.c) && !r.c.failures && !r.set.nfailed);
	rig_down(&r);
}

/* The time-out of those who wait, in each state. */
Test(connect, timeout)
{
	static const struct {
		int due;
		bool queue, outlasts, again;
		enum connect_state before, after;
		int status;
	} cases[] = {
		{ 0, false, false, false, CONNECT_CONNECTING, CONNECT_PAUSED,
		  -ETIMEDOUT },
		{ 0, false, true, false, CONNECT_CONNECTING, CONNECT_CONNECTING,
		  -ETIMEDOUT },
		{ 0, true, false, false, CONNECT_QUEUED, CONNECT_PAUSED,
		  -ETIMEDOUT },
		{ 0, false, false, true, CONNECT_AGAIN, CONNECT_PAUSED,
		  -EALREADY },
		{ -EINPROGRESS, false, false, false, CONNECT_IDLE, CONNECT_IDLE,
		  -ETIMEDOUT },
		{ -EAGAIN, false, false, false, CONNECT_IDLE, CONNECT_IDLE, 0 },
		{ -ENETDOWN, false, false, false, CONNECT_IDLE, CONNECT_IDLE,
		  -ENETDOWN },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig r;

		rig_up(&r, cases[i].outlasts);
		r.due = cases[i].due;
		r.queue = cases[i].queue;
		connect_want(&r.c);
		run(&r, 1);
		if (cases[i].again)
			connect_again(&r.c, 10 * PATIENCE * MS, -EALREADY,
				      LNET_CAUSE_REMOTE_DROPPED);
		expect_state(&r, cases[i].before);
		run(&r, PATIENCE);
		expect_state(&r, cases[i].after);
		cr_expect_eq(r.told, cases[i].status != 0, "case %u", i);
		cr_expect_eq(r.status, cases[i].status, "case %u", i);
		cr_expect_eq(r.c.wanted, cases[i].status == 0, "case %u", i);
		rig_down(&r);
	}
}

Test(connect, asked_again)
{
	struct rig r;

	rig_up(&r, false);
	connect_want(&r.c);
	run(&r, 1);
	connect_again(&r.c, 0, -EALREADY, LNET_CAUSE_REMOTE_DROPPED);
	run(&r, 1);
	cr_expect_eq(r.begun, 2);
	connect_again(&r.c, connect_now(&r.c) + 200 * MS, -EALREADY,
		      LNET_CAUSE_REMOTE_DROPPED);
	run(&r, 100);
	cr_expect_eq(r.begun, 2);
	/* The link is back. */
	connect_retry_now(&r.c);
	run(&r, 1);
	cr_expect_eq(r.begun, 3);
	cr_expect_eq(r.told, 0);
	rig_down(&r);
}

Test(connect, silence_is_told_once)
{
	struct rig r;

	rig_up(&r, false);
	connect_want(&r.c);
	run(&r, 299);
	cr_expect_eq(r.looked, 0);
	run(&r, 2);
	cr_expect(r.looked == 1 && r.silent == 300 * MS);
	r.silent = 0;
	connect_tell_silent(&r.c, 0);
	cr_expect_eq(r.silent, 0);
	rig_down(&r);
}
