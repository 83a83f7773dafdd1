/* SPDX-License-Identifier: BSD-3-Clause */
/* A stage of a choice of path: the best candidate of one kind. */
#ifndef LNET_STAGE_H
#define LNET_STAGE_H

#include "lnet/path/select.h"

/* A choice in progress. "The NI named" is the one that the sender has named:
 * request->src, request->dst. */
struct seek {
	struct lnet_cpt *cpt;
	const struct path_request *request;
	struct lnet_ni *src;	  /* the local NI named; NULL: none is named */
	struct lnet_peer_ni *dst; /* the peer NI named; NULL: not known yet */
	bool mr;		  /* any NI of the peer may be chosen */
	/* criteria (RANK_BY()) in which all candidates count as equal */
	uint32_t ignored;
	struct path_trace *trace; /* NULL: not wanted */
};

struct stage {
	const struct seek *seek;
	void *best; /* best candidate so far; NULL: none yet */
	struct path_rank rank[2];
	/* the rank of the best candidate, and that of the next one: the two
	 * elements of @rank */
	struct path_rank *best_rank, *next_rank;
	/* Indexes in the trace: */
	unsigned int begin; /* index of the first candidate */
	/* 1 + index of the best candidate; .begin: none */
	unsigned int after_best;
};

/* Adds a candidate to @t. @rank NULL: it cannot be chosen. */
void stage_trace(struct path_trace *t, enum ulnet_path_kind kind,
		 const struct ulnet_nid *nid, enum ulnet_path_why why,
		 const struct path_rank *rank);
/* As rank_is_better(), out of line: for criteria that are no constant. */
bool stage_is_better_by(uint32_t criteria, const struct path_rank *r,
			const struct path_rank *best);
/* Notes in the trace by which criterion each candidate lost. Candidates that
 * are equal to the best one, because none of them has ever been used, lost
 * because the best one came first. */
void stage_explain(const struct stage *st);

/* In all calls of these inline functions @kind is a constant, and the same for
 * all candidates of the stage: so criteria of other kinds cost nothing. */
static inline void stage_begin(struct stage *st, const struct seek *s,
			       enum ulnet_path_kind kind)
{
	st->seek = s;
	st->best = NULL;
	rank_clear(rank_criteria[kind] & ~RANK_SELDOM, &st->rank[0]);
	rank_clear(rank_criteria[kind] & ~RANK_SELDOM, &st->rank[1]);
	st->next_rank = &st->rank[0];
	st->best_rank = &st->rank[1];
	st->begin = st->after_best = s->trace ? s->trace->n : 0;
}

/* Returns the rank of the candidate that is offered next, for the caller to
 * fill in: with the same keys for all candidates of a stage. */
static inline struct path_rank *stage_rank(struct stage *st)
{
	return st->next_rank;
}

/* The usual seek.ignored. It is a constant, so that little code is made of the
 * comparison. */
#define STAGE_IGNORED (RANK_BY_POLICY | RANK_SELDOM)

static inline bool stage_is_better(const struct stage *st,
				   enum ulnet_path_kind kind)
{
	const struct path_rank *r = st->next_rank;
	const struct path_rank *best = st->best_rank;
	uint32_t ignored = st->seek->ignored;

	if (likely(ignored == STAGE_IGNORED))
		return rank_is_better(rank_criteria[kind] & ~STAGE_IGNORED, r,
				      best);
	return stage_is_better_by(rank_criteria[kind] & ~ignored, r, best);
}

/* The candidate of stage_rank() is the best one so far. */
static inline void stage_take(struct stage *st, void *candidate)
{
	struct path_rank *r = st->next_rank;

	st->best = candidate;
	st->next_rank = st->best_rank;
	st->best_rank = r;
}

/* stage_offer() with a trace. */
void stage_offer_traced(struct stage *st, enum ulnet_path_kind kind,
			void *candidate, const struct ulnet_nid *nid);

/* Compares @candidate, whose rank the caller has put into stage_rank(), with
 * the best one so far. */
static inline void stage_offer(struct stage *st, enum ulnet_path_kind kind,
			       void *candidate, const struct ulnet_nid *nid)
{
	if (unlikely(st->seek->trace))
		stage_offer_traced(st, kind, candidate, nid);
	else if (!st->best || stage_is_better(st, kind))
		stage_take(st, candidate);
}

/* Notes in the trace that the candidate with @nid cannot be chosen, and why. */
static inline void stage_refuse(const struct stage *st,
				enum ulnet_path_kind kind,
				const struct ulnet_nid *nid,
				enum ulnet_path_why why)
{
	if (unlikely(st->seek->trace))
		stage_trace(st->seek->trace, kind, nid, why, NULL);
}

/* Returns the best candidate, or NULL if there was none. */
static inline void *stage_end(const struct stage *st)
{
	if (unlikely(st->seek->trace))
		stage_explain(st);
	return st->best;
}

#endif
