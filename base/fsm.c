/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fsm.h"

void fsm_bad_move(const struct fsm *f, const struct fsm_state *table,
		  unsigned int to)
{
	fprintf(stderr, "BUG fsm %p: state \"%s\" may not become %u (\"%s\")\n",
		(const void *)table, fsm_name(f, table), to, table[to].name);
	abort();
}

void fsm_dot(FILE *out, const char *name, const struct fsm_state *table,
	     unsigned int n)
{
	fprintf(out, "digraph \"%s\" {\n", name);
	for (unsigned int from = 0; from < n; from++) {
		fprintf(out, "\t\"%s\";\n", table[from].name);
		for (unsigned int to = 0; to < n; to++) {
			if (table[from].next & FSM_TO(to))
				fprintf(out, "\t\"%s\" -> \"%s\";\n",
					table[from].name, table[to].name);
		}
	}
	fprintf(out, "}\n");
}
