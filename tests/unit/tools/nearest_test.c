/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>
#include "tools/common/option.h"

static const char *const names[] = { "net",    "peer",	 "discover",
				     "export", "import", "transaction_timeout",
				     "set" };

static const struct row {
	const char *word, *name;
} rows[] = {
	{ "discovr", "discover" },
	{ "dicsover", "discover" },
	{ "discoverr", "discover" },
	{ "pear", "peer" },
	{ "nte", "net" },
	{ "imprt", "import" },
	{ "emport", "export" }, /* as near as import, which comes later */
	{ "transaction-timeout", "transaction_timeout" },
	{ "transactiontimout", "transaction_timeout" },
	{ "disc", "discover" }, /* the beginning of a name */
	{ "tran", "transaction_timeout" },
	{ "tr", NULL },
	{ "nonsense", NULL },
	{ "x", NULL },
	{ "", NULL },
	{ "a word that is longer than any name that there could be", NULL },
};

Test(nearest, table)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct nearest n;

		nearest_init(&n, rows[i].word);
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			nearest_try(&n, names[k]);
		if (rows[i].name)
			cr_expect_str_eq(n.name, rows[i].name, "%s",
					 rows[i].word);
		else
			cr_expect_null(n.name, "%s: %s", rows[i].word, n.name);
	}
}

Test(nearest, says)
{
	struct nearest n;
	char text[64] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	cr_assert_not_null(f);
	nearest_init(&n, "nt");
	nearest_say(&n, "--", f);
	fflush(f);
	cr_assert_str_empty(text);
	nearest_try(&n, "net");
	nearest_say(&n, "--", f);
	cr_assert_eq(fclose(f), 0);
	cr_assert_str_eq(text, "Did you mean '--net'?\n");
}
