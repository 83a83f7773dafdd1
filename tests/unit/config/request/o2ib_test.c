/* SPDX-License-Identifier: BSD-3-Clause */
/* Nets of type o2ib: how users configure and see them, over simulated devices.
 */
#include "tests/unit/config/rig.h"

#include "sim/sim.h"
#include "ulnet/sim.h"

/* A node on the simulated fabric, without an NI. */
struct o2ib_rig {
	struct rig rig;
	struct lnet_sim *sim;
	struct simqp_fabric *fabric;
};

static struct o2ib_rig o2ib_open(void)
{
	struct o2ib_rig o = { 0 };

	cr_assert_eq(lnet_sim_new(1, 1, &o.sim), 0);
	cr_assert_eq(sim_verbs(o.sim, NULL, &o.fabric), 0);
	cr_assert_eq(lnet_sim_node_add(o.sim, "", NULL, NULL, NULL), 0);
	o.rig.node = lnet_sim_node(o.sim, 0);
	cr_assert_eq(lnet_control_start(o.rig.node, NULL, &o.rig.control), 0);
	return o;
}

static void o2ib_close(struct o2ib_rig *o)
{
	lnet_control_stop(o->rig.control);
	cr_assert_eq(lnet_sim_free(o->sim), 0);
}

/* Sends a request that must succeed, and whose output must contain @words. */
static void ask_has(struct rig *rig, const char *request, const char *words)
{
	struct result r = ask(rig, request);

	cr_assert_eq(r.status, 0, "%s: %s", request, r.answer);
	cr_assert(strstr(r.out, words), "'%s' is not in:\n%s", words, r.out);
	result_free(&r);
}

/* Sends a request that must succeed, and whose output must not contain @words.
 */
static void ask_not(struct rig *rig, const char *request, const char *words)
{
	struct result r = ask(rig, request);

	cr_assert_eq(r.status, 0, "%s: %s", request, r.answer);
	cr_assert(!strstr(r.out, words), "'%s' is in:\n%s", words, r.out);
	result_free(&r);
}

/* The tunables that a kernel node shows are shown, in the same order, with the
 * values of defaults. */
Test(o2ib, shows_what_kernel_nodes_show)
{
	struct o2ib_rig o = o2ib_open();

	ask_out(&o.rig, "net add: {nid: 10.0.0.1@o2ib}", "");
	ask_has(&o.rig, "net show: {net: o2ib, verbose: 4}",
		"            lnd tunables:\n"
		"                  peercredits_hiw: 4\n"
		"                  concurrent_sends: 8\n"
		"                  map_on_demand: 1\n"
		"                  fmr_pool_size: 512\n"
		"                  fmr_flush_trigger: 384\n"
		"                  fmr_cache: 1\n"
		"                  ntx: 512\n"
		"                  conns_per_peer: 1\n"
		"                  timeout: 16\n"
		"                  tos: -1\n"
		"            dev cpt:");
	o2ib_close(&o);
}

/* Tunables as a kernel node exports them, map_on_demand as a word, followed by
 * those that only this LND has. */
static const char exported[] = "net:\n"
			       "    - net type: o2ib\n"
			       "      local NI(s):\n"
			       "        - nid: 10.0.0.1@o2ib\n"
			       "          tunables:\n"
			       "              peer_credits: 32\n"
			       "              credits: 1024\n"
			       "          lnd tunables:\n"
			       "              peercredits_hiw: 16\n"
			       "              concurrent_sends: 64\n"
			       "              map_on_demand: true\n"
			       "              fmr_pool_size: 2048\n"
			       "              fmr_flush_trigger: 256\n"
			       "              fmr_cache: 0\n"
			       "              ntx: 2048\n"
			       "              conns_per_peer: 4\n"
			       "              timeout: 20\n"
			       "              tos: 106\n"
			       "              keepalive: 30\n";

static void has_what_was_exported(struct rig *rig)
{
	ask_has(rig, "net show: {net: o2ib, verbose: 4}",
		"            lnd tunables:\n"
		"                  peercredits_hiw: 16\n"
		"                  concurrent_sends: 64\n"
		"                  map_on_demand: 1\n"
		"                  fmr_pool_size: 2048\n"
		"                  fmr_flush_trigger: 256\n"
		"                  fmr_cache: 0\n"
		"                  ntx: 2048\n"
		"                  conns_per_peer: 4\n"
		"                  timeout: 20\n"
		"                  tos: 106\n"
		"                  keepalive: 30\n"
		"            dev cpt:");
}

Test(o2ib, takes_and_shows_what_was_exported)
{
	struct o2ib_rig o = o2ib_open();
	char *state;

	import_ok(&o.rig, "add", exported);
	has_what_was_exported(&o.rig);
	state = rig_state(&o.rig);
	cr_assert(strstr(state, "peercredits_hiw: 16\n"), "%s", state);
	cr_assert(strstr(state, "timeout: 20\n"), "%s", state);
	cr_assert(strstr(state, "keepalive: 30\n"), "%s", state);
	free(state);
	o2ib_close(&o);
}

/* A timeout that follows from the node's settings is exported as 0, so that it
 * still does so after an import. */
Test(o2ib, derived_timeout_is_not_exported)
{
	struct o2ib_rig o = o2ib_open();
	char *state;

	ask_out(&o.rig, "net add: {nid: 10.0.0.1@o2ib}", "");
	state = rig_state(&o.rig);
	cr_assert(strstr(state, "timeout: 0\n"), "%s", state);
	free(state);
	o2ib_close(&o);
}

Test(o2ib, takes_options)
{
	struct o2ib_rig o = o2ib_open();

	ask_out(&o.rig,
		"net add: {nid: 10.0.0.1@o2ib, peer_credits: 16, "
		"conns_per_peer: 2, tos: 8, ntx: 1024, timeout: 7, "
		"map_on_demand: false}",
		"");
	ask_has(&o.rig, "net show: {net: o2ib, verbose: 4}",
		"                  peercredits_hiw: 8\n"
		"                  concurrent_sends: 16\n"
		"                  map_on_demand: 0\n"
		"                  fmr_pool_size: 512\n"
		"                  fmr_flush_trigger: 384\n"
		"                  fmr_cache: 1\n"
		"                  ntx: 1024\n"
		"                  conns_per_peer: 2\n"
		"                  timeout: 7\n"
		"                  tos: 8\n");
	o2ib_close(&o);
}

Test(o2ib, refuses_other_words)
{
	struct o2ib_rig o = o2ib_open();

	import_fail(&o.rig, "add",
		    "net: [{net type: o2ib, local NI(s): [{nid: 10.0.0.1@o2ib, "
		    "lnd tunables: {map_on_demand: often}}]}]",
		    -22, "map_on_demand: a number is expected");
	import_fail(&o.rig, "add",
		    "net: [{net type: o2ib, local NI(s): [{nid: 10.0.0.1@o2ib, "
		    "lnd tunables: {concurrent_sends: true}}]}]",
		    -22, "concurrent_sends: a number is expected");
	o2ib_close(&o);
}

/* The negotiated values are shown as long as the peer has a connection. */
Test(o2ib, shows_what_was_negotiated)
{
	struct o2ib_rig o = o2ib_open();
	struct rig *rig = &o.rig;
	const struct ulnet_nid any = LNET_NID_ANY;

	cr_assert_eq(
		lnet_sim_node_add(o.sim, "10.0.0.2@o2ib", NULL, NULL, NULL), 1);
	ask_out(rig, "net add: {nid: 10.0.0.1@o2ib, peer_credits: 32}", "");
	ask_out(rig, "peer add: {prim_nid: 10.0.0.2@o2ib}", "");
	ask_not(rig, "peer show: {verbose: 1}", "queue_depth");
	ask_has(rig, "ping: {nids: 10.0.0.2@o2ib, timeout: 10}", "10.0.0.2");
	ask_has(rig, "peer show: {verbose: 1}",
		"            queue_depth: 8\n"
		"            max_frags: 256\n");
	ask_not(rig, "peer show:", "queue_depth");
	simqp_cut(o.fabric, &any, &any);
	lnet_sim_run(o.sim, 1000000000);
	ask_not(rig, "peer show: {verbose: 1}", "queue_depth");
	o2ib_close(&o);
}

/* The LND's reason for a missing device reaches the user, and no NI is added.
 */
Test(o2ib, says_what_is_missing)
{
	struct o2ib_rig o = o2ib_open();
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse("10.0.0.1@o2ib", &nid), 0);
	simqp_device_set(o.fabric, &nid, NULL);
	simqp_remove(o.fabric, &nid);
	ask_fail(&o.rig, "net add: {nid: 10.0.0.1@o2ib}", -ENETDOWN,
		 "cannot add network 10.0.0.1@o2ib: there is no RDMA "
		 "device\"\n");
	simqp_insert(o.fabric, &nid);
	ask_out(&o.rig, "net add: {nid: 10.0.0.1@o2ib}", "");
	o2ib_close(&o);
}
