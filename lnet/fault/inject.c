/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/fault/inject.h"

#include <errno.h>
#include <stdlib.h>

#include "lnet/message/end.h"
#include "lnet/message/tamper.h"
#include "lnet/net/net.h"

/* At which point a message is checked against the rules: when it has arrived,
 * before it departs, or, for a REPLY, when the GET is answered. At that point
 * the REPLY has no header of its own yet, so the header of the GET is used. */
enum fault_point { ARRIVES, DEPARTS, IS_ANSWERED };

/* Returns the incoming message that contains @msg. Not for DEPARTS. */
static struct msg_in *came_in(const struct msg_out *msg)
{
	return container_of(msg, struct msg_in, out);
}

static int inject_status_of(enum ulnet_cause cause)
{
	switch (cause) {
	case LNET_CAUSE_LOCAL_NO_ROUTE:
	case LNET_CAUSE_REMOTE_DROPPED:
		return -EHOSTUNREACH;
	case LNET_CAUSE_LOCAL_TIMEOUT:
	case LNET_CAUSE_REMOTE_TIMEOUT:
	case LNET_CAUSE_NETWORK_TIMEOUT:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

/* Counts and logs that a fault was not injected. */
static void skipped(struct lnet_cpt *cpt, const struct ulnet_nid *peer)
{
	char nid[LNET_NIDSTR_SIZE];

	cpt_stat(cpt, STAT_faults_skipped);
	log_warn_limited(&cpt->limits_log, loop_now(cpt->loop), "fault",
			 "%s: a fault was not injected, because the peer's "
			 "share, or memory, is used up",
			 lnet_nid_format(peer, nid, sizeof(nid)));
}

static void decide(const struct msg_out *msg, enum fault_point point,
		   struct fault_hit *hit)
{
	const struct fault_set *set = container_of(
		msg_cpt(msg->cpt)->faults, const struct fault_set, does);
	const struct lnet_hdr *hdr = &msg->hdr;
	bool answer = point == IS_ANSWERED;
	const struct fault_look look = {
		.source = answer ? &hdr->dest_nid : &hdr->src_nid,
		.dest = answer ? &hdr->src_nid : &hdr->dest_nid,
		.local = &msg->ni->lnd.nid,
		.type = answer ? LNET_MSG_REPLY : hdr->type,
		.portal = hdr->portal,
		.length = answer ? came_in(msg)->mlength : hdr->payload_length,
		.sending = point != ARRIVES,
		.now = loop_now(msg->cpt->loop),
	};

	fault_decide(set->rule, set->n, &look, hit);
}

/* Returns false if there is no room for another delayed message. */
static bool delay(struct msg_out *msg, enum fault_point point, uint64_t ns)
{
	if (point == ARRIVES)
		return tamper_delay(came_in(msg), ns);
	if (point == IS_ANSWERED)
		return tamper_delay_answer(came_in(msg), ns);
	out_delay(msg, ns);
	return true;
}

/* Makes @msg fail without sending anything and without touching connections.
 * For an operation this is a failed attempt on its path. A REPLY is not sent
 * again: the peer's LND is told that no REPLY comes, and the GET of the peer
 * waits in vain. */
static void inject_fail(struct msg_out *msg, enum fault_point point,
			enum ulnet_cause cause)
{
	if (point == IS_ANSWERED) {
		request_cancel_reply(came_in(msg), inject_status_of(cause),
				     cause);
		return;
	}
	msg->nsends++;
	out_fail_later(msg, inject_status_of(cause), cause);
}

/* Applies the rules at @point. Returns true if @msg does not go on; that is
 * also what the functions of struct msg_faults return. */
static bool strike(struct msg_out *msg, enum fault_point point)
{
	bool made = true, stays = false;
	struct fault_hit hit;

	decide(msg, point, &hit);
	switch (hit.kind) {
	case LNET_FAULT_KINDS:
		return false;
	case LNET_FAULT_DROP:
		in_drop(came_in(msg), STAT_drop_fault);
		return true;
	case LNET_FAULT_ERROR:
		inject_fail(msg, point, hit.cause);
		return true;
	case LNET_FAULT_DELAY:
		made = stays = delay(msg, point, hit.latency_ns);
		break;
	case LNET_FAULT_DUPLICATE:
		/* A REPLY cannot be sent twice. */
		if (point == IS_ANSWERED) {
			cpt_stat(msg->cpt, STAT_faults_skipped);
			return false;
		}
		made = tamper_copy(msg);
		if (made)
			tamper_send_twice(msg);
		break;
	case LNET_FAULT_CORRUPT:
		made = tamper_copy(msg);
		if (made)
			tamper_flip(msg, hit.draw);
		break;
	}
	if (!made)
		skipped(msg->cpt, point == DEPARTS ? &msg->lnd.next_hop
						   : &came_in(msg)->from);
	return stays;
}

/* Messages that this node sends to itself meet no rules. */
static bool fault_arrive(struct msg_in *msg)
{
	return !ni_is_lo(msg->out.ni) && strike(&msg->out, ARRIVES);
}

static bool fault_depart(struct msg_out *msg)
{
	return strike(msg, DEPARTS);
}

static bool fault_answer(struct msg_in *msg)
{
	return strike(&msg->out, IS_ANSWERED);
}

struct fault_set *fault_set_new(unsigned int n)
{
	struct fault_set *set =
		calloc(1, sizeof(*set) + n * sizeof(set->rule[0]));

	if (set)
		set->does = (struct msg_faults){ fault_arrive, fault_depart,
						 fault_answer };
	return set;
}
