/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <ulnet/nid.h>

/* An interface of the node, or a NID of a peer: in the latter's lines there are
 * other fields at the end. */
struct line {
	char nid[LNET_NIDSTR_SIZE];
	bool up;
	int32_t health;
	int64_t credits, credits_min;
	uint32_t credits_max;
	uint64_t sent, received;
	uint64_t sent_bytes, received_bytes;	   /* interfaces */
	uint64_t queued, queued_bytes, connecting; /* peers */
	uint64_t dropped, failed, resent;
};

struct lines {
	struct line *all;
	size_t n;
};

struct route_line {
	char net[64], gateway[64], state[16];
	int32_t health;
};

struct top_sample {
	uint64_t ns;
	uint64_t peers; /* that the node knows */
	uint64_t alive, awaited, errors, dropped, forwarded;
	struct lines nis, nids;
	struct route_line *routes;
	size_t nroutes;
	bool failed; /* no memory */
};

/* ---- reading ---- */

static void add(struct top_sample *s, struct lines *to, const struct line *line)
{
	struct line *all = realloc(to->all, (to->n + 1) * sizeof(*all));

	if (!all) {
		s->failed = true;
		return;
	}
	to->all = all;
	all[to->n++] = *line;
}

/* What both begin with, up to *@at bytes behind @text. */
static bool read_begin(const char *text, struct line *l, int *at)
{
	char state[8];

	*l = (struct line){ 0 };
	if (sscanf(text,
		   "%63s %7s %" SCNd32 " %" SCNd64 " %" SCNu32 " %" SCNd64
		   " %" SCNu64 " %" SCNu64 "%n",
		   l->nid, state, &l->health, &l->credits, &l->credits_max,
		   &l->credits_min, &l->sent, &l->received, at) != 8)
		return false;
	l->up = strcmp(state, "up") == 0;
	return true;
}

static void read_ni(struct top_sample *s, const char *text)
{
	struct line l;
	int at;

	if (read_begin(text, &l, &at) &&
	    sscanf(text + at,
		   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &l.sent_bytes, &l.received_bytes, &l.dropped, &l.failed,
		   &l.resent) == 5)
		add(s, &s->nis, &l);
}

static void read_peer(struct top_sample *s, const char *text)
{
	struct line l;
	int at;

	if (read_begin(text, &l, &at) &&
	    sscanf(text + at,
		   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64,
		   &l.queued, &l.queued_bytes, &l.connecting, &l.dropped,
		   &l.failed, &l.resent) == 6)
		add(s, &s->nids, &l);
}

static void read_route(struct top_sample *s, const char *text)
{
	struct route_line r, *routes;

	if (sscanf(text, "%63s %63s %15s %" SCNd32, r.net, r.gateway, r.state,
		   &r.health) != 4)
		return;
	routes = realloc(s->routes, (s->nroutes + 1) * sizeof(*routes));
	if (!routes) {
		s->failed = true;
		return;
	}
	s->routes = routes;
	routes[s->nroutes++] = r;
}

static void read_stat(struct top_sample *s, const char *text)
{
	const struct {
		const char *name;
		uint64_t *to;
	} wanted[] = { { "msgs_alloc", &s->alive },
		       { "rst_alloc", &s->awaited },
		       { "errors", &s->errors },
		       { "drop_count", &s->dropped },
		       { "route_count", &s->forwarded } };
	uint64_t value;
	char name[64];

	if (sscanf(text, "%63s %" SCNu64, name, &value) != 2)
		return;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (strcmp(name, wanted[i].name) == 0)
			*wanted[i].to = value;
}

static void read_line(struct top_sample *s, const char *line)
{
	if (strncmp(line, "clock ", 6) == 0)
		sscanf(line + 6, "%" SCNu64, &s->ns);
	else if (strncmp(line, "peers ", 6) == 0)
		sscanf(line + 6, "%" SCNu64, &s->peers);
	else if (strncmp(line, "stat ", 5) == 0)
		read_stat(s, line + 5);
	else if (strncmp(line, "ni ", 3) == 0)
		read_ni(s, line + 3);
	else if (strncmp(line, "peer ", 5) == 0)
		read_peer(s, line + 5);
	else if (strncmp(line, "route ", 6) == 0)
		read_route(s, line + 6);
}

/* sscanf() looks for the end of its text first: each line is one of its own,
 * not the rest of all. */
struct top_sample *top_read(const char *text)
{
	struct top_sample *s = calloc(1, sizeof(*s));
	char *copy = strdup(text), *rest = copy, *line;

	while (s && copy && (line = strsep(&rest, "\n")))
		read_line(s, line);
	free(copy);
	if (!copy || (s && (s->failed || !s->ns))) {
		top_free(s);
		return NULL;
	}
	return s;
}

void top_free(struct top_sample *s)
{
	if (!s)
		return;
	free(s->nis.all);
	free(s->nids.all);
	free(s->routes);
	free(s);
}

/* ---- the block ---- */

/* The line of the same NID; both lists are the node's, but it may have come or
 * gone. Zeros: it was not there. */
static const struct line *before_of(const struct lines *before, size_t hint,
				    const struct line *l)
{
	static const struct line none;

	if (hint < before->n && strcmp(before->all[hint].nid, l->nid) == 0)
		return &before->all[hint];
	for (size_t i = 0; i < before->n; i++)
		if (strcmp(before->all[i].nid, l->nid) == 0)
			return &before->all[i];
	return &none;
}

/* Counters may have been reset meanwhile. */
static double rate(uint64_t before, uint64_t now, double seconds)
{
	return now > before && seconds > 0 ? (double)(now - before) / seconds
					   : 0;
}

/* At most 6 characters. */
static const char *number(double value, char *buf, size_t size)
{
	static const char units[] = " kMGTPE";
	unsigned int unit = 0;

	for (; value >= 99999.5 || (unit && value >= 999.5); value /= 1000)
		unit++;
	if (unit)
		snprintf(buf, size, "%.*f%c", value < 99.95 ? 1 : 0, value,
			 units[unit]);
	else
		snprintf(buf, size, "%.*f", value < 99.95 && value > 0 ? 1 : 0,
			 value);
	return buf;
}

static void print_rate(FILE *out, uint64_t before, uint64_t now, double seconds)
{
	char buf[32];

	fprintf(out, " %8s",
		number(rate(before, now, seconds), buf, sizeof(buf)));
}

static void print_begin(FILE *out, const struct line *l)
{
	char health[16], credits[32];

	snprintf(health, sizeof(health), "%" PRId32, l->health);
	snprintf(credits, sizeof(credits), "%" PRId64 "/%" PRIu32, l->credits,
		 l->credits_max);
	fprintf(out, "%-26s %6s %9s %6" PRId64, l->nid,
		l->up ? health : "down", credits, l->credits_min);
}

static void print_rates(FILE *out, const struct line *b, const struct line *l,
			double seconds)
{
	print_rate(out, b->dropped, l->dropped, seconds);
	print_rate(out, b->failed, l->failed, seconds);
	print_rate(out, b->resent, l->resent, seconds);
	fputc('\n', out);
}

static void print_nis(const struct top_sample *before,
		      const struct top_sample *now, double seconds, FILE *out)
{
	fprintf(out, "%-26s %6s %9s %6s %8s %8s %8s %8s %8s %8s %8s\n",
		"INTERFACE", "HEALTH", "CREDITS", "MIN", "SENT/s", "RECV/s",
		"SENT B/s", "RECV B/s", "DROP/s", "FAIL/s", "RESEND/s");
	for (size_t i = 0; i < now->nis.n; i++) {
		const struct line *l = &now->nis.all[i];
		const struct line *b = before_of(&before->nis, i, l);

		print_begin(out, l);
		print_rate(out, b->sent, l->sent, seconds);
		print_rate(out, b->received, l->received, seconds);
		print_rate(out, b->sent_bytes, l->sent_bytes, seconds);
		print_rate(out, b->received_bytes, l->received_bytes, seconds);
		print_rates(out, b, l, seconds);
	}
}

/* Those that are not up come first; else they stay as the node has them. */
static void print_routes(const struct top_sample *s, unsigned int max,
			 FILE *out)
{
	size_t shown = 0;

	if (!s->nroutes)
		return;
	fprintf(out, "%-26s %-26s %6s %8s\n", "ROUTE TO", "BY", "HEALTH",
		"STATE");
	for (unsigned int up = 0; up < 2; up++)
		for (size_t i = 0; i < s->nroutes && shown < max; i++) {
			const struct route_line *r = &s->routes[i];

			if ((strcmp(r->state, "up") == 0) != up)
				continue;
			fprintf(out, "%-26s %-26s %6" PRId32 " %8s\n", r->net,
				r->gateway, r->health, r->state);
			shown++;
		}
	if (s->nroutes > shown)
		fprintf(out, "... and %zu more\n", s->nroutes - shown);
}

struct row {
	const struct line *before, *now;
	double weight;
};

/* Who waits comes first, then who is ill, then by traffic; then by NID. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	uint64_t waits_x = x->now->queued + x->now->connecting;
	uint64_t waits_y = y->now->queued + y->now->connecting;

	if (waits_x != waits_y)
		return waits_x > waits_y ? -1 : 1;
	if (x->now->health != y->now->health)
		return x->now->health < y->now->health ? -1 : 1;
	if (x->weight > y->weight || x->weight < y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->now->nid, y->now->nid);
}

static void print_row(const struct row *r, double seconds, FILE *out)
{
	char bytes[32];

	print_begin(out, r->now);
	print_rate(out, r->before->sent, r->now->sent, seconds);
	print_rate(out, r->before->received, r->now->received, seconds);
	fprintf(out, " %8" PRIu64 " %8s", r->now->queued + r->now->connecting,
		number((double)r->now->queued_bytes, bytes, sizeof(bytes)));
	print_rates(out, r->before, r->now, seconds);
}

static void print_nids(const struct top_sample *before,
		       const struct top_sample *now, unsigned int max,
		       double seconds, FILE *out)
{
	size_t n = now->nids.n, shown = n < max ? n : max;
	struct row *rows = calloc(n + 1, sizeof(*rows));

	if (!rows) {
		fputs("no memory for NIDs of peers\n", out);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct line *l = &now->nids.all[i];
		const struct line *b = before_of(&before->nids, i, l);

		rows[i] = (struct row){ b, l,
					rate(b->sent + b->received,
					     l->sent + l->received, seconds) };
	}
	qsort(rows, n, sizeof(*rows), compare_rows);
	fprintf(out, "%-26s %6s %9s %6s %8s %8s %8s %8s %8s %8s %8s\n",
		"NID OF A PEER", "HEALTH", "CREDITS", "MIN", "SENT/s", "RECV/s",
		"WAITING", "WAIT B", "DROP/s", "FAIL/s", "RESEND/s");
	for (size_t i = 0; i < shown; i++)
		print_row(&rows[i], seconds, out);
	if (now->peers > shown)
		fprintf(out, "... and %" PRIu64 " more\n", now->peers - shown);
	free(rows);
}

void top_print(const struct top_sample *before, const struct top_sample *now,
	       unsigned int rows, FILE *out)
{
	double seconds = (double)(now->ns - before->ns) / 1e9;

	fprintf(out,
		"%.1f s: %" PRIu64 " messages alive, %" PRIu64
		" answers awaited, %.1f errors/s, %.1f drops/s, %.1f "
		"forwarded/s, %" PRIu64 " NIDs of peers\n",
		seconds, now->alive, now->awaited,
		rate(before->errors, now->errors, seconds),
		rate(before->dropped, now->dropped, seconds),
		rate(before->forwarded, now->forwarded, seconds), now->peers);
	print_nis(before, now, seconds, out);
	print_routes(now, rows, out);
	print_nids(before, now, rows, seconds, out);
}
