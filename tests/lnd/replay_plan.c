/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/replay.h"

#include <string.h>

#include "base/buf.h"
#include "tests/lnd/replay_lst.h"

static bool bad(const struct tape *t, unsigned int i, const char *what)
{
	fprintf(stderr, "%s.tape:%u: %s\n", t->name, t->frame[i].line, what);
	return false;
}

/* ---- what is in a frame ---- */

static bool look_at(const struct tape *t, unsigned int i, struct replay_step *s)
{
	const struct tape_frame *f = &t->frame[i];
	struct sock_hdr hdr;

	s->other = -1;
	if (f->kind != TAPE_LNET && f->kind != TAPE_NOOP)
		return true;
	if (f->len < SOCK_HDR_SIZE || sock_hdr_decode(&hdr, f->bytes, false))
		return bad(t, i, "no frame");
	if ((hdr.type == SOCK_MSG_NOOP) != (f->kind == TAPE_NOOP))
		return bad(t, i, "wrong kind");
	if (f->kind == TAPE_NOOP) {
		s->cookie = hdr.cookie[1];
		return f->len == SOCK_HDR_SIZE || bad(t, i, "too long");
	}
	s->cookie = hdr.cookie[0];
	if (f->len < replay_head(t) ||
	    hdr_decode(&s->hdr, f->bytes + SOCK_HDR_SIZE, tape_hdr_size(t)) ||
	    f->len != replay_head(t) + s->hdr.payload_length)
		return bad(t, i, "no message");
	return true;
}

static bool is_request(const struct lnet_hdr *hdr)
{
	return hdr->type == LNET_MSG_PUT || hdr->type == LNET_MSG_GET;
}

static bool same_handle(const struct lnet_wire_handle *a,
			const struct lnet_wire_handle *b)
{
	return a->node == b->node && a->object == b->object;
}

/* Finds the request that frame @i answers. */
static int find_request(const struct tape *t, const struct replay_plan *plan,
			unsigned int i)
{
	const struct replay_step *s = &plan->step[i];

	for (int k = (int)i - 1; k >= 0; k--) {
		const struct replay_step *o = &plan->step[k];

		if (t->frame[k].kind == TAPE_LNET && is_request(&o->hdr) &&
		    o->ours != s->ours && same_handle(&o->hdr.wmd, &s->hdr.wmd))
			return k;
	}
	return -1;
}

/* Finds the message that NOOP @i acknowledges. */
static int find_acked(const struct tape *t, const struct replay_plan *plan,
		      unsigned int i)
{
	const struct replay_step *s = &plan->step[i];

	for (int k = (int)i - 1; k >= 0; k--) {
		const struct replay_step *o = &plan->step[k];

		if (t->frame[k].kind == TAPE_LNET && o->ours != s->ours &&
		    o->cookie == s->cookie)
			return k;
	}
	return -1;
}

static bool relate(const struct tape *t, struct replay_plan *plan,
		   unsigned int i)
{
	struct replay_step *s = &plan->step[i];

	if (t->frame[i].kind == TAPE_NOOP && s->cookie != SOCK_COOKIE_KEEPALIVE)
		s->other = find_acked(t, plan, i);
	else if (t->frame[i].kind == TAPE_LNET && !is_request(&s->hdr))
		s->other = find_request(t, plan, i);
	else
		return true;
	if (s->other < 0)
		return bad(t, i, "an answer to nothing");
	if (t->frame[i].kind == TAPE_LNET)
		plan->step[s->other].other = (int)i;
	return true;
}

static bool is_push(const struct lnet_hdr *hdr)
{
	return hdr->type == LNET_MSG_PUT && hdr->portal == PING_PORTAL &&
	       hdr->payload_length >= PING_HEADER_SIZE;
}

bool replay_is_asked(const struct replay_plan *plan, unsigned int i)
{
	const struct lnet_hdr *hdr = &plan->step[i].hdr;

	return hdr->portal == PING_PORTAL &&
	       (hdr->type == LNET_MSG_GET || is_push(hdr));
}

bool replay_is_info(const struct replay_plan *plan, unsigned int i)
{
	const struct replay_step *s = &plan->step[i];

	return is_push(&s->hdr) ||
	       (s->hdr.type == LNET_MSG_REPLY && s->other >= 0 &&
		plan->step[s->other].hdr.portal == PING_PORTAL);
}

bool replay_discovers(const struct replay_plan *plan)
{
	for (unsigned int i = 0; i < TAPE_FRAMES_MAX; i++)
		if (plan->step[i].part == PART_OWN)
			return true;
	return false;
}

/* ---- who does what ---- */

static bool is_own(const struct replay_case *c, const struct ulnet_nid *nid)
{
	struct ulnet_nid own;

	for (unsigned int i = 0; i < REPLAY_NIS_MAX && c->nis[i]; i++)
		if (!lnet_nid_parse(c->nis[i], &own) && lnet_nid_eq(&own, nid))
			return true;
	return false;
}

static bool is_own_net(const struct replay_case *c, uint32_t net)
{
	struct ulnet_nid own;

	for (unsigned int i = 0; i < REPLAY_NIS_MAX && c->nis[i]; i++)
		if (!lnet_nid_parse(c->nis[i], &own) &&
		    lnet_nid_net(&own) == net)
			return true;
	return false;
}

/* Is the NID behind the gateway, on the one other net that a case has? */
static bool is_far(const struct replay_case *c, const struct ulnet_nid *nid)
{
	struct ulnet_nid far;

	return c->far && !lnet_nid_parse(c->far, &far) &&
	       lnet_nid_net(&far) == lnet_nid_net(nid);
}

/* Returns why a message of ours cannot be played; NULL: it can. */
static const char *why_not(const struct replay_case *c,
			   const struct lnet_hdr *hdr)
{
	if (!is_own_net(c, lnet_nid_net(&hdr->dest_nid)) &&
	    !is_far(c, &hdr->dest_nid))
		return "goes to a net that it has no route to";
	return NULL;
}

/* ---- discovery ---- */

/* Is this a ping of discovery? One made by hand asks for another length. */
static bool is_question(const struct lnet_hdr *hdr)
{
	return hdr->type == LNET_MSG_GET && hdr->portal == PING_PORTAL &&
	       hdr->length != PING_BY_HAND;
}

/* Has our node pinged the peer of frame @i before, or the peer sent a push? */
static bool met_before(const struct tape *t, const struct replay_case *c,
		       const struct replay_plan *plan, unsigned int i)
{
	bool far = is_far(c, &plan->step[i].hdr.dest_nid);

	for (unsigned int k = 0; k < i; k++) {
		const struct replay_step *o = &plan->step[k];

		if (t->frame[k].kind == TAPE_LNET &&
		    is_far(c, o->ours ? &o->hdr.dest_nid : &o->hdr.src_nid) ==
			    far &&
		    (o->ours ? is_question(&o->hdr) : is_push(&o->hdr)))
			return true;
	}
	return false;
}

/* Returns why the test, not the node, makes this message of discovery; NULL:
 * the node does. */
static const char *why_by_hand(const struct tape *t,
			       const struct replay_case *c,
			       const struct replay_plan *plan, unsigned int i)
{
	const uint8_t *info = t->frame[i].bytes + replay_head(t);
	bool met = met_before(t, c, plan, i);

	if (is_question(&plan->step[i].hdr))
		return met ? "asks once more, by any of its paths" : NULL;
	if (!met)
		return "what has led to it is on no tape";
	if (!c->router &&
	    !(load_le32(info + INFO_FEATURES) & LNET_PING_RTE_DISABLED))
		return "says that it is a router";
	return NULL;
}

/* Decides who makes a PUT or GET of ours. */
static void assign_origin(const struct tape *t, const struct replay_case *c,
			  struct replay_plan *plan, unsigned int i)
{
	struct replay_step *s = &plan->step[i];

	s->part = PART_ORIGIN;
	if (!is_question(&s->hdr) && !is_push(&s->hdr))
		return;
	s->why = why_by_hand(t, c, plan, i);
	if (s->why)
		plan->by_hand++;
	else
		s->part = PART_OWN;
}

/* ---- the plan ---- */

static void leave_out(struct replay_plan *plan, struct replay_step *s,
		      const char *why)
{
	s->part = PART_LEFT_OUT;
	s->why = why;
	plan->left_out++;
}

static void assign(const struct tape *t, const struct replay_case *c,
		   struct replay_plan *plan, unsigned int i)
{
	struct replay_step *s = &plan->step[i];
	bool message = t->frame[i].kind == TAPE_LNET;
	const char *why = s->ours && message ? why_not(c, &s->hdr) : NULL;
	bool answer = t->frame[i].kind == TAPE_NOOP ||
		      (message && !is_request(&s->hdr));
	bool in_transit = message && !s->ours && !is_own(c, &s->hdr.dest_nid);

	if (c->lst && message && s->ours && replay_lst_is(&s->hdr))
		s->part = PART_TEST;
	else if (message && s->ours && !is_own(c, &s->hdr.src_nid))
		s->part = PART_RETURN;
	else if (why)
		leave_out(plan, s, why);
	else if (answer && !in_transit && s->other >= 0 &&
		 plan->step[s->other].part == PART_LEFT_OUT)
		leave_out(plan, s, "answers what was left out");
	else if (t->frame[i].kind == TAPE_NOOP && !s->ours && s->other >= 0)
		leave_out(plan, s, "acknowledges what we do not ask for");
	else if (!s->ours)
		s->part = in_transit ? PART_PASS : PART_SEND;
	else if (message && is_request(&s->hdr))
		assign_origin(t, c, plan, i);
	else
		s->part = PART_EXPECT;
}

/* Allocates the memory that frame @i is read into, or sent from. */
static bool give_memory(const struct tape *t, const struct replay_case *c,
			struct replay_plan *plan, unsigned int i)
{
	struct replay_step *s = &plan->step[i];
	const struct tape_frame *f = &t->frame[i];
	bool get = s->hdr.type == LNET_MSG_GET;

	if (f->kind != TAPE_LNET || !is_request(&s->hdr) ||
	    s->part == PART_LEFT_OUT || s->part == PART_OWN ||
	    s->part == PART_RETURN || (c->lst && replay_lst_is(&s->hdr)))
		return true;
	/* no buffer: a request on LNet's own portal, for another node, or one
	 * that is not answered */
	if (!s->ours && (s->hdr.portal == 0 || !is_own(c, &s->hdr.dest_nid) ||
			 (get && (s->other < 0 ||
				  plan->step[s->other].part == PART_LEFT_OUT))))
		return true;
	s->len = get ? s->hdr.length : s->hdr.payload_length;
	s->buf = calloc(1, s->len + 1);
	if (!s->buf)
		return bad(t, i, "no memory");
	/* for a GET of theirs, the bytes that it reads */
	if (get && !s->ours)
		f = &t->frame[s->other];
	if (get != s->ours)
		memcpy(s->buf, f->bytes + replay_head(t),
		       MIN(s->len, f->len - replay_head(t)));
	return true;
}

bool replay_plan(const struct tape *t, const struct replay_case *c,
		 struct replay_plan *plan)
{
	bool ok = true;

	memset(plan, 0, sizeof(*plan));
	for (unsigned int i = 0; ok && i < t->nframes; i++) {
		plan->step[i].ours = t->frame[i].back != c->connects;
		ok = look_at(t, i, &plan->step[i]) && relate(t, plan, i);
		if (ok)
			assign(t, c, plan, i);
	}
	for (unsigned int i = 0; ok && i < t->nframes; i++)
		ok = give_memory(t, c, plan, i);
	if (ok &&
	    (plan->left_out != c->left_out || plan->by_hand != c->by_hand)) {
		fprintf(stderr,
			"%s.tape: %u frames left out and %u made by hand, and "
			"not %u and %u\n",
			t->name, plan->left_out, plan->by_hand, c->left_out,
			c->by_hand);
		ok = false;
	}
	if (!ok)
		replay_plan_free(plan);
	return ok;
}

void replay_plan_free(struct replay_plan *plan)
{
	for (unsigned int i = 0; i < TAPE_FRAMES_MAX; i++)
		free(plan->step[i].buf);
	memset(plan, 0, sizeof(*plan));
}
