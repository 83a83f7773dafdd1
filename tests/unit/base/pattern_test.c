/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pattern.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/util.h"

#define SIZE 256

Test(pattern, fits)
{
	static const struct {
		const char *pattern, *text;
		bool fits;
	} cases[] = {
		{ "a", "a", true },
		{ "a", "b", false },
		{ "a", "ab", false },
		{ "ab", "a", false },
		{ "?", "a", true },
		{ "?", "", false },
		{ "*", "", true },
		{ "*", "anything", true },
		{ "node*", "node7.example", true },
		{ "node*", "anode", false },
		{ "*.example", "node7.example", true },
		{ "*.example", "node7.example.org", false },
		{ "n*.e*", "node7.example", true },
		{ "n*x*e", "node7.example", true },
		{ "n??e7.*", "node7.example", true },
		{ "*a*b*", "xxaxxb", true },
		{ "*a*b*", "xxbxxa", false },
		{ "A", "a", false },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(pattern_fits(cases[i].pattern, cases[i].text),
			     cases[i].fits, "%s, %s", cases[i].pattern,
			     cases[i].text);
}

/* A pattern that would take for ever if each star tried all lengths. */
Test(pattern, a_pattern_takes_no_longer_than_its_length)
{
	char pattern[SIZE], text[SIZE];

	for (unsigned int i = 0; i + 2 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "*a", 3);
	strcat(pattern, "b");
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	cr_assert_not(pattern_fits(pattern, text));
}

Test(pattern, characters)
{
	static const char good[] = "azAZ09._-@:/=*?";

	for (const char *c = good; *c; c++)
		cr_expect(pattern_may_have((unsigned char)*c), "%c", *c);
	for (const char *c = " !,%\\\n\xe4[]"; *c; c++)
		cr_expect_not(pattern_may_have((unsigned char)*c), "%c", *c);
	cr_expect_not(pattern_may_have('\0'));
}
