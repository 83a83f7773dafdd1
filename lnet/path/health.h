/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The health of local NIs and of peer NIs (requirements D1, D2): from 0 to
 * LNET_HEALTH_MAX, with which each NI begins. Selection prefers healthier NIs.
 *
 * A failed message takes the setting health_sensitivity from the NIs that are
 * to blame, from each at most once in a turn of the CPT, since one cut cable
 * fails hundreds of messages at once. A received message gives health_gain to
 * the local NI and to the peer NI. A message that was sent gives nothing: it
 * may still be in the buffer of a dead connection.
 *
 * The health of a peer NI belongs to the CPT that owns it. That of a local NI
 * is one atomic number, which any CPT changes.
 */
#ifndef LNET_HEALTH_H
#define LNET_HEALTH_H

#include "base/util.h"
#include "lnet/net/ni.h"
#include "lnet/peer/peer.h"

struct lnet_cpt;

/* Functions of a higher room that learn of changes. They must not call users'
 * handlers. */
struct health_watch {
	/* The NI has lost health, and has less than LNET_HEALTH_MAX. */
	void (*ni_ill)(struct lnet_cpt *cpt, struct lnet_ni *ni);
	void (*peer_ni_ill)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* A message came in on the local NI, or from the peer NI, which had
	 * less than LNET_HEALTH_MAX. */
	void (*ni_hears)(struct lnet_cpt *cpt, struct lnet_ni *ni);
	void (*peer_ni_heard)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
};

/* A message has failed, and @ni, or @lpni, is to blame. Thread: for @ni the CPT
 * that had the message; for @lpni the CPT that owns it. */
void health_lose_ni(struct lnet_cpt *cpt, struct lnet_ni *ni);
void health_lose_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* Nothing gets from @ni to @lpni: both are to blame; only @lpni if it is
 * unverified (provenance.h), since strangers may name any NID. */
void health_lose_both(struct lnet_cpt *cpt, struct lnet_ni *ni,
		      struct lnet_peer_ni *lpni);

/* For @ns nothing has come back from @lpni on @ni: only @lpni is to blame if
 * @ni has received anything else meanwhile, otherwise health_lose_both().
 * Thread: the CPT that owns @lpni. */
void health_lose_silent(struct lnet_cpt *cpt, struct lnet_ni *ni,
			struct lnet_peer_ni *lpni, uint64_t ns);

/* Has @ni received anything within the last @ns? */
bool health_ni_hears(const struct lnet_cpt *cpt, const struct lnet_ni *ni,
		     uint64_t ns);

/* What health_heard() does for an NI that has less than LNET_HEALTH_MAX. */
void health_gain_ni(struct lnet_cpt *cpt, struct lnet_ni *ni);
void health_gain_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* A message from @lpni has come in on @ni. Thread: the CPT that owns @lpni. */
static inline void health_heard(struct lnet_cpt *cpt, struct lnet_ni *ni,
				struct lnet_peer_ni *lpni)
{
	ni_heard(&ni->cpt[cpt->index], loop_now(cpt->loop));
	if (unlikely(ni_health(ni) != LNET_HEALTH_MAX))
		health_gain_ni(cpt, ni);
	if (unlikely(lpni->health != LNET_HEALTH_MAX))
		health_gain_peer_ni(cpt, lpni);
}

#endif
