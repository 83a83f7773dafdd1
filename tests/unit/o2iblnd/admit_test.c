/* SPDX-License-Identifier: BSD-3-Clause */
/* Which requests, and which answers, lead to a connection. */
#include "lnd/o2iblnd/admit.h"

#include <criterion/criterion.h>
#include <errno.h>

#define NID_N UINT64_C(0x000500000a4d0203)
#define NID_P UINT64_C(0x000500000a4d0202)
#define NID_X UINT64_C(0x000500000a4d0209)
#define NONE  0xffff

/* As captured: N asks P, whose incarnation it does not know. */
static const uint8_t seen[IB_PRIVATE_REQUEST_SIZE] = {
	0x91, 0x1b, 0xe9, 0x0b, 0x12, 0x00, 0xc0, 0x00, 0x38, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x03, 0x02, 0x4d, 0x0a, 0x00, 0x00, 0x05, 0x00,
	0x87, 0x7e, 0xc0, 0xf0, 0xbc, 0x60, 0x06, 0x00, 0x02, 0x02, 0x4d, 0x0a,
	0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x08, 0x00, 0x01, 0x01, 0x00, 0x10, 0x00, 0x00,
};
#define STAMP_N UINT64_C(0x000660bcf0c07e87)
#define STAMP_P UINT64_C(0x000660bcf03a282a)

static struct ib_end end_of(uint64_t nid, uint64_t stamp)
{
	return (struct ib_end){ lnet_nid_from_nid4(nid), stamp };
}

/* The request with one or two bytes changed, and the expected answer. */
static const struct request {
	const char *what;
	unsigned int at, value; /* 16 bits, in little endian */
	unsigned int length;	/* 0: the whole request */
	bool privileged, starting;
	uint16_t port, depth, frags;
	int rc;
	unsigned int reason;
	bool named; /* the reject has our incarnation and limits */
} requests[] = {
	{ "as seen", NONE, 0, 0, false, false, 1023, 8, 257, 0, 0, 0 },
	{ "1: port", NONE, 0, 0, true, false, 1024, 8, 257, -EACCES,
	  IB_REJECT_FATAL, false },
	{ "1: port", NONE, 0, 0, true, false, 1023, 8, 257, 0, 0, 0 },
	{ "1: any", NONE, 0, 0, false, false, 50000, 8, 257, 0, 0, 0 },
	{ "2: short", NONE, 0, 5, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, false },
	{ "3: magic", 2, 0x0be8, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, false },
	{ "3: version", 4, 0x13, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, false },
	{ "3: version 1", 4, 0x11, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, false },
	{ "4: short", NONE, 0, 55, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, false },
	{ "4: type", 6, 0xff, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, false },
	{ "5: for whom", 0x20, 0x0204, 0, false, false, 1, 8, 257,
	  -EADDRNOTAVAIL, IB_REJECT_FATAL, false },
	{ "5: too early", 0x20, 0x0204, 0, false, true, 1, 8, 257,
	  -EADDRNOTAVAIL, IB_REJECT_EARLY, false },
	{ "7: life", 0x28, 1, 0, false, false, 1, 8, 257, -ESTALE,
	  IB_REJECT_STALE, true },
	{ "8: an answer", 6, 0xc1, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, true },
	{ "8: a NOOP", 6, 0xd0, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, true },
	{ "8: another net", 0x14, 1, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, true },
	{ "8: ourselves", 0x10, 0x0202, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, true },
	{ "8: another address", 0x10, 0x0209, 0, false, false, 1, 8, 257,
	  -EPERM, IB_REJECT_FATAL, true },
	{ "9: depth", 0x30, 9, 0, false, false, 1, 8, 257, -E2BIG,
	  IB_REJECT_DEPTH, true },
	{ "9: depth", 0x30, 7, 0, false, false, 1, 8, 257, 0, 0, 0 },
	{ "9: no depth", 0x30, 0, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, true },
	{ "9 before 10", 0x30, 9, 0, false, false, 1, 8, 256, -E2BIG,
	  IB_REJECT_DEPTH, true },
	{ "10: frags", NONE, 0, 0, false, false, 1, 8, 256, -E2BIG,
	  IB_REJECT_FRAGS, true },
	{ "10: frags", 0x32, 1, 0, false, false, 1, 8, 256, 0, 0, 0 },
	{ "10: none", 0x32, 0, 0, false, false, 1, 8, 256, -EPROTO,
	  IB_REJECT_FATAL, true },
	{ "12: size", 0x34, 0x1001, 0, false, false, 1, 8, 257, -EPROTO,
	  IB_REJECT_FATAL, true },
	{ "12: size", 0x34, 0x0fff, 0, false, false, 1, 8, 257, 0, 0, 0 },
};

static void check_request(const struct request *q)
{
	struct ib_terms terms = { end_of(NID_P, STAMP_P), q->depth, q->frags,
				  q->privileged, q->starting };
	struct ib_source from = { lnet_nid_from_nid4(NID_N), q->port };
	struct ib_request request = { 0 };
	struct ib_reject reject = { 0 };
	const char *why = NULL;
	uint8_t buf[IB_PRIVATE_REQUEST_SIZE];
	int rc;

	memcpy(buf, seen, sizeof(buf));
	if (q->at != NONE) {
		buf[q->at] = q->value & 0xff;
		buf[q->at + 1] = (uint8_t)(q->value >> 8);
	}
	rc = ib_admit(&terms, &from, buf, q->length ? q->length : sizeof(buf),
		      &request, &reject, &why);
	cr_expect_eq(rc, q->rc, "%s: %d", q->what, rc);
	if (!rc) {
		cr_expect_eq(request.peer.stamp, STAMP_N);
		cr_expect_eq(lnet_nid_to_nid4(&request.peer.nid), NID_N);
		return;
	}
	cr_expect_not_null(why, "%s", q->what);
	cr_expect_eq(reject.reason, q->reason, "%s: %u", q->what,
		     reject.reason);
	cr_expect_eq(reject.version, IB_VERSION_2);
	cr_expect_eq(reject.params.max_msg_size, IB_MSG_SIZE_MAX);
	cr_expect_eq(reject.stamp, q->named ? STAMP_P : 0, "%s", q->what);
	cr_expect_eq(reject.params.queue_depth, q->named ? q->depth : 0);
	cr_expect_eq(reject.params.max_frags, q->named ? q->frags : 0);
}

Test(o2ib_admit, requests)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(requests); i++)
		check_request(&requests[i]);
}

Test(o2ib_admit, known_life)
{
	struct ib_terms terms = { end_of(NID_P, STAMP_P), 8, 257, false,
				  false };
	struct ib_envelope env = { IB_VERSION_2, end_of(NID_N, STAMP_N),
				   end_of(NID_P, STAMP_P) };
	struct ib_hdr hdr = ib_hdr_of(&env);
	struct ib_conn_params params = { 4, 256, IB_MSG_SIZE_MAX };
	struct ib_source from = { env.src.nid, 1 };
	struct ib_request request;
	struct ib_reject reject;
	uint8_t buf[IB_PRIVATE_REQUEST_SIZE];
	const char *why;

	ib_conn_encode(&hdr, IB_MSG_CONNREQ, &params, buf);
	cr_assert_eq(ib_admit(&terms, &from, buf, sizeof(buf), &request,
			      &reject, &why),
		     0);
	cr_expect_eq(request.depth, 4);
	cr_expect_eq(request.frags, 256);
	/* Without an incarnation a restart could not be noticed. */
	env.src.stamp = 0;
	hdr = ib_hdr_of(&env);
	ib_conn_encode(&hdr, IB_MSG_CONNREQ, &params, buf);
	cr_assert_eq(ib_admit(&terms, &from, buf, sizeof(buf), &request,
			      &reject, &why),
		     -EPROTO);
}

#define P NID_P, STAMP_P
#define N NID_N, STAMP_N

/* What P may answer if N asks for 8 messages and 256 fragments. */
static const struct answer {
	const char *what;
	int rc;
	enum ib_msg_type type;
	uint16_t version;
	uint64_t src, src_stamp, dst, dst_stamp;
	uint16_t depth, frags;
	uint32_t size;
} answers[] = {
	{ "good", 0, IB_MSG_CONNACK, 0x12, P, N, 8, 256, 4096 },
	{ "less", 0, IB_MSG_CONNACK, 0x12, P, N, 1, 1, 4096 },
	{ "a request", -EPROTO, IB_MSG_CONNREQ, 0x12, P, N, 8, 256, 4096 },
	{ "version", -EPROTO, IB_MSG_CONNACK, 0x11, P, N, 8, 256, 4096 },
	{ "depth", -EPROTO, IB_MSG_CONNACK, 0x12, P, N, 9, 256, 4096 },
	{ "no depth", -EPROTO, IB_MSG_CONNACK, 0x12, P, N, 0, 256, 4096 },
	{ "frags", -EPROTO, IB_MSG_CONNACK, 0x12, P, N, 8, 257, 4096 },
	{ "no frags", -EPROTO, IB_MSG_CONNACK, 0x12, P, N, 8, 0, 4096 },
	{ "size", -EPROTO, IB_MSG_CONNACK, 0x12, P, N, 8, 256, 4097 },
	{ "somebody else", -ESTALE, IB_MSG_CONNACK, 0x12, NID_X, STAMP_P, N, 8,
	  256, 4096 },
	{ "no life", -ESTALE, IB_MSG_CONNACK, 0x12, NID_P, 0, N, 8, 256, 4096 },
	{ "to whom", -ESTALE, IB_MSG_CONNACK, 0x12, P, NID_X, STAMP_N, 8, 256,
	  4096 },
	{ "to when", -ESTALE, IB_MSG_CONNACK, 0x12, P, NID_N, 1, 8, 256, 4096 },
};

static int admit_answer(const void *bytes, size_t length,
			struct ib_request *agreed)
{
	struct ib_end self = end_of(N);
	struct ulnet_nid peer = lnet_nid_from_nid4(NID_P);
	struct ib_request asked = { .depth = 8, .frags = 256 };
	const char *why;

	return ib_admit_answer(&self, &peer, &asked, bytes, length, agreed,
			       &why);
}

static void check_answer(const struct answer *a)
{
	struct ib_envelope env = { a->version, end_of(a->src, a->src_stamp),
				   end_of(a->dst, a->dst_stamp) };
	struct ib_hdr hdr = ib_hdr_of(&env);
	struct ib_conn_params params = { a->depth, a->frags, a->size };
	uint8_t buf[IB_PRIVATE_ACCEPT_SIZE] = { 0 };
	struct ib_request agreed;
	int rc;

	ib_conn_encode(&hdr, a->type, &params, buf);
	rc = admit_answer(buf, sizeof(buf), &agreed);
	cr_expect_eq(rc, a->rc, "%s: %d", a->what, rc);
	if (rc)
		return;
	cr_expect_eq(agreed.depth, a->depth);
	cr_expect_eq(agreed.frags, a->frags);
	cr_expect_eq(agreed.peer.stamp, STAMP_P);
}

Test(o2ib_admit, answers)
{
	struct ib_request agreed;

	for (unsigned int i = 0; i < ARRAY_SIZE(answers); i++)
		check_answer(&answers[i]);
	cr_expect_eq(admit_answer(seen, 10, &agreed), -EPROTO);
}
