/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stats/stats.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/crc32c.h"
#include "rpc/run.h"

/* ---- reading what all CPTs have counted ---- */

/* Peers that are copied or reset in one turn, at most. The statistics of a peer
 * take a KiB, which is usually in no cache. */
#define SLICE 64

struct reading {
	struct shard *shard;
	enum stat_side side;
	struct stat_cursor *cursor; /* position in the peers of the shard */
	/* where statistics are added up; NULL: they are reset */
	struct stats_sum *sum;
	bool more;
};

static void copy_free(struct stat_peer_copy *p)
{
	if (p->times)
		hist_small_clear(p->times);
	free(p->times);
	free(p->gauges.proof);
}

static int copy_times(const struct hist_small *from, struct hist_small **to_p)
{
	struct hist_small *to = malloc(sizeof(*to));

	if (!to)
		return -ENOMEM;
	*to = *from;
	if (from->spilled) {
		to->spilled = malloc(sizeof(*to->spilled));
		if (!to->spilled) {
			free(to);
			return -ENOMEM;
		}
		*to->spilled = *from->spilled;
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

/* Copies or resets the next SLICE peers. Runs on the shard's CPT. */
static int read_peers_slice(void *arg)
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

/* How many streams there are is counted by rpc/stream. */
struct streams_reading {
	struct stat_shard *sum;
	enum stat_side side;
	int rc;
};

static void on_streams(void *arg, const char *service, uint64_t n)
{
	struct streams_reading *r = arg;

	r->sum->counts[r->side == STAT_CALLS ? RPC_STAT_streams_open
					     : RPC_STAT_streams_served] += n;
	if (!r->rc)
		r->rc = stat_service_streams(r->sum, r->side, service, n);
}

static int read_streams(struct shard *s, struct stat_shard *sum)
{
	struct streams_reading r = { sum, STAT_CALLS, 0 };

	if (s->rpc->client)
		s->rpc->client->streams(s, on_streams, &r);
	r.side = STAT_REQUESTS;
	if (s->rpc->server)
		s->rpc->server->streams(s, on_streams, &r);
	return r.rc;
}

/* Adds up or resets everything but peers. Runs on the shard's CPT. */
static int read_others(void *arg)
{
	struct reading *r = arg;
	struct stat_shard *st = r->shard->stats;
	int rc;

	if (!r->sum) {
		stat_shard_reset(st);
		return 0;
	}
	rc = stat_shard_merge(&r->sum->all, st, shard_now(r->shard));
	for (enum stat_side side = 0; side < STAT_SIDES && !rc; side++)
		if (st->gauger[side])
			rc = st->gauger[side]->methods(r->shard, &r->sum->all);
	return rc ? rc : read_streams(r->shard, &r->sum->all);
}

static int read_shard(struct shard *s, struct stats_sum *sum, bool peers)
{
	struct reading r = { .shard = s, .sum = sum };
	int rc = lnet_call(s->node, s->cpt, read_others, &r);

	for (enum stat_side side = 0; peers && side < STAT_SIDES && !rc;
	     side++) {
		r.side = side;
		do
			rc = lnet_call(s->node, s->cpt, read_peers_slice, &r);
		while (!rc && r.more);
	}
	return rc;
}

static int shards_read(struct ulrpc *rpc, struct stats_sum *sum, bool peers)
{
	int rc = 0;

	if (lnet_in_turn())
		return -EDEADLK;
	for (unsigned int i = 0; i < rpc->ncpts && !rc; i++)
		rc = read_shard(&rpc->shards[i], sum, peers);
	return rc;
}

int proofs_cmp(const struct stat_proof *a, const struct stat_proof *b)
{
	int cmp;

	if (!a || !b)
		return !!a - !!b;
	cmp = (int)a->peer.kind - (int)b->peer.kind;
	if (!cmp)
		cmp = strcmp(a->peer.name, b->peer.name);
	return cmp ? cmp : strcmp(a->peer.issuer, b->peer.issuer);
}

static int by_id(const void *a, const void *b)
{
	const struct stat_peer_copy *x = a, *y = b;
	int cmp = lnet_nid_cmp(&x->id.nid, &y->id.nid);

	if (!cmp)
		cmp = (x->id.pid > y->id.pid) - (x->id.pid < y->id.pid);
	return cmp ? cmp : proofs_cmp(x->gauges.proof, y->gauges.proof);
}

int stats_sum(struct ulrpc *rpc, bool peers, struct stats_sum **sum_p)
{
	struct stats_sum *sum = calloc(1, sizeof(*sum));
	int rc;

	if (!sum)
		return -ENOMEM;
	stat_shard_init(&sum->all);
	rc = shards_read(rpc, sum, peers);
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
	return shards_read(rpc, NULL, true);
}

/* ---- names ---- */

struct method_name {
	struct list link; /* node in stats.names */
	uint32_t number;
	char name[];
};

struct stats {
	pthread_mutex_t lock; /* protects the other fields */
	struct list names;    /* a list that only grows */
	struct lnet_control *control;
};

static int stats_open(struct ulrpc *rpc)
{
	struct stats *st = calloc(1, sizeof(*st));

	if (!st)
		return -ENOMEM;
	pthread_mutex_init(&st->lock, NULL);
	list_init(&st->names);
	rpc->stats = st;
	return 0;
}

static void stats_free(struct ulrpc *rpc)
{
	struct stats *st = rpc->stats;
	struct method_name *n, *next;

	if (!st)
		return;
	rpc->stats = NULL;
	list_for_each_entry_safe (n, next, &st->names, link)
		free(n);
	pthread_mutex_destroy(&st->lock);
	free(st);
}

/* Finds the name of a method. The caller holds the lock. */
static const char *name_find(const struct stats *st, uint32_t number)
{
	const struct method_name *n;

	list_for_each_entry (n, &st->names, link)
		if (n->number == number)
			return n->name;
	return NULL;
}

const char *stats_method_name(struct ulrpc *rpc, uint32_t number)
{
	const char *name;

	pthread_mutex_lock(&rpc->stats->lock);
	name = name_find(rpc->stats, number);
	pthread_mutex_unlock(&rpc->stats->lock);
	return name;
}

const char *ulrpc_method_name(struct ulrpc *rpc, uint32_t method)
{
	return stats_method_name(rpc, method);
}

int ulrpc_method_declare(struct ulrpc *rpc, const char *name)
{
	size_t length = strlen(name);
	uint32_t number = crc32c(0, name, length);
	struct stats *st = rpc->stats;
	struct method_name *n = NULL;
	int rc = 0;

	if (lnet_is_forked(rpc->node))
		return -ESHUTDOWN;
	pthread_mutex_lock(&st->lock);
	if (!name_find(st, number)) {
		n = malloc(sizeof(*n) + length + 1);
		rc = n ? 0 : -ENOMEM;
	}
	if (n) {
		n->number = number;
		memcpy(n->name, name, length + 1);
		list_add_tail(&st->names, &n->link);
	}
	pthread_mutex_unlock(&st->lock);
	return rc;
}

/* ---- as text ---- */

static int stats_text(struct ulrpc *rpc, enum stats_shown shown, char **yaml_p)
{
	struct stats_sum *sum;
	char *text = NULL;
	size_t size = 0;
	FILE *f;
	bool bad;
	int rc = stats_sum(rpc, true, &sum);

	if (rc)
		return rc;
	f = open_memstream(&text, &size);
	if (f) {
		stats_print(rpc, sum, shown, f);
		bad = ferror(f);
		rc = fclose(f) || bad ? -ENOMEM : 0;
	} else {
		rc = -ENOMEM;
	}
	stats_sum_free(sum);
	if (rc)
		free(text);
	else
		*yaml_p = text;
	return rc;
}

int ulrpc_stats(struct ulrpc *rpc, char **yaml_p)
{
	return stats_text(rpc, STATS_BUCKETS, yaml_p);
}

/* ---- through the control socket ---- */

int control_flag(struct lnet_control_call *call, const char *key, bool *flag_p)
{
	const char *text = "false";
	int rc = lnet_control_text(call, key, &text);

	*flag_p = strcmp(text, "false") != 0;
	return rc;
}

static int on_show(void *arg, struct lnet_control_call *call, char **output_p)
{
	enum stats_shown shown = STATS_ALL;
	bool connections = false;
	int64_t verbose = 0;
	int rc = lnet_control_number(call, "verbose", 0, INT32_MAX, &verbose);

	if (!rc)
		rc = control_flag(call, "connections", &connections);
	if (verbose > 0)
		shown = STATS_BUCKETS;
	if (connections)
		shown = STATS_CONNECTIONS;
	return rc ? rc : stats_text(arg, shown, output_p);
}

static int on_reset(void *arg, struct lnet_control_call *call, char **output_p)
{
	(void)call;
	(void)output_p;
	return ulrpc_stats_reset(arg);
}

/* What ulnet_control_command.gone calls: the control was closed before RPC. */
static void on_control_gone(void *arg)
{
	struct stats *st = ((struct ulrpc *)arg)->stats;

	pthread_mutex_lock(&st->lock);
	st->control = NULL;
	pthread_mutex_unlock(&st->lock);
}

static int on_metrics(void *arg, struct lnet_control_call *call,
		      char **output_p)
{
	(void)call;
	return rpc_metrics(arg, output_p);
}

static const char *const show_keys[] = { "verbose", "connections", NULL };
static const char *const rules_keys[] = { "text", "check", "clear", NULL };

static const struct ulnet_control_command stats_commands[] = {
	{ .name = "rpc show", .keys = show_keys, .fn = on_show },
	{ .name = "rpc reset", .fn = on_reset },
	{ .name = "rpc metrics", .fn = on_metrics },
	{ .name = "rpc slow", .fn = on_slow },
	{ .name = "rpc top", .fn = on_top },
	{ .name = "rpc set", .keys = set_keys, .fn = on_set },
	{ .name = "rpc rules", .keys = rules_keys, .fn = on_rules },
};

/* Removes the commands stats_commands[0] to [@n - 1]. */
static void control_del(struct lnet_control *control, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		lnet_control_del(control, stats_commands[i].name);
}

static int control_add(struct ulrpc *rpc, struct lnet_control *control)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(stats_commands); i++) {
		struct ulnet_control_command c = stats_commands[i];
		int rc;

		c.gone = on_control_gone;
		c.arg = rpc;
		rc = lnet_control_add(control, &c);
		if (rc) {
			control_del(control, i);
			return rc;
		}
	}
	return 0;
}

int ulrpc_control(struct ulrpc *rpc, struct lnet_control *control)
{
	struct stats *st = rpc->stats;
	struct lnet_control *old;
	int rc;

	if (lnet_in_turn())
		return -EDEADLK;
	if (lnet_is_forked(rpc->node))
		return -ESHUTDOWN;
	pthread_mutex_lock(&st->lock);
	old = st->control;
	st->control = NULL;
	pthread_mutex_unlock(&st->lock);
	if (old)
		control_del(old, ARRAY_SIZE(stats_commands));
	if (!control)
		return 0;
	rc = control_add(rpc, control);
	if (rc)
		return rc;
	pthread_mutex_lock(&st->lock);
	st->control = control;
	pthread_mutex_unlock(&st->lock);
	return 0;
}

void stats_close(struct ulrpc *rpc)
{
	if (rpc->stats)
		BUG_ON(ulrpc_control(rpc, NULL));
}

/* ---- the part ---- */

static int stats_shard_open(struct shard *s)
{
	stat_shard_init(s->stats);
	s->stats->shard = s;
	s->runs->count = stat_on_run;
	s->runs->failed = stat_on_failed_run;
	return 0;
}

static void stats_shard_free(struct shard *s)
{
	stat_shard_fini(s->stats);
}

const struct rpc_part stat_part = {
	RPC_PART_STATE(struct stat_shard, stats),
	.open = stats_open,
	.shard_open = stats_shard_open,
	.shard_free = stats_shard_free,
	.free = stats_free,
};
