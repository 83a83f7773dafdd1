/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <ulnet/nid.h>

/* characters of the column of names, at least, so that its width seldom changes
 */
#define NAME_WIDTH 16

/* The numbers of a line; most kinds of lines have only some of them. */
enum field {
	HEALTH,
	CREDITS,
	CREDITS_MAX, /* 0 only if nothing was ever sent to the peer */
	CREDITS_MIN,
	SENT,
	RECEIVED,
	SENT_BYTES,
	RECEIVED_BYTES,
	DROPPED,
	FAILED,
	RESENT,
	QUEUED,
	QUEUED_BYTES,
	CONNECTING,
	ROUTER_CREDITS,
	FIELDS,
};

/* An interface of the node, a NID of a peer, a route, or one kind of buffers of
 * a router. */
struct line {
	/* of a route: the NID of the gateway; of buffers: their kind */
	char nid[LNET_NIDSTR_SIZE];
	char net[LNET_NIDSTR_SIZE]; /* of a route: its net */
	char state[8];
	int64_t n[FIELDS];
};

struct lines {
	struct line *all;
	size_t n;
};

struct top_sample {
	uint64_t ns;
	uint64_t peers; /* number of NIDs of peers that the node knows */
	uint64_t alive, awaited, errors, dropped, forwarded;
	struct lines nis, nids, routes;
	/* buffers of a router; empty if the node is no router */
	struct lines buffers;
	bool failed; /* there was no memory */
};

/* ---- reading ---- */

#define USE                                                                \
	HEALTH, CREDITS, CREDITS_MAX, CREDITS_MIN, SENT, RECEIVED, QUEUED, \
		QUEUED_BYTES, CONNECTING, DROPPED, FAILED, RESENT,         \
		ROUTER_CREDITS, FIELDS

/* A kind of lines: the word that they begin with, whether the texts net and
 * state come next, and the order of the numbers that follow. Nodes of earlier
 * versions send fewer numbers. */
static const struct kind {
	const char *name;
	size_t at; /* offset, in struct top_sample, of the lines of this kind */
	bool net, state;
	unsigned int numbers_min; /* lines with fewer numbers are skipped */
	enum field fields[FIELDS];
} kinds[] = {
	/* clang-format off */
	{ "ni", offsetof(struct top_sample, nis), false, true, 11,
	  { HEALTH, CREDITS, CREDITS_MAX, CREDITS_MIN, SENT, RECEIVED,
	    SENT_BYTES, RECEIVED_BYTES, DROPPED, FAILED, RESENT, QUEUED,
	    FIELDS } },
	{ "peer", offsetof(struct top_sample, nids), false, true, 12, { USE } },
	{ "route", offsetof(struct top_sample, routes), true, true, 1,
	  { USE } },
	{ "buffers", offsetof(struct top_sample, buffers), false, false, 4,
	  { CREDITS_MAX, CREDITS, CREDITS_MIN, QUEUED, FIELDS } },
	/* clang-format on */
};

static void top_add(struct top_sample *s, struct lines *to,
		    const struct line *line)
{
	struct line *all = realloc(to->all, (to->n + 1) * sizeof(*all));

	if (!all) {
		s->failed = true;
		return;
	}
	to->all = all;
	all[to->n++] = *line;
}

/* Takes the next word of *@text. Returns false: there is none, or it is too
 * long. */
static bool top_read_word(const char **text, char *word, size_t size)
{
	const char *from = *text + strspn(*text, " ");
	size_t length = strcspn(from, " ");

	snprintf(word, size, "%.*s", (int)length, from);
	*text = from + length;
	return length && length < size;
}

static void top_read_kind(struct top_sample *s, const struct kind *k,
			  const char *text)
{
	struct line l = { .net = "" };
	unsigned int n = 0;
	int length;

	if ((k->net && !top_read_word(&text, l.net, sizeof(l.net))) ||
	    !top_read_word(&text, l.nid, sizeof(l.nid)) ||
	    (k->state && !top_read_word(&text, l.state, sizeof(l.state))))
		return;
	while (k->fields[n] != FIELDS &&
	       sscanf(text, "%" SCNd64 "%n", &l.n[k->fields[n]], &length) ==
		       1) {
		text += length;
		n++;
	}
	if (n >= k->numbers_min)
		top_add(s, (struct lines *)((char *)s + k->at), &l);
}

static void read_stat(struct top_sample *s, const char *text)
{
	const struct {
		const char *name;
		uint64_t *to;
	} stats[] = { { "msgs_alloc", &s->alive },
		      { "rst_alloc", &s->awaited },
		      { "errors", &s->errors },
		      { "drop_count", &s->dropped },
		      { "route_count", &s->forwarded } };
	uint64_t value;
	char name[64];

	if (sscanf(text, "%63s %" SCNu64, name, &value) != 2)
		return;
	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++)
		if (strcmp(name, stats[i].name) == 0)
			*stats[i].to = value;
}

static void top_read_line(struct top_sample *s, const char *line)
{
	char name[16];

	if (!top_read_word(&line, name, sizeof(name)))
		return;
	if (strcmp(name, "clock") == 0)
		sscanf(line, "%" SCNu64, &s->ns);
	else if (strcmp(name, "peers") == 0)
		sscanf(line, "%" SCNu64, &s->peers);
	else if (strcmp(name, "stat") == 0)
		read_stat(s, line);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(name, kinds[i].name) == 0)
			top_read_kind(s, &kinds[i], line);
}

/* The text is cut into lines first, because sscanf() calls strlen(): with the
 * rest of the text that would take quadratic time. */
struct top_sample *top_read(const char *text)
{
	struct top_sample *s = calloc(1, sizeof(*s));
	char *copy = strdup(text), *rest = copy, *line;

	while (s && copy && (line = strsep(&rest, "\n")))
		top_read_line(s, line);
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
	free(s->buffers.all);
	free(s);
}

/* ---- rates ---- */

/* Returns the line of @l's NID in the earlier sample, where its index is
 * probably @hint. If the NID was not there, returns a line whose numbers are
 * all 0. */
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

/* Returns the increase per second; 0 if the counter was reset meanwhile. */
static double rate(int64_t before, int64_t now, double seconds)
{
	return now > before && seconds > 0 ? (double)(now - before) / seconds
					   : 0;
}

/* Formats @value, with a unit, in 6 characters at most. Returns @buf. */
static const char *top_number(double value, char *buf, size_t size)
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

/* ---- tables that are as wide as a terminal ---- */

enum cell {
	CELL_NID,
	CELL_NET,
	CELL_STATE,
	CELL_HEALTH, /* health; or the state, if that is not "up" */
	/* credits; "-": nothing was ever sent to the peer, so it has none yet
	 */
	CELL_CREDITS,
	CELL_LEAST, /* the fewest free credits so far */
	/* number of messages that wait for a credit or a connection */
	CELL_WAITING,
	/* The column's field, as a number, as bytes, or as a rate: */
	CELL_NUMBER,
	CELL_BYTES,
	CELL_RATE,
};

/* Bits for the tables that a column is in. */
enum {
	OF_NIS = 1,
	OF_ROUTES = 2,
	OF_NIDS = 4,
	OF_BUFFERS = 8,
	OF_ROUTER = 16, /* the table of peers' NIDs of a node that routes */
	OF_ALL = OF_NIS | OF_ROUTES | OF_NIDS
};

static const struct column {
	const char *title;
	unsigned int tables;
	/* Characters; 0: view.name_width. A column with 0, or with a negative
	 * number, is aligned to the left. */
	int width;
	/* the column with the highest rank is left out first; a column with 0
	 * never */
	unsigned int rank;
	enum cell cell;
	enum field field;
} columns[] = {
	{ "INTERFACE", OF_NIS, 0, 0, CELL_NID, 0 },
	{ "GATEWAY", OF_ROUTES, 0, 0, CELL_NID, 0 },
	{ "NID OF A PEER", OF_NIDS, 0, 0, CELL_NID, 0 },
	{ "BUFFERS", OF_BUFFERS, 0, 0, CELL_NID, 0 },
	{ "TO", OF_ROUTES, -8, 0, CELL_NET, 0 },
	{ "STATE", OF_ROUTES, 5, 0, CELL_STATE, 0 },
	{ "HEALTH", OF_NIS | OF_NIDS, 6, 1, CELL_HEALTH, 0 },
	{ "HEALTH", OF_ROUTES, 6, 1, CELL_NUMBER, HEALTH },
	{ "CREDITS", OF_ALL, 9, 3, CELL_CREDITS, 0 },
	{ "FREE", OF_BUFFERS, 6, 0, CELL_NUMBER, CREDITS },
	{ "OF", OF_BUFFERS, 9, 1, CELL_NUMBER, CREDITS_MAX },
	{ "MIN", OF_ALL, 6, 8, CELL_LEAST, 0 },
	{ "MIN", OF_BUFFERS, 6, 2, CELL_NUMBER, CREDITS_MIN },
	{ "SENT/s", OF_ALL, 8, 4, CELL_RATE, SENT },
	{ "RECV/s", OF_ALL, 8, 5, CELL_RATE, RECEIVED },
	{ "WAITING", OF_ALL, 8, 2, CELL_WAITING, 0 },
	{ "WAITING", OF_BUFFERS, 8, 0, CELL_NUMBER, QUEUED },
	{ "SENT B/s", OF_NIS, 8, 10, CELL_RATE, SENT_BYTES },
	{ "RECV B/s", OF_NIS, 8, 11, CELL_RATE, RECEIVED_BYTES },
	{ "WAIT B", OF_ROUTES | OF_NIDS, 8, 12, CELL_BYTES, QUEUED_BYTES },
	{ "DROP/s", OF_ALL, 8, 9, CELL_RATE, DROPPED },
	{ "FAIL/s", OF_ALL, 8, 7, CELL_RATE, FAILED },
	{ "RESEND/s", OF_ALL, 8, 13, CELL_RATE, RESENT },
	{ "ROUTER", OF_ROUTER, 6, 6, CELL_NUMBER, ROUTER_CREDITS },
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* What a block is printed from, and how. */
struct view {
	const struct top_sample *before, *now;
	double seconds;
	unsigned int rows, width;
	int name_width; /* width of the first columns, characters */
	FILE *out;
};

struct table {
	const struct view *view;
	unsigned int hidden; /* bit i: columns[i] is not printed */
};

static bool is_hidden(const struct table *t, unsigned int i)
{
	return t->hidden >> i & 1;
}

static int column_width(const struct table *t, unsigned int i)
{
	return columns[i].width ? columns[i].width : -t->view->name_width;
}

/* Returns the width of a line: each column but the first has one blank before
 * it. */
static unsigned int width_of(const struct table *t)
{
	unsigned int width = 0;

	for (unsigned int i = 0; i < COLUMNS; i++)
		if (!is_hidden(t, i))
			width += (unsigned int)abs(column_width(t, i)) +
				 (width != 0);
	return width;
}

/* Hides one more column. Returns false if no other column may be hidden. */
static bool hide_one(struct table *t)
{
	unsigned int worst = 0, rank = 0;

	for (unsigned int i = 0; i < COLUMNS; i++)
		if (!is_hidden(t, i) && columns[i].rank > rank) {
			rank = columns[i].rank;
			worst = i;
		}
	if (rank)
		t->hidden |= 1u << worst;
	return rank != 0;
}

/* Prints column @i of a line, and after the last column the end of the line. */
static void put_cell(const struct table *t, unsigned int i, const char *text)
{
	if (!is_hidden(t, i))
		fprintf(t->view->out, "%s%*s",
			columns[i].cell == CELL_NID ? "" : " ",
			column_width(t, i), text);
	if (i + 1 == COLUMNS)
		fputc('\n', t->view->out);
}

/* Prints the heads of those columns of @tables that fit. */
static struct table table_begin(const struct view *v, unsigned int tables)
{
	struct table t = { .view = v };

	for (unsigned int i = 0; i < COLUMNS; i++)
		if (!(columns[i].tables & tables))
			t.hidden |= 1u << i;
	while (v->width && width_of(&t) > v->width && hide_one(&t))
		;
	for (unsigned int i = 0; i < COLUMNS; i++)
		put_cell(&t, i, columns[i].title);
	return t;
}

static int64_t waiting(const struct line *l)
{
	return l->n[QUEUED] + l->n[CONNECTING];
}

static void cell_text(const struct column *c, const struct line *b,
		      const struct line *l, double seconds, char *buf,
		      size_t size)
{
	const char *text = c->cell == CELL_NID	 ? l->nid
			   : c->cell == CELL_NET ? l->net
						 : l->state;

	switch (c->cell) {
	case CELL_RATE:
		top_number(rate(b->n[c->field], l->n[c->field], seconds), buf,
			   size);
		return;
	case CELL_BYTES:
		top_number((double)l->n[c->field], buf, size);
		return;
	case CELL_NUMBER:
		snprintf(buf, size, "%" PRId64, l->n[c->field]);
		return;
	case CELL_WAITING:
		snprintf(buf, size, "%" PRId64, waiting(l));
		return;
	case CELL_CREDITS:
		snprintf(buf, size, "%" PRId64 "/%" PRId64, l->n[CREDITS],
			 l->n[CREDITS_MAX]);
		break;
	case CELL_LEAST:
		snprintf(buf, size, "%" PRId64, l->n[CREDITS_MIN]);
		break;
	case CELL_HEALTH:
		if (strcmp(text, "up") == 0) {
			snprintf(buf, size, "%" PRId64, l->n[HEALTH]);
			return;
		}
		/* Fall through. */
	default:
		snprintf(buf, size, "%s", text);
		return;
	}
	if (!l->n[CREDITS_MAX])
		snprintf(buf, size, "-");
}

static void top_put_line(const struct table *t, const struct line *b,
			 const struct line *l)
{
	char buf[LNET_NIDSTR_SIZE];

	for (unsigned int i = 0; i < COLUMNS; i++) {
		cell_text(&columns[i], b, l, t->view->seconds, buf,
			  sizeof(buf));
		put_cell(t, i, buf);
	}
}

static int longest(const struct lines *lines, int width)
{
	for (size_t i = 0; i < lines->n; i++) {
		int len = (int)strlen(lines->all[i].nid);

		width = len > width ? len : width;
	}
	return width;
}

/* Prints a table with all @lines, in the order of the node. */
static void print_lines(const struct view *v, unsigned int tables,
			const struct lines *before, const struct lines *lines)
{
	const struct table t = table_begin(v, tables);

	for (size_t i = 0; i < lines->n; i++)
		top_put_line(&t, before_of(before, i, &lines->all[i]),
			     &lines->all[i]);
}

/* Routes that are not up come first; otherwise the order is the node's. */
static void top_print_routes(const struct view *v)
{
	const struct lines *routes = &v->now->routes;
	size_t shown = 0;
	struct table t;

	if (!routes->n)
		return;
	t = table_begin(v, OF_ROUTES);
	for (unsigned int up = 0; up < 2; up++)
		for (size_t i = 0; i < routes->n && shown < v->rows; i++) {
			const struct line *l = &routes->all[i];

			if ((strcmp(l->state, "up") == 0) != up)
				continue;
			top_put_line(&t, before_of(&v->before->routes, i, l),
				     l);
			shown++;
		}
	if (routes->n > shown)
		fprintf(v->out, "... and %zu more\n", routes->n - shown);
}

struct row {
	const struct line *before, *now;
	double weight;
};

/* For qsort(): orders lines by waiting messages, then by health, traffic and
 * NID. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int64_t waits_x = waiting(x->now), waits_y = waiting(y->now);

	if (waits_x != waits_y)
		return waits_x > waits_y ? -1 : 1;
	if (x->now->n[HEALTH] != y->now->n[HEALTH])
		return x->now->n[HEALTH] < y->now->n[HEALTH] ? -1 : 1;
	if (x->weight > y->weight || x->weight < y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->now->nid, y->now->nid);
}

static void print_nids(const struct view *v)
{
	const struct lines *nids = &v->now->nids;
	size_t shown = nids->n < v->rows ? nids->n : v->rows;
	struct row *rows = calloc(nids->n + 1, sizeof(*rows));
	struct table t;

	if (!rows) {
		fputs("no memory for NIDs of peers\n", v->out);
		return;
	}
	for (size_t i = 0; i < nids->n; i++) {
		const struct line *l = &nids->all[i];
		const struct line *b = before_of(&v->before->nids, i, l);

		rows[i] = (struct row){ b, l,
					rate(b->n[SENT] + b->n[RECEIVED],
					     l->n[SENT] + l->n[RECEIVED],
					     v->seconds) };
	}
	qsort(rows, nids->n, sizeof(*rows), compare_rows);
	t = table_begin(v, v->now->buffers.n ? OF_NIDS | OF_ROUTER : OF_NIDS);
	for (size_t i = 0; i < shown; i++)
		top_put_line(&t, rows[i].before, rows[i].now);
	if (v->now->peers > shown)
		fprintf(v->out, "... and %" PRIu64 " more\n",
			v->now->peers - shown);
	free(rows);
}

/* ---- the line above the tables ---- */

/* Prints one more item of the line above the tables, or begins another line
 * with it if this one would become too wide. *@at is the column that the line
 * has reached. */
__attribute__((format(printf, 3, 4))) static void head_part(
	const struct view *v, unsigned int *at, const char *fmt, ...)
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
	print_lines(&v, OF_NIS, &before->nis, &now->nis);
	if (now->buffers.n)
		print_lines(&v, OF_BUFFERS, &before->buffers, &now->buffers);
	top_print_routes(&v);
	print_nids(&v);
}
