/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/socklnd.h"

#include <errno.h>
#include <ifaddrs.h>

#include "lnd/netif.h"
#include "lnd/socklnd/handshake.h"
#include "lnd/socklnd/peer.h"

/* ---- consequences on the CPTs ---- */

static void on_link_changed(struct work *w)
{
	struct sock_cpt *cpt = container_of(w, struct sock_cpt, link_work);

	atomic_store(&cpt->link_posted, false);
	if (sock_ni_is_up(cpt->sni))
		sock_peers_link_up(cpt);
	else
		sock_peers_link_down(cpt);
	passage_arrived(&cpt->sni->passage);
}

static void post_link_changed(struct sock_ni *sni)
{
	for (unsigned int i = 0; i < sni->ni->cpts; i++) {
		struct sock_cpt *cpt = &sni->cpts[i];

		if (!atomic_exchange(&cpt->link_posted, true))
			passage_send(&sni->passage, cpt->loop, &cpt->link_work);
	}
}

void sock_link_init(struct sock_cpt *cpt)
{
	cpt->link_work.fn = on_link_changed;
}

/* ---- the state of links ---- */

/* LNet is told first: it would otherwise send the messages that the CPTs end
 * again on this NI. */
static void ni_look(struct sock_ni *sni, const char *fault)
{
	bool was = atomic_exchange(&sni->up, !fault);

	lnet_ni_set_up(sni->ni, !fault, fault);
	if (was || !fault)
		post_link_changed(sni);
}

static void sock_link_on_look(struct lnd_link *l, const struct ifaddrs *all)
{
	struct sock_ni *sni = container_of(l, struct sock_ni, link);

	lnd_link_name(sni->ni, all);
	ni_look(sni, netif_fault(all, &sni->ni->nid));
}

int sock_link_join(struct sock_ni *sni)
{
	struct sock_shared *s = sock_shared_get(sni->ni->shared);
	int rc;

	if (!s)
		return -ENOMEM;
	sni->link.ni = sni->ni;
	sni->link.look = sock_link_on_look;
	rc = lnd_link_join(&sni->link, &s->links);
	if (rc)
		sock_shared_put(sni->ni->shared);
	else
		lnd_link_look(&sni->link);
	return rc;
}

void sock_link_leave(struct sock_ni *sni)
{
	lnd_link_leave(&sni->link);
	sock_shared_put(sni->ni->shared);
}
