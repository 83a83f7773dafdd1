/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/refusal.h"

#include <errno.h>

/* If the peer offers less than @asked, lowers @known to the offer. */
static bool take_offer(uint16_t asked, uint16_t offered, uint16_t *known)
{
	if (!offered || offered >= asked)
		return false;
	*known = MIN(*known, offered);
	return true;
}

/* Does the peer's LND, which has rejected with @r, want to be asked again? If
 * it offers something, @known becomes that. */
static bool is_again(const struct ib_reject *r, const struct ib_request *asked,
		     struct ib_request *known)
{
	if (r->full && r->stamp)
		known->peer.stamp = r->stamp;
	switch (r->reason) {
	case IB_REJECT_RACE:
	case IB_REJECT_STALE:
		return true;
	case IB_REJECT_INCOMPATIBLE:
		return r->version == IB_VERSION_2;
	case IB_REJECT_FRAGS:
		return take_offer(asked->frags, r->params.max_frags,
				  &known->frags);
	case IB_REJECT_DEPTH:
		return take_offer(asked->depth, r->params.queue_depth,
				  &known->depth);
	default:
		return false;
	}
}

static enum ulnet_cause cause_of(int status, bool answered)
{
	switch (status) {
	case -EHOSTUNREACH:
		return answered ? LNET_CAUSE_REMOTE_DROPPED
				: LNET_CAUSE_LOCAL_NO_ROUTE;
	case -ENODEV:
		return LNET_CAUSE_LOCAL_NO_ROUTE;
	case -ECONNREFUSED:
	case -ETIMEDOUT:
	case -EPROTO:
	case -ESTALE:
	case -ECONNRESET:
		return LNET_CAUSE_REMOTE_DROPPED;
	default:
		return LNET_CAUSE_LOCAL_DROPPED;
	}
}

struct ib_verdict ib_refusal_judge(int status, const struct ib_refusal *refusal,
				   const struct ib_request *asked,
				   struct ib_request *known)
{
	struct ib_verdict v = { .status = status };

	/* The peer has not answered. To LNet this errno means that the link is
	 * down, which is nobody's fault. */
	if (status == -ENETDOWN)
		v.status = -ETIMEDOUT;
	v.cause = cause_of(v.status, refusal->cm_reason);
	if (refusal->said)
		v.again = is_again(&refusal->reject, asked, known);
	else
		v.again = refusal->cm_reason == IB_CM_REJECT_STALE;
	return v;
}
