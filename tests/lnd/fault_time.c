/* SPDX-License-Identifier: BSD-3-Clause */
/* Keepalives, messages that are complete once they are written, and messages of
 * which a part comes late, or never. */
#include "tests/lnd/fault.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The node sends keepalives on the connection from which it reads bulk
 * (SOCK_BULK_IN, which is BULK_OUT to the peer), and answers none of the
 * peer's. */
static void keepalive(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	struct frame f;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s))
		return;
	if (raw_peer_open_all(fx, &s, fd)) {
		expect(fx, raw_peer_hear(&s, fd[2], &f) == 0);
		expect(fx, f.hdr.type == SOCK_MSG_NOOP);
		expect(fx, f.hdr.csum == 0);
		expect(fx, f.hdr.cookie[0] == 0 && f.hdr.cookie[1] == 1);
		for (int i = 0; i < 3; i++)
			expect(fx, raw_peer_ack(&s, fd[i], 0, 1));
		raw_peer_pings(fx, &s, fd[0]);
		expect(fx, is_silent(fd[1]));
	}
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* A large PUT without ACK is complete when it is written: the node does not ask
 * the peer for an acknowledgement, so the peer may stay silent. */
static void not_to_be_acknowledged(struct fx *fx)
{
	struct raw_peer s;
	struct bystander bystander;
	struct box *b;
	struct frame f;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s))
		return;
	if (raw_peer_open_all(fx, &s, fd)) {
		b = box_new(fx, LNET_MTU, CUT_NONE);
		if (box_bind(b, 0, 1, fx_patience(fx)))
			box_put_to(b, &s.nid, false, PORTAL, 1, 0);
		expect(fx, raw_peer_hear(&s, fd[1], &f) == 0);
		expect(fx, f.hdr.cookie[0] == 0);
		expect(fx, f.lnet.payload_length == LNET_MTU);
		expect(fx, fx_wait(fx, &b->terminals, 1));
		expect(fx, b->terminal.status == 0);
		raw_peer_pings(fx, &s, fd[0]);
	}
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* Half of a message arrives, and then nothing: in a payload for a buffer, in
 * one for no buffer, and in a header. */
static void half_a_message(struct fx *fx)
{
	struct frame f = { .hdr.type = SOCK_MSG_LNET };
	struct raw_peer s;
	struct bystander bystander;
	struct box *dst;
	uint8_t hdr[256];
	int fd[3];
	size_t n;

	if (!visit_begin(fx, &bystander, &s))
		return;
	for (unsigned int k = 0; k < 3; k++) {
		if (!raw_peer_open_all(fx, &s, fd))
			break;
		dst = box_new(fx, LNET_MTU, CUT_ODD);
		if (!box_post(dst, &(struct post){ .portal = PORTAL,
						   .bits = 1,
						   .options = LNET_MD_OP_PUT }))
			break;
		f.lnet = raw_peer_put_hdr(&s, k ? EMPTY : PORTAL, 1, 0,
					  LNET_MTU);
		n = raw_peer_hdr(&s, &f.hdr, &f.lnet, hdr);
		say(fd[2], hdr, k == 2 ? n / 2 : n);
		if (k < 2)
			say(fd[2], s.buf, LNET_MTU / 2);
		/* messages on the other connections do not help the stalled one
		 */
		raw_peer_pings(fx, &s, fd[0]);
		expect(fx, hear_ends(fd, 3));
		if (k == 0)
			expect(fx,
			       fx_wait(fx, &dst->failed[LNET_EVENT_PUT], 1));
		box_end(dst);
		expect(fx, dst->n[LNET_EVENT_PUT] == 0);
		close_all(fd, 3);
	}
	visit_end(fx, &bystander, &s);
}

/* Of a long message only a byte comes from time to time, for longer than a peer
 * may be silent; then the rest. A peer that sends so little is slow, not dead.
 * (Its other connections send keepalives.) */
static void byte_by_byte(struct fx *fx)
{
	struct frame f = { .hdr.type = SOCK_MSG_LNET };
	struct box *src, *dst;
	struct raw_peer s;
	struct bystander bystander;
	const uint8_t *p, *end;
	uint8_t hdr[256];
	int fd[3];
	size_t n;

	if (!visit_begin(fx, &bystander, &s))
		return;
	src = box_new(fx, LNET_MTU, CUT_NONE);
	dst = box_new(fx, LNET_MTU, CUT_ODD);
	box_fill(src, 34);
	p = src->iov[0].iov_base;
	end = p + LNET_MTU;
	if (raw_peer_open_all(fx, &s, fd) &&
	    box_post(dst, &(struct post){ .portal = PORTAL,
					  .bits = 34,
					  .options = LNET_MD_OP_PUT })) {
		f.lnet = raw_peer_put_hdr(&s, PORTAL, 34, HDR(34, 0), LNET_MTU);
		f.lnet.wmd = LNET_WIRE_NONE;
		n = raw_peer_hdr(&s, &f.hdr, &f.lnet, hdr);
		say(fd[2], hdr, n);
		say(fd[2], p, LNET_MTU / 2);
		p += LNET_MTU / 2;
		for (int i = 0; i < 15 * HASTY_TIMEOUT; i++) {
			expect(fx, say(fd[2], p++, 1));
			for (int j = 0; j < 2; j++)
				expect(fx, raw_peer_ack(&s, fd[j], 0, 1));
			fx_run(fx, 100000);
		}
		expect(fx, say(fd[2], p, (size_t)(end - p)));
		expect(fx, fx_wait(fx, &dst->n[LNET_EVENT_PUT], 1));
		expect(fx, dst->failed[LNET_EVENT_PUT] == 0);
	}
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* ---- the list ---- */

static const struct behaviour list[] = {
	{ "signs of life", 0, keepalive },
	{ "large messages ask for nothing", 0, not_to_be_acknowledged },
	{ "half of a message", HASTY, half_a_message },
	{ "a long message, byte by byte", HASTY, byte_by_byte },
};

const struct topic topic_time = { list, ARRAY_SIZE(list) };
