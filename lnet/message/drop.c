/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/drop.h"

#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/net/net.h"

static void drop_count(struct lnet_cpt *cpt, struct lnet_ni *ni, uint32_t type,
		       uint32_t length, enum lnet_stat why)
{
	cpt_stat(cpt, STAT_drop_count);
	stat_add(&cpt->stats[STAT_drop_length], length);
	cpt_stat(cpt, why);
	traffic_add(&ni->cpt[cpt->index].traffic.drop, type, length);
}

void drop_rx(struct lnet_cpt *cpt, struct lnet_ni *ni, void *rx, uint32_t type,
	     uint32_t length, enum lnet_stat why)
{
	drop_count(cpt, ni, type, length, why);
	ni->lnd.lnd->recv(&ni->lnd, rx, NULL, length);
}

void drop_msg(struct lnet_msg *msg, enum lnet_stat why)
{
	struct lnet_cpt *cpt = msg->cpt;

	if (msg->sender)
		traffic_add(&msg->sender->traffic.drop, msg->hdr.type,
			    msg->hdr.payload_length);
	drop_count(cpt, msg->ni, msg->hdr.type, msg->hdr.payload_length, why);
	msg_discard(msg);
	ni_unref(msg->ni, cpt->index);
	msg->ni = NULL;
	msg_free(msg);
}
