/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts how often the faults and outcomes of the RPC scenario happen. */
#include <stdlib.h>

#include "rpc/stats/stat.h"
#include "tests/sim/rpc_run.h"
#include "tests/sim/scenario.h"

struct tally {
	uint64_t happened[HAPPENINGS];
	uint64_t ended[ULRPC_CAUSE_COUNT]; /* calls, by cause */
	uint64_t unknown;
	uint64_t counts[RPC_STATS_NOW]; /* RPC's own counters, of all nodes */
};

static const char *const happenings[HAPPENINGS] = {
	[SERVER_CRASHES] = "a node crashes that has requests",
	[CALLER_CRASHES] = "a node crashes that has calls under way",
	[NODE_IS_BACK] = "a node that crashed is back",
	[NODE_PAUSES] = "a node stands still",
	[RPC_CLOSES] = "RPC on a node closes",
	[SERVICE_STOPS] = "a service stops",
	[SERVICE_LEAVES] = "a service stops, and leaves requests behind",
	[CLIENT_CLOSES] = "a client closes",
	[CALL_IS_CANCELED] = "a call is canceled",
	[NI_IS_DOWN] = "an interface goes down",
	[PARTITION] = "a partition begins",
	[CONNECTION_CUT] = "connections are cut",
	[NI_IS_DELETED] = "an interface is deleted",
	[NI_IS_ADDED] = "an interface is added",
	[RULES_CHANGE] = "fault rules change",
	[RAIL_IS_CUT] = "a rail is silent",
	[LINK_IS_ONE_WAY] = "a link is silent in one direction",
	[LINK_HAS_HOLE] = "a link loses what is long",
	[PEER_IS_ADDED] = "a peer is configured",
	[PEER_IS_DELETED] = "a peer is configured no more",
	[DISCOVERY_IS_SET] = "discovery is switched",
	[LIE_IS_TOLD] = "a stranger lies",
	[HANDLER_IS_SLOW] = "a handler takes over 100 ms",
	[STORE_IS_LOST] = "a durable service loses its store",
	[KEY_IS_RENEWED] = "a connection renews its key",
	[COMMIT_IS_LOST] = "a transaction ends with its process",
	[DEVICE_IS_REMOVED] = "a device is removed",
	[QUEUES_ARE_SILENT] = "nothing passes between queue pairs",
	[QUEUES_ARE_CUT] = "queue pairs are cut",
	[VERBS_CALL_FAILS] = "a call of verbs is to fail",
};

struct tally *tally_new(void)
{
	struct tally *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	return t;
}

void tally_count(struct run *r, enum happening what)
{
	r->tally->happened[what]++;
}

void tally_end(struct run *r, const struct ulrpc_outcome *o)
{
	r->tally->ended[o->cause]++;
	r->tally->unknown += o->execution == ULRPC_EXECUTION_UNKNOWN;
}

void tally_rpc(struct member *m)
{
	for (unsigned int i = 0; m->rpc && i < m->rpc->ncpts; i++) {
		const uint64_t *counts = m->rpc->shards[i].stats->counts;

		for (unsigned int k = 0; k < RPC_STATS_NOW; k++)
			m->run->tally->counts[k] += counts[k];
	}
}

/* A call that is refused may be sent again; one that is slow must be waited
 * for. */
void tally_check(const struct run *r)
{
	const uint64_t *counts = r->tally->counts;
	uint64_t refused = counts[RPC_STAT_requests_unroomed] +
			   counts[RPC_STAT_requests_hopeless] +
			   counts[RPC_STAT_requests_overdue];

	/* Of a process that stands still, others think that it is gone. */
	if (r->weather != WEATHER_FAIR || r->pauses)
		return;
	/* With several rails discovery may move a client to another CPT of the
	 * server, which does not know the connection yet, and refuses the call
	 * for that. The client's query then finds nothing, and the call, which
	 * certainly was not executed, is sent again. */
	if (r->rails)
		refused += counts[RPC_STAT_queries_unknown];
	if (counts[RPC_STAT_connections_lost])
		lnet_sim_fail(r->sim,
			      "without faults %lu connections were lost",
			      (unsigned long)counts[RPC_STAT_connections_lost]);
	if (counts[RPC_STAT_calls_repeated] > refused)
		lnet_sim_fail(r->sim,
			      "without faults %lu calls were sent again, and "
			      "%lu were refused",
			      (unsigned long)counts[RPC_STAT_calls_repeated],
			      (unsigned long)refused);
}

void scenario_tell(const struct run *r, scenario_tell_fn tell, void *arg)
{
	const struct tally *t = r->tally;

	for (unsigned int i = 0; i < HAPPENINGS; i++)
		tell(arg, "", happenings[i], t->happened[i]);
	for (unsigned int i = 0; i < LNET_FAULT_KINDS; i++)
		tell(arg, "", rules_names[i], r->rules.struck[i]);
	for (unsigned int i = 0; i < ULRPC_CAUSE_COUNT; i++)
		tell(arg, "calls: ", ulrpc_cause_name(i), t->ended[i]);
	tell(arg, "calls: ", "execution unknown", t->unknown);
	for (unsigned int i = 0; i < RPC_STATS_NOW; i++)
		tell(arg, "rpc: ", rpc_stat_names[i], t->counts[i]);
	if (r->fabric)
		verbs_tell(r, tell, arg);
	if (r->world_tell)
		r->world_tell(tell, arg);
}
