/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/replay.h"

#include <string.h>

#include "base/buf.h"
#include "tests/lnd/replay_lst.h"

bool replay_complain(const struct replay *r, unsigned int i, const char *what)
{
	const struct tape_frame *f = &r->tape.frame[i];

	fprintf(stderr, "%s.tape:%u: frame %u (%s, %s): %s\n", r->tape.name,
		f->line, i + 1, tape_kind_name(f->kind),
		r->plan.step[i].ours ? "ours" : "theirs", what);
	return false;
}

void replay_dump(const char *who, const uint8_t *p, size_t len, size_t at)
{
	size_t from = at / 16 * 16;

	fprintf(stderr, "%s, from byte %zu:", who, from);
	for (size_t i = from; i < len && i < from + 32; i++)
		fprintf(stderr, "%s%02x", i == at ? " >" : " ", p[i]);
	fprintf(stderr, "\n");
}

bool replay_compare(const struct replay *r, unsigned int i, const uint8_t *got)
{
	const struct tape_frame *f = &r->tape.frame[i];
	size_t at = 0;

	while (at < f->len && got[at] == f->bytes[at])
		at++;
	if (at == f->len)
		return true;
	replay_dump("real", f->bytes, f->len, at);
	replay_dump("ours", got, f->len, at);
	return replay_complain(r, i, "differs");
}

#define HELLO_INCARNATION 24 /* from the end of a HELLO */

/* All HELLOs of an NI must have the same incarnation, whichever it is. */
static bool take_incarnation(struct replay *r, unsigned int i, uint8_t *got)
{
	const struct tape_frame *f = &r->tape.frame[i];
	size_t at = f->len - HELLO_INCARNATION;
	struct sock_hello h;
	unsigned int k;

	if (sock_hello_size(&h, got) != (int)f->len ||
	    sock_hello_decode(&h, got, f->len) != 0)
		return replay_complain(r, i, "no HELLO");
	for (k = 0; k < REPLAY_NIS_MAX && r->told[k].incarnation; k++)
		if (lnet_nid_eq(&r->told[k].nid, &h.src_nid))
			break;
	if (k == REPLAY_NIS_MAX || h.src_incarnation == 0 ||
	    (r->told[k].incarnation &&
	     r->told[k].incarnation != h.src_incarnation))
		return replay_complain(r, i, "not the incarnation told before");
	r->told[k].nid = h.src_nid;
	r->told[k].incarnation = h.src_incarnation;
	memcpy(got + at, f->bytes + at, 8);
	return true;
}

/* The real node may have had other NIs before: its sequence number is higher.
 * And it counts NIs only, while our node also counts that a router is one. */
void replay_take_info(const struct replay *r, uint8_t *info)
{
	store_le32(info + INFO_SEQUENCE, load_le32(info + INFO_SEQUENCE) +
						 r->c->history - r->c->router);
}

static bool take_message(struct replay *r, unsigned int i, uint8_t *got)
{
	const uint8_t *real = r->tape.frame[i].bytes;
	struct replay_step *s = &r->plan.step[i];
	size_t wmd = replay_head(&r->tape) - LNET_UNION_SIZE;
	size_t cookie = 8;

	/* Our node's sockets copy payloads. A kernel node may send without a
	 * copy, and then asks for an acknowledgement. */
	if (load_le64(got + cookie) != 0)
		return replay_complain(r, i, "asks for an acknowledgement");
	memcpy(got + cookie, real + cookie, 8);
	if (s->part == PART_ORIGIN || s->part == PART_OWN ||
	    s->part == PART_TEST) {
		memcpy(&s->handle, got + wmd, sizeof(s->handle));
		if (wire_handle_is_none(&s->handle) !=
		    wire_handle_is_none(&s->hdr.wmd))
			return replay_complain(r, i,
					       "handle, where none is wanted, "
					       "or none where one is");
		memcpy(got + wmd, real + wmd, sizeof(s->handle));
	}
	if (s->part != PART_ORIGIN && s->part != PART_RETURN &&
	    replay_is_info(&r->plan, i))
		replay_take_info(r, got + replay_head(&r->tape));
	return s->part != PART_TEST || replay_lst_own(r, i, got);
}

/* Compares frame @i, after making equal what may differ. */
bool replay_check(struct replay *r, unsigned int i, uint8_t *got)
{
	if (r->tape.frame[i].kind == TAPE_HELLO && !take_incarnation(r, i, got))
		return false;
	if (r->tape.frame[i].kind == TAPE_LNET && !take_message(r, i, got))
		return false;
	return replay_compare(r, i, got);
}
