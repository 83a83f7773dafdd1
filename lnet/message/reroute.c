/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/reroute.h"

#include <errno.h>

#include "lnet/message/end.h"
#include "lnet/message/forward.h"
#include "lnet/message/unexpected.h"
#include "lnet/message/msgs.h"
#include "lnet/message/throttle.h"
#include "lnet/message/tamper.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"

/* A walk through waiting messages. */
struct reroute {
	struct lnet_cpt *cpt;
	/* Which messages are visited: by NI, peer NI and pid. NULL and
	 * LNET_PID_ANY stand for all. */
	const struct lnet_ni *ni;
	const struct lnet_peer_ni *lpni;
	uint32_t pid;
	void (*fn)(struct msg_out *msg, struct list *out);
	/* Messages that @fn puts here are sent after the walk, because sending
	 * them changes the queues. */
	struct list out;
};

static void queue_each(struct reroute *r, struct list *queue)
{
	struct msg_out *msg, *next;

	list_for_each_entry_safe (msg, next, queue, link)
		if ((!r->ni || msg->ni == r->ni) &&
		    (!r->lpni || msg->lpni == r->lpni) &&
		    (r->pid == LNET_PID_ANY || msg->lnd.next_pid == r->pid))
			r->fn(msg, &r->out);
}

static void peer_each(struct reroute *r, struct lnet_peer_ni *lpni)
{
	queue_each(r, &lpni->connecting);
	queue_each(r, &lpni->first);
	queue_each(r, &lpni->queue);
}

static void ni_each(struct reroute *r, struct lnet_ni *ni)
{
	queue_each(r, &ni->cpt[r->cpt->index].first);
	queue_each(r, &ni->cpt[r->cpt->index].queue);
}

/* Visits the queues of peers first, so that no returned credit starts a message
 * that is to leave. */
static void all_each(struct reroute *r, struct lnet_ni *ni)
{
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	r->ni = ni;
	while ((n = hash_walk(&peer_cpt(r->cpt)->peers, &bucket, n)))
		peer_each(r, container_of(n, struct lnet_peer_ni, hash));
	queue_each(r, &msg_cpt(r->cpt)->delayed_out);
	ni_each(r, ni);
}

static struct reroute reroute_of(struct lnet_cpt *cpt,
				 void (*fn)(struct msg_out *, struct list *))
{
	return (struct reroute){ .cpt = cpt, .pid = LNET_PID_ANY, .fn = fn };
}

/* ---- NIs that are down, or end ---- */

static void leave(struct msg_out *msg, struct list *out)
{
	if (!out_can_leave(msg))
		return;
	out_withdraw(msg, OUT_NEW);
	list_add_tail(out, &msg->link);
}

/* As reroute_nis_down(), for one NI, which is down or no longer configured. */
static void reroute_ni(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	struct reroute r = reroute_of(cpt, leave);

	list_init(&r.out);
	all_each(&r, ni);
	while (!list_empty(&r.out)) {
		struct msg_out *msg = list_first(&r.out, struct msg_out, link);

		list_del(&msg->link);
		out_send_anew(msg);
	}
}

void reroute_nis_down(struct lnet_cpt *cpt)
{
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		if (!ni_is_up(cpt->config->ni[i]))
			reroute_ni(cpt->config->ni[i], cpt);
}

static void reroute_fail(struct msg_out *msg, struct list *out)
{
	(void)out;
	out_finalize_post(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
}

void shutdown_ni(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	struct reroute r = reroute_of(cpt, reroute_fail);

	ni->cpt[cpt->index].stopped = true;
	if (!cpt->closing)
		reroute_ni(ni, cpt);
	resend_leave(cpt, ni, NULL);
	all_each(&r, ni);
	tamper_discard(cpt, ni);
	throttle_discard(cpt, ni);
	forward_discard(cpt, ni);
	unexpected_discard(cpt, ni);
	ni->lnd.lnd->shutdown(&ni->lnd, cpt->index);
}

/* ---- peers that have moved ---- */

static void leave_with_peer(struct msg_out *msg, struct list *out)
{
	if (msg->role == OUT_DUPLICATE)
		return;
	out_withdraw(msg, OUT_NEW);
	loop_timer_cancel(msg->cpt->loop, &msg->timer);
	list_add_tail(out, &msg->link);
}

void reroute_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	const struct lnet_config *config = cpt->config;
	struct reroute r = reroute_of(cpt, leave_with_peer);

	list_init(&r.out);
	r.lpni = lpni;
	lpni->connecting_from = lpni->connected_from = 0;
	resend_leave(cpt, NULL, lpni);
	peer_each(&r, lpni);
	queue_each(&r, &msg_cpt(cpt)->delayed_out);
	for (unsigned int i = 0; config && i < config->nnis; i++)
		ni_each(&r, config->ni[i]);
	while (!list_empty(&r.out)) {
		struct msg_out *msg = list_first(&r.out, struct msg_out, link);

		list_del(&msg->link);
		out_launch(msg);
	}
}

/* ---- silent peers ---- */

/* Ends the attempt of @msg before its deadline if @msg has another path, or if
 * it is for another node: a router keeps no messages for dead peers. @msg
 * itself ends, after the walk, if there is no memory for another attempt, or if
 * it would repeat an attempt over its only path. */
static void reroute_give_up(struct msg_out *msg, struct list *out)
{
	(void)out;
	if (msg->role == OUT_FORWARD || resend_could(msg))
		out_finalize_post(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
	else if (resend_waits_to_repeat(msg))
		resend_give_up(msg);
}

static void leave_path(struct lnet_ni *ni, struct lnet_cpt *cpt,
		       struct lnet_peer_ni *lpni, uint32_t pid)
{
	struct reroute r = reroute_of(cpt, reroute_give_up);

	r.ni = ni;
	r.lpni = lpni;
	r.pid = pid;
	peer_each(&r, lpni);
	ni_each(&r, ni);
}

void reroute_silent(struct lnet_ni *ni, struct lnet_cpt *cpt,
		    const struct ulnet_id *peer, uint64_t ns)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, &peer->nid);

	cpt_stat(cpt, STAT_silences);
	if (!lpni)
		return;
	health_lose_silent(cpt, ni, lpni, ns);
	leave_path(ni, cpt, lpni, peer->pid);
}

void reroute_peer_ni_down(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		leave_path(cpt->config->ni[i], cpt, lpni, LNET_PID_ANY);
}
