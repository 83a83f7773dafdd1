/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The health of local NIs and of peer NIs (requirements D1, D2). It is from 0
 * to LNET_HEALTH_MAX, with which each NI begins. Selection prefers healthier
 * NIs.
 *
 * A message that fails takes the setting health_sensitivity from each NI that
 * is to blame, but from each NI at most once in a turn of the CPT, since one
 * cut cable fails hundreds of messages at once. A message that is received
 * gives the setting health_gain to the local NI and to the peer NI. A message
 * that was sent gives nothing: it may still be in the buffer of a dead
 * connection.
 *
 * The health of a peer NI belongs to the CPT that owns the peer NI. The health
 * of a local NI is one atomic number, which any CPT changes.
 *
 * A path that loses some messages, such as long ones where the network's MTU is
 * smaller than its ends believe, lets pings pass. It would be well again in a
 * moment, and lose messages again. So a peer NI has a relapse if it falls ill
 * less than HEALTH_RELAPSE after an illness of which all pings were answered
 * soon: each halves what its next answers give (gain_of()). It forgets a
 * relapse for each HEALTH_RELAPSE that it is well, and all of them if a ping
 * fails, as then pings show how the path is. Relapses that all NIs of a peer
 * have had, for example because its host is busy, are no reason to prefer one
 * of the NIs: only those count that another NI of the peer has not had.
 */
#ifndef LNET_HEALTH_H
#define LNET_HEALTH_H

#include "base/util.h"
#include "lnet/net/ni.h"
#include "lnet/peer/peer.h"

struct lnet_cpt;

#define HEALTH_RELAPSE (10 * NSEC_PER_SEC)
/* the most relapses that count: an answer then gives a 32nd */
#define HEALTH_RELAPSES 5

/* Functions of a higher room (folder), which learns of changes by them. They
 * must not call users' handlers. */
struct health_watch {
	/* The local NI, or the peer NI, has lost health, and has less than
	 * LNET_HEALTH_MAX. */
	void (*ni_ill)(struct lnet_cpt *cpt, struct lnet_ni *ni);
	void (*peer_ni_ill)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* A message has come in on the local NI, or from the peer NI; the NI
	 * has had less than LNET_HEALTH_MAX. */
	void (*ni_hears)(struct lnet_cpt *cpt, struct lnet_ni *ni);
	void (*peer_ni_heard)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	/* The peer NI is that of a gateway. A message goes through it; or one
	 * that went through it was not answered, and perhaps not passed on. */
	void (*gateway_used)(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
	void (*gateway_doubted)(struct lnet_cpt *cpt,
				struct lnet_peer_ni *lpni);
};

/* Decrease the health of @ni, or of @lpni, because a message has failed and
 * that NI is to blame. Thread: for @ni the CPT that had the message; for @lpni
 * the CPT that owns it. */
void health_lose_ni(struct lnet_cpt *cpt, struct lnet_ni *ni);
void health_lose_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* Nothing gets from @ni to @lpni, and both are to blame. If @lpni is unverified
 * (provenance.h), only @lpni is: strangers may have made this node believe in
 * any NID, and must not harm its NIs. */
void health_lose_both(struct lnet_cpt *cpt, struct lnet_ni *ni,
		      struct lnet_peer_ni *lpni);

/* Nothing has come back from @lpni on @ni for @ns. If @ni has received anything
 * else meanwhile, only @lpni is to blame; otherwise as health_lose_both().
 * Thread: the CPT that owns @lpni. */
void health_lose_silent(struct lnet_cpt *cpt, struct lnet_ni *ni,
			struct lnet_peer_ni *lpni, uint64_t ns);

/* A message that was sent to the peer NI with @nid has not been answered in
 * time (LNET_CAUSE_RESPONSE_TIMEOUT). That is evidence against it, unless it is
 * that of a gateway (@routed): then it is not known who was silent, and the
 * gateway is asked whether it is well. Nor is it evidence against an NI that is
 * unverified (provenance.h): strangers may have named it, and must not make
 * this node ping it. Thread: the CPT that owns @nid. */
void health_lose_unanswered(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
			    bool routed);

/* health_ill(): an illness of @lpni begins. health_well(): it is over;
 * @pings_passed: pings were sent, and all of them were answered soon. Thread:
 * the CPT that owns @lpni. */
void health_ill(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
void health_well(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		 bool pings_passed);

/* The peer of @lpni says that @lpni is down, or up. While it is down it is
 * pinged, since a peer that does not push would not say that it is up again.
 * Thread: the CPT that owns @lpni. */
void health_report_peer_ni(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			   bool down);

/* Has @ni received anything within the last @ns? */
bool health_ni_hears(const struct lnet_cpt *cpt, const struct lnet_ni *ni,
		     uint64_t ns);

/* The slow part of health_heard(), for an NI that has less than
 * LNET_HEALTH_MAX. */
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
