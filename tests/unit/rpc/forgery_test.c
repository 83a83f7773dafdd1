/* SPDX-License-Identifier: BSD-3-Clause */
/* Somebody on the way between a client and a server that have keys: he sees all
 * messages, changes them, repeats them, and makes up his own. */
#include "base/buf.h"
#include "sim/sim.h"
#include "rpc/server/session/export_priv.h"
#include "tests/unit/rpc/proof_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

/* LNet's header of a PUT between NIDs of 4 bytes. */
enum {
	HDR_TYPE = 24,
	HDR_MATCH = 48,
	HDR_DATA = 56,
	HDR_PORTAL = 64,
};

#define CAUGHT_MAX 4096

/* Who sits on the way. */
struct attacker {
	/* what he looks for: sealed messages to this portal; or @held replies,
	 * which are fetched */
	uint32_t portal;
	bool held;
	unsigned int skip; /* so many he leaves as they are */
	bool awake; /* once, or @always, he does this to one: */
	bool always;
	void (*change)(struct attacker *a, uint8_t *hdr, uint8_t *payload);
	size_t at; /* the byte that he changes */
	unsigned int changed;
	/* the last such message */
	uint8_t hdr[LNET_HDR_SIZE], payload[CAUGHT_MAX];
	size_t length;
	uint8_t before[CAUGHT_MAX]; /* what he puts in place of another */
};

static bool is_sealed_to(const uint8_t *hdr, uint32_t portal)
{
	return load_le32(hdr + HDR_TYPE) == LNET_MSG_PUT &&
	       load_le32(hdr + HDR_PORTAL) == portal &&
	       wire_is_sealed(load_le64(hdr + HDR_DATA));
}

/* LNet's reply to a GET, which only held replies are fetched by. */
static bool is_held(const uint8_t *hdr, size_t length)
{
	return load_le32(hdr + HDR_TYPE) == LNET_MSG_REPLY && length;
}

static void on_wire(void *arg, uint8_t *hdr, size_t hdr_len, uint8_t *payload,
		    size_t length)
{
	struct attacker *a = arg;

	if (hdr_len != LNET_HDR_SIZE || length > CAUGHT_MAX ||
	    !(a->held ? is_held(hdr, length) : is_sealed_to(hdr, a->portal)))
		return;
	if (a->awake && a->skip) {
		a->skip--;
		return;
	}
	memcpy(a->hdr, hdr, hdr_len);
	memcpy(a->payload, payload, length);
	a->length = length;
	if (!a->awake)
		return;
	a->awake = a->always;
	a->changed++;
	a->change(a, hdr, payload);
}

static struct proof_rig *rig_of(struct attacker *a, uint32_t portal,
				enum ulrpc_flavour flavour)
{
	struct proof_rig *g = proof_rig_new(1, "a", flavour);
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);

	*a = (struct attacker){ .portal = portal };
	proof_client(g, &conf);
	sim_tap(g->serve.sim, on_wire, a);
	cr_assert_eq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK);
	return g;
}

static struct proof_rig *rig_with(struct attacker *a, uint32_t portal)
{
	return rig_of(a, portal, ULRPC_FLAVOUR_AUTH);
}

static void rig_end(struct proof_rig *g)
{
	ulrpc_client_close(g->serve.client);
	proof_rig_free(g);
}

/* Records that were refused. One whose counter has changed may look like a
 * copy. */
static uint64_t broken(struct proof_rig *g)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < 2; i++)
		n += counts(g->serve.rpc[i], RPC_STAT_seals_broken) +
		     counts(g->serve.rpc[i], RPC_STAT_seals_repeated);
	return n;
}

/* ---- changes ---- */

static void flip(struct attacker *a, uint8_t *hdr, uint8_t *payload)
{
	(void)hdr;
	payload[a->at % a->length] ^= 1;
}

/* Each byte of a message is changed, that of one call each. The message counts
 * as lost: the call is repaired, and executed once. */
static void each_byte(uint32_t portal, enum ulrpc_flavour flavour)
{
	struct attacker a;
	struct proof_rig *g = rig_of(&a, portal, flavour);
	unsigned int runs = g->runs;
	size_t length = a.length;

	a.change = flip;
	cr_assert_geq(length, SEAL_HEAD + 20);
	for (a.at = 0; a.at < length; a.at++) {
		uint64_t before = broken(g);

		a.awake = true;
		cr_assert_eq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK,
			     "byte %zu", a.at);
		runs++;
		cr_assert_eq(g->runs, runs, "byte %zu", a.at);
		cr_assert_eq(broken(g), before + 1, "byte %zu", a.at);
	}
	cr_assert_eq(a.changed, a.at);
	rig_end(g);
}

Test(forgery, each_byte_of_a_request)
{
	each_byte(ULRPC_PORTAL_FIRST, ULRPC_FLAVOUR_AUTH);
	each_byte(ULRPC_PORTAL_FIRST, ULRPC_FLAVOUR_PRIVACY);
}

Test(forgery, each_byte_of_a_reply)
{
	each_byte(ULRPC_PORTAL_REPLY, ULRPC_FLAVOUR_AUTH);
	each_byte(ULRPC_PORTAL_REPLY, ULRPC_FLAVOUR_PRIVACY);
}

/* A second client of the connection sends Open (@skip 0), and the server
 * Opened (1), of which each byte is changed. */
static void each_byte_of_control(unsigned int skip, enum ulrpc_flavour flavour)
{
	struct attacker a;
	struct proof_rig *g = rig_of(&a, ULRPC_PORTAL_CONTROL, flavour);
	struct ulrpc_client *first = g->serve.client;
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);
	size_t length = a.length;

	conf.flavour = flavour;
	a.change = flip;
	for (a.at = 0; a.at < length; a.at++) {
		uint64_t before = broken(g);

		proof_client(g, &conf);
		a.awake = true;
		a.skip = skip;
		cr_assert_eq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK,
			     "byte %zu", a.at);
		cr_assert_eq(broken(g), before + 1, "byte %zu", a.at);
		length = MAX(length, a.length);
		ulrpc_client_close(g->serve.client);
	}
	cr_assert_eq(a.changed, a.at);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_connections_made),
		     1);
	g->serve.client = first;
	rig_end(g);
}

Test(forgery, each_byte_of_control)
{
	each_byte_of_control(0, ULRPC_FLAVOUR_AUTH);
	each_byte_of_control(1, ULRPC_FLAVOUR_AUTH);
	each_byte_of_control(0, ULRPC_FLAVOUR_PRIVACY);
	each_byte_of_control(1, ULRPC_FLAVOUR_PRIVACY);
}

/* ---- held replies ---- */

/* A call whose reply, the body, the server holds. */
static void who_at_length(struct proof_rig *g, const char *body, size_t n)
{
	struct ulrpc_call_conf conf = { .deadline = 60000000, .reply_max = 4 };
	struct called c = { 0 };

	cr_assert_eq(ulrpc_call(g->serve.client, ulrpc_method("who"), body, n,
				&conf, on_called, &c, NULL),
		     0);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.length, n);
	cr_assert_eq(memcmp(c.reply, body, MIN(n, sizeof(c.reply))), 0);
}

static void put_before(struct attacker *a, uint8_t *hdr, uint8_t *payload)
{
	(void)hdr;
	memcpy(payload, a->before, a->length);
}

/* Each byte is changed, and then the whole reply exchanged for the one before:
 * the client gets it again. */
static void each_byte_of_a_held_reply(enum ulrpc_flavour flavour)
{
	static const char body[] = "a reply that has some length";
	static const char other[] = "A REPLY THAT HAS SOME LENGTH";
	struct attacker a;
	struct proof_rig *g = rig_of(&a, ULRPC_PORTAL_REPLY, flavour);
	const struct ulrpc *caller = g->serve.rpc[CALLER];
	uint64_t damaged = 0;

	a.held = true;
	a.change = flip;
	for (a.at = 0; a.at < sizeof(body); a.at++) {
		a.awake = true;
		who_at_length(g, body, sizeof(body));
		damaged++;
		cr_assert_eq(counts(caller, RPC_STAT_replies_damaged), damaged,
			     "byte %zu", a.at);
	}
	cr_assert_eq(a.length, sizeof(body));
	memcpy(a.before, a.payload, a.length);
	a.change = put_before;
	a.awake = true;
	who_at_length(g, other, sizeof(other));
	cr_assert_eq(counts(caller, RPC_STAT_replies_damaged), damaged + 1);
	rig_end(g);
}

Test(forgery, each_byte_of_a_held_reply)
{
	each_byte_of_a_held_reply(ULRPC_FLAVOUR_AUTH);
	each_byte_of_a_held_reply(ULRPC_FLAVOUR_PRIVACY);
}

/* ---- other changes ---- */

/* The same for what LNet's header says of the message: where its head ends. */
static void flip_hdr_data(struct attacker *a, uint8_t *hdr, uint8_t *payload)
{
	(void)payload;
	hdr[HDR_DATA + 4] ^= (uint8_t)(a->at + 1);
}

Test(forgery, the_length_of_the_head)
{
	struct attacker a;
	struct proof_rig *g = rig_with(&a, ULRPC_PORTAL_FIRST);
	uint64_t before = broken(g);

	a.change = flip_hdr_data;
	a.awake = true;
	cr_assert_eq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(g->runs, 2);
	cr_assert_eq(broken(g), before + 1);
	rig_end(g);
}

/* ---- copies ---- */

/* Sends from node @from, by its NID and pid, as nobody else could. */
static struct raw_client *forger(struct proof_rig *g, unsigned int from)
{
	struct raw_client *c = calloc(1, sizeof(*c));

	c->node = g->serve.node[from];
	c->sim = g->serve.sim;
	c->server = nth_id(1 - from);
	return c;
}

static void replay(struct proof_rig *g, const struct attacker *a,
		   uint32_t portal, uint64_t match)
{
	struct raw_client *c = forger(g, CALLER);
	static uint8_t bytes[CAUGHT_MAX];

	memcpy(bytes, a->payload, a->length);
	raw_client_put(c, portal, match, load_le64(a->hdr + HDR_DATA), bytes,
		       a->length);
	lnet_sim_run(g->serve.sim, 10 * MSEC);
	free(c);
}

/* What was sent before is not executed again: neither as it was, nor elsewhere,
 * nor when the client has connected again. */
static void repeated_requests(enum ulrpc_flavour flavour)
{
	struct attacker a, first;
	struct proof_rig *g = rig_of(&a, ULRPC_PORTAL_FIRST, flavour);
	const struct ulrpc *server = g->serve.rpc[SERVER];
	uint64_t match = load_le64(a.hdr + HDR_MATCH);

	first = a;
	replay(g, &first, ULRPC_PORTAL_FIRST, match);
	cr_assert_eq(counts(server, RPC_STAT_seals_repeated), 1);
	replay(g, &first, ULRPC_PORTAL_FIRST, match + 1);
	replay(g, &first, ULRPC_PORTAL_CONTROL, match);
	cr_assert_eq(broken(g), 3);
	lnet_sim_run(g->serve.sim, 400 * SEC); /* the connection is idle */
	cr_assert_eq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK);
	replay(g, &first, ULRPC_PORTAL_FIRST, match);
	cr_assert_eq(broken(g), 4);
	cr_assert_eq(g->runs, 2);
	cr_assert_eq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(g->runs, 3);
	rig_end(g);
}

Test(forgery, repeated_requests)
{
	repeated_requests(ULRPC_FLAVOUR_AUTH);
	repeated_requests(ULRPC_FLAVOUR_PRIVACY);
}

/* ---- what is not sealed ---- */

/* The one export of the server. */
static struct export *export_of(struct proof_rig *g)
{
	struct exports *x = g->serve.rpc[SERVER]->shards[0].exports;
	uint32_t pos = 0;
	struct export *e = id_walk(&x->table, &pos);

	cr_assert_not_null(e);
	return e;
}

/* By somebody who knows both handles. */
Test(forgery, a_request_without_a_seal)
{
	struct attacker a;
	struct proof_rig *g = rig_with(&a, ULRPC_PORTAL_FIRST);
	struct raw_client *c = forger(g, CALLER);
	struct export *e = export_of(g);

	c->connection = e->handle;
	c->client = e->client;
	c->epoch = e->epoch;
	c->portal = ULRPC_PORTAL_FIRST;
	raw_client_call(c, 99, "who", "forged");
	lnet_sim_run(g->serve.sim, 10 * MSEC);
	cr_assert_eq(g->runs, 1);
	cr_assert_eq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK);
	free(c);
	rig_end(g);
}

/* Control messages that would end the connection, or take it over. */
Test(forgery, control_without_a_seal)
{
	struct attacker a;
	struct proof_rig *g = rig_with(&a, ULRPC_PORTAL_FIRST);
	struct raw_client *c = forger(g, CALLER);
	struct export *e = export_of(g);
	struct wire_control m[] = {
		{ .kind = WIRE_DISCONNECT,
		  .disconnect = { .connection = e->handle,
				  .client = e->client,
				  .epoch = e->epoch } },
		{ .kind = WIRE_CONNECT,
		  .connect = { .client = e->client,
			       .epoch = e->epoch + 1,
			       .version_min = 1,
			       .version_max = 1 } },
		{ .kind = WIRE_CONNECT,
		  .connect = { .client = 77,
			       .epoch = 1,
			       .version_min = 1,
			       .version_max = 1 } },
	};

	memcpy(m[1].connect.client_id, e->session->client_id, RPC_ID_SIZE);
	memcpy(m[2].connect.client_id, e->session->client_id, RPC_ID_SIZE);
	for (unsigned int i = 0; i < ARRAY_SIZE(m); i++) {
		raw_client_control(c, &m[i]);
		lnet_sim_run(g->serve.sim, 10 * MSEC);
		cr_assert_eq(export_of(g), e, "%u", i);
		cr_assert_not_null(e->session, "%u", i);
		cr_assert_eq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK);
	}
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_connections_made),
		     1);
	free(c);
	rig_end(g);
}

static int drop(void *arg)
{
	struct proof_rig *g = arg;

	export_lost(g->serve.rpc[SERVER]->shards[0].exports, export_of(g));
	return 0;
}

/* The server forgets the client, which calls it @pause ns later. */
static struct called call_forgotten(uint64_t pause)
{
	struct attacker a;
	struct proof_rig *g = rig_with(&a, ULRPC_PORTAL_FIRST);
	struct called c;

	cr_assert_eq(lnet_call(g->serve.node[SERVER], 0, drop, g), 0);
	lnet_sim_run(g->serve.sim, pause);
	c = who(g, "hello", 6);
	cr_assert_eq(g->runs, c.outcome.cause == ULRPC_CAUSE_OK ? 2 : 1);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_connections_made),
		     2);
	rig_end(g);
	return c;
}

/* A server that has forgotten a client can prove that only when the client has
 * connected anew: then it says since when, and calls that came later are made
 * again. */
Test(forgery, forgotten_by_the_server)
{
	struct called c = call_forgotten(250 * MSEC);

	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.outcome.attempts, 2);
	c = call_forgotten(MSEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_FORGOTTEN, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.outcome.execution, ULRPC_EXECUTION_UNKNOWN);
}

/* Returns how many connections the client has lost. */
static uint64_t lost_by(const struct proof_rig *g)
{
	return counts(g->serve.rpc[CALLER], RPC_STAT_connections_lost);
}

/* Whoever says in the server's name that it has forgotten the client makes the
 * client connect again, and ends nothing. */
Test(forgery, forgotten_without_a_seal)
{
	struct attacker a;
	struct proof_rig *g = rig_with(&a, ULRPC_PORTAL_FIRST);
	struct raw_client *c = forger(g, SERVER);
	struct wire_control lost = { .kind = WIRE_LOST };
	struct called calls[20];
	uint64_t before;

	cluster_links(g->serve.sim,
		      &(struct ulnet_sim_link){ .latency = MSEC });
	lnet_sim_run(g->serve.sim, SEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(calls); i++) {
		before = lost_by(g);
		lost.lost.session = export_of(g)->session->handle + i % 2;
		serve_call(&g->serve, "who", "hello", 6, 10000000,
			   ULRPC_PRIORITY_DEFAULT, &calls[i]);
		lnet_sim_run(g->serve.sim, i * MSEC / 5);
		raw_client_control(c, &lost);
		lnet_sim_run(g->serve.sim, SEC);
		cr_assert_eq(calls[i].ended, 1);
		cr_assert_eq(calls[i].outcome.cause, ULRPC_CAUSE_OK, "%u: %s",
			     i, ulrpc_cause_name(calls[i].outcome.cause));
		cr_assert_eq(g->runs, 2 + i);
		if (i % 2)
			cr_assert_eq(lost_by(g), before);
	}
	cr_assert_geq(lost_by(g), 5);
	free(c);
	rig_end(g);
}

Test(forgery, goodbye_without_a_seal)
{
	struct attacker a;
	struct proof_rig *g = rig_with(&a, ULRPC_PORTAL_FIRST);
	struct raw_client *c = forger(g, SERVER);
	struct export *e = export_of(g);
	const struct wire_control bye = {
		.kind = WIRE_GOODBYE,
		.goodbye = { .client = e->client,
			     .epoch = e->epoch,
			     .connection = e->handle,
			     .status = WIRE_SHUTTING_DOWN }
	};

	raw_client_control(c, &bye);
	lnet_sim_run(g->serve.sim, 10 * MSEC);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_seals_missing), 1);
	cr_assert_eq(who(g, "hello", 6).outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(counts(g->serve.rpc[CALLER], RPC_STAT_connections_made),
		     1);
	free(c);
	rig_end(g);
}

/* A client that has opened a service, and does not ask again when another one,
 * which wants proofs, takes its place on the portal. */
Test(forgery, a_service_opened_before)
{
	struct proof_rig *g = proof_rig_new(1, NULL, ULRPC_FLAVOUR_NONE);
	struct raw_client *c = calloc(1, sizeof(*c));

	serve_node_add(&g->serve, 2);
	raw_client_init(c, g->serve.sim, 2, SERVER);
	raw_client_connect(c);
	c->portal = raw_client_open(c, "test")->portal;
	raw_client_call(c, 1, "who", "first");
	lnet_sim_run(g->serve.sim, 10 * MSEC);
	cr_assert_eq(g->runs, 1);
	cr_assert_eq(ulrpc_service_stop(g->serve.service, 1000000), 0);
	who_start(g, ULRPC_FLAVOUR_AUTH);
	cr_assert_eq(ulrpc_service_portal(g->serve.service), c->portal);
	raw_client_call(c, 2, "who", "second");
	lnet_sim_run(g->serve.sim, 10 * MSEC);
	cr_assert_eq(g->runs, 1);
	cr_assert_eq(raw_client_reply(c, 2)->status, WIRE_NO_SERVICE);
	proof_rig_free(g); /* says goodbye to @c, too */
	free(c);
}

/* ---- another server ---- */

/* A server of another name takes the place of one that has not answered yet. It
 * gets as far as the end of a handshake, and no further, as it would be
 * recognized then. Already it cannot answer the call, which has ended. */
Test(forgery, another_server)
{
	struct attacker a;
	struct proof_rig *g = rig_with(&a, ULRPC_PORTAL_CONTROL);
	const struct ulnet_sim_link deaf = { .loss = LNET_SIM_ALWAYS };
	const struct ulnet_sim_link good = { 0 };
	struct called c;

	cr_assert_eq(make_node(&g->folder->make, "c"), 0);
	link_set(g->serve.sim, SERVER, CALLER, &deaf);
	serve_call(&g->serve, "who", "lost", 5, 60000000,
		   ULRPC_PRIORITY_DEFAULT, &c);
	lnet_sim_run(g->serve.sim, 10 * MSEC);
	cr_assert_eq(g->runs, 2);
	cr_assert_eq(ulrpc_close(g->serve.rpc[SERVER]), 0);
	g->serve.rpc[SERVER] = open_with(g->serve.node[SERVER],
					 keys_load_named(g->folder, "c"));
	a.change = flip;
	a.at = SEAL_HEAD;
	a.awake = a.always = true;
	link_set(g->serve.sim, SERVER, CALLER, &good);
	lnet_sim_run(g->serve.sim, 20 * SEC);
	cr_assert_gt(a.changed, 0);
	cr_assert_eq(c.ended, 1);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_RESTARTED, "%s",
		     ulrpc_cause_name(c.outcome.cause));
	cr_assert_eq(c.outcome.execution, ULRPC_EXECUTION_UNKNOWN);
	a.always = a.awake = false;
	rig_end(g);
}
