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

/* ---- metrics that are more than one number ---- */

static const char *const sides[STAT_SIDES] = {
	[STAT_CALLS] = "client", [STAT_REQUESTS] = "server"
};

/* What is printed of each method, or of each service, of a side. */
struct family {
	const char *name, *type;      /* behind "ulnet_rpc_client_" */
	const char *help[STAT_SIDES]; /* NULL: the side does not have it */
	void (*method)(const struct printing *p, const struct stat_service *sv,
		       const struct stat_method *m, const char *method);
	void (*service)(const struct printing *p,
			const struct stat_service *sv);
};

static void begin_series(const struct printing *p, const char *end,
			 const struct stat_service *sv, const char *method)
{
	fprintf(p->out, "%s%s{service=", p->name, end);
	metric_quoted(p->out, sv->name);
	if (!method)
		return;
	fputs(",method=", p->out);
	metric_quoted(p->out, method);
}

static void begin_caused(const struct printing *p, const char *last,
			 const struct stat_service *sv, const char *method,
			 unsigned int end)
{
	begin_series(p, last, sv, method);
	fputs(",cause=", p->out);
	metric_quoted(p->out, stat_kinds[sv->side].end(end));
}

/* The bounds are powers of two, at which buckets of struct hist end: 1.024 us,
 * twice as much, and so on to 17 s. */
#define LATENCY_FIRST_BITS 10
#define LATENCY_BUCKETS	   25

static void print_histogram(const struct printing *p,
			    const struct stat_service *sv, const char *method,
			    unsigned int end, const struct hist *h)
{
	unsigned int b = 0;
	uint64_t n = 0, low;

	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++) {
		uint64_t bound = UINT64_C(1) << (LATENCY_FIRST_BITS + i);

		while (b < HIST_BUCKETS &&
		       hist_range(b, HIST_UNIT_BITS, &low) <= bound)
			n += h->n[b++];
		begin_caused(p, "_bucket", sv, method, end);
		fprintf(p->out,
			",le=\"%" PRIu64 ".%09" PRIu64 "\"} %" PRIu64 "\n",
			bound / NSEC_PER_SEC, bound % NSEC_PER_SEC, n);
	}
	while (b < HIST_BUCKETS)
		n += h->n[b++];
	begin_caused(p, "_bucket", sv, method, end);
	fprintf(p->out, ",le=\"+Inf\"} %" PRIu64 "\n", n);
	begin_caused(p, "_sum", sv, method, end);
	fputs("} ", p->out);
	metric_seconds(p->out, h->sum);
	begin_caused(p, "_count", sv, method, end);
	fprintf(p->out, "} %" PRIu64 "\n", n);
}

static void print_latency(const struct printing *p,
			  const struct stat_service *sv,
			  const struct stat_method *m, const char *method)
{
	struct hist ok;

	stat_ok_times(m, &ok);
	print_histogram(p, sv, method, 0, &ok);
	for (unsigned int i = 1; i < stat_kinds[sv->side].nends; i++) {
		const struct hist *h = stat_failed_times(m, i);

		if (h)
			print_histogram(p, sv, method, i, h);
	}
}

static void print_causes(const struct printing *p,
			 const struct stat_service *sv, const char *method,
			 const uint64_t *ends)
{
	const struct stat_kind *kind = &stat_kinds[sv->side];

	for (unsigned int i = 0; i < kind->nends; i++) {
		if (!ends[i])
			continue;
		begin_caused(p, "", sv, method, i);
		fprintf(p->out, "} %" PRIu64 "\n", ends[i]);
	}
}

static void print_ends(const struct printing *p, const struct stat_service *sv,
		       const struct stat_method *m, const char *method)
{
	print_causes(p, sv, method, m->ends);
}

static void print_refused(const struct printing *p,
			  const struct stat_service *sv)
{
	print_causes(p, sv, NULL, sv->refused);
}

static void print_under_way(const struct printing *p,
			    const struct stat_service *sv)
{
	begin_series(p, "", sv, NULL);
	fprintf(p->out, "} %" PRIu64 "\n", sv->under_way);
}

static void print_waiting(const struct printing *p,
			  const struct stat_service *sv)
{
	begin_series(p, "", sv, NULL);
	fprintf(p->out, "} %" PRIu64 "\n", sv->waiting);
}

static void print_streams(const struct printing *p,
			  const struct stat_service *sv)
{
	begin_series(p, "", sv, NULL);
	fprintf(p->out, "} %" PRIu64 "\n", sv->streams);
}

static const struct family families[] = {
	{ "latency_seconds",
	  "histogram",
	  { "Times from calls to their ends, by cause",
	    "Times from the arrival of requests to their ends, by cause" },
	  .method = print_latency },
	{ "ends_total",
	  "counter",
	  { "Calls that ended, by cause", "Requests that ended, by cause" },
	  .method = print_ends },
	{ "refused_total",
	  "counter",
	  { NULL, "Requests for methods that the service does not have, by "
		  "cause" },
	  .service = print_refused },
	{ "under_way",
	  "gauge",
	  { "Calls that have not ended", "Requests that have not ended" },
	  .service = print_under_way },
	{ "waiting",
	  "gauge",
	  { "Calls that wait to be sent", "Requests that wait for a worker" },
	  .service = print_waiting },
	{ "streams",
	  "gauge",
	  { "Streams of clients that are open",
	    "Streams of the service that are open" },
	  .service = print_streams },
};

static void print_methods(const struct printing *p, struct ulrpc *rpc,
			  const struct family *f, const struct stat_service *sv)
{
	const struct stat_method *m = NULL;
	uint32_t bucket = 0;
	char number[16];

	while ((m = stat_method_walk(sv, &bucket, m))) {
		const char *name = stats_method_name(rpc, m->number);

		snprintf(number, sizeof(number), "0x%08" PRIx32, m->number);
		f->method(p, sv, m, name ? name : number);
	}
}

static void print_family(struct printing *p, struct ulrpc *rpc,
			 const struct stats_sum *sum, const struct family *f,
			 enum stat_side side)
{
	const struct list *services = &sum->all.services[side];
	const struct stat_service *sv;

	if (!f->help[side] || list_empty(services))
		return;
	snprintf(p->name, sizeof(p->name), "ulnet_rpc_%s_%s", sides[side],
		 f->name);
	metric_head(p->out, p->name, f->type, f->help[side]);
	list_for_each_entry (sv, services, link) {
		if (f->service)
			f->service(p, sv);
		else
			print_methods(p, rpc, f, sv);
	}
}

static int print_families(struct printing *p, struct ulrpc *rpc)
{
	struct stats_sum *sum;
	int rc = stats_sum(rpc, false, &sum);

	if (rc)
		return rc;
	for (enum stat_side side = 0; side < STAT_SIDES; side++)
		for (size_t i = 0; i < ARRAY_SIZE(families); i++)
			print_family(p, rpc, sum, &families[i], side);
	stats_sum_free(sum);
	return 0;
}

/* Sets *@text_p to all metrics, which the caller frees. 0 or a negative errno.
 */
static int make_text(struct ulrpc *rpc, char **text_p)
{
	size_t size;
	struct printing p = { .out = open_memstream(text_p, &size) };
	int rc, failed;

	if (!p.out)
		return -ENOMEM;
	rc = ulrpc_counters(rpc, print_counter, &p);
	if (!rc)
		rc = print_families(&p, rpc);
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
