/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens to nodes, links and services of the RPC scenario. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/rpc_run.h"

#define SHUT 11 /* the number of fault_one()'s cases */

static struct member *some_member(struct run *r)
{
	return &r->members[rnd(r, r->n)];
}

static struct ulnet_nid some_nid(struct run *r)
{
	struct member *m = some_member(r);

	return chance(r, 20) ? LNET_NID_ANY : m->nids[rnd(r, m->nnids)];
}

/* ---- links ---- */

void fault_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b)
{
	struct ulnet_sim_link l = {
		.latency = rnd(r, r->slow ? 20 * MS : MS / 5),
		.jitter = rnd(r, r->slow ? 5 * MS : MS / 10),
		.reorder_window = rnd(r, chance(r, 20) ? 200 * MS : 5 * MS),
	};

	/* A link that is congested for long is as bad as one that is cut. */
	if (!is_fair(r) && chance(r, 50))
		l.bandwidth = (1000000 + rnd(r, 1000000)) << rnd(r, 10);
	if (chance(r, 30))
		l.connect = 1 + rnd(r, r->slow ? 50 * MS : MS);
	if (!is_fair(r))
		link_faults(r->sim, r->harsh, &l);
	if (r->weather == WEATHER_DELAYED && chance(r, 30))
		l.latency = rnd(r, 3 * SEC);
	if (r->weather == WEATHER_ONE_WAY && chance(r, 30))
		l.loss = LNET_SIM_ALWAYS;
	if (!is_fair(r) && chance(r, 30))
		l.duplicate = l.reorder = (uint32_t)rnd(r, 400000);
	/* Copies of messages may arrive after their connection, or even the
	 * server, has ended. */
	if (r->late) {
		l.loss = l.refuse = l.error = l.stall = l.mute = 0;
		l.duplicate = 500000;
		l.reorder = 400000;
		l.reorder_window = rnd(r, SEC);
	}
	if (l.hole)
		tally_count(r, LINK_HAS_HOLE);
	links_set(&r->links, r->sim, a, b, &l);
}

static void ni_set(struct run *r, const struct ulnet_nid *nid, bool up)
{
	if (!lnet_sim_ni_set(r->sim, nid, up) && !up)
		tally_count(r, NI_IS_DOWN);
}

static void separate(struct run *r)
{
	struct ulnet_nid a = some_nid(r), b = some_nid(r);

	tally_count(r, PARTITION);
	split(&r->splits, r->sim, a, b, rnd(r, chance(r, 20) ? SEC : 50 * MS));
}

/* Breaks connections. A node that sends nothing does not notice. */
static void cut(struct run *r)
{
	struct ulnet_nid a = some_nid(r), b = some_nid(r);

	tally_count(r, CONNECTION_CUT);
	lnet_sim_cut(r->sim, &a, &b);
}

/* Rules damage only what is all covered by checksums: control messages, which
 * are nothing but a head, and requests to the service that asks for checksums
 * of bodies. */
static void change_rules(struct run *r, struct member *m)
{
	struct lnet *node = lnet_sim_node(r->sim, m->index);
	struct ulnet_nid a = some_nid(r), b = some_nid(r);

	if (!node || is_paused(m))
		return;
	rules_change(&r->rules, r->sim, node, &a, &b,
		     UINT64_C(1) << ULRPC_PORTAL_CONTROL |
			     UINT64_C(1) << PORTAL_CHECKED);
	tally_count(r, RULES_CHANGE);
}

static void forget_rules(struct run *r, struct member *m)
{
	struct lnet *node = lnet_sim_node(r->sim, m->index);

	if (node)
		rules_forget(&r->rules, r->sim, node);
}

/* ---- processes ---- */

static void restart(void *arg)
{
	struct member *m = arg;

	if (m->run->over || lnet_sim_node(m->run->sim, m->index))
		return;
	/* its RDMA devices may be missing */
	if (lnet_sim_restart(m->run->sim, m->index)) {
		lnet_sim_at(m->run->sim, 100 * MS, restart, m);
		return;
	}
	tally_count(m->run, NODE_IS_BACK);
	if (m->rpc)
		member_clients(m);
}

static void crashed(struct run *r, struct member *m)
{
	spans_stop(m);
	m->paused = 0;
	server_crashed(m);
	caller_crashed(m);
	intercept_crashed(m);
	rails_crashed(r, m->index);
	m->rpc = NULL;
	m->life++;
	lnet_sim_at(r->sim, 1 + rnd(r, 100 * MS), restart, m);
}

static void crash(struct run *r, struct member *m)
{
	if (m->busy || !lnet_sim_node(r->sim, m->index))
		return;
	tally_rpc(m);
	m->crashing = true;
	spans_crashing(m);
	if (!lnet_sim_crash(r->sim, m->index))
		crashed(r, m);
	m->crashing = false;
}

/* Stops the process for a time, between a tenth of a second and a minute and a
 * half, as SIGSTOP and SIGCONT do. */
void fault_pause(struct run *r)
{
	struct member *m = some_member(r);
	uint64_t ns = (100 * MS << rnd(r, 10)) * (100 + rnd(r, 76)) / 100;

	if (!lnet_sim_node(r->sim, m->index) || m->busy || is_paused(m))
		return;
	tally_count(r, NODE_PAUSES);
	if (lnet_sim_pause(r->sim, m->index, ns))
		abort();
	m->paused = lnet_sim_now(r->sim) + ns;
}

static void pause_end(struct run *r, struct member *m)
{
	if (!is_paused(m))
		return;
	lnet_sim_pause(r->sim, m->index, 0);
	m->paused = lnet_sim_now(r->sim);
}

static void on_shutdown(void *arg, int status)
{
	struct member *m = arg;

	for (unsigned int i = 0; i < SERVICES; i++)
		server_stopped(m, i);
	if (status && status != -ETIMEDOUT && status != -ECANCELED)
		lnet_sim_fail(m->run->sim, "node %u: shutdown: %d", m->index,
			      status);
}

static void reopen(void *arg)
{
	struct member *m = arg;

	if (m->run->over || m->rpc || !lnet_sim_node(m->run->sim, m->index))
		return;
	if (m->busy || is_paused(m))
		lnet_sim_at(m->run->sim, MS, reopen, m);
	else if (!member_open(m))
		member_clients(m);
}

void wait_begin(struct member *m, const char *what)
{
	struct run *r = m->run;

	r->waiting = m->busy = true;
	r->awaited = what;
	r->wait_began = lnet_sim_now(r->sim);
}

void wait_end(struct member *m)
{
	wait_check(m->run);
	m->run->waiting = m->busy = false;
	m->run->awaited = NULL;
}

/* Violation: somebody waits for longer than LNet and handlers together may
 * take. */
void wait_check(struct run *r)
{
	uint64_t took = lnet_sim_now(r->sim) - r->wait_began;

	if (!r->awaited || took <= LNET_TIME + 15 * SEC)
		return;
	lnet_sim_fail(r->sim, "%s is waited for since %lu ms", r->awaited,
		      (unsigned long)(took / MS));
	r->awaited = NULL;
}

/* Closes RPC on a node that itself continues. */
static void close_rpc(struct member *m)
{
	struct run *r = m->run;
	struct ulrpc *rpc = m->rpc;
	int rc;

	if (!rpc)
		return;
	tally_rpc(m);
	tally_count(r, RPC_CLOSES);
	m->rpc = NULL;
	memset(m->services, 0, sizeof(m->services));
	memset(m->clients, 0, sizeof(m->clients));
	wait_begin(m, "the end of RPC");
	rc = ulrpc_close(rpc);
	wait_end(m);
	if (rc)
		lnet_sim_fail(r->sim, "node %u: RPC does not close: %d",
			      m->index, rc);
	for (unsigned int i = 0; i < SERVICES; i++)
		server_stopped(m, i);
	caller_closed(m);
	spans_stop(m);
	m->life++;
	lnet_sim_at(r->sim, rnd(r, r->late ? 5 * MS : 140 * MS), reopen, m);
}

static void close_later(void *arg)
{
	struct member *m = arg;

	if (m->run->over || !m->rpc)
		return;
	if (m->run->waiting || is_paused(m))
		lnet_sim_at(m->run->sim, MS, close_later, m);
	else
		close_rpc(m);
}

/* Closes RPC; sometimes RPC refuses new work, and ends what is under way,
 * first. */
static void shut(struct run *r, struct member *m)
{
	if (!r->late && chance(r, 60))
		m->shutting |=
			!ulrpc_shutdown(m->rpc, rnd(r, 100000), on_shutdown, m);
	lnet_sim_at(r->sim, rnd(r, r->late ? MS : 150 * MS), close_later, m);
}

/* ---- services and clients ---- */

static void toggle_service(struct run *r, struct member *m)
{
	unsigned int i = (unsigned int)rnd(r, SERVICES);

	if (m->services[i])
		server_stop(m, i);
	else
		server_start(m, i);
}

static int client_open(struct member *m, struct test_client *tc)
{
	struct run *r = m->run;
	struct member *to = some_member(r);
	struct ulrpc_client_conf conf;
	int rc;

	ulrpc_client_conf_init(&conf);
	conf.nids = to->nids;
	conf.nnids = to->nnids;
	conf.service = chance(r, 50) ? "s0" : "s1";
	if (chance(r, 50))
		conf.inflight_max = 1 + (uint32_t)rnd(r, 10);
	if (chance(r, 50))
		conf.batch_max = 1 + (uint32_t)rnd(r, 10);
	conf.flavour = run_flavour(r, m->index);
	rc = ulrpc_client_open(m->rpc, &conf, &tc->client);
	if (rc == -EXDEV) {
		conf.nids = &to->nids[r->weather == WEATHER_SPARED
					      ? r->spare
					      : rnd(r, to->nnids)];
		conf.nnids = 1;
		rc = ulrpc_client_open(m->rpc, &conf, &tc->client);
	}
	tc->target = to->index;
	tc->service = conf.service[1] == '0' ? 0 : 1;
	if (rc)
		tc->client = NULL;
	return rc;
}

static void toggle_client(struct run *r, struct member *m)
{
	struct test_client *tc = &m->clients[rnd(r, CLIENTS_MAX)];

	if (r->quiet)
		return;
	if (tc->client) {
		ulrpc_client_close(tc->client);
		tally_count(r, CLIENT_CLOSES);
	}
	tc->client = NULL;
	if (chance(r, 70))
		client_open(m, tc);
}

void member_clients(struct member *m)
{
	unsigned int n = 1 + (unsigned int)rnd(m->run, CLIENTS_MAX);

	if (m->run->quiet)
		return;
	for (unsigned int i = 0; i < n; i++)
		if (!m->clients[i].client)
			client_open(m, &m->clients[i]);
}

int member_open(struct member *m)
{
	struct lnet *node = lnet_sim_node(m->run->sim, m->index);
	struct ulrpc_conf conf = m->run->conf;
	int rc;

	m->opens++;
	m->opened = lnet_sim_now(m->run->sim);
	if (m->run->named) {
		memset(conf.client_id, 1 + (int)m->index, ULRPC_ID_SIZE);
		conf.client_generation = m->opens;
	}
	intercept_conf(m, &conf);
	rc = ulrpc_open(node, &conf, &m->rpc);
	if (!rc && m->run->let_in)
		rc = ulrpc_use_rules(m->rpc, m->run->let_in);
	m->shutting = false;
	if (rc) {
		m->rpc = NULL;
		lnet_sim_fail(m->run->sim, "node %u: RPC does not open: %d",
			      m->index, rc);
		return rc;
	}
	spans_start(m);
	if (m->run->crowded)
		server_crowd(m);
	for (unsigned int i = 0; i < SERVICES; i++)
		server_start(m, i);
	return 0;
}

/* ---- any fault ---- */

/* Can the node's RPC do something now? */
static bool acts(const struct member *m)
{
	return m->rpc && !is_paused(m);
}

void fault_one(struct run *r)
{
	struct member *m = some_member(r);
	const struct ulnet_nid *nid = &m->nids[rnd(r, m->nnids)];

	if (r->weather == WEATHER_SPARED)
		return;
	if (r->weather == WEATHER_FAIR) {
		if (acts(m))
			toggle_client(r, m);
		return;
	}
	if (r->fabric && chance(r, 50)) {
		verbs_fault(r);
		return;
	}
	switch (r->late && chance(r, 60) ? SHUT : rnd(r, 15)) {
	case 0:
		crash(r, m);
		break;
	case 1:
	case 2:
		separate(r);
		break;
	case 3:
		ni_set(r, nid, false);
		break;
	case 4:
	case 5:
		ni_set(r, nid, true);
		break;
	case 6:
		fault_link(r, some_nid(r), some_nid(r));
		break;
	case 7:
	case 8:
		if (acts(m) && !r->waiting)
			toggle_service(r, m);
		break;
	case 9:
	case 10:
		if (acts(m))
			toggle_client(r, m);
		break;
	case 12:
		cut(r);
		break;
	case 13:
	case 14:
		change_rules(r, m);
		break;
	default:
		if (acts(m) && !r->waiting && chance(r, r->late ? 90 : 50))
			shut(r, m);
		break;
	}
}

void fault_outside(struct run *r)
{
	struct member *m = some_member(r);

	if (is_fair(r))
		return;
	if (r->fabric && chance(r, 50)) {
		verbs_fault(r);
		return;
	}
	switch (rnd(r, 7)) {
	case 0:
		crash(r, m);
		break;
	case 1:
		separate(r);
		break;
	case 2:
		ni_set(r, &m->nids[rnd(r, m->nnids)], chance(r, 50));
		break;
	case 3:
		fault_link(r, some_nid(r), some_nid(r));
		break;
	case 4:
		cut(r);
		break;
	case 5:
		change_rules(r, m);
		break;
	default:
		if (acts(m) && !r->waiting)
			toggle_service(r, m);
		break;
	}
}

static void network_heal(struct run *r)
{
	links_heal(&r->links, r->sim);
	splits_heal(&r->splits);
	if (r->fabric)
		verbs_heal(r);
	for (unsigned int i = 0; i < r->n; i++)
		pause_end(r, &r->members[i]);
	for (unsigned int i = 0; i < r->n; i++)
		forget_rules(r, &r->members[i]);
	for (unsigned int i = 0; i < r->n; i++)
		for (unsigned int k = 0; k < r->members[i].nnids; k++)
			lnet_sim_ni_set(r->sim, &r->members[i].nids[k], true);
}

void fault_heal(struct run *r)
{
	network_heal(r);
	rails_heal(r);
	for (unsigned int i = 0; i < r->n; i++) {
		struct member *m = &r->members[i];

		restart(m);
		if (!m->rpc && !member_open(m))
			member_clients(m);
		for (unsigned int k = 0; m->rpc && k < SERVICES; k++)
			if (!m->services[k])
				server_start(m, k);
	}
}
