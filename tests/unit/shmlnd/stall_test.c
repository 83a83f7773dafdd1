/* SPDX-License-Identifier: BSD-3-Clause */
/* When a peer has stalled, by what was seen at each look. */
#include "lnd/shmlnd/stall.h"

#include <criterion/criterion.h>

/* A letter for each look: 'm': something has moved; '.': nothing has; 'l': the
 * same, and the look is late; '-': this side does not wait. */
static const struct {
	const char *looks;
	bool stalled; /* at the last look, and at no other */
} runs[] = {
	{ "....", false },
	{ ".....", true },
	{ "m....", true },
	{ "m...m...m...m", false },
	{ "...-....", false },
	{ "...-.....", true },
	{ "-------", false },
	/* this process was stopped */
	{ "...l", false },
	{ "...l.", false },
	{ "...l..", true },
	{ "lllllllll", false },
	{ "l....", true },
	{ "...lm....", true },
};

Test(stall, looks)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(runs); i++) {
		struct shm_stall s = { .waits = false };
		uint32_t mark = UINT32_MAX;
		const char *l;

		for (l = runs[i].looks; *l; l++) {
			bool at_end = !l[1];

			mark += *l == 'm';
			cr_expect_eq(
				shm_stall_look(&s, *l != '-', mark, *l == 'l'),
				at_end && runs[i].stalled, "%s: %td",
				runs[i].looks, l - runs[i].looks);
		}
	}
}
