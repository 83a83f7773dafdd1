/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to nodes, links and names of the streams scenario. */
#include <errno.h>
#include <string.h>

#include "tests/sim/streams_run.h"

/* ---- processes ---- */

/* Something else is under way between the same nodes: closes all of it. */
static void streams_close(void *arg)
{
	struct member *m = arg;
	struct ulrpc_streams **streams = &m->to[NODES];

	if (!m->rpc || !m->r->faults || after_pause(m, streams_close, m))
		return;
	if (!m->r->named || chance(m->r, 50))
		streams = &m->to[rnd(m->r, m->r->n)];
	ulrpc_streams_close(*streams);
	*streams = NULL;
}

/* A handle of a program on a node that has crashed. */
static void give_back(struct ulrpc_stream **stream)
{
	ulrpc_stream_put(*stream);
	*stream = NULL;
}

static void restart(void *arg)
{
	struct member *m = arg;

	if (lnet_sim_restart(m->r->sim, m->index))
		lnet_sim_fail(m->r->sim, "a node does not come again");
}

/* Returns whether the node could be made to crash. */
static bool crash_now(struct member *m)
{
	struct run *r = m->r;

	if (!m->rpc || lnet_sim_crash(r->sim, m->index))
		return false;
	r->crashes++;
	m->rpc = NULL;
	m->paused = 0;
	for (unsigned int i = 0; i < FLOWS + LOST; i++) {
		struct flow *f = &r->flows[i];

		if (f->from == m && f->stream)
			give_back(&f->stream);
		if (f->to == m && f->served)
			give_back(&f->served);
	}
	for (unsigned int i = 0; i < TREES; i++)
		tree_crash(&r->trees[i], m);
	return true;
}

static void crash(void *arg)
{
	struct member *m = arg;

	if (crash_now(m))
		at(m->r, rnd(m->r, 2 * SEC), restart, m);
}

/* Stops the process, as SIGSTOP does. */
static void pause_some(struct run *r)
{
	struct member *m = &r->members[rnd(r, r->n)];
	uint64_t ns = rnd(r, chance(r, 30) ? 15 * SEC : 2 * SEC);

	if (!m->rpc || is_paused(m))
		return;
	if (lnet_sim_pause(r->sim, m->index, ns))
		lnet_sim_fail(r->sim, "a node cannot be paused");
	m->paused = lnet_sim_now(r->sim) + ns;
	r->npauses++;
}

static void pause_end(struct member *m)
{
	if (!is_paused(m))
		return;
	lnet_sim_pause(m->r->sim, m->index, 0);
	m->paused = lnet_sim_now(m->r->sim);
}

/* ---- the network ---- */

static struct ulnet_nid any_nid(struct run *r)
{
	return r->members[rnd(r, r->n)].nids[rnd(r, r->nnids)];
}

static void ni_set(struct run *r, const struct ulnet_nid *nid, bool up)
{
	if (!lnet_sim_ni_set(r->sim, nid, up))
		r->nis_down += !up;
}

/* Rules damage only control messages, which are all covered by checksums. */
static void change_rules(struct run *r)
{
	struct member *m = &r->members[rnd(r, r->n)];
	struct ulnet_nid a = any_nid(r), b = any_nid(r);

	if (!m->rpc || is_paused(m))
		return;
	rules_change(&r->rules, r->sim, lnet_sim_node(r->sim, m->index), &a, &b,
		     UINT64_C(1) << ULRPC_PORTAL_CONTROL);
	r->rules_changed++;
}

/* ---- the name ---- */

/* It cannot be looked up for now: nobody answers, or that it fails. */
static int name_fail(struct run *r)
{
	const struct ulnet_name_answer failed = {
		.status = chance(r, 50) ? -EAGAIN : -ENOENT,
		.why = "it is not known",
	};

	return lnet_sim_name_set(r->sim, "flows",
				 chance(r, 50) ? &failed : NULL,
				 rnd(r, 2 * SEC));
}

static int name_say(struct run *r)
{
	struct ulnet_address addresses[NODES] = { 0 };
	struct ulnet_name_answer a = { .addresses = addresses };

	for (unsigned int i = 0; i < r->n; i++) {
		if (r->faults && chance(r, 40))
			continue;
		addresses[a.n].nid = r->members[i].nids[0];
		addresses[a.n++].weight = (uint16_t)rnd(r, 5);
	}
	return lnet_sim_name_set(r->sim, "flows", &a,
				 rnd(r, r->faults ? 5 * SEC : SEC));
}

void name_set(struct run *r)
{
	if (!r->named)
		return;
	if (r->faults && chance(r, 30) ? name_fail(r) : name_say(r))
		lnet_sim_fail(r->sim, "no memory for a name");
	r->renamed++;
}

/* ---- all of it ---- */

static void network_trouble(struct run *r)
{
	struct ulnet_sim_link link = { .latency = rnd(r, 5 * MS),
				       .jitter = rnd(r, 5 * MS),
				       .reorder_window = 5 * MS,
				       .connect = rnd(r, 2) * MS };
	struct ulnet_nid a = any_nid(r), b = any_nid(r);

	link_faults(r->sim, chance(r, 20), &link);
	links_set(&r->links, r->sim, a, b, &link);
	if (chance(r, 20))
		split(&r->splits, r->sim, a, b, rnd(r, 4 * SEC));
	if (chance(r, 20))
		lnet_sim_cut(r->sim, &a, &b);
	if (chance(r, 20))
		ni_set(r, &a, chance(r, 60));
	if (chance(r, 20))
		change_rules(r);
}

void trouble(void *arg)
{
	struct run *r = arg;

	if (!r->faults)
		return;
	network_trouble(r);
	if (chance(r, 8))
		at(r, 0, crash, &r->members[rnd(r, r->n)]);
	if (chance(r, 5))
		at(r, 0, streams_close, &r->members[rnd(r, r->n)]);
	if (r->pauses && chance(r, 15))
		pause_some(r);
	if (chance(r, 20))
		name_set(r);
	at(r, rnd(r, SEC), trouble, r);
}

void trouble_end(struct run *r)
{
	r->faults = false;
	splits_heal(&r->splits);
	links_heal(&r->links, r->sim);
	for (unsigned int i = 0; i < r->n; i++) {
		struct member *m = &r->members[i];
		struct lnet *node = lnet_sim_node(r->sim, i);

		pause_end(m);
		if (node)
			rules_forget(&r->rules, r->sim, node);
		for (unsigned int k = 0; k < r->nnids; k++)
			ni_set(r, &m->nids[k], true);
	}
	name_set(r);
}

/* ---- a server that leaves ---- */

/* ns until a client gives up a server at whose host nobody listens: until it
 * knows that the connection is lost, the time for which it goes on trying, and
 * a pause. */
#define GONE_WITHIN (4 * SEC)
/* The calls that carry streams have PATIENCE, and those that the server keeps
 * up to 4 s more. */
#define SILENT_LEAST (15 * SEC)
#define SILENT_MOST  (26 * SEC)

/* Messages need connections, so that who is gone refuses them. */
static void links_connect(struct run *r)
{
	const struct ulnet_sim_link link = { .latency = 100 * US,
					     .connect = MS };
	const struct ulnet_nid any = LNET_NID_ANY;

	links_set_all(&r->links, r->sim, &link);
	if (lnet_sim_link_set(r->sim, &any, &any, &link))
		lnet_sim_fail(r->sim, "no memory for a link");
}

static void cut_off(struct run *r, const struct member *m, bool on)
{
	for (unsigned int i = 0; i < r->n * r->nnids; i++)
		for (unsigned int k = 0; k < r->nnids; k++) {
			const struct member *other = &r->members[i / r->nnids];

			if (other != m)
				lnet_sim_partition(r->sim, &m->nids[k],
						   &other->nids[i % r->nnids],
						   on);
		}
}

static void flow_of(struct run *r, unsigned int i, struct member *server)
{
	struct flow *f = &r->flows[i];

	*f = (struct flow){ .r = r, .index = i, .to = server, .lost = true };
	do
		f->from = &r->members[rnd(r, r->n)];
	while (f->from == server);
	f->named = r->named && chance(r, 50);
	if (f->named)
		f->to = NULL;
	f->kind = (enum kind)rnd(r, KINDS);
	f->size = chance(r, 50) ? 64 : 3000;
	if (f->kind == KIND_LIST)
		f->down.total = 1000;
	else
		f->up.total = 1000;
	at(r, rnd(r, SEC), flow_open, f);
}

/* Notes which streams @server has now. */
static unsigned int flows_at(struct run *r, const struct member *server)
{
	unsigned int at = 0;

	for (unsigned int i = 0; i < LOST; i++) {
		const struct flow *f = &r->flows[FLOWS + i];

		if (f->gots && f->to == server && !f->ended)
			at |= 1u << i;
	}
	return at;
}

static void check_over(struct run *r, unsigned int at, bool over)
{
	for (unsigned int i = 0; i < LOST; i++) {
		const struct flow *f = &r->flows[FLOWS + i];

		if (at & 1u << i && f->ended != over)
			lnet_sim_fail(r->sim,
				      "stream %u: ends %u times, and its "
				      "server is away",
				      f->index, f->ended);
	}
}

static void server_gone(struct run *r, struct member *m, unsigned int at)
{
	if (!crash_now(m))
		return;
	lnet_sim_run(r->sim, GONE_WITHIN);
	check_over(r, at, true);
	r->gone += (unsigned int)__builtin_popcount(at);
	restart(m);
}

static void server_silent(struct run *r, struct member *m, unsigned int at)
{
	cut_off(r, m, true);
	lnet_sim_run(r->sim, SILENT_LEAST);
	check_over(r, at, false);
	lnet_sim_run(r->sim, SILENT_MOST - SILENT_LEAST);
	check_over(r, at, true);
	r->silent += (unsigned int)__builtin_popcount(at);
	cut_off(r, m, false);
}

void server_leaves(struct run *r)
{
	struct member *m = &r->members[rnd(r, r->n)];
	bool gone = chance(r, 50);
	unsigned int at;

	if (r->n < 2)
		return;
	links_connect(r);
	for (unsigned int i = 0; i < LOST; i++)
		flow_of(r, FLOWS + i, m);
	lnet_sim_run(r->sim, rnd(r, 2 * SEC));
	at = flows_at(r, m);
	if (gone)
		server_gone(r, m, at);
	else
		server_silent(r, m, at);
	/* The deadlines of the others pass. */
	lnet_sim_run(r->sim, 120 * SEC);
}
