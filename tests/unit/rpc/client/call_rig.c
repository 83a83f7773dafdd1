/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes calls and records how they end: see the header. */
#include "tests/unit/rpc/client/call_rig.h"

void note_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
	      size_t length)
{
	struct note *n = arg;

	cr_assert_not(n->inside, "ended inside of the call");
	n->ended++;
	n->at = lnet_sim_now(n->sim);
	n->outcome = *o;
	n->length = length;
	if (reply)
		memcpy(n->reply, reply, MIN(length, sizeof(n->reply)));
	cr_assert_eq(o->total, o->connecting + o->window + o->wire +
				       o->server_throttled + o->server_queue +
				       o->service + o->fetch);
}

void rig_client(struct call_rig *g, uint32_t inflight)
{
	static const struct ulrpc_retry at_once = {
		.policy = ULRPC_BACKOFF_NONE,
		.max = ULRPC_RETRIES_ANY,
	};
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf;

	ulrpc_client_conf_init(&conf);
	conf.inflight_begin = 1024;
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	conf.inflight_max = inflight;
	conf.retry = &at_once;
	cr_assert_eq(ulrpc_client_open(g->rpc, &conf, &g->client), 0);
}

void rig_open_with(struct call_rig *g, const struct ulrpc_conf *conf)
{
	*g = (struct call_rig){ .sim = cluster(2) };
	g->node = lnet_sim_node(g->sim, CLIENT);
	g->fake = fake_new(lnet_sim_node(g->sim, SERVER));
	cr_assert_eq(ulrpc_open(g->node, conf, &g->rpc), 0);
	rig_client(g, 0);
}

void rig_open(struct call_rig *g)
{
	rig_open_with(g, NULL);
}

void rig_close(struct call_rig *g)
{
	if (!g->crashed) {
		ulrpc_client_close(g->client);
		cr_assert_eq(ulrpc_close(g->rpc), 0);
	}
	cluster_end(g->sim);
	fake_free(g->fake);
}

struct ulrpc_call_conf within(uint64_t us)
{
	return (struct ulrpc_call_conf){ .deadline = us };
}

void call_with(struct call_rig *g, struct note *n,
	       const struct ulrpc_call_conf *conf, const void *body,
	       size_t length)
{
	*n = (struct note){ .sim = g->sim, .inside = true };
	cr_assert_eq(ulrpc_call(g->client, 77, body, length, conf, note_end, n,
				&n->call),
		     0);
	n->inside = false;
}

void call(struct call_rig *g, struct note *n, uint64_t us)
{
	struct ulrpc_call_conf conf = within(us);

	call_with(g, n, &conf, "hello", 5);
}

void run(struct call_rig *g, uint64_t ns)
{
	lnet_sim_run(g->sim, ns);
}

void ended_by(struct note *n, enum ulrpc_cause cause,
	      enum ulrpc_execution execution)
{
	cr_assert_eq(n->ended, 1, "ended %u times", n->ended);
	cr_assert_eq(n->outcome.cause, cause, "%s",
		     ulrpc_cause_name(n->outcome.cause));
	cr_assert_eq(n->outcome.execution, execution, "%s",
		     ulrpc_execution_name(n->outcome.execution));
	cr_assert_eq(n->outcome.status == 0, cause == ULRPC_CAUSE_OK);
	cr_assert_eq(n->outcome.bulk_free, true);
	ulrpc_call_put(n->call);
	n->call = NULL;
}

void ended_well(struct note *n)
{
	ended_by(n, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	cr_assert_eq(n->length, 5);
	cr_assert_eq(memcmp(n->reply, "hello", 5), 0);
}

enum import_state import_state_of(struct call_rig *g)
{
	return (enum import_state)g->client->imp->fsm.state;
}
