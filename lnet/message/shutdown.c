/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/shutdown.h"

#include <errno.h>

#include "lnet/message/delay.h"
#include "lnet/message/end.h"
#include "lnet/message/forward.h"
#include "lnet/message/hold.h"
#include "lnet/message/leave.h"
#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/message/park.h"
#include "lnet/net/net.h"

static void fail_queue(struct list *queue, const struct lnet_ni *ni)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, queue, link)
		if (msg->ni == ni)
			msg_finalize_post(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
}

/* Ends what still waits for a connection or a credit; the peers' queues first,
 * so that no credit that comes back starts one of them. */
static void fail_queued(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	while ((n = hash_walk(&peer_cpt(cpt)->peers, &bucket, n))) {
		struct lnet_peer_ni *lpni =
			container_of(n, struct lnet_peer_ni, hash);

		fail_queue(&lpni->connecting, ni);
		fail_queue(&lpni->first, ni);
		fail_queue(&lpni->queue, ni);
	}
	fail_queue(&msg_cpt(cpt)->delayed_out, ni);
	fail_queue(&ni->cpt[cpt->index].first, ni);
	fail_queue(&ni->cpt[cpt->index].queue, ni);
}

void shutdown_ni(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	ni->cpt[cpt->index].stopped = true;
	if (!cpt->closing)
		leave_ni(ni, cpt);
	resend_leave(cpt, ni, NULL);
	fail_queued(ni, cpt);
	delay_discard(cpt, ni);
	park_discard(cpt, ni);
	forward_discard(cpt, ni);
	hold_discard(cpt, ni);
	ni->lnd.lnd->shutdown(&ni->lnd, cpt->index);
}
