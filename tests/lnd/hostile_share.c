/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile peers that take more than their share, or speak for others: correct
 * peers must not notice (requirements I1, I3). */
#include "tests/lnd/hostile.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lnd/socklnd/message.h"

static struct frame ping_of(const struct raw_peer *s)
{
	struct frame f = { .hdr.type = SOCK_MSG_LNET };

	f.lnet = raw_peer_put_hdr(s, 0, PING_BITS, 0, 0);
	f.lnet.type = LNET_MSG_GET;
	f.lnet.length = 4096;
	return f;
}

/* The node stops reading from a peer that sends requests without end and reads
 * no answer. */
static void reads_nothing(struct fx *fx)
{
	uint64_t before = fx_stat(fx, 0, "parked");
	uint8_t bytes[64 * FRAME_HDR];
	size_t at = 0, n;
	struct raw_peer s;
	struct bystander bystander;
	struct census c;
	struct frame f;
	uint64_t waited = 0;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s) || !raw_peer_open_all(fx, &s, fd))
		return;
	f = ping_of(&s);
	n = raw_peer_hdr(&s, &f.hdr, &f.lnet, bytes);
	for (unsigned int i = 1; i < 64; i++)
		memcpy(bytes + i * n, bytes, n);
	n *= 64;
	while (fx_stat(fx, 0, "parked") == before && waited < fx_patience(fx)) {
		ssize_t did = send(fd[0], bytes + at, n - at,
				   MSG_DONTWAIT | MSG_NOSIGNAL);

		if (did > 0) {
			at = (at + (size_t)did) % n;
			continue;
		}
		fx_run(fx, 1000);
		waited += 1000;
	}
	expect(fx, fx_stat(fx, 0, "parked") > before);
	expect(fx, fx_stat(fx, 0, "drop_no_memory") == 0);
	/* What was read before that is kept, and is no more than one read; the
	 * rest stays in the system. */
	census_take(fx->rig->node[0], &s.nid, &c);
	expect(fx, c.readahead <= RX_LIMIT_SMALL_FRAMES);
	bystander_goes_on(fx, &bystander);
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

enum { PUTS = 400, SIZE = 50 };

/* The peer's messages wait for a buffer, up to its share. What comes then
 * waits, with all that is behind it on the connection, and goes on when there
 * is a buffer. */
static void waits_for_its_share(struct fx *fx)
{
	uint64_t before = fx_stat(fx, 0, "parked");
	struct frame put = { .hdr.type = SOCK_MSG_LNET }, f;
	struct raw_peer s;
	struct bystander bystander;
	struct box *b, *src;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s) || !raw_peer_open_all(fx, &s, fd))
		return;
	src = box_new(fx, SIZE, CUT_NONE);
	box_fill(src, 33);
	expect(fx, LNetSetLazyPortal(fx->rig->node[0], LAZY) == 0);
	put.payload = src->iov[0].iov_base;
	for (unsigned int i = 0; i < PUTS; i++) {
		put.lnet = raw_peer_put_hdr(&s, LAZY, 1, HDR(33, i), SIZE);
		put.lnet.wmd = LNET_WIRE_NONE;
		expect(fx, raw_peer_say(&s, fd[0], &put));
	}
	f = ping_of(&s);
	expect(fx, raw_peer_say(&s, fd[0], &f));
	expect(fx, fx_wait_stat(fx, 0, "parked", before + 1));
	bystander_goes_on(fx, &bystander);
	expect(fx, is_silent(fd[0]));
	b = box_new(fx, PUTS * SIZE, CUT_NONE);
	expect(fx, box_post(b, &(struct post){ .side = 0,
					       .portal = LAZY,
					       .bits = 1,
					       .options = LNET_MD_OP_PUT,
					       .threshold = PUTS }));
	expect(fx, fx_wait(fx, &b->n[LNET_EVENT_PUT], PUTS));
	expect(fx, raw_peer_hear(&s, fd[0], &f) == 0 &&
			   f.lnet.type == LNET_MSG_REPLY);
	raw_peer_pings(fx, &s, fd[0]);
	expect(fx, LNetClearLazyPortal(fx->rig->node[0], LAZY) == 0);
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* Returns how many bytes are allocated, large blocks included. (Returns 0 where
 * a sanitizer has its own malloc.) */
static size_t memory_used(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* A payload in a bounce buffer that is dropped before its last byte has come
 * takes no memory any more, and the connection goes on behind that byte. */
static void never_ends(struct fx *fx)
{
	struct frame put = { .hdr.type = SOCK_MSG_LNET };
	uint64_t drops = fx_stat(fx, 0, "drop_no_match");
	size_t before, frame;
	struct raw_peer s;
	struct bystander bystander;
	struct census c;
	uint64_t us = 0;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s) || !raw_peer_open_all(fx, &s, fd))
		return;
	expect(fx, LNetSetLazyPortal(fx->rig->node[0], LAZY) == 0);
	before = memory_used();
	put.lnet = raw_peer_put_hdr(&s, LAZY, 1, 0, LNET_MTU);
	frame = raw_peer_hdr(&s, &put.hdr, &put.lnet, s.buf);
	memset(s.buf + frame, 1, LNET_MTU);
	expect(fx, say(fd[0], s.buf, frame + LNET_MTU - 1));
	do {
		fx_run(fx, 1000);
		census_take(fx->rig->node[0], &s.nid, &c);
	} while (!c.reading && (us += 1000) < fx_patience(fx));
	expect(fx, c.reading == 1);
	expect(fx, LNetClearLazyPortal(fx->rig->node[0], LAZY) == 0);
	expect(fx, fx_wait_stat(fx, 0, "drop_no_match", drops + 1));
	for (us = 0; memory_used() > before + LNET_MTU / 2 &&
		     expect(fx, us < fx_patience(fx));
	     us += 1000)
		fx_run(fx, 1000);
	expect(fx, say(fd[0], s.buf, 1));
	raw_peer_pings(fx, &s, fd[0]);
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* Pings with invented sources are dropped, and cause no connections. */
static void false_sources(struct fx *fx)
{
	uint64_t before = fx_stat(fx, 0, "drop_false_source");
	struct raw_peer s;
	struct bystander bystander;
	struct frame f;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s) || !raw_peer_open_all(fx, &s, fd))
		return;
	f = ping_of(&s);
	for (uint32_t i = 0; i < 2000; i++) {
		f.lnet.src_nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
					       0x7f010000 + i);
		expect(fx, raw_peer_say(&s, fd[0], &f));
	}
	/* the NID of the bystander is as false when it comes from this peer */
	f.lnet.src_nid = fx->rig->nid[1];
	expect(fx, raw_peer_say(&s, fd[0], &f));
	raw_peer_pings(fx, &s, fd[0]);
	expect(fx, fx_stat(fx, 0, "drop_false_source") == before + 2001);
	bystander_goes_on(fx, &bystander);
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* The peer answers a request that was sent to another peer, and knows all that
 * the answer must contain. */
static void false_answer(struct fx *fx)
{
	uint64_t before = fx_stat(fx, 0, "drop_not_asked");
	struct frame f = { .hdr.type = SOCK_MSG_LNET }, got;
	static uint8_t lie[100];
	struct raw_peer s, other;
	struct bystander bystander;
	struct box *b;
	int fd[3], fd2[3];

	if (!visit_begin(fx, &bystander, &s) || !raw_peer_open_all(fx, &s, fd))
		return;
	raw_peer_init(&other, fx, "127.0.0.8@tcp");
	if (!raw_peer_open_all(fx, &other, fd2))
		return;
	b = box_new(fx, sizeof(lie), CUT_NONE);
	if (!box_bind(b, 0, 2, fx_patience(fx)) ||
	    !box_get_to(b, &s.nid, PORTAL, 9) ||
	    !expect(fx, raw_peer_hear(&s, fd[0], &got) == 0))
		return;
	f.payload = lie;
	f.lnet = raw_peer_put_hdr(&other, 0, 0, 0, sizeof(lie));
	f.lnet.type = LNET_MSG_REPLY;
	f.lnet.wmd = got.lnet.wmd;
	expect(fx, raw_peer_say(&other, fd2[0], &f));
	raw_peer_pings(fx, &other, fd2[0]);
	/* the GET's CPT judges the answer, not the one that answers pings */
	expect(fx, fx_wait_stat(fx, 0, "drop_not_asked", before + 1));
	box_end(b);
	expect(fx, b->terminals == 1);
	expect(fx, b->outcomes[LNET_OUTCOME_DELIVERED] == 0);
	close_all(fd2, 3);
	expect(fx, raw_peer_has_conns(fx, &other, 0));
	raw_peer_fini(&other);
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* ---- the list ---- */

static const struct behaviour list[] = {
	{ "a stranger reads no answers", 0, reads_nothing },
	{ "a stranger waits for its share", 0, waits_for_its_share },
	{ "a stranger never ends what is dropped", 0, never_ends },
	{ "pings in the name of others", 0, false_sources },
	{ "an answer in the place of another", 0, false_answer },
};

const struct topic topic_shares = { list, ARRAY_SIZE(list) };
