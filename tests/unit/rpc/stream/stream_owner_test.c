/* SPDX-License-Identifier: BSD-3-Clause */
/* A channel belongs to the process that has opened it, with its proof of who it
 * is: whoever only claims its NID and pid gets nothing of it, and does not end
 * it. */
#include <errno.h>

#include "rpc/server/session/export.h"
#include "tests/unit/rpc/proof_rig.h"
#include "tests/unit/rpc/server/raw_client.h"
#include "tests/unit/rpc/stream/raw_stream.h"

struct owner_rig {
	struct hostile h;
	struct folder *folder;
	struct raw_client raw; /* on the caller's node, or the server's */
};

/* The server is b, and the client a. */
static struct owner_rig *rig_new(void)
{
	struct owner_rig *o = calloc(1, sizeof(*o));
	struct stream_rig *g = &o->h.g;
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_streams_conf conf;

	cr_assert(o);
	o->folder = folder_of_two();
	serve_init(&g->s, 1, 1);
	g->s.rpc[SERVER] =
		open_with(g->s.node[SERVER], keys_load_named(o->folder, "b"));
	stream_rig_serve(g, NULL);
	g->s.rpc[CALLER] =
		open_with(g->s.node[CALLER], keys_load_named(o->folder, "a"));
	ulrpc_streams_conf_init(&conf);
	conf.client.nids = &nid;
	conf.client.nnids = 1;
	conf.client.service = "flow";
	cr_assert_eq(ulrpc_streams_open(g->s.rpc[CALLER], &conf, &g->streams),
		     0);
	o->raw.sim = g->s.sim;
	return o;
}

static void rig_free(struct owner_rig *o)
{
	ulrpc_client_close(o->h.flow);
	ulrpc_client_close(o->h.carrier);
	stream_rig_fini(&o->h.g);
	folder_end(o->folder);
	free(o);
}

/* Returns the first export at the server that has proved who it is, or has
 * not. */
static struct export *export_of(struct owner_rig *o, bool proved)
{
	struct exports *x = o->h.g.s.rpc[SERVER]->shards[0].exports;
	uint32_t pos = 0;
	struct export *e;

	while ((e = id_walk(&x->table, &pos)))
		if (!e->who == !proved)
			return e;
	return NULL;
}

static struct called pull(struct hostile *h)
{
	uint8_t body[PULL_SIZE] = { 0 };

	store_le64(body, KEY);
	store_le64(body + 8, h->making);
	return call(h, h->carrier, STREAM_PULL, body, sizeof(body));
}

static void not_found(struct called c)
{
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_HANDLER, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.outcome.status, -ENOENT);
}

/* The process at the caller's NID and pid proves to be b from now on. */
static void become_b(struct owner_rig *o)
{
	struct ulrpc_keys *keys = keys_load_named(o->folder, "b");
	struct wire_control lost = { .kind = WIRE_LOST };

	cr_assert_eq(ulrpc_use_keys(o->h.g.s.rpc[CALLER], keys), 0);
	ulrpc_keys_put(keys);
	lost.lost.session = export_of(o, true)->session->handle;
	o->raw.node = o->h.g.s.node[SERVER];
	o->raw.server = nth_id(CALLER);
	raw_client_control(&o->raw, &lost);
	lnet_sim_run(o->h.g.s.sim, 100 * MSEC);
}

Test(stream_owner, another_identity)
{
	struct owner_rig *o = rig_new();
	struct hostile *h = &o->h;
	const void *body;
	size_t length;

	hostile_begin(h);
	cr_assert_eq(push_frame(h, 1, FRAME_MESSAGE, "of a", 4).outcome.cause,
		     ULRPC_CAUSE_OK);
	cr_assert_eq(ulrpc_stream_send(h->g.parked[0], "for a", 5), 0);
	become_b(o);
	/* It knows all that a's messages have said. */
	not_found(push_frame(h, 1, FRAME_MESSAGE, "of b", 4));
	not_found(pull(h));
	/* What it opens is its own, even with the same names. */
	cr_assert_eq(open_raw(h, 1, 64, MINUTE).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(h->g.nparked, 2);
	cr_assert_eq(ulrpc_stream_next(h->g.parked[0], &body, &length), 1);
	cr_assert_eq(length, 4);
	cr_assert_eq(memcmp(body, "of a", 4), 0);
	cr_assert_eq(ulrpc_stream_next(h->g.parked[0], &body, &length),
		     -EAGAIN);
	lnet_sim_run(h->g.s.sim, 70 * SEC);
	rig_free(o);
}

/* A stranger at the caller's NID and pid opens the carrier. */
static void stranger_opens(struct owner_rig *o)
{
	struct wire_control m = { .kind = WIRE_CONNECT };
	struct lnet_sim *sim = o->h.g.s.sim;

	o->raw.node = o->h.g.s.node[CALLER];
	o->raw.server = nth_id(SERVER);
	memset(m.connect.client_id, 99, RPC_ID_SIZE);
	m.connect.client = 4711;
	m.connect.epoch = 1;
	m.connect.version_min = m.connect.version_max = WIRE_VERSION;
	raw_client_control(&o->raw, &m);
	lnet_sim_run(sim, 10 * MSEC);
	m = (struct wire_control){ .kind = WIRE_OPEN };
	m.open.connection = export_of(o, false)->handle;
	m.open.client = 4711;
	m.open.epoch = 1;
	m.open.tag = 77;
	strcpy(m.open.service, RPC_STREAM_CARRIER);
	raw_client_control(&o->raw, &m);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_not(list_empty(&export_of(o, false)->shares));
}

Test(stream_owner, a_stranger_who_goes_away)
{
	struct owner_rig *o = rig_new();
	struct flow f = { .open_ended = true };
	uint64_t lost;

	flow_open(&o->h.g, &f, "echo", NULL, 0, FLOW_FOREVER);
	lnet_sim_run(o->h.g.s.sim, SEC);
	stranger_opens(o);
	lost = counts(o->h.g.s.rpc[SERVER], RPC_STAT_clients_lost);
	for (int i = 0; i < 120; i++) {
		f.to_send = f.sent + 1;
		flow_send(&f);
		lnet_sim_run(o->h.g.s.sim, SEC);
		cr_assert_not(f.ended, "after %d s: %s", i,
			      ulrpc_cause_name(f.outcome.cause));
	}
	cr_assert_eq(counts(o->h.g.s.rpc[SERVER], RPC_STAT_clients_lost),
		     lost + 1);
	cr_assert_null(export_of(o, false));
	cr_assert_eq(ulrpc_stream_close_send(f.stream), 0);
	flow_finish(&f);
	flow_went_well(&f, 120, 120);
	rig_free(o);
}

/* ---- rules ---- */

static void let(struct owner_rig *o, const char *method)
{
	const char *const methods[] = { method, NULL };
	const char *const names[] = { "a", NULL };
	const struct ulrpc_rule rule = { .methods = methods, .names = names };
	const struct ulrpc_rules_conf conf = { .rules = &rule, .nrules = 1 };
	struct ulrpc_rules *rules;
	char why[256];

	cr_assert_eq(ulrpc_rules_new(&conf, &rules, why, sizeof(why)), 0, "%s",
		     why);
	cr_assert_eq(ulrpc_use_rules(o->h.g.s.rpc[SERVER], rules), 0);
	ulrpc_rules_put(rules);
}

/* What new rules do not let a client open ends; the rest goes on. */
Test(stream_owner, rules_that_change)
{
	struct owner_rig *o = rig_new();
	struct flow park = { .open_ended = true }, echo = { .to_send = 100 };
	struct ulrpc_stream_outcome served;

	echo.open_ended = true;
	let(o, "*");
	flow_open(&o->h.g, &park, "park", NULL, 0, FLOW_FOREVER);
	flow_open(&o->h.g, &echo, "echo", NULL, 0, FLOW_FOREVER);
	lnet_sim_run(o->h.g.s.sim, SEC);
	cr_assert_not(park.ended);
	let(o, "echo");
	flow_finish(&park);
	cr_assert_eq(park.outcome.cause, ULRPC_CAUSE_REFUSED);
	cr_assert_eq(park.outcome.status, -EPERM);
	cr_assert_eq(ulrpc_stream_outcome(o->h.g.parked[0], &served), 0);
	cr_assert_eq(served.status, -EPERM);
	cr_assert_not(echo.ended);
	cr_assert_eq(ulrpc_stream_close_send(echo.stream), 0);
	flow_finish(&echo);
	flow_went_well(&echo, 100, 100);
	rig_free(o);
}
