/* SPDX-License-Identifier: BSD-3-Clause */
/* Work items, timers and layers of programs on a node. Threads are tested in
 * tests/thread/work_thread.c. */
#include <criterion/criterion.h>
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include "base/log.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/loop.h"

/* us: a node that sleeps although there is something to do is killed by the
 * time limit of make */
#define HOUR UINT64_C(3600000000)

#define NOTES_MAX 64

static struct {
	unsigned int n;
	int what[NOTES_MAX];
	uint64_t at[NOTES_MAX];
} notes;

struct item {
	struct ulnet_work work;
	struct ulnet_timer timer;
	struct lnet *node;
	unsigned int cpt;
	int name;
	unsigned int again;
};

static void note(const struct item *it)
{
	cr_assert_lt(notes.n, NOTES_MAX);
	cr_assert(lnet_cpt_owned(it->node, it->cpt));
	cr_assert_eq(lnet_cpt_current(it->node), (int)it->cpt);
	notes.at[notes.n] = lnet_now(it->node, it->cpt);
	cr_assert_eq(lnet_turn(it->node, it->cpt), notes.at[notes.n]);
	notes.what[notes.n++] = it->name;
}

static void on_work(struct ulnet_work *work)
{
	struct item *it = container_of(work, struct item, work);

	note(it);
	if (it->again) {
		it->again--;
		lnet_defer(it->node, it->cpt, &it->work);
	}
}

static void on_timer(struct ulnet_timer *timer)
{
	note(container_of(timer, struct item, timer));
}

static struct item item(struct lnet *node, unsigned int cpt, int name)
{
	struct item it = {
		.work.fn = on_work, .node = node, .cpt = cpt, .name = name
	};

	return it;
}

/* Asserts that exactly these items have run, in this order. The list ends with
 * 0. */
static void noted(int first, ...)
{
	unsigned int i = 0;
	va_list ap;

	va_start(ap, first);
	for (int what = first; what; what = va_arg(ap, int), i++) {
		cr_assert_lt(i, notes.n, "%d is missing", what);
		cr_assert_eq(notes.what[i], what, "%d instead of %d",
			     notes.what[i], what);
	}
	va_end(ap);
	cr_assert_eq(notes.n, i, "%u instead of %u", notes.n, i);
}

static struct lnet *node_with(enum ulnet_run run, struct ev_loop *ev)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = run;
	conf.ev = ev;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	return node;
}

/* ---- outside of any turn ---- */

static void poll_does_not_sleep(uint64_t timeout)
{
	struct lnet *node = node_with(LNET_RUN_POLL, NULL);
	struct item a = item(node, 0, 1), b = item(node, 0, 2);
	struct item c = item(node, 0, 3);

	cr_assert(!lnet_is_virtual(node));
	cr_assert(lnet_cpt_owned(node, 0));
	cr_assert_eq(lnet_cpt_current(node), 0);
	for (unsigned int round = 1; round <= 3; round++) {
		notes.n = 0;
		lnet_defer(node, 0, &a.work);
		lnet_defer(node, 0, &b.work);
		cr_assert_eq(notes.n, 0, "not inside the call");
		cr_assert_eq(lnet_poll(node, timeout), 0);
		noted(1, 2, 0);
		lnet_post(node, 0, &c.work);
		cr_assert_eq(notes.n, 2, "not inside the call");
		cr_assert_eq(lnet_poll(node, timeout), 0);
		noted(1, 2, 3, 0);
	}
	lnet_close(node);
}

Test(work, poll_does_not_sleep_on_work)
{
	poll_does_not_sleep(HOUR);
}

Test(work, poll_without_waiting_does_work)
{
	poll_does_not_sleep(0);
}

/* A timer that is cancelled does not make the loop sleep on other work. */
Test(work, poll_after_a_cancelled_timer)
{
	struct lnet *node = node_with(LNET_RUN_POLL, NULL);
	struct item a = item(node, 0, 1), b = item(node, 0, 2);

	cr_assert_eq(lnet_turn(node, 0), 0);
	lnet_timer_init(&b.timer, on_timer);
	lnet_timer_arm(node, 0, &b.timer, lnet_now(node, 0));
	lnet_defer(node, 0, &a.work);
	lnet_timer_cancel(node, 0, &b.timer);
	cr_assert_eq(lnet_poll(node, HOUR), 0);
	noted(1, 0);
	lnet_close(node);
}

/* Posts itself again, as work does that goes from CPT to CPT and back. */
static void post_again(struct ulnet_work *work)
{
	struct item *it = container_of(work, struct item, work);

	note(it);
	if (it->again--)
		lnet_post(it->node, it->cpt, &it->work);
}

/* Work that is left when the node closes is done, and work that this posts,
 * too. */
Test(work, left_at_close)
{
	static const enum ulnet_run runs[] = { LNET_RUN_POLL, LNET_RUN_THREADS,
					       LNET_RUN_SHARED };

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct lnet *node = node_with(runs[i], NULL);
		struct item it = item(node, 0, 1);

		notes.n = 0;
		it.work.fn = post_again;
		it.again = NOTES_MAX - 1;
		lnet_post(node, 0, &it.work);
		lnet_close(node);
		cr_assert_eq(notes.n, NOTES_MAX);
	}
}

static void never(struct ev_loop *ev, ev_timer *t, int revents)
{
	(void)ev;
	(void)t;
	(void)revents;
	cr_assert_fail("slept for an hour");
}

Test(work, ev_loop_does_not_sleep_on_work)
{
	struct ev_loop *ev = ev_loop_new(0);
	struct lnet *node = node_with(LNET_RUN_EV, ev);
	struct item a = item(node, 0, 1), b = item(node, 0, 2);
	ev_timer hour;

	ev_timer_init(&hour, never, 3600, 0);
	ev_timer_start(ev, &hour);
	for (unsigned int round = 1; round <= 3; round++) {
		notes.n = 0;
		lnet_defer(node, 0, &a.work);
		ev_run(ev, EVRUN_ONCE);
		noted(1, 0);
		lnet_post(node, 0, &b.work);
		while (notes.n < 2)
			ev_run(ev, EVRUN_ONCE);
		noted(1, 2, 0);
	}
	ev_timer_stop(ev, &hour);
	lnet_close(node);
	ev_loop_destroy(ev);
}

/* ---- virtual time ---- */

static int start_work(void *arg)
{
	struct item *it = arg;

	/* Posted work runs in the next turn, deferred work at the end of this
	 * one. */
	lnet_post(it[0].node, it[0].cpt, &it[0].work);
	lnet_defer(it[1].node, it[1].cpt, &it[1].work);
	lnet_defer(it[2].node, it[2].cpt, &it[2].work);
	return 0;
}

Test(work, in_order)
{
	struct lnet_sim *sim = cluster_with(2, 2, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct item it[] = { item(node, 1, 1), item(node, 1, 2),
			     item(node, 1, 3) };

	cr_assert(lnet_is_virtual(node));
	it[1].again = 2;
	cr_assert_eq(lnet_call(node, 1, start_work, it), 0);
	cr_assert_eq(notes.n, 0);
	lnet_sim_run(sim, 0);
	noted(1, 2, 3, 2, 2, 0);
	cluster_end(sim);
}

Test(work, timers_by_time)
{
	static const uint64_t at[] = { 5 * MSEC, 1, 5 * MSEC, MSEC, 7, 0 };
	struct lnet_sim *sim = cluster_with(2, 2, NULL);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct item it[ARRAY_SIZE(at)];

	for (unsigned int i = 0; i < ARRAY_SIZE(at); i++) {
		it[i] = item(node, i % 2, (int)i + 1);
		lnet_timer_init(&it[i].timer, on_timer);
		cr_assert(!lnet_timer_armed(&it[i].timer));
		lnet_timer_cancel(node, it[i].cpt, &it[i].timer);
		lnet_timer_arm(node, it[i].cpt, &it[i].timer, at[i]);
		cr_assert(lnet_timer_armed(&it[i].timer));
	}
	/* Number 5 is cancelled, and number 1 comes after number 3. */
	lnet_timer_cancel(node, it[4].cpt, &it[4].timer);
	cr_assert(!lnet_timer_armed(&it[4].timer));
	lnet_timer_arm(node, it[0].cpt, &it[0].timer, at[0]);
	lnet_sim_run_all(sim);
	noted(6, 2, 4, 3, 1, 0);
	for (unsigned int i = 0; i < notes.n; i++)
		cr_assert_eq(notes.at[i], at[notes.what[i] - 1]);
	cr_assert_eq(lnet_now(node, 0), 5 * MSEC);
	cr_assert(!lnet_timer_armed(&it[0].timer));
	cluster_end(sim);
}

Test(work, randomness_comes_from_the_seed)
{
	uint8_t bytes[2][40];

	for (unsigned int i = 0; i < 2; i++) {
		struct lnet_sim *sim = cluster(1);

		lnet_random(lnet_sim_node(sim, 0), 0, bytes[i],
			    sizeof(bytes[i]));
		cluster_end(sim);
	}
	cr_assert_arr_eq(bytes[0], bytes[1], sizeof(bytes[0]));
	cr_assert_neq(memcmp(bytes[0], bytes[0] + 20, 20), 0);
}

/* ---- misuse ---- */

static int arm_elsewhere(void *arg)
{
	struct item *it = arg;

	lnet_timer_arm(it->node, 1 - it->cpt, &it->timer, 0);
	return 0;
}

Test(work, timers_are_the_owners, .signal = SIGABRT)
{
	struct lnet_sim *sim = cluster_with(1, 2, NULL);
	struct item it = item(lnet_sim_node(sim, 0), 0, 1);

	lnet_timer_init(&it.timer, on_timer);
	lnet_call(it.node, 0, arm_elsewhere, &it);
}

Test(work, armed_timer_at_close, .signal = SIGABRT)
{
	struct lnet *node = node_with(LNET_RUN_POLL, NULL);
	struct item it = item(node, 0, 1);

	lnet_timer_init(&it.timer, on_timer);
	lnet_timer_arm(node, 0, &it.timer, lnet_now(node, 0) + HOUR * 1000);
	lnet_close(node);
}

/* ---- layers ---- */

struct tower {
	struct ulnet_layer layer;
	struct lnet *node;
	struct item *item;
	bool worked; /* the work of @item has run */
	int name;
	bool mute;    /* expected layer.mute in close() */
	void *memory; /* in use by LNet */
	unsigned int linked, ended, others;
	struct ulnet_md_handle md[2];
};

/* Handler of the layer's own MDs. */
static void tower_event(const struct ulnet_event *ev)
{
	struct tower *t = ev->user_ptr;

	t->ended += ev->terminal;
	t->linked -= ev->unlinked;
}

/* Handler of a user's MD. */
static void user_event(const struct ulnet_event *ev)
{
	((struct tower *)ev->user_ptr)->others++;
}

/* Frees all that the layer has; AddressSanitizer finds whoever uses it later.
 */
static void tower_close(struct ulnet_layer *layer)
{
	struct tower *t = container_of(layer, struct tower, layer);

	notes.what[notes.n++] = t->name;
	cr_assert_eq(layer->mute, t->mute);
	if (t->item)
		lnet_timer_cancel(t->item->node, t->item->cpt, &t->item->timer);
	/* The operation of the layer's MD has ended already. */
	cr_assert_eq(t->ended, t->linked ? 1 : 0);
	for (unsigned int i = 0; t->memory && i < 2; i++)
		LNetMDUnlink(t->md[i]);
	while (t->linked || (t->item && !t->worked))
		cr_assert_eq(lnet_poll(t->node, 0), 0, "it takes no time");
	notes.what[notes.n++] = -t->name;
	cr_assert_eq(t->others, 0);
	lnet_layer_del(t->node, layer);
	free(t->memory);
	free(t->item);
	free(t);
}

static struct tower *tower(struct lnet *node, int name, bool mute)
{
	struct tower *t = calloc(1, sizeof(*t));

	cr_assert_not_null(t);
	t->layer.close = tower_close;
	t->node = node;
	t->name = name;
	t->mute = mute;
	lnet_layer_add(node, &t->layer);
	cr_assert_not(t->layer.mute);
	cr_assert_eq(lnet_layer_find(node, tower_close), &t->layer);
	return t;
}

static struct tower *high, *low;

static void tower_work(struct ulnet_work *work)
{
	struct item *it = container_of(work, struct item, work);

	(it == low->item ? low : high)->worked = true;
}

/* Gives the layer an item on CPT @cpt with a timer and work. */
static void tower_item(struct tower *t, struct lnet *node, unsigned int cpt)
{
	t->item = calloc(1, sizeof(*t->item));
	cr_assert_not_null(t->item);
	*t->item = item(node, cpt, 1000 + t->name);
	t->item->work.fn = tower_work;
	lnet_timer_init(&t->item->timer, on_timer);
	lnet_timer_arm(node, cpt, &t->item->timer, MSEC);
	if (cpt)
		lnet_post(node, cpt, &t->item->work);
	else
		lnet_defer(node, cpt, &t->item->work);
}

static void put(struct lnet *node, struct ulnet_md *md, struct ulnet_id to,
		struct ulnet_md_handle *h)
{
	cr_assert_eq(LNetMDBind(node, md, LNET_UNLINK, h), 0);
	cr_assert_eq(LNetPut(LNET_NID_ANY, *h, LNET_ACK_REQ, to, 9, 1, 0, 0),
		     0);
}

/* Makes a PUT from, and a buffer in, the layer's own memory, and a PUT of a
 * user, who hears nothing if the node crashes. */
static void tower_lend(struct tower *t, struct lnet *node, struct ulnet_id to)
{
	struct ulnet_md md = { .length = 1000,
			       .threshold = LNET_MD_THRESH_INF,
			       .options = LNET_MD_OP_PUT | LNET_MD_OF_LAYER,
			       .user_ptr = t,
			       .handler = tower_event };
	struct ulnet_md_handle users;
	struct ulnet_me_handle me;

	t->memory = calloc(1, md.length);
	cr_assert_not_null(t->memory);
	md.start = t->memory;
	cr_assert_eq(LNetMEAttach(node, 9, ANY_ID, 1, 0, LNET_UNLINK,
				  LNET_INS_AFTER, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &md, LNET_UNLINK, &t->md[0]), 0);
	md.options = LNET_MD_OF_LAYER;
	put(node, &md, to, &t->md[1]);
	t->linked = 2;
	md.options = 0;
	md.handler = user_event;
	put(node, &md, to, &users);
}

Test(layer, closed_by_a_crash)
{
	struct lnet_sim *sim = cluster_with(3, 2, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct tower *other, *finished;

	low = tower(node, 1, true);
	high = tower(node, 2, true);
	other = tower(lnet_sim_node(sim, 1), 3, false);
	finished = tower(node, 4, true);
	tower_item(low, node, 0);
	tower_item(high, node, 1);
	tower_lend(low, node, nth_id(1));
	lnet_layer_del(node, &finished->layer);
	free(finished);
	cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	cr_assert_eq(lnet_sim_now(sim), 0);
	noted(2, -2, 1, -1, 0);
	lnet_sim_run_all(sim);
	noted(2, -2, 1, -1, 0);
	cr_assert_not(other->layer.mute);
	cluster_end(sim);
	noted(2, -2, 1, -1, 3, -3, 0);
}

static void stay(struct ulnet_layer *layer)
{
	(void)layer;
}

Test(layer, ends_before_its_node, .signal = SIGABRT)
{
	struct lnet *node = node_with(LNET_RUN_POLL, NULL);

	tower(node, 1, false)->layer.close = stay;
	lnet_close(node);
}

/* ---- the log ---- */

struct line {
	unsigned int n;
	int level;
	char text[200];
};

static void on_line(int level, const char *line, void *arg)
{
	struct line *l = arg;

	l->n++;
	l->level = level;
	snprintf(l->text, sizeof(l->text), "%s", line);
}

Test(log, of_programs)
{
	struct line l = { .n = 0 };

	lnet_log_set(LNET_LOG_INFO, on_line, &l);
	cr_assert(lnet_log_on(LNET_LOG_INFO));
	cr_assert(!lnet_log_on(LNET_LOG_DEBUG));
	lnet_log(LNET_LOG_DEBUG, "rpc", "silent");
	cr_assert_eq(l.n, 0);
	lnet_log(LNET_LOG_INFO, "rpc", "%s: %d\n", "import", 7);
	cr_assert_eq(l.n, 1);
	cr_assert_eq(l.level, LNET_LOG_INFO);
	cr_assert_str_eq(l.text, "rpc: import: 7?");
	/* the level alone changes, and the function stays */
	lnet_log_level_set(LNET_LOG_ERR);
	lnet_log(LNET_LOG_WARN, "rpc", "silent");
	cr_assert_eq(l.n, 1);
	lnet_log(LNET_LOG_ERR, "rpc", "said");
	cr_assert_eq(l.n, 2);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
}

/* Each name is read as the level that it was written for, and nothing else. */
Test(log, names_of_levels)
{
	static const char *const none[] = { "", "wa", "warning", "WARN", "1" };
	enum ulnet_log_level level;

	for (int i = LNET_LOG_ERR; i <= LNET_LOG_DEBUG; i++) {
		const char *name = lnet_log_level_name((enum ulnet_log_level)i);

		cr_assert_eq(lnet_log_level_parse(name, &level), 0);
		cr_assert_eq((int)level, i);
	}
	level = LNET_LOG_INFO;
	for (unsigned int i = 0; i < ARRAY_SIZE(none); i++)
		cr_assert_eq(lnet_log_level_parse(none[i], &level), -EINVAL);
	cr_assert_eq(level, LNET_LOG_INFO);
	cr_assert_null(lnet_log_level_name(
		(enum ulnet_log_level)(LNET_LOG_DEBUG + 1)));
}

/* ---- levels of subsystems ---- */

/* Asserts that the levels in force are @want. */
static void levels_are(const char *want)
{
	char text[LNET_LOG_LEVELS];

	cr_expect_str_eq(lnet_log_levels(text, sizeof(text)), want);
}

Test(log, levels_as_a_text)
{
	static const struct {
		const char *text, *then;
	} cases[] = {
		{ "info", "info" },
		{ "route=debug", "info,route=debug" },
		{ "rpc=err,ni=info", "info,route=debug,rpc=err" },
		{ "route=info", "info,rpc=err" },
		{ "warn,route=debug,rpc=warn", "warn,route=debug" },
		{ "debug", "debug" },
	};
	char all[LNET_LOG_LEVELS] = "err";

	levels_are("warn");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cr_assert_eq(lnet_log_levels_check(cases[i].text, NULL), 0);
		cr_assert_eq(lnet_log_levels_set(cases[i].text, NULL), 0);
		levels_are(cases[i].then);
		/* What is shown can be set again. */
		cr_assert_eq(lnet_log_levels_set("rpc=debug,ni=err", NULL), 0);
		cr_assert_eq(lnet_log_levels_set(cases[i].then, NULL), 0);
		levels_are(cases[i].then);
	}
	/* The longest text fits. */
	for (unsigned int i = 0; i < LOG_SUBSYSTEMS; i++) {
		size_t len = strlen(all);

		snprintf(all + len, sizeof(all) - len, ",%s=debug",
			 log_subsystems[i]);
	}
	cr_assert_eq(lnet_log_levels_set(all, NULL), 0);
	levels_are(all);
	lnet_log_level_set(LNET_LOG_WARN);
	levels_are("warn");
}

Test(log, levels_that_are_refused)
{
	static const struct {
		const char *text, *what;
	} cases[] = {
		{ "", "err, warn, info or debug is expected" },
		{ "loud", "err, warn, info or debug is expected" },
		{ "warning", "err, warn, info or debug is expected" },
		{ "warn,", "err, warn, info or debug is expected" },
		{ "route", "err, warn, info or debug is expected" },
		{ "route=", "route: err, warn, info or debug is expected" },
		{ "route=loud", "route: err, warn, info or debug is expected" },
		{ "route=debug,route=info", "route comes twice" },
		{ "route=debug,info", "'info': a level for all comes first" },
		{ "=debug",
		  "'' is no subsystem: there are config, control, discovery, "
		  "fault, limits, link, loop, names, ni, o2iblnd, open, "
		  "parse, ping, portal, route, rpc, setting, shmlnd, "
		  "socklnd, store" },
		{ "info,rote=debug",
		  "'rote' is no subsystem: there are config, control, "
		  "discovery, fault, limits, link, loop, names, ni, o2iblnd, "
		  "open, parse, ping, portal, route, rpc, setting, shmlnd, "
		  "socklnd, store" },
		{ "a-name-that-is-longer-than-any-of-the-names=debug",
		  "'a-name-that-is-longer-than-any-o' is no subsystem: there "
		  "are config, control, discovery, fault, limits, link, loop, "
		  "names, ni, o2iblnd, open, parse, ping, portal, route, rpc, "
		  "setting, shmlnd, socklnd, store" },
	};

	cr_assert_eq(lnet_log_levels_set("warn,rpc=info", NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ulnet_conf_error err = { "" };

		cr_expect_eq(lnet_log_levels_set(cases[i].text, &err), -EINVAL,
			     "%s", cases[i].text);
		cr_expect_str_eq(err.what, cases[i].what);
		cr_expect_eq(lnet_log_levels_check(cases[i].text, NULL),
			     -EINVAL);
		levels_are("warn,rpc=info");
	}
}

Test(log, a_subsystem_of_its_own)
{
	struct line l = { .n = 0 };

	lnet_log_set(LNET_LOG_WARN, on_line, &l);
	cr_assert_eq(lnet_log_levels_set("rpc=debug", NULL), 0);
	cr_assert(!lnet_log_on(LNET_LOG_INFO));
	cr_assert(lnet_log_on_for(LNET_LOG_DEBUG, "rpc"));
	cr_assert(!lnet_log_on_for(LNET_LOG_INFO, "route"));
	cr_assert(!lnet_log_on_for(LNET_LOG_INFO, "store"));
	lnet_log(LNET_LOG_DEBUG, "rpc", "said");
	lnet_log(LNET_LOG_INFO, "route", "silent");
	lnet_log(LNET_LOG_INFO, "store", "silent");
	cr_assert_eq(l.n, 1);
	cr_assert_str_eq(l.text, "rpc: said");
}
