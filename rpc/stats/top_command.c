/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request "rpc top" of the control socket, which "lnetctl top" makes:
 * counters and histograms of services and methods, in lines of words. Other
 * characters than printable ASCII, and % and ',', are %XX in names.
 *
 *	clock NS
 *	service SIDE SERVICE UNDER-WAY WAITING STREAMS
 *	method SIDE SERVICE METHOD CALLS [e:END=COUNT...] [t:NS=COUNT...]
 *
 * SIDE: calls or requests. METHOD: "-": of requests that were refused, as there
 * is no such method, or, with SERVICE "-", no such service. e: ends other than
 * ok. t: the histogram of the total times; NS is the middle of a bucket.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/stats/stats.h"

static const char *const sides[STAT_SIDES] = {
	[STAT_CALLS] = "calls",
	[STAT_REQUESTS] = "requests",
};

static void put_word(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c <= ' ' || c > '~' || strchr("%,=", c))
			fprintf(out, "%%%02X", c);
		else
			fputc(c, out);
	}
}

static void put_ends(FILE *out, enum stat_side side, const uint64_t *ends)
{
	for (unsigned int i = 1; i < stat_kinds[side].nends; i++) {
		if (!ends[i])
			continue;
		fputs(" e:", out);
		put_word(out, stat_kinds[side].end(i));
		fprintf(out, "=%" PRIu64, ends[i]);
	}
}

static void put_times(FILE *out, const struct hist *h)
{
	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		uint64_t low, end = hist_range(i, HIST_UNIT_BITS, &low);

		if (h->n[i])
			fprintf(out, " t:%" PRIu64 "=%" PRIu64,
				low + (end - low) / 2, h->n[i]);
	}
}

static void put_method(FILE *out, struct ulrpc *rpc,
		       const struct stat_service *sv,
		       const struct stat_method *m)
{
	const char *name = stats_method_name(rpc, m->number);

	fprintf(out, "method %s ", sides[sv->side]);
	put_word(out, sv->name);
	fputc(' ', out);
	if (name)
		put_word(out, name);
	else
		fprintf(out, "0x%08" PRIx32, m->number);
	fprintf(out, " %" PRIu64, m->counts[STAT_COUNT_calls]);
	put_ends(out, sv->side, m->ends);
	put_times(out, &m->times[0]);
	fputc('\n', out);
}

/* Prints the requests that were refused by @service, "-" for those of services
 * that there are not. */
static void put_refused(FILE *out, const char *service, const uint64_t *ends)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < STAT_ENDS_MAX; i++)
		sum += ends[i];
	if (!sum)
		return;
	if (strcmp(service, "-") == 0)
		fputs("service requests - 0 0 0\n", out);
	fputs("method requests ", out);
	put_word(out, service);
	fprintf(out, " - %" PRIu64, sum);
	put_ends(out, STAT_REQUESTS, ends);
	fputc('\n', out);
}

static void put_service(FILE *out, struct ulrpc *rpc,
			const struct stat_service *sv)
{
	const struct stat_method *m = NULL;
	uint32_t bucket = 0;

	fprintf(out, "service %s ", sides[sv->side]);
	put_word(out, sv->name);
	fprintf(out, " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", sv->under_way,
		sv->waiting, sv->streams);
	while ((m = stat_method_walk(sv, &bucket, m)))
		put_method(out, rpc, sv, m);
	if (sv->side == STAT_REQUESTS)
		put_refused(out, sv->name, sv->refused);
}

static int top_text(struct ulrpc *rpc, const struct stats_sum *sum,
		    char **text_p)
{
	size_t size;
	FILE *out = open_memstream(text_p, &size);
	int failed;

	if (!out)
		return -ENOMEM;
	fprintf(out, "clock %" PRIu64 "\n", lnet_now(rpc->node, 0));
	for (enum stat_side side = 0; side < STAT_SIDES; side++) {
		const struct stat_service *sv;

		list_for_each_entry (sv, &sum->all.services[side], link)
			put_service(out, rpc, sv);
	}
	put_refused(out, "-", sum->all.refused);
	failed = ferror(out);
	failed |= fclose(out);
	if (failed)
		free(*text_p);
	return failed ? -ENOMEM : 0;
}

int on_top(void *arg, struct lnet_control_call *call, char **output_p)
{
	struct stats_sum *sum;
	char *text, *quoted = NULL;
	int rc = stats_sum(arg, false, &sum);

	(void)call;
	if (rc)
		return rc;
	rc = top_text(arg, sum, &text);
	stats_sum_free(sum);
	if (rc)
		return rc;
	rc = lnet_ctl_quote(text, &quoted);
	if (!rc && asprintf(output_p, "text: %s\n", quoted) < 0)
		rc = -ENOMEM;
	free(quoted);
	free(text);
	return rc;
}
