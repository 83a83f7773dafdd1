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
	ID,	    /* WIRE_ID_SIZE bytes */
	NAME,	    /* a string, terminated within ULRPC_SERVICE_NAME bytes */
	EXTENSIONS, /* struct wire_entries, of these */
	GONES,
};

struct field {
	uint8_t type;	/* NONE: there is no such field */
	uint8_t offset; /* within struct wire_control, or an entry */
};

#define FIELDS_MAX 13 /* the largest number, and one */

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
		[12] = FIELD(U32, connected.slots),
	},
	[WIRE_OPEN] = {
		[1] = FIELD(FIXED64, open.connection),
		[2] = FIELD(FIXED64, open.client),
		[3] = FIELD(U32, open.epoch),
		[4] = FIELD(FIXED64, open.tag),
		[5] = FIELD(NAME, open.service),
		[6] = FIELD(U64, open.rtt),
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
		[9] = FIELD(ID, opened.incarnation),
		[10] = FIELD(BOOL, opened.durable),
		[11] = FIELD(U64, opened.estimate),
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
		[5] = FIELD(U64, keepalive.acked),
		[6] = FIELD(U64, keepalive.rtt),
	},
	[WIRE_ALIVE] = {
		[1] = FIELD(FIXED64, alive.client),
		[2] = FIELD(U32, alive.epoch),
		[3] = FIELD(U64, alive.sequence),
		[4] = FIELD(U32, alive.status),
		[5] = FIELD(U32, alive.clients),
	},
	[WIRE_EXTEND] = {
		[1] = FIELD(FIXED64, extend.client),
		[2] = FIELD(U32, extend.epoch),
		[3] = FIELD(EXTENSIONS, extend.extensions),
	},
	[WIRE_CANCEL] = {
		[1] = FIELD(FIXED64, cancel.connection),
		[2] = FIELD(FIXED64, cancel.client),
		[3] = FIELD(U32, cancel.epoch),
		[4] = FIELD(GONES, cancel.gone),
	},
	[WIRE_GOODBYE] = {
		[1] = FIELD(FIXED64, goodbye.client),
		[2] = FIELD(U32, goodbye.epoch),
		[3] = FIELD(U32, goodbye.status),
		[4] = FIELD(FIXED64, goodbye.connection),
	},
};

#undef FIELD
#define FIELD(type, member)                                   \
	{                                                     \
		type, offsetof(struct wire_extension, member) \
	}

static const struct field extension_fields[FIELDS_MAX] = {
	[1] = FIELD(U64, xid),	    [2] = FIELD(U32, slot),
	[3] = FIELD(U32, attempt),  [4] = FIELD(U64, extend),
	[5] = FIELD(U32, state),    [6] = FIELD(U32, position),
	[7] = FIELD(U32, progress),
};

#undef FIELD
#define FIELD(type, member)                              \
	{                                                \
		type, offsetof(struct wire_gone, member) \
	}

static const struct field gone_fields[FIELDS_MAX] = {
	[1] = FIELD(U64, xid),
	[2] = FIELD(U32, slot),
};

#undef FIELD

/* The fields of an entry, and its size in a list. */
static const struct field *entry_fields(enum type type, size_t *size)
{
	*size = type == GONES ? sizeof(struct wire_gone)
			      : sizeof(struct wire_extension);
	return type == GONES ? gone_fields : extension_fields;
}

_Static_assert(sizeof(struct wire_control) <= UINT8_MAX, "struct field.offset");

/* ---- to bytes ---- */

static bool is_zero(const uint8_t *id)
{
	static const uint8_t zero[WIRE_ID_SIZE];

	return memcmp(id, zero, sizeof(zero)) == 0;
}

static uint8_t *put_entries(uint8_t *p, unsigned int number, enum type type,
			    const struct wire_entries *entries);

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
	case EXTENSIONS:
	case GONES:
		return put_entries(p, number, type, at);
	case NONE:
		break;
	}
	return p;
}

static uint8_t *put_fields(uint8_t *p, const struct field *fields,
			   const void *m)
{
	for (unsigned int i = 1; i < FIELDS_MAX; i++)
		p = put_field(p, i, fields[i].type,
			      (const uint8_t *)m + fields[i].offset);
	return p;
}

static uint8_t *put_entries(uint8_t *p, unsigned int number, enum type type,
			    const struct wire_entries *entries)
{
	size_t size;
	const struct field *fields = entry_fields(type, &size);
	const uint8_t *entry = entries->list;

	BUG_ON(entries->n > WIRE_ENTRIES_MAX);
	for (uint32_t i = 0; i < entries->n; i++, entry += size) {
		uint8_t *begin = put_begin(p, number);

		p = put_end(begin, put_fields(begin, fields, entry));
	}
	return p;
}

size_t wire_control_bound(const struct wire_control *m)
{
	uint32_t n = m->kind == WIRE_EXTEND   ? m->extend.extensions.n
		     : m->kind == WIRE_CANCEL ? m->cancel.gone.n
					      : 0;

	return WIRE_CONTROL_BOUND + n * WIRE_ENTRY_BOUND;
}

size_t wire_control_encode(const struct wire_control *m, uint8_t *buf,
			   uint64_t *hdr_data)
{
	uint8_t *begin;
	size_t length;

	BUG_ON(m->kind == WIRE_CONTROL_UNKNOWN ||
	       m->kind >= ARRAY_SIZE(messages));
	begin = put_begin(buf, m->kind);
	length = (size_t)(put_end(begin,
				  put_fields(begin, messages[m->kind], m)) -
			  buf);
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
	case EXTENSIONS:
	case GONES:
		return WT_LEN;
	case NONE:
		break;
	}
	return UINT32_MAX;
}

static bool get_fields(struct wire_view in, const struct field *fields,
		       void *m);

/* One more entry: is well-formed, and counted. The view begins with the first
 * one, and ends with the message, as far as that is in one part. */
static const uint8_t *get_entry(const uint8_t *tag, const uint8_t *p,
				const uint8_t *end, enum type type,
				struct wire_entries *entries)
{
	union {
		struct wire_extension extension;
		struct wire_gone gone;
	} entry;
	struct wire_view in;
	size_t size;

	p = get_bytes(p, end, &in);
	if (!p || entries->n == WIRE_ENTRIES_MAX ||
	    !get_fields(in, entry_fields(type, &size), &entry))
		return NULL;
	if (entries->n++ == 0)
		entries->view = (struct wire_view){ tag, end };
	return entries->view.end == end ? p : NULL;
}

/* @tag: where the field begins, and @p behind its tag. */
static const uint8_t *get_field(const uint8_t *tag, const uint8_t *p,
				const uint8_t *end, enum type type, void *at)
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
	case EXTENSIONS:
	case GONES:
		return get_entry(tag, p, end, type, at);
	case NONE:
		break;
	}
	return NULL;
}

static bool get_fields(struct wire_view in, const struct field *fields, void *m)
{
	const uint8_t *p = in.p, *begin = p;
	uint32_t tag;

	for (; next_field(&p, in.end, &tag); begin = p) {
		struct field f = { NONE, 0 };

		if (tag >> 3 < FIELDS_MAX)
			f = fields[tag >> 3];
		if (type_on_wire(f.type) == (tag & 7))
			p = get_field(begin, p, in.end, f.type,
				      (uint8_t *)m + f.offset);
		else
			p = get_unknown(p, in.end, tag);
	}
	return p == in.end;
}

bool wire_extension_next(struct wire_view *view, struct wire_extension *e)
{
	struct wire_view in;

	memset(e, 0, sizeof(*e));
	return get_next(view, TAG(3, WT_LEN), &in) &&
	       get_fields(in, extension_fields, e);
}

bool wire_gone_next(struct wire_view *view, struct wire_gone *g)
{
	struct wire_view in;

	memset(g, 0, sizeof(*g));
	return get_next(view, TAG(4, WT_LEN), &in) &&
	       get_fields(in, gone_fields, g);
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
	return get_fields(in, messages[kind], m) ? p : NULL;
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
