/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * By whose word a peer NI is its peer's. What one NI of a peer says of another
 * one's NID is hearsay, until that NID itself has said the same: so nobody can
 * be made a part of a peer that he knows nothing of.
 *
 *	own	its own word, or an administrator's, or it is alone
 *	claimed	... and another peer names it: it is to be asked again
 *	hearsay	only that of another NI of its peer; never used
 *	doubted	... and now it is used: it is to be asked
 *
 * To a NID that is hearsay, messages go by no other NID; those to its peer may
 * go by it. Who asks is discovery. Peers that are configured are not asked.
 *
 * Liars may claim the same NID again and again, in turn: after each claim that
 * it has denied, a NID is not asked for a time, which doubles up to a minute.
 * Claims that come meanwhile are counted, and the last one is answered when
 * that time is over.
 *
 * Owner of all of it: the CPT.
 */
#ifndef LNET_WORD_H
#define LNET_WORD_H

#include "lnet/peer/peer.h"

enum peer_word {
	PEER_WORD_OWN,
	PEER_WORD_CLAIMED,
	PEER_WORD_HEARSAY,
	PEER_WORD_DOUBTED,
	PEER_WORDS
};
extern const struct fsm_state peer_words[PEER_WORDS];

static inline bool word_is_hearsay(const struct lnet_peer_ni *lpni)
{
	return lpni->word.state >= PEER_WORD_HEARSAY;
}

/* Is it to be asked? */
static inline bool word_is_doubted(const struct lnet_peer_ni *lpni)
{
	return lpni->word.state == PEER_WORD_CLAIMED ||
	       lpni->word.state == PEER_WORD_DOUBTED;
}

/* It has spoken, or need not any more. */
void word_given(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
/* It is its peer's because @by has said so. */
void word_hearsay(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		  const struct ulnet_nid *by);
/* It is to be asked. */
void word_doubted(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
/* It was not asked after all, or has not answered. */
void word_undoubted(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* @by, an NI of another peer, names @lpni, which keeps its peer until it says
 * otherwise: it is asked, but for the pauses above. */
void word_claimed(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		  const struct ulnet_nid *by);

/* What strangers may have said is no part of what an administrator makes: not
 * that @lpni is another one's, nor that others are its peer's. Those that are
 * only said to be of its peer become peers of their own. 0, or -ENOMEM, when
 * some may have. */
int word_part(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni) must_check;

/* Forgets one that is hearsay and idle. False: there is none. */
bool word_forget_one(struct lnet_cpt *cpt);

#endif
