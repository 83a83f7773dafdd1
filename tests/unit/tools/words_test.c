/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "tools/lnetctl/command.h"

struct row {
	const char *line;
	int n;
	const char *words; /* expected words, each followed by | */
};

static const struct row rows[] = {
	{ "", 0, "" },
	{ " \t\n", 0, "" },
	{ "# net show", 0, "" },
	{ "net show\n", 2, "net|show|" },
	{ "  a   b#c #d", 2, "a|b#c|" },
	{ "'a b' \"c d\"'e'f", 2, "a b|c def|" },
	{ "a '' b", 3, "a||b|" },
	{ "\\'a 'b\\' \"\\\"c\\\\\"", 3, "'a|b\\|\"c\\|" },
	{ "a\\ b \\", 2, "a b|\\|" },
	{ "'a", -EINVAL, NULL },
	{ "a\"", -EINVAL, NULL },
	{ "a b c d e f g h i", 9, "a|b|c|d|e|f|g|h|i|" },
};

Test(words, split)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *line = strdup(rows[i].line), **words, seen[128] = "";
		int n = words_split(line, &words);

		cr_assert_eq(n, rows[i].n, "%s: %d", rows[i].line, n);
		for (int w = 0; w < n; w++) {
			strcat(seen, words[w]);
			strcat(seen, "|");
		}
		if (n >= 0) {
			cr_assert_null(words[n]);
			cr_assert_str_eq(seen, rows[i].words, "%s: %s",
					 rows[i].line, seen);
			free(words);
		}
		free(line);
	}
}
