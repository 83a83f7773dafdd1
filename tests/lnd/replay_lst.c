/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/replay_lst.h"

#include <string.h>

#include "base/buf.h"
#include "services/lst/lst_priv.h"

/* offsets in a message of the self-test */
#define AT_TYPE	     8
#define AT_REPLY_ID  24
#define AT_BULK_ID   32
#define AT_SEQUENCE  36 /* PING */
#define AT_OPCODE    40 /* BRW */
#define AT_IS_CLIENT 76 /* TEST */
#define ID_SIZE	     8
/* offset in the part of LNet's header that depends on the type */
#define AT_MATCH_BITS 16

bool replay_lst_is(const struct lnet_hdr *hdr)
{
	return (hdr->type == LNET_MSG_PUT || hdr->type == LNET_MSG_GET) &&
	       (hdr->portal == LST_PORTAL_TEST ||
		hdr->portal == LST_PORTAL_FRAME ||
		hdr->portal == LST_PORTAL_REPLY);
}

int replay_lst_open(struct replay *r)
{
	return r->c->lst ? lst_open(r->node, NULL, &r->lst) : 0;
}

void replay_lst_close(struct replay *r)
{
	lst_free(r->lst);
}

/* ---- what is in a frame ---- */

/* Returns the message of the self-test in frame @i; NULL: there is none, or it
 * is bulk data. */
static const uint8_t *message_of(const struct replay *r, unsigned int i)
{
	const struct lnet_hdr *hdr = &r->plan.step[i].hdr;

	if (r->tape.frame[i].kind != TAPE_LNET || !replay_lst_is(hdr) ||
	    hdr->type != LNET_MSG_PUT || hdr->payload_length != LST_MSG_SIZE)
		return NULL;
	return r->tape.frame[i].bytes + replay_head(&r->tape);
}

bool replay_lst_is_console(const struct replay *r, unsigned int i, bool reply)
{
	const uint8_t *msg = message_of(r, i);
	uint32_t type = msg ? load_le32(msg + AT_TYPE) : LST_PING;

	return type != LST_BRW && type != LST_BRW_REPLY && type != LST_PING &&
	       type != LST_PING_REPLY && lst_msg_is_reply(type) == reply &&
	       r->plan.step[i].ours != reply;
}

static bool has_bulk(const uint8_t *msg)
{
	uint32_t type = load_le32(msg + AT_TYPE);

	return type == LST_BRW || (type == LST_TEST && msg[AT_IS_CLIENT]);
}

/* ---- time ---- */

static bool is_running(const struct lst *lst)
{
	const struct lst_batch *b;

	if (!lst->session)
		return false;
	TAILQ_FOREACH (b, &lst->session->batches, entry)
		if (lst_batch_active(b))
			return true;
	return false;
}

bool replay_lst_pause(struct replay *r, unsigned int i)
{
	const uint8_t *msg = message_of(r, i);

	if (!msg || load_le32(msg + AT_TYPE) != LST_BATCH)
		return true;
	while (is_running(r->lst))
		if (!replay_pump(r, i))
			return false;
	return true;
}

/* ---- ids ---- */

static bool note_id(struct replay *r, unsigned int i, uint8_t *got,
		    const uint8_t *real)
{
	const uint64_t own = load_le64(got);

	if (r->nids == REPLAY_IDS_MAX)
		return replay_complain(r, i, "too many ids");
	for (unsigned int k = 0; k < r->nids; k++)
		if (r->id[k].own == own)
			return replay_complain(r, i, "an id for the 2nd time");
	r->id[r->nids].own = own;
	r->id[r->nids++].real = load_le64(real);
	memcpy(got, real, ID_SIZE);
	return true;
}

bool replay_lst_patch(const struct replay *r, unsigned int i, uint8_t *bytes)
{
	const struct replay_step *s = &r->plan.step[i];
	uint8_t *at =
		bytes + replay_head(&r->tape) - LNET_UNION_SIZE + AT_MATCH_BITS;

	if (!replay_lst_is(&s->hdr) || s->hdr.portal != LST_PORTAL_REPLY)
		return true;
	for (unsigned int k = 0; k < r->nids; k++)
		if (r->id[k].real == s->hdr.match_bits) {
			store_le64(at, r->id[k].own);
			return true;
		}
	return replay_complain(r, i, "an answer to what was not asked");
}

/* ---- what is the node's own ---- */

static void make_equal(uint8_t *got, const uint8_t *real, size_t from,
		       size_t to)
{
	memcpy(got + from, real + from, to - from);
}

bool replay_lst_own(struct replay *r, unsigned int i, uint8_t *got)
{
	const uint8_t *real = message_of(r, i);

	if (!real)
		return true;
	got += replay_head(&r->tape);
	switch (load_le32(real + AT_TYPE)) {
	case LST_PING:
		make_equal(got, real, 40, 56); /* the time of day */
		break;
	case LST_STAT_REPLY:
		/* age of the session, ms, and LNet's counters */
		make_equal(got, real, 44, 48);
		make_equal(got, real, 100, LST_MSG_SIZE);
		break;
	}
	if (lst_msg_is_reply(load_le32(real + AT_TYPE)))
		return true;
	return note_id(r, i, got + AT_REPLY_ID, real + AT_REPLY_ID) &&
	       (!has_bulk(real) ||
		note_id(r, i, got + AT_BULK_ID, real + AT_BULK_ID));
}

/* ---- in any order ---- */

/* Can the message be frame @i, though some bytes may differ? */
static bool looks_like(const struct replay *r, unsigned int i,
		       const struct lnet_hdr *hdr, const uint8_t *got)
{
	const struct lnet_hdr *want = &r->plan.step[i].hdr;
	const uint8_t *real = message_of(r, i);

	if (hdr->type != want->type ||
	    hdr->payload_length != want->payload_length ||
	    hdr->portal != want->portal || hdr->match_bits != want->match_bits)
		return false;
	if (!real)
		return true;
	got += replay_head(&r->tape);
	switch (load_le32(real + AT_TYPE)) {
	case LST_PING:
		return !memcmp(got + AT_SEQUENCE, real + AT_SEQUENCE, 4);
	case LST_BRW:
		return !memcmp(got + AT_OPCODE, real + AT_OPCODE, 4);
	}
	return !memcmp(got + AT_TYPE, real + AT_TYPE, 4);
}

/* Returns which of frame @i and our next ones the message is. */
static unsigned int find_frame(const struct replay *r, unsigned int i,
			       const struct lnet_hdr *hdr, const uint8_t *got)
{
	for (unsigned int k = i; k < r->tape.nframes && r->plan.step[k].ours &&
				 r->tape.frame[k].kind == TAPE_LNET;
	     k++)
		if (r->tape.frame[k].conn == r->tape.frame[i].conn &&
		    !r->plan.step[k].taken && looks_like(r, k, hdr, got))
			return k;
	return i;
}

/* Returns the whole next message, or NULL if none comes. */
static uint8_t *take_any(struct replay *r, unsigned int i, struct lnet_hdr *hdr,
			 size_t *len_p)
{
	struct raw_conn *c = &r->conn[r->tape.frame[i].conn];
	const size_t head = replay_head(&r->tape);
	uint8_t *got;

	while (c->have < head ||
	       hdr_decode(hdr, c->in + SOCK_HDR_SIZE,
			  tape_hdr_size(&r->tape)) ||
	       c->have < head + hdr->payload_length) {
		if (c->eof) {
			replay_complain(r, i, "connection lost");
			return NULL;
		}
		if (!replay_pump(r, i))
			return NULL;
	}
	*len_p = head + hdr->payload_length;
	got = malloc(*len_p);
	if (got && raw_take(c, got, *len_p))
		return got;
	free(got);
	replay_complain(r, i, "no memory");
	return NULL;
}

bool replay_lst_take(struct replay *r, unsigned int i)
{
	bool ok = true;

	while (ok && !r->plan.step[i].taken) {
		struct lnet_hdr hdr;
		size_t len;
		uint8_t *got = take_any(r, i, &hdr, &len);
		unsigned int k;

		if (!got)
			return false;
		k = find_frame(r, i, &hdr, got);
		if (len != r->tape.frame[k].len) {
			replay_dump("ours", got, len, 0);
			ok = replay_complain(r, k, "of another length");
		} else {
			ok = replay_check(r, k, got);
		}
		if (ok && k != i)
			printf("  frame %u before frame %u\n", k + 1, i + 1);
		r->plan.step[k].taken = true;
		free(got);
	}
	return ok;
}
