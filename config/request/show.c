/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/request/request.h"

#include <errno.h>
#include <inttypes.h>

#include "ulnet/loop.h"

/* Roughly: the number of lines that an answer may have; of these, the lines of
 * one peer NI; and the lines of one peer NI with details. */
#define LINES_MAX	     1000000
#define LINES_OF_PEER	     12
#define LINES_OF_PEER_DETAIL 48

/* the most NUMA nodes that are shown */
#define NUMA_SHOWN_MAX 64

/* What is shown for things that only kernel nodes have. */
#define PEER_NI_STATE "NA"
#define HELLO_COUNT   0

/* Shows a priority; -1 stands for none. */
static void show_priority(struct tree *out, const char *key, uint32_t priority)
{
	tree_int(out, key,
		 priority == LNET_PRIORITY_NONE ? -1 : (int64_t)priority);
}

static void show_priorities(struct tree *out, uint32_t of_net, uint32_t own)
{
	struct tree *map = tree_map(out, "udsp info");

	show_priority(map, "net priority", of_net);
	show_priority(map, "nid priority", own);
}

void show_nid(struct tree *out, const char *key, const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	tree_text(out, key, TREE_PLAIN,
		  lnet_nid_format(nid, text, sizeof(text)));
}

static void show_statistics(struct tree *out, uint64_t sent, uint64_t received,
			    uint64_t dropped)
{
	struct tree *map = tree_map(out, "statistics");

	tree_uint(map, "send_count", sent);
	tree_uint(map, "recv_count", received);
	tree_uint(map, "drop_count", dropped);
}

static void show_times(struct tree *out, const char *key,
		       const struct ulnet_times *t)
{
	struct tree *map = tree_map(out, key);

	tree_uint(map, "samples", t->n);
	tree_uint(map, "avg_nsec", t->n ? t->ns / t->n : 0);
}

/* Shows resends and times, which kernel nodes do not show. */
static void show_resends_and_times(struct tree *out, uint64_t resent,
				   const struct ulnet_resends *by,
				   const struct ulnet_times *sending,
				   const struct ulnet_times *answered)
{
	struct tree *map;

	tree_uint(out, "resend_count", resent);
	map = tree_map(out, "resends");
	tree_uint(map, "timeout", by->timeout);
	tree_uint(map, "local", by->local);
	tree_uint(map, "remote", by->remote);
	show_times(out, "sending", sending);
	show_times(out, "answered", answered);
}

static void show_counts(struct tree *out, const char *key,
			const struct ulnet_counts *c)
{
	struct tree *map = tree_map(out, key);

	tree_uint(map, "put", c->put);
	tree_uint(map, "get", c->get);
	tree_uint(map, "reply", c->reply);
	tree_uint(map, "ack", c->ack);
	tree_uint(map, "hello", HELLO_COUNT);
}

uint64_t show_seconds_to(struct lnet *node, uint64_t at)
{
	uint64_t now = lnet_now(node, 0);

	return at > now ? (at - now + NSEC_PER_SEC - 1) / NSEC_PER_SEC : 0;
}

/* @silent: pings without an answer; @next: when the next one is sent, ns. */
static void show_health_pings(struct lnet *node, uint32_t silent, uint64_t next,
			      struct tree *map)
{
	tree_uint(map, "ping_count", silent);
	tree_uint(map, "next_ping", show_seconds_to(node, next));
}

/* Kernel nodes do not show what @all adds. */
static void show_ni_health(struct lnet *node, const struct ulnet_ni_info *info,
			   bool all, struct tree *out)
{
	struct tree *map = tree_map(out, "health stats");
	const struct ulnet_failures *f = &info->failed;
	bool lo = lnet_nid_is_lo(&info->nid);

	tree_uint(map, "fatal_error", !info->up);
	tree_int(map, "health value", lo ? 0 : info->health);
	tree_uint(map, "interrupts", f->interrupts);
	tree_uint(map, "dropped", f->dropped);
	tree_uint(map, "aborted", f->aborted);
	tree_uint(map, "no route", f->no_route);
	tree_uint(map, "timeouts", f->timeouts);
	tree_uint(map, "error", f->errors);
	if (all) {
		tree_uint(map, "network timeout", f->network_timeouts);
		tree_uint(map, "down events", info->downs);
		tree_uint(map, "up events", info->ups);
	}
	show_health_pings(node, info->pings_silent, info->next_ping, map);
}

static void show_peer_health(struct lnet *node,
			     const struct ulnet_peer_info *info,
			     struct tree *out)
{
	struct tree *map = tree_map(out, "health stats");
	const struct ulnet_failures *f = &info->failed;

	tree_int(map, "health value", info->health);
	tree_uint(map, "dropped", f->remote_dropped);
	tree_uint(map, "timeout", f->remote_timeouts);
	tree_uint(map, "error", f->remote_errors);
	tree_uint(map, "network timeout", f->network_timeouts);
	show_health_pings(node, info->pings_silent, info->next_ping, map);
}

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

/* The state of an NI: info->state, or, if that is "active", a state by its
 * health. */
static const char *debug_ni_state(const struct ulnet_ni_info *info)
{
	if (strcmp(info->state, "active") != 0)
		return info->state;
	return by_health(!info->up, info->recovering, info->health);
}

const char *debug_peer_ni_state(const struct ulnet_peer_info *info)
{
	return by_health(info->down, info->recovering, info->health);
}

/* ---- net ---- */

static void show_cpts(struct lnet *node, struct tree *out)
{
	char text[LNET_CPTS_MAX * 3 + 2] = "[0";
	size_t len = 2;

	for (unsigned int i = 1; i < lnet_cpts(node); i++)
		len += (size_t)sprintf(text + len, ",%u", i);
	text_copy(text + len, sizeof(text) - len, "]");
	tree_text(out, "CPT", TREE_DOUBLE, text);
}

static void show_tunables(const struct ulnet_ni_info *info, struct tree *out)
{
	struct tree *map = tree_map(out, "tunables");
	bool lo = lnet_nid_is_lo(&info->nid);
	uint32_t buffer_credits = info->peer_buffer_credits;

	/* Kernel nodes show 0 if peer_buffer_credits and peer_credits are
	 * equal. */
	if (buffer_credits == info->peer_credits)
		buffer_credits = 0;
	tree_int(map, "peer_timeout",
		 lo || info->peer_timeout < 0 ? 0 : info->peer_timeout);
	tree_uint(map, "peer_credits", lo ? 0 : info->peer_credits);
	tree_uint(map, "peer_buffer_credits", lo ? 0 : buffer_credits);
	tree_uint(map, "credits", lo ? 0 : info->tx_credits);
}

static const struct ulnet_tunable *tunable(const struct ulnet_ni_info *info,
					   const char *name)
{
	for (unsigned int i = 0; i < info->ntunables; i++)
		if (!strcmp(info->tunables[i].name, name))
			return &info->tunables[i];
	return NULL;
}

static bool is_default(const struct ulnet_tunable *t,
		       const struct ulnet_tunable_info *infos, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(infos[i].name, t->name))
			return t->value == infos[i].def;
	return false;
}

/* Shows the NI's timeout: the tunable @t, or, if that is 0 or NULL, the time
 * that follows from settings. But in a backup 0 stays 0: another value would
 * fix the time. */
static void show_timeout(const struct ulnet_ni_info *info,
			 const struct ulnet_tunable *t, const struct show *show,
			 struct tree *map)
{
	if (t && (t->value || show->backup))
		tree_int(map, "timeout", t->value);
	else
		tree_uint(map, "timeout", info->lnd_timeout / 1000000);
}

/* Shows the tunables that kernel nodes show, and others that differ from their
 * defaults. */
static void show_lnd_tunables(struct lnet *node,
			      const struct ulnet_ni_info *info,
			      const struct show *show, struct tree *out)
{
	static const char *const always[] = {
		"peercredits_hiw",
		"concurrent_sends",
		"map_on_demand",
		"fmr_pool_size",
		"fmr_flush_trigger",
		"fmr_cache",
		"ntx",
		"conns_per_peer",
		"timeout",
		"tos",
		NULL,
	};
	struct ulnet_tunable_info defs[LNET_TUNABLES_MAX];
	int n = lnet_tunables(node, lnet_nid_net(&info->nid), defs,
			      LNET_TUNABLES_MAX);
	const struct ulnet_tunable *t;
	struct tree *map;

	if (lnet_nid_is_lo(&info->nid))
		return;
	map = tree_map(out, "lnd tunables");
	for (unsigned int i = 0; always[i]; i++) {
		t = tunable(info, always[i]);
		if (!strcmp(always[i], "timeout"))
			show_timeout(info, t, show, map);
		else if (t)
			tree_int(map, t->name, t->value);
	}
	for (unsigned int i = 0; !show->kernel && i < info->ntunables; i++) {
		t = &info->tunables[i];
		if (key_in(t->name, always) || is_default(t, defs, n))
			continue;
		if (!strcmp(t->name, "tls"))
			tree_text(map, t->name, TREE_PLAIN, "required");
		else
			tree_int(map, t->name, t->value);
	}
}

/* Must a backup have the NID, because the NI might get another NID by its
 * interface alone? */
static bool needs_nid(struct lnet *node, const struct ulnet_ni_info *info)
{
	struct setting_list settings;

	return !*info->interface || !lnet_nid_is_nid4(&info->nid) ||
	       (!settings_read(node, &settings) &&
		settings_are_on(&settings, "large_nids"));
}

/* Shows the NUMA node of the NI's device, and the distances from there; not on
 * machines with one NUMA node. */
static void show_numa(struct lnet *node, const struct ulnet_ni_info *info,
		      struct tree *ni)
{
	uint32_t distances[NUMA_SHOWN_MAX];
	unsigned int n = lnet_numa_distances(node, info->numa_node, distances,
					     NUMA_SHOWN_MAX);
	struct tree *map;
	char name[16];

	if (!n)
		return;
	map = tree_map(ni, "numa");
	tree_int(map, "node", info->numa_node);
	map = tree_map(map, "distances");
	for (unsigned int i = 0; i < MIN(n, NUMA_SHOWN_MAX); i++) {
		snprintf(name, sizeof(name), "%u", i);
		if (distances[i])
			tree_uint(map, name, distances[i]);
	}
}

static void show_ni(struct lnet *node, const struct ulnet_ni_info *info,
		    const struct show *show, struct tree *nis)
{
	struct tree *ni = tree_map(nis, NULL);
	bool lo = lnet_nid_is_lo(&info->nid);

	if (!show->backup || needs_nid(node, info))
		show_nid(ni, "nid", &info->nid);
	if (!show->backup)
		tree_text(ni, "status", TREE_PLAIN, info->up ? "up" : "down");
	if (*info->interface)
		tree_text(tree_map(ni, "interfaces"), "0", TREE_PLAIN,
			  info->interface);
	if (show->verbose < 1)
		return;
	if (!show->backup)
		show_statistics(ni, info->send_count, info->recv_count,
				info->drop_count);
	if (show->verbose >= 4)
		show_priorities(ni, info->net_priority, info->priority);
	if (show->verbose >= 5)
		tree_text(ni, "state name", TREE_PLAIN, debug_ni_state(info));
	if (show->verbose >= 5 && !show->backup)
		show_resends_and_times(ni, info->resent, &info->resends,
				       &info->sending, &info->answered);
	if (show->verbose >= 2 && !show->backup) {
		show_counts(ni, "sent_stats", &info->sent);
		show_counts(ni, "received_stats", &info->received);
		show_counts(ni, "dropped_stats", &info->dropped);
		show_ni_health(node, info, show->verbose >= 5, ni);
	}
	show_tunables(info, ni);
	show_lnd_tunables(node, info, show, ni);
	if (!show->backup)
		tree_int(ni, "dev cpt", lo ? 0 : info->numa_node);
	if (show->verbose >= 5 && !show->backup)
		show_numa(node, info, ni);
	show_cpts(node, ni);
}

/* Shows sums over the NIs of @net. */
static void show_net(struct lnet *node, uint32_t net, struct tree *out)
{
	uint64_t sent = 0, received = 0, dropped = 0;
	struct ulnet_ni_info info;
	unsigned int up = 0;
	int32_t health = 0;

	for (unsigned int i = 0; !lnet_ni_info(node, i, &info); i++) {
		if (lnet_nid_net(&info.nid) != net)
			continue;
		sent += info.send_count;
		received += info.recv_count;
		dropped += info.drop_count;
		if (info.up && info.health > health)
			health = info.health;
		up += info.up;
	}
	tree_text(out, "state name", TREE_PLAIN,
		  debug_nets[up ? DEBUG_NET_ACTIVE : DEBUG_NET_INACTIVE].name);
	tree_int(out, "health value", health);
	show_statistics(out, sent, received, dropped);
}

int show_nets(struct lnet *node, const struct show *show, struct tree *out)
{
	uint32_t net = LNET_NET_ANY;
	struct tree *item, *nis = NULL;
	struct ulnet_ni_info info;
	char text[LNET_NIDSTR_SIZE];
	int rc;

	for (unsigned int i = 0;; i++) {
		rc = lnet_ni_info(node, i, &info);
		if (rc)
			break;
		if (show->net != LNET_NET_ANY &&
		    show->net != lnet_nid_net(&info.nid))
			continue;
		if (show->backup && lnet_nid_is_lo(&info.nid))
			continue;
		if (net != lnet_nid_net(&info.nid)) {
			net = lnet_nid_net(&info.nid);
			item = tree_item(out, "net");
			tree_text(item, "net type", TREE_PLAIN,
				  lnet_net_format(net, text, sizeof(text)));
			if (show->verbose >= 5 && !show->backup)
				show_net(node, net, item);
			nis = tree_seq(item, "local NI(s)");
		}
		show_ni(node, &info, show, nis);
	}
	return rc == -ENOENT ? 0 : rc;
}

/* ---- peers ---- */

static void show_peer_ni(struct lnet *node, const struct ulnet_peer_info *info,
			 const struct show *show, struct tree *nis)
{
	struct tree *ni = tree_map(nis, NULL);

	show_nid(ni, "nid", &info->nid);
	if (show->backup)
		return;
	if (show->verbose >= 4)
		show_priorities(ni, info->net_priority, info->priority);
	tree_text(ni, "state", TREE_PLAIN, PEER_NI_STATE);
	if (show->verbose >= 5)
		tree_text(ni, "state name", TREE_PLAIN,
			  debug_peer_ni_state(info));
	if (show->verbose < 1)
		return;
	tree_uint(ni, "max_ni_tx_credits", info->credits_max);
	tree_int(ni, "available_tx_credits", info->credits);
	tree_int(ni, "min_tx_credits", info->credits_min);
	tree_uint(ni, "tx_q_num_of_buf", info->queued_bytes);
	tree_int(ni, "available_rtr_credits", info->router_credits);
	tree_int(ni, "min_rtr_credits", info->router_credits_min);
	tree_uint(ni, "refcount", info->refs + 1);
	if (info->queue_depth) {
		tree_uint(ni, "queue_depth", info->queue_depth);
		tree_uint(ni, "max_frags", info->max_frags);
	}
	show_statistics(ni, info->send_count, info->recv_count,
			info->drop_count);
	if (show->verbose < 2)
		return;
	show_counts(ni, "sent_stats", &info->sent);
	show_counts(ni, "received_stats", &info->received);
	show_counts(ni, "dropped_stats", &info->dropped);
	show_peer_health(node, info, ni);
	if (show->verbose >= 5)
		show_resends_and_times(ni, info->resent, &info->resends,
				       &info->sending, &info->answered);
}

/* @infos: the @n NIs of one peer. */
static void show_peer(struct lnet *node, const struct ulnet_peer_info *infos,
		      unsigned int n, const struct show *show,
		      struct tree *peer)
{
	struct tree *nis;

	show_nid(peer, "primary nid", &infos->primary);
	tree_text(peer, "Multi-Rail", TREE_PLAIN,
		  infos->multi_rail ? "true" : "false");
	if (show->verbose >= 3 && !show->backup)
		tree_uint(peer, "peer state", infos->state);
	if (show->verbose >= 5)
		tree_text(peer, "state name", TREE_PLAIN, infos->state_name);
	nis = tree_seq(peer, "peer ni");
	for (unsigned int i = 0; i < n; i++)
		show_peer_ni(node, &infos[i], show, nis);
}

static bool show_has_nid(const struct ulnet_peer_info *infos, unsigned int n,
			 const struct ulnet_nid *nid)
{
	if (lnet_nid_eq(&infos->primary, nid))
		return true;
	for (unsigned int i = 0; i < n; i++)
		if (lnet_nid_eq(&infos[i].nid, nid))
			return true;
	return false;
}

int show_peers(struct lnet *node, const struct show *show, struct tree *out)
{
	unsigned int lines =
		show->verbose ? LINES_OF_PEER_DETAIL : LINES_OF_PEER;
	bool all = lnet_nid_is_any(&show->nid);
	struct peer_list list;
	int rc = peer_list_read(node, &list);

	if (rc)
		return rc;
	if (show->backup)
		peer_list_keep_configured(&list);
	if (all && list.n > LINES_MAX / lines)
		rc = -EMSGSIZE;
	else
		rc = all ? 0 : -ENOENT;
	for (unsigned int i = 0, n; rc != -EMSGSIZE && i < list.n; i += n) {
		n = peer_list_span(&list, i);
		if (!all && !show_has_nid(&list.infos[i], n, &show->nid))
			continue;
		show_peer(node, &list.infos[i], n, show,
			  tree_item(out, "peer"));
		rc = 0;
	}
	peer_list_free(&list);
	return rc;
}

int show_peer_list(struct lnet *node, struct tree *out)
{
	struct peer_list list;
	int rc = peer_list_read(node, &list);

	if (rc)
		return rc;
	for (unsigned int i = 0; i < list.n; i += peer_list_span(&list, i))
		show_nid(tree_item(out, "peer list"), "nid",
			 &list.infos[i].primary);
	peer_list_free(&list);
	return 0;
}

/* ---- statistics, settings ---- */

/* The counters of kernel nodes, in their order. */
static const char *const kernel_stats[] = {
	"msgs_alloc",
	"msgs_max",
	"rst_alloc",
	"errors",
	"send_count",
	"resend_count",
	"response_timeout_count",
	"local_interrupt_count",
	"local_dropped_count",
	"local_aborted_count",
	"local_no_route_count",
	"local_timeout_count",
	"local_error_count",
	"remote_dropped_count",
	"remote_error_count",
	"remote_timeout_count",
	"network_timeout_count",
	"recv_count",
	"route_count",
	"drop_count",
	"send_length",
	"recv_length",
	"route_length",
	"drop_length",
	NULL,
};

static uint64_t stat_value(const struct ulnet_stat *stats, int n,
			   const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(stats[i].name, name))
			return stats[i].value;
	BUG_ON(true);
	return 0;
}

int show_stats(struct lnet *node, struct tree *out)
{
	struct ulnet_stat *stats;
	int n = stats_read(node, &stats);
	struct tree *map;

	if (n < 0)
		return n;
	map = tree_map(out, "statistics");
	for (unsigned int i = 0; kernel_stats[i]; i++)
		tree_uint(map, kernel_stats[i],
			  stat_value(stats, n, kernel_stats[i]));
	for (int i = 0; i < n; i++)
		if (!key_in(stats[i].name, kernel_stats))
			tree_uint(map, stats[i].name, stats[i].value);
	free(stats);
	return 0;
}

int show_objects(struct lnet *node, struct tree *out)
{
	struct ulnet_object *objects;
	int n = objects_read(node, &objects);
	struct tree *map;

	if (n >= 0)
		map = tree_map(out, "objects");
	for (int i = 0; i < n; i++)
		tree_uint(map, objects[i].name, objects[i].now);
	free(objects);
	return MIN(n, 0);
}

int show_settings(struct lnet *node, struct tree *out)
{
	struct setting_list settings;
	char levels[LNET_LOG_LEVELS];
	struct tree *map;
	int rc = settings_read(node, &settings);

	if (rc)
		return rc;
	map = tree_map(out, "global");
	for (unsigned int i = 0; i < settings.n; i++)
		tree_int(map, settings.all[i].name, settings.all[i].value);
	tree_text(map, "log", TREE_PLAIN,
		  lnet_log_levels(levels, sizeof(levels)));
	return 0;
}

static int show_kernel_settings(struct lnet *node, struct tree *out)
{
	struct setting_list settings;
	struct tree *map;
	int rc = settings_read(node, &settings);

	if (rc)
		return rc;
	map = tree_map(out, "global");
	for (unsigned int i = 0; i < settings.n; i++)
		if (setting_is_kernels(settings.all[i].name))
			tree_int(map, settings.all[i].name,
				 settings.all[i].value);
	return 0;
}

int show_own_settings(struct lnet *node, bool backup, struct tree *out)
{
	struct setting_list settings;
	struct tree *map = NULL;
	int rc = settings_read(node, &settings);

	for (unsigned int i = 0; !rc && i < settings.n; i++) {
		const struct ulnet_setting *one = &settings.all[i];

		if (setting_is_kernels(one->name) ||
		    (backup && one->value == one->def))
			continue;
		if (!map)
			map = tree_map(out, "ulnet");
		tree_int(map, one->name, one->value);
	}
	return rc;
}

/* ---- everything ---- */

static int show_routes_and_routing(struct lnet *node, const struct show *show,
				   struct tree *out)
{
	int rc = show_routes(node, NULL, 1, show->backup, out);

	/* Some kernel releases stop reading at "routing", so for them it comes
	 * last. */
	return rc || show->kernel ? rc : show_routing(node, show->backup, out);
}

/* Shows first what only some releases of kernel nodes know, and then what only
 * this implementation knows. All this comes last, so that a program that stops
 * at an unknown key has read the rest. */
static int show_rest(struct lnet *node, const struct show *show,
		     struct tree *out)
{
	int rc = show->kernel ? show_routing(node, true, out) : 0;

	if (!rc)
		rc = show_policies(node, LNET_POLICY_LAST, out);
	if (rc || show->kernel)
		return rc;
	rc = show_own_settings(node, show->backup, out);
	if (!rc)
		rc = show_tls_rules(node, NULL, out);
	return rc ? rc : show_faults(node, LNET_FAULT_KINDS, show->backup, out);
}

int show_all(struct lnet *node, bool backup, bool kernel, struct tree *out)
{
	struct show show = {
		.verbose = 3,
		.backup = backup || kernel,
		.kernel = kernel,
		.net = LNET_NET_ANY,
		.nid = LNET_NID_ANY,
	};
	int rc = show_nets(node, &show, out);

	if (!rc)
		rc = show_routes_and_routing(node, &show, out);
	if (!rc)
		rc = show_peers(node, &show, out);
	if (!rc)
		rc = show_kernel_settings(node, out);
	return rc ? rc : show_rest(node, &show, out);
}
