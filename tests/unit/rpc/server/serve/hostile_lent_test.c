/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests whose bodies are said to be lent, and are not, or not so. */
#include "tests/unit/rpc/hostile_rig.h"

static struct hostile_rig h;
/* how many requests had run before the test's own */
static unsigned int before;

/* Starts a server with an honest client, and connects the hostile client h.a.
 */
static void begin(void)
{
	hostile_init(&h);
	hostile_connect(&h);
	before = h.g.served.runs;
}

/* Returns how many requests have run since begin(). */
static unsigned int ran(void)
{
	return h.g.served.runs - before;
}

static struct wire_call lends(uint64_t xid, const struct wire_segments *list,
			      unsigned int n)
{
	struct wire_call c = raw_client_call_of(xid, "echo", 0);

	c.bulks.n = n;
	c.bulks.list = list;
	return c;
}

/* More than the service takes, beside a body in the message, or not the last of
 * what is lent. */
HOSTILE(hostile_lent, bodies_that_cannot_be)
{
	static uint32_t mib[ULRPC_SEGMENTS_MAX];
	static const uint32_t one[] = { 1 };
	struct wire_segments all[ULRPC_BULKS_MAX], two[2];
	struct wire_call c;

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(mib); i++)
		mib[i] = MIN(LNET_MTU, 1 << 20);
	/* 4 GiB */
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		all[i] = (struct wire_segments){ .match = 1,
						 .access = WIRE_ACCESS_BODY,
						 .n = ULRPC_SEGMENTS_MAX,
						 .length = mib };
	c = lends(1, all, ARRAY_SIZE(all));
	raw_client_send(h.a, &c, 1, "", 0);
	/* 1 byte more than the limit */
	two[0] = (struct wire_segments){
		.match = 1, .access = WIRE_ACCESS_BODY, .n = 16, .length = mib
	};
	two[1] = (struct wire_segments){
		.match = 1, .access = WIRE_ACCESS_BODY, .n = 1, .length = one
	};
	c = lends(2, two, 2);
	raw_client_send(h.a, &c, 1, "", 0);
	c = lends(3, &two[1], 1);
	c.length = 1;
	raw_client_send(h.a, &c, 1, "x", 0);
	two[0] = two[1];
	two[1].access = WIRE_ACCESS_SOURCE;
	c = lends(4, two, 2);
	raw_client_send(h.a, &c, 1, "", 0);
	hostile_settle(&h);
	for (unsigned int i = 1; i <= 4; i++)
		cr_assert_eq(raw_client_reply(h.a, i)->status, WIRE_BAD_REQUEST,
			     "case %u", i);
	cr_assert_eq(ran(), 0);
	cr_assert_eq(serve_holds(&h.g.service->cpt[0]), 0);
	hostile_fini(&h);
}

/* What is claimed, and never sent, is in the share of the client that claims
 * it, and goes with the client. */
HOSTILE(hostile_lent, bodies_that_never_come)
{
	static uint32_t mib[16];
	const struct wire_segments claim = { .match = 1,
					     .access = WIRE_ACCESS_BODY,
					     .n = ARRAY_SIZE(mib),
					     .length = mib };
	unsigned int over = 0;

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(mib); i++)
		mib[i] = 1 << 20;
	for (unsigned int i = 0; i < 200; i++) {
		struct wire_call c = lends(i + 1, &claim, 1);

		c.slot = i;
		raw_client_send(h.a, &c, 1, "", 0);
	}
	hostile_settle(&h);
	for (unsigned int i = 0; i < h.a->replies; i++)
		over += h.a->reply[i].status == WIRE_OVERLOADED;
	cr_assert_geq(over, 190);
	/* of 128 MiB */
	cr_assert_leq(serve_holds(&h.g.service->cpt[0]), 80 << 20);
	hostile_honest(&h);
	cr_assert_eq(hostile_counted(&h, RPC_STAT_requests_lent), 200 - over);
	hostile_fini(&h);
}

/* A client that shows that it is there, has ten years, and withholds what it
 * claims keeps the memory no longer than its lease. */
HOSTILE(hostile_lent, bodies_withheld)
{
	static const uint32_t mib[] = { 1 << 20 };
	const struct wire_segments claim = { .match = 1,
					     .access = WIRE_ACCESS_BODY,
					     .n = ARRAY_SIZE(mib),
					     .length = mib };
	struct wire_call c;

	begin();
	c = lends(1, &claim, 1);
	c.timeout = c.remaining = UINT64_C(10) * 365 * 86400 * 1000000;
	raw_client_send(h.a, &c, 1, "", 0);
	for (unsigned int i = 0; i < 50; i++) {
		lnet_sim_run(h.g.sim, SEC);
		cr_assert_eq(raw_client_keepalive(h.a), WIRE_OK);
		if (i == 15)
			cr_assert_geq(serve_holds(&h.g.service->cpt[0]),
				      1 << 20);
	}
	cr_assert_eq(serve_holds(&h.g.service->cpt[0]), 0);
	cr_assert_eq(raw_client_reply(h.a, 1)->status, WIRE_EXPIRED);
	cr_assert_eq(ran(), 0);
	hostile_fini(&h);
}

/* The memory is shorter than the caller has said. */
HOSTILE(hostile_lent, bodies_that_shrink)
{
	static const uint32_t said[] = { 5000 };
	static uint8_t bytes[4999];
	const struct wire_segments lie = { .match = 0x77,
					   .access = WIRE_ACCESS_BODY,
					   .n = 1,
					   .length = said };
	struct ulnet_md md = { .start = bytes,
			       .length = sizeof(bytes),
			       .threshold = LNET_MD_THRESH_INF,
			       .options = LNET_MD_OP_GET |
					  LNET_MD_MANAGE_REMOTE |
					  LNET_MD_TRUNCATE };
	struct wire_call c = lends(1, &lie, 1);
	struct ulnet_md_handle handle;
	struct ulnet_me_handle me;

	begin();
	cr_assert_eq(LNetMEAttach(h.a->node, ULRPC_PORTAL_BULK, h.a->server,
				  0x77, 0, LNET_UNLINK, LNET_INS_LOCAL, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &md, LNET_UNLINK, &handle), 0);
	raw_client_send(h.a, &c, 1, "", 0);
	hostile_settle(&h);
	cr_assert_eq(raw_client_reply(h.a, 1)->status, WIRE_BAD_REQUEST);
	cr_assert_eq(ran(), 0);
	cr_assert_eq(serve_holds(&h.g.service->cpt[0]), 0);
	LNetMDUnlink(handle);
	hostile_fini(&h);
}
