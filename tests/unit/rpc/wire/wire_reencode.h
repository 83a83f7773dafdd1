/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decodes a message, and encodes it as the library does: two messages of the
 * same meaning become the same bytes.
 */
#ifndef TESTS_WIRE_REENCODE_H
#define TESTS_WIRE_REENCODE_H

#include <errno.h>
#include <string.h>
#include "base/crc32c.h"
#include "rpc/wire/wire_put.h"

struct reencoded {
	uint64_t hdr_data;
	size_t length;
	uint8_t bytes[4 * (WIRE_HEAD_MAX + 1)];
};

/* Memory for the bulks of one call or reply. */
struct tables {
	uint32_t length[ULRPC_BULKS_MAX][ULRPC_SEGMENTS_MAX];
	uint32_t checksum[ULRPC_BULKS_MAX][ULRPC_SEGMENTS_MAX];
	struct wire_segments segments[ULRPC_BULKS_MAX];
	struct wire_moved moved[ULRPC_BULKS_MAX];
};

/* Appends @bodies, of @length bytes, at @p, and completes the message. Returns
 * false if its head would be too long. */
static inline bool reencode_end(struct reencoded *out, enum wire_kind kind,
				uint8_t *p, const uint8_t *bodies,
				size_t length, bool checked)
{
	size_t head;

	if (checked)
		p = wire_checksum_put(p, crc32c(0, bodies, length));
	p = wire_bodies_put(p, (uint32_t)length);
	head = (size_t)(p - out->bytes);
	BUG_ON(head + length > sizeof(out->bytes));
	if (head > WIRE_HEAD_MAX)
		return false;
	out->hdr_data = wire_hdr_data(kind, out->bytes, head);
	out->length = head + length;
	if (length)
		memcpy(p, bodies, length);
	return true;
}

static inline void reencode_segments(struct wire_call *call, struct tables *t)
{
	struct wire_view bulks = call->bulks.view;
	struct wire_segments_in in;
	uint32_t i;

	for (i = 0; wire_segments_next(&bulks, &in); i++) {
		BUG_ON(i == ULRPC_BULKS_MAX || in.n > ULRPC_SEGMENTS_MAX);
		wire_segments_lengths(&in, t->length[i]);
		wire_segments_checksums(&in, t->checksum[i]);
		t->segments[i] = (struct wire_segments){
			.match = in.match,
			.access = in.access,
			.checked = in.checked,
			.protection = in.protection,
			.seals = in.seals,
			.n = in.n,
			.length = t->length[i],
			.checksum = in.has_checksums ? t->checksum[i] : NULL,
		};
	}
	BUG_ON(i != call->bulks.n);
	call->bulks.list = t->segments;
}

/* Decodes and encodes requests. Returns 0, an error of wire_requests_decode(),
 * or -E2BIG if the encoded head would be too long. */
static inline int reencode_requests(const uint8_t *bytes, size_t length,
				    uint64_t hdr_data, struct reencoded *out)
{
	static struct wire_call calls[WIRE_CALLS_MAX];
	static struct wire_common common;
	static struct tables tables;
	const uint8_t *bodies, *body;
	struct wire_requests m;
	uint8_t *p;
	int rc;

	rc = wire_requests_decode(&m, calls, &common, hdr_data, bytes, length);
	if (rc)
		return rc;
	BUG_ON(m.ncalls > WIRE_CALLS_MAX);
	bodies = body = bytes + (hdr_data >> 32 & 0xffff);
	p = wire_requests_put(out->bytes, &m);
	for (uint32_t i = 0; i < m.ncalls; i++) {
		struct wire_call call = calls[i];
		size_t bound;
		uint8_t *end;

		BUG_ON(call.body != body);
		body += call.length;
		reencode_segments(&call, &tables);
		bound = wire_call_bound(&call);
		BUG_ON((size_t)(out->bytes + sizeof(out->bytes) - p) < bound);
		end = wire_call_put(p, &call);
		BUG_ON((size_t)(end - p) > bound);
		p = end;
	}
	BUG_ON(body != bytes + length);
	return reencode_end(out, WIRE_REQUESTS, p, bodies,
			    (size_t)(body - bodies), m.checked)
		       ? 0
		       : -E2BIG;
}

static inline void reencode_moved(struct wire_reply *reply, struct tables *t)
{
	struct wire_view bulks = reply->bulks.view;
	struct wire_moved_in in;
	uint32_t i;

	for (i = 0; wire_moved_next(&bulks, &in); i++) {
		BUG_ON(i == ULRPC_BULKS_MAX || in.n > ULRPC_SEGMENTS_MAX);
		wire_moved_checksums(&in, t->checksum[i]);
		if (in.has_lengths)
			wire_moved_lengths(&in, t->length[i]);
		t->moved[i] = (struct wire_moved){
			.index = in.index,
			.n = in.n,
			.checksum = in.checksum.n ? t->checksum[i] : NULL,
			.length = in.has_lengths ? t->length[i] : NULL,
			.seals = in.seals,
		};
	}
	BUG_ON(i != reply->bulks.n);
	reply->bulks.list = t->moved;
}

static inline int reencode_replies(const uint8_t *bytes, size_t length,
				   uint64_t hdr_data, struct reencoded *out)
{
	static struct wire_reply reply[WIRE_CALLS_MAX];
	static struct tables tables;
	const uint8_t *bodies, *body;
	struct wire_replies m;
	uint8_t *p;
	int rc;

	rc = wire_replies_decode(&m, reply, hdr_data, bytes, length);
	if (rc)
		return rc;
	BUG_ON(m.nreplies > WIRE_CALLS_MAX);
	body = bodies = bytes + (uint16_t)(hdr_data >> 32);
	p = wire_replies_put(out->bytes, &m);
	for (uint32_t i = 0; i < m.nreplies; i++) {
		size_t bound;
		uint8_t *end;

		BUG_ON(reply[i].body != body);
		body += reply[i].length;
		reencode_moved(&reply[i], &tables);
		bound = wire_reply_bound(&reply[i]);
		BUG_ON((size_t)(out->bytes + sizeof(out->bytes) - p) < bound);
		end = wire_reply_put(p, &reply[i]);
		BUG_ON((size_t)(end - p) > bound);
		p = end;
	}
	BUG_ON(body != bytes + length);
	p = wire_estimate_put(p, m.estimate);
	return reencode_end(out, WIRE_REPLIES, p, bodies,
			    (size_t)(body - bodies), m.checked)
		       ? 0
		       : -E2BIG;
}

/* Decodes the entries of @m to lists, and has @m refer to these. */
static inline void reencode_entries(struct wire_control *m)
{
	static struct wire_extension extensions[WIRE_ENTRIES_MAX];
	static struct wire_gone gone[WIRE_ENTRIES_MAX];
	struct wire_view view;

	if (m->kind == WIRE_EXTEND) {
		view = m->extend.extensions.view;
		for (uint32_t i = 0; i < m->extend.extensions.n; i++)
			BUG_ON(!wire_extension_next(&view, &extensions[i]));
		m->extend.extensions.list = extensions;
	} else if (m->kind == WIRE_CANCEL) {
		view = m->cancel.gone.view;
		for (uint32_t i = 0; i < m->cancel.gone.n; i++)
			BUG_ON(!wire_gone_next(&view, &gone[i]));
		m->cancel.gone.list = gone;
	}
}

/* Decodes and encodes a control message. One of an unknown kind becomes empty.
 */
static inline int reencode_control(const uint8_t *bytes, size_t length,
				   uint64_t hdr_data, struct reencoded *out)
{
	struct wire_control m;
	int rc = wire_control_decode(&m, hdr_data, bytes, length);

	if (rc)
		return rc;
	reencode_entries(&m);
	out->length = 0;
	out->hdr_data = wire_hdr_data(WIRE_CONTROL, out->bytes, 0);
	if (m.kind != WIRE_CONTROL_UNKNOWN)
		out->length =
			wire_control_encode(&m, out->bytes, &out->hdr_data);
	BUG_ON(out->length > wire_control_bound(&m));
	return 0;
}

static inline int reencode(enum wire_kind kind, const uint8_t *bytes,
			   size_t length, uint64_t hdr_data,
			   struct reencoded *out)
{
	switch (kind) {
	case WIRE_REQUESTS:
		return reencode_requests(bytes, length, hdr_data, out);
	case WIRE_REPLIES:
		return reencode_replies(bytes, length, hdr_data, out);
	case WIRE_CONTROL:
		return reencode_control(bytes, length, hdr_data, out);
	}
	return -EINVAL;
}

#endif
