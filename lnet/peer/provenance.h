/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Provenance: by whose statement a peer NI belongs to its peer. What one NI of
 * a peer says of another NID is unverified until that NID itself has said the
 * same, so that no node can be made part of a peer without its consent. In
 * brackets, the names that users see (lnet_states(7)):
 *
 *	verified [own]		it has said so itself, or an administrator has,
 *				or it is the only NI of its peer
 *	disputed [claimed]	verified, but another peer names it now: it is
 *				to be asked again
 *	unverified [hearsay]	only another NI of its peer has said so, and it
 *				was never used
 *	questioned [doubted]	unverified, but used now: it is to be asked
 *
 * A message to an unverified NID goes to no other NID of its peer; but a
 * message to another NID of the peer may go to the unverified one. Discovery
 * asks NIDs whose they are, except the NIDs of configured peers.
 *
 * After a NID has denied a claim, it is not asked for some time, since liars
 * may claim it again and again. That time doubles with each denial, up to a
 * minute. Claims that come meanwhile are counted; the last of them is answered
 * when that time is over.
 *
 * Owner: the CPT.
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

/* Must @lpni be asked whose it is? */
static inline bool provenance_is_open(const struct lnet_peer_ni *lpni)
{
	return lpni->provenance.state == PEER_DISPUTED ||
	       lpni->provenance.state == PEER_QUESTIONED;
}

/* @lpni is verified from now on: it has said itself whose it is, or need not
 * say so. */
void provenance_verify(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
/* @lpni is unverified from now on: it belongs to its peer because @by has said
 * so. */
void provenance_unverify(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			 const struct ulnet_nid *by);
/* @lpni must be asked whose it is: a verified NI becomes disputed, an
 * unverified one questioned. */
void provenance_question(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
/* @lpni was not asked after all, or has not answered: a disputed NI becomes
 * verified again, a questioned one unverified. */
void provenance_unquestion(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* @by, an NI of another peer, has named @lpni. @lpni stays in its peer until it
 * says otherwise itself, and is asked, now or after the pause described above.
 */
void provenance_dispute(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			const struct ulnet_nid *by);

/* To be called before an administrator changes the peer of @lpni. If @lpni is
 * unverified, it leaves its peer; otherwise all unverified NIs leave the peer.
 * Each NI that leaves becomes a peer of its own. Returns 0; -ENOMEM: some NIs
 * may have left. */
int provenance_part(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni) must_check;

/* A stranger may have made up the unverified NIs of a peer, so this node tries
 * at most this many of them at a time. */
#define UNCONFIRMED_MAX 8

/* @lpni was an NI of @by, which does not name it any more, and is a peer of its
 * own now. It is forgotten as soon as nothing uses it: so a peer whose NIDs
 * change again and again leaves no more behind than one whose NIDs do not. It
 * is kept if something comes from it meanwhile, or if messages of this node
 * have named it as their target. @by is NULL if another CPT owned @lpni, and
 * has forgotten it. May free @lpni. */
void provenance_abandon(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			const struct lnet_peer *by);
/* Something has come from @peer, or it has got more NIs: if it was abandoned,
 * it is kept as any other peer is. */
void provenance_keep(struct lnet_cpt *cpt, struct lnet_peer *peer);
/* Forgets some of the peers that provenance_abandon() could not forget because
 * something used them, and that nothing uses now. Returns false if there was
 * none. */
bool provenance_forget_abandoned(struct lnet_cpt *cpt);

/* For peers_init(); and when the CPT closes. */
void provenance_init(struct lnet_cpt *cpt);
void provenance_stop(struct lnet_cpt *cpt);

/* Forgets one unverified NI that is idle. Returns false if none was found. */
bool provenance_forget_one(struct lnet_cpt *cpt);

#endif
