/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of "lnetctl top" that is about calls: reads answers to the request
 * "rpc top", and prints what has happened between two of them. */
#include "command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* characters of the column of names, at least and at most */
#define NAME_MIN 16
#define NAME_MAX 40

enum side { CALLS, REQUESTS, SIDES };

/* An end other than ok, or a time: how often it has come. */
struct count {
	char *end; /* NULL: it is a time */
	uint64_t ns;
	int64_t n;
};

struct counts {
	struct count *all;
	size_t n;
};

/* A method, or all methods of a service together. */
struct method {
	enum side side;
	char *service, *name; /* .name NULL: it is a service */
	int64_t calls, under_way, waiting, streams;
	struct counts ends, times;
	double rate; /* calls a second; of differences only */
};

struct rpc_sample {
	uint64_t ns;
	struct method *all; /* a service, and then its methods, ... */
	size_t n;
	bool failed; /* there was no memory */
};

/* ---- reading ---- */

/* Replaces each %XX in @word by its character; those that would disturb a
 * terminal stay. */
static char *word_decode(char *word)
{
	char *to = word;

	for (const char *from = word; *from; from++) {
		unsigned int c;

		if (*from == '%' && sscanf(from + 1, "%2x", &c) == 1 &&
		    c >= ' ' && c <= '~') {
			*to++ = (char)c;
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return word;
}

static void counts_free(struct counts *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->all[i].end);
	free(c->all);
	*c = (struct counts){ NULL, 0 };
}

static struct count *count_find(const struct counts *c,
				const struct count *like)
{
	for (size_t i = 0; i < c->n; i++)
		if (like->end ? c->all[i].end &&
					strcmp(c->all[i].end, like->end) == 0
			      : c->all[i].ns == like->ns)
			return &c->all[i];
	return NULL;
}

/* Adds @n to the count that is like @like. Returns false: no memory. */
static bool counts_add(struct counts *c, const struct count *like, int64_t n)
{
	struct count *at = count_find(c, like), *all;

	if (at) {
		at->n += n;
		return true;
	}
	all = realloc(c->all, (c->n + 1) * sizeof(*all));
	if (!all)
		return false;
	c->all = all;
	all[c->n] = (struct count){ .ns = like->ns, .n = n };
	if (like->end) {
		all[c->n].end = strdup(like->end);
		if (!all[c->n].end)
			return false;
	}
	c->n++;
	return true;
}

static void method_free(struct method *m)
{
	free(m->service);
	free(m->name);
	counts_free(&m->ends);
	counts_free(&m->times);
}

/* Reads "e:END=COUNT" or "t:NS=COUNT"; other words are skipped. */
static bool method_read_count(struct method *m, char *word)
{
	char *equals = strchr(word, '=');
	struct count like = { 0 };
	int64_t n;

	if (!equals || sscanf(equals + 1, "%" SCNd64, &n) != 1)
		return true;
	*equals = '\0';
	if (strncmp(word, "e:", 2) == 0) {
		like.end = word_decode(word + 2);
		return counts_add(&m->ends, &like, n);
	}
	if (sscanf(word, "t:%" SCNu64, &like.ns) == 1)
		return counts_add(&m->times, &like, n);
	return true;
}

/* Takes the next word of *@rest; "": there is none. */
static char *take_word(char **rest)
{
	char *word = *rest ? strsep(rest, " ") : NULL;

	return word ? word : (char *)"";
}

static void sample_add(struct rpc_sample *s, const char *kind, char *rest)
{
	const char *side = take_word(&rest);
	bool service = strcmp(kind, "service") == 0;
	struct method m = { .side = strcmp(side, "requests") == 0 ? REQUESTS
								  : CALLS };
	struct method *all;
	bool ok = true;

	m.service = strdup(word_decode(take_word(&rest)));
	if (service) {
		m.under_way = strtoll(take_word(&rest), NULL, 10);
		m.waiting = strtoll(take_word(&rest), NULL, 10);
		m.streams = strtoll(take_word(&rest), NULL, 10);
	} else {
		m.name = strdup(word_decode(take_word(&rest)));
		m.calls = strtoll(take_word(&rest), NULL, 10);
		while (ok && rest)
			ok = method_read_count(&m, take_word(&rest));
	}
	all = realloc(s->all, (s->n + 1) * sizeof(*all));
	if (all)
		s->all = all;
	if (all && ok && m.service && (service || m.name)) {
		all[s->n++] = m;
		return;
	}
	method_free(&m);
	s->failed = true;
}

struct rpc_sample *top_rpc_read(const char *text)
{
	struct rpc_sample *s = calloc(1, sizeof(*s));
	char *copy = strdup(text), *lines = copy, *line;

	while (s && copy && (line = strsep(&lines, "\n"))) {
		const char *kind = take_word(&line);

		if (strcmp(kind, "clock") == 0)
			s->ns = strtoull(take_word(&line), NULL, 10);
		else if (strcmp(kind, "service") == 0 ||
			 strcmp(kind, "method") == 0)
			sample_add(s, kind, line);
	}
	free(copy);
	if (s && (s->failed || !copy || !s->ns)) {
		top_rpc_free(s);
		return NULL;
	}
	return s;
}

void top_rpc_free(struct rpc_sample *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		method_free(&s->all[i]);
	free(s->all);
	free(s);
}

/* ---- what has happened between two samples ---- */

static bool is_method(const struct method *m, const struct method *like)
{
	return m->side == like->side && !m->name == !like->name &&
	       strcmp(m->service, like->service) == 0 &&
	       (!m->name || strcmp(m->name, like->name) == 0);
}

static const struct method *method_find(const struct rpc_sample *s,
					const struct method *like)
{
	for (size_t i = 0; i < s->n; i++)
		if (is_method(&s->all[i], like))
			return &s->all[i];
	return NULL;
}

/* Takes off what @before has; after a reset there is less than that, and then
 * all is new. */
static bool counts_less(struct counts *to, const struct counts *now,
			const struct counts *before)
{
	for (size_t i = 0; i < now->n; i++) {
		const struct count *c = &now->all[i];
		const struct count *b = before ? count_find(before, c) : NULL;

		if (!counts_add(to, c, b && b->n <= c->n ? c->n - b->n : c->n))
			return false;
	}
	return true;
}

/* Sets *@to, which is zero, to what has happened to @now since @before, which
 * may be NULL. */
static bool method_less(struct method *to, const struct method *now,
			const struct method *before, double seconds)
{
	int64_t calls = now->calls;

	if (before && before->calls <= calls)
		calls -= before->calls;
	to->side = now->side;
	to->service = strdup(now->service);
	to->name = now->name ? strdup(now->name) : NULL;
	to->calls = calls;
	to->under_way = now->under_way;
	to->waiting = now->waiting;
	to->streams = now->streams;
	to->rate = seconds > 0 ? (double)calls / seconds : 0;
	return to->service && (!now->name || to->name) &&
	       counts_less(&to->ends, &now->ends,
			   before ? &before->ends : NULL) &&
	       counts_less(&to->times, &now->times,
			   before ? &before->times : NULL);
}

static bool counts_sum(struct counts *to, const struct counts *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (!counts_add(to, &from->all[i], from->all[i].n))
			return false;
	return true;
}

/* Adds the methods of each service to the service. */
static bool services_sum(struct rpc_sample *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct method *m = &s->all[i], like = *m, *sv;

		like.name = NULL;
		sv = (struct method *)method_find(s, &like);
		if (!m->name || !sv)
			continue;
		sv->calls += m->calls;
		sv->rate += m->rate;
		if (!counts_sum(&sv->ends, &m->ends) ||
		    !counts_sum(&sv->times, &m->times))
			return false;
	}
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

static int by_count(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return strcmp(x->end, y->end);
}

/* Returns NULL if there is no memory. */
static struct rpc_sample *sample_less(const struct rpc_sample *now,
				      const struct rpc_sample *before,
				      double seconds)
{
	struct rpc_sample *s = calloc(1, sizeof(*s));
	bool ok = s;

	if (s)
		s->all = calloc(now->n + 1, sizeof(*s->all));
	ok = s && s->all;
	for (size_t i = 0; i < now->n && ok; i++) {
		s->n++;
		ok = method_less(&s->all[i], &now->all[i],
				 method_find(before, &now->all[i]), seconds);
	}
	if (!ok || !services_sum(s)) {
		top_rpc_free(s);
		return NULL;
	}
	for (size_t i = 0; i < s->n; i++) {
		struct method *m = &s->all[i];

		if (m->times.n)
			qsort(m->times.all, m->times.n, sizeof(struct count),
			      by_time);
		if (m->ends.n)
			qsort(m->ends.all, m->ends.n, sizeof(struct count),
			      by_count);
	}
	return s;
}

/* ---- printing ---- */

struct rpc_view {
	unsigned int rows, width;
	int name_width;
	bool streams; /* some are open: there is a column for them */
	double seconds;
	FILE *out;
};

/* Formats @value, of a unit that has @units of higher ones, in 6 characters.
 */
static const char *number(double value, const char *units, char *buf,
			  size_t size)
{
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

static uint64_t total(const struct counts *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += (uint64_t)c->all[i].n;
	return n;
}

/* Prints the time, in us, that @percent of the calls have not exceeded; "-":
 * none has ended. */
static void put_quantile(const struct rpc_view *v, const struct counts *times,
			 unsigned int percent)
{
	uint64_t all = total(times), rank = (all * percent + 99) / 100;
	uint64_t seen = 0;
	char buf[32] = "-";

	for (size_t i = 0; i < times->n && rank; i++) {
		seen += (uint64_t)times->all[i].n;
		if (seen < rank)
			continue;
		number((double)times->all[i].ns / 1000, " kMGTPE", buf,
		       sizeof(buf));
		break;
	}
	fprintf(v->out, " %8s", buf);
}

static bool is_refusal(const char *end)
{
	static const char *const refusals[] = { "overloaded",	 "refused",
						"shutting down", "no method",
						"no service",	 "expired" };

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (strcmp(end, refusals[i]) == 0)
			return true;
	return false;
}

/* Prints failures and refusals a second, and the causes, of which the most
 * frequent come first, as far as they fit behind column @at. */
static void put_ends(const struct rpc_view *v, const struct counts *ends,
		     unsigned int at)
{
	double failed = 0, refused = 0;
	char buf[96];

	for (size_t i = 0; i < ends->n; i++)
		*(is_refusal(ends->all[i].end) ? &refused : &failed) +=
			(double)ends->all[i].n;
	fprintf(v->out, " %8s",
		number(failed / v->seconds, " kMGTPE", buf, sizeof(buf)));
	fprintf(v->out, " %8s",
		number(refused / v->seconds, " kMGTPE", buf, sizeof(buf)));
	for (size_t i = 0; i < ends->n && ends->all[i].n; i++) {
		int n = snprintf(buf, sizeof(buf), "%s%.60s %" PRId64,
				 i ? ", " : " ", ends->all[i].end,
				 ends->all[i].n);

		at += (unsigned int)n;
		if (v->width && at > v->width)
			break;
		fputs(buf, v->out);
	}
	fputc('\n', v->out);
}

static void put_row(const struct rpc_view *v, const struct method *m)
{
	char name[160], buf[32];

	snprintf(name, sizeof(name), "%s%.120s", m->name ? "  " : "",
		 m->name ? m->name : m->service);
	fprintf(v->out, "%-*.*s %8s", v->name_width, v->name_width, name,
		number(m->rate, " kMGTPE", buf, sizeof(buf)));
	if (m->name)
		fprintf(v->out, " %9s %8s", "", "");
	else
		fprintf(v->out, " %9" PRId64 " %8" PRId64, m->under_way,
			m->waiting);
	if (v->streams && m->name)
		fprintf(v->out, " %8s", "");
	else if (v->streams)
		fprintf(v->out, " %8" PRId64, m->streams);
	put_quantile(v, &m->times, 50);
	put_quantile(v, &m->times, 99);
	put_ends(v, &m->ends,
		 (unsigned int)v->name_width + (v->streams ? 7 : 6) * 9 + 10);
}

/* For qsort() of pointers: the highest rate first, then by name. */
static int by_rate(const void *a, const void *b)
{
	const struct method *const *px = a, *const *py = b;
	const struct method *x = *px, *y = *py;

	if (x->rate > y->rate || x->rate < y->rate)
		return x->rate > y->rate ? -1 : 1;
	return strcmp(x->name ? x->name : x->service,
		      y->name ? y->name : y->service);
}

/* Collects those of @side that are services, or, unless @service is NULL,
 * methods of it, sorted. Returns how many there are. */
static size_t collect(const struct rpc_sample *s, enum side side,
		      const char *service, const struct method **to)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct method *m = &s->all[i];

		if (m->side == side && !m->name == !service &&
		    (!service || strcmp(m->service, service) == 0))
			to[n++] = m;
	}
	if (n)
		qsort(to, n, sizeof(const struct method *), by_rate);
	return n;
}

static void print_side(const struct rpc_view *v, const struct rpc_sample *s,
		       enum side side, const struct method **services,
		       const struct method **methods)
{
	size_t n = collect(s, side, NULL, services), rows = 0, hidden = 0;

	if (!n)
		return;
	fprintf(v->out, "%-*s %8s %9s %8s%s %8s %8s %8s %8s CAUSES\n",
		v->name_width, side == CALLS ? "CALLED" : "SERVED", "CALLS/s",
		"IN FLIGHT", "QUEUED", v->streams ? "  STREAMS" : "", "P50 us",
		"P99 us", "FAIL/s", "REFUSE/s");
	for (size_t i = 0; i < n; i++) {
		size_t k = collect(s, side, services[i]->service, methods);

		rows++ < v->rows ? put_row(v, services[i]) : (void)hidden++;
		for (size_t j = 0; j < k; j++)
			rows++ < v->rows ? put_row(v, methods[j])
					 : (void)hidden++;
	}
	if (hidden)
		fprintf(v->out, "... and %zu more\n", hidden);
}

static bool has_streams(const struct rpc_sample *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].streams)
			return true;
	return false;
}

static int longest(const struct rpc_sample *s)
{
	size_t width = NAME_MIN;

	for (size_t i = 0; i < s->n; i++) {
		const struct method *m = &s->all[i];
		size_t len = m->name ? strlen(m->name) + 2 : strlen(m->service);

		width = len > width ? len : width;
	}
	return (int)(width > NAME_MAX ? NAME_MAX : width);
}

/* Prints @text line by line, each up to @width characters; 0: all of them. */
static void print_cut(const char *text, unsigned int width, FILE *out)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		size_t most = width && n > width ? width : n;

		fprintf(out, "%.*s\n", (int)most, text);
		text += n + (text[n] == '\n');
	}
}

void top_rpc_print(const struct rpc_sample *before,
		   const struct rpc_sample *now, unsigned int rows,
		   unsigned int width, FILE *out)
{
	char *text = NULL;
	size_t size;
	/* If the clock has begun anew, so have the counters. */
	static const struct rpc_sample none;
	const struct rpc_sample *from = now->ns < before->ns ? &none : before;
	struct rpc_view v = { .rows = rows,
			      .width = width,
			      .seconds = (double)(now->ns - from->ns) / 1e9,
			      .out = open_memstream(&text, &size) };
	struct rpc_sample *s = sample_less(now, from, v.seconds);
	const struct method **room =
		calloc(2 * (now->n + 1), sizeof(const struct method *));

	if (s && room && v.out && v.seconds > 0) {
		v.name_width = longest(s);
		v.streams = has_streams(s);
		for (enum side side = 0; side < SIDES; side++)
			print_side(&v, s, side, room, room + now->n + 1);
	}
	if (v.out && fclose(v.out) == 0 && s && room)
		print_cut(text, width, out);
	else
		fputs("no memory for calls\n", out);
	free(text);
	free(room);
	top_rpc_free(s);
}
