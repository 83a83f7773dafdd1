/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of o2ib nodes: bytes, contents, and the form of the other byte
 * order.
 */
#ifndef TESTS_O2IBLND_EXAMPLES_H
#define TESTS_O2IBLND_EXAMPLES_H

#include <criterion/criterion.h>
#include <string.h>
#include "lnd/o2iblnd/wire.h"

/* ---- examples: as text, and what each says ---- */

#define NID_A  UINT64_C(0x00050000c0a8010a) /* 192.168.1.10@o2ib */
#define NID_B  UINT64_C(0x00050000c0a80114) /* 192.168.1.20@o2ib */
#define NID_N  UINT64_C(0x000500000a4d0203) /* 10.77.2.3@o2ib */
#define NID_P  UINT64_C(0x000500000a4d0202) /* 10.77.2.2@o2ib */
#define LIFE_A UINT64_C(0x0006250d1a2b3c4d)
#define LIFE_B UINT64_C(0x0006250d9a8b7c6d)
#define LIFE_N UINT64_C(0x000660bcf0c07e87)
#define LIFE_P UINT64_C(0x000660bcf03a282a)

/* NIDs and incarnations, as in headers. */
#define TEXT_A	 "0a01a8c000000500 4d3c2b1a0d250600 "
#define TEXT_B	 "1401a8c000000500 6d7c8b9a0d250600 "
#define TEXT_B_0 "1401a8c000000500 0000000000000000 "
#define TEXT_N	 "03024d0a00000500 877ec0f0bc600600 "
#define TEXT_P	 "02024d0a00000500 2a283af0bc600600 "
#define TEXT_P_0 "02024d0a00000500 0000000000000000 "
/* of LNet: destination, source */
#define LNET_A_TO_B "1401a8c000000500 0a01a8c000000500 "
#define LNET_P_TO_N "03024d0a00000500 02024d0a00000500 "
#define LNET_N_TO_P "02024d0a00000500 03024d0a00000500 "

struct example {
	const char *name;
	const char *text;
	enum ib_msg_type type;
	uint8_t credits;
	uint64_t src, src_life, dst, dst_life;
	struct ib_conn_params params;
	uint32_t payload_len;
	uint64_t cookie, dst_cookie;
	int32_t status;
	uint32_t key;
	struct ib_frag frag;		/* the only fragment */
	uint32_t cksum, cksum_negative; /* if there were one; 0: not known */
};

#define FROM_A \
	.src = NID_A, .src_life = LIFE_A, .dst = NID_B, .dst_life = LIFE_B
#define FROM_B \
	.src = NID_B, .src_life = LIFE_B, .dst = NID_A, .dst_life = LIFE_A
#define FROM_N \
	.src = NID_N, .src_life = LIFE_N, .dst = NID_P, .dst_life = LIFE_P
#define FROM_P \
	.src = NID_P, .src_life = LIFE_P, .dst = NID_N, .dst_life = LIFE_N

static const struct example examples[] = {
	/* made by hand */
	{
		.name = "CONNREQ, first contact",
		.text = "911be90b1200c000 3800000000000000 " TEXT_A TEXT_B_0
			"0800000100100000 ",
		.type = IB_MSG_CONNREQ,
		.src = NID_A,
		.src_life = LIFE_A,
		.dst = NID_B,
		.params = { 8, 256, 4096 },
		.cksum = 0x22862ad8,
		.cksum_negative = 0x5105fad7,
	},
	{
		.name = "CONNACK",
		.text = "911be90b1200c100 3800000000000000 " TEXT_B TEXT_A
			"0800000100100000 ",
		.type = IB_MSG_CONNACK,
		FROM_B,
		.params = { 8, 256, 4096 },
	},
	{
		.name = "NOOP that returns 255 credits",
		.text = "911be90b1200d0ff 3000000000000000 " TEXT_A TEXT_B,
		.type = IB_MSG_NOOP,
		.credits = 255,
		FROM_A,
	},
	{
		.name = "IMMEDIATE PUT",
		.text = "911be90b1200d103 8000000000000000 " TEXT_A TEXT_B
			LNET_A_TO_B "3930000039300000 0100000008000000 "
			"8877665544332211 4200000000000000 "
			"40e2010000000000 0000000000000000 "
			"1a00000000000000 4c4e657444617461 ",
		.type = IB_MSG_IMMEDIATE,
		.credits = 3,
		FROM_A,
		.payload_len = 8,
		.cksum = 0xea1e7d3d,
		.cksum_negative = 0xb93e4c2b,
	},
	{
		.name = "GET_REQ of 1 MiB",
		.text = "911be90b1200d600 9400000000000000 " TEXT_A TEXT_B
			LNET_A_TO_B "3930000039300000 0200000000000000 "
			"8877665544332211 4200000000000000 "
			"40e2010000000000 0800000000000000 "
			"0000100000000000 0110000000000000 "
			"002a010001000000 0000100000000040 "
			"5a7f0000 ",
		.type = IB_MSG_GET_REQ,
		FROM_A,
		.cookie = 0x1001,
		.key = 0x12a00,
		.frag = { UINT64_C(0x7f5a40000000), 1048576 },
	},
	{
		.name = "PUT_ACK, zero-based",
		.text = "911be90b1200d400 5400000000000000 " TEXT_B TEXT_A
			"0220000000000000 7700000000000000 "
			"005b050001000000 0000100010020000 "
			"00000000 ",
		.type = IB_MSG_PUT_ACK,
		FROM_B,
		.cookie = 0x2002,
		.dst_cookie = 0x77,
		.key = 0x55b00,
		.frag = { 0x210, 1048576 },
	},
	{
		.name = "PUT_DONE",
		.text = "911be90b1200d500 3c00000000000000 " TEXT_A TEXT_B
			"7700000000000000 00001000 ",
		.type = IB_MSG_PUT_DONE,
		FROM_A,
		.cookie = 0x77,
		.status = 1048576,
	},
	{
		.name = "PUT_NAK for want of memory",
		.text = "911be90b1200d301 3c00000000000000 " TEXT_B TEXT_A
			"0220000000000080 f4ffffff ",
		.type = IB_MSG_PUT_NAK,
		.credits = 1,
		FROM_B,
		.cookie = UINT64_C(0x8000000000002002),
		.status = -12,
	},
	/* captured */
	{
		.name = "CONNREQ of a kernel node",
		.text = "911be90b1200c000 3800000000000000 " TEXT_N TEXT_P_0
			"0800010100100000 ",
		.type = IB_MSG_CONNREQ,
		.src = NID_N,
		.src_life = LIFE_N,
		.dst = NID_P,
		.params = { 8, 257, 4096 },
	},
	{
		.name = "CONNACK of a kernel node",
		.text = "911be90b1200c100 3800000000000000 " TEXT_P TEXT_N
			"0800010100100000 ",
		.type = IB_MSG_CONNACK,
		FROM_P,
		.params = { 8, 257, 4096 },
	},
	{
		.name = "ping",
		.text = "911be90b1200d100 7800000000000000 " TEXT_N TEXT_P
			LNET_N_TO_P "3930000039300000 0200000000000000 "
			"1679f2320ce2e918 0d1c000000000000 "
			"0000000000000080 0000000000000000 "
			"780f000000000000 ",
		.type = IB_MSG_IMMEDIATE,
		FROM_N,
	},
	{
		.name = "answer to the ping",
		.text = "911be90b1200d101 a800000000000000 " TEXT_P TEXT_N
			LNET_P_TO_N "3930000039300000 0300000030000000 "
			"1679f2320ce2e918 0d1c000000000000 "
			"0000000000000000 0000000000000000 "
			"0000000000000000 676e69701e000000 "
			"3930000002000000 0000000000000900 "
			"0500000000000000 02024d0a00000500 "
			"dec0aa1500000000 ",
		.type = IB_MSG_IMMEDIATE,
		.credits = 1,
		FROM_P,
		.payload_len = 48,
	},
	{
		.name = "GET of 1 MiB: GET_REQ",
		.text = "911be90b1200d601 9400000000000000 " TEXT_P TEXT_N
			LNET_P_TO_N "3930000039300000 0200000000000000 "
			"4a258e270ae2e918 2520000000000000 "
			"08000000000087cc 3400000000000000 "
			"0000100000000000 0600000000000000 "
			"3d09020001000000 0000100000e0dc12 "
			"8088ffff ",
		.type = IB_MSG_GET_REQ,
		.credits = 1,
		FROM_P,
		.cookie = 6,
		.key = 0x0002093d,
		.frag = { UINT64_C(0xffff888012dce000), 1048576 },
	},
	{
		.name = "GET of 1 MiB: GET_DONE",
		.text = "911be90b1200d700 3c00000000000000 " TEXT_N TEXT_P
			"0600000000000000 00001000 ",
		.type = IB_MSG_GET_DONE,
		FROM_N,
		.cookie = 6,
		.status = 1048576,
	},
	{
		.name = "PUT of 1 MiB: PUT_REQ",
		.text = "911be90b1200d201 8000000000000000 " TEXT_P TEXT_N
			LNET_P_TO_N "3930000039300000 0100000000001000 "
			"ffffffffffffffff ffffffffffffffff "
			"16000000000087cc 0000000000000000 "
			"3400000000000000 0c00000000000000 ",
		.type = IB_MSG_PUT_REQ,
		.credits = 1,
		FROM_P,
		.cookie = 12,
	},
	{
		.name = "PUT of 1 MiB: PUT_ACK",
		.text = "911be90b1200d400 5400000000000000 " TEXT_N TEXT_P
			"0c00000000000000 2900000000000000 "
			"8626020001000000 000010000070eb0f "
			"8088ffff ",
		.type = IB_MSG_PUT_ACK,
		FROM_N,
		.cookie = 12,
		.dst_cookie = 41,
		.key = 0x00022686,
		.frag = { UINT64_C(0xffff88800feb7000), 1048576 },
	},
	{
		.name = "PUT of 1 MiB: PUT_DONE",
		.text = "911be90b1200d500 3c00000000000000 " TEXT_P TEXT_N
			"2900000000000000 00001000 ",
		.type = IB_MSG_PUT_DONE,
		FROM_P,
		.cookie = 41,
		.status = 1048576,
	},
	{ .text = NULL },
};

/* @buf: IB_MSG_SIZE_MAX bytes. */
static inline size_t unhex(const char *text, uint8_t *buf)
{
	unsigned int byte;
	size_t n = 0;
	int used;

	for (; sscanf(text, " %2x%n", &byte, &used) == 1; text += used)
		buf[n++] = (uint8_t)byte;
	return n;
}

static inline const struct example *example_of(enum ib_msg_type type)
{
	const struct example *e = examples;

	while (e->text && e->type != type)
		e++;
	cr_assert(e->text, "no example of type %#x", type);
	return e;
}

/* ---- byte order ---- */

static inline void put_le(uint8_t *p, uint64_t v, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static inline void reverse(uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size / 2; i++) {
		uint8_t was = p[i];

		p[i] = p[size - 1 - i];
		p[size - 1 - i] = was;
	}
}

/* Numbers in messages: offset and size, ended by 0. Cookies and the LNet header
 * are not among them. */
struct number {
	unsigned int offset, size;
};

static const struct number hdr_numbers[] = { { 0, 4 },	{ 4, 2 },  { 8, 4 },
					     { 12, 4 }, { 16, 8 }, { 24, 8 },
					     { 32, 8 }, { 40, 8 }, { 0, 0 } };
static const struct number conn_numbers[] = {
	{ 48, 2 }, { 50, 2 }, { 52, 4 }, { 0, 0 }
};
static const struct number put_ack_numbers[] = { { 64, 4 },
						 { 68, 4 },
						 { 0, 0 } };
static const struct number get_req_numbers[] = { { 128, 4 },
						 { 132, 4 },
						 { 0, 0 } };
static const struct number done_numbers[] = { { 56, 4 }, { 0, 0 } };
static const struct number no_numbers[] = { { 0, 0 } };

static inline void swap_numbers(uint8_t *p, size_t len, const struct number *n)
{
	for (; n->size; n++)
		if (n->offset + n->size <= len)
			reverse(p + n->offset, n->size);
}

static inline const struct number *body_numbers(enum ib_msg_type type)
{
	switch (type) {
	case IB_MSG_CONNREQ:
	case IB_MSG_CONNACK:
		return conn_numbers;
	case IB_MSG_PUT_ACK:
		return put_ack_numbers;
	case IB_MSG_GET_REQ:
		return get_req_numbers;
	case IB_MSG_PUT_NAK:
	case IB_MSG_PUT_DONE:
	case IB_MSG_GET_DONE:
		return done_numbers;
	default:
		return no_numbers;
	}
}

static inline void swap_frags(uint8_t *p, size_t len, size_t first)
{
	for (size_t at = first; at + 12 <= len; at += 12) {
		reverse(p + at, 4);
		reverse(p + at + 4, 8);
	}
}

/* What a sender of the other byte order would have sent. */
static inline void swap(uint8_t *p, size_t len, enum ib_msg_type type)
{
	swap_numbers(p, len, hdr_numbers);
	swap_numbers(p, len, body_numbers(type));
	if (type == IB_MSG_PUT_ACK)
		swap_frags(p, len, 72);
	if (type == IB_MSG_GET_REQ)
		swap_frags(p, len, 136);
}

#endif
