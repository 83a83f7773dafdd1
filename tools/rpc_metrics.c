/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc_metrics.h"

#include <inttypes.h>
#include <string.h>

#include <ulnet/rpc.h>

#include "metrics.h"

struct printing {
	FILE *out;
	char name[64]; /* the metric that is being printed */
};

/* "ulnet_rpc_parcels_sent_total" of the node, "ulnet_rpc_client_calls_total" of
 * calls, "ulnet_rpc_server_seconds" of all times of requests. */
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
	strcpy(p->name, name);
	metrics_head(p->out, name, types[c->kind],
		     c->kind == ULRPC_COUNTER_TIMES
			     ? "Times of calls, or requests, by stage"
			     : c->help);
}

static void print_method(FILE *out, const struct ulrpc_counter *c)
{
	char number[16];

	snprintf(number, sizeof(number), "0x%08" PRIx32, c->number);
	fputs("{service=", out);
	metrics_quoted(out, c->service);
	fputs(",method=", out);
	metrics_quoted(out, c->method ? c->method : number);
	if (c->kind == ULRPC_COUNTER_TIMES) {
		fputs(",stage=", out);
		metrics_quoted(out, c->name);
	}
	fputc('}', out);
}

static void print_series(const struct printing *p, const char *end,
			 const struct ulrpc_counter *c)
{
	fprintf(p->out, "%s%s", p->name, end);
	if (c->service)
		print_method(p->out, c);
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
	metrics_seconds(p->out, c->value);
	print_series(p, "_count", c);
	fprintf(p->out, "%" PRIu64 "\n", c->samples);
}

int rpc_metrics_print(void *rpc, FILE *out)
{
	struct printing p = { .out = out };

	return ulrpc_counters(rpc, print_counter, &p);
}
