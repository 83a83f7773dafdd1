/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds and deletes local interfaces. Changes are made one at a time; each
 * publishes a new snapshot (net/net.h) to all CPTs. */
#include "lnet/node/node.h"

#include <errno.h>

#include "base/log.h"
#include "lnet/discovery/recovery.h"
#include "lnet/discovery/discovery.h"
#include "lnet/message/msgs.h"
#include "lnet/message/reroute.h"
#include "lnet/peer/peer.h"
#include "lnet/policy/policy.h"
#include "lnet/route/route.h"
#include "secure/keys.h"

static void upcall_ni_renamed(struct lnd_ni *lnd, const char *name)
{
	ni_rename(ni_of(lnd), name);
}

static void upcall_ni_stranger(struct lnd_ni *lnd, enum lnd_stranger what)
{
	static const unsigned int stats[] = {
		[LND_STRANGER_UNPROVEN] = STAT_peers_unproven,
		[LND_STRANGER_WAITS] = STAT_handshakes_deferred,
		[LND_STRANGER_DROPPED] = STAT_handshakes_dropped,
	};

	cpt_stat(ni_of(lnd)->node->cpt[0], stats[what]);
}

const struct lnd_upcalls nis_upcalls = {
	.parse = upcall_parse,
	.take = upcall_take,
	.finalize = upcall_finalize,
	.peer_connected = upcall_peer_connected,
	.peer_disconnected = upcall_peer_disconnected,
	.peer_silent = upcall_peer_silent,
	.send_again = upcall_send_again,
	.msg_header = upcall_msg_header,
	.msg_asks = upcall_msg_asks,
	.msg_sink = upcall_msg_sink,
	.msg_reply_header = upcall_msg_reply_header,
	.lnd_timeout = upcall_lnd_timeout,
	.large_nids = upcall_large_nids,
	.ni_set_up = upcall_ni_set_up,
	.ni_renamed = upcall_ni_renamed,
	.ni_stranger = upcall_ni_stranger,
	.ni_stopped = upcall_ni_stopped,
	.ni_cpt_of = upcall_ni_cpt_of,
};

/* ---- configuration snapshots ---- */

struct config_change {
	const struct lnet_config *config;
	struct lnet_ni *gone;
};

static void ni_gone_work(struct work *w)
{
	struct ni_cpt *nc = container_of(w, struct ni_cpt, shutdown);

	list_del(&nc->leaving);
	watches_ni_gone(nc->on, nc->ni);
	shutdown_ni(nc->ni, nc->on);
}

/* Shuts @ni down at the end of the turn. Shutting it down calls handlers, which
 * must not run inside of the call that changes the configuration. */
static void ni_gone_soon(struct lnet_ni *ni, struct lnet_cpt *cpt)
{
	struct ni_cpt *nc = &ni->cpt[cpt->index];

	nc->shutdown.fn = ni_gone_work;
	list_add_tail(&whole_cpt(cpt)->leaving, &nc->leaving);
	loop_defer(cpt->loop, &nc->shutdown);
}

/* The node's name in its log: its first NID on a network, which tells the nodes
 * of a cluster apart. */
static void config_name(const struct lnet_config *config, char name[LOG_NAME])
{
	*name = 0;
	for (unsigned int i = 0; i < config->nnis; i++) {
		if (ni_is_lo(config->ni[i]))
			continue;
		lnet_nid_format(&config->ni[i]->lnd.nid, name, LOG_NAME);
		return;
	}
}

/* In a turn of @cpt: takes the new snapshot, and lets go of the NI that was
 * deleted, if any. */
static int config_take(struct lnet_cpt *cpt, void *arg)
{
	const struct config_change *c = arg;

	cpt->config = c->config;
	if (cpt->node->own_loops)
		config_name(c->config, cpt->loop->name);
	cpt_rules_changed(cpt);
	if (c->gone)
		ni_gone_soon(c->gone, cpt);
	recovery_of_nis(cpt);
	return 0;
}

/* Publishes a snapshot, as node_publish(). @gone (NULL: none) is the deleted
 * NI, whose state changes together with the snapshot. */
static void config_publish(struct lnet *node, struct lnet_config *new,
			   struct lnet_ni *gone)
{
	struct lnet_config *old = net_node(node)->config;
	struct config_change change = { new, gone };
	char name[LOG_NAME];

	pthread_mutex_lock(&net_node(node)->config_lock);
	net_node(node)->config = new;
	if (gone)
		fsm_move(&gone->fsm, ni_states, NI_DELETING);
	pthread_mutex_unlock(&net_node(node)->config_lock);
	BUG_ON(node_each_cpt(node, config_take, &change));
	targets_changed(node, gone != NULL);
	free(old);
	config_name(new, name);
	log_node_rename(&whole_node(node)->log, name);
	policies_follow_nis(node);
}

int node_control_begin(struct lnet *node)
{
	bool owner = node->cpts == 1 && loop_is_owner(node->loops[0]);

	if (atomic_load(&node->closing))
		return -ESHUTDOWN;
	if (owner)
		return pthread_mutex_trylock(&whole_node(node)->control)
			       ? -EBUSY
			       : 0;
	if (loop_current())
		return -EXDEV;
	pthread_mutex_lock(&whole_node(node)->control);
	return 0;
}

void node_control_end(struct lnet *node)
{
	pthread_mutex_unlock(&whole_node(node)->control);
}

void node_publish(struct lnet *node, void *pointer, void *new,
		  int (*take)(struct lnet_cpt *cpt, void *new))
{
	void *old;

	pthread_mutex_lock(&net_node(node)->config_lock);
	/* memcpy(), since the pointer at @pointer has another type. */
	memcpy(&old, pointer, sizeof(old));
	memcpy(pointer, &new, sizeof(new));
	pthread_mutex_unlock(&net_node(node)->config_lock);
	BUG_ON(node_each_cpt(node, take, new));
	free(old);
}

static int ni_drop(struct lnet_cpt *cpt, void *ni)
{
	shutdown_ni(ni, cpt);
	return 0;
}

const struct lnd *node_lnd(const struct lnet *node, int type)
{
	const struct whole_node *whole = whole_node(node);
	bool own = type == LNET_TYPE_LO ||
		   (type == LNET_TYPE_O2IB && whole->net.fabric) ||
		   (type == LNET_TYPE_SHM && whole->memory);

	if (whole->lnd && !own)
		return whole->lnd;
	return lnd_find(net_node(node)->lnds, type);
}

/* Returns 0 if @ni can be added: it is not on the node yet, and there is room
 * for it. */
static int ni_admit(const struct lnet *node, struct lnet_ni *ni)
{
	if (config_ni(net_node(node)->config, &ni->lnd.nid))
		return -EEXIST;
	if (net_node(node)->config->nnis >
	    settings_interfaces_max(&node->settings)) {
		ni->lnd.why = "there are as many interfaces as the setting "
			      "max_interfaces allows";
		return -ENOSPC;
	}
	return 0;
}

/* @chosen: lnet_ni.chosen. */
static int ni_add_locked(struct lnet *node, const struct ulnet_ni_conf *conf,
			 bool chosen)
{
	const struct lnd *lnd = node_lnd(node, conf->nid.type);
	struct lnet_config *new;
	struct lnet_ni *ni;
	int rc;

	if (lnet_nid_is_lo(&conf->nid) || lnet_nid_is_any(&conf->nid))
		return -EINVAL;
	if (!lnd)
		return -EPROTONOSUPPORT;
	rc = ni_make(node, lnd, conf, &ni);
	if (rc)
		return rc;
	ni->chosen = chosen;
	rc = ni_admit(node, ni);
	if (!rc)
		rc = ni_start(ni);
	if (rc) {
		if (conf->why_p && ni->lnd.why)
			*conf->why_p = ni->lnd.why;
		ni_free(ni);
		return rc;
	}
	new = config_with(net_node(node)->config, ni);
	if (!new) {
		fsm_move(&ni->fsm, ni_states, NI_DELETING);
		BUG_ON(node_each_cpt(node, ni_drop, ni));
		return -ENOMEM;
	}
	if (conf->nid_p)
		*conf->nid_p = ni->lnd.nid;
	config_publish(node, new, NULL);
	return 0;
}

static int ni_add(struct lnet *node, const struct ulnet_ni_conf *conf,
		  bool chosen)
{
	int rc = node_control_begin(node);

	if (!rc) {
		rc = ni_add_locked(node, conf, chosen);
		node_control_end(node);
	}
	return rc;
}

int lnet_ni_add(struct lnet *node, const struct ulnet_ni_conf *conf)
{
	return ni_add(node, conf, false);
}

/* ---- NIs that the node chooses ---- */

/* May the node itself choose an NI for messages to @target? Not if the user has
 * added NIs, or a route to the target's net. */
static bool may_choose(const struct lnet *node, const struct ulnet_nid *target)
{
	const struct whole_node *whole = whole_node(node);
	const struct lnet_config *config = whole->net.config;

	for (unsigned int i = 0; i < config->nnis; i++)
		if (!ni_is_lo(config->ni[i]) && !config->ni[i]->chosen)
			return false;
	return !route_exists(whole->routes, lnet_nid_net(target));
}

/* Logs why the node has no NI for messages to @target. Returns @rc. */
static int no_way(const struct ulnet_nid *target, int rc)
{
	char nid[LNET_NIDSTR_SIZE];

	log_warn("ni", "%s: this host has no way there: %s",
		 lnet_nid_format(target, nid, sizeof(nid)), strerror(-rc));
	return rc;
}

int lnet_ni_reach(struct lnet *node, const struct ulnet_nid *target)
{
	const struct lnd *lnd = node_lnd(node, target->type);
	struct ulnet_ni_conf conf = { 0 };
	bool may;
	int rc;

	if (lnet_nid_is_any(target))
		return -EINVAL;
	pthread_mutex_lock(&net_node(node)->config_lock);
	may = may_choose(node, target);
	pthread_mutex_unlock(&net_node(node)->config_lock);
	/* Simulated networks are not those of this host. */
	if (!may || lnet_nid_is_lo(target) || whole_node(node)->lnd ||
	    net_node(node)->fabric)
		return 0;
	if (!lnd || !lnd->source)
		return no_way(target, -EPROTONOSUPPORT);
	rc = lnd->source(target, &conf.nid);
	if (rc)
		return no_way(target, rc);
	rc = ni_add(node, &conf, true);
	return rc == -EEXIST ? 0 : rc;
}

int lnet_peer_port_set(struct lnet *node, const struct ulnet_nid *nid,
		       uint16_t port)
{
	char name[LNET_NIDSTR_SIZE];
	uint16_t before = 0;
	int rc;

	if (!port || lnet_nid_is_any(nid))
		return -EINVAL;
	rc = lnd_ports_set(&net_node(node)->ports, nid, port, &before);
	if (!rc && before && before != port)
		log_warn("ni", "%s is at port %u now, not at %u",
			 lnet_nid_format(nid, name, sizeof(name)), port,
			 before);
	return rc;
}

int lnet_peer_port_claim(struct lnet *node, const struct ulnet_nid *nid,
			 uint16_t port, enum ulnet_port_source source)
{
	if (source <= LNET_PORT_SET || source > LNET_PORT_FOUND ||
	    lnet_nid_is_any(nid))
		return -EINVAL;
	return lnd_ports_claim(&net_node(node)->ports, nid,
			       port ? port : node->conf.port, source);
}

void lnet_peer_port_release(struct lnet *node, const struct ulnet_nid *nid,
			    enum ulnet_port_source source)
{
	lnd_ports_release(&net_node(node)->ports, nid, source);
}

static int ni_del_locked(struct lnet *node, const struct ulnet_nid *nid,
			 bool *gone)
{
	struct lnet_ni *ni = config_ni(net_node(node)->config, nid);
	struct lnet_config *new;

	if (!ni)
		return -ENOENT;
	if (ni_is_lo(ni))
		return -EINVAL;
	new = config_without(net_node(node)->config, ni);
	if (!new)
		return -ENOMEM;
	ni->gone = gone;
	config_publish(node, new, ni);
	return 0;
}

/* Waits until the NI has been freed, so that its NID can be used again. On the
 * thread that runs the loops it does not wait, since it would wait for itself.
 */
int lnet_ni_del(struct lnet *node, const struct ulnet_nid *nid)
{
	bool wait = !loop_current() && !loop_is_owner(node->loops[0]);
	bool gone = false;
	int rc = node_control_begin(node);

	if (rc)
		return rc;
	rc = ni_del_locked(node, nid, wait ? &gone : NULL);
	node_control_end(node);
	if (!rc && wait)
		node_wait_gone(node, &gone);
	return rc;
}

/* If it returns 0, it has locked config_lock. */
static int ni_lock(struct lnet *node, unsigned int index, struct lnet_ni **ni_p)
{
	struct net_node *net = net_node(node);

	if (atomic_load(&node->closing))
		return -ESHUTDOWN;
	pthread_mutex_lock(&net->config_lock);
	if (index < net->config->nnis) {
		*ni_p = net->config->ni[index];
		return 0;
	}
	pthread_mutex_unlock(&net->config_lock);
	return -ENOENT;
}

int lnet_ni_info(struct lnet *node, unsigned int index,
		 struct ulnet_ni_info *info)
{
	struct lnet_ni *ni;
	int rc = ni_lock(node, index, &ni);

	if (rc)
		return rc;
	ni_info(ni, info);
	policies_of(whole_node(node)->policies, POLICY_SRC_NET, &info->nid,
		    &info->net_priority, &info->priority);
	pthread_mutex_unlock(&net_node(node)->config_lock);
	return 0;
}

int LNetGetId(struct lnet *node, unsigned int index, struct ulnet_id *id)
{
	struct lnet_ni *ni;
	int rc = ni_lock(node, index, &ni);

	if (rc)
		return rc;
	*id = (struct ulnet_id){ ni->lnd.nid, node->conf.pid };
	pthread_mutex_unlock(&net_node(node)->config_lock);
	return 0;
}

/* ---- resetting counters ---- */

static int reset_cpt(struct lnet_cpt *cpt, void *arg)
{
	(void)arg;
	/* When the CPT is closing, the NIs may have been freed. */
	if (cpt->closing)
		return -ESHUTDOWN;
	cpt_stats_reset(cpt);
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		ni_stats_reset(cpt->config->ni[i], cpt);
	return 0;
}

int lnet_stats_reset(struct lnet *node)
{
	int rc = node_each_cpt(node, reset_cpt, NULL);

	return rc ? rc : peers_stats_reset(node);
}

/* ---- keys, and whom they speak for ---- */

static int cpt_use_keys(struct lnet_cpt *cpt, void *arg)
{
	(void)arg;
	if (cpt->closing)
		return -ESHUTDOWN;
	for (unsigned int i = 0; i < cpt->config->nnis; i++) {
		struct lnd_ni *ni = &cpt->config->ni[i]->lnd;

		if (ni->lnd->use_keys)
			ni->lnd->use_keys(ni, cpt->index);
	}
	return 0;
}

int lnet_use_keys(struct lnet *node, struct ulrpc_keys *keys)
{
	struct keys *before;
	int rc = keys ? node_control_begin(node) : -EINVAL;

	if (rc)
		return rc;
	/* NIs read it when they start, which is a change, too. */
	before = (struct keys *)node->conf.keys;
	(void)keys_ref((struct keys *)keys);
	node->conf.keys = keys;
	rc = node_each_cpt(node, cpt_use_keys, NULL);
	node_control_end(node);
	keys_put(before);
	return rc;
}

/* Those who may not speak any more are cut off. */
static int rules_changed(struct lnet *node, bool less)
{
	return less ? node_each_cpt(node, cpt_use_keys, NULL) : 0;
}

int lnet_tls_rule_set(struct lnet *node, const char *name, const char *nids,
		      struct ulnet_text_error *err)
{
	int rc = node_control_begin(node);
	bool replaced;

	if (rc)
		return rc;
	rc = lnd_tls_rules_set(&net_node(node)->tls_rules, name, nids,
			       &replaced, err);
	if (!rc)
		rc = rules_changed(node, replaced);
	node_control_end(node);
	return rc;
}

int lnet_tls_rule_del(struct lnet *node, const char *name)
{
	int rc = node_control_begin(node);

	if (rc)
		return rc;
	rc = lnd_tls_rules_del(&net_node(node)->tls_rules, name);
	if (!rc)
		rc = rules_changed(node, true);
	node_control_end(node);
	return rc;
}

int lnet_tls_rule(struct lnet *node, const char *name,
		  struct ulnet_tls_rule *rule)
{
	return lnd_tls_rules_get(&net_node(node)->tls_rules, name, rule);
}

int lnet_tls_rules(struct lnet *node, struct ulnet_tls_rule *rules,
		   unsigned int n)
{
	return (int)lnd_tls_rules_list(&net_node(node)->tls_rules, rules, n);
}

/* ---- 0@lo ---- */

int nis_start_lo(struct lnet *node)
{
	struct ulnet_ni_conf conf = { .nid = LNET_NID_LO };
	struct lnet_config *config;
	struct lnet_ni *ni;
	int rc = ni_make(node, node_lnd(node, LNET_TYPE_LO), &conf, &ni);

	if (rc)
		return rc;
	config = config_with(NULL, ni);
	rc = config ? ni_start(ni) : -ENOMEM;
	if (rc) {
		free(config);
		ni_free(ni);
		return rc;
	}
	net_node(node)->config = config;
	return 0;
}

void nis_fini(struct lnet *node)
{
	free(net_node(node)->config);
	free(net_node(node)->numa);
}

/* ---- tunables of LNDs ---- */

int lnet_tunables(struct lnet *node, uint32_t net,
		  struct ulnet_tunable_info *infos, unsigned int n)
{
	const struct lnd *lnd = node_lnd(node, (int)LNET_NET_TYPE(net));

	if (!lnd)
		return -EPROTONOSUPPORT;
	for (unsigned int i = 0; i < n && i < lnd->ntunables; i++) {
		const struct lnd_tunable *t = &lnd->tunables[i];

		infos[i] = (struct ulnet_tunable_info){
			.name = t->name,
			.unit = t->unit,
			.help = t->help,
			.min = t->min,
			.max = t->max,
			.def = t->def,
		};
	}
	return (int)lnd->ntunables;
}
