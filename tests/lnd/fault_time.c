/* SPDX-License-Identifier: BSD-3-Clause */
/* Keepalives, messages that are complete once they are written, and pauses
 * between attempts. */
#include "tests/lnd/fault.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The node sends keepalives on the control connection, and answers none of the
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

/* ---- pauses between attempts ---- */

/* Sends a PUT whose connection cannot be opened. */
static struct box *failing_put(struct fx *fx, const struct raw_peer *s)
{
	struct box *b = box_new(fx, 100, CUT_NONE);

	box_bind(b, 0, 1, fx_patience(fx));
	box_put_to(b, &s->nid, false, PORTAL, 1, 0);
	return b;
}

static void expect_failed(struct fx *fx, struct box *b)
{
	expect(fx, fx_wait(fx, &b->unlinked, 1));
	expect(fx, b->outcomes[LNET_OUTCOME_NOT_DELIVERED] == 1);
}

/* Does the node connect to the peer before the operation ends? */
static bool calls_for(struct fx *fx, struct raw_peer *s, struct box *b)
{
	while (!raw_peer_is_called(s) && !fx_read(fx, &b->terminals))
		fx_run(fx, 100);
	return raw_peer_is_called(s);
}

/* A message waits for the next attempt, and shares its outcome. Pauses grow
 * while attempts fail, and a success resets them. Attempts are made only if
 * there are messages. */
static void pauses(struct fx *fx)
{
	struct lnet *node = fx->rig->node[0];
	enum sock_type type;
	struct raw_peer s;
	struct bystander bystander;
	struct box *b;
	int fd[3];

	if (!visit_begin(fx, &bystander, &s))
		return;
	expect(fx, raw_peer_listen(&s) == 0);
	for (unsigned int k = 1; k <= 6; k++) {
		struct box *too = box_new(fx, 100, CUT_NONE);

		b = failing_put(fx, &s);
		box_bind(too, 0, 1, fx_patience(fx));
		box_put_to(too, &s.nid, false, PORTAL, 1, 0);
		expect(fx, calls_for(fx, &s, b));
		close(raw_peer_accept(&s));
		expect_failed(fx, b);
		expect_failed(fx, too);
		expect(fx,
		       census_wait(fx, node, &s.nid, census_failures_are, k));
		expect(fx, !raw_peer_is_called(&s));
	}
	b = failing_put(fx, &s);
	for (int i = 0; i < 3; i++)
		fd[i] = raw_peer_answer(&s, &type);
	expect(fx, raw_peer_has_conns(fx, &s, 3));
	expect(fx, census_wait(fx, node, &s.nid, census_failures_are, 0));
	expect(fx, fx_wait(fx, &b->n[LNET_EVENT_SEND], 1));
	close_all(fd, 3);
	visit_end(fx, &bystander, &s);
}

/* ---- the list ---- */

static const struct behaviour list[] = {
	{ "signs of life", 0, keepalive },
	{ "large messages ask for nothing", 0, not_to_be_acknowledged },
	{ "half of a message", HASTY, half_a_message },
	{ "a long message, byte by byte", HASTY, byte_by_byte },
	{ "pauses between attempts to connect", 0, pauses },
};

const struct topic topic_time = { list, ARRAY_SIZE(list) };
