/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages to a server that are malformed, unexpected, or in the name
 * of another client. */
#include "rpc/control.h"
#include "rpc/keys.h"
#include "rpc/wire/wire_field.h"
#include "tests/unit/rpc/hostile_rig.h"

static struct hostile_rig h;
static uint8_t bytes[LNET_MTU];

static void put(uint64_t hdr_data, const void *payload, size_t length)
{
	raw_client_put(h.a, ULRPC_PORTAL_CONTROL, 0, hdr_data, payload, length);
}

static void put_well(const void *payload, size_t length)
{
	put(wire_hdr_data(WIRE_CONTROL, payload, length), payload, length);
}

static unsigned int exports(void)
{
	return hostile_shard(&h)->exports->table.used;
}

/* Wraps @length bytes of content as a control message of @kind, in @bytes.
 * Returns its length. */
static size_t wrap(unsigned int kind, const void *content, size_t length)
{
	uint8_t *p = bytes;

	p = put_varint(p, TAG(kind, WT_LEN));
	p = put_varint(p, (uint32_t)length);
	memmove(p, content, length);
	return (size_t)(p - bytes) + length;
}

/* ---- Connect ---- */

HOSTILE(hostile_control, ids_of_other_lengths)
{
	uint8_t content[64];

	hostile_init(&h);
	for (unsigned int n = 0; n < 40; n++) {
		uint8_t *p = content;

		*p++ = TAG(1, WT_LEN);
		*p++ = (uint8_t)n;
		memset(p, 7, n);
		p += n;
		*p++ = TAG(6, WT_VARINT);
		*p++ = WIRE_VERSION;
		put_well(bytes,
			 wrap(WIRE_CONNECT, content, (size_t)(p - content)));
		hostile_settle(&h);
		if (n == 16)
			cr_assert_eq(h.a->control.connected.status, WIRE_OK);
		else if (n == 0)
			cr_assert_eq(h.a->control.connected.status,
				     WIRE_BAD_REQUEST);
		else
			cr_assert_eq(hostile_controls_unreadable(&h),
				     n < 16 ? n : n - 1);
	}
	cr_assert_eq(h.a->controls, 2);
	cr_assert_eq(exports(), 2);
	hostile_fini(&h);
}

/* Two clients connect with the same id: the second is refused, and the first
 * does not notice. */
HOSTILE(hostile_control, the_same_id_twice)
{
	hostile_init(&h);
	memcpy(h.b->client_id, h.a->client_id, sizeof(h.a->client_id));
	hostile_connect(&h);
	for (unsigned int i = 0; i < 10; i++) {
		h.b->epoch += 7;
		h.b->client += i;
		cr_assert_eq(raw_client_connect(h.b)->status, WIRE_REFUSED);
		cr_assert_not(h.b->control.connected.reconnected);
		cr_assert_eq(h.b->control.connected.connection, 0);
		cr_assert_eq(raw_client_keepalive(h.a), WIRE_OK);
	}
	raw_client_call(h.a, 1, "echo", "x");
	hostile_settle(&h);
	cr_assert_eq(raw_client_reply(h.a, 1)->status, WIRE_OK);
	cr_assert_eq(exports(), 2);
	hostile_fini(&h);
}

HOSTILE(hostile_control, versions)
{
	struct wire_control m = { .kind = WIRE_CONNECT,
				  .connect = { .client_id = { 5 } } };
	static const uint32_t cases[][3] = {
		{ 2, 9, WIRE_VERSION_UNKNOWN },
		{ 0, 0, WIRE_VERSION_UNKNOWN },
		{ 2, 0, WIRE_VERSION_UNKNOWN },
		{ UINT32_MAX, UINT32_MAX, WIRE_VERSION_UNKNOWN },
		{ 0, UINT32_MAX, WIRE_OK },
		{ 1, 1, WIRE_OK },
	};

	hostile_init(&h);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		m.connect.version_min = cases[i][0];
		m.connect.version_max = cases[i][1];
		cr_assert_eq(raw_client_ask(h.a, &m)->connected.status,
			     cases[i][2]);
		cr_assert_eq(h.a->control.connected.version, WIRE_VERSION);
	}
	hostile_fini(&h);
}

/* One host connects more clients than a server may have. Those that are
 * connected are served, and there is room for other hosts. When the clients of
 * the host have been silent for long their room is free again. */
HOSTILE(hostile_control, floods_of_clients)
{
	const struct ulrpc_conf conf = { .exports_max = 500,
					 .keepalive = 1000000 };
	unsigned int refused = 0, most = 251;

	hostile_init_with(&h, &conf, NULL);
	if (rpc_has_keys(hostile_shard(&h)->rpc))
		most = 32; /* of an eighth */
	for (unsigned int i = 0; i < 20000; i++) {
		struct wire_control m = {
			.kind = WIRE_CONNECT,
			.connect = { .client = i,
				     .epoch = 1,
				     .version_min = 1,
				     .version_max = 1 },
		};

		memcpy(m.connect.client_id, &(uint32_t){ i + 1 }, 4);
		raw_client_control(h.a, &m);
		if (i % 100)
			continue;
		lnet_sim_run(h.g.sim, MSEC);
		refused += h.a->control.connected.status == WIRE_OVERLOADED;
		cr_assert_leq(exports(), most + 1);
	}
	hostile_settle(&h);
	cr_assert_gt(refused, 100);
	cr_assert_geq(exports(), most - 1);
	hostile_honest(&h);
	cr_assert_eq(raw_client_connect(h.b)->status, WIRE_OK);
	lnet_sim_run(h.g.sim, 10 * SEC);
	cr_assert_eq(exports(), 1);
	cr_assert_eq(raw_client_connect(h.b)->status, WIRE_OK);
	hostile_fini(&h);
}

/* ---- Open ---- */

HOSTILE(hostile_control, names)
{
	struct wire_open o = { .epoch = 1 };
	uint8_t content[256];
	uint64_t before;

	hostile_init(&h);
	hostile_connect(&h);
	o.connection = h.a->connection;
	o.client = h.a->client;
	cr_assert_eq(raw_client_open(h.a, "")->status, WIRE_NO_SERVICE);
	cr_assert_eq(raw_client_open(h.a, "tes")->status, WIRE_NO_SERVICE);
	cr_assert_eq(raw_client_open(h.a, "test ")->status, WIRE_NO_SERVICE);
	before = hostile_controls_unreadable(&h);
	for (unsigned int n = 60; n < 70; n++) {
		uint8_t *p = content;

		*p++ = TAG(1, WT_FIXED64);
		memcpy(p, &o.connection, 8);
		p += 8;
		*p++ = TAG(2, WT_FIXED64);
		memcpy(p, &o.client, 8);
		p += 8;
		*p++ = TAG(3, WT_VARINT);
		*p++ = 1;
		*p++ = TAG(5, WT_LEN);
		*p++ = (uint8_t)n;
		memset(p, 'n', n);
		p += n;
		h.a->controls = 0;
		put_well(bytes,
			 wrap(WIRE_OPEN, content, (size_t)(p - content)));
		hostile_settle(&h);
		cr_assert_eq(h.a->controls, n < 64);
		/* The same with a 0 in the name. */
		p[-5] = 0;
		put_well(bytes,
			 wrap(WIRE_OPEN, content, (size_t)(p - content)));
		hostile_settle(&h);
		cr_assert_eq(h.a->controls, n < 64);
	}
	cr_assert_eq(hostile_controls_unreadable(&h) - before, 6 + 10);
	cr_assert_eq(raw_client_open(h.a, "test")->status, WIRE_OK);
	hostile_fini(&h);
}

/* LNet drops messages longer than the longest control message, and they do not
 * get in the way of others. */
HOSTILE(hostile_control, long_messages)
{
	uint64_t before;

	hostile_init(&h);
	before = hostile_counted(&h, RPC_STAT_control_received);
	for (unsigned int i = 0; i < 200; i++) {
		size_t length = i % 2 ? LNET_MTU : CONTROL_MESSAGE_MAX + 1;

		memset(bytes, 'n', length);
		put(wire_hdr_data(WIRE_CONTROL, bytes, 0), bytes, length);
	}
	hostile_settle(&h);
	cr_assert_eq(hostile_counted(&h, RPC_STAT_control_received), before);
	hostile_connect(&h);
	hostile_fini(&h);
}

/* ---- in the name of others ---- */

HOSTILE(hostile_control, for_another)
{
	struct wire_control m = { .kind = WIRE_DISCONNECT };
	const struct import *imp;

	hostile_init(&h);
	hostile_connect(&h);
	imp = h.g.client->imp;
	h.b->connection = imp->connection;
	h.b->client = imp->handle;
	h.b->epoch = imp->epoch;
	for (unsigned int i = 0; i < 50; i++) {
		m.disconnect.connection = imp->connection;
		m.disconnect.client = imp->handle;
		m.disconnect.epoch = imp->epoch;
		cr_assert_eq(raw_client_ask(h.b, &m)->kind, WIRE_DISCONNECTED);
		cr_assert_eq(raw_client_keepalive(h.b), WIRE_NOT_CONNECTED);
		cr_assert_eq(raw_client_open(h.b, "test")->status,
			     WIRE_NOT_CONNECTED);
		hostile_honest(&h);
	}
	hostile_fini(&h);
}

/* A connection is kept alive by its own client only. */
HOSTILE(hostile_control, keepalive_of_another)
{
	const struct ulrpc_conf conf = { .keepalive = 1000000 };

	hostile_init_with(&h, &conf, NULL);
	hostile_connect(&h);
	h.b->connection = h.a->connection;
	h.b->client = h.a->client;
	for (unsigned int i = 0; i < 10; i++) {
		cr_assert_eq(raw_client_keepalive(h.b), WIRE_NOT_CONNECTED);
		hostile_honest(&h);
		lnet_sim_run(h.g.sim, SEC);
	}
	cr_assert_eq(raw_client_keepalive(h.a), WIRE_NOT_CONNECTED,
		     "forgotten");
	hostile_fini(&h);
}

/* ---- malformed, or not for a server ---- */

HOSTILE(hostile_control, any_byte_changed_or_missing)
{
	static const uint8_t by[] = { 1, 2, 4, 8, 16, 32, 64, 128, 255 };
	struct wire_control kinds[4] = { { .kind = WIRE_CONNECT },
					 { .kind = WIRE_OPEN },
					 { .kind = WIRE_DISCONNECT },
					 { .kind = WIRE_KEEPALIVE } };
	uint8_t good[WIRE_CONTROL_BOUND];
	uint64_t hdr_data;

	hostile_init(&h);
	hostile_connect(&h);
	kinds[0].connect = (struct wire_connect){
		.client_id = { 1, 2, 3 },
		.client = 99,
		.epoch = 5,
		.version_min = 1,
		.version_max = 1,
	};
	strcpy(kinds[1].open.service, "test");
	kinds[1].open.connection = kinds[2].disconnect.connection =
		kinds[3].keepalive.connection = h.a->connection;
	kinds[1].open.client = kinds[2].disconnect.client =
		kinds[3].keepalive.client = h.a->client;
	kinds[1].open.epoch = kinds[2].disconnect.epoch =
		kinds[3].keepalive.epoch = 1;
	for (unsigned int k = 0; k < 4; k++) {
		size_t n = wire_control_encode(&kinds[k], good, &hdr_data);

		for (unsigned int bit = 0; bit < 64; bit++)
			put(hdr_data ^ UINT64_C(1) << bit, good, n);
		for (size_t cut = 0; cut < n; cut++)
			put_well(good, cut);
		for (size_t i = 0; i < n * ARRAY_SIZE(by); i++) {
			memcpy(bytes, good, n);
			bytes[i / ARRAY_SIZE(by)] ^= by[i % ARRAY_SIZE(by)];
			put_well(bytes, n);
			if (i % 100 == 0)
				hostile_honest(&h);
		}
		hostile_settle(&h);
	}
	hostile_fini(&h);
}

/* Answers that nobody asked for, messages that belong to other portals, unknown
 * kinds, and two kinds in one message. */
HOSTILE(hostile_control, unexpected)
{
	struct wire_replies r = { .client = 1 };
	struct wire_requests q = { .client = 1 };
	uint64_t hdr_data, unexpected, unreadable;
	size_t length;

	hostile_init(&h);
	hostile_connect(&h);
	h.a->controls = 0;
	unexpected = hostile_counted(&h, RPC_STAT_control_unexpected);
	unreadable = hostile_controls_unreadable(&h);
	for (unsigned int kind = WIRE_CONNECTED; kind <= WIRE_ALIVE;
	     kind += 2) {
		struct wire_control m = {
			.kind = (enum wire_control_kind)kind
		};

		length = wire_control_encode(&m, bytes, &hdr_data);
		put(hdr_data, bytes, length);
	}
	hostile_settle(&h);
	unexpected =
		hostile_counted(&h, RPC_STAT_control_unexpected) - unexpected;
	cr_assert_eq(unexpected, 3, "%llu: all but Disconnected",
		     (unsigned long long)unexpected);
	for (unsigned int kind = WIRE_LOST + 1; kind < 100; kind++)
		put_well(bytes, wrap(kind, "what", 4));
	put_well("", 0);
	hostile_settle(&h);
	cr_assert_eq(hostile_counted(&h, RPC_STAT_control_unexpected),
		     3 + 99 - WIRE_LOST + 1);
	cr_assert_eq(hostile_controls_unreadable(&h), unreadable);
	/* The following messages cannot be decoded. */
	length = (size_t)(wire_replies_put(bytes, &r) - bytes);
	put(wire_hdr_data(WIRE_REPLIES, bytes, length), bytes, length);
	length = (size_t)(wire_requests_put(bytes, &q) - bytes);
	put(wire_hdr_data(WIRE_REQUESTS, bytes, length), bytes, length);
	length = wrap(WIRE_KEEPALIVE, "", 0);
	memcpy(bytes + length, (uint8_t[]){ TAG(WIRE_DISCONNECT, WT_LEN), 0 },
	       2);
	put_well(bytes, length + 2);
	hostile_settle(&h);
	cr_assert_eq(hostile_controls_unreadable(&h), unreadable + 3);
	cr_assert_eq(h.a->controls, 0);
	hostile_fini(&h);
}

/* A client that does not read its answers may use only half of what the server
 * has for answers under way. */
HOSTILE(hostile_control, never_reads_its_answers)
{
	const struct ulnet_id from = nth_id(SERVER), to = nth_id(2);
	struct ulnet_sim_link stuck = { .stall = LNET_SIM_ALWAYS };
	struct wire_control m = { .kind = WIRE_KEEPALIVE };

	hostile_init(&h);
	lnet_sim_link_set(h.g.sim, &from.nid, &to.nid, &stuck);
	for (unsigned int i = 0; i < 20000; i++) {
		raw_client_control(h.a, &m);
		if (i % 1000 == 0)
			hostile_honest(&h);
	}
	hostile_settle(&h);
	cr_assert_eq(h.a->controls, 0);
	cr_assert_geq(hostile_counted(&h, RPC_STAT_control_sent), 16384 / 2);
	cr_assert_leq(hostile_counted(&h, RPC_STAT_control_sent),
		      16384 / 2 + 100);
	/* Other clients are answered meanwhile, and this one when it reads
	 * again. */
	hostile_connect(&(struct hostile_rig){ .a = h.b });
	lnet_sim_run(h.g.sim, 60 * SEC);
	stuck.stall = 0;
	lnet_sim_link_set(h.g.sim, &from.nid, &to.nid, &stuck);
	hostile_connect(&h);
	hostile_fini(&h);
}
