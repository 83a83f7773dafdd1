/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages, compared with the code that protoc-c makes of
 * wire.proto. */
#include "wire_reencode.h"
#include "wire_random.h"

#define ROUNDS 60000

/* A message in both forms. Each field has a random value. */
struct control {
	struct wire_control m;
	Ulrpc__Wire__Control pb;
	union {
		Ulrpc__Wire__Connect connect;
		Ulrpc__Wire__Connected connected;
		Ulrpc__Wire__Open open;
		Ulrpc__Wire__Opened opened;
		Ulrpc__Wire__Disconnect disconnect;
		Ulrpc__Wire__Disconnected disconnected;
		Ulrpc__Wire__Keepalive keepalive;
		Ulrpc__Wire__Alive alive;
		Ulrpc__Wire__Extend extend;
		Ulrpc__Wire__Cancel cancel;
		Ulrpc__Wire__Goodbye goodbye;
	};
	union {
		struct {
			struct wire_extension list[WIRE_ENTRIES_MAX];
			Ulrpc__Wire__Extension pb[WIRE_ENTRIES_MAX];
			Ulrpc__Wire__Extension *pbs[WIRE_ENTRIES_MAX];
		} extensions;
		struct {
			struct wire_gone list[WIRE_ENTRIES_MAX];
			Ulrpc__Wire__Gone pb[WIRE_ENTRIES_MAX];
			Ulrpc__Wire__Gone *pbs[WIRE_ENTRIES_MAX];
		} gone;
	};
};

#define BOTH(c, message, field, value)   \
	((c)->m.message.field = (value), \
	 (c)->message.field = (c)->m.message.field)

static void make_id(uint8_t *id, ProtobufCBinaryData *pb)
{
	static const uint8_t zero[WIRE_ID_SIZE];

	for (size_t i = 0; i < WIRE_ID_SIZE; i++)
		id[i] = below(4) ? (uint8_t)below(256) : 0;
	if (!below(8))
		memset(id, 0, WIRE_ID_SIZE);
	pb->data = id;
	pb->len = memcmp(id, zero, sizeof(zero)) ? WIRE_ID_SIZE : 0;
}

static void make_connect(struct control *c)
{
	ulrpc__wire__connect__init(&c->connect);
	c->pb.connect = &c->connect;
	make_id(c->m.connect.client_id, &c->connect.client_id);
	BOTH(c, connect, client, number());
	BOTH(c, connect, keepalive, number());
	BOTH(c, connect, epoch, number32());
	BOTH(c, connect, version_min, number32());
	BOTH(c, connect, version_max, number32());
}

static void make_connected(struct control *c)
{
	ulrpc__wire__connected__init(&c->connected);
	c->pb.connected = &c->connected;
	make_id(c->m.connected.server_id, &c->connected.server_id);
	BOTH(c, connected, client, number());
	BOTH(c, connected, connection, number());
	BOTH(c, connected, keepalive, number());
	BOTH(c, connected, lease, number());
	BOTH(c, connected, retry_after, number());
	BOTH(c, connected, epoch, number32());
	BOTH(c, connected, status, number32());
	BOTH(c, connected, version, number32());
	BOTH(c, connected, clients, number32());
	BOTH(c, connected, slots, number32());
	BOTH(c, connected, reconnected, below(2));
}

static void make_open(struct control *c)
{
	uint32_t length = below(ULRPC_SERVICE_NAME);

	ulrpc__wire__open__init(&c->open);
	c->pb.open = &c->open;
	BOTH(c, open, connection, number());
	BOTH(c, open, client, number());
	BOTH(c, open, tag, number());
	BOTH(c, open, rtt, number());
	BOTH(c, open, epoch, number32());
	for (uint32_t i = 0; i < length; i++)
		c->m.open.service[i] = (char)('!' + below(90));
	c->open.service = c->m.open.service;
}

static void make_opened(struct control *c)
{
	ulrpc__wire__opened__init(&c->opened);
	c->pb.opened = &c->opened;
	BOTH(c, opened, client, number());
	BOTH(c, opened, tag, number());
	BOTH(c, opened, epoch, number32());
	BOTH(c, opened, status, number32());
	BOTH(c, opened, portal, number32());
	BOTH(c, opened, request_max, number32());
	BOTH(c, opened, window, number32());
	BOTH(c, opened, message_max, number32());
	make_id(c->m.opened.incarnation, &c->opened.incarnation);
	BOTH(c, opened, durable, below(2));
	BOTH(c, opened, estimate, number());
	BOTH(c, opened, begin, number32());
	BOTH(c, opened, checked, below(2));
}

static void make_ending(struct control *c)
{
	if (c->m.kind == WIRE_DISCONNECT) {
		ulrpc__wire__disconnect__init(&c->disconnect);
		c->pb.disconnect = &c->disconnect;
		BOTH(c, disconnect, connection, number());
		BOTH(c, disconnect, client, number());
		BOTH(c, disconnect, epoch, number32());
	} else {
		ulrpc__wire__disconnected__init(&c->disconnected);
		c->pb.disconnected = &c->disconnected;
		BOTH(c, disconnected, client, number());
		BOTH(c, disconnected, epoch, number32());
	}
}

static void make_alive(struct control *c)
{
	if (c->m.kind == WIRE_KEEPALIVE) {
		ulrpc__wire__keepalive__init(&c->keepalive);
		c->pb.keepalive = &c->keepalive;
		BOTH(c, keepalive, connection, number());
		BOTH(c, keepalive, client, number());
		BOTH(c, keepalive, sequence, number());
		BOTH(c, keepalive, acked, number());
		BOTH(c, keepalive, rtt, number());
		BOTH(c, keepalive, epoch, number32());
	} else {
		ulrpc__wire__alive__init(&c->alive);
		c->pb.alive = &c->alive;
		BOTH(c, alive, client, number());
		BOTH(c, alive, sequence, number());
		BOTH(c, alive, epoch, number32());
		BOTH(c, alive, status, number32());
		BOTH(c, alive, clients, number32());
	}
}

static void make_extension(struct wire_extension *e, Ulrpc__Wire__Extension *pb)
{
	ulrpc__wire__extension__init(pb);
	pb->xid = e->xid = number();
	pb->slot = e->slot = number32();
	pb->attempt = e->attempt = number32();
	pb->extend = e->extend = number();
	pb->state = e->state = number32();
	pb->position = e->position = number32();
	pb->progress = e->progress = number32();
}

static uint32_t number_of_entries(void)
{
	return below(16) ? below(4) : below(WIRE_ENTRIES_MAX + 1);
}

static void make_extend(struct control *c)
{
	uint32_t n = number_of_entries();

	ulrpc__wire__extend__init(&c->extend);
	c->pb.extend = &c->extend;
	BOTH(c, extend, client, number());
	BOTH(c, extend, epoch, number32());
	for (uint32_t i = 0; i < n; i++) {
		make_extension(&c->extensions.list[i], &c->extensions.pb[i]);
		c->extensions.pbs[i] = &c->extensions.pb[i];
	}
	c->m.extend.extensions.n = n;
	c->m.extend.extensions.list = c->extensions.list;
	c->extend.n_extension = n;
	c->extend.extension = c->extensions.pbs;
}

static void make_cancel(struct control *c)
{
	uint32_t n = number_of_entries();

	ulrpc__wire__cancel__init(&c->cancel);
	c->pb.cancel = &c->cancel;
	BOTH(c, cancel, connection, number());
	BOTH(c, cancel, client, number());
	BOTH(c, cancel, epoch, number32());
	for (uint32_t i = 0; i < n; i++) {
		Ulrpc__Wire__Gone *pb = &c->gone.pb[i];

		ulrpc__wire__gone__init(pb);
		pb->xid = c->gone.list[i].xid = number();
		pb->slot = c->gone.list[i].slot = number32();
		c->gone.pbs[i] = pb;
	}
	c->m.cancel.gone.n = n;
	c->m.cancel.gone.list = c->gone.list;
	c->cancel.n_gone = n;
	c->cancel.gone = c->gone.pbs;
}

static void make_goodbye(struct control *c)
{
	ulrpc__wire__goodbye__init(&c->goodbye);
	c->pb.goodbye = &c->goodbye;
	BOTH(c, goodbye, client, number());
	BOTH(c, goodbye, epoch, number32());
	BOTH(c, goodbye, status, number32());
	BOTH(c, goodbye, connection, number());
	BOTH(c, goodbye, unexecuted, number());
}

static void make_control(struct control *c)
{
	memset(c, 0, sizeof(*c));
	ulrpc__wire__control__init(&c->pb);
	c->m.kind = WIRE_CONNECT + below(11);
	switch (c->m.kind) {
	case WIRE_CONNECT:
		return make_connect(c);
	case WIRE_CONNECTED:
		return make_connected(c);
	case WIRE_OPEN:
		return make_open(c);
	case WIRE_OPENED:
		return make_opened(c);
	case WIRE_DISCONNECT:
	case WIRE_DISCONNECTED:
		return make_ending(c);
	case WIRE_EXTEND:
		return make_extend(c);
	case WIRE_CANCEL:
		return make_cancel(c);
	case WIRE_GOODBYE:
		return make_goodbye(c);
	default:
		return make_alive(c);
	}
}

Test(wire_control, random)
{
	static uint8_t buf[WIRE_CONTROL_MAX];
	static struct reencoded out;

	begin();
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct control c;
		uint64_t hdr_data;
		uint8_t *copy;
		size_t n;

		make_control(&c);
		n = wire_control_encode(&c.m, buf, &hdr_data);
		cr_assert_leq(n, wire_control_bound(&c.m), "seed %u", seed);
		check_theirs(&c.pb.base, buf, n);
		copy = exactly(buf, n);
		cr_assert_eq(reencode(WIRE_CONTROL, copy, n, hdr_data, &out), 0,
			     "seed %u", seed);
		free(copy);
		check_bytes("what was read, again", out.bytes, out.length, buf,
			    n);
	}
}

static int decode(const uint8_t *bytes, size_t n, struct wire_control *m)
{
	return wire_control_decode(m, wire_hdr_data(WIRE_CONTROL, bytes, n),
				   bytes, n);
}

/* Decodes a Cancel with @n empty entries, in one occurrence or two. */
static int decode_entries(uint32_t n, uint32_t second, struct wire_control *m)
{
	uint8_t bytes[512], *p = bytes, *begin;

	for (unsigned int part = 0; part < 2; part++) {
		uint32_t entries = part ? second : n;

		begin = put_begin(p, WIRE_CANCEL);
		p = begin;
		while (entries--) {
			*p++ = TAG(4, WT_LEN);
			*p++ = 0;
		}
		p = put_end(begin, p);
	}
	return decode(bytes, (size_t)(p - bytes), m);
}

Test(wire_control, entries_are_limited)
{
	struct wire_control m;

	cr_assert_eq(decode_entries(WIRE_ENTRIES_MAX, 0, &m), 0);
	cr_assert_eq(m.cancel.gone.n, WIRE_ENTRIES_MAX);
	cr_assert_eq(decode_entries(WIRE_ENTRIES_MAX + 1, 0, &m), -EPROTO);
	cr_assert_eq(decode_entries(3, 2, &m), -EPROTO);
	cr_assert_eq(decode_entries(0, 2, &m), 0);
	cr_assert_eq(m.cancel.gone.n, 2);
}

Test(wire_control, entries_are_well_formed)
{
	/* an Extension whose number has no end; one that is longer than the
	 * message; and one whose known field has another type, as a later
	 * version may have it */
	static const uint8_t endless[] = { 0x4a, 4, 0x1a, 2, 0x08, 0x80 };
	static const uint8_t longer[] = { 0x4a, 4, 0x1a, 3, 0x08, 0x01 };
	static const uint8_t other[] = { 0x4a, 5, 0x1a, 3, 0x0a, 1, 7 };
	struct wire_extension e;
	struct wire_control m;
	struct wire_view view;

	cr_assert_eq(decode(endless, sizeof(endless), &m), -EPROTO);
	cr_assert_eq(decode(longer, sizeof(longer), &m), -EPROTO);
	cr_assert_eq(decode(other, sizeof(other), &m), 0);
	cr_assert_eq(m.extend.extensions.n, 1);
	view = m.extend.extensions.view;
	cr_assert(wire_extension_next(&view, &e));
	cr_assert_eq(e.xid, 0);
	cr_assert_not(wire_extension_next(&view, &e));
}
