/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes wrong in the scenario of calls to several servers. The first server
 * is always well, and each caller reaches it by one rail at least, but for a
 * second now and then in which a caller has no interface.
 */
#include <errno.h>
#include "tests/sim/replicas_run.h"
#include "tests/sim/rules.h"
#include "ulnet/fault.h"

/* ---- nodes ---- */

/* One of the servers that are not always well; NULL: there is only one. */
static struct server *any_victim(struct run *r)
{
	return r->n < 2 ? NULL : &r->servers[1 + rnd(r, r->n - 1)];
}

static void server_restart(void *arg)
{
	struct server *s = arg;

	if (s->r->forgets && chance(s->r, 30))
		store_free(s);
	if (lnet_sim_restart(s->r->sim, s->index))
		lnet_sim_fail(s->r->sim, "a server does not come again");
}

static void server_crash(void *arg)
{
	struct server *s = arg;
	struct run *r = s->r;

	if (!s->rpc || lnet_sim_crash(r->sim, s->index))
		return;
	r->crashes++;
	s->rpc = NULL;
	flows_crash(r, s, NULL);
	at(r, rnd(r, 3 * SEC), server_restart, s);
}

static void server_drain(struct server *s)
{
	if (s->rpc && !ulrpc_shutdown(s->rpc, 2 * SECONDS, NULL, NULL))
		at(s->r, rnd(s->r, 3 * SEC), server_crash, s);
}

static void caller_restart(void *arg)
{
	struct caller *m = arg;

	if (lnet_sim_restart(m->r->sim, m->index))
		lnet_sim_fail(m->r->sim, "a caller does not come again");
}

static void caller_crash(struct caller *m)
{
	struct run *r = m->r;

	if (!m->rpc || lnet_sim_crash(r->sim, m->index))
		return;
	m->rpc = NULL;
	m->paused = 0;
	flows_crash(r, NULL, m);
	for (unsigned int i = 0; i < CALLS; i++)
		if (r->calls[i].from == m)
			call_put(&r->calls[i]);
	at(r, rnd(r, SEC), caller_restart, m);
}

static void caller_pause(struct caller *m)
{
	struct run *r = m->r;
	uint64_t ns = rnd(r, 5 * SEC);

	if (!m->rpc || is_paused(m))
		return;
	if (lnet_sim_pause(r->sim, m->index, ns))
		lnet_sim_fail(r->sim, "a caller cannot be paused");
	m->paused = lnet_sim_now(r->sim) + ns;
	r->npauses++;
}

/* ---- the name ---- */

/* The name cannot be looked up for now: nobody answers, or that it fails. */
static int name_fail(struct run *r)
{
	const struct ulnet_name_answer failed = {
		.status = chance(r, 50) ? -EAGAIN : -ENOENT,
		.why = "it is not known",
	};

	r->name_failures++;
	return lnet_sim_name_set(r->sim, "servers",
				 chance(r, 50) ? &failed : NULL,
				 rnd(r, 2 * SEC));
}

/* The name stands for the first server, and some of the others. */
void name_set(struct run *r)
{
	struct ulnet_address addresses[SERVERS] = { 0 };
	struct ulnet_name_answer a = { .addresses = addresses };

	if (r->named && r->faults && chance(r, 30)) {
		if (name_fail(r))
			lnet_sim_fail(r->sim, "no memory for a name");
		return;
	}
	for (unsigned int i = 0; i < r->n; i++) {
		if (i && r->faults && chance(r, 40))
			continue;
		addresses[a.n].nid = r->servers[i].nids[0];
		addresses[a.n++].weight = (uint16_t)rnd(r, 5);
	}
	if (r->named && lnet_sim_name_set(r->sim, "servers", &a,
					  rnd(r, r->faults ? 5 * SEC : SEC)))
		lnet_sim_fail(r->sim, "no memory for a name");
}

/* ---- the network ---- */

/* One of the NIDs of a node. */
static const struct ulnet_nid *any_rail(struct run *r,
					const struct ulnet_nid *nids)
{
	return &nids[rnd(r, r->rails)];
}

static void link_change(struct run *r, const struct ulnet_nid *a,
			const struct ulnet_nid *b)
{
	struct ulnet_sim_link link = { .latency = rnd(r, 5 * MS),
				       .jitter = rnd(r, 5 * MS),
				       .reorder_window = 5 * MS,
				       .connect = rnd(r, 2) * MS };

	link_faults(r->sim, chance(r, 20), &link);
	if (chance(r, 50))
		links_set(&r->links, r->sim, *a, *b, &link);
	else
		links_set(&r->links, r->sim, *b, *a, &link);
	if (chance(r, 30))
		split(&r->splits, r->sim, *a, *b, rnd(r, 8 * SEC));
	if (chance(r, 20))
		lnet_sim_cut(r->sim, a, b);
}

static void ni_up(void *arg)
{
	struct downtime *d = arg;

	lnet_sim_ni_set(d->r->sim, &d->nid, true);
	d->lasts = false;
}

/* The interface is down for up to @ns. */
static void ni_down(struct run *r, const struct ulnet_nid *nid, uint64_t ns)
{
	struct downtime *d = r->downtimes;

	while (d->lasts)
		if (++d == r->downtimes + DOWNTIMES)
			return;
	if (lnet_sim_ni_set(r->sim, nid, false))
		return; /* its node has crashed */
	*d = (struct downtime){ r, *nid, true };
	r->ndowns++;
	at(r, rnd(r, ns), ni_up, d);
}

/* What the second rail suffers, the first one of the same nodes does not. */
static void second_rail_trouble(struct run *r, struct caller *m)
{
	struct server *first = &r->servers[0];

	if (chance(r, 30))
		link_change(r, &m->nids[1], &first->nids[1]);
	if (chance(r, 10))
		ni_down(r, &first->nids[1], 3 * SEC);
	if (chance(r, 10))
		ni_down(r, &m->nids[1], 3 * SEC);
}

/* The caller's node fails, delays or doubles some of the messages that it sends
 * to @nid, or loses some that come from there. */
static void caller_rule(struct caller *m, const struct ulnet_nid *nid)
{
	struct run *r = m->r;
	struct lnet *node = lnet_sim_node(r->sim, m->index);
	struct ulnet_fault f;

	if (!node || is_paused(m))
		return;
	if (chance(r, 30)) {
		rules_forget(&r->rules, r->sim, node);
		return;
	}
	lnet_fault_init(&f, (enum ulnet_fault_kind)rnd(r, LNET_FAULT_KINDS));
	if (f.kind == LNET_FAULT_CORRUPT)
		f.kind = LNET_FAULT_ERROR;
	f.rate = 1 + (uint32_t)rnd(r, 20);
	f.random = chance(r, 30);
	if (f.kind == LNET_FAULT_DROP)
		f.source = *nid;
	else
		f.dest = *nid;
	if (f.kind == LNET_FAULT_DELAY)
		f.latency = 1 + rnd(r, 50 * MS / US);
	if (f.kind == LNET_FAULT_ERROR)
		f.causes = LNET_FAULT_CAUSES;
	/* There may be the same rule, or enough of them. */
	(void)lnet_fault_add(node, &f);
}

static void rules_trouble(struct run *r, struct caller *m, struct server *s)
{
	struct lnet *node = lnet_sim_node(r->sim, s->index);

	if (chance(r, 20))
		caller_rule(m, any_rail(r, s->nids));
	/* Of what comes here, only control messages are known to be damaged,
	 * by their checksums. */
	if (node && chance(r, 20))
		rules_change(&r->rules, r->sim, node, any_rail(r, s->nids),
			     any_rail(r, m->nids),
			     UINT64_C(1) << ULRPC_PORTAL_CONTROL);
}

static void network_trouble(struct run *r, struct server *s)
{
	struct caller *m = &r->callers[rnd(r, CALLERS)];

	link_change(r, any_rail(r, m->nids), any_rail(r, s->nids));
	rules_trouble(r, m, s);
	if (chance(r, 10))
		ni_down(r, any_rail(r, s->nids), 3 * SEC);
}

static void network_heal(struct run *r)
{
	splits_heal(&r->splits);
	links_heal(&r->links, r->sim);
	for (unsigned int i = 0; i < DOWNTIMES; i++)
		if (r->downtimes[i].lasts)
			lnet_sim_ni_set(r->sim, &r->downtimes[i].nid, true);
	for (unsigned int i = 0; i < r->n + CALLERS; i++) {
		struct lnet *node = lnet_sim_node(r->sim, i);

		if (node)
			rules_forget(&r->rules, r->sim, node);
	}
}

/* ---- all of it ---- */

void trouble(void *arg)
{
	struct run *r = arg;
	struct server *s = any_victim(r);
	struct caller *m = &r->callers[rnd(r, CALLERS)];

	if (!r->faults)
		return;
	if (s) {
		network_trouble(r, s);
		s->delay = chance(r, 30) ? rnd(r, 2 * SEC) : rnd(r, 5 * MS);
		if (chance(r, 10))
			at(r, 0, server_crash, s);
		if (chance(r, 10))
			server_drain(s);
	}
	if (r->rails > 1)
		second_rail_trouble(r, m);
	else if (chance(r, 3))
		ni_down(r, m->nids, SEC);
	if (chance(r, 3))
		caller_crash(&r->callers[rnd(r, CALLERS)]);
	if (r->pauses && chance(r, 15))
		caller_pause(&r->callers[rnd(r, CALLERS)]);
	if (chance(r, 3))
		sets_renew(&r->callers[rnd(r, CALLERS)]);
	if (chance(r, 20))
		name_set(r);
	at(r, rnd(r, SEC), trouble, r);
}

void trouble_end(struct run *r)
{
	r->faults = false;
	network_heal(r);
	for (unsigned int i = 0; i < r->n; i++)
		r->servers[i].delay = 0;
	name_set(r);
}
