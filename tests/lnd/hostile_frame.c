/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile peers with open connections, whose frames are malformed, or say what
 * cannot be. If one connection is closed, all of that peer are. */
#include "tests/lnd/hostile.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- one number is wrong ---- */

/* Offsets in a frame: first socklnd's header, then LNet's. */
enum {
	AT_TYPE = 0,
	AT_CSUM = 4,
	AT_COOKIE0 = 8,
	AT_COOKIE1 = 16,
	AT_DEST = 24,
	AT_SRC = 32,
	AT_LNET_TYPE = 48,
	AT_LENGTH = 52,
	AT_GET_LENGTH = 88,
	AT_PORTAL = 88,
	AT_OFFSET = 92,
};

enum { CLOSES, KEPT };

/* Patches of a PUT without payload, to a portal that nobody uses. */
static const struct patch numbers[] = {
	{ "type 0", AT_TYPE, 4, 0, CLOSES },
	{ "type 0xc2", AT_TYPE, 4, 0xc2, CLOSES },
	{ "type in the other order", AT_TYPE, 4, 0xc1000000, CLOSES },
	{ "wrong checksum of nothing", AT_CSUM, 4, 12345, CLOSES },
	{ "checksum of nothing", AT_CSUM, 4, 0xffffffff, KEPT },
	{ "acknowledges what was not asked for", AT_COOKIE1, 8, 77, CLOSES },
	{ "acknowledges cookie 2^64-1", AT_COOKIE1, 8, UINT64_MAX, CLOSES },
	{ "a sign of life", AT_COOKIE1, 8, 1, KEPT },
	{ "for another NID of this net", AT_DEST, 8, TCP_NID(0x7f000008),
	  CLOSES },
	{ "for the sane peer", AT_DEST, 8, TCP_NID(0x7f000006), CLOSES },
	{ "for another net", AT_DEST, 8, UINT64_C(0x000200077f000005), KEPT },
	{ "payload of 4 G", AT_LENGTH, 4, 0xffffffff, CLOSES },
	{ "payload of 2 G", AT_LENGTH, 4, 0x80000000, CLOSES },
	{ "payload of 1 M and 1", AT_LENGTH, 4, LNET_MTU + 1, CLOSES },
	{ "a HELLO", AT_LNET_TYPE, 4, 4, CLOSES },
	{ "type 5", AT_LNET_TYPE, 4, 5, CLOSES },
	{ "type -1", AT_LNET_TYPE, 4, 0xffffffff, CLOSES },
	{ "an ACK for nobody", AT_LNET_TYPE, 4, LNET_MSG_ACK, KEPT },
	{ "a REPLY for nobody", AT_LNET_TYPE, 4, LNET_MSG_REPLY, KEPT },
	{ "portal 64", AT_PORTAL, 4, 64, KEPT },
	{ "portal 4 G", AT_PORTAL, 4, 0xffffffff, KEPT },
	{ "offset 4 G", AT_OFFSET, 4, 0xffffffff, KEPT },
	{ "nothing wrong", 0, 0, 0, KEPT },
};

static void one_number(struct fx *fx, struct raw_peer *s, const struct patch *p)
{
	struct sock_hdr hdr = { .type = SOCK_MSG_LNET };
	struct lnet_hdr lnet = raw_peer_put_hdr(s, EMPTY, 1, 1, 0);
	struct raw_peer little = *s;
	uint8_t buf[256];
	int fd[3];

	if (!raw_peer_open_all(fx, s, fd))
		return;
	/* LNet's header is always little-endian */
	little.swap = false;
	lnet.wmd = LNET_WIRE_NONE;
	raw_peer_hdr(s, &hdr, &lnet, buf);
	raw_peer_number(p->at < AT_DEST ? s : &little, buf + p->at, p->width,
			p->value);
	say(fd[0], buf, FRAME_HDR);
	if (p->then == KEPT)
		expect(fx, raw_peer_pings(fx, s, fd[0]));
	else
		expect(fx, hear_ends(fd, 3));
	close_all(fd, 3);
	expect(fx, raw_peer_has_conns(fx, s, 0));
}

static void bad_numbers(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	each_patch(fx, &s, numbers, ARRAY_SIZE(numbers), one_number);
	visit_end(fx, &bystander, &s);
}

/* Messages with a payload whose types have none; and a payload that is too
 * long. */
static void bad_payloads(struct fx *fx)
{
	static const struct {
		const char *name;
		uint32_t type, length;
	} all[] = {
		{ "GET with payload", LNET_MSG_GET, 100 },
		{ "ACK with payload", LNET_MSG_ACK, 1 },
		{ "REPLY of more than 1 M", LNET_MSG_REPLY, LNET_MTU + 1 },
		{ "PUT of 4 G - 1", LNET_MSG_PUT, 0xffffffff },
	};
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		unsigned int before = fx->failures;
		struct frame f = { .hdr.type = SOCK_MSG_LNET };
		int fd = raw_peer_open(&s, SOCK_BULK_OUT);

		f.lnet = raw_peer_put_hdr(&s, EMPTY, 1, 1, all[i].length);
		f.lnet.type = all[i].type;
		raw_peer_say(&s, fd, &f);
		expect(fx, hear_end(fd));
		close(fd);
		expect(fx, raw_peer_has_conns(fx, &s, 0));
		say_which(fx, before, all[i].name);
	}
	visit_end(fx, &bystander, &s);
}

/* ---- acknowledgements ---- */

/* The node never asks for acknowledgements, not even of large messages, so each
 * one is an error. */
static void bad_acks(struct fx *fx)
{
	static const struct {
		const char *name;
		uint64_t c0, c1;
	} all[] = {
		{ "one", 0, 77 },
		{ "one, beside a sign of life", 77, 1 },
		{ "a range", 2, 5 },
		{ "two", 5, 2 },
		{ "everything", 2, UINT64_MAX },
	};
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++) {
		unsigned int before = fx->failures;
		int fd[3];

		if (!raw_peer_open_all(fx, &s, fd))
			break;
		raw_peer_ack(&s, fd[0], all[i].c0, all[i].c1);
		expect(fx, hear_ends(fd, 3));
		close_all(fd, 3);
		expect(fx, raw_peer_has_conns(fx, &s, 0));
		say_which(fx, before, all[i].name);
	}
	visit_end(fx, &bystander, &s);
}

/* A large message that asks for an acknowledgement gets one, and only one. */
static void asks_for_acks(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (int swap = 0; swap < 2; swap++) {
		struct frame f = { .payload = s.buf };

		s.swap = swap;
		if (!raw_peer_open_all(fx, &s, fd))
			break;
		for (uint64_t c = 2; c < 6; c++) {
			f.hdr = (struct sock_hdr){ .type = SOCK_MSG_LNET,
						   .cookie = { c } };
			f.lnet = raw_peer_put_hdr(&s, EMPTY, 1, 1, 50000);
			f.lnet.wmd = LNET_WIRE_NONE;
			raw_peer_say(&s, fd[2], &f);
			expect(fx, raw_peer_hear(&s, fd[2], &f) == 0);
			expect(fx, f.hdr.type == SOCK_MSG_NOOP);
			expect(fx, f.hdr.cookie[0] == 0);
			expect(fx, f.hdr.cookie[1] == c);
			f.payload = s.buf;
		}
		raw_peer_pings(fx, &s, fd[0]);
		close_all(fd, 3);
		expect(fx, raw_peer_has_conns(fx, &s, 0));
	}
	visit_end(fx, &bystander, &s);
}

/* An answer that is sent to the peer anyway carries the acknowledgement,
 * whatever connection it uses, and then there is no NOOP. This holds for
 * answers of the same CPT: one of another CPT comes too late. */
static void answers_take_acks(struct fx *fx)
{
	const struct real_net *net = fx->rig->arg;
	const uint32_t size = 50000;
	struct raw_peer s;
	struct bystander bystander;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (int swap = 0; swap < 2; swap++) {
		struct box *dst = box_new(fx, size, CUT_NONE);
		struct box *src = box_new(fx, size, CUT_NONE);
		struct frame f = { .hdr = { .type = SOCK_MSG_LNET,
					    .cookie = { 77 } },
				   .payload = src->iov[0].iov_base };

		box_fill(src, 34);
		s.swap = swap;
		if (!raw_peer_open_all(fx, &s, fd) ||
		    !box_post(dst, &(struct post){ .portal = PORTAL,
						   .bits = 34,
						   .options = LNET_MD_OP_PUT }))
			break;
		f.lnet = raw_peer_put_hdr(&s, PORTAL, 34, HDR(34, 0), size);
		raw_peer_say(&s, fd[2], &f);
		expect(fx, raw_peer_hear(&s, fd[0], &f) == 0);
		expect(fx, f.hdr.type == SOCK_MSG_LNET);
		expect(fx, f.hdr.cookie[0] == 0);
		expect(fx, f.lnet.type == LNET_MSG_ACK);
		expect(fx, f.hdr.cookie[1] == 77 || net->cpts > 1);
		raw_peer_pings(fx, &s, fd[0]);
		expect(fx, is_silent(fd[2]) == (f.hdr.cookie[1] == 77));
		close_all(fd, 3);
		expect(fx, raw_peer_has_conns(fx, &s, 0));
	}
	visit_end(fx, &bystander, &s);
}

/* ---- checksums ---- */

/* Returns the checksum of a frame's bytes in the peer's byte order, with a
 * checksum field of 0. */
static uint32_t csum_of(const struct raw_peer *s, const struct frame *f)
{
	uint8_t buf[SOCK_HDR_SIZE + LNET_HDR_LARGE_SIZE];
	size_t n = raw_peer_hdr(s, &f->hdr, &f->lnet, buf);
	uint32_t csum = SOCK_CSUM_INIT;

	if (s->version == 2)
		csum = sock_csum(csum, buf, n);
	return sock_csum(csum, f->payload, f->lnet.payload_length);
}

/* Sends one message with a checksum. @wrong: message and connection must fail.
 */
static void one_csum(struct fx *fx, struct raw_peer *s, uint32_t size,
		     bool wrong)
{
	struct box *dst = box_new(fx, size, CUT_NONE);
	struct box *src = box_new(fx, size, CUT_NONE);
	struct frame f = { .hdr.type = SOCK_MSG_LNET,
			   .payload = src->iov[0].iov_base };
	int fd = raw_peer_open(s, s->version == 2 ? SOCK_ANY : SOCK_CONTROL);

	if (!expect(fx, fd >= 0))
		return;
	box_fill(src, 44);
	if (!box_post(dst, &(struct post){ .portal = PORTAL,
					   .bits = 44,
					   .options = LNET_MD_OP_PUT }))
		return;
	f.lnet = raw_peer_put_hdr(s, PORTAL, 44, HDR(44, 0), size);
	f.lnet.wmd = LNET_WIRE_NONE;
	f.hdr.csum = csum_of(s, &f) ^ wrong;
	raw_peer_say(s, fd, &f);
	expect(fx, fx_wait(fx, &dst->unlinked, 1));
	expect(fx, dst->n[LNET_EVENT_PUT] == !wrong);
	if (wrong) {
		expect(fx, dst->failed[LNET_EVENT_PUT] == 1);
		expect(fx, dst->last[LNET_EVENT_PUT].status == -EIO);
		expect(fx, hear_end(fd));
	} else {
		raw_peer_pings(fx, s, fd);
	}
	close(fd);
	expect(fx, raw_peer_has_conns(fx, s, 0));
}

static void checksums(struct fx *fx)
{
	static const uint32_t sizes[] = { 1, 1000, 8192, 300000 };
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (unsigned int k = 0; k < 4; k++) {
		s.version = 2 + k / 2;
		s.swap = k % 2;
		for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
			one_csum(fx, &s, sizes[i], false);
			one_csum(fx, &s, sizes[i], true);
		}
	}
	visit_end(fx, &bystander, &s);
}

/* ---- what is strange, but right ---- */

#define MIN_BULK 8192 /* the default of the tunable */

/* Sends messages of all sizes in both directions, on the open connections. */
static void all_sizes(struct fx *fx, struct raw_peer *s, int ctl, int in,
		      int out)
{
	static const uint32_t sizes[] = {
		0, 1, 900, 5000, 9000, 20000, LNET_MTU
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		int hears = sizes[i] < MIN_BULK - FRAME_HDR ? ctl : in;
		struct box *src = box_new(fx, sizes[i], CUT_NONE);
		struct box *same = box_new(fx, sizes[i], CUT_NONE);
		struct frame f;

		raw_peer_puts(fx, s, sizes[i] < MIN_BULK ? ctl : out, sizes[i]);
		box_fill(src, i);
		box_fill(same, i);
		if (!box_bind(src, 0, 1, fx_patience(fx)) ||
		    !box_put_to(src, &s->nid, false, PORTAL, 5, 6) ||
		    !expect(fx, raw_peer_hear(s, hears, &f) == 0))
			return;
		expect(fx, f.lnet.payload_length == sizes[i]);
		expect(fx, f.lnet.match_bits == 5);
		expect(fx, !memcmp(f.payload, same->iov[0].iov_base, sizes[i]));
		expect(fx, f.hdr.cookie[0] == 0);
		expect(fx, fx_wait(fx, &src->unlinked, 1));
		expect(fx, src->n[LNET_EVENT_SEND] == 1);
	}
	raw_peer_pings(fx, s, ctl);
}

static void other_order(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s))
		return;
	s.swap = true;
	if (raw_peer_open_all(fx, &s, fd))
		all_sizes(fx, &s, fd[0], fd[1], fd[2]);
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* Protocol version 2 has one connection for everything. */
static void protocol_2(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	s.version = 2;
	for (int swap = 0; swap < 2; swap++) {
		int fd;

		s.swap = swap;
		fd = raw_peer_open(&s, SOCK_ANY);
		if (expect(fx, fd >= 0))
			all_sizes(fx, &s, fd, fd, fd);
		close(fd);
		expect(fx, raw_peer_has_conns(fx, &s, 0));
	}
	visit_end(fx, &bystander, &s);
}

/* ---- cut, in pieces, at random ---- */

/* Makes a frame whose payload a buffer waits for. */
static size_t good_frame(const struct raw_peer *s, uint32_t size, uint8_t *buf)
{
	struct sock_hdr hdr = { .type = SOCK_MSG_LNET };
	struct lnet_hdr lnet =
		raw_peer_put_hdr(s, PORTAL, 55, HDR(55, 0), size);

	lnet.wmd = LNET_WIRE_NONE;
	return raw_peer_hdr(s, &hdr, &lnet, buf);
}

static void cut_frames(struct fx *fx)
{
	uint8_t buf[256] = { 0 };
	struct raw_peer s;
	struct bystander bystander;
	size_t n;

	if (!visit_begin(fx, &bystander, &s))
		return;
	n = good_frame(&s, 100, buf);
	for (size_t cut = 0; cut < n + 100; cut++) {
		int fd = raw_peer_open(&s, SOCK_CONTROL);

		if (!expect(fx, fd >= 0))
			break;
		say(fd, buf, cut);
		close(fd);
		if (!expect(fx, raw_peer_has_conns(fx, &s, 0)))
			break;
	}
	visit_end(fx, &bystander, &s);
}

/* The connection ends within the payload of a long message for which a buffer
 * waits. */
static void cut_payloads(struct fx *fx)
{
	static const uint32_t cuts[] = { 0, 1, 8191, 500000, LNET_MTU - 1 };
	struct raw_peer s;
	struct bystander bystander;

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(cuts); i++) {
		struct box *dst = box_new(fx, LNET_MTU, CUT_ODD);
		int fd = raw_peer_open(&s, SOCK_BULK_OUT);
		uint8_t hdr[256];

		if (!expect(fx, fd >= 0) ||
		    !box_post(dst, &(struct post){ .portal = PORTAL,
						   .bits = 55,
						   .options = LNET_MD_OP_PUT }))
			break;
		say(fd, hdr, good_frame(&s, LNET_MTU, hdr));
		say(fd, s.buf, cuts[i]);
		close(fd);
		expect(fx, fx_wait(fx, &dst->unlinked, 1));
		expect(fx, dst->n[LNET_EVENT_PUT] == 0);
		expect(fx, dst->failed[LNET_EVENT_PUT] == 1);
		expect(fx, raw_peer_has_conns(fx, &s, 0));
	}
	visit_end(fx, &bystander, &s);
}

static void frame_in_pieces(struct fx *fx)
{
	struct box *dst, *src;
	uint8_t buf[256];
	struct raw_peer s;
	struct bystander bystander;
	size_t n;
	int fd;

	if (!visit_begin(fx, &bystander, &s))
		return;
	dst = box_new(fx, 50, CUT_NONE);
	src = box_new(fx, 50, CUT_NONE);
	box_fill(src, 55);
	n = good_frame(&s, 50, buf);
	memcpy(buf + n, src->iov[0].iov_base, 50);
	fd = raw_peer_open(&s, SOCK_CONTROL);
	if (expect(fx, fd >= 0) &&
	    box_post(dst, &(struct post){ .portal = PORTAL,
					  .bits = 55,
					  .options = LNET_MD_OP_PUT })) {
		say_slowly(fd, buf, n + 50);
		expect(fx, fx_wait(fx, &dst->unlinked, 1));
		expect(fx, dst->n[LNET_EVENT_PUT] == 1);
		raw_peer_pings(fx, &s, fd);
	}
	close(fd);
	visit_end(fx, &bystander, &s);
}

/* Sends correct frames with some bits flipped, or random bytes. */
static bool random_frame(struct fx *fx, struct raw_peer *s, unsigned int k,
			 uint64_t *state)
{
	uint8_t buf[1500];
	size_t n = 0;
	int fd;

	s->swap = hostile_random(state) % 4 == 0;
	s->version = 2 + hostile_random(state) % 3;
	fd = raw_peer_open(s, SOCK_CONTROL);
	if (!expect(fx, fd >= 0)) {
		printf("  round %u: %s\n", k, strerror(-fd));
		return false;
	}
	while (k % 3 && n < 1000)
		n += good_frame(s, 0, buf + n);
	if (k % 3)
		turn_bits(state, buf, n, k % 7);
	fill_randomly(state, buf + n, sizeof(buf) - n);
	say(fd, buf, sizeof(buf));
	shutdown(fd, SHUT_WR);
	if (k % 4 == 0)
		expect(fx, hear_end(fd));
	close(fd);
	return expect(fx, raw_peer_has_conns(fx, s, 0));
}

static void random_frames(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	uint64_t seed;

	if (!visit_begin(fx, &bystander, &s))
		return;
	seed = each_random(fx, &s, 300, random_frame);
	visit_end(fx, &bystander, &s);
	say_seed(fx, seed);
}

/* ---- the list ---- */

static const struct behaviour list[] = {
	{ "frames with wrong numbers", 0, bad_numbers },
	{ "payload where none may be, or too much", 0, bad_payloads },
	{ "acknowledgements of what nobody asked for", 0, bad_acks },
	{ "a stranger asks for acknowledgements", 0, asks_for_acks },
	{ "answers take acknowledgements along", 0, answers_take_acks },
	{ "checksums", 0, checksums },
	{ "the other byte order", 0, other_order },
	{ "protocol 2", 0, protocol_2 },
	{ "frames cut anywhere", 0, cut_frames },
	{ "payloads cut", 0, cut_payloads },
	{ "a frame byte by byte", 0, frame_in_pieces },
	{ "random bytes in frames", 0, random_frames },
};

const struct topic topic_frames = { list, ARRAY_SIZE(list) };
