/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings: their list, their ranges, and their effects. */
#include <criterion/criterion.h>
#include <errno.h>
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/lnet/injector.h"

#define PORTAL 5
#define BITS   0x77
#define SECOND UINT64_C(1000000) /* us */

static struct seen seen, sent;
static uint8_t memory[4096], source[4096];

static struct ulnet_setting setting(struct lnet *node, const char *name)
{
	struct ulnet_setting s[20];
	int n = lnet_settings(node, s, ARRAY_SIZE(s));

	cr_assert_leq(n, (int)ARRAY_SIZE(s));
	for (int i = 0; i < n; i++)
		if (!strcmp(s[i].name, name))
			return s[i];
	cr_assert_fail("no setting %s", name);
	return s[0];
}

static int64_t value(struct lnet *node, const char *name)
{
	return setting(node, name).value;
}

/* Names and order are those of "global show". */
Test(setting, list)
{
	static const struct {
		const char *name;
		int64_t value, min, max;
		bool derived;
	} want[] = {
		{ "numa_range", 0, 0, INT32_MAX, false },
		{ "max_interfaces", 200, 1, 40000, false },
		{ "discovery", 0, 0, 2, false },
		{ "drop_asym_route", 0, 0, 1, false },
		{ "retry_count", 2, 0, INT32_MAX - 1, false },
		{ "transaction_timeout", 50, 1, INT32_MAX, false },
		{ "health_sensitivity", 100, 0, 1000, false },
		{ "recovery_interval", 1, 1, 1, false },
		{ "router_sensitivity", 100, 0, 100, false },
		{ "lnd_timeout", 16, 1, INT32_MAX, true },
		{ "response_tracking", 3, 0, 3, false },
		{ "recovery_limit", 0, 0, INT32_MAX, false },
		{ "max_recovery_ping_interval", 900, 1, INT32_MAX, false },
		{ "health_gain", 0, 0, 1000, false },
		{ "busy_poll", 0, 0, 1000000, false },
		{ "wait_poll", 50, 0, 1000000, false },
		{ "large_nids", 0, 0, 1, false },
		{ "alive_router_check_interval", 60, 1, INT32_MAX, false },
	};
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_setting s[20];

	/* Simulated nodes have another limit, so that simulations end. */
	cr_assert_eq(lnet_setting_set(node, "recovery_limit", 0), 0);
	cr_assert_eq(lnet_settings(node, NULL, 0), (int)ARRAY_SIZE(want));
	memset(s, 0, sizeof(s));
	cr_assert_eq(lnet_settings(node, s, 2), (int)ARRAY_SIZE(want));
	cr_assert_not_null(s[1].name);
	cr_assert_null(s[2].name);
	cr_assert_eq(lnet_settings(node, s, ARRAY_SIZE(s)),
		     (int)ARRAY_SIZE(want));
	cr_assert_null(s[ARRAY_SIZE(want)].name);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		cr_assert_str_eq(s[i].name, want[i].name);
		cr_assert_eq(s[i].value, want[i].value, "%s", s[i].name);
		cr_assert_eq(s[i].def, want[i].value, "%s", s[i].name);
		cr_assert_eq(s[i].min, want[i].min, "%s", s[i].name);
		cr_assert_eq(s[i].max, want[i].max, "%s", s[i].name);
		cr_assert_eq(s[i].derived, want[i].derived, "%s", s[i].name);
		cr_assert_gt(strlen(s[i].help), 5);
		cr_assert(!strcmp(s[i].unit, "s") || !strcmp(s[i].unit, "us") ||
			  !strcmp(s[i].unit, ""));
	}
	cluster_end(sim);
}

/* Each default can be set, and no setting can be set beyond its range. */
Test(setting, ranges)
{
	static const struct {
		const char *name;
		int64_t value;
		int rc;
	} cases[] = {
		{ "numa_range", 10, 0 },
		{ "numa_range", INT32_MAX, 0 },
		{ "numa_range", -1, -EINVAL },
		{ "max_interfaces", 0, -EINVAL },
		{ "max_interfaces", 1, 0 },
		{ "max_interfaces", 40000, 0 },
		{ "max_interfaces", 40001, -EINVAL },
		{ "discovery", 0, 0 },
		{ "discovery", 2, 0 },
		{ "discovery", 3, -EINVAL },
		{ "discovery", -1, -EINVAL },
		{ "drop_asym_route", 1, 0 },
		{ "drop_asym_route", 2, -EINVAL },
		{ "retry_count", -1, -EINVAL },
		{ "retry_count", INT32_MAX, -EINVAL },
		{ "retry_count", INT64_C(1) << 32, -EINVAL },
		{ "transaction_timeout", 0, -EINVAL },
		{ "transaction_timeout", INT32_MAX, 0 },
		{ "transaction_timeout", INT64_C(1) + INT32_MAX, -EINVAL },
		{ "transaction_timeout", INT64_MIN, -EINVAL },
		{ "health_sensitivity", 0, 0 },
		{ "health_sensitivity", 1000, 0 },
		{ "health_sensitivity", 1001, -EINVAL },
		{ "health_sensitivity", -1, -EINVAL },
		{ "health_gain", 1, 0 },
		{ "health_gain", 1001, -EINVAL },
		{ "recovery_interval", 5, -EOPNOTSUPP },
		{ "recovery_interval", 0, -EINVAL },
		{ "router_sensitivity", 50, 0 },
		{ "router_sensitivity", 101, -EINVAL },
		{ "lnd_timeout", 16, -EPERM },
		{ "lnd_timeout", -1, -EPERM },
		{ "response_tracking", 4, -EINVAL },
		{ "response_tracking", 0, 0 },
		{ "recovery_limit", 1, 0 },
		{ "max_recovery_ping_interval", 60, 0 },
		{ "max_recovery_ping_interval", 0, -EINVAL },
		{ "transaction_timeou", 5, -ENOENT },
		{ "", 5, -ENOENT },
	};
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_setting all[20];
	int n;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cr_assert_eq(
			lnet_setting_set(node, cases[i].name, cases[i].value),
			cases[i].rc, "%s %lld", cases[i].name,
			(long long)cases[i].value);
		if (!cases[i].rc)
			cr_assert_eq(value(node, cases[i].name),
				     cases[i].value);
	}
	n = lnet_settings(node, all, ARRAY_SIZE(all));
	for (int i = 0; i < n; i++)
		cr_assert_eq(lnet_setting_set(node, all[i].name, all[i].def),
			     all[i].derived ? -EPERM : 0);
	for (int i = 0; i < n; i++)
		cr_assert_eq(value(node, all[i].name), all[i].def);
	cluster_end(sim);
}

/* ---- timeouts ---- */

Test(setting, timeouts_depend_on_each_other)
{
	struct lnet_sim *sim = cluster(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_ni_info info;

	cr_assert_eq(lnet_setting_set(node, "transaction_timeout", 2), -EINVAL);
	cr_assert_eq(lnet_setting_set(node, "retry_count", 50), -EINVAL);
	cr_assert_eq(value(node, "transaction_timeout"), 50);
	cr_assert_eq(value(node, "retry_count"), 2);

	cr_assert_eq(lnet_setting_set(node, "retry_count", 49), 0);
	cr_assert_eq(value(node, "lnd_timeout"), 1);
	cr_assert_eq(lnet_setting_set(node, "retry_count", 0), 0);
	cr_assert_eq(value(node, "lnd_timeout"), 49);
	cr_assert_eq(lnet_setting_set(node, "transaction_timeout", 1), 0);
	cr_assert_eq(value(node, "lnd_timeout"), 1);
	/* These values are the same in a kernel node. */
	cr_assert_eq(lnet_setting_set(node, "transaction_timeout", 150), 0);
	cr_assert_eq(lnet_setting_set(node, "retry_count", 2), 0);
	cr_assert_eq(value(node, "lnd_timeout"), 49);
	cr_assert_eq(lnet_ni_info(node, 1, &info), 0);
	cr_assert_eq(info.lnd_timeout, 49 * SECOND);
	cluster_end(sim);
}

static void check_conf_timeout(uint64_t us, int64_t sec, int64_t retries)
{
	struct ulnet_conf conf;
	struct lnet_sim *sim;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.transaction_timeout = us;
	sim = cluster_with(1, 1, &conf);
	node = lnet_sim_node(sim, 0);
	cr_assert_eq(value(node, "transaction_timeout"), sec);
	cr_assert_eq(value(node, "retry_count"), retries);
	cr_assert_geq(value(node, "lnd_timeout"), 1);
	/* The values shown can be set. */
	cr_assert_eq(lnet_setting_set(node, "retry_count", retries), 0);
	cr_assert_eq(lnet_setting_set(node, "transaction_timeout", sec), 0);
	cluster_end(sim);
}

Test(setting, timeout_of_the_configuration)
{
	check_conf_timeout(1, 1, 0);
	check_conf_timeout(SECOND, 1, 0);
	check_conf_timeout(SECOND + 1, 2, 1);
	check_conf_timeout(2500000, 3, 2);
	check_conf_timeout(7 * SECOND, 7, 2);
	check_conf_timeout(SECOND * INT32_MAX, INT32_MAX, 2);
}

/* Returns a cluster in which node 0 receives, and its answers to node 1 are
 * lost. */
static struct lnet_sim *deaf_sender(void)
{
	const struct ulnet_sim_link lossy = { .loss = LNET_SIM_ALWAYS };
	struct lnet_sim *sim = cluster(2);
	struct ulnet_md umd = md_of(
		memory, sizeof(memory),
		LNET_MD_OP_PUT | LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE, &seen);

	seen.n = 0;
	sent.n = 0;
	post_md(lnet_sim_node(sim, 0), PORTAL, BITS, &umd);
	link_set(sim, 0, 1, &lossy);
	return sim;
}

static struct ulnet_md_handle ask(struct lnet_sim *sim, bool get,
				  uint32_t options)
{
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_md umd = md_of(source, 100, options, &sent);
	struct ulnet_md_handle md;

	sent.n = 0;
	umd.threshold = 2;
	md = bind_md(node, &umd);
	cr_assert_eq(get ? LNetGet(LNET_NID_ANY, md, nth_id(0), PORTAL, BITS, 0)
			 : LNetPut(LNET_NID_ANY, md, LNET_ACK_REQ, nth_id(0),
				   PORTAL, BITS, 0, 0),
		     0);
	return md;
}

/* Operations that begin after a change have the new deadline. */
Test(setting, transaction_timeout)
{
	struct lnet_sim *sim = deaf_sender();
	struct lnet *node = lnet_sim_node(sim, 1);

	cr_assert_eq(lnet_setting_set(node, "transaction_timeout", 7), 0);
	ask(sim, false, 0);
	cr_assert_eq(lnet_setting_set(node, "transaction_timeout", 3), 0);
	lnet_sim_run_all(sim);
	seen_end(&sent, LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_RESPONSE_TIMEOUT);
	cr_assert_eq(sent.ev[sent.n - 1].elapsed, 7 * SECOND);
	ask(sim, true, 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.ev[sent.n - 1].elapsed, 3 * SECOND);
	cluster_end(sim);
}

/* ---- response tracking ---- */

/* Returns whether the answer to a GET, or to a PUT, is given up at the
 * deadline. */
static bool gives_up(struct lnet_sim *sim, bool get, uint32_t options)
{
	struct ulnet_md_handle md = ask(sim, get, options);
	bool gave_up;

	lnet_sim_run(sim, 100000 * MSEC);
	gave_up = sent.ev[sent.n - 1].terminal;
	if (!gave_up)
		cr_assert_eq(LNetMDUnlink(md), 0);
	lnet_sim_run_all(sim);
	seen_end(&sent, LNET_EVENT_UNLINK, gave_up ? -ETIMEDOUT : -ECANCELED,
		 LNET_OUTCOME_UNKNOWN,
		 gave_up ? LNET_CAUSE_RESPONSE_TIMEOUT : LNET_CAUSE_CANCELED);
	return gave_up;
}

Test(setting, response_tracking)
{
	for (int64_t tracking = 0; tracking <= 3; tracking++) {
		struct lnet_sim *sim = deaf_sender();
		struct lnet *node = lnet_sim_node(sim, 1);

		cr_assert_eq(
			lnet_setting_set(node, "response_tracking", tracking),
			0);
		cr_assert_eq(gives_up(sim, true, 0), (tracking & 1) != 0);
		cr_assert_eq(gives_up(sim, false, 0), (tracking & 2) != 0);
		cr_assert(gives_up(sim, true, LNET_MD_TRACK_RESPONSE));
		cr_assert(gives_up(sim, false, LNET_MD_TRACK_RESPONSE));
		cr_assert(!gives_up(sim, true, LNET_MD_NO_TRACK_RESPONSE));
		cr_assert(!gives_up(sim, false, LNET_MD_NO_TRACK_RESPONSE));
		cluster_end(sim);
	}
}

/* An operation in progress keeps the tracking that it began with. */
Test(setting, tracking_of_operations_in_progress)
{
	struct lnet_sim *sim = deaf_sender();
	struct lnet *node = lnet_sim_node(sim, 1);

	ask(sim, true, 0);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(lnet_setting_set(node, "response_tracking", 0), 0);
	lnet_sim_run_all(sim);
	seen_end(&sent, LNET_EVENT_UNLINK, -ETIMEDOUT, LNET_OUTCOME_UNKNOWN,
		 LNET_CAUSE_RESPONSE_TIMEOUT);
	cluster_end(sim);
}

static int pinged;

static void see_ping(void *arg, int status, const struct ulnet_ping_info *info)
{
	(void)arg;
	(void)info;
	pinged = status;
}

/* LNet's own pings are tracked whatever the setting is. */
Test(setting, pings_are_tracked)
{
	struct lnet_sim *sim = deaf_sender();
	struct lnet *node = lnet_sim_node(sim, 1);

	cr_assert_eq(lnet_setting_set(node, "response_tracking", 0), 0);
	pinged = 1;
	cr_assert_eq(lnet_ping(node, nth_id(0), SECOND, see_ping, NULL), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(pinged, -ETIMEDOUT);
	cluster_end(sim);
}

/* ---- interfaces ---- */

Test(setting, max_interfaces)
{
	struct lnet_sim *sim = cluster(2);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_ni_conf conf = { .nid = nid_of("10.1.0.1@tcp1") };

	cr_assert_eq(lnet_setting_set(node, "max_interfaces", 1), 0);
	cr_assert_eq(lnet_ni_add(node, &conf), -ENOSPC);
	cr_assert_eq(lnet_setting_set(node, "max_interfaces", 2), 0);
	cr_assert_eq(lnet_ni_add(node, &conf), 0);
	/* Interfaces above the new limit stay. */
	cr_assert_eq(lnet_setting_set(node, "max_interfaces", 1), 0);
	conf.nid = nid_of("10.2.0.1@tcp2");
	cr_assert_eq(lnet_ni_add(node, &conf), -ENOSPC);
	cluster_end(sim);
}

static unsigned int pinged_nis;

static void count_nis(void *arg, int status, const struct ulnet_ping_info *info)
{
	(void)arg;
	pinged = status;
	pinged_nis = info ? info->nnis : 0;
}

/* A ping in progress keeps the limit that it began with. */
Test(setting, max_interfaces_of_a_ping)
{
	static const struct {
		int64_t before, during;
		int status;
		unsigned int nis;
	} cases[] = { { 2, 40000, -E2BIG, 0 },
		      { 3, 1, 0, 3 },
		      { 200, 1, 0, 3 } };
	struct lnet_sim *sim = cluster(2);
	struct lnet *target = lnet_sim_node(sim, 0);
	struct lnet *node = lnet_sim_node(sim, 1);
	struct ulnet_ni_conf conf = { .nid = nid_of("10.1.0.1@tcp1") };

	cr_assert_eq(lnet_ni_add(target, &conf), 0);
	conf.nid = nid_of("10.2.0.1@tcp2");
	cr_assert_eq(lnet_ni_add(target, &conf), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cr_assert_eq(lnet_setting_set(node, "max_interfaces",
					      cases[i].before),
			     0);
		pinged = 1;
		pinged_nis = 0;
		cr_assert_eq(
			lnet_ping(node, nth_id(0), SECOND, count_nis, NULL), 0);
		cr_assert_eq(lnet_setting_set(node, "max_interfaces",
					      cases[i].during),
			     0);
		lnet_sim_run_all(sim);
		cr_assert_eq(pinged, cases[i].status, "case %zu", i);
		cr_assert_eq(pinged_nis, cases[i].nis, "case %zu", i);
	}
	cluster_end(sim);
}

/* ---- calls in a handler ---- */

static struct lnet *of_handler;
static int handler_rc[2];

static void set_inside(const struct ulnet_event *ev)
{
	struct ulnet_setting s;

	see(ev);
	handler_rc[0] = lnet_setting_set(of_handler, "transaction_timeout", 9);
	handler_rc[1] = lnet_settings(of_handler, &s, 1);
}

Test(setting, set_by_a_handler)
{
	struct lnet_sim *sim = cluster_with(1, 4, NULL);
	struct ulnet_md umd = md_of(source, 10, 0, &sent);

	sent.n = 0;
	of_handler = lnet_sim_node(sim, 0);
	umd.handler = set_inside;
	cr_assert_eq(LNetMDUnlink(bind_md(of_handler, &umd)), 0);
	lnet_sim_run_all(sim);
	cr_assert_eq(sent.n, 1);
	cr_assert_eq(handler_rc[0], 0);
	cr_assert_eq(handler_rc[1], 18);
	cr_assert_eq(value(of_handler, "transaction_timeout"), 9);
	cluster_end(sim);
}

/* ---- the LND's timeout ---- */

Test(setting, lnd_timeout)
{
	struct ulnet_nid nid = nid_of("10.77.0.2@tcp");
	struct ulnet_conf conf;
	struct injector *in;

	lnet_conf_init(&conf);
	in = inject_open(&conf, &nid, 1);
	cr_assert_eq(lnet_lnd_timeout(in->ni[0]->lnd), 16 * NSEC_PER_SEC);
	cr_assert_eq(lnet_setting_set(in->node, "transaction_timeout", 150), 0);
	cr_assert_eq(lnet_lnd_timeout(in->ni[0]->lnd), 49 * NSEC_PER_SEC);
	cr_assert_eq(lnet_setting_set(in->node, "retry_count", 149), 0);
	cr_assert_eq(lnet_lnd_timeout(in->ni[0]->lnd), NSEC_PER_SEC);
	inject_close(in);
}
