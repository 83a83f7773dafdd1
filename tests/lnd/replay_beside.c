/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What our node sends that is on no tape. A push of discovery that answers no
 * ping may take any path between the two nodes, and so another connection than
 * on the tape, or one that the tape does not have. The test accepts it wherever
 * the node sends it, checks all of it, and acknowledges it.
 */
#include "tests/lnd/replay.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "lnet/nid/nid.h"
#include "tests/lnd/netns.h"

#define ACCEPT_PORT 988

/* ---- where ---- */

static bool listens_at(struct replay *r, const struct ulnet_nid *nid)
{
	struct replay_beside *b = &r->beside;
	union netif_addr to = netif_addr(nid, ACCEPT_PORT);

	for (unsigned int k = 0; k < b->nlisten; k++)
		if (netif_addr_is(&b->at[k], nid))
			return true;
	if (b->nlisten == REPLAY_NIDS_MAX || replay_add_addr(&to) ||
	    raw_listen(&to, &b->listen_fd[b->nlisten]))
		return false;
	b->at[b->nlisten++] = to;
	return true;
}

/* Listens at the NIDs that the ping information in frame @i names, if they are
 * on a net of our node. */
static bool listen_as_told(struct replay *r, unsigned int i)
{
	const struct tape_frame *f = &r->tape.frame[i];
	struct ulnet_ping_ni ni[REPLAY_NIDS_MAX];
	struct ulnet_ping_info info;
	size_t need;

	if (ping_info_decode(f->bytes + replay_head(&r->tape),
			     f->len - replay_head(&r->tape), &info, ni,
			     REPLAY_NIDS_MAX, &need))
		return false;
	for (unsigned int k = 0; k < info.nnis; k++) {
		if (lnet_nid_net(&ni[k].nid) ==
			    lnet_nid_net(&r->plan.step[i].hdr.src_nid) &&
		    !netif_addr_is(&r->tape.conn[0].to, &ni[k].nid) &&
		    !listens_at(r, &ni[k].nid))
			return false;
	}
	return true;
}

bool replay_beside_open(struct replay *r)
{
	for (unsigned int i = 0; i < r->tape.nframes; i++)
		if (r->tape.frame[i].kind == TAPE_LNET &&
		    !r->plan.step[i].ours && replay_is_info(&r->plan, i) &&
		    !listen_as_told(r, i))
			return replay_complain(r, i, "cannot listen for it");
	return true;
}

void replay_beside_close(struct replay *r)
{
	struct replay_beside *b = &r->beside;

	for (unsigned int k = 0; k < b->nconns; k++)
		raw_close(&b->conn[k].raw);
	for (unsigned int k = 0; k < b->nlisten; k++)
		close(b->listen_fd[k]);
}

/* ---- messages ---- */

/* Is this the ping information of a frame on the tape, as our node sends it? */
static bool is_told_on_tape(const struct replay *r, const uint8_t *info,
			    size_t len)
{
	for (unsigned int i = 0; i < r->tape.nframes; i++) {
		const struct replay_step *s = &r->plan.step[i];
		const struct tape_frame *f = &r->tape.frame[i];

		if (f->kind == TAPE_LNET && s->ours && s->part != PART_ORIGIN &&
		    replay_is_info(&r->plan, i) &&
		    f->len == replay_head(&r->tape) + len &&
		    !memcmp(f->bytes + replay_head(&r->tape), info, len))
			return true;
	}
	return false;
}

static const struct tape_frame *their_info(const struct replay *r,
					   unsigned int last)
{
	const struct tape_frame *told = NULL;

	for (unsigned int i = 0; i < r->tape.nframes; i++)
		if (r->tape.frame[i].kind == TAPE_LNET &&
		    !r->plan.step[i].ours && replay_is_info(&r->plan, i) &&
		    lnet_nid_net(&r->plan.step[i].hdr.src_nid) ==
			    lnet_nid_net(&r->hello.src_nid) &&
		    (!told || i <= last))
			told = &r->tape.frame[i];
	return told;
}

bool replay_told(const struct replay *r, unsigned int last,
		 struct ulnet_ping_info *info, struct ulnet_ping_ni *ni)
{
	const struct tape_frame *f = their_info(r, last);
	size_t need;

	return f && !ping_info_decode(f->bytes + replay_head(&r->tape),
				      f->len - replay_head(&r->tape), info, ni,
				      REPLAY_NIDS_MAX, &need);
}

/* Is this the header that every push or ping of discovery between the two nodes
 * has? */
static bool is_usual(const struct replay *r, const struct lnet_hdr *hdr,
		     const uint8_t *got)
{
	bool get = hdr->type == LNET_MSG_GET;
	struct lnet_hdr want = { .dest_nid = hdr->dest_nid,
				 .src_nid = hdr->src_nid,
				 .dest_pid = LNET_PID_LUSTRE,
				 .src_pid = LNET_PID_LUSTRE,
				 .type = hdr->type,
				 .payload_length = hdr->payload_length,
				 .wmd = hdr->wmd,
				 .match_bits = PING_MATCH_BITS,
				 .portal = PING_PORTAL,
				 .length = get ? PING_BY_DISCOVERY : 0 };
	uint8_t bytes[LNET_HDR_LARGE_SIZE];

	hdr_encode(&want, bytes, tape_hdr_size(&r->tape));
	return !wire_handle_is_none(&hdr->wmd) &&
	       !memcmp(bytes, got, tape_hdr_size(&r->tape));
}

/* Sends the ACK of a push, or a REPLY with what the other node has announced.
 */
static bool answer(const struct replay *r, struct raw_conn *c,
		   const struct lnet_hdr *to)
{
	const struct tape_frame *told = their_info(r, r->now);
	bool get = to->type == LNET_MSG_GET;
	size_t len = get ? told->len - replay_head(&r->tape) : 0;
	struct sock_hdr hdr = { .type = SOCK_MSG_LNET };
	struct lnet_hdr reply = { .dest_nid = to->src_nid,
				  .src_nid = to->dest_nid,
				  .dest_pid = LNET_PID_LUSTRE,
				  .src_pid = LNET_PID_LUSTRE,
				  .type = get ? LNET_MSG_REPLY : LNET_MSG_ACK,
				  .payload_length = (uint32_t)len,
				  .wmd = to->wmd,
				  .match_bits = to->match_bits,
				  .length = get ? 0 : to->payload_length };
	uint8_t bytes[MESSAGE_HEAD_MAX + PING_BY_DISCOVERY];
	size_t sent = 0;

	if (len > PING_BY_DISCOVERY)
		return false;
	sock_hdr_encode(&hdr, bytes);
	hdr_encode(&reply, bytes + SOCK_HDR_SIZE, tape_hdr_size(&r->tape));
	memcpy(bytes + replay_head(&r->tape),
	       told->bytes + replay_head(&r->tape), len);
	len += replay_head(&r->tape);
	if (r->c->swapped)
		tape_swap(TAPE_LNET, bytes, len);
	return !raw_send(c, bytes, len, &sent) && sent == len;
}

static void say_beside(const struct lnet_hdr *hdr)
{
	char from[LNET_NIDSTR_SIZE], to[LNET_NIDSTR_SIZE];

	lnet_nid_format(&hdr->src_nid, from, sizeof(from));
	lnet_nid_format(&hdr->dest_nid, to, sizeof(to));
	printf("  beside the tape: a %s from %s to %s\n",
	       hdr->type == LNET_MSG_GET ? "question" : "push", from, to);
}

/* Checks a complete message of @len bytes. */
static bool look_at(struct replay *r, const struct lnet_hdr *hdr,
		    uint8_t *bytes, size_t len)
{
	uint8_t *info = bytes + replay_head(&r->tape);

	say_beside(hdr);
	if (hdr->type == LNET_MSG_GET) {
		r->beside.questions++;
		return is_usual(r, hdr, bytes + SOCK_HDR_SIZE);
	}
	r->beside.pushes++;
	if (lnet_nid_eq(&hdr->dest_nid, &r->hello.src_nid))
		r->beside.known_ni = true;
	if (hdr->payload_length < PING_HEADER_SIZE + PING_ENTRY_SIZE)
		return false;
	replay_take_info(r, info);
	return is_usual(r, hdr, bytes + SOCK_HDR_SIZE) &&
	       is_told_on_tape(r, info, len - replay_head(&r->tape));
}

enum replay_taken replay_beside_take(struct replay *r, struct raw_conn *c)
{
	struct lnet_hdr hdr;
	uint8_t *bytes;
	size_t len;
	bool ok;

	if (c->have < replay_head(&r->tape))
		return TAKEN_NONE;
	if (hdr_decode(&hdr, c->in + SOCK_HDR_SIZE, tape_hdr_size(&r->tape)))
		return TAKEN_BAD;
	len = replay_head(&r->tape) + hdr.payload_length;
	if (hdr.portal != PING_PORTAL || c->have < len ||
	    (hdr.type != LNET_MSG_PUT && hdr.type != LNET_MSG_GET))
		return TAKEN_NONE;
	bytes = malloc(len);
	if (!bytes || !raw_take(c, bytes, len)) {
		free(bytes);
		return TAKEN_BAD;
	}
	ok = look_at(r, &hdr, bytes, len) && answer(r, c, &hdr);
	if (!ok)
		replay_dump("ours", bytes, len, SOCK_HDR_SIZE);
	free(bytes);
	return ok ? TAKEN : TAKEN_BAD;
}

static unsigned int questions_due(const struct replay *r)
{
	return r->c->beside.about_other_ni && r->beside.known_ni
		       ? 0
		       : r->c->beside.questions;
}

bool replay_beside_is_over(const struct replay *r)
{
	return r->beside.pushes >= r->c->beside.pushes &&
	       r->beside.questions >= questions_due(r);
}

/* ---- connections ---- */

static bool answer_hello(struct replay *r, struct beside_conn *c)
{
	uint8_t bytes[SOCK_HELLO_LARGE_SIZE];
	struct sock_hello got, h = r->hello;
	size_t len, sent = 0;

	len = r->tape.large ? SOCK_HELLO_LARGE_SIZE : SOCK_HELLO_SIZE;
	if (!raw_take(&c->raw, bytes, len))
		return true;
	if (sock_hello_size(&got, bytes) != (int)len ||
	    sock_hello_decode(&got, bytes, len) != 0)
		return false;
	h.src_nid = got.dst_nid;
	h.dst_nid = got.src_nid;
	h.type = sock_type_invert(got.type);
	len = sock_hello_encode(&h, bytes);
	c->stage = BESIDE_UP;
	return !raw_send(&c->raw, bytes, len, &sent) && sent == len;
}

static bool beside_step(struct replay *r, struct beside_conn *c)
{
	size_t len =
		r->tape.large ? SOCK_REQUEST_LARGE_SIZE : SOCK_REQUEST_SIZE;
	uint8_t request[SOCK_REQUEST_LARGE_SIZE];

	if (raw_fill(&c->raw))
		return false;
	if (c->stage == BESIDE_REQUEST && raw_take(&c->raw, request, len))
		c->stage = BESIDE_HELLO;
	if (c->stage == BESIDE_HELLO && !answer_hello(r, c))
		return false;
	if (c->stage < BESIDE_UP)
		return true;
	return replay_beside_take(r, &c->raw) != TAKEN_BAD;
}

static bool beside_accept(struct replay *r, int fd)
{
	struct replay_beside *b = &r->beside;
	union netif_addr from;
	struct raw_conn raw;
	int rc = raw_accept(fd, &raw, &from);

	if (rc == -EAGAIN)
		return true;
	if (rc)
		return false;
	if (b->nconns == REPLAY_BESIDE_MAX) {
		raw_close(&raw);
		return false;
	}
	b->conn[b->nconns++] = (struct beside_conn){ .raw = raw };
	return true;
}

/* Are all connections of the tape open, so that a new one is not on the tape?
 */
static bool tape_is_connected(const struct replay *r)
{
	for (unsigned int k = 0; k < r->tape.nconns; k++)
		if (r->conn[k].fd < 0)
			return false;
	return true;
}

bool replay_beside(struct replay *r)
{
	struct replay_beside *b = &r->beside;
	bool ok = true;

	for (unsigned int k = 0; ok && k < b->nlisten; k++)
		ok = beside_accept(r, b->listen_fd[k]);
	if (ok && r->listen_fd >= 0 && tape_is_connected(r))
		ok = beside_accept(r, r->listen_fd);
	for (unsigned int k = 0; ok && k < b->nconns; k++)
		ok = beside_step(r, &b->conn[k]);
	return ok;
}

bool replay_beside_is_empty(struct replay *r)
{
	struct replay_beside *b = &r->beside;
	bool ok = b->pushes == r->c->beside.pushes &&
		  !b->questions == !questions_due(r);

	if (!ok)
		fprintf(stderr,
			"%u pushes and %u questions beside the tape, and not "
			"%u and %u\n",
			b->pushes, b->questions, r->c->beside.pushes,
			questions_due(r));
	for (unsigned int k = 0; ok && k < b->nconns; k++) {
		struct raw_conn *c = &b->conn[k].raw;

		ok = !raw_fill(c) && c->eof && c->have == 0;
		if (!ok)
			replay_dump("beside the tape", c->in, c->have, 0);
	}
	return ok;
}
