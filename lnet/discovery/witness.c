/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/witness.h"

#include <stdlib.h>

#include "base/backoff.h"
#include "base/log.h"
#include "lnet/core/cpt.h"
#include "lnet/discovery/told.h"
#include "lnet/peer/member.h"
#include "lnet/peer/word.h"

static bool names(const struct ulnet_ping_info *info,
		  const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < info->nnis; i++)
		if (lnet_nid_eq(&info->ni[i].nid, nid))
			return true;
	return false;
}

/* Does @lpni name another NI of its peer that is known to be so? */
static bool agrees(const struct lnet_peer_ni *lpni,
		   const struct ulnet_ping_info *info)
{
	const struct lnet_peer_net *pn;
	const struct lnet_peer_ni *p;

	list_for_each_entry (pn, &lpni->peer->nets, link)
		list_for_each_entry (p, &pn->nis, link)
			if (p != lpni && !word_is_hearsay(p) &&
			    names(info, &p->nid))
				return true;
	return lpni->peer->nnis == 1;
}

static const struct backoff_law denials = {
	.policy = BACKOFF_EQUAL,
	.max = BACKOFF_NO_MAX,
	.base = NSEC_PER_SEC,
	.cap = 60 * NSEC_PER_SEC,
};

static void claim_denied(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct loop *loop = cpt->loop;

	lpni->claims_denied += lpni->claims_denied < UINT32_MAX;
	lpni->claims_after =
		loop_now(loop) + backoff_pause(&denials, lpni->claims_denied,
					       loop_random(loop));
}

static void claim_confirmed(struct lnet_peer_ni *lpni)
{
	lpni->claims_denied = 0;
	lpni->claims_after = 0;
}

/* Who has claimed @lpni is refused, unless @lpni says the same. */
static void answer_claim(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			 const struct ulnet_ping_info *info)
{
	char by[LNET_NIDSTR_SIZE], nid[LNET_NIDSTR_SIZE];

	if (lnet_nid_is_any(&lpni->claimed_by))
		return;
	if (names(info, &lpni->claimed_by)) {
		claim_confirmed(lpni);
		return;
	}
	claim_denied(cpt, lpni);
	cpt_stat(cpt, STAT_claims_refused);
	log_warn_limited(&cpt->limits_log, loop_now(cpt->loop), "discovery",
			 "%s names %s as one of its NIDs, which says otherwise",
			 lnet_nid_format(&lpni->claimed_by, by, sizeof(by)),
			 lnet_nid_format(&lpni->nid, nid, sizeof(nid)));
}

/* A push that denies a claim may be older than what is claimed, and late: the
 * answer to a question is not. */
static bool settles(const struct lnet_peer_ni *lpni, const struct told *told,
		    const struct ulnet_ping_info *info)
{
	return told->source == MERGE_REPLY || !word_is_doubted(lpni) ||
	       names(info, &lpni->claimed_by);
}

static int hear(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		const struct ulnet_ping_info *info)
{
	answer_claim(cpt, lpni, info);
	if (!agrees(lpni, info))
		return member_split(cpt, lpni);
	word_given(cpt, lpni);
	return 0;
}

int witness_hear(struct lnet_cpt *cpt, struct lnet_peer *peer,
		 const struct told *told, struct lnet_peer **of)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, &told->from);
	struct ulnet_ping_info info;
	struct ulnet_ping_ni *ni;
	size_t cut;
	int rc;

	*of = NULL;
	if (!lpni || lpni->place.state != PEER_HERE)
		return 0;
	*of = lpni->peer;
	if (*of != peer || lpni->word.state == PEER_WORD_OWN ||
	    settings_discovery(&cpt->node->settings) != LNET_DISCOVERY_ON)
		return 0;
	rc = told_decode(cpt, told, &info, &ni, &cut);
	if (!rc && !cut && settles(lpni, told, &info))
		rc = hear(cpt, lpni, &info);
	free(ni);
	if (!rc)
		*of = lpni->peer;
	return rc;
}
