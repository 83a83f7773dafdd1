/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/leave.h"

#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/net/net.h"

/* Those that can leave go to @out, and are sent when nobody walks through the
 * queues any more: sending may take messages from them. */
static void leave_queue(struct list *queue, const struct lnet_ni *ni,
			struct list *out)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, queue, link) {
		if (msg->ni != ni || !msg_has_path(msg))
			continue;
		msg_withdraw(msg, MSG_NEW);
		list_add_tail(out, &msg->link);
	}
}

/* The peers' queues come first, so that no credit that comes back starts one of
 * the messages that are to leave. */
void leave_ni(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	struct hash_node *n = NULL;
	uint32_t bucket = 0;
	struct list out;

	list_init(&out);
	while ((n = hash_walk(&peer_cpt(cpt)->peers, &bucket, n))) {
		struct lnet_peer_ni *lpni =
			container_of(n, struct lnet_peer_ni, hash);

		leave_queue(&lpni->connecting, ni, &out);
		leave_queue(&lpni->first, ni, &out);
		leave_queue(&lpni->queue, ni, &out);
	}
	leave_queue(&msg_cpt(cpt)->delayed_out, ni, &out);
	leave_queue(&ni->cpt[cpt->index].first, ni, &out);
	leave_queue(&ni->cpt[cpt->index].queue, ni, &out);
	while (!list_empty(&out)) {
		struct lnet_msg *msg = list_first(&out, struct lnet_msg, link);

		list_del(&msg->link);
		msg_send_anew(msg);
	}
}

void leave_nis_down(struct lnet_cpt *cpt)
{
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		if (!ni_is_up(cpt->config->ni[i]))
			leave_ni(cpt->config->ni[i], cpt);
}
