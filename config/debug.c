/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/debug.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "config/item.h"
#include "config/peer_list.h"
#include "config/request.h"
#include "config/show.h"
#include "ulnet/path.h"

const char *const debug_recovery_keys[] = { "local", "peer", NULL };
const char *const debug_cpt_of_nid_keys[] = { "nids", NULL };
const char *const debug_peer_keys[] = { "nid", NULL };

/* ---- states by name ---- */

const struct fsm_state debug_nets[DEBUG_NETS] = {
	[DEBUG_NET_ACTIVE] = { "active", FSM_TO(DEBUG_NET_INACTIVE) },
	[DEBUG_NET_INACTIVE] = { "inactive", FSM_TO(DEBUG_NET_ACTIVE) },
};

const struct fsm_state debug_nis[DEBUG_NIS] = {
	[DEBUG_NI_ACTIVE] = { "active", FSM_TO(DEBUG_NI_ILL) |
						FSM_TO(DEBUG_NI_RECOVERING) |
						FSM_TO(DEBUG_NI_DOWN) },
	[DEBUG_NI_ILL] = { "ill", FSM_TO(DEBUG_NI_ACTIVE) |
					  FSM_TO(DEBUG_NI_RECOVERING) |
					  FSM_TO(DEBUG_NI_DOWN) },
	[DEBUG_NI_RECOVERING] = { "recovering", FSM_TO(DEBUG_NI_ACTIVE) |
							FSM_TO(DEBUG_NI_ILL) |
							FSM_TO(DEBUG_NI_DOWN) },
	[DEBUG_NI_DOWN] = { "down", FSM_TO(DEBUG_NI_ACTIVE) |
					    FSM_TO(DEBUG_NI_ILL) |
					    FSM_TO(DEBUG_NI_RECOVERING) },
};

static const char *by_health(bool down, bool recovering, int32_t health)
{
	enum debug_ni state = DEBUG_NI_ACTIVE;

	if (down)
		state = DEBUG_NI_DOWN;
	else if (recovering)
		state = DEBUG_NI_RECOVERING;
	else if (health < LNET_HEALTH_MAX)
		state = DEBUG_NI_ILL;
	return debug_nis[state].name;
}

const char *debug_ni_state(const struct ulnet_ni_info *info)
{
	if (strcmp(info->state, "active") != 0)
		return info->state;
	return by_health(!info->up, info->recovering, info->health);
}

const char *debug_net_state(unsigned int nis_up)
{
	return debug_nets[nis_up ? DEBUG_NET_ACTIVE : DEBUG_NET_INACTIVE].name;
}

const char *debug_peer_ni_state(const struct ulnet_peer_info *info)
{
	return by_health(info->down, info->recovering, info->health);
}

/* ---- recovery ---- */

static void add_nid(struct tree *map, const struct ulnet_nid *nid)
{
	char key[24];

	snprintf(key, sizeof(key), "nid-%u", map ? map->count : 0);
	show_nid(map, key, nid);
}

static int recovery_of_nis(struct lnet *node, struct tree *out)
{
	struct ulnet_ni_info info;
	struct tree *map = NULL;
	int rc;

	for (unsigned int i = 0; !(rc = lnet_ni_info(node, i, &info)); i++) {
		if (!info.recovering)
			continue;
		if (!map)
			map = tree_map(out, "Local NI recovery");
		add_nid(map, &info.nid);
	}
	return rc == -ENOENT ? 0 : rc;
}

static int recovery_of_peers(struct lnet *node, struct tree *out)
{
	struct peer_list list;
	struct tree *map = NULL;
	int rc = peer_list_read(node, &list);

	if (rc)
		return rc;
	for (unsigned int i = 0; i < list.n; i++) {
		if (!list.infos[i].recovering)
			continue;
		if (!map)
			map = tree_map(out, "Peer NI recovery");
		add_nid(map, &list.infos[i].nid);
	}
	peer_list_free(&list);
	return 0;
}

static int read_flag(const struct request *r, const char *key, bool *flag_p)
{
	const struct tree *t = tree_get(r->args, key);

	*flag_p = false;
	return t ? scope_bool(&r->scope, t, flag_p) : 0;
}

void debug_recovery(struct request *r)
{
	struct lnet *node = r->control->node;
	struct tree *out = answer_output(r->answer);
	bool local, peer;
	int rc = 0;

	if (read_flag(r, "local", &local) || read_flag(r, "peer", &peer))
		return;
	/* Neither is asked for: both are. */
	if (local || !peer)
		rc = recovery_of_nis(node, out);
	if (!rc && (peer || !local))
		rc = recovery_of_peers(node, out);
	if (rc)
		scope_fail(&r->scope, NULL, rc, "cannot get what recovers: %s",
			   strerror(-rc));
}

/* ---- one peer ---- */

/* The bits by which kernel nodes tell a peer's state. */
static const char *const state_bits[] = {
	"MULTI_RAIL",	 "NO_DISCOVERY",   "ROUTER_ENABLED", "CONFIGURED",
	"DISCOVERED",	 "REDISCOVER",	   "DISCOVERING",    "DATA_PRESENT",
	"NIDS_UPTODATE", "PING_SENT",	   "PUSH_SENT",	     "PING_FAILED",
	"PUSH_FAILED",	 "FORCE_PING",	   "FORCE_PUSH",     "RTR_NI_FORCE_DEL",
	"RTR_DISCOVERY", "RTR_DISCOVERED", "MARK_DELETION",  "MARK_DELETED",
	"LOCK_PRIMARY",	 "BAD_CONFIG",
};

static void show_bits(struct tree *out, uint32_t state)
{
	struct tree *seq = tree_seq(out, "state bits");

	for (unsigned int i = 0; i < ARRAY_SIZE(state_bits); i++)
		if (state & UINT32_C(1) << i)
			tree_text(seq, NULL, TREE_PLAIN, state_bits[i]);
}

static void show_ni(struct lnet *node, const struct ulnet_peer_info *info,
		    struct tree *nis)
{
	struct tree *ni = tree_map(nis, NULL);

	show_nid(ni, "nid", &info->nid);
	tree_text(ni, "state", TREE_PLAIN, debug_peer_ni_state(info));
	tree_text(ni, "by word", TREE_PLAIN, info->word);
	tree_int(ni, "health value", info->health);
	tree_uint(ni, "ping_count", info->pings_silent);
	tree_uint(ni, "next_ping", show_seconds_to(node, info->next_ping));
	tree_uint(ni, "refcount", info->refs);
	tree_uint(ni, "waiting for a credit", info->queued);
	tree_uint(ni, "waiting for a connection", info->connecting);
}

static void show_peer(struct lnet *node, const struct ulnet_peer_info *infos,
		      unsigned int n, struct tree *out)
{
	struct tree *peer = tree_map(tree_seq(out, "peer"), NULL), *nis;

	show_nid(peer, "primary nid", &infos->primary);
	tree_text(peer, "state", TREE_PLAIN, infos->state_name);
	tree_uint(peer, "peer state", infos->state);
	show_bits(peer, infos->state);
	tree_uint(peer, "CPT", infos->cpt);
	nis = tree_seq(peer, "peer ni");
	for (unsigned int i = 0; i < n; i++)
		show_ni(node, &infos[i], nis);
}

void debug_peer(struct request *r)
{
	const struct tree *nid = tree_get(r->args, "nid");
	const struct ulnet_peer_info *infos;
	struct lnet *node = r->control->node;
	struct peer_list list;
	struct ulnet_nid n;
	unsigned int span;
	int rc;

	if (!nid) {
		scope_fail(&r->scope, r->args, -EINVAL, "nid is missing");
		return;
	}
	if (item_nid(&r->scope, nid, &n))
		return;
	rc = peer_list_read(node, &list);
	span = rc ? 0 : peer_list_find(&list, &n, &infos);
	if (span)
		show_peer(node, infos, span, answer_output(r->answer));
	else
		scope_fail(&r->scope, nid, rc ? rc : -ENOENT,
			   "cannot get peer information of %s: %s", nid->text,
			   rc ? strerror(-rc) : "no such peer");
	if (!rc)
		peer_list_free(&list);
}

/* ---- cpt-of-nid ---- */

static void show_cpt(struct lnet *node, const struct ulnet_nid *nid,
		     struct tree *seq)
{
	struct tree *item = tree_map(seq, NULL);

	show_nid(item, "nid", nid);
	tree_int(item, "cpt", lnet_cpt_of(node, nid));
}

void debug_cpt_of_nid(struct request *r)
{
	const struct tree *list = tree_get(r->args, "nids"), *t = NULL;
	struct tree *seq;
	struct ulnet_nid nid;

	if (!list || !list_next(list, NULL)) {
		scope_fail(&r->scope, r->args, -EINVAL, "nids is missing");
		return;
	}
	while ((t = list_next(list, t)))
		if (item_nid(&r->scope, t, &nid))
			return;
	seq = tree_seq(answer_output(r->answer), "cpt-of-nid");
	while ((t = list_next(list, t)))
		if (!item_nid(&r->scope, t, &nid))
			show_cpt(r->control->node, &nid, seq);
}
