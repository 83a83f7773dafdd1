/* SPDX-License-Identifier: BSD-3-Clause */
#include "top.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <ulnet/nid.h>

#include "table.h"

#define NAME_WIDTH 16 /* at least, so that it seldom changes */

/* An interface of the node, a NID of a peer, or a route, and the NID of its
 * gateway: in their lines there are other fields at the end. */
struct line {
	char nid[LNET_NIDSTR_SIZE];
	char net[LNET_NIDSTR_SIZE]; /* routes */
	char state[8];
	int32_t health;
	int64_t credits, credits_min;
	uint32_t credits_max; /* 0: never sent to */
	uint64_t sent, received;
	uint64_t sent_bytes, received_bytes; /* interfaces */
	uint64_t queued;
	uint64_t queued_bytes, connecting; /* peers, gateways */
	uint64_t dropped, failed, resent;
	int64_t router_credits; /* peers, gateways */
};

struct lines {
	struct line *all;
	size_t n;
};

/* Of a router. */
struct buffers_line {
	char kind[16];
	uint32_t count;
	int64_t free, free_min, waiting;
};

#define KINDS_MAX 8 /* of buffers */

struct top_sample {
	uint64_t ns;
	uint64_t peers; /* that the node knows */
	uint64_t alive, awaited, errors, dropped, forwarded;
	struct lines nis, nids, routes;
	struct buffers_line buffers[KINDS_MAX];
	size_t nbuffers; /* 0: it does not route */
	bool failed;	 /* no memory */
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

/* From the credits on, what all three have; up to *@at bytes behind @text. */
static bool read_traffic(const char *text, struct line *l, int *at)
{
	return sscanf(text,
		      "%" SCNd64 " %" SCNu32 " %" SCNd64 " %" SCNu64 " %" SCNu64
		      "%n",
		      &l->credits, &l->credits_max, &l->credits_min, &l->sent,
		      &l->received, at) == 5;
}

static void read_ni(struct top_sample *s, const char *text)
{
	struct line l = { .health = 0 };
	int begin, at;

	if (sscanf(text, "%63s %7s %" SCNd32 "%n", l.nid, l.state, &l.health,
		   &begin) == 3 &&
	    read_traffic(text + begin, &l, &at) &&
	    sscanf(text + begin + at,
		   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64,
		   &l.sent_bytes, &l.received_bytes, &l.dropped, &l.failed,
		   &l.resent, &l.queued) >= 5)
		add(s, &s->nis, &l);
}

/* A NID of a peer, from its credits on. */
static bool read_use(const char *text, struct line *l)
{
	int at;

	return read_traffic(text, l, &at) &&
	       sscanf(text + at,
		      " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		      " %" SCNu64 " %" SCNu64 " %" SCNd64,
		      &l->queued, &l->queued_bytes, &l->connecting, &l->dropped,
		      &l->failed, &l->resent, &l->router_credits) >= 6;
}

static void read_peer(struct top_sample *s, const char *text)
{
	struct line l = { .health = 0 };
	int at;

	if (sscanf(text, "%63s %7s %" SCNd32 "%n", l.nid, l.state, &l.health,
		   &at) == 3 &&
	    read_use(text + at, &l))
		add(s, &s->nids, &l);
}

/* Nodes of an earlier version do not tell of the gateway. */
static void read_route(struct top_sample *s, const char *text)
{
	struct line l = { .health = 0 };
	int at;

	if (sscanf(text, "%63s %63s %7s %" SCNd32 "%n", l.net, l.nid, l.state,
		   &l.health, &at) != 4)
		return;
	(void)read_use(text + at, &l);
	add(s, &s->routes, &l);
}

static void read_buffers(struct top_sample *s, const char *text)
{
	struct buffers_line b;

	if (s->nbuffers < KINDS_MAX &&
	    sscanf(text, "%15s %" SCNu32 " %" SCNd64 " %" SCNd64 " %" SCNd64,
		   b.kind, &b.count, &b.free, &b.free_min, &b.waiting) == 5)
		s->buffers[s->nbuffers++] = b;
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
	else if (strncmp(line, "buffers ", 8) == 0)
		read_buffers(s, line + 8);
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
	free(s->routes.all);
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

/* ---- cells ---- */

static void rate_cell(struct table *t, uint64_t before, uint64_t now,
		      double seconds)
{
	char buf[32];

	table_cell(t, "%s",
		   number(rate(before, now, seconds), buf, sizeof(buf)));
}

static void bytes_cell(struct table *t, uint64_t bytes)
{
	char buf[32];

	table_cell(t, "%s", number((double)bytes, buf, sizeof(buf)));
}

static void health_cell(struct table *t, const struct line *l)
{
	if (strcmp(l->state, "up") == 0)
		table_cell(t, "%" PRId32, l->health);
	else
		table_cell(t, "%s", l->state);
}

/* Credits, and the lowest so far: those of a peer come with the first message
 * to it. */
static void credits_cells(struct table *t, const struct line *l)
{
	if (!l->credits_max) {
		table_cell(t, "-");
		table_cell(t, "-");
		return;
	}
	table_cell(t, "%" PRId64 "/%" PRIu32, l->credits, l->credits_max);
	table_cell(t, "%" PRId64, l->credits_min);
}

static uint64_t waiting(const struct line *l)
{
	return l->queued + l->connecting;
}

static void traffic_cells(struct table *t, const struct line *b,
			  const struct line *l, double seconds)
{
	rate_cell(t, b->sent, l->sent, seconds);
	rate_cell(t, b->received, l->received, seconds);
	table_cell(t, "%" PRIu64, waiting(l));
}

static void loss_cells(struct table *t, const struct line *b,
		       const struct line *l, double seconds)
{
	rate_cell(t, b->dropped, l->dropped, seconds);
	rate_cell(t, b->failed, l->failed, seconds);
	rate_cell(t, b->resent, l->resent, seconds);
}

/* ---- tables ---- */

/* What a block is made of. */
struct view {
	const struct top_sample *before, *now;
	double seconds;
	unsigned int rows, width;
	int name_width; /* of the first columns */
	FILE *out;
};

#define COUNT(array) ((unsigned int)(sizeof(array) / sizeof((array)[0])))

static int longest(const struct lines *lines, int width)
{
	for (size_t i = 0; i < lines->n; i++) {
		int len = (int)strlen(lines->all[i].nid);

		width = len > width ? len : width;
	}
	return width;
}

static void print_nis(const struct view *v)
{
	const struct table_column columns[] = {
		{ "INTERFACE", -v->name_width, 0 },
		{ "HEALTH", 6, 1 },
		{ "CREDITS", 9, 3 },
		{ "MIN", 6, 7 },
		{ "SENT/s", 8, 4 },
		{ "RECV/s", 8, 5 },
		{ "WAITING", 8, 2 },
		{ "SENT B/s", 8, 9 },
		{ "RECV B/s", 8, 10 },
		{ "DROP/s", 8, 8 },
		{ "FAIL/s", 8, 6 },
		{ "RESEND/s", 8, 11 },
	};
	struct table t;

	table_begin(&t, columns, COUNT(columns), v->width, v->out);
	for (size_t i = 0; i < v->now->nis.n; i++) {
		const struct line *l = &v->now->nis.all[i];
		const struct line *b = before_of(&v->before->nis, i, l);

		table_cell(&t, "%s", l->nid);
		health_cell(&t, l);
		credits_cells(&t, l);
		traffic_cells(&t, b, l, v->seconds);
		rate_cell(&t, b->sent_bytes, l->sent_bytes, v->seconds);
		rate_cell(&t, b->received_bytes, l->received_bytes, v->seconds);
		loss_cells(&t, b, l, v->seconds);
	}
}

static void print_route(const struct view *v, struct table *t, size_t i)
{
	const struct line *l = &v->now->routes.all[i];
	const struct line *b = before_of(&v->before->routes, i, l);

	table_cell(t, "%s", l->nid);
	table_cell(t, "%s", l->net);
	table_cell(t, "%s", l->state);
	table_cell(t, "%" PRId32, l->health);
	credits_cells(t, l);
	traffic_cells(t, b, l, v->seconds);
	bytes_cell(t, l->queued_bytes);
	loss_cells(t, b, l, v->seconds);
}

/* Those that are not up come first; else they stay as the node has them. */
static void print_routes(const struct view *v)
{
	const struct lines *routes = &v->now->routes;
	const struct table_column columns[] = {
		{ "GATEWAY", -v->name_width, 0 },
		{ "TO", -8, 0 },
		{ "STATE", 5, 0 },
		{ "HEALTH", 6, 1 },
		{ "CREDITS", 9, 3 },
		{ "MIN", 6, 7 },
		{ "SENT/s", 8, 4 },
		{ "RECV/s", 8, 5 },
		{ "WAITING", 8, 2 },
		{ "WAIT B", 8, 9 },
		{ "DROP/s", 8, 8 },
		{ "FAIL/s", 8, 6 },
		{ "RESEND/s", 8, 10 },
	};
	size_t shown = 0;
	struct table t;

	if (!routes->n)
		return;
	table_begin(&t, columns, COUNT(columns), v->width, v->out);
	for (unsigned int up = 0; up < 2; up++)
		for (size_t i = 0; i < routes->n && shown < v->rows; i++) {
			const char *state = routes->all[i].state;

			if ((strcmp(state, "up") == 0) != up)
				continue;
			print_route(v, &t, i);
			shown++;
		}
	if (routes->n > shown)
		fprintf(v->out, "... and %zu more\n", routes->n - shown);
}

static void print_buffers(const struct view *v)
{
	const struct table_column columns[] = {
		{ "BUFFERS", -v->name_width, 0 },
		{ "FREE", 6, 0 },
		{ "OF", 9, 1 },
		{ "MIN", 6, 2 },
		{ "WAITING", 8, 0 },
	};
	struct table t;

	if (!v->now->nbuffers)
		return;
	table_begin(&t, columns, COUNT(columns), v->width, v->out);
	for (size_t i = 0; i < v->now->nbuffers; i++) {
		const struct buffers_line *b = &v->now->buffers[i];

		table_cell(&t, "%s", b->kind);
		table_cell(&t, "%" PRId64, b->free);
		table_cell(&t, "%" PRIu32, b->count);
		table_cell(&t, "%" PRId64, b->free_min);
		table_cell(&t, "%" PRId64, b->waiting);
	}
}

struct row {
	const struct line *before, *now;
	double weight;
};

/* Who waits comes first, then who is ill, then by traffic; then by NID. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	uint64_t waits_x = waiting(x->now), waits_y = waiting(y->now);

	if (waits_x != waits_y)
		return waits_x > waits_y ? -1 : 1;
	if (x->now->health != y->now->health)
		return x->now->health < y->now->health ? -1 : 1;
	if (x->weight > y->weight || x->weight < y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->now->nid, y->now->nid);
}

static void print_row(const struct view *v, struct table *t,
		      const struct row *r, bool routing)
{
	table_cell(t, "%s", r->now->nid);
	health_cell(t, r->now);
	credits_cells(t, r->now);
	traffic_cells(t, r->before, r->now, v->seconds);
	bytes_cell(t, r->now->queued_bytes);
	loss_cells(t, r->before, r->now, v->seconds);
	if (routing)
		table_cell(t, "%" PRId64, r->now->router_credits);
}

static void print_rows(const struct view *v, const struct row *rows, size_t n)
{
	const struct table_column columns[] = {
		{ "NID OF A PEER", -v->name_width, 0 },
		{ "HEALTH", 6, 1 },
		{ "CREDITS", 9, 3 },
		{ "MIN", 6, 8 },
		{ "SENT/s", 8, 4 },
		{ "RECV/s", 8, 5 },
		{ "WAITING", 8, 2 },
		{ "WAIT B", 8, 10 },
		{ "DROP/s", 8, 9 },
		{ "FAIL/s", 8, 7 },
		{ "RESEND/s", 8, 11 },
		{ "ROUTER", 6, 6 }, /* routers only */
	};
	bool routing = v->now->nbuffers != 0;
	struct table t;

	table_begin(&t, columns, COUNT(columns) - !routing, v->width, v->out);
	for (size_t i = 0; i < n; i++)
		print_row(v, &t, &rows[i], routing);
}

static void print_nids(const struct view *v)
{
	const struct lines *nids = &v->now->nids;
	size_t shown = nids->n < v->rows ? nids->n : v->rows;
	struct row *rows = calloc(nids->n + 1, sizeof(*rows));

	if (!rows) {
		fputs("no memory for NIDs of peers\n", v->out);
		return;
	}
	for (size_t i = 0; i < nids->n; i++) {
		const struct line *l = &nids->all[i];
		const struct line *b = before_of(&v->before->nids, i, l);

		rows[i] =
			(struct row){ b, l,
				      rate(b->sent + b->received,
					   l->sent + l->received, v->seconds) };
	}
	qsort(rows, nids->n, sizeof(*rows), compare_rows);
	print_rows(v, rows, shown);
	if (v->now->peers > shown)
		fprintf(v->out, "... and %" PRIu64 " more\n",
			v->now->peers - shown);
	free(rows);
}

/* ---- what stands above them ---- */

/* Another part of the first line, or of one below it if that is full: @at is
 * how far the line is. */
static void head_part(const struct view *v, unsigned int *at, const char *fmt,
		      ...) __attribute__((format(printf, 3, 4)));

static void head_part(const struct view *v, unsigned int *at, const char *fmt,
		      ...)
{
	const char *between = *at ? ", " : "";
	char text[96];
	unsigned int len;
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	len = (unsigned int)strlen(text);
	if (v->width && *at && *at + len + 3 > v->width) {
		between = ",\n  ";
		*at = 0;
	}
	fprintf(v->out, "%s%s", between, text);
	*at += len + 2;
}

static void print_head(const struct view *v)
{
	const struct top_sample *b = v->before, *n = v->now;
	unsigned int at = 0;

	head_part(v, &at, "%.1f s: %" PRIu64 " messages alive", v->seconds,
		  n->alive);
	head_part(v, &at, "%" PRIu64 " answers awaited", n->awaited);
	head_part(v, &at, "%.1f errors/s",
		  rate(b->errors, n->errors, v->seconds));
	head_part(v, &at, "%.1f drops/s",
		  rate(b->dropped, n->dropped, v->seconds));
	head_part(v, &at, "%.1f forwarded/s",
		  rate(b->forwarded, n->forwarded, v->seconds));
	head_part(v, &at, "%" PRIu64 " NIDs of peers", n->peers);
	fputc('\n', v->out);
}

void top_print(const struct top_sample *before, const struct top_sample *now,
	       unsigned int rows, unsigned int width, FILE *out)
{
	struct view v = { .before = before,
			  .now = now,
			  .seconds = (double)(now->ns - before->ns) / 1e9,
			  .rows = rows,
			  .width = width,
			  .out = out };

	v.name_width = longest(&now->nis, NAME_WIDTH);
	v.name_width = longest(&now->nids, v.name_width);
	v.name_width = longest(&now->routes, v.name_width);
	print_head(&v);
	print_nis(&v);
	print_buffers(&v);
	print_routes(&v);
	print_nids(&v);
}
