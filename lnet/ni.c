/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/ni.h"

#include <errno.h>

#include "base/log.h"
#include "lnet/msg.h"
#include "lnet/node.h"
#include "lnet/parse.h"
#include "lnet/peer.h"
#include "lnet/ping.h"

#define NI_CREDITS	256
#define NI_PEER_CREDITS 8

const struct fsm_state ni_states[NI_STATES] = {
	[NI_INIT] = { "init", FSM_TO(NI_ACTIVE) },
	[NI_ACTIVE] = { "active", FSM_TO(NI_DELETING) },
	[NI_DELETING] = { "deleting", 0 },
};

/* A CPT's share of the NI's credits (spec: max(credits / CPTs, 8 * peer
 * credits), at most all of them). */
static int32_t credits_share(const struct lnet_ni *ni, unsigned int cpts)
{
	uint32_t share = MAX(ni->credits_max / cpts, 8 * ni->peer_credits);

	return (int32_t)MIN(share, ni->credits_max);
}

static void ni_shutdown_work(struct work *w)
{
	struct ni_cpt *nc = container_of(w, struct ni_cpt, shutdown);

	ni_shutdown(nc->ni, nc->on);
}

static void ni_cpt_init(struct lnet_ni *ni, struct ni_cpt *nc,
			unsigned int cpts)
{
	nc->refs = 1;
	nc->ni = ni;
	nc->on = &ni->node->cpt[nc - ni->cpt];
	nc->shutdown.fn = ni_shutdown_work;
	nc->credits_max = credits_share(ni, cpts);
	credits_set(&nc->credits, nc->credits_max);
	credits_set(&nc->credits_min, nc->credits_max);
	list_init(&nc->queue);
}

static int ni_conf_check(const struct ulnet_ni_conf *conf)
{
	if (conf->credits > INT32_MAX / 2 || conf->peer_credits > 65535)
		return -EINVAL;
	if (lnet_nid_is_any(&conf->nid) ||
	    (conf->nid.size != 0 && conf->nid.size != 12))
		return -EINVAL;
	return 0;
}

static void ni_free(struct lnet_ni *ni)
{
	struct lnet *node = ni->node;

	free(ni->cpt);
	free(ni);
	if (atomic_fetch_sub(&node->nis_alive, 1) == 1)
		node_wake_closer(node);
}

int ni_new(struct lnet *node, const struct lnd *lnd,
	   const struct ulnet_ni_conf *conf, struct lnet_ni **ni_p)
{
	struct lnet_ni *ni;
	int rc = ni_conf_check(conf);

	if (rc)
		return rc;
	ni = calloc(1, sizeof(*ni));
	if (!ni)
		return -ENOMEM;
	ni->node = node;
	ni->net = lnet_nid_net(&conf->nid);
	ni->cpt = calloc(node->cpts, sizeof(*ni->cpt));
	if (!ni->cpt) {
		free(ni);
		return -ENOMEM;
	}
	ni->credits_max = conf->credits ? conf->credits : NI_CREDITS;
	ni->peer_credits =
		conf->peer_credits ? conf->peer_credits : NI_PEER_CREDITS;
	ni->peer_credits = MIN(ni->peer_credits, ni->credits_max);
	ni->lnd = (struct lnd_ni){
		.lnd = lnd,
		.nid = conf->nid,
		.incarnation = hash_u64(atomic_fetch_add(&node->ni_starts, 1),
					node->incarnation),
		.cpts = node->cpts,
		.loops = node->loops,
		.net = node->lnd_net,
	};
	atomic_init(&ni->up, true);
	atomic_init(&ni->live, node->cpts);
	for (unsigned int i = 0; i < node->cpts; i++)
		ni_cpt_init(ni, &ni->cpt[i], node->cpts);
	atomic_fetch_add(&node->nis_alive, 1);
	rc = lnd->startup(&ni->lnd);
	if (rc) {
		ni_free(ni);
		return rc;
	}
	fsm_move(&ni->fsm, ni_states, NI_ACTIVE);
	*ni_p = ni;
	return 0;
}

struct lnet_ni *config_ni(const struct lnet_config *c,
			  const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < c->nnis; i++)
		if (lnet_nid_eq(&c->ni[i]->lnd.nid, nid))
			return c->ni[i];
	return NULL;
}

bool config_has_net(const struct lnet_config *c, uint32_t net)
{
	for (unsigned int i = 0; i < c->nnis; i++)
		if (ni_net(c->ni[i]) == net)
			return true;
	return false;
}

void ni_ref(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	ni->cpt[cpt->index].refs++;
}

void ni_unref(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	struct ni_cpt *nc = &ni->cpt[cpt->index];

	BUG_ON(nc->refs == 0);
	if (--nc->refs)
		return;
	/* Whoever comes last sees what the other CPTs did before. */
	if (atomic_fetch_sub(&ni->live, 1) == 1) {
		ni->lnd.lnd->free(&ni->lnd);
		ni_free(ni);
	}
}

static void fail_queue(struct list *queue, const struct lnet_ni *ni)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, queue, link)
		if (msg->ni == ni)
			msg_finalize_post(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
}

/* Ends what waits for a credit; the peers' queues first, so that no credit that
 * comes back starts one of them. */
static void ni_fail_queued(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	while ((n = hash_walk(&cpt->peers, &bucket, n)))
		fail_queue(&container_of(n, struct lnet_peer_ni, hash)->queue,
			   ni);
	fail_queue(&ni->cpt[cpt->index].queue, ni);
}

void ni_shutdown(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	ni->cpt[cpt->index].stopped = true;
	ni_fail_queued(ni, cpt);
	parse_discard_held(cpt, ni);
	ni->lnd.lnd->shutdown(&ni->lnd, cpt->index);
}

void ni_shutdown_soon(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	loop_defer(cpt->loop, &ni->cpt[cpt->index].shutdown);
}

void lnet_ni_stopped(struct lnd_ni *lnd, unsigned int cpt)
{
	struct lnet_ni *ni = ni_of(lnd);

	ni_unref(ni, &ni->node->cpt[cpt]);
}

void lnet_ni_set_up(struct lnd_ni *lnd, bool up)
{
	struct lnet_ni *ni = ni_of(lnd);
	char nid[LNET_NIDSTR_SIZE];

	if (atomic_exchange(&ni->up, up) == up)
		return;
	log_info("ni", "%s: %s", lnet_nid_format(&lnd->nid, nid, sizeof(nid)),
		 up ? "up" : "down");
	ping_nis_changed(ni->node);
}

unsigned int lnet_ni_cpt_of(const struct lnd_ni *lnd,
			    const struct ulnet_nid *nid)
{
	const struct lnet_ni *ni = container_of(lnd, const struct lnet_ni, lnd);

	return node_cpt_of(ni->node, nid);
}
