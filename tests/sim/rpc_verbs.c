/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults of the queue pairs that carry a run. */
#include <errno.h>

#include "sim/sim.h"
#include "tests/sim/rpc_run.h"

/* parts in a million */
#define RARELY 2000
#define OFTEN  30000

static bool is_verbs(const struct ulnet_nid *nid)
{
	return nid->type == LNET_TYPE_O2IB;
}

/* Returns a NID of net type o2ib: each node has one. */
static struct ulnet_nid some_device(struct run *r)
{
	struct member *m = &r->members[rnd(r, r->n)];
	unsigned int i = (unsigned int)rnd(r, m->nnids);

	return is_verbs(&m->nids[i]) ? m->nids[i] : m->nids[0];
}

static struct ulnet_nid some_end(struct run *r)
{
	return chance(r, 20) ? LNET_NID_ANY : some_device(r);
}

int verbs_new(struct run *r)
{
	struct simqp_conf conf = { 0 };

	/* Devices may wait long before they give up, or not long. */
	if (chance(r, 50))
		conf.ack_ns = 5 * MS + rnd(r, 500 * MS);
	if (chance(r, 30))
		conf.cm_ns = 50 * MS + rnd(r, SEC);
	if (chance(r, 50))
		conf.cq_ns = rnd(r, MS);
	return sim_verbs(r->sim, &conf, &r->fabric);
}

/* Some devices have few resources. How often users' memory is registered
 * depends on its addresses, which are not part of the seed; so where all memory
 * is registered, no registration fails by chance. */
void verbs_device(struct run *r, const struct member *m)
{
	bool sure = is_fair(r) || (r->registered && m->index % 2);
	const struct simqp_device small = {
		.limits = { .max_qp_wr = 1024, .max_sge = 2, .max_cqe = 65536 },
		.reg_fails = sure ? 0 : (uint32_t)rnd(r, 100000),
	};

	for (unsigned int i = 0; i < m->nnids; i++)
		if (is_verbs(&m->nids[i]) && chance(r, 25))
			simqp_device_set(r->fabric, &m->nids[i], &small);
}

void verbs_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b)
{
	struct simqp_link l = {
		.latency = 1 + rnd(r, r->slow ? 20 * MS : MS / 5),
		.jitter = rnd(r, r->slow ? 5 * MS : MS / 10),
		.cm_latency = rnd(r, r->slow ? 50 * MS : MS),
		.rtu_delay = chance(r, 30) ? rnd(r, MS) : 0,
	};

	if (!is_fair(r)) {
		uint32_t most = r->harsh ? OFTEN : RARELY;

		if (chance(r, 50))
			l.bandwidth = (1000000 + rnd(r, 1000000)) << rnd(r, 10);
		l.loss = (uint32_t)rnd(r, most);
		l.cm_loss = (uint32_t)rnd(r, 10 * most);
		l.rnr = (uint32_t)rnd(r, most);
		for (unsigned int i = IB_WC_OK + 1; i < IB_WC_STATUSES; i++)
			if (chance(r, 40))
				l.wc_ppm[i] = (uint32_t)rnd(r, most);
	}
	simqp_link_set(r->fabric, &a, &b, &l);
}

static void fail_call(struct run *r, const struct ulnet_nid *nid)
{
	static const int statuses[SIMQP_CALLS] = {
		[SIMQP_CALL_OPEN] = -ENODEV,
		[SIMQP_CALL_RESOLVE] = -EHOSTUNREACH,
		[SIMQP_CALL_CREATE] = -ENOMEM,
		[SIMQP_CALL_CONNECT] = -EADDRNOTAVAIL,
		[SIMQP_CALL_ACCEPT] = -EINVAL,
		[SIMQP_CALL_POST_RECV] = -ENOMEM,
		[SIMQP_CALL_POST_SEND] = -ENOMEM,
		[SIMQP_CALL_REG] = -ENOMEM,
	};
	enum simqp_call call = (enum simqp_call)rnd(r, SIMQP_CALLS);

	/* How much memory is registered, and evicted, is not part of the seed:
	 * see verbs_device(). */
	if (r->registered &&
	    (call == SIMQP_CALL_REG || call == SIMQP_CALL_CREATE))
		call = SIMQP_CALL_CONNECT;
	simqp_fail_call(r->fabric, nid, call, (unsigned int)rnd(r, 20),
			statuses[call]);
}

void verbs_fault(struct run *r)
{
	struct ulnet_nid nid = some_device(r), a = some_end(r), b = some_end(r);

	switch (rnd(r, 12)) {
	case 0:
		simqp_port_set(r->fabric, &nid, false, "the link is down");
		tally_count(r, NI_IS_DOWN);
		break;
	case 1:
	case 2:
		simqp_port_set(r->fabric, &nid, true, "the link is up");
		break;
	case 3:
		simqp_remove(r->fabric, &nid);
		tally_count(r, DEVICE_IS_REMOVED);
		break;
	case 4:
	case 5:
		simqp_insert(r->fabric, &nid);
		break;
	case 6:
		simqp_silence(r->fabric, &a, &b,
			      rnd(r, chance(r, 20) ? 10 * SEC : 50 * MS));
		tally_count(r, QUEUES_ARE_SILENT);
		break;
	case 7:
		simqp_cut(r->fabric, &a, &b);
		tally_count(r, QUEUES_ARE_CUT);
		break;
	case 8:
		verbs_link(r, a, b);
		break;
	case 9:
		simqp_reject_next(r->fabric, &nid, (int)rnd(r, 40));
		break;
	case 10:
		simqp_unresolve_next(r->fabric, &nid,
				     chance(r, 50) ? -ETIMEDOUT
						   : -EHOSTUNREACH);
		break;
	default:
		fail_call(r, &nid);
		tally_count(r, VERBS_CALL_FAILS);
		break;
	}
}

/* Lets no verbs call fail any more. */
static void calls_heal(struct run *r, const struct ulnet_nid *nid)
{
	for (int call = 0; call < SIMQP_CALLS; call++)
		simqp_fail_call(r->fabric, nid, (enum simqp_call)call, 0, 0);
}

/* Ends all faults. One setting of all links replaces the settings before;
 * silences end only one by one, for the NIDs that they were set for. */
void verbs_heal(struct run *r)
{
	const struct simqp_link perfect = { .latency = 10 * US };
	const struct ulnet_nid any = LNET_NID_ANY;

	simqp_link_set(r->fabric, &any, &any, &perfect);
	simqp_silence(r->fabric, &any, &any, 0);
	for (unsigned int i = 0; i < r->n * RAILS_MAX; i++) {
		const struct member *m = &r->members[i / RAILS_MAX];
		const struct ulnet_nid *nid = &m->nids[i % RAILS_MAX];

		if (i % RAILS_MAX >= m->nnids || !is_verbs(nid))
			continue;
		calls_heal(r, nid);
		simqp_insert(r->fabric, nid);
		simqp_port_set(r->fabric, nid, true, "the link is up");
		simqp_silence(r->fabric, nid, &any, 0);
		simqp_silence(r->fabric, &any, nid, 0);
		for (unsigned int k = 0; k < r->n * RAILS_MAX; k++) {
			const struct member *p = &r->members[k / RAILS_MAX];

			if (k % RAILS_MAX < p->nnids)
				simqp_silence(r->fabric, nid,
					      &p->nids[k % RAILS_MAX], 0);
		}
	}
}

void verbs_tell(const struct run *r, scenario_tell_fn tell, void *arg)
{
	static const char kind[] = "queue pairs: ";
	struct simqp_stats s;

	simqp_stats(r->fabric, &s);
	tell(arg, kind, "connected", s.connected);
	tell(arg, kind, "SENDs", s.sends);
	tell(arg, kind, "WRITEs", s.writes);
	tell(arg, kind, "SENDs that met no receive", s.not_ready);
	tell(arg, kind, "packets sent again", s.resent);
	tell(arg, kind, "packets and connect messages lost", s.lost);
	tell(arg, kind, "WRITEs refused", s.refused);
	tell(arg, kind, "data before the last connect message", s.overtaken);
}
