/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the requests of a console, and waits in real time. These functions are
 * in a file of their own, so that a program with another clock can link others
 * in their place. */
#include "call.h"

#define POLL_US UINT64_C(100000)

static void ask_done(struct lst_call *call)
{
	struct lst_ask *ask = LST_OF(call, struct lst_ask, call);

	ask->status = call->status;
	ask->reply = call->msg;
	--*ask->pending;
}

void lst_ask_all(struct lst_calls *calls, struct lst_ask *asks, unsigned int n,
		 uint32_t seconds)
{
	unsigned int pending = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct lst_ask *ask = &asks[i];

		ask->pending = &pending;
		ask->call.done = ask_done;
		ask->status = lnet_ni_reach(calls->node, &ask->to.nid);
		if (!ask->status)
			ask->status = lst_call_begin(
				calls, &ask->call, ask->to, &ask->msg,
				ask->bulk.op ? &ask->bulk : NULL, seconds);
		pending += ask->status == 0;
	}
	while (pending) {
		lnet_poll(calls->node, POLL_US);
		lst_calls_tick(calls, lnet_now(calls->node, LST_HOME));
	}
}

void lst_ask_wait(struct lst_calls *calls, uint64_t us)
{
	uint64_t end = lnet_now(calls->node, LST_HOME) + us * 1000, now;

	while ((now = lnet_now(calls->node, LST_HOME)) < end)
		lnet_poll(calls->node, (end - now) / 1000 + 1);
}
