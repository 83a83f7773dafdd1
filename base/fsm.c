/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fsm.h"

void fsm_bad_move(const struct fsm *f, const struct fsm_state *table,
		  unsigned int to)
{
	fprintf(stderr, "BUG fsm %p: state \"%s\" may not become %u (\"%s\")\n",
		(const void *)table, fsm_name(f, table), to, table[to].name);
	abort();
}
