/* SPDX-License-Identifier: BSD-3-Clause */
/* Captured messages, messages made by hand, and messages with errors. */
#include "lnd/o2iblnd/verbs.h"
#include "lnd/o2iblnd/wire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "tests/unit/lnet/golden.h"
#include "tests/unit/o2iblnd/examples.h"
#include "tests/unit/o2iblnd/wire_again.h"

/* ---- both directions ---- */

static struct ib_envelope envelope_of(const struct example *e)
{
	return (struct ib_envelope){
		.version = IB_VERSION_2,
		.src = { lnet_nid_from_nid4(e->src), e->src_life },
		.dst = { lnet_nid_from_nid4(e->dst), e->dst_life },
	};
}

static struct ib_hdr hdr_of(const struct example *e)
{
	struct ib_envelope env = envelope_of(e);

	return ib_hdr_of(&env);
}

/* Decodes a message as received on a connection of @self with @peer. */
static int decode_on(const uint8_t *buf, size_t len, const struct ib_end *self,
		     const struct ib_end *peer)
{
	struct ib_envelope env = { IB_VERSION_2, *peer, *self };
	struct ib_hdr hdr = ib_hdr_of(&env);
	const char *why = NULL;
	struct ib_msg m;
	int rc = ib_msg_decode_on(&hdr, buf, len, &m, &why);

	cr_expect_eq(!rc, !why);
	return rc;
}

static size_t encode(const struct example *e, uint8_t *buf)
{
	struct ib_hdr hdr = hdr_of(e);
	struct ib_sink sink = { e->key, 1, &e->frag };

	switch (e->type) {
	case IB_MSG_CONNREQ:
	case IB_MSG_CONNACK:
		return ib_conn_encode(&hdr, e->type, &e->params, buf);
	case IB_MSG_NOOP:
		return ib_noop_encode(&hdr, buf);
	case IB_MSG_IMMEDIATE:
		return ib_immediate_encode(&hdr, e->payload_len, buf);
	case IB_MSG_PUT_REQ:
		return ib_put_req_encode(&hdr, e->cookie, buf);
	case IB_MSG_PUT_ACK:
		return ib_put_ack_encode(&hdr, e->cookie, e->dst_cookie, &sink,
					 buf);
	case IB_MSG_GET_REQ:
		return ib_get_req_encode(&hdr, e->cookie, &sink, buf);
	default:
		return ib_done_encode(&hdr, e->type, e->cookie, e->status, buf);
	}
}

static bool has_lnet(enum ib_msg_type type)
{
	return type == IB_MSG_IMMEDIATE || type == IB_MSG_PUT_REQ ||
	       type == IB_MSG_GET_REQ;
}

static bool has_rdma(enum ib_msg_type type)
{
	return type == IB_MSG_PUT_ACK || type == IB_MSG_GET_REQ;
}

static void assert_rdma(const struct ib_msg *m, const struct example *e)
{
	uint64_t addr = 0;
	uint32_t nob = 0;

	if (!has_rdma(e->type)) {
		cr_expect_eq(m->rdma.nfrags, 0, "%s", e->name);
		return;
	}
	cr_assert_eq(m->rdma.nfrags, 1, "%s", e->name);
	ib_rdma_frag(&m->rdma, 0, &addr, &nob);
	cr_expect_eq(m->rdma.key, e->key, "%s", e->name);
	cr_expect_eq(addr, e->frag.addr, "%s", e->name);
	cr_expect_eq(nob, e->frag.nob, "%s", e->name);
	cr_expect_eq(ib_rdma_nob(&m->rdma), e->frag.nob, "%s", e->name);
}

/* @m was decoded from @buf. */
static void assert_says(const struct ib_msg *m, const struct example *e,
			const uint8_t *buf)
{
	struct ib_envelope env = ib_msg_env(m);

	cr_expect_eq(m->type, e->type, "%s", e->name);
	cr_expect_eq(m->credits, e->credits, "%s", e->name);
	cr_expect_eq(env.version, IB_VERSION_2, "%s", e->name);
	cr_expect_eq(lnet_nid_to_nid4(&env.src.nid), e->src, "%s", e->name);
	cr_expect_eq(lnet_nid_to_nid4(&env.dst.nid), e->dst, "%s", e->name);
	cr_expect_eq(env.src.stamp, e->src_life, "%s", e->name);
	cr_expect_eq(env.dst.stamp, e->dst_life, "%s", e->name);
	cr_expect_eq(m->params.queue_depth, e->params.queue_depth);
	cr_expect_eq(m->params.max_frags, e->params.max_frags);
	cr_expect_eq(m->params.max_msg_size, e->params.max_msg_size);
	cr_expect_eq(m->lnet_hdr, has_lnet(e->type) ? buf + 48 : NULL);
	cr_expect_eq(m->payload,
		     e->type == IB_MSG_IMMEDIATE ? buf + 120 : NULL);
	cr_expect_eq(m->payload_len, e->payload_len, "%s", e->name);
	cr_expect_eq(m->cookie, e->cookie, "%s", e->name);
	cr_expect_eq(m->dst_cookie, e->dst_cookie, "%s", e->name);
	cr_expect_eq(m->status, e->status, "%s", e->name);
	assert_rdma(m, e);
}

Test(wire, examples_are_read)
{
	for (const struct example *e = examples; e->text; e++) {
		uint8_t buf[IB_MSG_SIZE_MAX];
		size_t len = unhex(e->text, buf);
		const char *why = NULL;
		struct ib_msg m;

		cr_assert_eq(ib_msg_decode(buf, len, &m, &why), 0, "%s: %s",
			     e->name, why);
		cr_expect(!m.swap);
		cr_expect_eq(m.nob, len);
		cr_expect_eq(m.cksum, 0);
		assert_says(&m, e, buf);
	}
}

/* The LNet header and the payload are not written. */
Test(wire, examples_are_written)
{
	for (const struct example *e = examples; e->text; e++) {
		uint8_t want[IB_MSG_SIZE_MAX], buf[IB_MSG_SIZE_MAX];
		size_t len = unhex(e->text, want);

		memset(buf, 0xee, sizeof(buf));
		if (has_lnet(e->type))
			memset(want + 48, 0xee, 72);
		if (e->type == IB_MSG_IMMEDIATE)
			memset(want + 120, 0xee, e->payload_len);
		cr_assert_eq(encode(e, buf), len, "%s", e->name);
		ib_msg_set_credits(buf, 77);
		ib_msg_set_credits(buf, e->credits);
		cr_assert_arr_eq(buf, want, len, "%s", e->name);
		cr_assert_eq(buf[len], 0xee, "%s", e->name);
	}
}

Test(wire, examples_in_the_other_order)
{
	for (const struct example *e = examples; e->text; e++) {
		uint8_t buf[IB_MSG_SIZE_MAX], again[IB_MSG_SIZE_MAX];
		size_t len = unhex(e->text, buf);
		const char *why = NULL;
		struct ib_msg m;

		swap(buf, len, e->type);
		cr_assert_eq(ib_msg_decode(buf, len, &m, &why), 0, "%s: %s",
			     e->name, why);
		cr_expect(m.swap);
		assert_says(&m, e, buf);
		cr_assert_eq(ib_again(&m, again), len);
		unhex(e->text, buf);
		cr_assert_arr_eq(again, buf, len, "%s", e->name);
	}
}

Test(wire, version_1)
{
	for (const struct example *e = examples; e->text; e++) {
		uint8_t buf[IB_MSG_SIZE_MAX], again[IB_MSG_SIZE_MAX];
		size_t len = unhex(e->text, buf);
		const char *why = NULL;
		struct ib_msg m;

		buf[4] = IB_VERSION_1;
		cr_assert_eq(ib_msg_decode(buf, len, &m, &why), 0, "%s: %s",
			     e->name, why);
		cr_expect_eq(m.version, IB_VERSION_1);
		cr_assert_eq(ib_again(&m, again), len);
		cr_assert_arr_eq(again, buf, len, "%s", e->name);
	}
}

Test(wire, sizes)
{
	cr_expect_eq(IB_IMMEDIATE_MAX, 3976);
	cr_expect_eq(IB_PAYLOAD_OFFSET, 120);
	cr_expect_leq(IB_GET_REQ_SIZE(IB_GET_REQ_FRAGS), IB_MSG_SIZE_MAX);
	cr_expect_gt(IB_GET_REQ_SIZE(IB_GET_REQ_FRAGS + 1), IB_MSG_SIZE_MAX);
	cr_expect_leq(IB_PUT_ACK_SIZE(IB_PUT_ACK_FRAGS), IB_MSG_SIZE_MAX);
	cr_expect_gt(IB_PUT_ACK_SIZE(IB_PUT_ACK_FRAGS + 1), IB_MSG_SIZE_MAX);
	cr_expect_eq(IB_GET_REQ_SIZE(1), 148);
	cr_expect_eq(IB_PUT_ACK_SIZE(1), 84);
}

/* ---- captured frames ---- */

static const struct {
	const char *name;
	size_t skip; /* bytes of the CM before it */
	size_t len;  /* 0: all the rest */
	enum ib_msg_type type;
	uint8_t credits;
	bool from_n;
	uint32_t payload_len;
} frames[] = {
	{ "o2ib-connreq", 36, 56, IB_MSG_CONNREQ, 0, true, 0 },
	{ "o2ib-connack", 0, 56, IB_MSG_CONNACK, 0, false, 0 },
	{ "o2ib-get-ping", 0, 0, IB_MSG_IMMEDIATE, 0, true, 0 },
	{ "o2ib-reply-ping", 0, 0, IB_MSG_IMMEDIATE, 1, false, 48 },
	{ "o2ib-get-discover", 0, 0, IB_MSG_IMMEDIATE, 1, true, 0 },
	{ "o2ib-reply-discover", 0, 0, IB_MSG_IMMEDIATE, 1, false, 48 },
	{ "o2ib-put-push", 0, 0, IB_MSG_IMMEDIATE, 1, true, 48 },
	{ "o2ib-ack-push", 0, 0, IB_MSG_IMMEDIATE, 0, false, 0 },
	{ "o2ib-put-push-back", 0, 0, IB_MSG_IMMEDIATE, 1, false, 48 },
	{ "o2ib-ack-push-back", 0, 0, IB_MSG_IMMEDIATE, 1, true, 0 },
};

Test(wire, golden_frames)
{
	const struct ib_end n = { lnet_nid_from_nid4(NID_N), LIFE_N };
	const struct ib_end p = { lnet_nid_from_nid4(NID_P), LIFE_P };

	for (unsigned int i = 0; i < ARRAY_SIZE(frames); i++) {
		struct golden g = golden(frames[i].name);
		const uint8_t *buf = g.bytes + frames[i].skip;
		size_t received = g.len - frames[i].skip;
		size_t len = frames[i].len ? frames[i].len : received;
		struct ib_end self = frames[i].from_n ? p : n;
		struct ib_end peer = frames[i].from_n ? n : p;
		uint8_t again[IB_MSG_SIZE_MAX];
		const char *why = NULL;
		struct ib_msg m;

		cr_assert_eq(ib_msg_decode(buf, received, &m, &why), 0,
			     "%s: %s", frames[i].name, why);
		cr_expect_eq(m.nob, len);
		cr_expect_eq(m.type, frames[i].type);
		cr_expect_eq(m.credits, frames[i].credits);
		cr_expect_eq(m.payload_len, frames[i].payload_len);
		cr_expect_eq(decode_on(buf, received, &self, &peer),
			     m.type < IB_MSG_NOOP ? -EPROTO : 0);
		cr_assert_eq(ib_again(&m, again), len);
		cr_assert_arr_eq(again, buf, len, "%s", frames[i].name);
	}
}

Test(wire, private_data_is_as_long_as_that)
{
	cr_assert_eq(golden("o2ib-connreq").len, 36 + IB_PRIVATE_REQUEST_SIZE);
	cr_assert_eq(golden("o2ib-connack").len, IB_PRIVATE_ACCEPT_SIZE);
}

/* ---- what is refused ---- */

/* Decodes exactly these bytes, so that reading one more is detected. */
static int decode_exactly(const uint8_t *buf, size_t len, struct ib_msg *m,
			  const char **why)
{
	uint8_t *copy = malloc(len ? len : 1);
	int rc;

	cr_assert_not_null(copy);
	memcpy(copy, buf, len);
	rc = ib_msg_decode(copy, len, m, why);
	free(copy);
	return rc;
}

/* A message that is refused with a reason. */
static void assert_refused(const uint8_t *buf, size_t len, const char *name,
			   const char *reason)
{
	struct ib_msg m;
	const char *why = NULL;

	cr_expect_eq(decode_exactly(buf, len, &m, &why), -EPROTO, "%s: %s",
		     name, reason);
	cr_assert_not_null(why, "%s: %s", name, reason);
	cr_expect_str_eq(why, reason, "%s", name);
}

static const char *why_cut_short(size_t len)
{
	if (len < 6)
		return "too short for a version";
	if (len < IB_HDR_SIZE)
		return "too short for a header";
	return "longer than what was received";
}

Test(wire, cut_short)
{
	for (const struct example *e = examples; e->text; e++) {
		uint8_t buf[IB_MSG_SIZE_MAX];
		size_t len = unhex(e->text, buf);

		for (unsigned int order = 0; order < 2; order++) {
			for (size_t n = 0; n < len; n++)
				assert_refused(buf, n, e->name,
					       why_cut_short(n));
			swap(buf, len, e->type);
		}
	}
}

/* Sets the size in the header to the bytes received, too few for the type. */
Test(wire, too_short_for_its_type)
{
	for (const struct example *e = examples; e->text; e++) {
		uint8_t buf[IB_MSG_SIZE_MAX];
		size_t len = unhex(e->text, buf) - e->payload_len;

		for (size_t n = IB_HDR_SIZE; n < len; n++) {
			bool frags = has_rdma(e->type) && n >= len - 12;

			put_le(buf + 8, n, 4);
			assert_refused(buf, len, e->name,
				       frags ? "too short for its fragments"
					     : "too short for its type");
		}
	}
}

/* A field of a message, with a value that is not valid. */
static const struct {
	enum ib_msg_type type; /* 0: in any message */
	unsigned int offset, size;
	uint64_t value;
	const char *why;
} wrongs[] = {
	/* magic, version, type */
	{ 0, 0, 4, 0, "wrong magic" },
	{ 0, 0, 4, 0x0be91b90, "wrong magic" },
	{ 0, 0, 4, 0x45726963, "wrong magic" },
	{ 0, 0, 4, 0xacce7100, "wrong magic" },
	{ 0, 4, 2, 0, "unknown version" },
	{ 0, 4, 2, 0x10, "unknown version" },
	{ 0, 4, 2, 0x13, "unknown version" },
	{ 0, 4, 2, 0x112, "unknown version" },
	{ 0, 4, 2, 0x1200, "unknown version" },
	{ 0, 6, 1, 0, "unknown type" },
	{ 0, 6, 1, 0xbf, "unknown type" },
	{ 0, 6, 1, 0xc2, "unknown type" },
	{ 0, 6, 1, 0xcf, "unknown type" },
	{ 0, 6, 1, 0xd8, "unknown type" },
	{ 0, 6, 1, 0xff, "unknown type" },
	/* nob */
	{ 0, 8, 4, 0, "shorter than a header" },
	{ 0, 8, 4, 47, "shorter than a header" },
	{ 0, 8, 4, 0x80000000, "longer than what was received" },
	{ 0, 8, 4, UINT32_MAX, "longer than what was received" },
	{ 0, 8, 4, IB_MSG_SIZE_MAX, "longer than what was received" },
	/* the source is LNET_NID_ANY */
	{ 0, 16, 8, UINT64_MAX, "from nobody" },
	{ 0, 16, 8, UINT64_C(0x00ff0000c0a8010a), "from nobody" },
	/* payload */
	{ IB_MSG_IMMEDIATE, 76, 4, 9, "payload longer than what was received" },
	{ IB_MSG_IMMEDIATE, 76, 4, IB_IMMEDIATE_MAX + 1,
	  "payload longer than what was received" },
	{ IB_MSG_IMMEDIATE, 76, 4, UINT32_MAX,
	  "payload longer than what was received" },
	{ IB_MSG_IMMEDIATE, 76, 4, UINT32_MAX - 119,
	  "payload longer than what was received" },
	/* fragments: none, one too many, and counts that overflow */
	{ IB_MSG_PUT_ACK, 68, 4, 0, "no fragments" },
	{ IB_MSG_PUT_ACK, 68, 4, 2, "too short for its fragments" },
	{ IB_MSG_PUT_ACK, 68, 4, 0x15555556, "too short for its fragments" },
	{ IB_MSG_PUT_ACK, 68, 4, 0x80000001, "too short for its fragments" },
	{ IB_MSG_PUT_ACK, 68, 4, UINT32_MAX, "too short for its fragments" },
	{ IB_MSG_GET_REQ, 132, 4, 0, "no fragments" },
	{ IB_MSG_GET_REQ, 132, 4, 2, "too short for its fragments" },
	{ IB_MSG_GET_REQ, 132, 4, 0x15555556, "too short for its fragments" },
	{ IB_MSG_GET_REQ, 132, 4, 0x80000001, "too short for its fragments" },
	{ IB_MSG_GET_REQ, 132, 4, UINT32_MAX, "too short for its fragments" },
};

Test(wire, wrong_fields)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(wrongs); i++) {
		for (const struct example *e = examples; e->text; e++) {
			uint8_t buf[IB_MSG_SIZE_MAX];
			size_t len = unhex(e->text, buf);

			if (wrongs[i].type && wrongs[i].type != e->type)
				continue;
			/* the longest captured one has 48 bytes of payload */
			if (wrongs[i].value == 9 && e->payload_len > 8)
				continue;
			put_le(buf + wrongs[i].offset, wrongs[i].value,
			       wrongs[i].size);
			assert_refused(buf, len, e->name, wrongs[i].why);
			swap(buf, len, e->type);
			assert_refused(buf, len, e->name, wrongs[i].why);
		}
	}
}

/* each field has its byte order on its own */
Test(wire, orders_mixed)
{
	const struct example *e = example_of(IB_MSG_NOOP);
	uint8_t buf[IB_MSG_SIZE_MAX];
	size_t len = unhex(e->text, buf);

	reverse(buf, 4);
	assert_refused(buf, len, e->name, "unknown version");
	reverse(buf + 4, 2);
	assert_refused(buf, len, e->name, "longer than what was received");
}

/* Fields that may have any value: the caller judges them. */
static const struct {
	enum ib_msg_type type; /* 0: in any message */
	unsigned int offset, size;
	uint64_t value;
} anythings[] = {
	{ 0, 7, 1, 255 },
	{ 0, 16, 8, 0 },
	{ 0, 16, 8, UINT64_C(0x0009000000000000) },
	{ 0, 24, 8, 0 },
	{ 0, 24, 8, UINT64_MAX },
	{ 0, 32, 8, 0 },
	{ 0, 32, 8, UINT64_MAX },
	{ 0, 40, 8, 0 },
	{ 0, 40, 8, UINT64_MAX },
	{ IB_MSG_CONNREQ, 48, 2, 0 },
	{ IB_MSG_CONNREQ, 48, 2, 0xffff },
	{ IB_MSG_CONNREQ, 50, 2, 0 },
	{ IB_MSG_CONNREQ, 50, 2, 0xffff },
	{ IB_MSG_CONNREQ, 52, 4, 0 },
	{ IB_MSG_CONNREQ, 52, 4, UINT32_MAX },
	{ IB_MSG_CONNACK, 52, 4, UINT32_MAX },
	{ IB_MSG_PUT_REQ, 76, 4, UINT32_MAX },
	{ IB_MSG_PUT_REQ, 120, 8, 0 },
	{ IB_MSG_PUT_REQ, 120, 8, UINT64_MAX },
	{ IB_MSG_PUT_ACK, 48, 8, 0 },
	{ IB_MSG_PUT_ACK, 56, 8, 0 },
	{ IB_MSG_PUT_ACK, 64, 4, UINT32_MAX },
	{ IB_MSG_PUT_ACK, 72, 4, 0 },
	{ IB_MSG_PUT_ACK, 72, 4, UINT32_MAX },
	{ IB_MSG_PUT_ACK, 76, 8, UINT64_MAX },
	{ IB_MSG_GET_REQ, 76, 4, UINT32_MAX },
	{ IB_MSG_GET_REQ, 120, 8, 0 },
	{ IB_MSG_GET_REQ, 128, 4, 0 },
	{ IB_MSG_GET_REQ, 136, 4, UINT32_MAX },
	{ IB_MSG_GET_REQ, 140, 8, 1 },
	{ IB_MSG_PUT_NAK, 56, 4, 0 },
	{ IB_MSG_PUT_NAK, 56, 4, UINT32_MAX },
	{ IB_MSG_PUT_DONE, 56, 4, 0x80000000 },
	{ IB_MSG_GET_DONE, 48, 8, UINT64_MAX },
	{ IB_MSG_GET_DONE, 56, 4, 0x7fffffff },
};

Test(wire, fields_that_say_anything)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(anythings); i++) {
		for (const struct example *e = examples; e->text; e++) {
			uint8_t buf[IB_MSG_SIZE_MAX], again[IB_MSG_SIZE_MAX];
			size_t len = unhex(e->text, buf);
			const char *why = NULL;
			struct ib_msg m;

			if (anythings[i].type && anythings[i].type != e->type)
				continue;
			put_le(buf + anythings[i].offset, anythings[i].value,
			       anythings[i].size);
			cr_assert_eq(ib_msg_decode(buf, len, &m, &why), 0,
				     "%u, %s: %s", i, e->name, why);
			cr_assert_eq(ib_again(&m, again), len);
			cr_assert_arr_eq(again, buf, len, "%u, %s", i, e->name);
		}
	}
}

/* Bytes behind the message, as in private data, are ignored. */
Test(wire, bytes_behind)
{
	for (const struct example *e = examples; e->text; e++) {
		uint8_t buf[IB_MSG_SIZE_MAX];
		size_t len = unhex(e->text, buf);
		const char *why = NULL;
		struct ib_msg m;

		memset(buf + len, 0xee, sizeof(buf) - len);
		for (size_t n = len; n <= sizeof(buf); n += 1 + n / 16) {
			cr_assert_eq(ib_msg_decode(buf, n, &m, &why), 0,
				     "%s: %s", e->name, why);
			cr_expect_eq(m.nob, len);
			assert_says(&m, e, buf);
		}
	}
}

/* The payload may extend to the end of the received bytes, beyond the message's
 * size. */
Test(wire, payload_beyond_nob)
{
	const struct example *e = example_of(IB_MSG_IMMEDIATE);
	uint8_t buf[IB_MSG_SIZE_MAX];
	const char *why = NULL;
	struct ib_msg m;
	size_t len = unhex(e->text, buf);

	put_le(buf + 8, 120, 4);
	cr_assert_eq(ib_msg_decode(buf, len, &m, &why), 0, "%s", why);
	cr_expect_eq(m.nob, 120);
	cr_expect_eq(m.payload_len, 8);
	assert_refused(buf, len - 1, e->name,
		       "payload longer than what was received");

	memset(buf + len, 0xee, sizeof(buf) - len);
	put_le(buf + 76, IB_IMMEDIATE_MAX, 4);
	cr_assert_eq(ib_msg_decode(buf, sizeof(buf), &m, &why), 0, "%s", why);
	cr_expect_eq(m.payload_len, IB_IMMEDIATE_MAX);
}

/* ---- fragments ---- */

static void fill_frags(struct ib_frag *frags, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		frags[i].addr = UINT64_C(0xfedcba9876543210) * (i + 1);
		frags[i].nob = i % 3 ? 0xfffffff0 + i : 0;
	}
}

static void assert_frags(const struct ib_msg *m, const struct ib_frag *frags,
			 unsigned int n)
{
	uint64_t total = 0;

	cr_assert_eq(m->rdma.nfrags, n);
	cr_expect_eq(m->rdma.key, 0x01020304);
	for (unsigned int i = 0; i < n; i++) {
		uint64_t addr;
		uint32_t nob;

		ib_rdma_frag(&m->rdma, i, &addr, &nob);
		cr_expect_eq(addr, frags[i].addr, "%u", i);
		cr_expect_eq(nob, frags[i].nob, "%u", i);
		total += frags[i].nob;
	}
	cr_expect_eq(ib_rdma_nob(&m->rdma), total);
}

static void try_frags(enum ib_msg_type type, unsigned int n)
{
	struct example e = *example_of(type);
	struct ib_hdr hdr = hdr_of(&e);
	struct ib_frag frags[IB_PUT_ACK_FRAGS];
	struct ib_sink sink = { 0x01020304, n, frags };
	uint8_t buf[IB_MSG_SIZE_MAX];
	const char *why = NULL;
	struct ib_msg m;
	size_t len;

	fill_frags(frags, n);
	if (type == IB_MSG_PUT_ACK)
		len = ib_put_ack_encode(&hdr, 1, 2, &sink, buf);
	else
		len = ib_get_req_encode(&hdr, 1, &sink, buf);
	for (unsigned int order = 0; order < 2; order++) {
		cr_assert_eq(ib_msg_decode(buf, len, &m, &why), 0, "%s", why);
		assert_frags(&m, frags, n);
		assert_refused(buf, len - 1, e.name,
			       "longer than what was received");
		swap(buf, len, type);
	}
}

Test(wire, many_fragments)
{
	static const unsigned int counts[] = {
		1, 2, 3, 255, 256, IB_FRAGS_MAX, IB_GET_REQ_FRAGS
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(counts); i++) {
		try_frags(IB_MSG_PUT_ACK, counts[i]);
		try_frags(IB_MSG_GET_REQ, counts[i]);
	}
	try_frags(IB_MSG_PUT_ACK, IB_PUT_ACK_FRAGS);
}

/* fewer than there is room for */
Test(wire, room_behind_fragments)
{
	const struct example *e = example_of(IB_MSG_PUT_ACK);
	uint8_t buf[IB_MSG_SIZE_MAX] = { 0 };
	size_t len = unhex(e->text, buf);
	const char *why = NULL;
	struct ib_msg m;

	put_le(buf + 8, len + 30, 4);
	cr_assert_eq(ib_msg_decode(buf, len + 30, &m, &why), 0, "%s", why);
	assert_says(&m, e, buf);
}

Test(wire, fragment_that_is_not_there, .signal = SIGABRT)
{
	const struct example *e = example_of(IB_MSG_PUT_ACK);
	uint8_t buf[IB_MSG_SIZE_MAX];
	size_t len = unhex(e->text, buf);
	const char *why = NULL;
	struct ib_msg m;
	uint64_t addr;
	uint32_t nob;

	cr_assert_eq(ib_msg_decode(buf, len, &m, &why), 0);
	ib_rdma_frag(&m.rdma, 1, &addr, &nob);
}

/* ---- other lives ---- */

Test(wire, stale)
{
	const struct example *e = example_of(IB_MSG_NOOP);
	struct ib_envelope env = envelope_of(e);
	struct ib_end other = { lnet_nid_from_nid4(NID_P), LIFE_A };
	uint8_t buf[IB_MSG_SIZE_MAX];
	size_t len = unhex(e->text, buf);

	for (unsigned int order = 0; order < 2; order++) {
		struct ib_end src = env.src, dst = env.dst;

		cr_expect_eq(decode_on(buf, len, &dst, &src), 0);
		cr_expect_eq(decode_on(buf, len, &src, &dst), -ESTALE);
		src.stamp++;
		cr_expect_eq(decode_on(buf, len, &dst, &src), -ESTALE);
		dst.stamp = 0;
		cr_expect_eq(decode_on(buf, len, &dst, &env.src), -ESTALE);
		src = env.src;
		src.nid = other.nid;
		cr_expect_eq(decode_on(buf, len, &env.dst, &src), -ESTALE);
		dst = env.dst;
		dst.nid = other.nid;
		cr_expect_eq(decode_on(buf, len, &dst, &env.src), -ESTALE);
		swap(buf, len, e->type);
	}
}

/* What may come over a connection, in either order, and what may not. */
Test(wire, on_a_connection)
{
	for (const struct example *e = examples; e->text; e++) {
		struct ib_envelope env = envelope_of(e);
		uint8_t buf[IB_MSG_SIZE_MAX];
		size_t len = unhex(e->text, buf);
		int rc = e->type < IB_MSG_NOOP ? -EPROTO : 0;

		for (unsigned int order = 0; order < 2; order++) {
			cr_expect_eq(decode_on(buf, len, &env.dst, &env.src),
				     rc, "%s", e->name);
			cr_expect_eq(
				decode_on(buf, len - 1, &env.dst, &env.src),
				-EPROTO, "%s", e->name);
			swap(buf, len, e->type);
		}
		buf[4] = IB_VERSION_1;
		cr_expect_eq(decode_on(buf, len, &env.dst, &env.src), -EPROTO,
			     "%s", e->name);
	}
}

/* ---- checksum ---- */

Test(wire, checksum_as_sent)
{
	for (const struct example *e = examples; e->text; e++) {
		uint8_t buf[IB_MSG_SIZE_MAX];
		uint8_t want[4];

		if (!e->cksum)
			continue;
		unhex(e->text, buf);
		ib_msg_set_cksum(buf);
		put_le(want, e->cksum, 4);
		cr_expect_arr_eq(buf + 12, want, 4, "%s", e->name);
		/* The checksum does not cover itself. */
		ib_msg_set_cksum(buf);
		cr_expect_arr_eq(buf + 12, want, 4, "%s", e->name);
	}
}

Test(wire, checksum_as_received)
{
	for (const struct example *e = examples; e->text; e++) {
		uint32_t either[] = { e->cksum, e->cksum_negative };

		for (unsigned int i = 0; i < ARRAY_SIZE(either); i++) {
			uint8_t buf[IB_MSG_SIZE_MAX];
			size_t len = unhex(e->text, buf);
			const char *why = NULL;
			struct ib_msg m;

			if (!e->cksum)
				continue;
			put_le(buf + 12, either[i], 4);
			cr_assert_eq(decode_exactly(buf, len, &m, &why), 0,
				     "%s: %s", e->name, why);
			cr_expect_eq(m.cksum, either[i]);
		}
	}
}

/* It covers the bytes as received, in either order, and none behind the
 * message. */
Test(wire, checksum_of_every_type)
{
	for (unsigned int order = 0; order < 4; order++) {
		for (const struct example *e = examples; e->text; e++) {
			uint8_t buf[IB_MSG_SIZE_MAX];
			size_t len = unhex(e->text, buf);
			const char *why = NULL;
			struct ib_msg m;
			uint32_t sum;

			if (order & 1)
				swap(buf, len, e->type);
			sum = ib_cksum(0, buf, len, order & 2);
			put_le(buf + 12, sum, 4);
			if (order & 1)
				reverse(buf + 12, 4);
			buf[len] = 0xee;
			cr_assert_eq(ib_msg_decode(buf, len + 1, &m, &why), 0,
				     "%s: %s", e->name, why);
			cr_expect_eq(m.cksum, sum);
			assert_says(&m, e, buf);
		}
	}
}

/* A message in which any byte differs is refused. */
Test(wire, wrong_checksum)
{
	for (const struct example *e = examples; e->text; e++) {
		uint8_t buf[IB_MSG_SIZE_MAX];
		size_t len = unhex(e->text, buf);

		ib_msg_set_cksum(buf);
		for (size_t i = 0; i < len; i++) {
			const char *why = NULL;
			struct ib_msg m;
			int rc;

			buf[i] ^= 0x10;
			rc = decode_exactly(buf, len, &m, &why);
			cr_expect_eq(rc, -EPROTO, "%s, %zu", e->name, i);
			cr_assert_not_null(why);
			buf[i] ^= 0x10;
		}
	}
}

/* A checksum of 0 is sent as 1, since 0 means that there is none. The payload
 * makes it all ones, and then adds one. */
Test(wire, checksum_of_zero)
{
	struct example e = *example_of(IB_MSG_IMMEDIATE);
	uint8_t buf[IB_MSG_SIZE_MAX], sums[4] = { 1 };
	const size_t begin = IB_PAYLOAD_OFFSET, ones = 32;
	const char *why = NULL;
	struct ib_msg m;
	size_t len;

	unhex(e.text, buf);
	put_le(buf + 76, ones + 1, 4);
	e.payload_len = ones + 1;
	len = encode(&e, buf);
	for (size_t i = 0; i < ones; i++) {
		uint32_t sum = ib_cksum(0, buf, begin + i, false);

		buf[begin + i] = !(sum >> 31);
	}
	cr_assert_eq(ib_cksum(0, buf, begin + ones, false), UINT32_MAX);
	buf[begin + ones] = 1;
	cr_assert_eq(ib_cksum(0, buf, len, false), 0);
	ib_msg_set_cksum(buf);
	cr_expect_arr_eq(buf + 12, sums, 4);
	cr_assert_eq(ib_msg_decode(buf, len, &m, &why), 0, "%s", why);
}

Test(wire, checksum_goes_on)
{
	static const uint8_t bytes[] = { 0x01, 0x80, 0xff, 0x7f, 0x00, 0x90 };

	cr_assert_eq(ib_cksum(0, bytes, 2, false), 0x82);
	cr_assert_eq(ib_cksum(0, bytes, 2, true), UINT32_MAX - 0x7d);
	cr_assert_eq(ib_cksum(0x80000000, bytes, 1, true), 2, "it rotates");
	for (unsigned int negative = 0; negative < 2; negative++) {
		uint32_t all = ib_cksum(0, bytes, sizeof(bytes), negative);

		for (size_t n = 0; n <= sizeof(bytes); n++) {
			uint32_t sum = ib_cksum(0, bytes, n, negative);

			sum = ib_cksum(sum, bytes + n, sizeof(bytes) - n,
				       negative);
			cr_assert_eq(sum, all);
		}
	}
}
