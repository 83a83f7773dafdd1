/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The health of local NIs and of peers' NIs (requirements D1, D2): 0 to
 * LNET_HEALTH_MAX, which is where it begins. Paths over what is in better
 * health are chosen first.
 *
 * A failed message takes health_sensitivity from what the failure is evidence
 * against, once in a turn of the CPT: one cut cable fails hundreds of messages
 * at once. A message that was received gives health_gain to the NI that it came
 * in on and to the one that it came from. That a message could be sent proves
 * nothing: it may lie in the buffer of a dead connection.
 *
 * A peer NI belongs to its CPT. A local NI is everybody's: its health is one
 * atomic number, which any CPT changes.
 */
#ifndef LNET_HEALTH_H
#define LNET_HEALTH_H

#include "base/util.h"
#include "lnet/net/ni.h"
#include "lnet/peer/peer.h"

struct lnet_cpt;

/* What a higher room does about changes. It calls no users' handlers. */
struct health_watch {
	/* It has lost health, and is ill. */
	void (*ni_ill)(struct lnet_cpt *cpt, struct lnet_ni *ni);
	void (*peer_ni_ill)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* It was ill when a message came in on it, or from it. */
	void (*ni_hears)(struct lnet_cpt *cpt, struct lnet_ni *ni);
	void (*peer_ni_heard)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
};

/* A message has failed, which is evidence against @ni, or @lpni. On the CPT
 * that had the message; that of @lpni. */
void health_lose_ni(struct lnet_cpt *cpt, struct lnet_ni *ni);
void health_lose_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* From @ni nothing gets to @lpni, which is evidence against both; but against
 * @lpni alone if it is unverified (provenance.h): strangers may name any
 * NID. */
void health_lose_both(struct lnet_cpt *cpt, struct lnet_ni *ni,
		      struct lnet_peer_ni *lpni);

/* Nothing has come back from @lpni for @ns on @ni: @lpni alone is to blame if
 * others were heard on @ni meanwhile, else health_lose_both(). On the CPT of
 * @lpni. */
void health_lose_silent(struct lnet_cpt *cpt, struct lnet_ni *ni,
			struct lnet_peer_ni *lpni, uint64_t ns);

/* Has anything come in on @ni within the last @ns? An interface that is cut off
 * hears nobody. */
bool health_ni_hears(const struct lnet_cpt *cpt, const struct lnet_ni *ni,
		     uint64_t ns);

/* health_heard() of what is not in full health. */
void health_gain_ni(struct lnet_cpt *cpt, struct lnet_ni *ni);
void health_gain_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* A message has come in on @ni from @lpni, on the CPT of both. */
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
