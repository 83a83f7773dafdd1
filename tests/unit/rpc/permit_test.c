/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that rules, and methods, let in or refuse. */
#include "rpc/client/client.h"
#include "tests/unit/rpc/proof_rig.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void use(struct proof_rig *g, const struct ulrpc_rule *rules,
		unsigned int n)
{
	const struct ulrpc_rules_conf conf = { .rules = rules, .nrules = n };
	struct ulrpc_rules *made;
	char why[256] = "";

	cr_assert_eq(ulrpc_rules_new(&conf, &made, why, sizeof(why)), 0, "%s",
		     why);
	cr_assert_eq(ulrpc_use_rules(g->serve.rpc[SERVER], made), 0);
	ulrpc_rules_put(made);
}

/* A service with the methods "who" and "more", of which the second one takes
 * @more at least. */
static void two_start(struct proof_rig *g, enum ulrpc_flavour flavour,
		      enum ulrpc_flavour more)
{
	const struct ulrpc_method_conf methods[] = {
		{ "who", who_calls, g, .run = ULRPC_RUN_INLINE },
		{ "more", who_calls, g, .run = ULRPC_RUN_INLINE,
		  .flavour = more },
	};
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	conf.flavour = flavour;
	serve_start(&g->serve, &conf);
}

static struct proof_rig *two_new(unsigned int cpts, const char *caller,
				 enum ulrpc_flavour flavour,
				 enum ulrpc_flavour more)
{
	struct proof_rig *g = proof_rig_new(cpts, caller, flavour);
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	cr_assert_eq(ulrpc_service_stop(g->serve.service, 1000000), 0);
	two_start(g, flavour, more);
	proof_client(g, &conf);
	return g;
}

static void two_free(struct proof_rig *g)
{
	ulrpc_client_close(g->serve.client);
	proof_rig_free(g);
}

static struct called call(struct proof_rig *g, const char *method)
{
	struct called c;

	serve_call(&g->serve, method, "hello", 6, 10000000,
		   ULRPC_PRIORITY_DEFAULT, &c);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	return c;
}

static void may(struct proof_rig *g, const char *method)
{
	unsigned int runs = g->runs;
	struct called c = call(g, method);

	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s: %s: %s", method,
		     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
	cr_assert_eq(g->runs, runs + 1);
}

/* The call ends at once, certainly not executed, and @words say why. */
static void may_not(struct proof_rig *g, const char *method, const char *words)
{
	unsigned int runs = g->runs;
	struct called c = call(g, method);

	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_REFUSED, "%s: %s", method,
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.outcome.execution, ULRPC_NOT_EXECUTED);
	cr_assert(strstr(c.outcome.text, words), "%s", c.outcome.text);
	cr_assert_lt(c.outcome.total, 1000000);
	cr_assert_eq(g->runs, runs);
}

static uint64_t served(const struct proof_rig *g, enum rpc_stat stat)
{
	return counts(g->serve.rpc[SERVER], stat);
}

/* ---- rules ---- */

static void of_methods(unsigned int cpts)
{
	struct proof_rig *g = two_new(cpts, "a", ULRPC_FLAVOUR_AUTH, 0);
	const struct ulrpc_rule rule = { .services = LIST("test"),
					 .methods = LIST("who"),
					 .names = LIST("a") };
	const struct ulrpc_rule other = { .names = LIST("b") };
	const struct ulrpc_rule all = { .names = LIST("?") };

	may(g, "more");
	use(g, &rule, 1);
	may(g, "who");
	may_not(g, "more",
		"method more of service test is not for a "
		"(certificate of site) at ");
	may(g, "who");
	cr_assert_eq(served(g, RPC_STAT_requests_unnamed), 1);
	/* What was let in before is not, as soon as rules say so. */
	use(g, &other, 1);
	may_not(g, "who", "no rule");
	may_not(g, "more", "no rule");
	cr_assert_eq(served(g, RPC_STAT_requests_unnamed), 3);
	use(g, &all, 1);
	may(g, "more");
	use(g, NULL, 0);
	may_not(g, "more", "no rule");
	cr_assert_eq(ulrpc_use_rules(g->serve.rpc[SERVER], NULL), 0);
	may(g, "more");
	two_free(g);
}

Test(permit, of_methods)
{
	of_methods(1);
	of_methods(4);
}

/* Who has proved nothing may only what is for anybody. */
Test(permit, who_has_proved_nothing)
{
	struct proof_rig *g = two_new(1, NULL, ULRPC_FLAVOUR_NONE, 0);
	const struct ulrpc_rule rules[] = { { .methods = LIST("who") },
					    { .names = LIST("*") } };

	use(g, rules, 2);
	may(g, "who");
	may_not(g, "more", "it has not proved who it is");
	cr_assert_eq(served(g, RPC_STAT_requests_unproved), 1);
	use(g, &(struct ulrpc_rule){ .nids = "10.9.9.9@tcp" }, 1);
	may_not(g, "who", "no rule");
	two_free(g);
}

/* A service that takes the portal of another one is judged by its own name. */
Test(permit, of_the_next_service)
{
	struct proof_rig *g = two_new(1, "a", ULRPC_FLAVOUR_AUTH, 0);
	const struct ulrpc_rule rule = { .methods = LIST("who") };

	use(g, &rule, 1);
	may(g, "who");
	cr_assert_eq(ulrpc_service_stop(g->serve.service, 1000000), 0);
	two_start(g, ULRPC_FLAVOUR_AUTH, 0);
	may(g, "who");
	may_not(g, "more", "no rule");
	two_free(g);
}

/* Calls in one message are judged one by one. */
Test(permit, calls_of_one_message)
{
	struct proof_rig *g = two_new(1, "a", ULRPC_FLAVOUR_AUTH, 0);
	const struct ulrpc_rule rule = { .methods = LIST("who") };
	struct called c[20];

	use(g, &rule, 1);
	may(g, "who");
	g->runs = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++)
		serve_call(&g->serve, i % 2 ? "more" : "who", "hello", 6,
			   10000000, ULRPC_PRIORITY_DEFAULT, &c[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++) {
		while (!c[i].ended)
			lnet_sim_run(g->serve.sim, MSEC);
		cr_assert_eq(c[i].outcome.cause,
			     i % 2 ? ULRPC_CAUSE_REFUSED : ULRPC_CAUSE_OK);
	}
	cr_assert_eq(g->runs, ARRAY_SIZE(c) / 2);
	two_free(g);
}

/* A caller with no room for the text is told something, too. */
Test(permit, no_room_for_the_reason)
{
	struct proof_rig *g = two_new(1, "a", ULRPC_FLAVOUR_AUTH, 0);
	const struct ulrpc_call_conf conf = { .deadline = 10000000,
					      .reply_max = 8 };
	struct called c = { 0 };

	use(g, NULL, 0);
	cr_assert_eq(ulrpc_call(g->serve.client, ulrpc_method("who"), NULL, 0,
				&conf, on_called, &c, NULL),
		     0);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_REFUSED);
	cr_assert(strstr(c.outcome.text, "no room to say why"));
	two_free(g);
}

/* ---- who is connected ---- */

static void shows(struct ulrpc *rpc, const char *words, bool there)
{
	char *text;

	cr_assert_eq(ulrpc_stats(rpc, &text), 0);
	cr_assert_eq(!!strstr(text, words), there, "%s: %s", words, text);
	free(text);
}

/* Both sides tell who the other one has proved to be. */
Test(permit, who_is_connected)
{
	struct proof_rig *g =
		two_new(1, "a", ULRPC_FLAVOUR_AUTH, ULRPC_FLAVOUR_INTEGRITY);
	struct ulrpc *server = g->serve.rpc[SERVER];
	struct ulrpc *caller = g->serve.rpc[CALLER];

	shows(server, "name: \"a\"", false);
	may(g, "who");
	shows(server, "name: \"a\"\n", true);
	shows(server, "kind: certificate\n", true);
	shows(server, "issuer: \"site\"\n", true);
	shows(server, "flavour: auth\n", true);
	shows(server, "valid_until: 20", true);
	shows(caller, "name: \"b\"\n", true);
	shows(caller, "flavour: auth\n", true);
	may(g, "more");
	shows(server, "flavour: integrity\n", true);
	shows(caller, "flavour: integrity\n", true);
	use(g, NULL, 0);
	may_not(g, "who", "no rule");
	may_not(g, "who", "no rule");
	shows(server, "refused: 3\n", true); /* one raised its flavour */
	lnet_sim_run(g->serve.sim, 2 * SEC);
	shows(server, "proved_s: 2\n", true);
	shows(server, "connected_s: 2\n", true);
	two_free(g);
}

/* One who has proved nothing is there, too. */
Test(permit, who_is_connected_without_a_proof)
{
	struct proof_rig *g = two_new(1, NULL, ULRPC_FLAVOUR_NONE, 0);

	may(g, "who");
	shows(g->serve.rpc[SERVER], "flavour: none\n", true);
	shows(g->serve.rpc[SERVER], "cipher", false);
	two_free(g);
}

/* ---- flavours of methods ---- */

/* The client learns that a method takes more than its service, and goes on. */
Test(permit, a_method_that_takes_more)
{
	struct proof_rig *g =
		two_new(1, "a", ULRPC_FLAVOUR_AUTH, ULRPC_FLAVOUR_INTEGRITY);

	may(g, "who");
	cr_assert_eq(g->peer.flavour, ULRPC_FLAVOUR_AUTH);
	may(g, "more");
	cr_assert_eq(g->peer.flavour, ULRPC_FLAVOUR_INTEGRITY);
	cr_assert_eq(served(g, RPC_STAT_requests_unsealed), 1);
	may(g, "more");
	may(g, "who");
	cr_assert_eq(served(g, RPC_STAT_requests_unsealed), 1);
	two_free(g);
}

/* So does a client whose rule takes more. */
Test(permit, a_rule_that_takes_more)
{
	struct proof_rig *g = two_new(1, "a", ULRPC_FLAVOUR_AUTH, 0);
	const struct ulrpc_rule rule = { .names = LIST("a"),
					 .flavour = ULRPC_FLAVOUR_INTEGRITY };

	may(g, "who");
	cr_assert_eq(g->peer.flavour, ULRPC_FLAVOUR_AUTH);
	use(g, &rule, 1);
	may(g, "who");
	cr_assert_eq(g->peer.flavour, ULRPC_FLAVOUR_INTEGRITY);
	two_free(g);
}

/* Who has no keys cannot. */
Test(permit, a_method_that_wants_a_proof)
{
	struct proof_rig *g =
		two_new(1, NULL, ULRPC_FLAVOUR_NONE, ULRPC_FLAVOUR_AUTH);

	may(g, "who");
	may_not(g, "more", "method more of service test wants flavour auth; ");
	may(g, "who");
	two_free(g);
}
