/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Provenance: by whose statement a peer NI belongs to its peer. What one NI of
 * a peer says of another NID is unverified until that NID itself has said the
 * same: so no node can be made a part of a peer that it knows nothing of. The
 * names in brackets are those that users see (lnet_states(7)):
 *
 *	verified [own]		it has said so itself, or an administrator has,
 *				or it is the only NI of its peer
 *	disputed [claimed]	verified, but another peer names it now: it is
 *				to be asked again
 *	unverified [hearsay]	only another NI of its peer has said so; it was
 *				never used
 *	questioned [doubted]	unverified, but it is used now: it is to be
 *				asked
 *
 * A message to an unverified NID takes no other NID of its peer; a message to
 * another NID of the peer may take the unverified one. Discovery asks the NIDs,
 * but not those of peers that are configured.
 *
 * Liars may claim the same NID again and again, in turn: after each claim that
 * a NID has denied, it is not asked for a time, which doubles up to a minute.
 * Claims that come meanwhile are counted, and the last one is answered when
 * that time is over.
 *
 * Owner of all of it: the CPT.
 */
#ifndef LNET_PROVENANCE_H
#define LNET_PROVENANCE_H

#include "lnet/peer/peer.h"

enum peer_provenance {
	PEER_VERIFIED,
	PEER_DISPUTED,
	PEER_UNVERIFIED,
	PEER_QUESTIONED,
	PEER_PROVENANCES
};
extern const struct fsm_state peer_provenances[PEER_PROVENANCES];

static inline bool provenance_is_unverified(const struct lnet_peer_ni *lpni)
{
	return lpni->provenance.state >= PEER_UNVERIFIED;
}

/* Is @lpni to be asked whose it is? */
static inline bool provenance_is_open(const struct lnet_peer_ni *lpni)
{
	return lpni->provenance.state == PEER_DISPUTED ||
	       lpni->provenance.state == PEER_QUESTIONED;
}

/* @lpni has said itself whose it is, or need not any more. */
void provenance_verify(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
/* @lpni belongs to its peer because @by has said so. */
void provenance_unverify(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			 const struct ulnet_nid *by);
/* @lpni is to be asked whose it is. */
void provenance_question(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
/* @lpni was not asked after all, or has not answered. */
void provenance_unquestion(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* @by, an NI of another peer, names @lpni, which keeps its peer until it says
 * otherwise: @lpni is asked, now or after the pause that is described above. */
void provenance_dispute(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			const struct ulnet_nid *by);

/* Separates verified NIs from others, before an administrator changes the peer
 * of @lpni. If @lpni is unverified, it leaves its peer; otherwise all NIs of
 * the peer that are unverified leave. Each becomes a peer of its own. 0, or
 * -ENOMEM: then some may have left. */
int provenance_part(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni) must_check;

/* Forgets an NI that is unverified and idle. False: none was found. */
bool provenance_forget_one(struct lnet_cpt *cpt);

#endif
