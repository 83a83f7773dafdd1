/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/reconcile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/log.h"
#include "base/share.h"
#include "lnet/discovery/info.h"
#include "lnet/discovery/recovery.h"
#include "lnet/discovery/session.h"
#include "lnet/message/reroute.h"
#include "lnet/net/net.h"
#include "lnet/nid/nid.h"
#include "lnet/path/health.h"
#include "lnet/peer/member.h"
#include "lnet/peer/provenance.h"
#include "lnet/route/route.h"

/* ---- announcements ---- */

int announcement_new(struct lnet_cpt *cpt, const uint8_t *bytes, size_t length,
		     struct announcement **ann_p)
{
	struct announcement *ann = calloc(1, sizeof(*ann) + length);
	size_t whole;
	unsigned int max = settings_interfaces_max(&cpt->node->settings);
	int rc;

	*ann_p = NULL;
	if (!ann)
		return -ENOMEM;
	rc = ping_info_read(bytes, length, &ann->info, &ann->ni, max, &whole);
	if (!rc)
		ann->here = ping_info_add_here(bytes, length,
					       config_host(cpt->config),
					       &ann->info, ann->ni, max);
	else if (rc == -EMSGSIZE)
		ann->cut = whole;
	else
		goto err_free;
	ann->keeps = calloc(MAX(ann->info.nnis, 1), sizeof(ann->keeps[0]));
	rc = -ENOMEM;
	if (!ann->keeps)
		goto err_free;
	ann->length = length;
	memcpy(ann->bytes, bytes, length);
	*ann_p = ann;
	return 0;

err_free:
	announcement_free(ann);
	return rc;
}

void announcement_free(struct announcement *ann)
{
	if (!ann)
		return;
	free(ann->ni);
	free(ann->keeps);
	free(ann);
}

/* Is @nid on a net of this node whose peers prove who they are? */
static bool is_on_proven(const struct lnet_cpt *cpt,
			 const struct ulnet_nid *nid)
{
	const struct lnet_config *c = cpt->config;

	for (unsigned int i = 0; i < c->nnis; i++)
		if (c->ni[i]->lnd.proven &&
		    lnet_nid_net(&c->ni[i]->lnd.nid) == lnet_nid_net(nid))
			return true;
	return false;
}

static bool is_of_kind(const struct lnet_cpt *cpt, const struct ulnet_nid *a,
		       const struct ulnet_nid *b)
{
	return is_on_proven(cpt, a) == is_on_proven(cpt, b);
}

/* Has the NI @from proved that its node may speak for @nid? The LND of a net
 * with proofs knows that, if it has a connection with that NI. As
 * lnd.vouches(). */
static int vouch(const struct lnet_cpt *cpt, const struct ulnet_nid *from,
		 const struct ulnet_nid *nid)
{
	const struct lnet_config *c = cpt->config;
	int best = -ENOENT;

	for (unsigned int i = 0; i < c->nnis && best <= 0; i++) {
		struct lnd_ni *ni = &c->ni[i]->lnd;

		if (ni->proven && lnet_nid_net(&ni->nid) == lnet_nid_net(from))
			best = MAX(best, ni->lnd->vouches(ni, from, nid));
	}
	return best;
}

/* Is @nid on a net whose peers prove who they are, and was it @peer's by a rule
 * or a certificate that does not let it speak for @nid any more? Without a
 * proof at hand, what was proved before holds. */
static bool is_forfeited(const struct lnet_cpt *cpt,
			 const struct lnet_peer *peer,
			 const struct announcement *ann,
			 const struct ulnet_nid *nid)
{
	const struct lnet_peer_ni *p;

	if (!is_on_proven(cpt, nid))
		return false;
	p = peer_find(cpt, nid);
	return p && p->peer == peer && !vouch(cpt, &ann->from, nid);
}

static bool counts(const struct lnet_cpt *cpt, const struct lnet_peer *peer,
		   struct announcement *ann, const struct ulnet_nid *nid)
{
	if (!is_of_kind(cpt, nid, &ann->from))
		return false;
	if (!is_forfeited(cpt, peer, ann, nid))
		return true;
	ann->forfeited++;
	return false;
}

void announcement_part(const struct lnet_cpt *cpt, const struct lnet_peer *peer,
		       struct announcement *ann)
{
	unsigned int n = 0;

	if (ann->cut || peer->configured)
		return;
	for (unsigned int i = 0; i < ann->info.nnis; i++)
		if (counts(cpt, peer, ann, &ann->ni[i].nid)) {
			struct ulnet_ping_ni ni = ann->ni[i];

			ann->ni[i] = ann->ni[n];
			ann->ni[n++] = ni;
		}
	ann->left_out += ann->info.nnis - n;
	ann->info.nnis = n;
}

enum announcement_order announcement_order(const struct announcement *was,
					   const struct announcement *is)
{
	bool same = was->length == is->length &&
		    !memcmp(was->bytes, is->bytes, is->length);

	if (was->info.pid != is->info.pid || same ||
	    disc_later(is->info.sequence, was->info.sequence))
		return ANNOUNCED_LATER;
	if (is->source == MERGE_REPLY ||
	    is->info.sequence == was->info.sequence)
		return ANNOUNCED_PERHAPS_LATER;
	return ANNOUNCED_PERHAPS_EARLIER;
}

/* Does @ann name @nid? */
static bool names(const struct announcement *ann, const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < ann->info.nnis; i++)
		if (lnet_nid_eq(&ann->ni[i].nid, nid))
			return true;
	return false;
}

/* ---- for which peer an NI announces ---- */

/* Does @ann, which came from @lpni, name another verified NI of the same peer?
 * Also true if the peer has no other NI. */
static bool names_verified(const struct lnet_peer_ni *lpni,
			   const struct announcement *ann)
{
	const struct lnet_peer_ni *p;

	peer_for_each_ni (p, lpni->peer)
		if (p != lpni && !provenance_is_unverified(p) &&
		    names(ann, &p->nid))
			return true;
	return lpni->peer->nnis == 1;
}

static const struct backoff_law denials = {
	.policy = BACKOFF_EQUAL,
	.max = BACKOFF_NO_MAX,
	.base = NSEC_PER_SEC,
	.cap = 60 * NSEC_PER_SEC,
};

void disc_claim_denied(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct loop *loop = cpt->loop;

	lpni->claims_denied += lpni->claims_denied < UINT32_MAX;
	lpni->claims_after =
		loop_now(loop) +
		backoff_pause(&denials, lpni->claims_denied, loop_random(loop));
}

/* If another peer has claimed @lpni, @ann, which came from @lpni, confirms or
 * denies the claim. */
static void answer_claim(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			 const struct announcement *ann)
{
	char by[LNET_NIDSTR_SIZE], nid[LNET_NIDSTR_SIZE];

	/* @ann says nothing about a NID of the other kind. */
	if (lnet_nid_is_any(&lpni->claimed_by) ||
	    !is_of_kind(cpt, &lpni->claimed_by, &lpni->nid))
		return;
	if (names(ann, &lpni->claimed_by)) {
		lpni->claims_denied = 0;
		lpni->claims_after = 0;
		return;
	}
	disc_claim_denied(cpt, lpni);
	cpt_stat(cpt, STAT_claims_refused);
	log_warn_limited(&cpt->limits_log, loop_now(cpt->loop), "discovery",
			 "%s says that %s is one of its NIDs, but that NID "
			 "denies it",
			 lnet_nid_format(&lpni->claimed_by, by, sizeof(by)),
			 lnet_nid_format(&lpni->nid, nid, sizeof(nid)));
}

/* Does @ann decide to which peer @lpni belongs? A push that denies a claim does
 * not, since it may have been sent before the claim became true. */
static bool settles(const struct lnet_peer_ni *lpni,
		    const struct announcement *ann)
{
	return ann->source == MERGE_REPLY || !provenance_is_open(lpni) ||
	       names(ann, &lpni->claimed_by);
}

/* @ann has come from an NI that belonged to @peer. Sets *@of to the peer that
 * @ann is about; NULL: it is about no peer of @cpt. Returns 0; -ENOMEM: nothing
 * has changed. */
static int ownership_check(struct lnet_cpt *cpt, struct lnet_peer *peer,
			   const struct announcement *ann,
			   struct lnet_peer **of)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, &ann->from);
	int rc = 0;

	*of = NULL;
	if (!lpni || lpni->place.state != PEER_HERE)
		return 0;
	if (lpni->peer == peer && lpni->provenance.state != PEER_VERIFIED &&
	    disc_mode(cpt) == LNET_DISCOVERY_ON && !ann->cut &&
	    settles(lpni, ann)) {
		answer_claim(cpt, lpni, ann);
		if (names_verified(lpni, ann))
			provenance_verify(cpt, lpni);
		else
			rc = member_split(cpt, lpni);
	}
	*of = lpni->peer;
	return rc;
}

/* ---- the plan ---- */

struct reconcile {
	struct lnet_cpt *cpt;
	struct lnet_peer *peer;
	const struct announcement *ann;
	uint8_t *fate;		/* fate of each of ann->ni */
	struct merge_ni *known; /* the NIs of the peer before any change */
	unsigned int nknown;
	struct ulnet_nid from; /* the NI that has made the announcement */
	/* number of NIs of the peer that are unverified */
	unsigned int unverified;
	/* number of NIDs that exceed the peer's share */
	unsigned int refused;
	/* number of NIDs that the peer has not proved to be its own */
	unsigned int unproven;
	struct merge_plan plan;
};

static void reconcile_free(struct reconcile *m)
{
	merge_plan_fini(&m->plan);
	free(m->fate);
	free(m->known);
}

/* Are @p and the NI that made the announcement of different kinds: one on a net
 * whose peers prove who they are, the other not? Such NIs are in one peer only
 * if the peer is older than this node's net with proofs. The announcement does
 * not tell the state of @p. */
static bool is_apart(const struct reconcile *m, const struct lnet_peer_ni *p)
{
	return !m->peer->configured &&
	       !is_of_kind(m->cpt, &p->nid, &m->ann->from);
}

static int reconcile_gather(struct reconcile *m)
{
	struct lnet_peer_ni *p;

	m->known = malloc(m->peer->nnis * sizeof(m->known[0]));
	m->fate = malloc(MAX(m->ann->info.nnis, 1));
	if (!m->known || !m->fate)
		return -ENOMEM;
	peer_for_each_ni (p, m->peer) {
		/* A NID of the other kind, and one that is the peer's no more,
		 * go even if they are used. */
		m->known[m->nknown++] = (struct merge_ni){
			p->nid, p->down,
			p->used && !is_apart(m, p) &&
				!is_forfeited(m->cpt, m->peer, m->ann, &p->nid)
		};
		m->unverified += provenance_is_unverified(p);
	}
	/* By now the NID that announced it may belong to another peer. */
	p = peer_member(m->cpt, m->peer, &m->ann->from);
	m->from = p ? p->nid : m->peer->primary;
	return 0;
}

static bool is_foreign(const struct reconcile *m, const struct ulnet_nid *nid)
{
	return node_cpt_of(m->cpt->node, nid) != m->cpt->index;
}

/* Call X the peer that has @nid. Has an NI of X claimed an NI of this peer, and
 * does this peer name the claiming NI, too? It would not be enough that this
 * peer names @nid: the claiming NI may be a stranger's, who has claimed @nid as
 * well. */
static bool has_named_us(const struct reconcile *m, const struct ulnet_nid *nid)
{
	const struct lnet_peer_ni *p;

	peer_for_each_ni (p, m->peer)
		if (!provenance_is_unverified(p) &&
		    !lnet_nid_is_any(&p->claimed_by) &&
		    directory_same(&m->cpt->node->directory, &p->claimed_by,
				   nid) &&
		    names(m->ann, &p->claimed_by))
			return true;
	return false;
}

/* Is @nid on a net whose peers prove who they are, and is there no proof that
 * it is this peer's? */
static bool is_unproven(const struct reconcile *m, const struct ulnet_nid *nid)
{
	return is_on_proven(m->cpt, nid) &&
	       vouch(m->cpt, &m->ann->from, nid) <= 0;
}

/* As merge_came.fate. */
static enum merge_fate fate_of(struct reconcile *m, unsigned int i)
{
	const struct ulnet_nid *nid = &m->ann->ni[i].nid;
	const struct lnet_peer_ni *p;

	if (disc_is_self(m->cpt, nid) || lnet_nid_is_lo(nid))
		return MERGE_LEAVE;
	/* Numbers of shared memory are unique on a host only: those that
	 * another net tells of may be of another host. */
	if (nid->type == LNET_TYPE_SHM && !m->ann->here &&
	    m->ann->from.type != LNET_TYPE_SHM)
		return MERGE_LEAVE;
	if (is_foreign(m, nid) && m->ann->keeps[i])
		return MERGE_LEAVE;
	p = peer_find(m->cpt, nid);
	/* A NID that the peer has already stays: its proof was seen, or an
	 * administrator has configured it. */
	if (!(p && p->peer == m->peer) && is_unproven(m, nid)) {
		m->unproven++;
		/* Not the peer, but the NID itself is asked, as it can prove
		 * whose it is. */
		return p && !is_foreign(m, nid) && !p->peer->configured
			       ? MERGE_CLAIM
			       : MERGE_LEAVE;
	}
	/* No other peer has the NID. That includes a NID that a peer had when
	 * it named this one, and has lost since. */
	if (p ? p->peer == m->peer : !is_foreign(m, nid))
		return MERGE_ADD;
	if (p && p->peer->configured)
		return MERGE_LEAVE;
	if (has_named_us(m, nid))
		return MERGE_TAKE;
	/* A NID that another CPT owns is claimed from that CPT, if it is known
	 * there. */
	return p && !is_foreign(m, nid) ? MERGE_CLAIM : MERGE_ADD;
}

/* If @peer has announced something later than @known says, and the same process
 * has announced it, @m->ann must not be older than that. (Another process on
 * that node has sequence numbers of its own.) */
static void knows_later(const struct reconcile *m, const struct lnet_peer *peer,
			struct merge_known *known)
{
	if (!peer->merged || peer->pid != m->ann->info.pid)
		return;
	if (!known->discovered || disc_later(peer->sequence, known->sequence))
		known->sequence = peer->sequence;
	known->discovered = true;
}

static int reconcile_plan(struct reconcile *m)
{
	const struct lnet_peer *peer = m->peer;
	struct merge_known known = {
		.mode = settings_discovery(&m->cpt->node->settings),
		.primary = peer->primary,
		.ni = m->known,
		.nnis = m->nknown,
		.configured = peer->configured,
		.multi_rail = peer->multi_rail,
	};
	const struct merge_came came = { .source = m->ann->source,
					 .from = m->from,
					 .info = &m->ann->info,
					 .cut = m->ann->cut,
					 .fate = m->fate };

	knows_later(m, peer, &known);
	for (unsigned int i = 0; i < m->ann->info.nnis; i++) {
		const struct lnet_peer_ni *p =
			peer_find(m->cpt, &m->ann->ni[i].nid);

		m->fate[i] = (uint8_t)fate_of(m, i);
		if (p && m->fate[i] == MERGE_TAKE)
			knows_later(m, p->peer, &known);
	}
	return merge_plan(&known, &came, &m->plan);
}

/* ---- NIDs that come and go ---- */

/* @from has lost a NID, so what it has announced does not hold any more. After
 * this peer has been reconciled, @from is discovered anew, unless it has no NID
 * left. */
static void reconcile_lost(struct lnet_peer *from)
{
	struct discovery *d = from->discovery;

	from->merged = false;
	if (!d)
		return;
	list_del(&d->lost);
	list_add_tail(&disc_cpt(d->cpt)->lost, &d->lost);
}

static int reconcile_take(struct reconcile *m, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *p = peer_find(m->cpt, nid);
	bool unverified = p && provenance_is_unverified(p);
	struct lnet_peer *from;
	int rc;

	/* If the NID is gone meanwhile, a later announcement will name it. */
	if (!p || p->peer == m->peer)
		return 0;
	from = p->peer;
	peer_hold(from);
	/* If one NID of a peer has acknowledged a push, that counts for all of
	 * them. */
	if (!m->peer->acked_version ||
	    disc_later(from->acked_version, m->peer->acked_version))
		m->peer->acked_version = from->acked_version;
	/* Messages to the NID did not wait for the discovery of its old peer:
	 * then they do not wait for the discovery of its new peer. */
	m->peer->settled |= from->settled;
	rc = member_take(m->cpt, m->peer, p);
	if (!rc && unverified)
		provenance_unverify(m->cpt, p, &m->from);
	reconcile_lost(from);
	peer_drop(m->cpt, from);
	return rc;
}

/* Does the share of the peer allow one more unverified NID? */
static bool reconcile_may_add(const struct reconcile *m)
{
	const struct peer_cpt *pc = peer_cpt(m->cpt);

	return share_allows(m->unverified, pc->nunverified, pc->ni_pool.max, 1);
}

static int reconcile_add(struct reconcile *m, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *p;
	int rc;

	if (!reconcile_may_add(m)) {
		m->refused++;
		return 0;
	}
	rc = member_add(m->cpt, m->peer, nid);
	p = peer_find(m->cpt, nid);
	if (rc || !p)
		return rc;
	m->unverified++;
	provenance_unverify(m->cpt, p, &m->from);
	return 0;
}

static int reconcile_add_nids(struct reconcile *m)
{
	int rc = 0;

	for (unsigned int i = 0; i < m->ann->info.nnis && !rc; i++) {
		const struct ulnet_nid *nid = &m->ann->ni[i].nid;
		struct lnet_peer_ni *p;

		switch ((enum merge_fate)m->plan.named[i]) {
		case MERGE_ADD:
			rc = reconcile_add(m, nid);
			break;
		case MERGE_TAKE:
			rc = reconcile_take(m, nid);
			break;
		case MERGE_CLAIM:
			p = peer_find(m->cpt, nid);
			if (p && p->peer != m->peer)
				provenance_dispute(m->cpt, p, &m->from);
			break;
		case MERGE_HAS:
		case MERGE_LEAVE:
			break;
		}
	}
	return rc;
}

/* @p cannot be reached any more: makes messages to it take other paths, and
 * tells users. */
static void reconcile_cut_off(const struct reconcile *m, struct lnet_peer_ni *p)
{
	reroute_peer_ni_down(m->cpt, p);
	discovery_cpt(m->cpt)->disc.gone(m->cpt, p);
}

static int reconcile_remove_nids(struct reconcile *m)
{
	int rc = 0;

	for (unsigned int i = 0; i < m->nknown && !rc; i++) {
		struct lnet_peer_ni *p =
			peer_member(m->cpt, m->peer, &m->known[i].nid);
		bool unverified;

		if (!p || !(m->plan.known[i] & MERGE_GOES))
			continue;
		unverified = provenance_is_unverified(p);
		if (!unverified && !is_apart(m, p))
			reconcile_cut_off(m, p);
		rc = member_split(m->cpt, p);
		if (!rc && (unverified || m->plan.known[i] & MERGE_UNNAMED))
			provenance_abandon(m->cpt, p, m->peer);
	}
	return rc;
}

/* Sets whether @p is down, as its peer says. But if @p itself has said that it
 * is down, it stays up: if it were down, it could not have said so. */
static void set_down(const struct reconcile *m, struct lnet_peer_ni *p,
		     bool down)
{
	bool was = p->down;

	if (down && lnet_nid_eq(&p->nid, &m->ann->from))
		return;
	health_report_peer_ni(m->cpt, p, down);
	if (down && !was)
		reconcile_cut_off(m, p);
}

static void reconcile_states(struct reconcile *m)
{
	for (unsigned int i = 0; i < m->nknown; i++) {
		struct lnet_peer_ni *p =
			peer_member(m->cpt, m->peer, &m->known[i].nid);

		if (p && m->plan.known[i] & (MERGE_DOWN | MERGE_UP))
			set_down(m, p, m->plan.known[i] & MERGE_DOWN);
	}
	/* The NIs that the peer has got by this plan: */
	for (unsigned int i = 0; i < m->ann->info.nnis; i++) {
		struct lnet_peer_ni *p;

		if (m->plan.named[i] != MERGE_ADD &&
		    m->plan.named[i] != MERGE_TAKE)
			continue;
		p = peer_member(m->cpt, m->peer, &m->ann->ni[i].nid);
		if (p)
			set_down(m, p, !m->ann->ni[i].up);
	}
}

static void reconcile_log(const struct reconcile *m)
{
	unsigned int unproven = m->unproven + m->ann->forfeited;
	char text[LNET_NIDSTR_SIZE];

	lnet_nid_format(&m->peer->primary, text, sizeof(text));
	if (m->plan.verdict == MERGE_REFUSE)
		log_warn_limited(
			&m->cpt->limits_log, loop_now(m->cpt->loop),
			"discovery",
			"peer %s announces other NIDs than this node knows; "
			"its known NIDs are kept: %s",
			text, merge_why_text(m->plan.why));
	if (m->refused)
		log_warn_limited(&m->cpt->limits_log, loop_now(m->cpt->loop),
				 "limits",
				 "peer %s names more unconfirmed NIDs than its "
				 "share allows; ignored: %u",
				 text, m->refused);
	if (unproven) {
		cpt_stat(m->cpt, STAT_nids_unproven);
		log_warn_limited(&m->cpt->limits_log, loop_now(m->cpt->loop),
				 "discovery",
				 "peer %s names NIDs on nets with tls: "
				 "required, and has not proved that they are "
				 "its own; ignored: %u",
				 text, unproven);
	}
	if (m->plan.left && !unproven && m->plan.verdict == MERGE_APPLY)
		log_warn_limited(&m->cpt->limits_log, loop_now(m->cpt->loop),
				 "discovery",
				 "peer %s names NIDs that other peers keep: %u",
				 text, m->plan.left);
}

/* If the peer is a gateway, the health of its best NI may have changed. */
static void reconcile_route(const struct reconcile *m)
{
	const struct lnet_peer_ni *p =
		peer_member(m->cpt, m->peer, &m->peer->primary);

	if (p)
		routes_health(m->cpt, p);
}

/* NIs on nets of this host are not used before they have said whose they are.
 * The session asks them. */
static void question_neighbours(const struct reconcile *m)
{
	struct lnet_peer_ni *p;

	peer_for_each_ni (p, m->peer)
		if (provenance_is_unverified(p) &&
		    config_is_of_host(m->cpt->config, &p->nid))
			provenance_question(m->cpt, p);
}

static int reconcile_apply(struct reconcile *m)
{
	struct lnet_peer *peer = m->peer;
	int rc = reconcile_add_nids(m);

	reconcile_log(m);
	if (m->plan.verdict == MERGE_APPLY) {
		if (!rc)
			rc = peer_set_primary(m->cpt, peer, &m->plan.primary);
		if (!rc)
			rc = reconcile_remove_nids(m);
	}
	if (rc)
		return rc;
	reconcile_states(m);
	if (peer->multi_rail != m->plan.multi_rail)
		cpt_topology_changed(m->cpt);
	/* Another process on that node has not been told of this node. */
	if (peer->pid != m->ann->info.pid)
		peer->acked_version = 0;
	peer->multi_rail = m->plan.multi_rail;
	peer->no_discovery = m->plan.no_discovery;
	peer->sequence = m->plan.sequence;
	peer->pid = m->ann->info.pid;
	peer->merged = true;
	peer->merged_in = discovery_cpt(m->cpt)->disc.era;
	recovery_of_peer(m->cpt, peer);
	reconcile_route(m);
	if (m->ann->here)
		question_neighbours(m);
	return 0;
}

static int reconcile_begin(struct reconcile *m)
{
	int rc = reconcile_gather(m);

	return rc ? rc : reconcile_plan(m);
}

/* Drops information that is of no use. If this node has asked for it in a new
 * era, the peer is not asked again: that would go on for ever. */
static int reconcile_drop(const struct reconcile *m)
{
	if (!m->peer->merged)
		return -EPROTO;
	if (m->ann->source != MERGE_PUSH)
		m->peer->merged_in = discovery_cpt(m->cpt)->disc.era;
	return 0;
}

/* A gateway tells of all its nets, whatever peers their NIDs make. */
static void reconcile_routes(const struct reconcile *m)
{
	struct ulnet_ping_info info = m->ann->info;

	info.nnis += m->ann->left_out;
	routes_told(m->cpt, &m->ann->from, &info);
}

static int reconcile_do(struct reconcile *m, size_t *ask_p)
{
	int rc = reconcile_begin(m);

	if (rc)
		return rc;
	*ask_p = m->plan.ask;
	if (m->plan.verdict == MERGE_ASK)
		return 1;
	if (m->plan.verdict == MERGE_DROP)
		return reconcile_drop(m);
	reconcile_routes(m);
	rc = reconcile_apply(m);
	if (!rc && m->plan.verdict == MERGE_REFUSE)
		cpt_stat(m->cpt, STAT_discoveries_refused);
	return rc;
}

int reconcile(struct lnet_cpt *cpt, struct lnet_peer *peer,
	      const struct announcement *ann, size_t *ask_p)
{
	struct reconcile m = { .cpt = cpt, .peer = peer, .ann = ann };
	int rc = reconcile_do(&m, ask_p);

	if (rc < 0)
		peer->merged = false;
	reconcile_free(&m);
	return rc;
}

static void reconcile_lose(const struct reconcile *m)
{
	/* If the peer takes no part in discovery, NIDs that leave it become
	 * peers of their own, and do not count as down. */
	uint8_t lost =
		m->plan.no_discovery ? MERGE_DOWN : MERGE_DOWN | MERGE_GOES;

	for (unsigned int i = 0; i < m->nknown; i++) {
		struct lnet_peer_ni *p =
			peer_member(m->cpt, m->peer, &m->known[i].nid);

		if (p && m->plan.known[i] & lost && !p->down &&
		    !provenance_is_unverified(p) && !is_apart(m, p))
			set_down(m, p, true);
	}
}

void reconcile_losses(struct lnet_cpt *cpt, struct lnet_peer *peer,
		      struct announcement *ann)
{
	struct reconcile m = { .cpt = cpt, .peer = peer, .ann = ann };
	const struct lnet_peer_ni *from = peer_member(cpt, peer, &ann->from);

	if (ann->source != MERGE_PUSH || ann->cut || !from ||
	    from->provenance.state != PEER_VERIFIED)
		return;
	announcement_part(cpt, peer, ann);
	if (!reconcile_begin(&m) && m.plan.verdict != MERGE_ASK &&
	    m.plan.verdict != MERGE_DROP)
		reconcile_lose(&m);
	reconcile_free(&m);
}

/* ---- in a session ---- */

/* Makes peers that have lost NIDs be discovered anew. */
static void discover_losers(struct disc_cpt *dc)
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

/* Looks for the next NID that another CPT owns and that the peer is to get.
 * Returns 1, and d->claim is prepared for it; 0: there is none; -ENOMEM. */
static int claim_next(struct discovery *d)
{
	struct announcement *ann = d->merging;
	struct reconcile m = { .cpt = d->cpt, .peer = d->peer, .ann = ann };
	int rc = reconcile_begin(&m);

	if (!rc && m.plan.verdict == MERGE_APPLY)
		while (!rc && ann->claimed < ann->info.nnis) {
			const unsigned int i = ann->claimed++;
			const uint8_t fate = m.plan.named[i];

			if ((fate != MERGE_ADD && fate != MERGE_TAKE) ||
			    !is_foreign(&m, &ann->ni[i].nid))
				continue;
			d->claim.nid = ann->ni[i].nid;
			d->claim.by =
				fate == MERGE_TAKE ? LNET_NID_ANY : m.from;
			d->announced_by = m.from;
			rc = reconcile_may_add(&m);
			ann->keeps[i] = !rc;
		}
	reconcile_free(&m);
	return rc;
}

/* Had the peer that has given the NID away announced something later than what
 * is being merged? As knows_later(), for a peer of another CPT. */
static bool claimed_later(const struct discovery *d)
{
	const struct announcement *ann = d->merging;

	return ann->source == MERGE_PUSH && d->claim.merged &&
	       d->claim.pid == ann->info.pid &&
	       disc_later(d->claim.sequence, ann->info.sequence);
}

/* The claim has ended with @rc. Returns 0, or the error for which nothing can
 * be reconciled. */
static int claim_result(struct discovery *d, int rc)
{
	struct announcement *ann = d->merging;
	struct lnet_peer_ni *p = peer_member(d->cpt, d->peer, &d->claim.nid);

	switch (rc) {
	case 0:
		if (p)
			provenance_unverify(d->cpt, p, &d->announced_by);
		if (d->claim.discovering || claimed_later(d))
			d->force_ping = disc_mode(d->cpt) != LNET_DISCOVERY_OFF;
		return 0;
	case -EBUSY:
	case -EAGAIN:
		ann->kept++;
		/* fallthrough */
	case -EPERM:
		ann->keeps[ann->claimed - 1] = true;
		/* fallthrough */
	case -EEXIST:
		return 0;
	default:
		return rc;
	}
}

static void disc_claimed(struct peer_claim *claim, int rc);

/* Claims the NIDs that other CPTs own, one after the other. -EINPROGRESS: a
 * claim is under way, and disc_claimed() will go on. */
static int claim_all(struct discovery *d)
{
	int rc;

	d->claim.done = disc_claimed;
	while ((rc = claim_next(d)) > 0) {
		rc = peer_claim(d->cpt, d->peer, &d->claim.nid, &d->claim);
		if (rc == -EINPROGRESS) {
			d->claiming = true;
			peer_hold(d->peer);
			return rc;
		}
		rc = claim_result(d, rc);
		if (rc)
			return rc;
	}
	return rc;
}

static int reconcile_merge(struct discovery *d)
{
	size_t ask;
	int rc = reconcile(d->cpt, d->peer, d->merging, &ask);

	if (rc > 0) {
		/* The buffer for the peer's answer was that large already: the
		 * peer would be asked for ever. */
		if (ask && ask <= d->ask.size)
			return -EPROTO;
		d->force_ping = true;
		rc = ask_reserve(&d->ask, ask);
	}
	if (rc)
		return rc;
	/* The peer is asked again if it may get more NIDs later; or if a ping
	 * has failed, since another process may be there by now. */
	rc = d->merging->kept ? -EBUSY : d->merging->unanswered;
	if (rc)
		d->peer->merged = false;
	return rc;
}

static void reconcile_continue(struct discovery *d, int rc)
{
	if (!rc)
		rc = claim_all(d);
	if (rc == -EINPROGRESS)
		return;
	/* The announcement will be lost, so the peer has to be asked again. */
	if (rc)
		d->peer->merged = false;
	if (!rc && d->peer->nnis)
		rc = reconcile_merge(d);
	announcement_free(d->merging);
	d->merging = NULL;
	d->status = rc;
	discover_losers(disc_cpt(d->cpt));
	disc_event(d, rc ? DISC_ON_MERGE_FAILED : DISC_ON_MERGED);
}

static void disc_claimed(struct peer_claim *claim, int rc)
{
	struct discovery *d = container_of(claim, struct discovery, claim);
	struct lnet_cpt *cpt = d->cpt;

	d->claiming = false;
	peer_drop(cpt, claim->peer);
	if (d->peer) {
		reconcile_continue(d, claim_result(d, rc));
		return;
	}
	/* The session is over, and the NID that was given makes a peer of its
	 * own. */
	if (!cpt->closing)
		disc_ask_heir(cpt, &claim->nid);
	disc_free(d);
	cpt_ended_one(cpt);
}

void disc_merge(struct discovery *d)
{
	bool answer = d->announced->source == MERGE_REPLY;
	struct announcement *ann = d->announced;
	uint32_t nnis = d->peer->nnis;
	struct lnet_peer *of;
	int rc;

	announcement_part(d->cpt, d->peer, ann);
	rc = ownership_check(d->cpt, d->peer, ann, &of);
	d->announced = NULL;
	if (rc || of == d->peer) {
		d->merging = ann;
		reconcile_continue(d, rc);
		return;
	}
	disc_pass_on(d->cpt, ann, of);
	/* A peer that answers for another peer, and keeps all its own NIs,
	 * would be asked again at once. So this counts as a failure. */
	d->status = -EPROTO;
	disc_event(d, answer && d->peer->nnis == nnis ? DISC_ON_MERGE_FAILED
						      : DISC_ON_MERGED);
}
