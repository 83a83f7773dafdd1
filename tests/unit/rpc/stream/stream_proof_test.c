/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams between nodes that prove who they are: rules and flavours of their
 * methods hold for them, and the carrier needs no rule. */
#include "tests/unit/rpc/proof_rig.h"
#include "ulnet/stream.h"

#define MINUTE UINT64_C(60000000) /* us */

static struct ulrpc_stream_info seen;

static void echo_all(void *arg, struct ulrpc_stream *stream)
{
	const void *body;
	size_t length;
	int rc;

	(void)arg;
	while ((rc = ulrpc_stream_next(stream, &body, &length)) == 1)
		cr_assert_eq(ulrpc_stream_send(stream, body, length), 0);
	if (!rc) {
		ulrpc_stream_end(stream, 0, NULL);
		ulrpc_stream_put(stream);
	}
}

static void on_stream(void *arg, struct ulrpc_stream *stream, const void *body,
		      size_t length)
{
	const struct ulrpc_stream_events events = { .readable = echo_all };

	(void)arg;
	(void)body;
	(void)length;
	cr_assert_eq(ulrpc_stream_info(stream, &seen), 0);
	ulrpc_stream_watch(stream, &events);
}

static struct ulrpc_streams *open_streams(struct proof_rig *g)
{
	const struct ulrpc_stream_method methods[] = {
		{ "secret", on_stream, NULL, ULRPC_RUN_INLINE,
		  ULRPC_FLAVOUR_PRIVACY },
		{ "plain", on_stream, NULL, ULRPC_RUN_INLINE, 0 },
	};
	struct ulrpc_stream_service_conf service;
	struct ulrpc_streams_conf conf;
	struct ulrpc_streams *streams;
	struct ulnet_nid nid;

	ulrpc_stream_service_conf_init(&service);
	service.service.name = "flow";
	service.methods = methods;
	service.nmethods = ARRAY_SIZE(methods);
	cr_assert_eq(ulrpc_stream_serve(g->serve.rpc[SERVER], &service, NULL),
		     0);
	ulrpc_streams_conf_init(&conf);
	conf.client = client_conf(&nid);
	conf.client.service = "flow";
	cr_assert_eq(ulrpc_streams_open(g->serve.rpc[CALLER], &conf, &streams),
		     0);
	return streams;
}

/* Sends three messages, and wants them back. Returns how the stream ended. */
static struct ulrpc_stream_outcome play(struct proof_rig *g,
					struct ulrpc_streams *streams,
					const char *method)
{
	const struct ulrpc_stream_conf conf = { .deadline = MINUTE };
	struct ulrpc_stream_outcome o;
	struct ulrpc_stream *s;
	unsigned int sent = 0;
	const void *body;
	size_t length;

	cr_assert_eq(ulrpc_stream_open(streams, method, NULL, 0, &conf, &s), 0);
	while (ulrpc_stream_outcome(s, &o)) {
		if (sent < 3)
			sent += !ulrpc_stream_send(s, "hello", 5);
		else
			(void)ulrpc_stream_close_send(s);
		while (ulrpc_stream_next(s, &body, &length) == 1)
			cr_assert_eq(length, 5);
		lnet_sim_run(g->serve.sim, MSEC);
	}
	ulrpc_stream_put(s);
	return o;
}

static void went_well(const struct ulrpc_stream_outcome *o)
{
	cr_assert_eq(o->cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(o->cause), o->text);
	cr_assert_eq(o->delivered, 3);
	cr_assert_eq(o->received, 3);
}

Test(stream_proof, flavour_of_the_method)
{
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_AUTH);
	struct ulrpc_streams *streams = open_streams(g);
	struct ulrpc_stream_outcome o = play(g, streams, "plain");

	went_well(&o);
	cr_assert_eq(seen.peer.kind, ULRPC_PEER_CERTIFICATE);
	cr_assert_eq(seen.peer.flavour, ULRPC_FLAVOUR_AUTH);
	/* The carrier's calls are raised, too, or they would be refused. */
	o = play(g, streams, "secret");
	went_well(&o);
	cr_assert_eq(seen.peer.flavour, ULRPC_FLAVOUR_PRIVACY);
	ulrpc_streams_close(streams);
	lnet_sim_run(g->serve.sim, SEC);
	proof_rig_free(g);
}

Test(stream_proof, rules)
{
	struct proof_rig *g = proof_rig_new(1, "a", ULRPC_FLAVOUR_AUTH);
	struct ulrpc_streams *streams = open_streams(g);
	const char *const services[] = { "flow", NULL };
	const char *const methods[] = { "plain", NULL };
	const struct ulrpc_rule rule = { .services = services,
					 .methods = methods };
	const struct ulrpc_rules_conf conf = { .rules = &rule, .nrules = 1 };
	struct ulrpc_stream_outcome o;
	struct ulrpc_rules *rules;
	char why[256];

	cr_assert_eq(ulrpc_rules_new(&conf, &rules, why, sizeof(why)), 0, "%s",
		     why);
	cr_assert_eq(ulrpc_use_rules(g->serve.rpc[SERVER], rules), 0);
	ulrpc_rules_put(rules);
	o = play(g, streams, "plain");
	went_well(&o);
	o = play(g, streams, "secret");
	cr_assert_eq(o.cause, ULRPC_CAUSE_REFUSED, "%s",
		     ulrpc_cause_name(o.cause));
	cr_assert_eq(o.execution, ULRPC_NOT_EXECUTED);
	ulrpc_streams_close(streams);
	lnet_sim_run(g->serve.sim, SEC);
	proof_rig_free(g);
}
