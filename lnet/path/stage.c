/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/stage.h"

#include <stdlib.h>

void stage_trace(struct path_trace *t,
				  enum ulnet_path_kind kind,
				  const struct ulnet_nid *nid,
				  enum ulnet_path_why why,
				  const struct path_rank *rank)
{
	unsigned int room = t->n < t->room ? t->room : 2 * t->room + 8;
	struct path_seen *seen = t->seen;

	if (room != t->room)
		seen = realloc(seen, room * sizeof(*seen));
	if (!seen) {
		t->incomplete = true;
		return;
	}
	t->seen = seen;
	t->room = room;
	t->seen[t->n++] = (struct path_seen){
		.kind = kind,
		.nid = *nid,
		.why = why,
		.rank = rank ? *rank : (struct path_rank){ { 0 } },
	};
}

bool stage_is_better_by(uint32_t criteria,
					  const struct path_rank *r,
					  const struct path_rank *best)
{
	return rank_is_better(criteria, r, best);
}

void stage_offer_traced(struct stage *st, enum ulnet_path_kind kind,
			void *candidate, const struct ulnet_nid *nid)
{
	struct path_trace *t = st->seek->trace;

	stage_trace(t, kind, nid, LNET_PATH_CHOSEN, st->next_rank);
	if (st->best && !stage_is_better(st, kind))
		return;
	stage_take(st, candidate);
	st->after_best = t->n;
}

void stage_explain(const struct stage *st)
{
	struct path_trace *t = st->seek->trace;

	for (unsigned int i = st->begin; i < t->n; i++) {
		struct path_seen *seen = &t->seen[i];

		if (seen->why != LNET_PATH_CHOSEN || i + 1 == st->after_best)
			continue;
		seen->why = rank_decides(rank_criteria[seen->kind] &
						 ~st->seek->ignored,
					 st->best_rank, &seen->rank);
		if (seen->why == LNET_PATH_CHOSEN)
			seen->why = LNET_PATH_TURN;
	}
}
