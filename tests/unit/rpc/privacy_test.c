/* SPDX-License-Identifier: BSD-3-Clause */
/* What somebody can read who sees all messages between a client and a server
 * that have keys. */
#include "base/buf.h"
#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "sim/sim.h"
#include "tests/unit/rpc/proof_rig.h"

#define TRACE "00-6d61726b65722d6f662d612d74726163-6d61726b65722121-01"

/* ---- what he looks for ---- */

enum { REQUEST, LONG_REQUEST, REPLY, ERROR, HELD, TRACED, METHOD, SERVICE };

static const struct needle {
	const char *name;
	uint8_t bytes[20];
	size_t n;
} needles[] = {
	[REQUEST] = { "a request", "asked-in-short", 14 },
	[LONG_REQUEST] = { "a long request", "asked-at-length", 15 },
	[REPLY] = { "a reply", "answered-in-short", 17 },
	[ERROR] = { "an error", "failed-for-want-of", 18 },
	[HELD] = { "a held reply", "answered-at-length", 18 },
	[TRACED] = { "a trace", "marker-of-a-trac", 16 },
	/* field 3 of Call, a fixed32: set by eye_begin() */
	[METHOD] = { "a method", { 0x1d }, 5 },
	/* field 5 of Open, a string */
	[SERVICE] = { "a service", "\x2a\x04test", 6 },
};

struct eye {
	uint8_t method[5];
	bool found[ARRAY_SIZE(needles)];
	/* sealed messages, by protection */
	unsigned int control[3], others[3];
};

static void eye_count(struct eye *eye, const uint8_t *hdr,
		      const uint8_t *payload, size_t length)
{
	unsigned int *counts = load_le32(hdr + 64) == ULRPC_PORTAL_CONTROL
				       ? eye->control
				       : eye->others;

	if (load_le32(hdr + 24) != LNET_MSG_PUT ||
	    !wire_is_sealed(load_le64(hdr + 56)))
		return;
	cr_assert_geq(length, SEAL_HEAD);
	cr_assert_lt(payload[1], 3);
	counts[payload[1]]++;
}

static void on_wire(void *arg, uint8_t *hdr, size_t hdr_len, uint8_t *payload,
		    size_t length)
{
	struct eye *eye = arg;

	if (hdr_len == LNET_HDR_SIZE && length)
		eye_count(eye, hdr, payload, length);
	for (unsigned int i = 0; i < ARRAY_SIZE(needles); i++)
		if (memmem(payload, length,
			   i == METHOD ? eye->method : needles[i].bytes,
			   needles[i].n))
			eye->found[i] = true;
}

static void eye_begin(struct eye *eye, struct proof_rig *g)
{
	*eye = (struct eye){ .method = { needles[METHOD].bytes[0] } };
	store_le32(eye->method + 1, ulrpc_method("ask"));
	sim_tap(g->serve.sim, on_wire, eye);
}

/* ---- what is said ---- */

#define HELD_LENGTH 2000000 /* in three pieces */

/* Answers as the first byte of the request says. */
static void answers(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	static char text[HELD_LENGTH];

	(void)arg;
	(void)length;
	if (*(const char *)body == 'e') {
		ulrpc_fail_text(r, -EIO, "failed-for-want-of courage");
	} else if (*(const char *)body == 'h') {
		memset(text, 'x', sizeof(text));
		memcpy(text + 1000, needles[HELD].bytes, needles[HELD].n);
		ulrpc_reply(r, text, sizeof(text));
	} else {
		ulrpc_reply(r, needles[REPLY].bytes, needles[REPLY].n);
	}
}

static void answers_start(struct proof_rig *g, enum ulrpc_flavour flavour)
{
	struct ulrpc_method_conf method = { .name = "ask",
					    .handler = answers,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;

	cr_assert_eq(ulrpc_service_stop(g->serve.service, 1000000), 0);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.flavour = flavour;
	serve_start(&g->serve, &conf);
}

static void ask(struct proof_rig *g, const void *body, size_t length,
		enum ulrpc_cause cause)
{
	struct ulrpc_call_conf conf = { .deadline = 60000000,
					.reply_max = 100,
					.reply_limit = HELD_LENGTH,
					.trace = TRACE };
	struct called c = { 0 };

	cr_assert_eq(ulrpc_call(g->serve.client, ulrpc_method("ask"), body,
				length, &conf, on_called, &c, NULL),
		     0);
	while (!c.ended)
		lnet_sim_run(g->serve.sim, MSEC);
	cr_assert_eq(c.outcome.cause, cause, "%s: %s",
		     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
	if (*(const char *)body == 'h')
		cr_assert_eq(c.length, HELD_LENGTH);
}

/* Makes a connection, all kinds of calls, some keepalives, and an end. */
static void talk(struct eye *eye, unsigned int cpts, enum ulrpc_flavour client,
		 enum ulrpc_flavour service)
{
	struct proof_rig *g = proof_rig_new(cpts, "a", service);
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);
	static char body[9000];

	answers_start(g, service);
	eye_begin(eye, g);
	conf.flavour = client;
	proof_client(g, &conf);
	ask(g, needles[REQUEST].bytes, needles[REQUEST].n, ULRPC_CAUSE_OK);
	memset(body, 'b', sizeof(body));
	memcpy(body + 5000, needles[LONG_REQUEST].bytes,
	       needles[LONG_REQUEST].n);
	ask(g, body, sizeof(body), ULRPC_CAUSE_OK);
	ask(g, "error", 6, ULRPC_CAUSE_HANDLER);
	ask(g, "hold", 5, ULRPC_CAUSE_OK);
	lnet_sim_run(g->serve.sim, 100 * SEC);
	ask(g, needles[REQUEST].bytes, needles[REQUEST].n, ULRPC_CAUSE_OK);
	ulrpc_client_close(g->serve.client);
	lnet_sim_run(g->serve.sim, SEC);
	sim_tap(g->serve.sim, NULL, NULL);
	proof_rig_free(g);
}

static void finds(const struct eye *eye, unsigned int which, bool expected)
{
	cr_assert_eq(eye->found[which], expected, "%s", needles[which].name);
}

static void all_is_read(enum ulrpc_flavour flavour)
{
	struct eye eye;

	talk(&eye, 1, flavour, flavour);
	for (unsigned int i = 0; i < ARRAY_SIZE(needles); i++)
		finds(&eye, i, true);
	cr_assert_eq(eye.control[SEAL_PRIVACY] + eye.others[SEAL_PRIVACY], 0);
}

/* The search finds what is there. */
Test(privacy, what_is_only_sealed_is_read)
{
	all_is_read(ULRPC_FLAVOUR_AUTH);
	all_is_read(ULRPC_FLAVOUR_INTEGRITY);
}

static void nothing_is_read(unsigned int cpts, enum ulrpc_flavour service)
{
	struct eye eye;

	talk(&eye, cpts, ULRPC_FLAVOUR_PRIVACY, service);
	for (unsigned int i = 0; i < ARRAY_SIZE(needles); i++)
		finds(&eye, i, false);
	cr_assert_gt(eye.control[SEAL_PRIVACY], 4);
	cr_assert_gt(eye.others[SEAL_PRIVACY], 9);
	cr_assert_eq(eye.control[SEAL_INTEGRITY], 0);
	cr_assert_eq(eye.others[SEAL_INTEGRITY], 0);
}

Test(privacy, nothing_is_read)
{
	nothing_is_read(1, ULRPC_FLAVOUR_PRIVACY);
	nothing_is_read(4, ULRPC_FLAVOUR_PRIVACY);
	nothing_is_read(1, ULRPC_FLAVOUR_NONE);
}

/* Until the service has said that it wants it, the client does not know. */
Test(privacy, that_only_the_service_wants)
{
	struct eye eye;

	talk(&eye, 1, ULRPC_FLAVOUR_AUTH, ULRPC_FLAVOUR_PRIVACY);
	for (unsigned int i = 0; i < ARRAY_SIZE(needles); i++)
		finds(&eye, i, i == SERVICE);
	/* Connect, Connected, Open, Opened */
	cr_assert_eq(eye.control[SEAL_INTEGRITY], 4);
	cr_assert_gt(eye.control[SEAL_PRIVACY], 0);
	cr_assert_eq(eye.others[SEAL_INTEGRITY], 0);
}

/* ---- memory ---- */

/* A record is there only while LNet sends it, and counts as the client's. */
Test(privacy, records_go)
{
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_PRIVACY);
	const struct ulnet_sim_link bad = { .latency = MSEC,
					    .loss = LNET_SIM_ALWAYS / 10,
					    .refuse = LNET_SIM_ALWAYS / 5 };
	struct ulnet_nid nid;
	struct ulrpc_client_conf conf = client_conf(&nid);
	struct service_cpt *sc;
	static char body[9000];

	proof_client(g, &conf);
	cr_assert_eq(who(g, body, sizeof(body)).outcome.cause, ULRPC_CAUSE_OK);
	cluster_links(g->serve.sim, &bad);
	for (unsigned int i = 0; i < 100; i++) {
		size_t n = i % 2 ? sizeof(body) : 100;

		cr_assert_eq(who(g, body, n).outcome.cause, ULRPC_CAUSE_OK);
	}
	cr_assert_eq(g->runs, 101);
	lnet_sim_run(g->serve.sim, 10 * SEC);
	sc = &g->serve.service->cpt[0];
	cr_assert_eq(serve_holds(sc), 0);
	ulrpc_client_close(g->serve.client);
	proof_rig_free(g);
}

/* ---- what is longer than a message ---- */

/* A body that is lent is sealed as bulk is. */
Test(privacy, lent_body)
{
	static const enum ulrpc_flavour flavours[] = { ULRPC_FLAVOUR_AUTH,
						       ULRPC_FLAVOUR_INTEGRITY,
						       ULRPC_FLAVOUR_PRIVACY };
	static char body[900000];

	for (unsigned int i = 0; i < ARRAY_SIZE(flavours); i++) {
		struct proof_rig *g = proof_rig_new(1, "a", flavours[i]);
		struct ulnet_nid nid;
		struct ulrpc_client_conf conf = client_conf(&nid);
		struct service_cpt *sc = &g->serve.service->cpt[0];

		proof_client(g, &conf);
		for (unsigned int j = 0; j < 5; j++) {
			struct called c = who(g, body, sizeof(body));

			/* The next ones are three bulks each. */
			g->serve.rpc[CALLER]->lent_part = 400000;
			cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
			cr_assert_eq(c.length, sizeof(body));
			cluster_links(g->serve.sim,
				      &(struct ulnet_sim_link){
					      .latency = MSEC,
					      .loss = LNET_SIM_ALWAYS / 5 });
		}
		cr_assert_eq(g->runs, 5);
		cr_assert_eq(serve_counted(sc, RPC_STAT_requests_lent), 5);
		lnet_sim_run(g->serve.sim, 10 * SEC);
		cr_assert_eq(serve_holds(sc), 0);
		ulrpc_client_close(g->serve.client);
		proof_rig_free(g);
	}
}
