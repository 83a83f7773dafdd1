/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/fault/inject.h"

#include <errno.h>
#include <stdlib.h>

#include "lnet/message/end.h"
#include "lnet/message/request.h"
#include "lnet/message/tamper.h"
#include "lnet/net/net.h"

/* Where rules meet a message. The answer to a GET has the GET's header. */
enum fault_place { ARRIVES, DEPARTS, IS_ANSWERED };

/* What has come in, of which @msg is a part, unless it DEPARTS. */
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

static void skipped(struct lnet_cpt *cpt, const struct ulnet_nid *peer)
{
	char nid[LNET_NIDSTR_SIZE];

	cpt_stat(cpt, STAT_faults_skipped);
	log_warn_limited(&cpt->limits_log, loop_now(cpt->loop), "fault",
			 "%s: a fault is not made, because the share of what "
			 "is kept, or memory, is used up",
			 lnet_nid_format(peer, nid, sizeof(nid)));
}

static void decide(const struct msg_out *msg, enum fault_place place,
		   struct fault_hit *hit)
{
	const struct fault_set *set = container_of(
		msg_cpt(msg->cpt)->faults, const struct fault_set, does);
	const struct lnet_hdr *hdr = &msg->hdr;
	bool answer = place == IS_ANSWERED;
	const struct fault_look look = {
		.source = answer ? &hdr->dest_nid : &hdr->src_nid,
		.dest = answer ? &hdr->src_nid : &hdr->dest_nid,
		.local = &msg->ni->lnd.nid,
		.type = answer ? LNET_MSG_REPLY : hdr->type,
		.portal = hdr->portal,
		.length = answer ? came_in(msg)->mlength : hdr->payload_length,
		.sending = place != ARRIVES,
		.now = loop_now(msg->cpt->loop),
	};

	fault_decide(set->rule, set->n, &look, hit);
}

/* False: there is no room for one more that is delayed. */
static bool delay(struct msg_out *msg, enum fault_place place, uint64_t ns)
{
	if (place == ARRIVES)
		return tamper_delay(came_in(msg), ns);
	if (place == IS_ANSWERED)
		return tamper_delay_answer(came_in(msg), ns);
	out_delay(msg, ns);
	return true;
}

/* Nothing of @msg leaves, and nothing of the connections that it would have
 * used is touched. The path was tried, and the event names it. A REPLY that
 * fails has no other path; the peer's LND hears that there is none, and the
 * peer's GET waits for it in vain. */
static void inject_fail(struct msg_out *msg, enum fault_place place,
			enum ulnet_cause cause)
{
	if (place == IS_ANSWERED) {
		request_forget_reply(came_in(msg), inject_status_of(cause),
				     cause);
		return;
	}
	msg->tries++;
	out_fail_later(msg, inject_status_of(cause), cause);
}

/* As msg_faults: true if @msg does not go on. */
static bool strike(struct msg_out *msg, enum fault_place place)
{
	bool made = true, stays = false;
	struct fault_hit hit;

	decide(msg, place, &hit);
	switch (hit.act) {
	case FAULT_NOTHING:
		return false;
	case FAULT_DROP:
		in_drop(came_in(msg), STAT_drop_fault);
		return true;
	case FAULT_FAIL:
		inject_fail(msg, place, hit.cause);
		return true;
	case FAULT_DELAY:
		made = stays = delay(msg, place, hit.latency_ns);
		break;
	case FAULT_DUPLICATE:
		/* There is one answer. */
		if (place == IS_ANSWERED) {
			cpt_stat(msg->cpt, STAT_faults_skipped);
			return false;
		}
		made = tamper_copy(msg);
		if (made)
			tamper_send_twice(msg);
		break;
	case FAULT_CORRUPT:
		made = tamper_copy(msg);
		if (made)
			tamper_flip(msg, hit.draw);
		break;
	}
	if (!made)
		skipped(msg->cpt, place == DEPARTS ? &msg->lnd.next_hop
						   : &came_in(msg)->from);
	return stays;
}

/* What this node sends to itself is no traffic. */
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
