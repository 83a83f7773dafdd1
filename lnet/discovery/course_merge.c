/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer has told becomes what is known of it, as soon as the NIDs that
 * other CPTs own are claimed. */
#include <errno.h>

#include "lnet/discovery/course.h"
#include "lnet/discovery/merging.h"
#include "lnet/discovery/witness.h"
#include "lnet/peer/word.h"

/* @from has lost NIDs to a peer that is being merged, to the end of which it is
 * put off to look at @from. */
static void disc_lost(struct lnet_peer *from)
{
	struct discovery *d = from->discovery;

	if (!d)
		return;
	list_del(&d->lost);
	list_add_tail(&disc_cpt(d->cpt)->lost, &d->lost);
}

static void look_at_lost(struct disc_cpt *dc)
{
	while (!list_empty(&dc->lost)) {
		struct discovery *d =
			list_first(&dc->lost, struct discovery, lost);

		list_del(&d->lost);
		if (d->peer->nnis)
			disc_event(d, DISC_ON_NEWS);
		else
			disc_hand_over(d);
	}
}

/* 0, or why what was told is of no use. */
static int merged(struct discovery *d, const struct told_result *result)
{
	switch (result->verdict) {
	case MERGE_ASK:
		/* Who has been given the room that he needs, and does not use
		 * it, would be asked for ever. */
		if (result->ask && result->ask <= d->ask.size)
			return -EPROTO;
		d->force_ping = true;
		return ask_reserve(&d->ask, result->ask);
	case MERGE_DROP:
		return d->peer->merged ? 0 : -EPROTO;
	case MERGE_REFUSE:
		cpt_stat(d->cpt, STAT_discoveries_refused);
		return 0;
	case MERGE_NONE:
	case MERGE_APPLY:
		break;
	}
	return 0;
}

static void disc_claimed(struct peer_claim *claim, int rc);

/* What one claim has led to: 0, or why nothing can be merged. */
static int claim_over(struct discovery *d, int rc)
{
	struct told *told = d->merging;
	struct lnet_peer_ni *p = peer_find(d->cpt, &d->claim.nid);

	switch (rc) {
	case 0:
		if (p && p->peer == d->peer)
			word_hearsay(d->cpt, p, &d->told_by);
		if (d->claim.discovering)
			d->force_ping = disc_mode(d->cpt) != LNET_DISCOVERY_OFF;
		return 0;
	case -EBUSY:
	case -EAGAIN:
		told->kept++;
		told->keeps[told->claimed - 1] = true;
		return 0;
	case -EPERM:
		told->keeps[told->claimed - 1] = true;
		return 0;
	case -EEXIST:
		return 0;
	default:
		return rc;
	}
}

/* NIDs that other CPTs own are claimed, one after the other. -EINPROGRESS:
 * disc_claimed() goes on. */
static int claim_all(struct discovery *d)
{
	struct told_nid nid;
	int rc;

	while ((rc = told_foreign(d->cpt, d->peer, d->merging, &nid)) > 0) {
		d->claim.done = disc_claimed;
		d->claim.nid = nid.nid;
		d->claim.by = nid.agreed ? LNET_NID_ANY : nid.by;
		d->told_by = nid.by;
		rc = peer_claim(d->cpt, d->peer, &nid.nid, &d->claim);
		if (rc == -EINPROGRESS) {
			d->claiming = true;
			peer_hold(d->peer);
			return rc;
		}
		rc = claim_over(d, rc);
		if (rc)
			return rc;
	}
	return rc;
}

/* NIDs that are in use elsewhere may be had later, and who gave no answer may
 * be another one by now: it is asked again. */
static int merge_told(struct discovery *d)
{
	struct told_result result;
	int rc = told_merge(d->cpt, d->peer, d->merging, disc_lost, &result);

	if (!rc)
		rc = merged(d, &result);
	if (rc)
		return rc;
	rc = d->merging->kept ? -EBUSY : d->merging->unanswered;
	if (rc)
		d->peer->merged = false;
	return rc;
}

static void merge_go_on(struct discovery *d, int rc)
{
	struct disc_cpt *dc = disc_cpt(d->cpt);

	if (!rc)
		rc = claim_all(d);
	if (rc == -EINPROGRESS)
		return;
	/* What it has told is lost, and it does not tell it again unasked. */
	if (rc)
		d->peer->merged = false;
	if (!rc && d->peer->nnis)
		rc = merge_told(d);
	told_free(d->merging);
	d->merging = NULL;
	d->status = rc;
	look_at_lost(dc);
	disc_event(d, rc ? DISC_ON_MERGE_FAILED : DISC_ON_MERGED);
}

static void disc_claimed(struct peer_claim *claim, int rc)
{
	struct discovery *d = container_of(claim, struct discovery, claim);
	struct lnet_cpt *cpt = d->cpt;

	d->claiming = false;
	peer_drop(cpt, claim->peer);
	if (d->peer) {
		merge_go_on(d, claim_over(d, rc));
		return;
	}
	/* It has come for a peer that is no more, and is one of its own. */
	if (!cpt->closing)
		disc_ask_heir(cpt, &claim->nid);
	disc_free(d);
	cpt_ended_one(cpt);
}

void disc_merge(struct discovery *d)
{
	bool answer = d->told->source == MERGE_REPLY;
	struct told *told = d->told;
	uint32_t nnis = d->peer->nnis;
	struct lnet_peer *of;
	int rc = witness_hear(d->cpt, d->peer, told, &of);

	d->told = NULL;
	if (rc || of == d->peer) {
		d->merging = told;
		merge_go_on(d, rc);
		return;
	}
	disc_pass_on(d->cpt, told, of);
	/* Who answers for another one, and stays what it is, would be asked
	 * again at once. */
	d->status = -EPROTO;
	disc_event(d, answer && d->peer->nnis == nnis ? DISC_ON_MERGE_FAILED
						      : DISC_ON_MERGED);
}
