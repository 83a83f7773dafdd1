/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer/word.h"

#include "lnet/peer/member.h"

const struct fsm_state peer_words[PEER_WORDS] = {
	[PEER_WORD_OWN] = { "own", FSM_TO(PEER_WORD_CLAIMED) |
					   FSM_TO(PEER_WORD_HEARSAY) },
	[PEER_WORD_CLAIMED] = { "claimed", FSM_TO(PEER_WORD_OWN) },
	[PEER_WORD_HEARSAY] = { "hearsay", FSM_TO(PEER_WORD_OWN) |
						   FSM_TO(PEER_WORD_DOUBTED) },
	[PEER_WORD_DOUBTED] = { "doubted", FSM_TO(PEER_WORD_OWN) |
						   FSM_TO(PEER_WORD_HEARSAY) },
};

void word_given(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	if (word_is_hearsay(lpni)) {
		list_del(&lpni->hearsay);
		peer_cpt(cpt)->nhearsay--;
	}
	if (lpni->word.state != PEER_WORD_OWN)
		fsm_move(&lpni->word, peer_words, PEER_WORD_OWN);
}

void word_hearsay(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		  const struct ulnet_nid *by)
{
	word_given(cpt, lpni);
	fsm_move(&lpni->word, peer_words, PEER_WORD_HEARSAY);
	lpni->claimed_by = *by;
	list_add_tail(&peer_cpt(cpt)->hearsay, &lpni->hearsay);
	peer_cpt(cpt)->nhearsay++;
}

void word_doubted(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	(void)cpt;
	if (lpni->word.state == PEER_WORD_OWN)
		fsm_move(&lpni->word, peer_words, PEER_WORD_CLAIMED);
	else if (lpni->word.state == PEER_WORD_HEARSAY)
		fsm_move(&lpni->word, peer_words, PEER_WORD_DOUBTED);
}

void word_undoubted(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	if (lpni->word.state == PEER_WORD_CLAIMED)
		word_given(cpt, lpni);
	else if (lpni->word.state == PEER_WORD_DOUBTED)
		fsm_move(&lpni->word, peer_words, PEER_WORD_HEARSAY);
}

void word_claimed(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		  const struct ulnet_nid *by)
{
	lpni->claimed_by = *by;
	peer_cpt(cpt)->doubt(cpt, lpni);
}

/* One of @peer's NIs of which only another one says so, or NULL. */
static struct lnet_peer_ni *hearsay_of(const struct lnet_peer *peer)
{
	struct lnet_peer_ni *lpni;

	peer_for_each_ni (lpni, peer)
		if (word_is_hearsay(lpni))
			return lpni;
	return NULL;
}

int word_part(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct lnet_peer_ni *other;
	int rc = 0;

	if (word_is_hearsay(lpni))
		rc = member_split(cpt, lpni);
	while (!rc && (other = hearsay_of(lpni->peer)))
		rc = member_split(cpt, other);
	return rc;
}

/* Those that are in use are passed over: some of them. */
#define FORGET_TRIES 16

static bool hearsay_forget(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	if (lpni->refs || member_split(cpt, lpni))
		return false;
	return lpni->peer->refs == 0 && !peer_forget(cpt, lpni->peer);
}

bool word_forget_one(struct lnet_cpt *cpt)
{
	struct list *hearsay = &peer_cpt(cpt)->hearsay;

	for (unsigned int i = 0; i < FORGET_TRIES && !list_empty(hearsay);
	     i++) {
		struct lnet_peer_ni *lpni =
			list_first(hearsay, struct lnet_peer_ni, hearsay);

		list_del(&lpni->hearsay);
		list_add_tail(hearsay, &lpni->hearsay);
		if (hearsay_forget(cpt, lpni))
			return true;
	}
	return false;
}
