/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages, to and from bytes. They are few, so that one loop and a
 * table of the fields serve them all.
 */
#include "rpc/wire/wire.h"

#include <errno.h>
#include "rpc/wire/wire_head.h"

enum type {
	NONE = 0,
	U32,
	U64,
	BOOL,
	FIXED64,
	ID,   /* WIRE_ID_SIZE bytes */
	NAME, /* a string, terminated within ULRPC_SERVICE_NAME bytes */
};

struct field {
	uint8_t type;	/* NONE: there is no such field */
	uint8_t offset; /* within struct wire_control */
};

#define FIELDS_MAX 12 /* the largest number, and one */

#define FIELD(type, member)                                 \
	{                                                   \
		type, offsetof(struct wire_control, member) \
	}

/* By their numbers. */
static const struct field messages[][FIELDS_MAX] = {
	[WIRE_CONNECT] = {
		[1] = FIELD(ID, connect.client_id),
		[2] = FIELD(FIXED64, connect.client),
		[3] = FIELD(U32, connect.epoch),
		[4] = FIELD(U64, connect.keepalive),
		[5] = FIELD(U32, connect.version_min),
		[6] = FIELD(U32, connect.version_max),
	},
	[WIRE_CONNECTED] = {
		[1] = FIELD(FIXED64, connected.client),
		[2] = FIELD(U32, connected.epoch),
		[3] = FIELD(U32, connected.status),
		[4] = FIELD(ID, connected.server_id),
		[5] = FIELD(FIXED64, connected.connection),
		[6] = FIELD(BOOL, connected.reconnected),
		[7] = FIELD(U64, connected.keepalive),
		[8] = FIELD(U64, connected.lease),
		[9] = FIELD(U32, connected.version),
		[10] = FIELD(U64, connected.retry_after),
		[11] = FIELD(U32, connected.clients),
	},
	[WIRE_OPEN] = {
		[1] = FIELD(FIXED64, open.connection),
		[2] = FIELD(FIXED64, open.client),
		[3] = FIELD(U32, open.epoch),
		[4] = FIELD(FIXED64, open.tag),
		[5] = FIELD(NAME, open.service),
	},
	[WIRE_OPENED] = {
		[1] = FIELD(FIXED64, opened.client),
		[2] = FIELD(U32, opened.epoch),
		[3] = FIELD(FIXED64, opened.tag),
		[4] = FIELD(U32, opened.status),
		[5] = FIELD(U32, opened.portal),
		[6] = FIELD(U32, opened.request_max),
		[7] = FIELD(U32, opened.window),
		[8] = FIELD(U32, opened.message_max),
	},
	[WIRE_DISCONNECT] = {
		[1] = FIELD(FIXED64, disconnect.connection),
		[2] = FIELD(FIXED64, disconnect.client),
		[3] = FIELD(U32, disconnect.epoch),
	},
	[WIRE_DISCONNECTED] = {
		[1] = FIELD(FIXED64, disconnected.client),
		[2] = FIELD(U32, disconnected.epoch),
	},
	[WIRE_KEEPALIVE] = {
		[1] = FIELD(FIXED64, keepalive.connection),
		[2] = FIELD(FIXED64, keepalive.client),
		[3] = FIELD(U32, keepalive.epoch),
		[4] = FIELD(U64, keepalive.sequence),
	},
	[WIRE_ALIVE] = {
		[1] = FIELD(FIXED64, alive.client),
		[2] = FIELD(U32, alive.epoch),
		[3] = FIELD(U64, alive.sequence),
		[4] = FIELD(U32, alive.status),
	},
};

_Static_assert(sizeof(struct wire_control) <= UINT8_MAX, "struct field.offset");

/* ---- to bytes ---- */

static bool is_zero(const uint8_t *id)
{
	static const uint8_t zero[WIRE_ID_SIZE];

	return memcmp(id, zero, sizeof(zero)) == 0;
}

static uint8_t *put_field(uint8_t *p, unsigned int number, enum type type,
			  const void *at)
{
	switch (type) {
	case U32:
		return put_varint_field(p, number, *(const uint32_t *)at);
	case U64:
		return put_varint_field(p, number, *(const uint64_t *)at);
	case BOOL:
		return put_varint_field(p, number, *(const bool *)at);
	case FIXED64:
		return put_fixed64_field(p, number, *(const uint64_t *)at);
	case ID:
		return put_bytes_field(p, number, at,
				       is_zero(at) ? 0 : WIRE_ID_SIZE);
	case NAME:
		BUG_ON(!memchr(at, 0, ULRPC_SERVICE_NAME));
		return put_bytes_field(p, number, at, strlen(at));
	case NONE:
		break;
	}
	return p;
}

size_t wire_control_encode(const struct wire_control *m,
			   uint8_t buf[WIRE_CONTROL_BOUND], uint64_t *hdr_data)
{
	uint8_t *begin, *p;
	size_t length;

	BUG_ON(m->kind == WIRE_CONTROL_UNKNOWN ||
	       m->kind >= ARRAY_SIZE(messages));
	begin = put_begin(buf, m->kind);
	p = begin;
	for (unsigned int i = 1; i < FIELDS_MAX; i++) {
		const struct field *f = &messages[m->kind][i];

		p = put_field(p, i, f->type, (const uint8_t *)m + f->offset);
	}
	length = (size_t)(put_end(begin, p) - buf);
	*hdr_data = wire_hdr_data(WIRE_CONTROL, buf, length);
	return length;
}

/* ---- from bytes ---- */

static bool set_id(struct wire_view in, uint8_t *id)
{
	size_t length = view_length(in);

	memset(id, 0, WIRE_ID_SIZE);
	if (length == 0)
		return true;
	if (length != WIRE_ID_SIZE)
		return false;
	memcpy(id, in.p, WIRE_ID_SIZE);
	return true;
}

static bool set_name(struct wire_view in, char *name)
{
	size_t length = view_length(in);

	if (length >= ULRPC_SERVICE_NAME || memchr(in.p, 0, length))
		return false;
	memset(name, 0, ULRPC_SERVICE_NAME);
	memcpy(name, in.p, length);
	return true;
}

static uint32_t type_on_wire(enum type type)
{
	switch (type) {
	case U32:
	case U64:
	case BOOL:
		return WT_VARINT;
	case FIXED64:
		return WT_FIXED64;
	case ID:
	case NAME:
		return WT_LEN;
	case NONE:
		break;
	}
	return UINT32_MAX;
}

static const uint8_t *get_field(const uint8_t *p, const uint8_t *end,
				enum type type, void *at)
{
	struct wire_view in;
	uint64_t v;

	switch (type) {
	case U32:
		return get_varint32(p, end, at);
	case U64:
		return get_varint(p, end, at);
	case BOOL:
		p = get_varint(p, end, &v);
		*(bool *)at = p && v;
		return p;
	case FIXED64:
		return get_fixed64(p, end, at);
	case ID:
		p = get_bytes(p, end, &in);
		return p && set_id(in, at) ? p : NULL;
	case NAME:
		p = get_bytes(p, end, &in);
		return p && set_name(in, at) ? p : NULL;
	case NONE:
		break;
	}
	return NULL;
}

static bool get_message(struct wire_view in, struct wire_control *m)
{
	const struct field *fields = messages[m->kind];
	const uint8_t *p = in.p;
	uint32_t tag;

	while (next_field(&p, in.end, &tag)) {
		struct field f = { NONE, 0 };

		if (tag >> 3 < FIELDS_MAX)
			f = fields[tag >> 3];
		if (type_on_wire(f.type) == (tag & 7))
			p = get_field(p, in.end, f.type,
				      (uint8_t *)m + f.offset);
		else
			p = get_unknown(p, in.end, tag);
	}
	return p == in.end;
}

/* A message that comes in several parts is merged, as in protobuf. */
static const uint8_t *get_kind(const uint8_t *p, const uint8_t *end,
			       enum wire_control_kind kind,
			       struct wire_control *m)
{
	struct wire_view in;

	p = get_bytes(p, end, &in);
	if (!p || (m->kind != WIRE_CONTROL_UNKNOWN && m->kind != kind))
		return NULL;
	m->kind = kind;
	return get_message(in, m) ? p : NULL;
}

static bool get_control(struct wire_view in, struct wire_control *m)
{
	const uint8_t *p = in.p;
	uint32_t tag;

	while (next_field(&p, in.end, &tag)) {
		uint32_t number = tag >> 3;

		if ((tag & 7) == WT_LEN && number >= WIRE_CONNECT &&
		    number < ARRAY_SIZE(messages))
			p = get_kind(p, in.end, number, m);
		else
			p = get_unknown(p, in.end, tag);
	}
	return p == in.end;
}

int wire_control_decode(struct wire_control *m, uint64_t hdr_data,
			const void *payload, size_t length)
{
	struct wire_control got;
	struct wire_parts c;
	int rc;

	rc = wire_head_check(&c, WIRE_CONTROL, hdr_data, payload, length);
	if (rc)
		return rc;
	memset(&got, 0, sizeof(got));
	if (view_length(c.bodies) || !get_control(c.head, &got))
		return -EPROTO;
	*m = got;
	return 0;
}
