/* SPDX-License-Identifier: BSD-3-Clause */
/* Every frame of every recording is decoded, and encoded to the same bytes. */
#include <criterion/criterion.h>
#include <string.h>
#include "lnd/socklnd/proto.h"
#include "lnet/message/wire.h"
#include "tests/lnd/tape.h"

static const struct {
	const char *name;
	unsigned int conns, frames, messages;
} tapes[] = {
	{ "ping", 3, 11, 2 },	   { "discover", 3, 15, 6 },
	{ "bulk", 3, 31, 20 },	   { "router", 3, 50, 39 },
	{ "two-nis", 3, 21, 12 },  { "second-ni", 3, 13, 4 },
	{ "cross", 3, 15, 6 },	   { "keepalive", 3, 12, 2 },
	{ "lst-ping", 3, 47, 38 }, { "lst-brw", 3, 41, 32 },
};

static bool check_request(const struct tape_frame *f)
{
	struct ulnet_nid target;
	uint8_t again[SOCK_REQUEST_LARGE_SIZE];

	return sock_request_size(f->bytes) == (int)f->len &&
	       sock_request_decode(f->bytes, f->len, &target) == 0 &&
	       sock_request_encode(&target, again) == f->len &&
	       memcmp(again, f->bytes, f->len) == 0;
}

static bool check_hello(const struct tape_frame *f)
{
	struct sock_hello h = { 0 };
	uint8_t again[SOCK_HELLO_LARGE_SIZE];

	return sock_hello_size(&h, f->bytes) == (int)f->len &&
	       sock_hello_decode(&h, f->bytes, f->len) == 0 &&
	       sock_hello_encode(&h, again) == f->len &&
	       memcmp(again, f->bytes, f->len) == 0;
}

static bool check_hdr(const struct tape_frame *f, uint32_t type)
{
	struct sock_hdr hdr;
	uint8_t again[SOCK_HDR_SIZE];

	if (f->len < SOCK_HDR_SIZE ||
	    sock_hdr_decode(&hdr, f->bytes, false) != 0 || hdr.type != type)
		return false;
	sock_hdr_encode(&hdr, again);
	return memcmp(again, f->bytes, SOCK_HDR_SIZE) == 0;
}

static bool check_message(const struct tape_frame *f)
{
	const size_t head = SOCK_HDR_SIZE + LNET_HDR_SIZE;
	const uint8_t *bytes = f->bytes + SOCK_HDR_SIZE;
	struct lnet_hdr hdr;
	uint8_t again[LNET_HDR_SIZE];

	if (!check_hdr(f, SOCK_MSG_LNET) || f->len < head ||
	    hdr_decode(&hdr, bytes, LNET_HDR_SIZE) != 0 ||
	    f->len != head + hdr.payload_length)
		return false;
	hdr_encode(&hdr, again, LNET_HDR_SIZE);
	return memcmp(again, bytes, LNET_HDR_SIZE) == 0;
}

static bool check_frame(const struct tape_frame *f)
{
	switch (f->kind) {
	case TAPE_REQUEST:
		return check_request(f);
	case TAPE_HELLO:
		return check_hello(f);
	case TAPE_LNET:
		return check_message(f);
	default:
		return check_hdr(f, SOCK_MSG_NOOP) && f->len == SOCK_HDR_SIZE;
	}
}

Test(tape, frames)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(tapes); i++) {
		static struct tape t;
		unsigned int messages = 0;

		cr_assert(tape_load(&t, tapes[i].name));
		cr_expect_eq(t.nconns, tapes[i].conns, "%s: %u", t.name,
			     t.nconns);
		cr_expect_eq(t.nframes, tapes[i].frames, "%s: %u", t.name,
			     t.nframes);
		for (unsigned int k = 0; k < t.nframes; k++) {
			cr_expect(check_frame(&t.frame[k]), "%s.tape:%u",
				  t.name, t.frame[k].line);
			messages += t.frame[k].kind == TAPE_LNET;
		}
		cr_expect_eq(messages, tapes[i].messages, "%s: %u", t.name,
			     messages);
		tape_free(&t);
	}
}

/* The request names the NID that the HELLO is for, and the answer has the
 * inverted type. */
Test(tape, handshakes)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(tapes); i++) {
		static struct tape t;
		struct sock_hello told[TAPE_CONNS_MAX] = { 0 };
		struct ulnet_nid target[TAPE_CONNS_MAX];
		unsigned int answers = 0;

		cr_assert(tape_load(&t, tapes[i].name));
		for (unsigned int k = 0; k < t.nframes; k++) {
			const struct tape_frame *f = &t.frame[k];
			struct sock_hello h = { 0 }, *to = &told[f->conn];

			if (f->kind == TAPE_REQUEST)
				sock_request_decode(f->bytes, f->len,
						    &target[f->conn]);
			if (f->kind != TAPE_HELLO)
				continue;
			sock_hello_size(&h, f->bytes);
			cr_assert_eq(sock_hello_decode(&h, f->bytes, f->len),
				     0);
			cr_expect_eq(h.src_pid, 12345);
			if (!f->back) {
				*to = h;
				cr_expect(lnet_nid_eq(&h.dst_nid,
						      &target[f->conn]));
				continue;
			}
			answers++;
			cr_expect_eq(h.type, sock_type_invert(to->type));
			cr_expect(lnet_nid_eq(&h.dst_nid, &to->src_nid));
			cr_expect(lnet_nid_eq(&h.src_nid, &to->dst_nid));
		}
		cr_expect_eq(answers, t.nconns);
		tape_free(&t);
	}
}

/* A long payload is recorded as a pattern. */
Test(tape, repeated_bytes)
{
	static const uint8_t mark[8] = { 0xb3, 0xee, 0xb2, 0xee,
					 0xb1, 0xee, 0xb0, 0xee };
	static struct tape t;
	unsigned int seen = 0;

	cr_assert(tape_load(&t, "bulk"));
	for (unsigned int k = 0; k < t.nframes; k++) {
		const uint8_t *p = t.frame[k].bytes + 96;

		if (t.frame[k].len != 96 + LNET_MTU)
			continue;
		seen++;
		for (unsigned int page = 0; page < 256; page++, p += 4096) {
			cr_assert_arr_eq(p, mark, sizeof(mark));
			cr_assert_arr_eq(p + 4088, mark, sizeof(mark));
			for (unsigned int i = 8; i < 4088; i++)
				cr_assert_eq(p[i], 0);
		}
	}
	cr_assert_eq(seen, 2);
	tape_free(&t);
}
