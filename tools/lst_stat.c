/* SPDX-License-Identifier: BSD-3-Clause */
/* What nodes count: lst(8). */
#include <stdlib.h>

#include "lst_command.h"
#include "lst_nodes.h"
#include "lst_words.h"

static const struct option options_stat[] = {
	{ "delay", required_argument, NULL, OPT_DELAY },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ 0 },
};
static const struct option options_none[] = { { 0 } };

struct round {
	bool known;
	struct lst_counters stat;
};

static double per_second(uint64_t now, uint64_t before, uint32_t ms)
{
	return ms ? (double)(now - before) * 1000 / ms : 0;
}

static void print_rates(const struct lst_console *c, const char *nid,
			const struct lst_counters *a,
			const struct lst_counters *b)
{
	uint32_t ms = b->running_ms - a->running_ms;
	/* Counters of 32 bits wrap. */
	double in = per_second(b->recv_count - a->recv_count, 0, ms);
	double out = per_second(b->send_count - a->send_count, 0, ms);
	double in_bytes = per_second(b->recv_length, a->recv_length, ms);
	double out_bytes = per_second(b->send_length, a->send_length, ms);

	if (c->json)
		printf("{\"nid\": \"%s\", \"ms\": %u, "
		       "\"received_per_s\": %.1f, \"sent_per_s\": %.1f, "
		       "\"received_bytes_per_s\": %.0f, "
		       "\"sent_bytes_per_s\": %.0f}\n",
		       nid, ms, in, out, in_bytes, out_bytes);
	else
		printf("%s: received %.0f messages/s, %.2f MiB/s; "
		       "sent %.0f messages/s, %.2f MiB/s\n",
		       nid, in, in_bytes / 1048576, out, out_bytes / 1048576);
}

static int stat_round(struct lst_console *c, struct lst_nodes *nodes,
		      struct round *rounds)
{
	const struct lst_msg ask = { .type = LST_STAT };
	char nid[LNET_NIDSTR_SIZE];
	int status;

	lst_nodes_ask(c, nodes, &ask, ASK_S);
	status = lst_nodes_failed(nodes, "stat", 0);
	for (unsigned int i = 0; i < nodes->n; i++) {
		const struct lst_ask *a = &nodes->asks[i];
		bool good = !a->status && !a->reply.status;

		lnet_nid_format(&a->to.nid, nid, sizeof(nid));
		if (good && rounds[i].known)
			print_rates(c, nid, &rounds[i].stat, &a->reply.stat);
		rounds[i].known = good;
		if (good)
			rounds[i].stat = a->reply.stat;
	}
	fflush(stdout);
	return status;
}

int lst_stat(struct lst_console *c, int argc, char **argv)
{
	struct lst_nodes nodes = { 0 };
	struct round *rounds;
	struct lst_words w;
	int status = lst_words_take(&w, options_stat, argc, argv, 1, INT32_MAX);

	if (!status)
		status = lst_nodes_add_words(c, &nodes, argc, argv);
	rounds = calloc(nodes.n + 1, sizeof(*rounds));
	if (!status && rounds)
		status = stat_round(c, &nodes, rounds);
	for (unsigned int i = 0; !status && rounds && (!w.count || i < w.count);
	     i++) {
		lst_ask_wait(&c->calls, w.delay * SECOND_US);
		status = stat_round(c, &nodes, rounds);
	}
	free(rounds);
	free(nodes.asks);
	return status;
}

int lst_show_error(struct lst_console *c, int argc, char **argv)
{
	const struct lst_msg ask = { .type = LST_STAT };
	struct lst_nodes nodes = { 0 };
	char nid[LNET_NIDSTR_SIZE];
	struct lst_words w;
	int status = lst_words_take(&w, options_none, argc, argv, 1, INT32_MAX);
	unsigned int bad = 0;

	if (!status)
		status = lst_nodes_add_words(c, &nodes, argc, argv);
	lst_nodes_ask(c, &nodes, &ask, ASK_S);
	status |= lst_nodes_failed(&nodes, "show_error", 0);
	for (unsigned int i = 0; i < nodes.n; i++) {
		const struct lst_counters *s = &nodes.asks[i].reply.stat;

		if (nodes.asks[i].status || nodes.asks[i].reply.status)
			continue;
		if (!s->brw_errors && !s->ping_errors && !s->errors)
			continue;
		bad++;
		printf(c->json ? "{\"nid\": \"%s\", \"brw_errors\": %u, "
				 "\"ping_errors\": %u, \"errors\": %u, "
				 "\"dropped\": %u, \"expired\": %u}\n"
			       : "%s: brw errors %u, ping errors %u; RPCs: "
				 "errors %u, dropped %u, expired %u\n",
		       lnet_nid_format(&nodes.asks[i].to.nid, nid, sizeof(nid)),
		       s->brw_errors, s->ping_errors, s->errors,
		       s->rpcs_dropped, s->rpcs_expired);
	}
	if (!status && !c->json)
		printf("%u of %u nodes have errors\n", bad, nodes.n);
	free(nodes.asks);
	return status;
}
