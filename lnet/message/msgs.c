/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/msgs.h"

#include "lnet/message/delay.h"
#include "lnet/message/msg.h"
#include "lnet/message/op.h"
#include "lnet/message/park.h"
#include "lnet/message/end.h"

const struct portal_users msgs_users = {
	.abandon = op_abandon_link,
	.buffer_came = hold_buffer_came,
};

static const struct msg_stages stages = {
	.goes = forward_goes,
	.late = { [MSG_OFFERED] = hold_offer_late,
		  [MSG_DELAYED] = delay_over,
		  [MSG_BUFFERLESS] = forward_late },
	.cancel_held = hold_late,
};

void msgs_init(struct lnet_cpt *cpt)
{
	struct msg_cpt *mc = msg_cpt(cpt);

	mc->stages = stages;
	id_table_init(&mc->ops, ID_TAG(cpt->index, ID_OP));
	pool_init(&mc->msg_pool, sizeof(struct lnet_msg),
		  cpt->node->conf.messages_max);
	pool_init(&mc->op_pool, sizeof(struct lnet_op), 0);
	pool_init(&mc->wish_pool, hold_wish_size(), 0);
	list_init(&mc->active);
	list_init(&mc->refunds);
	list_init(&mc->delayed_in);
	list_init(&mc->delayed_out);
	list_init(&mc->paused);
	router_init(cpt);
	holds_init(cpt);
	park_init(cpt);
}

void msgs_fini(struct lnet_cpt *cpt)
{
	struct msg_cpt *mc = msg_cpt(cpt);

	router_fini(cpt);
	holds_fini(cpt);
	cpt_pool_fini(cpt, &mc->msg_pool, "messages");
	cpt_pool_fini(cpt, &mc->op_pool, "operations");
	cpt_pool_fini(cpt, &mc->wish_pool, "wishes");
	id_table_fini(&mc->ops);
}

void msgs_abandon(struct lnet_cpt *cpt)
{
	delay_discard(cpt, NULL);
	resend_discard(cpt);
	forward_discard(cpt, NULL);
	park_discard(cpt, NULL);
	hold_discard(cpt, NULL);
	ops_abandon(cpt);
}

bool msgs_idle(const struct lnet_cpt *cpt)
{
	const struct msg_cpt *mc = msg_cpt(cpt);

	return list_empty(&mc->active) && mc->ops.used == 0 &&
	       mc->op_pool.used == 0 && mc->wish_pool.used == 0;
}
