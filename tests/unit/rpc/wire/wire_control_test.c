/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages against the code that protoc-c makes of wire.proto. */
#include "wire_random.h"

#define ROUNDS 60000

/* A message of both, each of whose fields has a value at random. */
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
		BOTH(c, keepalive, epoch, number32());
	} else {
		ulrpc__wire__alive__init(&c->alive);
		c->pb.alive = &c->alive;
		BOTH(c, alive, client, number());
		BOTH(c, alive, sequence, number());
		BOTH(c, alive, epoch, number32());
		BOTH(c, alive, status, number32());
	}
}

static void make_control(struct control *c)
{
	memset(c, 0, sizeof(*c));
	ulrpc__wire__control__init(&c->pb);
	c->m.kind = WIRE_CONNECT + below(8);
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
	default:
		return make_alive(c);
	}
}

Test(wire_control, random)
{
	begin();
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint8_t buf[WIRE_CONTROL_BOUND], again[sizeof(buf)], *copy;
		struct wire_control got;
		struct control c;
		uint64_t hdr_data;
		size_t n;

		make_control(&c);
		n = wire_control_encode(&c.m, buf, &hdr_data);
		cr_assert_leq(n, sizeof(buf), "seed %u", seed);
		check_theirs(&c.pb.base, buf, n);
		copy = exactly(buf, n);
		cr_assert_eq(wire_control_decode(&got, hdr_data, copy, n), 0,
			     "seed %u", seed);
		free(copy);
		check_bytes("what was read, again", again,
			    wire_control_encode(&got, again, &hdr_data), buf,
			    n);
	}
}
