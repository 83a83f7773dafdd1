/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands stat and show_error: lst(8). */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lst_command.h"

/* us: how soon stat ends after a signal */
#define TICK_US 100000u

/* ---- rates, per second ---- */

enum rate { RATE_IN, RATE_OUT, RATE_IN_BYTES, RATE_OUT_BYTES, RATES };

struct rates {
	double of[RATES];
};

/* The counters of a node in the last round of requests. */
struct round {
	bool known;
	struct lst_counters stat;
};

static double counter_rate(uint64_t now, uint64_t before, uint32_t ms)
{
	return ms ? (double)(now - before) * 1000 / ms : 0;
}

static struct rates rates_of(const struct lst_counters *a,
			     const struct lst_counters *b)
{
	uint32_t ms = b->running_ms - a->running_ms;

	/* Counters of 32 bits wrap, so they are subtracted in 32 bits. */
	return (struct rates){ {
		counter_rate(b->recv_count - a->recv_count, 0, ms),
		counter_rate(b->send_count - a->send_count, 0, ms),
		counter_rate(b->recv_length, a->recv_length, ms),
		counter_rate(b->send_length, a->send_length, ms),
	} };
}

static void print_way(const struct lst_words *w, const char *way, double count,
		      double bytes)
{
	bool all = w->rate == w->bw;

	fputs(way, stdout);
	if (all || w->rate)
		printf(" %.0f messages/s", count);
	if (all)
		fputs(",", stdout);
	if (all || w->bw)
		printf(" %.2f %s", bytes / (w->mbs ? 1000000 : 1048576),
		       w->mbs ? "MB/s" : "MiB/s");
}

/* Prints the rates of a node, or of a group. @of: "avg", "min" or "max" of the
 * group @name; NULL: @name is a node. */
static void print_rates(struct lst_console *c, const struct lst_words *w,
			const char *name, const char *of, const struct rates *r)
{
	bool both = w->read == w->write;

	if (c->json) {
		lst_list_next(c);
		printf("{\"%s\": \"%s\", ", of ? "group" : "nid", name);
		if (of)
			printf("\"of\": \"%s\", ", of);
		printf("\"received_per_s\": %.1f, \"sent_per_s\": %.1f, "
		       "\"received_bytes_per_s\": %.0f, "
		       "\"sent_bytes_per_s\": %.0f}",
		       r->of[RATE_IN], r->of[RATE_OUT], r->of[RATE_IN_BYTES],
		       r->of[RATE_OUT_BYTES]);
		return;
	}
	printf("%s%s%s: ", name, of ? " " : "", of ? of : "");
	if (both || w->read)
		print_way(w, "received", r->of[RATE_IN], r->of[RATE_IN_BYTES]);
	if (both)
		fputs("; ", stdout);
	if (both || w->write)
		print_way(w, "sent", r->of[RATE_OUT], r->of[RATE_OUT_BYTES]);
	fputs("\n", stdout);
}

/* ---- rates of many nodes ---- */

struct summary {
	unsigned int n;
	struct rates sum, min, max;
};

static void summary_add(struct summary *s, const struct rates *r)
{
	bool first = s->n++ == 0;

	for (unsigned int i = 0; i < RATES; i++) {
		s->sum.of[i] += r->of[i];
		if (first || r->of[i] < s->min.of[i])
			s->min.of[i] = r->of[i];
		if (first || r->of[i] > s->max.of[i])
			s->max.of[i] = r->of[i];
	}
}

static void summary_print(struct lst_console *c, const struct lst_words *w,
			  const char *name, const struct summary *s)
{
	struct rates avg = s->sum;

	for (unsigned int i = 0; i < RATES; i++)
		avg.of[i] /= s->n;
	if (w->avg)
		print_rates(c, w, name, "avg", &avg);
	if (w->min)
		print_rates(c, w, name, "min", &s->min);
	if (w->max)
		print_rates(c, w, name, "max", &s->max);
}

/* ---- stat ---- */

/* The nodes that one word of the command line names. */
struct section {
	const char *name;
	struct lst_nodes nodes;
	struct round *rounds;
};

static int section_round(struct lst_console *c, const struct lst_words *w,
			 struct section *s)
{
	const struct lst_msg ask = { .type = LST_STAT };
	bool each = !w->avg && !w->min && !w->max;
	struct summary all = { 0 };
	char nid[LNET_NIDSTR_SIZE];

	lst_nodes_ask(c, &s->nodes, &ask, w->ask);
	for (unsigned int i = 0; i < s->nodes.n; i++) {
		const struct lst_ask *a = &s->nodes.asks[i];
		struct round *round = &s->rounds[i];
		bool good = !a->status && !a->reply.status;

		if (good && round->known) {
			struct rates r = rates_of(&round->stat, &a->reply.stat);

			lnet_nid_format(&a->to.nid, nid, sizeof(nid));
			if (each)
				print_rates(c, w, nid, NULL, &r);
			summary_add(&all, &r);
		}
		*round = (struct round){ good, a->reply.stat };
	}
	if (all.n)
		summary_print(c, w, s->name, &all);
	return lst_nodes_failed(&s->nodes, "stat", 0);
}

/* Asks all nodes once, and prints their rates since the last round. The first
 * round prints nothing. */
static int sections_round(struct lst_console *c, const struct lst_words *w,
			  struct section *sections, int n, bool first)
{
	int status = 0;

	if (!first)
		lst_list_begin(c, "rates");
	for (int i = 0; i < n; i++)
		status |= section_round(c, w, &sections[i]);
	if (!first)
		lst_list_end(c);
	fflush(stdout);
	return status;
}

static int section_make(struct lst_console *c, struct section *s, char *word)
{
	int status = lst_nodes_add_word(c, &s->nodes, word);

	s->name = word;
	if (status)
		return status;
	s->rounds = calloc(s->nodes.n + 1, sizeof(*s->rounds));
	return s->rounds ? 0 : lst_fail("%s", strerror(ENOMEM));
}

static volatile sig_atomic_t stat_ended; /* a signal has come */

static void on_signal(int number)
{
	stat_ended = number;
}

/* The first SIGINT or SIGTERM ends stat after what it is printing; a second one
 * ends the program at once. A shell that starts programs in the background may
 * have set SIGINT to be ignored. */
static void stat_take_signals(void)
{
	const struct sigaction action = {
		.sa_handler = on_signal,
		.sa_flags = (int)(SA_RESETHAND | SA_RESTART),
	};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* Returns false if a signal has come meanwhile. */
static bool stat_pause(struct lst_console *c, uint64_t us)
{
	while (us && !stat_ended) {
		uint64_t tick = us < TICK_US ? us : TICK_US;

		lst_ask_wait(&c->calls, tick);
		us -= tick;
	}
	return !stat_ended;
}

int lst_stat(struct lst_console *c, const struct lst_words *w)
{
	struct section *sections;
	int status = 0;
	int n = w->n;

	sections = calloc((size_t)n, sizeof(*sections));
	if (!sections)
		return lst_fail("%s", strerror(ENOMEM));
	for (int i = 0; i < n && !status; i++)
		status = section_make(c, &sections[i], w->args[i]);
	stat_take_signals();
	if (!status)
		status = sections_round(c, w, sections, n, true);
	for (unsigned int i = 0; !status && (!w->count || i < w->count) &&
				 stat_pause(c, w->delay * SECOND_US);
	     i++)
		status = sections_round(c, w, sections, n, false);
	for (int i = 0; i < n; i++) {
		free(sections[i].rounds);
		free(sections[i].nodes.asks);
	}
	free(sections);
	return status;
}

/* ---- errors ---- */

static bool print_node_errors(struct lst_console *c, const struct lst_ask *ask)
{
	const struct lst_counters *s = &ask->reply.stat;
	char nid[LNET_NIDSTR_SIZE];

	if (ask->status || ask->reply.status ||
	    (!s->brw_errors && !s->ping_errors && !s->errors))
		return false;
	lst_list_next(c);
	printf(c->json ? "{\"nid\": \"%s\", \"brw_errors\": %u, "
			 "\"ping_errors\": %u, \"errors\": %u, "
			 "\"dropped\": %u, \"expired\": %u}"
		       : "%s: brw errors %u, ping errors %u; RPCs: "
			 "errors %u, dropped %u, expired %u\n",
	       lnet_nid_format(&ask->to.nid, nid, sizeof(nid)), s->brw_errors,
	       s->ping_errors, s->errors, s->rpcs_dropped, s->rpcs_expired);
	return true;
}

int lst_show_error(struct lst_console *c, const struct lst_words *w)
{
	const struct lst_msg ask = { .type = LST_STAT };
	struct lst_nodes nodes = { 0 };
	int status = 0;
	unsigned int bad = 0;

	if (!w->n && !w->session)
		return lst_usage("show_error", "groups, NIDs or --session are "
					       "needed");
	if (w->session)
		status = lst_nodes_add_session(&nodes, &c->state);
	for (int i = 0; i < w->n && !status; i++)
		status = lst_nodes_add_word(c, &nodes, w->args[i]);
	lst_nodes_ask(c, &nodes, &ask, w->ask);
	status |= lst_nodes_failed(&nodes, "show_error", 0);
	lst_list_begin(c, "nodes");
	for (unsigned int i = 0; i < nodes.n; i++)
		bad += print_node_errors(c, &nodes.asks[i]);
	if (c->json)
		printf("], \"asked\": %u}\n", nodes.n);
	else if (!status)
		printf("%u of %u nodes have errors\n", bad, nodes.n);
	free(nodes.asks);
	return status;
}
