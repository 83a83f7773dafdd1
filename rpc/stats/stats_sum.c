/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading what all CPTs have counted. */
#include "rpc/stats/stats.h"

#include <errno.h>
#include <string.h>

/* Peers that are copied, or reset, in one turn: they have a KiB each, in the
 * coldest of memory. */
#define SLICE 64

struct reading {
	struct shard *shard;
	enum stat_side side;
	struct stat_cursor *cursor; /* the shard's */
	struct stats_sum *sum;	    /* NULL: everything is set to 0 */
	bool more;
};

static void copy_free(struct stat_peer_copy *p)
{
	if (p->times)
		hist_small_clear(p->times);
	free(p->times);
}

static int copy_times(const struct hist_small *from, struct hist_small **to_p)
{
	struct hist_small *to = malloc(sizeof(*to));

	if (!to)
		return -ENOMEM;
	*to = *from;
	if (from->full) {
		to->full = malloc(sizeof(*to->full));
		if (!to->full) {
			free(to);
			return -ENOMEM;
		}
		*to->full = *from->full;
	}
	*to_p = to;
	return 0;
}

static int peer_copy(const struct reading *r, struct stat_peer *p)
{
	const struct stat_gauger *gauger = r->shard->stats->gauger[r->side];
	struct stats_sum *sum = r->sum;
	enum stat_side side = r->side;
	struct stat_peer_copy *copy;
	size_t room = sum->room[side];

	if (sum->npeers[side] == room) {
		room = room ? room * 2 : 64;
		copy = realloc(sum->peers[side], room * sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		sum->peers[side] = copy;
		sum->room[side] = room;
	}
	copy = &sum->peers[side][sum->npeers[side]];
	*copy = (struct stat_peer_copy){ .id = p->id };
	memcpy(copy->counts, p->counts, sizeof(copy->counts));
	if (p->times && copy_times(p->times, &copy->times))
		return -ENOMEM;
	sum->npeers[side]++;
	if (!gauger)
		return 0;
	return gauger->peer(r->shard, p, &copy->gauges, &sum->all);
}

/* On the shard's CPT. */
static int read_peers(void *arg)
{
	struct reading *r = arg;
	struct stat_shard *st = r->shard->stats;
	struct stat_peer *p = NULL;
	int rc = 0;

	if (!r->cursor)
		r->cursor = stat_cursor_new(st, r->side);
	if (!r->cursor)
		return -ENOMEM;
	stat_fold(st);
	for (int i = 0; i < SLICE && !rc; i++) {
		p = stat_cursor_next(st, r->cursor);
		if (!p)
			break;
		if (r->sum)
			rc = peer_copy(r, p);
		else
			stat_peer_reset(p);
	}
	r->more = !rc && p;
	if (!r->more) {
		stat_cursor_end(r->cursor);
		r->cursor = NULL;
	}
	return rc;
}

/* What is counted on the shard, without its peers. On the shard's CPT. */
static int read_others(void *arg)
{
	struct reading *r = arg;
	struct stat_shard *st = r->shard->stats;
	int rc;

	if (!r->sum) {
		stat_shard_reset(st);
		return 0;
	}
	rc = stat_shard_merge(&r->sum->all, st);
	for (enum stat_side side = 0; side < STAT_SIDES && !rc; side++)
		if (st->gauger[side])
			rc = st->gauger[side]->methods(r->shard, &r->sum->all);
	return rc;
}

static int read_shard(struct shard *s, struct stats_sum *sum, bool peers)
{
	struct reading r = { .shard = s, .sum = sum };
	int rc = lnet_call(s->node, s->cpt, read_others, &r);

	for (enum stat_side side = 0; peers && side < STAT_SIDES && !rc;
	     side++) {
		r.side = side;
		do
			rc = lnet_call(s->node, s->cpt, read_peers, &r);
		while (!rc && r.more);
	}
	return rc;
}

static int read_all(struct ulrpc *rpc, struct stats_sum *sum, bool peers)
{
	int rc = 0;

	if (lnet_in_turn())
		return -EDEADLK;
	for (unsigned int i = 0; i < rpc->ncpts && !rc; i++)
		rc = rpc->shards[i].crashed ? -ESHUTDOWN
					    : read_shard(&rpc->shards[i], sum,
							 peers);
	return rc;
}

static int by_id(const void *a, const void *b)
{
	const struct stat_peer_copy *x = a, *y = b;
	int cmp = lnet_nid_cmp(&x->id.nid, &y->id.nid);

	return cmp ? cmp : (x->id.pid > y->id.pid) - (x->id.pid < y->id.pid);
}

static int sum_make(struct ulrpc *rpc, bool peers, struct stats_sum **sum_p)
{
	struct stats_sum *sum = calloc(1, sizeof(*sum));
	int rc;

	if (!sum)
		return -ENOMEM;
	stat_shard_init(&sum->all);
	rc = read_all(rpc, sum, peers);
	if (rc) {
		stats_sum_free(sum);
		return rc;
	}
	for (enum stat_side side = 0; side < STAT_SIDES; side++)
		if (sum->npeers[side])
			qsort(sum->peers[side], sum->npeers[side],
			      sizeof(sum->peers[side][0]), by_id);
	*sum_p = sum;
	return 0;
}

int stats_sum(struct ulrpc *rpc, struct stats_sum **sum_p)
{
	return sum_make(rpc, true, sum_p);
}

int stats_sum_methods(struct ulrpc *rpc, struct stats_sum **sum_p)
{
	return sum_make(rpc, false, sum_p);
}

void stats_sum_free(struct stats_sum *sum)
{
	for (enum stat_side side = 0; side < STAT_SIDES; side++) {
		for (size_t i = 0; i < sum->npeers[side]; i++)
			copy_free(&sum->peers[side][i]);
		free(sum->peers[side]);
	}
	stat_shard_fini(&sum->all);
	free(sum);
}

int ulrpc_stats_reset(struct ulrpc *rpc)
{
	return read_all(rpc, NULL, true);
}
