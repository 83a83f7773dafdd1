/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics one counter at a time: for ulrpc_counters(), and as metrics of
 * Prometheus. */
#include "rpc/stats/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "base/util.h"
#include "ulnet/rpc.h"

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

/* A walk over all counters, which calls @fn for each of them. */
struct walk {
	struct ulrpc *rpc;
	struct stat_shard *all;
	ulrpc_counter_fn fn;
	void *arg;
};

/* Calls w->fn for each method, with @c, in which name, help, kind and served
 * are set. @which: the count to pass on, or the time, if c->kind is
 * ULRPC_COUNTER_TIMES. */
static void walk_methods(const struct walk *w, enum stat_side side,
			 struct ulrpc_counter *c, unsigned int which)
{
	const struct stat_service *sv;

	list_for_each_entry (sv, &w->all->services[side], link) {
		const struct stat_method *m = NULL;
		uint32_t bucket = 0;

		c->service = sv->name;
		while ((m = stat_method_walk(sv, &bucket, m))) {
			c->number = m->number;
			c->method = stats_method_name(w->rpc, m->number);
			if (c->kind == ULRPC_COUNTER_TIMES) {
				c->value = m->times[which].sum;
				c->samples = hist_count(&m->times[which]);
			} else {
				c->value = m->counts[which];
			}
			w->fn(w->arg, c);
		}
	}
}

static void walk_side(const struct walk *w, enum stat_side side)
{
	const struct stat_kind *kind = &stat_kinds[side];
	struct ulrpc_counter c = { .kind = ULRPC_COUNTER_GROWS,
				   .served = side == STAT_REQUESTS };

	for (unsigned int i = 0; i < STAT_COUNTS_ALL; i++) {
		if (!(kind->counts & 1u << i))
			continue;
		c.name = stat_count_names[i];
		c.help = count_helps[i];
		walk_methods(w, side, &c, i);
	}
	c.kind = ULRPC_COUNTER_TIMES;
	for (unsigned int i = 0; i < kind->ntimes; i++) {
		c.name = kind->times[i];
		c.help = time_helps[side][i];
		walk_methods(w, side, &c, i);
	}
}

static void walk_node(const struct walk *w)
{
	for (unsigned int i = 0; i < RPC_STATS; i++) {
		const struct ulrpc_counter c = {
			.name = rpc_stat_names[i],
			.help = stat_helps[i],
			.kind = i < RPC_STATS_NOW ? ULRPC_COUNTER_GROWS
						  : ULRPC_COUNTER_NOW,
			.value = w->all->counts[i],
		};

		w->fn(w->arg, &c);
	}
}

int ulrpc_counters(struct ulrpc *rpc, ulrpc_counter_fn fn, void *arg)
{
	struct stats_sum *sum;
	struct walk w = { .rpc = rpc, .fn = fn, .arg = arg };
	int rc = stats_sum(rpc, false, &sum);

	if (rc)
		return rc;
	w.all = &sum->all;
	walk_node(&w);
	for (enum stat_side side = 0; side < STAT_SIDES; side++)
		walk_side(&w, side);
	stats_sum_free(sum);
	return 0;
}

/* ---- metrics of Prometheus ---- */

struct printing {
	FILE *out;
	char name[64]; /* the metric that is being printed */
};

/* Writes the name of the metric to @buf, for example
 * "ulnet_rpc_parcels_sent_total" (of the node), "ulnet_rpc_client_calls_total"
 * (of calls), "ulnet_rpc_server_seconds" (all times of requests). */
static void metric_name(const struct ulrpc_counter *c, char *buf, size_t size)
{
	const char *side = !c->service ? "" : c->served ? "server_" : "client_";

	if (c->kind == ULRPC_COUNTER_TIMES)
		snprintf(buf, size, "ulnet_rpc_%sseconds", side);
	else
		snprintf(buf, size, "ulnet_rpc_%s%s%s", side, c->name,
			 c->kind == ULRPC_COUNTER_NOW ? "" : "_total");
}

static void begin_metric(struct printing *p, const struct ulrpc_counter *c)
{
	static const char *const types[] = {
		[ULRPC_COUNTER_GROWS] = "counter",
		[ULRPC_COUNTER_NOW] = "gauge",
		[ULRPC_COUNTER_TIMES] = "summary",
	};
	char name[sizeof(p->name)];

	metric_name(c, name, sizeof(name));
	if (strcmp(name, p->name) == 0)
		return;
	text_copy(p->name, sizeof(p->name), name);
	metric_head(p->out, name, types[c->kind],
		    c->kind == ULRPC_COUNTER_TIMES
			    ? "Times of calls, or requests, by stage"
			    : c->help);
}

static void print_labels(FILE *out, const struct ulrpc_counter *c)
{
	char number[16];

	snprintf(number, sizeof(number), "0x%08" PRIx32, c->number);
	fputs("{service=", out);
	metric_quoted(out, c->service);
	fputs(",method=", out);
	metric_quoted(out, c->method ? c->method : number);
	if (c->kind == ULRPC_COUNTER_TIMES) {
		fputs(",stage=", out);
		metric_quoted(out, c->name);
	}
	fputc('}', out);
}

static void print_series(const struct printing *p, const char *end,
			 const struct ulrpc_counter *c)
{
	fprintf(p->out, "%s%s", p->name, end);
	if (c->service)
		print_labels(p->out, c);
	fputc(' ', p->out);
}

static void print_counter(void *arg, const struct ulrpc_counter *c)
{
	struct printing *p = arg;

	begin_metric(p, c);
	if (c->kind != ULRPC_COUNTER_TIMES) {
		print_series(p, "", c);
		fprintf(p->out, "%" PRIu64 "\n", c->value);
		return;
	}
	print_series(p, "_sum", c);
	metric_seconds(p->out, c->value);
	print_series(p, "_count", c);
	fprintf(p->out, "%" PRIu64 "\n", c->samples);
}

/* Sets *@text_p to all metrics, which the caller frees. Returns 0 or a negative
 * errno. */
static int make_text(struct ulrpc *rpc, char **text_p)
{
	size_t size;
	struct printing p = { .out = open_memstream(text_p, &size) };
	int rc, failed;

	if (!p.out)
		return -ENOMEM;
	rc = ulrpc_counters(rpc, print_counter, &p);
	failed = ferror(p.out);
	failed |= fclose(p.out);
	if (!rc && failed)
		rc = -ENOMEM;
	if (rc)
		free(*text_p);
	return rc;
}

int rpc_metrics(struct ulrpc *rpc, char **yaml_p)
{
	char *text, *quoted = NULL;
	int rc = make_text(rpc, &text);

	if (rc)
		return rc;
	rc = lnet_ctl_quote(text, &quoted);
	if (!rc && asprintf(yaml_p, "text: %s\n", quoted) < 0)
		rc = -ENOMEM;
	free(quoted);
	free(text);
	return rc;
}
