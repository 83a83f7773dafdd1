/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/merging.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/share.h"
#include "lnet/core/cpt.h"
#include "lnet/discovery/course.h"
#include "lnet/discovery/discovery.h"
#include "lnet/discovery/witness.h"
#include "lnet/message/leave.h"
#include "lnet/net/config.h"
#include "lnet/nid/nid.h"
#include "lnet/peer/member.h"
#include "lnet/peer/word.h"
#include "lnet/route/route.h"

/* A NID that another CPT owns, and that a peer is to have. */
struct told_nid {
	struct ulnet_nid nid;
	struct ulnet_nid by; /* which NI of the peer says so */
	bool agreed;	     /* so has whoever has the NID */
};

struct merging {
	struct lnet_cpt *cpt;
	struct lnet_peer *peer;
	const struct told *told;
	void (*lost)(struct lnet_peer *from);
	struct ulnet_ping_info info;
	struct ulnet_ping_ni *theirs; /* info.ni */
	uint8_t *owners;	      /* of these */
	struct lnet_peer_ni **nis;    /* the peer's, before any changes ... */
	struct merge_ni *known;	      /* ... as the plan knows them */
	unsigned int nknown;
	struct ulnet_nid from; /* which of them has told it */
	unsigned int hearsay;  /* NIs of the peer that are */
	unsigned int unheard;  /* NIDs that are more than its share */
	struct merge_plan plan;
};

static void merging_free(struct merging *m)
{
	merge_plan_fini(&m->plan);
	free(m->theirs);
	free(m->owners);
	free(m->nis);
	free(m->known);
}

static int merging_gather(struct merging *m)
{
	const struct lnet_peer_net *pn;
	struct lnet_peer_ni *p;

	m->nis = malloc(m->peer->nnis * sizeof(m->nis[0]));
	m->known = malloc(m->peer->nnis * sizeof(m->known[0]));
	m->owners = malloc(MAX(m->info.nnis, 1));
	if (!m->nis || !m->known || !m->owners)
		return -ENOMEM;
	list_for_each_entry (pn, &m->peer->nets, link)
		list_for_each_entry (p, &pn->nis, link) {
			m->known[m->nknown] =
				(struct merge_ni){ p->nid, p->down, p->used };
			m->nis[m->nknown++] = p;
			m->hearsay += word_is_hearsay(p);
		}
	/* It may be another's by now. */
	p = peer_find(m->cpt, &m->told->from);
	m->from = p && p->peer == m->peer ? p->nid : m->peer->primary;
	return 0;
}

static bool is_foreign(const struct merging *m, const struct ulnet_nid *nid)
{
	return node_cpt_of(m->cpt->node, nid) != m->cpt->index;
}

/* Does the peer name @nid among its own now? */
static bool is_named(const struct merging *m, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < m->info.nnis; i++)
		if (lnet_nid_eq(&m->info.ni[i].nid, nid))
			return true;
	return false;
}

/* Has the peer that has @nid said by itself that one of these NIDs is its own,
 * by an NI that this peer names as well? Who names @nid alone does not say that
 * it is one with a stranger who has named both. */
static bool has_named_us(const struct merging *m, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < m->nknown; i++) {
		const struct lnet_peer_ni *p = m->nis[i];

		if (!word_is_hearsay(p) && !lnet_nid_is_any(&p->claimed_by) &&
		    directory_same(&m->cpt->node->directory, &p->claimed_by,
				   nid) &&
		    is_named(m, &p->claimed_by))
			return true;
	}
	return false;
}

static enum merge_owner owner_of(const struct merging *m, unsigned int i)
{
	const struct ulnet_nid *nid = &m->info.ni[i].nid;
	const struct lnet_peer_ni *p;

	if (config_is_mine(m->cpt->config, nid) || lnet_nid_is_lo(nid))
		return MERGE_OURS;
	if (is_foreign(m, nid) && m->told->keeps[i])
		return MERGE_CONFIGURED;
	p = peer_find(m->cpt, nid);
	if (p && p->peer == m->peer)
		return MERGE_NOBODY;
	if (p && p->peer->configured)
		return MERGE_CONFIGURED;
	if (has_named_us(m, nid))
		return MERGE_AGREED;
	/* What another CPT owns is claimed there, if it is known there. */
	return p && !is_foreign(m, nid) ? MERGE_OTHER : MERGE_NOBODY;
}

static int merging_plan(struct merging *m, size_t cut)
{
	const struct lnet_peer *peer = m->peer;
	const struct merge_known known = {
		.mode = settings_discovery(&m->cpt->node->settings),
		.primary = peer->primary,
		.ni = m->known,
		.nnis = m->nknown,
		.configured = peer->configured,
		.multi_rail = peer->multi_rail,
		/* Another process on the same node counts otherwise. */
		.discovered = peer->merged && peer->pid == m->told->pid,
		.sequence = peer->sequence,
	};
	const struct merge_came came = { .source = m->told->source,
					 .from = m->from,
					 .info = &m->info,
					 .cut = cut,
					 .owner = m->owners };

	for (unsigned int i = 0; i < m->info.nnis; i++)
		m->owners[i] = (uint8_t)owner_of(m, i);
	return merge_plan(&known, &came, &m->plan);
}

/* ---- what the peer gets and loses ---- */

/* What the peer of @p has said of itself is not so any more: it is asked again,
 * or it has lost all that it had. */
static void merging_lost(struct merging *m, struct lnet_peer *from)
{
	from->merged = false;
	m->lost(from);
}

static int merging_take(struct merging *m, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *p = peer_find(m->cpt, nid);
	bool hearsay = p && word_is_hearsay(p);
	struct lnet_peer *from;
	int rc;

	/* It has gone since: it is named again, if it is to come. */
	if (!p || p->peer == m->peer)
		return 0;
	from = p->peer;
	peer_hold(from);
	/* A peer that was told need not be told again, by whichever of its NIDs
	 * it was. */
	if (!m->peer->told || disc_later(from->told, m->peer->told))
		m->peer->told = from->told;
	/* And if messages to it did not wait, they do not now. */
	m->peer->settled |= from->settled;
	rc = member_take(m->cpt, m->peer, p);
	if (!rc && hearsay)
		word_hearsay(m->cpt, p, &m->from);
	merging_lost(m, from);
	peer_drop(m->cpt, from);
	return rc;
}

/* May the peer name one more NID that nobody else has confirmed? */
static bool merging_may_add(const struct merging *m)
{
	const struct peer_cpt *pc = peer_cpt(m->cpt);

	return share_allows(m->hearsay, pc->nhearsay, pc->ni_pool.max, 1);
}

static int merging_add(struct merging *m, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *p;
	int rc;

	if (!merging_may_add(m)) {
		m->unheard++;
		return 0;
	}
	rc = member_add(m->cpt, m->peer, nid);
	p = peer_find(m->cpt, nid);
	if (rc || !p)
		return rc;
	m->hearsay++;
	word_hearsay(m->cpt, p, &m->from);
	return 0;
}

/* Another one has it, and is to say what it says of it. */
static void merging_claim(struct merging *m, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *p = peer_find(m->cpt, nid);

	if (p && p->peer != m->peer)
		word_claimed(m->cpt, p, &m->from);
}

static int merging_come(struct merging *m)
{
	int rc = 0;

	for (unsigned int i = 0; i < m->info.nnis && !rc; i++) {
		const struct ulnet_nid *nid = &m->info.ni[i].nid;

		switch ((enum merge_theirs)m->plan.theirs[i]) {
		case MERGE_ADD:
			rc = merging_add(m, nid);
			break;
		case MERGE_TAKE:
			rc = merging_take(m, nid);
			break;
		case MERGE_CLAIM:
			merging_claim(m, nid);
			break;
		case MERGE_HAS:
		case MERGE_LEAVE:
			break;
		}
	}
	return rc;
}

/* The peer's NI with @nid; NULL: it has gone meanwhile. */
static struct lnet_peer_ni *member_of(const struct merging *m,
				      const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *p = peer_find(m->cpt, nid);

	return p && p->peer == m->peer ? p : NULL;
}

/* What is under way over @p, or waits to be, is not going to arrive. */
static void merging_leave(const struct merging *m, struct lnet_peer_ni *p)
{
	leave_peer_ni_down(m->cpt, p);
	discovery_cpt(m->cpt)->disc.gone(m->cpt, p);
}

static int merging_go(struct merging *m)
{
	int rc = 0;

	for (unsigned int i = 0; i < m->nknown && !rc; i++) {
		struct lnet_peer_ni *p = member_of(m, &m->known[i].nid);

		if (!p || !(m->plan.ours[i] & MERGE_GOES))
			continue;
		if (!word_is_hearsay(p))
			merging_leave(m, p);
		rc = member_split(m->cpt, p);
	}
	return rc;
}

/* The peer knows best, until something is seen of the NI itself: which it is
 * if it was the one that said so. */
static void ni_is_down(const struct merging *m, struct lnet_peer_ni *p,
		       bool down)
{
	bool was = p->down;

	if (down && lnet_nid_eq(&p->nid, &m->told->from))
		return;
	p->down = down;
	p->health = down ? 0 : LNET_HEALTH_MAX;
	if (down && !was)
		merging_leave(m, p);
}

static void merging_states(struct merging *m)
{
	for (unsigned int i = 0; i < m->nknown; i++) {
		struct lnet_peer_ni *p = member_of(m, &m->known[i].nid);

		if (p && m->plan.ours[i] & (MERGE_DOWN | MERGE_UP))
			ni_is_down(m, p, m->plan.ours[i] & MERGE_DOWN);
	}
	/* Those that came since. */
	for (unsigned int i = 0; i < m->info.nnis; i++) {
		struct lnet_peer_ni *p;

		if (m->plan.theirs[i] != MERGE_ADD &&
		    m->plan.theirs[i] != MERGE_TAKE)
			continue;
		p = member_of(m, &m->info.ni[i].nid);
		if (p)
			ni_is_down(m, p, !m->info.ni[i].up);
	}
}

static void merging_say(const struct merging *m)
{
	char text[LNET_NIDSTR_SIZE];

	lnet_nid_format(&m->peer->primary, text, sizeof(text));
	if (m->plan.verdict == MERGE_REFUSE)
		log_warn_limited(
			&m->cpt->limits_log, loop_now(m->cpt->loop),
			"discovery",
			"peer %s says that its NIDs are others than those "
			"known, which stay: %s",
			text, merge_why_text(m->plan.why));
	if (m->unheard)
		log_warn_limited(&m->cpt->limits_log, loop_now(m->cpt->loop),
				 "limits",
				 "peer %s names NIDs beyond its share of those "
				 "that nobody confirms: %u",
				 text, m->unheard);
	if (m->plan.left && m->plan.verdict == MERGE_APPLY)
		log_warn_limited(&m->cpt->limits_log, loop_now(m->cpt->loop),
				 "discovery",
				 "peer %s names NIDs that others keep: %u",
				 text, m->plan.left);
}

/* Other NIs may be as healthy as the peer's, if it is a gateway. */
static void merging_route(const struct merging *m)
{
	const struct lnet_peer_ni *p = member_of(m, &m->peer->primary);

	if (p)
		routes_health(m->cpt, p);
}

static int merging_apply(struct merging *m)
{
	struct lnet_peer *peer = m->peer;
	int rc = merging_come(m);

	merging_say(m);
	if (m->plan.verdict == MERGE_APPLY) {
		if (!rc)
			rc = peer_set_primary(m->cpt, peer, &m->plan.primary);
		if (!rc)
			rc = merging_go(m);
	}
	if (rc)
		return rc;
	merging_states(m);
	if (peer->multi_rail != m->plan.multi_rail)
		cpt_topology_changed(m->cpt);
	/* Another process of that node knows nothing of us. */
	if (peer->pid != m->told->pid)
		peer->told = 0;
	peer->multi_rail = m->plan.multi_rail;
	peer->no_discovery = m->plan.no_discovery;
	peer->sequence = m->plan.sequence;
	peer->pid = m->told->pid;
	peer->merged = true;
	peer->merged_in = discovery_cpt(m->cpt)->disc.era;
	recovery_of_peer(m->cpt, peer);
	merging_route(m);
	return 0;
}

static int merging_begin(struct merging *m)
{
	size_t cut;
	int rc = told_decode(m->cpt, m->told, &m->info, &m->theirs, &cut);

	if (!rc)
		rc = merging_gather(m);
	if (!rc)
		rc = merging_plan(m, cut);
	return rc;
}

static bool merging_comes(const struct merging *m, unsigned int i)
{
	return m->plan.theirs[i] == MERGE_ADD ||
	       m->plan.theirs[i] == MERGE_TAKE;
}

/* 1 and *@nid: to be claimed (peer/claim.h) before told_merge(), since @peer is
 * to have it and another CPT owns it; 0: there is none any more; -ENOMEM. */
static int told_foreign(struct lnet_cpt *cpt, struct lnet_peer *peer,
			struct told *told, struct told_nid *nid)
{
	struct merging m = { .cpt = cpt, .peer = peer, .told = told };
	int rc = merging_begin(&m);
	bool found = false;

	if (!rc && m.plan.verdict == MERGE_APPLY)
		while (!found && told->claimed < m.info.nnis) {
			const unsigned int i = told->claimed++;

			nid->nid = m.info.ni[i].nid;
			nid->agreed = m.plan.theirs[i] == MERGE_TAKE;
			nid->by = m.from;
			found = merging_comes(&m, i) &&
				is_foreign(&m, &nid->nid);
			if (found && !merging_may_add(&m)) {
				told->keeps[i] = true;
				found = false;
			}
		}
	merging_free(&m);
	return rc ? rc : found;
}

static int merging_do(struct merging *m, struct told_result *result)
{
	int rc = merging_begin(m);

	if (rc)
		return rc;
	*result = (struct told_result){ m->plan.verdict, m->plan.why,
					m->plan.ask };
	if (m->plan.verdict == MERGE_ASK || m->plan.verdict == MERGE_DROP)
		return 0;
	routes_told(m->cpt, &m->told->from, &m->info);
	return merging_apply(m);
}

int told_merge(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct told *told, void (*lost)(struct lnet_peer *from),
	       struct told_result *result)
{
	struct merging m = {
		.cpt = cpt, .peer = peer, .told = told, .lost = lost
	};
	int rc = merging_do(&m, result);

	if (rc)
		peer->merged = false;
	merging_free(&m);
	return rc;
}

/* ---- in the course of a discovery ---- */

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
