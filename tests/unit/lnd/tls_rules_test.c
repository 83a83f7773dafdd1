/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules by which names may speak for NIDs. */
#include "lnd/tls_rules.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

static struct lnd_tls_rules rules;

static void setup(void)
{
	lnd_tls_rules_init(&rules);
}

static void teardown(void)
{
	lnd_tls_rules_fini(&rules);
}

TestSuite(tls_rules, .init = setup, .fini = teardown);

static int set(const char *name, const char *nids, bool *replaced_p,
	       struct ulnet_text_error *err)
{
	return lnd_tls_rules_set(&rules, name, nids, replaced_p, err);
}

static void add(const char *name, const char *nids)
{
	bool replaced = true;

	cr_assert_eq(set(name, nids, &replaced, NULL), 0);
	cr_assert_not(replaced);
}

static bool allows(const char *name, const char *text)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(text, &nid), 0);
	return lnd_tls_rules_allow(&rules, name, &nid);
}

Test(tls_rules, by_name)
{
	add("b", "10.0.0.[1-3]@tcp 10.0.1.1@tcp2");
	add("a", "*@tcp5");
	add("c", "10.0.0.9@tcp");
	cr_expect(allows("b", "10.0.0.2@tcp"));
	cr_expect(allows("b", "10.0.1.1@tcp2"));
	cr_expect(allows("a", "1.2.3.4@tcp5"));
	cr_expect_not(allows("b", "10.0.0.4@tcp"));
	cr_expect_not(allows("b", "10.0.0.2@tcp2"));
	cr_expect_not(allows("a", "10.0.0.2@tcp"));
	cr_expect_not(allows("bb", "10.0.0.2@tcp"));
	cr_expect_not(allows("", "10.0.0.2@tcp"));
}

Test(tls_rules, by_pattern)
{
	add("node?.site", "10.0.0.*@tcp");
	add("node1.site", "10.0.1.1@tcp");
	cr_expect(allows("node1.site", "10.0.0.7@tcp"));
	cr_expect(allows("node1.site", "10.0.1.1@tcp"));
	cr_expect_not(allows("node2.site", "10.0.1.1@tcp"));
	cr_expect_not(allows("node12.site", "10.0.0.7@tcp"));
}

Test(tls_rules, are_replaced_and_deleted)
{
	struct ulnet_tls_rule all[2];
	bool replaced = false;

	add("b", "10.0.0.1@tcp");
	add("a", "10.0.0.3@tcp");
	cr_assert_eq(set("b", "10.0.0.5@tcp0", &replaced, NULL), 0);
	cr_expect(replaced);
	cr_expect_not(allows("b", "10.0.0.1@tcp"));
	cr_expect(allows("b", "10.0.0.5@tcp"));
	cr_expect_eq(lnd_tls_rules_list(&rules, all, 2), 2);
	cr_expect_str_eq(all[0].name, "a");
	cr_expect_str_eq(all[1].name, "b");
	cr_expect_str_eq(all[1].nids, "10.0.0.5@tcp");
	cr_expect_eq(lnd_tls_rules_get(&rules, "a", &all[1]), 0);
	cr_expect_str_eq(all[1].nids, "10.0.0.3@tcp");
	cr_expect_eq(lnd_tls_rules_del(&rules, "a"), 0);
	cr_expect_eq(lnd_tls_rules_del(&rules, "a"), -ENOENT);
	cr_expect_eq(lnd_tls_rules_get(&rules, "a", &all[0]), -ENOENT);
	cr_expect_not(allows("a", "10.0.0.3@tcp"));
	cr_expect(allows("b", "10.0.0.5@tcp"));
}

/* What is wrong is said, and nothing is changed. */
Test(tls_rules, mistakes)
{
	static char name[LNET_TLS_NAME_SIZE + 1], nids[LNET_TLS_NIDS_SIZE + 32];
	static const struct {
		const char *name, *nids;
		int rc;
		const char *what;
		size_t offset;
	} cases[] = {
		{ "", "*@tcp", -EINVAL, "name: it is empty", 0 },
		{ "a b", "*@tcp", -EINVAL, "name: it has letters, ", 1 },
		{ "n\xc3\xa4", "*@tcp", -EINVAL, "name: it has letters, ", 1 },
		{ name, "*@tcp", -ENAMETOOLONG, "name: longer than 255", 0 },
		{ "a", "", -EINVAL, "nids: ", 0 },
		{ "a", "10.0.0.[9-1]@tcp", -EINVAL, "nids: range low end", 8 },
		{ "a", "10.0.0.1@nonsense", -EINVAL, "nids: ", 9 },
		{ "a", nids, -ENAMETOOLONG, "nids: longer than 1023", 0 },
	};
	size_t n = 0;

	memset(name, 'n', sizeof(name) - 1);
	for (unsigned int i = 0; n < LNET_TLS_NIDS_SIZE; i++)
		n += (size_t)sprintf(nids + n, "10.0.%u.%u@tcp ", i, i);
	add("a", "10.0.0.1@tcp");
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ulnet_text_error err;
		bool replaced;

		cr_expect_eq(set(cases[i].name, cases[i].nids, &replaced, &err),
			     cases[i].rc, "%u", i);
		cr_expect(strstr(err.what, cases[i].what) == err.what, "%u: %s",
			  i, err.what);
		cr_expect_eq(err.offset, cases[i].offset, "%u: %zu", i,
			     err.offset);
		cr_expect(set(cases[i].name, cases[i].nids, &replaced, NULL));
	}
	cr_expect_eq(lnd_tls_rules_list(&rules, NULL, 0), 1);
	cr_expect(allows("a", "10.0.0.1@tcp"));
}

Test(tls_rules, are_bounded)
{
	char name[16];
	bool replaced;

	for (unsigned int i = 0; i < LNET_TLS_RULES_MAX; i++) {
		sprintf(name, "n%u", i * 7919 % LNET_TLS_RULES_MAX);
		add(name, "10.0.0.1@tcp");
	}
	cr_expect_eq(set("one.more", "*@tcp", &replaced, NULL), -ENOSPC);
	cr_expect_eq(set("n5", "*@tcp", &replaced, NULL), 0);
	cr_expect_eq(lnd_tls_rules_del(&rules, "n7"), 0);
	add("one.more", "*@tcp");
	cr_expect_eq(lnd_tls_rules_list(&rules, NULL, 0), LNET_TLS_RULES_MAX);
	cr_expect(allows("n5", "1.1.1.1@tcp"));
	cr_expect_not(allows("n7", "10.0.0.1@tcp"));
}
