/* SPDX-License-Identifier: BSD-3-Clause */
/* ulrpc_counters(): the sums of all CPTs, number by number. */
#include "rpc/stats/stats.h"

#define HELP(name, help) help,
static const char *const stat_helps[RPC_STATS] = {
#define STAT	 HELP
#define STAT_NOW HELP
#include "rpc/stats/stat.def"
#undef STAT
#undef STAT_NOW
};
static const char *const count_helps[STAT_COUNTS_ALL] = { STAT_COUNTS(HELP) };
static const char *const call_helps[] = { STAT_CALL_TIMES(HELP) };
static const char *const request_helps[] = { STAT_REQUEST_TIMES(HELP) };
static const char *const *const time_helps[STAT_SIDES] = {
	[STAT_CALLS] = call_helps,
	[STAT_REQUESTS] = request_helps,
};

/* Who is told, and of what. */
struct telling {
	struct ulrpc *rpc;
	struct stat_shard *all;
	ulrpc_counter_fn fn;
	void *arg;
};

/* What is told of a method: either of the two. */
typedef void (*take_fn)(struct ulrpc_counter *c, const struct stat_method *m,
			unsigned int which);

static void take_count(struct ulrpc_counter *c, const struct stat_method *m,
		       unsigned int which)
{
	c->value = m->counts[which];
}

static void take_time(struct ulrpc_counter *c, const struct stat_method *m,
		      unsigned int which)
{
	c->value = m->times[which].sum;
	c->samples = hist_count(&m->times[which]);
}

/* @c, which has its name, of each method of a side. */
static void tell_methods(const struct telling *t, enum stat_side side,
			 struct ulrpc_counter *c, take_fn take,
			 unsigned int which)
{
	const struct stat_service *sv;

	list_for_each_entry (sv, &t->all->services[side], link) {
		const struct stat_method *m = NULL;
		uint32_t bucket = 0;

		c->service = sv->name;
		while ((m = stat_method_walk(sv, &bucket, m))) {
			c->number = m->number;
			c->method = stats_method_name(t->rpc, m->number);
			take(c, m, which);
			t->fn(t->arg, c);
		}
	}
}

static void tell_side(const struct telling *t, enum stat_side side)
{
	const struct stat_kind *kind = &stat_kinds[side];
	struct ulrpc_counter c = { .kind = ULRPC_COUNTER_GROWS,
				   .served = side == STAT_REQUESTS };

	for (unsigned int i = 0; i < STAT_COUNTS_ALL; i++) {
		if (!(kind->counts & 1u << i))
			continue;
		c.name = stat_count_names[i];
		c.help = count_helps[i];
		tell_methods(t, side, &c, take_count, i);
	}
	c.kind = ULRPC_COUNTER_TIMES;
	for (unsigned int i = 0; i < kind->ntimes; i++) {
		c.name = kind->times[i];
		c.help = time_helps[side][i];
		tell_methods(t, side, &c, take_time, i);
	}
}

static void tell_node(const struct telling *t)
{
	for (unsigned int i = 0; i < RPC_STATS; i++) {
		const struct ulrpc_counter c = {
			.name = rpc_stat_names[i],
			.help = stat_helps[i],
			.kind = i < RPC_STATS_NOW ? ULRPC_COUNTER_GROWS
						  : ULRPC_COUNTER_NOW,
			.value = t->all->counts[i],
		};

		t->fn(t->arg, &c);
	}
}

int ulrpc_counters(struct ulrpc *rpc, ulrpc_counter_fn fn, void *arg)
{
	struct stats_sum *sum;
	struct telling t = { .rpc = rpc, .fn = fn, .arg = arg };
	int rc = stats_sum_methods(rpc, &sum);

	if (rc)
		return rc;
	t.all = &sum->all;
	tell_node(&t);
	for (enum stat_side side = 0; side < STAT_SIDES; side++)
		tell_side(&t, side);
	stats_sum_free(sum);
	return 0;
}
