/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/funnel.h"

#include "base/mutation.h"
#include "lnd/lnd.h"
#include "lnet/message/msg.h"
#include "lnet/message/op.h"
#include "lnet/message/resend.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"

/* Of LNET_CAUSE_LOCAL_TIMEOUT: who has not served the message in time. A queue
 * in an LND is that of a connection: it is the peer that does not read. */
static const enum lnd_blame late_blame[MSG_STATES] = {
	[MSG_PEER_QUEUE] = LND_BLAME_PEER,
	[MSG_NI_QUEUE] = LND_BLAME_LOCAL,
	[MSG_CONNECTING] = LND_BLAME_PEER,
	[MSG_LND] = LND_BLAME_PEER,
};

static enum lnd_blame blame(const struct lnet_msg *msg, int status,
			    enum ulnet_cause cause)
{
	enum lnd_blame b = lnd_rule(status, cause).blame;

	if (cause == LNET_CAUSE_LOCAL_TIMEOUT && b != LND_BLAME_NOBODY)
		return late_blame[msg->fsm.state];
	return b;
}

/* Was this try's transmission begun? */
static bool has_left(const struct lnet_msg *msg)
{
	return msg->tries > (msg->again ? msg->again->tried.n : 0);
}

static void count_peer_ni(struct lnet_peer_ni *lpni, enum ulnet_cause cause)
{
	switch (cause) {
	case LNET_CAUSE_REMOTE_DROPPED:
		stat_inc(&lpni->failed.dropped);
		break;
	case LNET_CAUSE_REMOTE_ERROR:
		stat_inc(&lpni->failed.error);
		break;
	case LNET_CAUSE_REMOTE_TIMEOUT:
		stat_inc(&lpni->failed.timeout);
		break;
	case LNET_CAUSE_NETWORK_TIMEOUT:
		stat_inc(&lpni->failed.network_timeout);
		break;
	default:
		break;
	}
}

/* Of a message that was given up an LND knows only how far it had come, which
 * would be counted as if the network had been late. */
static enum ulnet_cause counted_as(const struct lnet_msg *msg, int status,
				   enum ulnet_cause cause)
{
	if (likely(!atomic_load(&msg->forsaken)) ||
	    status != msg->op->cancel_status)
		return cause;
	return msg->op->cancel_cause;
}

static void count(struct lnet_msg *msg, enum ulnet_cause cause)
{
	enum lnet_stat s = stat_of_cause(cause);

	if (s != STAT_COUNT)
		cpt_stat(msg->cpt, s);
	if (msg->ni)
		stat_inc(&msg->ni->cpt[msg->cpt->index].failed[cause]);
	if (msg->lpni)
		count_peer_ni(msg->lpni, cause);
}

static void lower_health(struct lnet_msg *msg, enum lnd_blame blame)
{
	switch (blame) {
	case LND_BLAME_NOBODY:
		break;
	case LND_BLAME_LOCAL:
		health_lose_ni(msg->cpt, msg->ni);
		break;
	case LND_BLAME_PEER:
		health_lose_peer_ni(msg->cpt, msg->lpni);
		break;
	case LND_BLAME_BOTH:
		health_lose_both(msg->cpt, msg->ni, msg->lpni);
		break;
	}
}

bool funnel_failed(struct lnet_msg *msg, int status, enum ulnet_cause cause)
{
	bool has_path = msg->ni && msg->lpni;

	count(msg, counted_as(msg, status, cause));
	if (has_left(msg) && !lnd_rule(status, cause).not_delivered &&
	    !MUTATE(forget_doubt))
		msg->flags |= MSG_DOUBTED;
	if (!has_path)
		return false;
	if (!(msg->flags & MSG_PROBE))
		lower_health(msg, blame(msg, status, cause));
	return resend_after(msg, status, cause);
}
