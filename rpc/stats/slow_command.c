/* SPDX-License-Identifier: BSD-3-Clause */
/* The request "rpc slow" of the control socket: lnet_control(7). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/stats/stats.h"
#include "rpc/stats/yaml.h"
#include "rpc/text.h"

/* Prints what is left of the total time of a request that was run: from its
 * handler's reply until the reply was sent. Meanwhile bulk may have been moved.
 */
static void print_reply(struct yaml *y, const struct slow_entry *e)
{
	const uint64_t *times = e->times;
	uint64_t before = times[STAT_REQUEST_TIME_throttled] +
			  times[STAT_REQUEST_TIME_queue] +
			  times[STAT_REQUEST_TIME_service];
	uint64_t total = times[STAT_REQUEST_TIME_total];

	if (e->known & 1u << STAT_REQUEST_TIME_service)
		yaml_time(y, "reply", total > before ? total - before : 0);
}

static void print_entry(struct yaml *y, struct ulrpc *rpc,
			const struct stat_service *sv,
			const struct slow_entry *e)
{
	const struct stat_kind *kind = &stat_kinds[sv->side];
	const char *method = stats_method_name(rpc, e->method);
	char text[MAX(LNET_NIDSTR_SIZE + 16, ULRPC_TRACE_SIZE)];

	yaml_item(y);
	yaml_name(y, "service", sv->name);
	if (method)
		yaml_name(y, "method", method);
	yaml_line(y, "number: \"0x%08" PRIx32 "\"", e->method);
	yaml_line(y, "peer: \"%s\"",
		  lnet_id_format(&e->peer, text, sizeof(text)));
	if (*e->name)
		yaml_name(y, "name", e->name);
	if (e->traced) {
		trace_format(e->trace, text);
		yaml_line(y, "trace: \"%s\"", text);
	}
	yaml_name(y, "end", kind->end(e->end));
	yaml_time(y, "ago_us", e->ended);
	if (sv->side == STAT_CALLS) {
		yaml_count(y, "attempts", e->attempts);
		yaml_count(y, "retries", e->retries);
		yaml_count(y, "refusals", e->refusals);
	}
	yaml_line(y, "times_us:");
	y->depth++;
	for (unsigned int i = 0; i < kind->ntimes; i++)
		if (e->known & 1u << i)
			yaml_time(y, kind->times[i], e->times[i]);
	if (sv->side == STAT_REQUESTS)
		print_reply(y, e);
	y->depth -= 2;
}

static int by_name(const void *a, const void *b)
{
	const struct stat_service *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Prints the tables of all services, which are sorted by their names. */
static int print_side(struct yaml *y, struct ulrpc *rpc, const char *key,
		      const struct list *services)
{
	struct stat_service *sv, **sorted;
	size_t n = 0;

	list_for_each_entry (sv, services, link)
		n += sv->slow.now.n != 0;
	yaml_line(y, n ? "%s:" : "%s: []", key);
	sorted = calloc(n + 1, sizeof(struct stat_service *));
	if (!sorted)
		return -ENOMEM;
	n = 0;
	list_for_each_entry (sv, services, link)
		if (sv->slow.now.n)
			sorted[n++] = sv;
	qsort(sorted, n, sizeof(struct stat_service *), by_name);
	for (size_t i = 0; i < n; i++) {
		slow_sort(&sorted[i]->slow);
		for (unsigned int k = 0; k < sorted[i]->slow.now.n; k++)
			print_entry(y, rpc, sorted[i],
				    &sorted[i]->slow.now.entries[k]);
	}
	free(sorted);
	return 0;
}

static int slow_print(struct ulrpc *rpc, const struct stat_shard *all,
		      FILE *out)
{
	struct yaml y = { .out = out };
	int rc;

	yaml_line(&y, "rpc:");
	y.depth++;
	rc = print_side(&y, rpc, "calls", &all->services[STAT_CALLS]);
	if (!rc)
		rc = print_side(&y, rpc, "requests",
				&all->services[STAT_REQUESTS]);
	return ferror(out) ? -ENOMEM : rc;
}

int on_slow(void *arg, struct lnet_control_call *call, char **output_p)
{
	struct stats_sum *sum;
	char *text = NULL;
	size_t size = 0;
	FILE *f;
	int rc = stats_sum(arg, false, &sum);

	(void)call;
	if (rc)
		return rc;
	f = open_memstream(&text, &size);
	rc = f ? slow_print(arg, &sum->all, f) : -ENOMEM;
	if (f && fclose(f))
		rc = -ENOMEM;
	stats_sum_free(sum);
	if (rc)
		free(text);
	else
		*output_p = text;
	return rc;
}
