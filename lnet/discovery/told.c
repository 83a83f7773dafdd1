/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/told.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "lnet/core/cpt.h"
#include "lnet/discovery/discovery.h"
#include "lnet/discovery/info.h"
#include "lnet/discovery/recovery.h"
#include "lnet/net/config.h"
#include "lnet/nid/nid.h"
#include "lnet/peer/member.h"

/* ---- as it came ---- */

/* Decoded. The entries are those of @ni, which is for the caller to free, also
 * on error. *@need_p: bytes of the whole, or 0: nothing was cut. */
static int told_decode(struct lnet_cpt *cpt, const uint8_t *bytes,
		       size_t length, struct ulnet_ping_info *info,
		       struct ulnet_ping_ni **ni, size_t *need_p)
{
	unsigned int max = settings_interfaces_max(&cpt->node->settings);
	size_t need = 0;
	int rc;

	*need_p = 0;
	*ni = malloc(ping_info_room(length, max) * sizeof(**ni));
	if (!*ni)
		return -ENOMEM;
	rc = ping_info_decode(bytes, length, info, *ni, max, &need);
	if (rc != -EMSGSIZE)
		return rc;
	*need_p = need;
	return 0;
}

int told_new(struct lnet_cpt *cpt, const uint8_t *bytes, size_t length,
	     struct told **told_p)
{
	struct ulnet_ping_info info;
	struct ulnet_ping_ni *ni;
	struct told *told;
	size_t need;
	int rc = told_decode(cpt, bytes, length, &info, &ni, &need);

	free(ni);
	*told_p = NULL;
	if (rc)
		return rc;
	told = malloc(sizeof(*told) + length);
	if (!told)
		return -ENOMEM;
	told->claimed = told->kept = 0;
	told->keeps = calloc(MAX(info.nnis, 1), sizeof(told->keeps[0]));
	if (!told->keeps) {
		free(told);
		return -ENOMEM;
	}
	told->sequence = info.sequence;
	told->pid = info.pid;
	told->length = length;
	memcpy(told->bytes, bytes, length);
	*told_p = told;
	return 0;
}

void told_free(struct told *told)
{
	if (!told)
		return;
	free(told->keeps);
	free(told);
}

/* ---- merging ---- */

struct merging {
	struct lnet_cpt *cpt;
	struct lnet_peer *peer;
	const struct told *told;
	void (*lost)(struct lnet_peer *from);
	struct ulnet_ping_info info;
	struct ulnet_ping_ni *theirs; /* info.ni */
	uint8_t *owners;	      /* of these */
	struct lnet_peer_ni **nis;    /* the peer's ... */
	struct merge_ni *known;	      /* ... as the plan knows them */
	unsigned int nknown;
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
				(struct merge_ni){ p->nid, p->down };
			m->nis[m->nknown++] = p;
		}
	return 0;
}

static bool is_foreign(const struct merging *m, const struct ulnet_nid *nid)
{
	return node_cpt_of(m->cpt->node, nid) != m->cpt->index;
}

static enum merge_owner owner_of(const struct merging *m, unsigned int i)
{
	const struct ulnet_nid *nid = &m->info.ni[i].nid;
	const struct lnet_peer_ni *p;

	if (config_is_mine(m->cpt->config, nid) || lnet_nid_is_lo(nid))
		return MERGE_OURS;
	if (is_foreign(m, nid))
		return m->told->keeps[i] ? MERGE_CONFIGURED : MERGE_OTHER;
	p = peer_find(m->cpt, nid);
	if (!p || p->peer == m->peer)
		return MERGE_NOBODY;
	if (p->peer->configured)
		return MERGE_CONFIGURED;
	return p->peer->merged ? MERGE_DISCOVERED : MERGE_OTHER;
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
	const struct lnet_peer_ni *from = peer_find(m->cpt, &m->told->from);
	/* It may be another's by now. */
	bool mine = from && from->peer == peer;
	const struct merge_came came = { .source = m->told->source,
					 .from = mine ? from->nid
						      : peer->primary,
					 .info = &m->info,
					 .cut = cut,
					 .owner = m->owners };

	for (unsigned int i = 0; i < m->info.nnis; i++)
		m->owners[i] = (uint8_t)owner_of(m, i);
	return merge_plan(&known, &came, &m->plan);
}

static int merging_take(struct merging *m, const struct ulnet_nid *nid,
			bool claim)
{
	struct lnet_peer_ni *p = peer_find(m->cpt, nid);
	struct lnet_peer *from;
	int rc;

	if (!p)
		return member_add(m->cpt, m->peer, nid);
	from = p->peer;
	peer_hold(from);
	/* A peer that was told need not be told again, by whichever of its NIDs
	 * it was. */
	if (!m->peer->told || disc_later(from->told, m->peer->told))
		m->peer->told = from->told;
	rc = member_take(m->cpt, m->peer, p);
	if (claim)
		from->merged = false;
	if (!from->nnis || claim)
		m->lost(from);
	peer_drop(m->cpt, from);
	return rc;
}

static int merging_come(struct merging *m)
{
	int rc = 0;

	for (unsigned int i = 0; i < m->info.nnis && !rc; i++) {
		const struct ulnet_nid *nid = &m->info.ni[i].nid;

		switch ((enum merge_theirs)m->plan.theirs[i]) {
		case MERGE_ADD:
			rc = member_add(m->cpt, m->peer, nid);
			break;
		case MERGE_TAKE:
			rc = merging_take(m, nid, false);
			break;
		case MERGE_CLAIM:
			rc = merging_take(m, nid, true);
			break;
		case MERGE_HAS:
		case MERGE_LEAVE:
			break;
		}
	}
	return rc;
}

static int merging_go(struct merging *m)
{
	int rc = 0;

	for (unsigned int i = 0; i < m->nknown && !rc; i++)
		if (m->plan.ours[i] & MERGE_GOES)
			rc = member_split(m->cpt, m->nis[i]);
	return rc;
}

/* The peer knows best, until something is seen of the NI itself. */
static void ni_is_down(struct lnet_peer_ni *p, bool down)
{
	p->down = down;
	p->health = down ? 0 : LNET_HEALTH_MAX;
}

static void merging_states(struct merging *m)
{
	for (unsigned int i = 0; i < m->nknown; i++) {
		if (m->plan.ours[i] & (MERGE_DOWN | MERGE_UP))
			ni_is_down(m->nis[i], m->plan.ours[i] & MERGE_DOWN);
	}
	/* Those that came since. */
	for (unsigned int i = 0; i < m->info.nnis; i++) {
		struct lnet_peer_ni *p;

		if (m->plan.theirs[i] == MERGE_HAS ||
		    m->plan.theirs[i] == MERGE_LEAVE)
			continue;
		p = peer_find(m->cpt, &m->info.ni[i].nid);
		if (p && p->peer == m->peer)
			ni_is_down(p, !m->info.ni[i].up);
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
	if (m->plan.left && m->plan.verdict == MERGE_APPLY)
		log_warn_limited(&m->cpt->limits_log, loop_now(m->cpt->loop),
				 "discovery",
				 "peer %s names NIDs that others keep: %u",
				 text, m->plan.left);
}

static int merging_apply(struct merging *m)
{
	struct lnet_peer *peer = m->peer;
	int rc = 0;

	merging_say(m);
	if (m->plan.verdict == MERGE_APPLY) {
		rc = merging_come(m);
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
	peer->merged_in = discovery_cpt(m->cpt)->disc.modes;
	recovery_of_peer(m->cpt, peer);
	return 0;
}

static int merging_begin(struct merging *m)
{
	size_t cut;
	int rc = told_decode(m->cpt, m->told->bytes, m->told->length, &m->info,
			     &m->theirs, &cut);

	if (!rc)
		rc = merging_gather(m);
	if (!rc)
		rc = merging_plan(m, cut);
	return rc;
}

static bool merging_comes(const struct merging *m, unsigned int i)
{
	return m->plan.theirs[i] != MERGE_HAS &&
	       m->plan.theirs[i] != MERGE_LEAVE;
}

int told_foreign(struct lnet_cpt *cpt, struct lnet_peer *peer,
		 struct told *told, struct ulnet_nid *nid)
{
	struct merging m = { .cpt = cpt, .peer = peer, .told = told };
	int rc = merging_begin(&m);
	bool found = false;

	if (!rc && m.plan.verdict == MERGE_APPLY)
		while (!found && told->claimed < m.info.nnis) {
			*nid = m.info.ni[told->claimed].nid;
			found = merging_comes(&m, told->claimed++) &&
				is_foreign(&m, nid);
		}
	merging_free(&m);
	return rc ? rc : found;
}

void told_kept(struct told *told)
{
	told->keeps[told->claimed - 1] = true;
	told->kept++;
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

	merging_free(&m);
	return rc;
}
