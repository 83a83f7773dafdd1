/* SPDX-License-Identifier: BSD-3-Clause */
/* A server, and clients that speak other versions of the protocol. */
#include "tests/unit/rpc/hostile_rig.h"
#include "tests/unit/rpc/wire/wire_skew.h"

static struct hostile_rig h;

/* Clients that send more fields than this version knows are served all the
 * same. */
Test(skew_server, says_more)
{
	static const uint32_t lengths[] = { 100, 200, 300 };
	struct wire_segments lent = { .match = 77,
				      .access = WIRE_ACCESS_SOURCE,
				      .n = 3,
				      .length = lengths,
				      .checksum = lengths };

	hostile_init(&h);
	for (unsigned int i = 0; i < ARRAY_SIZE(skews); i++) {
		struct wire_call c[2];

		h.a->rewrite = skews[i];
		h.a->epoch++;
		hostile_connect(&h);
		cr_assert_eq(raw_client_keepalive(h.a), WIRE_OK);
		for (unsigned int j = 0; j < 2; j++) {
			c[j] = raw_client_call_of(10 * i + j + 1,
						  j ? "work" : "echo", 5);
			c[j].bulks.n = 1;
			c[j].bulks.list = &lent;
		}
		hostile_forget(&h);
		raw_client_send(h.a, c, 2, "helloworld", 0);
		hostile_settle(&h);
		for (unsigned int j = 0; j < 2; j++) {
			cr_assert_eq(raw_client_reply(h.a, c[j].xid)->status,
				     WIRE_OK, "%u", i);
			cr_assert_eq(raw_client_reply(h.a, c[j].xid)->length,
				     5);
		}
		cr_assert_eq(h.g.served.info.nbulks, 1);
		cr_assert_eq(memcmp(h.g.served.body, "world", 5), 0);
	}
	cr_assert_eq(hostile_unreadable(&h), 0);
	cr_assert_eq(hostile_controls_unreadable(&h), 0);
	h.a->rewrite = NULL;
	hostile_fini(&h);
}

/* A field that is left out is 0, which means the same as before the field was
 * introduced. */
Test(skew_server, says_less)
{
	struct wire_control m = {
		.kind = WIRE_CONNECT,
		.connect = { .client_id = { 1 }, .version_max = 1 },
	};
	struct wire_call c = { .xid = 1, .method = ulrpc_method("echo") };
	const struct wire_reply *r;

	hostile_init(&h);
	cr_assert_eq(raw_client_ask(h.a, &m)->connected.status, WIRE_OK);
	h.a->connection = h.a->control.connected.connection;
	h.a->client = 0;
	h.a->epoch = 0;
	cr_assert_eq(raw_client_open(h.a, "test")->status, WIRE_OK);
	/* A call without a timeout, room for a reply, or a body. */
	raw_client_send(h.a, &c, 1, "", 0);
	hostile_settle(&h);
	r = raw_client_reply(h.a, 1);
	cr_assert_eq(r->status, WIRE_OK);
	cr_assert_eq(r->attempt, 0);
	hostile_fini(&h);
}
