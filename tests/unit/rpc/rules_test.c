/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules: how they are read, and what they say. */
#include "rpc/rules.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "secure/identity.h"
#include "tests/unit/lnet/cluster.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* ---- mistakes ---- */

static char long_name[RULES_NAME_SIZE + 1];

static void is_wrong(const struct ulrpc_rules_conf *conf, int rc,
		     const char *words)
{
	struct ulrpc_rules *rules;
	char why[256] = "";

	cr_expect_eq(ulrpc_rules_new(conf, &rules, why, sizeof(why)), rc,
		     "%s: %s", words, why);
	cr_expect(strstr(why, words), "%s: %s", words, why);
	cr_expect_eq(ulrpc_rules_new(conf, &rules, NULL, 0), rc);
}

Test(rules, a_mistake_names_the_item_and_its_line)
{
	static const char *const good[] = { "a", NULL };
	const struct ulrpc_group group = { "ops", good, 3 };
	const struct {
		struct ulrpc_rule rule;
		int rc;
		const char *words;
	} cases[] = {
		{ { .names = LIST("a b"), .line = 7 },
		  -EINVAL,
		  "line 7: rule 2: names: 'a b'" },
		{ { .names = LIST("[ab]") }, -EINVAL, "rule 2: names: '[ab]'" },
		{ { .names = LIST("") }, -EINVAL, "names: a name is empty" },
		{ { .names = LIST(NULL) },
		  -EINVAL,
		  "names: the list is empty" },
		{ { .services = LIST(NULL) },
		  -EINVAL,
		  "services: the list is empty" },
		{ { .methods = LIST("\n") }, -EINVAL, "methods: '\n'" },
		{ { .names = LIST(long_name) },
		  -ENAMETOOLONG,
		  "names: longer" },
		{ { .groups = LIST("opps") },
		  -ENOENT,
		  "groups: there is no group 'opps'" },
		{ { .nids = "10.0.0.300@tcp", .line = 9 },
		  -EINVAL,
		  "line 9: rule 2: nids: '10.0.0.300@tcp', at character" },
		{ { .kind = 4 }, -EINVAL, "kind: 4" },
		{ { .kind = ULRPC_PEER_MUNGE, .names = LIST("user=a", "*=a") },
		  -EINVAL,
		  "names: '*=a': kind munge has user=NAME" },
		{ { .flavour = 5 }, -EINVAL, "flavour: 5" },
		{ { .flavour = ULRPC_FLAVOUR_NONE, .names = LIST("a") },
		  -EINVAL,
		  "flavour: none proves no name" },
	};

	memset(long_name, 'a', sizeof(long_name) - 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ulrpc_rule rules[] = { { .names = good },
						    cases[i].rule };

		is_wrong(&(struct ulrpc_rules_conf){ rules, 2, &group, 1 },
			 cases[i].rc, cases[i].words);
	}
}

Test(rules, mistakes_in_groups)
{
	static const char *const good[] = { "a", NULL };
	const struct {
		struct ulrpc_group group;
		int rc;
		const char *words;
	} cases[] = {
		{ { NULL, good, 4 }, -EINVAL, "line 4: group 2: name is miss" },
		{ { "b", NULL, 0 }, -EINVAL, "group 2: names is missing" },
		{ { "", good, 0 }, -EINVAL, "group 2: name: a name is empty" },
		{ { "ops", good, 0 },
		  -EEXIST,
		  "group 2: name: 'ops' comes tw" },
		{ { "b", LIST("%"), 0 }, -EINVAL, "group 2: names: '%'" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ulrpc_group groups[] = { { "ops", good, 0 },
						      cases[i].group };

		is_wrong(&(struct ulrpc_rules_conf){ NULL, 0, groups, 2 },
			 cases[i].rc, cases[i].words);
	}
}

/* What can make a judgement long is bounded. */
Test(rules, no_more_than_can_be_looked_at)
{
	static const char *names[RULES_PATTERNS + 2];
	const struct ulrpc_group group = { "all", names, 0 };
	const struct ulrpc_rule by_group[] = { { .groups = LIST("all") },
					       { .groups = LIST("all") } };
	const struct ulrpc_rule by_name = { .names = names };
	static const struct ulrpc_rule many[RULES_MAX + 1];

	for (unsigned int i = 0; i <= RULES_PATTERNS; i++)
		names[i] = "a";
	is_wrong(&(struct ulrpc_rules_conf){ &by_name, 1, NULL, 0 }, -E2BIG,
		 "names: more than 10000");
	names[RULES_PATTERNS / 2] = NULL;
	is_wrong(&(struct ulrpc_rules_conf){ by_group, 2, &group, 1 }, -E2BIG,
		 "groups: more than 10000");
	is_wrong(&(struct ulrpc_rules_conf){ many, RULES_MAX + 1, NULL, 0 },
		 -E2BIG, "more than 1000 rules");
}

/* ---- judgements ---- */

struct case_of {
	const char *who; /* NULL: nobody; "key ...": a cluster's key */
	unsigned int nid;
	enum ulrpc_flavour flavour;
	const char *service, *method;
	enum rules_verdict verdict;
	enum ulrpc_flavour wanted; /* RULES_LOW */
};

static void judged(const struct ulrpc_rules *rules, const struct case_of *c)
{
	const struct ulnet_nid nid = nth_id(c->nid).nid;
	bool key = c->who && !strncmp(c->who, "key ", 4);
	struct identity *who = NULL;
	enum ulrpc_flavour wanted = ULRPC_FLAVOUR_DEFAULT;
	struct rules_caller caller = { .nid = &nid, .flavour = c->flavour };

	if (c->who)
		who = identity_new(key ? IDENTITY_CLUSTER_KEY
				       : IDENTITY_CERTIFICATE,
				   c->who + (key ? 4 : 0), "site");
	caller.who = who;
	cr_expect_eq(
		rules_judge(rules, &caller, c->service, c->method, &wanted),
		c->verdict, "%s %s %s", c->who, c->service, c->method);
	if (c->verdict == RULES_LOW)
		cr_expect_eq(wanted, c->wanted);
	identity_put(who);
}

static struct ulrpc_rules *rules_of(const struct ulrpc_rule *rules,
				    unsigned int n)
{
	static const char *const ops[] = { "alice", "bob*", "user=alice",
					   NULL };
	const struct ulrpc_group groups[] = { { "ops", ops, 0 } };
	const struct ulrpc_rules_conf conf = { rules, n, groups, 1 };
	struct ulrpc_rules *made;
	char why[256] = "";

	cr_assert_eq(ulrpc_rules_new(&conf, &made, why, sizeof(why)), 0, "%s",
		     why);
	return made;
}

#define NONE ULRPC_FLAVOUR_NONE
#define AUTH ULRPC_FLAVOUR_AUTH
#define HIGH ULRPC_FLAVOUR_INTEGRITY
#define PRIV ULRPC_FLAVOUR_PRIVACY
#define JUDGE(rules, who, nid, flavour, service, method, ...)                \
	judged(rules, &(struct case_of){ who, nid, flavour, service, method, \
					 __VA_ARGS__ })

Test(rules, without_a_rule_nobody_may)
{
	struct ulrpc_rules *r = rules_of(NULL, 0);

	JUDGE(r, "a", 1, PRIV, "echo", "echo", RULES_UNNAMED, 0);
	JUDGE(r, NULL, 1, NONE, "echo", "echo", RULES_UNNAMED, 0);
	ulrpc_rules_put(r);
}

Test(rules, who_is_named_may_what_is_named)
{
	const struct ulrpc_rule rules[] = {
		{ .services = LIST("store"),
		  .methods = LIST("read", "stat*"),
		  .names = LIST("node*", "carol") },
		{ .services = LIST("store"), .groups = LIST("ops") },
	};
	struct ulrpc_rules *r = rules_of(rules, 2);

	JUDGE(r, "node1", 1, AUTH, "store", "read", RULES_LET, 0);
	JUDGE(r, "node1", 1, AUTH, "store", "status", RULES_LET, 0);
	JUDGE(r, "node1", 1, AUTH, "store", "write", RULES_UNNAMED, 0);
	JUDGE(r, "node1", 1, AUTH, "store", NULL, RULES_UNNAMED, 0);
	JUDGE(r, "carol", 1, AUTH, "store", "read", RULES_LET, 0);
	JUDGE(r, "dave", 1, AUTH, "store", "read", RULES_UNNAMED, 0);
	JUDGE(r, "node1", 1, AUTH, "other", "read", RULES_UNNAMED, 0);
	/* The second rule lets in whom the first one names, but not for this:
	 * the order of rules means nothing. */
	JUDGE(r, "alice", 1, AUTH, "store", "read", RULES_LET, 0);
	JUDGE(r, "alice", 1, AUTH, "store", "write", RULES_LET, 0);
	JUDGE(r, "bobby", 1, AUTH, "store", NULL, RULES_LET, 0);
	JUDGE(r, "alice", 1, AUTH, "other", "write", RULES_UNNAMED, 0);
	/* Who has proved nothing has no name. */
	JUDGE(r, NULL, 1, NONE, "store", "write", RULES_NOBODY, 0);
	JUDGE(r, NULL, 1, NONE, "other", "write", RULES_UNNAMED, 0);
	ulrpc_rules_put(r);
}

static enum rules_verdict of_user(const struct ulrpc_rules *rules,
				  const char *service)
{
	const struct ulnet_nid nid = nth_id(1).nid;
	enum ulrpc_flavour wanted;
	struct identity *who = identity_user_new("alice", 1000, "staff", 50);
	const struct rules_caller caller = { who, &nid, AUTH };
	enum rules_verdict v;

	cr_assert_eq(identity_set_groups(
			     who, "gid=60\0group=audio\0gid=71\0group=x\0"),
		     0);
	v = rules_judge(rules, &caller, service, "m", &wanted);
	identity_put(who);
	return v;
}

/* Users of MUNGE are named by rules that say so, and by nothing else. */
Test(rules, users)
{
	const struct ulrpc_rule rules[] = {
		{ .services = LIST("group"), .groups = LIST("ops") },
		{ .services = LIST("names"),
		  .names = LIST("alice", "*", "user=alice", "user=*") },
		{ .services = LIST("certificate"),
		  .kind = ULRPC_PEER_CERTIFICATE },
		{ .services = LIST("all") },
		{ .services = LIST("any"), .kind = ULRPC_PEER_MUNGE },
		{ .services = LIST("user"),
		  .kind = ULRPC_PEER_MUNGE,
		  .names = LIST("user=ali*") },
		{ .services = LIST("ops"),
		  .kind = ULRPC_PEER_MUNGE,
		  .groups = LIST("ops") },
		{ .services = LIST("uid"),
		  .kind = ULRPC_PEER_MUNGE,
		  .names = LIST("uid=7", "uid=1000") },
		{ .services = LIST("uid_of_another"),
		  .kind = ULRPC_PEER_MUNGE,
		  .names = LIST("uid=100", "uid=50", "gid=1000") },
		{ .services = LIST("gid"),
		  .kind = ULRPC_PEER_MUNGE,
		  .names = LIST("gid=5?") },
		{ .services = LIST("staff"),
		  .kind = ULRPC_PEER_MUNGE,
		  .names = LIST("group=staff") },
		{ .services = LIST("others"),
		  .kind = ULRPC_PEER_MUNGE,
		  .names = LIST("gid=71") },
		{ .services = LIST("others_by_name"),
		  .kind = ULRPC_PEER_MUNGE,
		  .names = LIST("group=au*") },
		{ .services = LIST("others_of_another"),
		  .kind = ULRPC_PEER_MUNGE,
		  .names = LIST("gid=7", "gid=61", "group=audi", "group=60",
				"gid=audio", "user=audio", "uid=60", "gid=") },
		{ .services = LIST("staff_of_another"),
		  .kind = ULRPC_PEER_MUNGE,
		  .names = LIST("group=alice", "user=staff", "uid=alice",
				"gid=staff") },
	};
	struct ulrpc_rules *r = rules_of(rules, ARRAY_SIZE(rules));

	cr_expect_eq(of_user(r, "group"), RULES_UNNAMED);
	cr_expect_eq(of_user(r, "names"), RULES_UNNAMED);
	cr_expect_eq(of_user(r, "certificate"), RULES_UNNAMED);
	cr_expect_eq(of_user(r, "all"), RULES_LET);
	cr_expect_eq(of_user(r, "any"), RULES_LET);
	cr_expect_eq(of_user(r, "user"), RULES_LET);
	cr_expect_eq(of_user(r, "ops"), RULES_LET);
	cr_expect_eq(of_user(r, "uid"), RULES_LET);
	cr_expect_eq(of_user(r, "uid_of_another"), RULES_UNNAMED);
	cr_expect_eq(of_user(r, "gid"), RULES_LET);
	cr_expect_eq(of_user(r, "staff"), RULES_LET);
	cr_expect_eq(of_user(r, "staff_of_another"), RULES_UNNAMED);
	cr_expect_eq(of_user(r, "others"), RULES_LET);
	cr_expect_eq(of_user(r, "others_by_name"), RULES_LET);
	cr_expect_eq(of_user(r, "others_of_another"), RULES_UNNAMED);
	/* Nor is anybody else let in by what names a user. */
	JUDGE(r, "alice", 1, AUTH, "user", "m", RULES_UNNAMED, 0);
	JUDGE(r, "uid=1000", 1, AUTH, "uid", "m", RULES_UNNAMED, 0);
	JUDGE(r, "key alice", 1, AUTH, "user", "m", RULES_UNNAMED, 0);
	JUDGE(r, NULL, 1, NONE, "user", "m", RULES_NOBODY, 0);
	ulrpc_rules_put(r);
}

Test(rules, nids_kinds_and_flavours)
{
	char nid[LNET_NIDSTR_SIZE];
	const struct ulnet_nid first = nth_id(1).nid;
	struct ulrpc_rule rules[] = {
		{ .services = LIST("near"),
		  .nids = lnet_nid_format(&first, nid, sizeof(nid)) },
		{ .services = LIST("cert"), .kind = ULRPC_PEER_CERTIFICATE },
		{ .services = LIST("key"), .kind = ULRPC_PEER_CLUSTER },
		{ .services = LIST("high"), .flavour = PRIV },
		{ .services = LIST("high"),
		  .flavour = HIGH,
		  .names = LIST("a") },
	};
	struct ulrpc_rules *r = rules_of(rules, ARRAY_SIZE(rules));

	JUDGE(r, NULL, 1, NONE, "near", "m", RULES_LET, 0);
	JUDGE(r, NULL, 2, NONE, "near", "m", RULES_UNNAMED, 0);
	JUDGE(r, "a", 2, AUTH, "near", "m", RULES_UNNAMED, 0);
	JUDGE(r, "a", 2, AUTH, "cert", "m", RULES_LET, 0);
	JUDGE(r, "key a", 2, AUTH, "cert", "m", RULES_UNNAMED, 0);
	JUDGE(r, NULL, 2, NONE, "cert", "m", RULES_NOBODY, 0);
	JUDGE(r, "key a", 2, AUTH, "key", "m", RULES_LET, 0);
	JUDGE(r, "a", 2, AUTH, "key", "m", RULES_UNNAMED, 0);
	JUDGE(r, "a", 2, AUTH, "high", "m", RULES_LOW, HIGH);
	JUDGE(r, "a", 2, HIGH, "high", "m", RULES_LET, 0);
	JUDGE(r, "b", 2, HIGH, "high", "m", RULES_LOW, PRIV);
	JUDGE(r, "b", 2, PRIV, "high", "m", RULES_LET, 0);
	ulrpc_rules_put(r);
}
