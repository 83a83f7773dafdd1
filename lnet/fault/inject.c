/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/fault/inject.h"

#include <errno.h>
#include <stdlib.h>

#include "lnet/message/copy.h"
#include "lnet/message/delay.h"
#include "lnet/message/end.h"
#include "lnet/message/msg.h"
#include "lnet/message/request.h"
#include "lnet/net/net.h"

static int status_of(enum ulnet_cause cause)
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

static void look_at(const struct lnet_msg *msg, const struct fault_look *look,
		    struct fault_hit *hit)
{
	const struct fault_set *set = container_of(
		msg_cpt(msg->cpt)->faults, const struct fault_set, does);

	fault_decide(set->rule, set->n, look, hit);
}

static void decide(const struct lnet_msg *msg, bool sending,
		   struct fault_hit *hit)
{
	const struct fault_look look = {
		.source = &msg->hdr.src_nid,
		.dest = &msg->hdr.dest_nid,
		.local = &msg->ni->lnd.nid,
		.type = msg->hdr.type,
		.portal = msg->hdr.portal,
		.length = msg->hdr.payload_length,
		.sending = sending,
		.now = loop_now(msg->cpt->loop),
	};

	look_at(msg, &look, hit);
}

/* What this node sends to itself is no traffic. */
static bool fault_arrive(struct lnet_msg *msg)
{
	struct fault_hit hit;

	if (ni_is_lo(msg->ni))
		return false;
	decide(msg, false, &hit);
	switch (hit.act) {
	case FAULT_DROP:
		drop_msg(msg, STAT_drop_fault);
		return true;
	case FAULT_DELAY:
		if (delay_arrival(msg, hit.latency_ns))
			return true;
		skipped(msg->cpt, &msg->from);
		return false;
	default:
		return false;
	}
}

/* Nothing of @msg leaves, and nothing of the connections that it would have
 * used is touched. The path was tried, and the event names it. */
static void fail(struct lnet_msg *msg, enum ulnet_cause cause)
{
	msg->tries++;
	msg_fail_later(msg, status_of(cause), cause);
}

static bool fault_depart(struct lnet_msg *msg)
{
	struct fault_hit hit;

	decide(msg, true, &hit);
	switch (hit.act) {
	case FAULT_DELAY:
		delay_sending(msg, hit.latency_ns);
		return true;
	case FAULT_DUPLICATE:
		if (copy_make(msg))
			copy_again(msg);
		else
			skipped(msg->cpt, &msg->lnd.next_hop);
		return false;
	case FAULT_CORRUPT:
		if (copy_make(msg))
			copy_flip(msg, hit.draw);
		else
			skipped(msg->cpt, &msg->lnd.next_hop);
		return false;
	case FAULT_FAIL:
		fail(msg, hit.cause);
		return true;
	default:
		return false;
	}
}

/* The header is the GET's. */
static void decide_reply(const struct lnet_msg *msg, struct fault_hit *hit)
{
	const struct fault_look look = {
		.source = &msg->hdr.dest_nid,
		.dest = &msg->hdr.src_nid,
		.local = &msg->ni->lnd.nid,
		.type = LNET_MSG_REPLY,
		.length = msg->mlength,
		.sending = true,
		.now = loop_now(msg->cpt->loop),
	};

	look_at(msg, &look, hit);
}

/* As fault_depart(). A REPLY that fails has no other path; the peer's LND hears
 * that there is none, and the peer's GET waits for it in vain. */
static bool fault_answer(struct lnet_msg *msg)
{
	struct fault_hit hit;

	decide_reply(msg, &hit);
	switch (hit.act) {
	case FAULT_DELAY:
		if (delay_answer(msg, hit.latency_ns))
			return true;
		skipped(msg->cpt, &msg->from);
		return false;
	case FAULT_CORRUPT:
		if (copy_make(msg))
			copy_flip(msg, hit.draw);
		else
			skipped(msg->cpt, &msg->from);
		return false;
	case FAULT_FAIL:
		request_forget_reply(msg, status_of(hit.cause), hit.cause);
		return true;
	case FAULT_DUPLICATE:
		/* There is one answer. */
		cpt_stat(msg->cpt, STAT_faults_skipped);
		return false;
	default:
		return false;
	}
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
