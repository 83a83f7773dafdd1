/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks incoming messages and hands them to forward.c, unexpected.c,
 * throttle.c or op.c. */
#include <errno.h>

#include "base/log.h"
#include "lnet/message/forward.h"
#include "lnet/message/unexpected.h"
#include "lnet/message/msgs.h"
#include "lnet/message/op.h"
#include "lnet/message/throttle.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"
#include "lnet/peer/provenance.h"
#include "lnet/route/route.h"

/* ---- answers ---- */

static void reply_done(struct work *w)
{
	struct msg_in *msg = in_of_work(w);

	op_replied(msg->op, msg);
	in_free(msg);
}

/* Adds the time that the operation has waited for @msg, its answer, to
 * statistics. */
static void answer_count_time(const struct msg_in *msg)
{
	struct ni_cpt *nc = &msg->out.ni->cpt[msg->out.cpt->index];

	times_add(&nc->traffic.answered, msg->took);
	if (msg->sender)
		times_add(&msg->sender->traffic.answered, msg->took);
}

/* The answer has returned to the CPT that received it. Its operation has taken
 * it, or out.status is the counter of the reason for which it is dropped. */
static void answer_returned(struct work *w)
{
	struct msg_in *msg = in_of_work(w);

	if (unlikely(timer_armed(&msg->out.timer)))
		loop_timer_cancel(msg->out.home->loop, &msg->out.timer);
	if (unlikely(msg->out.status != STAT_COUNT)) {
		in_drop(msg, (enum lnet_stat)msg->out.status);
		return;
	}
	answer_count_time(msg);
	if (msg->out.hdr.type == LNET_MSG_REPLY) {
		in_count(msg, msg->mlength);
		in_recv(msg, msg->op->cpt, reply_done);
		return;
	}
	in_count(msg, 0);
	in_let_go(msg);
	in_free(msg);
}

/* Called on the CPT of the operation. */
static void answer_in(struct work *w)
{
	struct msg_in *msg = in_of_work(w);

	msg->out.status = (int)op_answer(msg->out.cpt, msg);
	in_pass(msg, msg->out.home, answer_returned);
}

/* ---- checks, in the order in which a kernel node makes them ---- */

/* Results of checks. Any other result is the counter of a reason to drop the
 * message. */
#define FOR_ME	       STAT_COUNT
#define PROTOCOL_ERROR (STAT_COUNT + 1)
#define FOR_OTHERS     (STAT_COUNT + 2)

/* Is the source NID plausible? Nodes on this node's nets send to it directly,
 * and this node sends to itself through 0@lo. So a router can pass on only
 * messages from other nets. */
static int check_source(const struct lnet_cpt *cpt, const struct ulnet_nid *src,
			bool direct)
{
	/* The source may be a NID of this node: other processes on the host may
	 * have it, too. */
	if (direct)
		return FOR_ME;
	if (lnet_nid_is_any(src) || lnet_nid_is_lo(src) || src->type == 0)
		return STAT_drop_bad_source;
	if (config_is_mine(cpt->config, src))
		return STAT_drop_bad_source;
	return config_has_net(cpt->config, lnet_nid_net(src))
		       ? STAT_drop_false_source
		       : FOR_ME;
}

/* A message whose source is on another net than the last hop is accepted only
 * if this node has a route to that net through the last hop. This is checked if
 * the setting drop_asym_route says so; and always on a net whose peers prove
 * who they are, since a peer proves nothing about NIDs on other nets, and only
 * a gateway may speak for these. */
static int check_way(const struct lnet_cpt *cpt, const struct lnet_ni *ni,
		     const struct ulnet_nid *src, const struct ulnet_nid *from)
{
	if ((!settings_drop_asym_route(&cpt->node->settings) &&
	     !ni->lnd.proven) ||
	    lnet_nid_net(src) == lnet_nid_net(from) ||
	    routes_go_by(cpt, from, lnet_nid_net(src)))
		return FOR_ME;
	return STAT_drop_asym_route;
}

static int check_other(const struct lnet_cpt *cpt, const struct lnet_ni *ni,
		       const struct ulnet_nid *dest)
{
	/* The sender should have sent the message directly, or to another NI.
	 */
	if (lnet_nid_net(dest) == segment_net(ni->segment) ||
	    config_ni(cpt->config, dest))
		return PROTOCOL_ERROR;
	if (!atomic_load_explicit(&cpt->node->routing, memory_order_relaxed))
		return STAT_drop_not_mine;
	if (!config_has_net(cpt->config, lnet_nid_net(dest)) &&
	    !route_exists(cpt->routes, lnet_nid_net(dest)))
		return STAT_drop_no_route;
	return FOR_OTHERS;
}

/* What few messages need: those that come by a gateway, or are not for @ni. */
static out_of_line int check_far(struct lnet_cpt *cpt, struct lnet_ni *ni,
				 const struct lnet_hdr *hdr,
				 const struct ulnet_nid *from)
{
	bool direct = lnet_nid_eq(&hdr->src_nid, from);
	int whose = FOR_ME, rc;

	if (!lnet_nid_eq(&hdr->dest_nid, &ni->lnd.nid)) {
		whose = check_other(cpt, ni, &hdr->dest_nid);
		if (whose != FOR_OTHERS)
			return whose;
	}
	rc = check_source(cpt, &hdr->src_nid, direct);
	/* The way of a message that is forwarded is checked only on a net whose
	 * peers prove who they are: passed on without a check, the message
	 * would look as if its source were proven. */
	if (!direct && rc == FOR_ME && (whose == FOR_ME || ni->lnd.proven))
		rc = check_way(cpt, ni, &hdr->src_nid, from);
	return rc == FOR_ME ? whose : rc;
}

static int check_addresses(struct lnet_cpt *cpt, struct lnet_ni *ni,
			   const struct lnet_hdr *hdr,
			   const struct ulnet_nid *from)
{
	if (ni_is_lo(ni) || (lnet_nid_eq(&hdr->src_nid, from) &&
			     lnet_nid_eq(&hdr->dest_nid, &ni->lnd.nid)))
		return FOR_ME;
	return check_far(cpt, ni, hdr, from);
}

static int protocol_error(struct lnet_cpt *cpt, const struct lnet_ni *ni,
			  const struct ulnet_nid *from, const char *what)
{
	char a[LNET_NIDSTR_SIZE], b[LNET_NIDSTR_SIZE];

	cpt_stat(cpt, STAT_protocol_errors);
	/* Each error is counted, but only one a second is logged. */
	if (loop_now(cpt->loop) < msg_cpt(cpt)->next_complaint)
		return -EPROTO;
	msg_cpt(cpt)->next_complaint = loop_now(cpt->loop) + NSEC_PER_SEC;
	log_warn("parse", "%s: message from %s: %s",
		 lnet_nid_format(&ni->lnd.nid, a, sizeof(a)),
		 lnet_nid_format(from, b, sizeof(b)), what);
	return -EPROTO;
}

/* Returns the CPT of the operation that the answer is for, by the handle in the
 * answer. If the handle makes no sense, returns @cpt: a stranger may have made
 * it up. */
static struct lnet_cpt *answer_cpt(struct lnet_cpt *cpt,
				   const struct lnet_hdr *hdr)
{
	struct lnet_cpt *home = node_cpt_of_id(cpt->node, hdr->wmd.object);

	return home && hdr->wmd.node == cpt->node->incarnation ? home : cpt;
}

/* Passes the answer to the CPT of its operation. If that is another CPT, the
 * connection is read on meanwhile: at once, or soon if the payload is long.
 * (Nothing waits behind messages through 0@lo.) */
static void pass_answer(struct msg_in *msg)
{
	struct lnet_cpt *home = answer_cpt(msg->out.cpt, &msg->out.hdr);

	if (home != msg->out.cpt && !ni_is_lo(msg->out.ni) &&
	    !in_stays_unread(msg) && in_bounce(msg))
		in_drop(msg, STAT_drop_no_memory);
	else
		in_pass(msg, home, answer_in);
}

static bool is_request(const struct lnet_hdr *hdr)
{
	return hdr->type == LNET_MSG_PUT || hdr->type == LNET_MSG_GET;
}

static in_line void dispatch(struct msg_in *msg)
{
	if (!is_request(&msg->out.hdr))
		pass_answer(msg);
	else if (likely(throttle_admits(msg)))
		unexpected_or_deliver(msg);
	else
		throttle_request(msg);
}

/* The NID of @lpni is unverified (peer/provenance.h). Until it has been asked,
 * @msg counts as a message from that NID alone. */
static void meet_unverified(struct msg_in *msg, struct lnet_peer_ni *lpni)
{
	if (lpni->provenance.state == PEER_UNVERIFIED)
		peer_cpt(msg->out.home)->question(msg->out.home, lpni);
	msg->initiator = msg->out.hdr.src_nid;
}

struct caller_news {
	struct work work;
	struct lnet_cpt *cpt;
	struct ulnet_nid caller, gateway;
};

static void caller_set(struct lnet_cpt *cpt, const struct ulnet_nid *caller,
		       const struct ulnet_nid *gateway)
{
	struct lnet_peer_ni *lpni = peer_get(cpt, caller);

	if (!lpni)
		return;
	lpni->heard_via = *gateway;
	peer_unref(lpni);
}

static void caller_news(struct work *w)
{
	struct caller_news *news = container_of(w, struct caller_news, work);
	struct lnet_cpt *cpt = news->cpt;

	if (!cpt->closing)
		caller_set(cpt, &news->caller, &news->gateway);
	free(news);
	atomic_fetch_sub(&cpt->node->gateway_news, 1);
	cpt_ended_one(cpt);
}

/* A process that only calls can be reached only through gateways that it has
 * used itself, so the CPT that sends to it remembers the last one. Without
 * memory, a message to the process may be lost. */
static void meet_caller(const struct msg_in *msg)
{
	const struct ulnet_nid *caller = &msg->out.hdr.src_nid;
	struct lnet_cpt *home = msg->out.home,
			*owner = out_sender(home, caller);
	const struct lnet_peer_ni *lpni = peer_find(home, caller);
	struct caller_news *news;

	if (lpni && lnet_nid_eq(&lpni->heard_via, &msg->from))
		return;
	caller_set(home, caller, &msg->from);
	news = owner == home ? NULL : malloc(sizeof(*news));
	if (!news)
		return;
	*news = (struct caller_news){
		{ .fn = caller_news }, owner, *caller, msg->from
	};
	atomic_fetch_add(&home->node->gateway_news, 1);
	loop_post(owner->loop, &news->work);
}

/* Sets the initiator of @msg, which has come through a gateway. */
static void meet_far(struct msg_in *msg)
{
	msg->initiator = directory_primary(&msg->out.home->node->directory,
					   &msg->out.hdr.src_nid);
	if (msg->out.hdr.src_pid & LNET_PID_USERFLAG && !msg->forward)
		meet_caller(msg);
}

/* Sets the sender and the initiator of @msg. Returns false if there are too
 * many peers. */
static in_line bool meet_peer(struct msg_in *msg, struct lnet_ni *ni,
			      bool direct)
{
	const struct lnet_hdr *hdr = &msg->out.hdr;
	struct lnet_peer_ni *lpni;

	if (ni_is_lo(ni)) {
		msg->initiator = hdr->src_nid;
		return true;
	}
	lpni = peer_get(msg->out.home, &msg->from);
	if (!lpni)
		return false;
	traffic_add(&lpni->traffic.recv, hdr->type, hdr->payload_length);
	msg->sender = lpni;
	lpni->has.msgs++;
	health_heard(msg->out.home, ni, lpni);
	if (unlikely(provenance_is_unverified(lpni)))
		meet_unverified(msg, lpni);
	else if (likely(direct))
		msg->initiator = lpni->peer->primary;
	else
		meet_far(msg);
	return true;
}

/* Returns FOR_ME, FOR_OTHERS, PROTOCOL_ERROR, or the counter of the reason for
 * which the message is dropped. */
static int admit(struct lnet_cpt *cpt, struct lnet_ni *ni,
		 const struct lnet_hdr *hdr, const struct ulnet_nid *from)
{
	int rc;

	/* Checked first, because the CPT may have no configuration any more. */
	if (unlikely(cpt->closing || ni->cpt[cpt->index].stopped))
		return STAT_drop_closing;
	rc = check_addresses(cpt, ni, hdr, from);
	if (unlikely(rc != FOR_ME))
		return rc;
	if (is_request(hdr) && hdr->portal >= LNET_PORTALS)
		return STAT_drop_bad_portal;
	return FOR_ME;
}

/* Drops a message for which there is no msg_in, because all are in use. Decodes
 * the header only to count the message. */
static int parse_without_memory(struct lnet_cpt *cpt, struct lnet_ni *ni,
				const void *bytes, size_t hdr_len,
				const struct ulnet_nid *from, void *rx)
{
	struct lnet_hdr hdr;

	if (hdr_decode(&hdr, bytes, hdr_len))
		return protocol_error(cpt, ni, from, "bad header");
	if (admit(cpt, ni, &hdr, from) == PROTOCOL_ERROR)
		return protocol_error(cpt, ni, from, "misdirected");
	rx_drop(cpt, ni, rx, hdr.type, hdr.payload_length, STAT_drop_no_memory);
	return 0;
}

/* Frees @msg, which is not admitted because of @why. Returns 0 or -EPROTO. */
static int turn_away(struct msg_in *msg, struct lnet_ni *ni, void *rx, int why)
{
	struct lnet_cpt *cpt = msg->out.home;
	uint32_t length = msg->out.hdr.payload_length, type = msg->out.hdr.type;
	struct ulnet_nid from = msg->from;

	in_free(msg);
	if (why == PROTOCOL_ERROR)
		return protocol_error(cpt, ni, &from, "misdirected");
	rx_drop(cpt, ni, rx, type, length, (enum lnet_stat)why);
	return 0;
}

static in_line void parse_arrived(struct msg_in *msg, bool direct)
{
	if (unlikely(!meet_peer(msg, msg->out.ni, direct)))
		in_drop(msg, STAT_drop_no_memory);
	else if (likely(!msg->forward))
		dispatch(msg);
	else
		forward_msg(msg);
}

void in_arrived(struct msg_in *msg)
{
	parse_arrived(msg, lnet_nid_eq(&msg->out.hdr.src_nid, &msg->from));
}

int upcall_parse(struct lnd_ni *lnd, const void *bytes, size_t hdr_len,
		 const struct ulnet_id *sender, void *rx)
{
	const struct ulnet_nid *from = &sender->nid;
	struct lnet_ni *ni = ni_of(lnd);
	struct lnet_cpt *cpt = node_cpt_here(ni->node);
	struct msg_in *msg = in_new(cpt, in_late);
	const struct msg_faults *faults;
	bool direct; /* the sender is the source, and not a router */
	int rc;

	if (unlikely(!msg))
		return parse_without_memory(cpt, ni, bytes, hdr_len, from, rx);
	rc = hdr_decode(&msg->out.hdr, bytes, hdr_len);
	if (unlikely(rc)) {
		in_free(msg);
		return protocol_error(cpt, ni, from, "bad header");
	}
	direct = lnet_nid_eq(&msg->out.hdr.src_nid, from);
	/* The connection knows the pid of the sender; a router does not know
	 * the pids of other nodes. */
	if (likely(direct))
		msg->out.hdr.src_pid = sender->pid;
	msg->from = *from;
	rc = admit(cpt, ni, &msg->out.hdr, from);
	if (unlikely(rc != FOR_ME)) {
		if (rc != FOR_OTHERS)
			return turn_away(msg, ni, rx, rc);
		msg->dest = NULL;
	}
	msg->forward = rc == FOR_OTHERS;
	msg->out.ni = ni;
	msg->rx = rx;
	msg->out.lnd.cpt = cpt->index;
	msg->out.lnd.deadline = 0;
	ni_ref(ni, cpt->index);
	faults = msg_cpt(cpt)->faults;
	if (likely(!faults) || !faults->arrive(msg))
		parse_arrived(msg, direct);
	return 0;
}

/* ---- timers ---- */

void in_late(struct timer *t)
{
	struct msg_in *msg = container_of(t, struct msg_in, out.timer);

	switch ((enum in_state)msg->fsm.state) {
	case IN_NEW:
		/* @msg is an answer, and the CPT of its operation has it: this
		 * CPT may use only the LND's part of it. Without memory the
		 * payload stays unread. */
		(void)in_bounce(msg);
		break;
	case IN_BUFFERLESS:
		forward_late(msg);
		break;
	case IN_OFFERED:
		unexpected_offer_late(msg);
		break;
	case IN_UNEXPECTED:
		unexpected_late(msg);
		break;
	default:
		in_cancel(msg, -ETIMEDOUT);
		break;
	}
}
