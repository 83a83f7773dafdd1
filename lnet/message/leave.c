/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/leave.h"

#include <errno.h>

#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/message/end.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"

/* What is sent again for a fault has its payload in a copy, which is for its
 * path; what the copy was made from may be gone. */
static bool can_leave(const struct lnet_msg *msg)
{
	return msg->role != MSG_AGAIN_OUT && msg_has_path(msg);
}

/* Those that can leave go to @out, and are sent when nobody walks through the
 * queues any more: sending may take messages from them. */
static void leave_queue(struct list *queue, const struct lnet_ni *ni,
			struct list *out)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, queue, link) {
		if (msg->ni != ni || !can_leave(msg))
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

/* ---- connections that take long ---- */

/* What connecting usually takes, within a site. */
#define CONNECTED_SOON (20 * NSEC_PER_MSEC)

void leave_begin(struct lnet_msg *msg)
{
	uint64_t soon = loop_now(msg->cpt->loop) + CONNECTED_SOON;

	if (msg->lpni->only_in != msg->cpt->topology &&
	    soon < msg->lnd.deadline)
		loop_timer_arm(msg->cpt->loop, &msg->timer, soon);
}

/* Would @msg go by a path that is connected, if it was sent now? */
static bool is_connected_elsewhere(const struct lnet_msg *msg)
{
	struct path_want want;
	struct path path;

	msg_path_want(msg, msg->again ? &msg->again->tried : NULL, &want);
	return !path_select(msg->cpt, &want, &path) && path.ni && path.lpni &&
	       path.lpni->connected_from & path.ni->bit;
}

void leave_soon(struct lnet_msg *msg)
{
	loop_timer_arm(msg->cpt->loop, &msg->timer, msg->lnd.deadline);
	if (msg->fsm.state != MSG_CONNECTING || msg->role == MSG_AGAIN_OUT ||
	    !is_connected_elsewhere(msg))
		return;
	msg_withdraw(msg, MSG_NEW);
	msg_send_anew(msg);
}

/* ---- peers that have moved ---- */

static void leave_with_peer(struct list *queue, const struct lnet_peer_ni *lpni,
			    struct list *out)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, queue, link) {
		if (msg->lpni != lpni || msg->role == MSG_AGAIN_OUT)
			continue;
		msg_withdraw(msg, MSG_NEW);
		if (timer_armed(&msg->timer))
			loop_timer_cancel(msg->cpt->loop, &msg->timer);
		list_add_tail(out, &msg->link);
	}
}

void leave_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	const struct lnet_config *config = cpt->config;
	struct list out;

	list_init(&out);
	lpni->connecting_from = lpni->connected_from = 0;
	resend_leave(cpt, NULL, lpni);
	leave_with_peer(&lpni->connecting, lpni, &out);
	leave_with_peer(&lpni->first, lpni, &out);
	leave_with_peer(&lpni->queue, lpni, &out);
	leave_with_peer(&msg_cpt(cpt)->delayed_out, lpni, &out);
	for (unsigned int i = 0; config && i < config->nnis; i++) {
		struct ni_cpt *nc = &config->ni[i]->cpt[cpt->index];

		leave_with_peer(&nc->first, lpni, &out);
		leave_with_peer(&nc->queue, lpni, &out);
	}
	while (!list_empty(&out)) {
		struct lnet_msg *msg = list_first(&out, struct lnet_msg, link);

		list_del(&msg->link);
		msg_launch(msg);
	}
}

/* ---- silent peers ---- */

/* The tries of those that have another path end now, and not only when their
 * part of the time is over; and so do those of others' messages, of which a
 * router keeps none for the dead. A message for whose next try there is no
 * memory ends, but not before the walk has. */
static void leave_queue_silent(struct list *queue, const struct lnet_ni *ni,
			       const struct lnet_peer_ni *lpni, uint32_t pid)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, queue, link) {
		if (msg->ni != ni || msg->lpni != lpni ||
		    (pid != LNET_PID_ANY && msg->lnd.next_pid != pid) ||
		    (msg->role != MSG_FORWARD_OUT && !resend_could(msg)))
			continue;
		msg_finalize_post(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
	}
}

static void leave_path(struct lnet_ni *ni, struct lnet_cpt *cpt,
		       struct lnet_peer_ni *lpni, uint32_t pid)
{
	struct ni_cpt *nc = &ni->cpt[cpt->index];

	leave_queue_silent(&lpni->connecting, ni, lpni, pid);
	leave_queue_silent(&lpni->first, ni, lpni, pid);
	leave_queue_silent(&lpni->queue, ni, lpni, pid);
	leave_queue_silent(&nc->first, ni, lpni, pid);
	leave_queue_silent(&nc->queue, ni, lpni, pid);
}

void leave_silent(struct lnet_ni *ni, struct lnet_cpt *cpt,
		  const struct ulnet_id *peer, uint64_t ns)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, &peer->nid);

	cpt_stat(cpt, STAT_silences);
	if (!lpni)
		return;
	health_lose_silent(cpt, ni, lpni, ns);
	leave_path(ni, cpt, lpni, peer->pid);
}

void leave_peer_ni_down(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		leave_path(cpt->config->ni[i], cpt, lpni, LNET_PID_ANY);
}
