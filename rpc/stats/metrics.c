/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stats/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "base/util.h"
#include "rpc/stats/control_weak.h"
#include "ulnet/rpc.h"

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
	text_copy(p->name, sizeof(p->name), name);
	metric_head(p->out, name, types[c->kind],
		    c->kind == ULRPC_COUNTER_TIMES
			    ? "Times of calls, or requests, by stage"
			    : c->help);
}

static void print_method(FILE *out, const struct ulrpc_counter *c)
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
	metric_seconds(p->out, c->value);
	print_series(p, "_count", c);
	fprintf(p->out, "%" PRIu64 "\n", c->samples);
}

/* As Prometheus has it; to be freed. */
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
