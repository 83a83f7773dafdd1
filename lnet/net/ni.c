/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/net/ni.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "lnet/net/net.h"
#include "lnet/nid/nid.h"

#define NI_CREDITS	256
#define NI_PEER_CREDITS 8
#define NI_PEER_TIMEOUT 180 /* s: the default of peer_timeout */

const struct fsm_state ni_states[NI_STATES] = {
	[NI_INIT] = { "init", FSM_TO(NI_ACTIVE) },
	[NI_ACTIVE] = { "active", FSM_TO(NI_DELETING) },
	[NI_DELETING] = { "deleting", 0 },
};

/* The share of a CPT in the NI's credits (spec: max(credits / CPTs, 8 * peer
 * credits), but at most all credits). */
static int32_t credits_share(const struct lnet_ni *ni, unsigned int cpts)
{
	uint32_t share = MAX(ni->credits_max / cpts, 8 * ni->peer_credits);

	return (int32_t)MIN(share, ni->credits_max);
}

static void ni_cpt_init(struct lnet_ni *ni, struct ni_cpt *nc,
			unsigned int cpts)
{
	nc->refs = 1;
	nc->ni = ni;
	nc->on = ni->node->cpt[nc - ni->cpt];
	nc->credits_max = credits_share(ni, cpts);
	credits_set(&nc->credits, nc->credits_max);
	credits_set(&nc->credits_min, nc->credits_max);
	list_init(&nc->first);
	list_init(&nc->queue);
}

/* ---- configuration ---- */

static int ni_conf_check(const struct lnd *lnd,
			 const struct ulnet_ni_conf *conf)
{
	if (conf->credits > LNET_CREDITS_MAX ||
	    conf->peer_credits > LNET_PEER_CREDITS_MAX ||
	    conf->peer_buffer_credits > LNET_PEER_CREDITS_MAX)
		return -EINVAL;
	if (conf->ntunables && !conf->tunables)
		return -EINVAL;
	BUG_ON(lnd->ntunables > LNET_TUNABLES_MAX);
	return 0;
}

static bool nid_is_usable(const struct ulnet_nid *nid)
{
	return !lnet_nid_is_any(nid) && nid_is_sane(nid);
}

/* Sets the interface name of an NI for which no name is known: to its address.
 */
static void name_of_nid(const struct ulnet_nid *nid,
			char name[LNET_INTERFACE_SIZE])
{
	char text[LNET_NIDSTR_SIZE];

	lnet_nid_format(nid, text, sizeof(text));
	snprintf(name, LNET_INTERFACE_SIZE, "%.*s",
		 (int)MIN(strcspn(text, "@"), LNET_INTERFACE_SIZE - 1U), text);
}

/* Sets the address of @ni to that of @interface. */
static int ni_resolve_interface(struct lnet_ni *ni, const char *interface)
{
	const struct lnd *lnd = ni->lnd.lnd;
	size_t len = strlen(interface);
	int rc;

	if (!lnd->resolve)
		rc = -EOPNOTSUPP;
	else if (len == 0 || len >= LNET_INTERFACE_SIZE)
		rc = -ENODEV; /* no interface has this name */
	else
		rc = lnd->resolve(interface, &ni->lnd.nid, ni->lnd.interface);
	if (rc)
		log_warn("ni", "interface %s: %s", interface, strerror(-rc));
	return rc;
}

static int ni_resolve(struct lnet_ni *ni, const struct ulnet_ni_conf *conf)
{
	const struct lnd *lnd = ni->lnd.lnd;
	struct ulnet_nid *nid = &ni->lnd.nid;
	char text[LNET_NIDSTR_SIZE];
	int rc = 0;

	if (conf->interface) {
		*nid = lnet_nid_make(lnet_nid_net(&conf->nid), 0);
		if (conf->nid.size == LNET_NID_IPV6_SIZE)
			nid->size = LNET_NID_IPV6_SIZE;
		rc = ni_resolve_interface(ni, conf->interface);
		return rc ? rc : nid_is_usable(nid) ? 0 : -EADDRNOTAVAIL;
	}
	*nid = conf->nid;
	if (!nid_is_usable(nid))
		return -EINVAL;
	if (ni_is_lo(ni))
		return 0;
	/* Simulated devices are unknown to the system. */
	if (lnd->resolve && !ni->lnd.fabric)
		rc = lnd->resolve(NULL, nid, ni->lnd.interface);
	if (rc)
		log_warn("ni", "%s: %s",
			 lnet_nid_format(nid, text, sizeof(text)),
			 strerror(-rc));
	else if (!ni->lnd.interface[0])
		name_of_nid(nid, ni->lnd.interface);
	return rc;
}

/* Sets a tunable. *@given has a bit for each tunable that was set before. */
static int ni_tune(struct lnet_ni *ni, const struct ulnet_tunable *t,
		   uint32_t *given)
{
	const struct lnd *lnd = ni->lnd.lnd;
	const struct lnd_tunable *lt;
	unsigned int i = 0;

	while (i < lnd->ntunables && strcmp(lnd->tunables[i].name, t->name))
		i++;
	if (i == lnd->ntunables) {
		log_warn("ni", "tunable %s: unknown to %s", t->name, lnd->name);
		return -ENOENT;
	}
	lt = &lnd->tunables[i];
	if (*given & UINT32_C(1) << i) {
		log_warn("ni", "tunable %s: given twice", t->name);
		return -EINVAL;
	}
	if (t->value < lt->min || t->value > lt->max) {
		log_warn("ni",
			 "tunable %s: %" PRId64 " is not within %" PRId64
			 " to %" PRId64,
			 t->name, t->value, lt->min, lt->max);
		return -EINVAL;
	}
	*given |= UINT32_C(1) << i;
	ni->tunables[i] = t->value;
	return 0;
}

static int ni_tune_all(struct lnet_ni *ni, const struct ulnet_ni_conf *conf)
{
	uint32_t given = 0;
	int rc = 0;

	for (unsigned int i = 0; i < ni->lnd.lnd->ntunables; i++)
		ni->tunables[i] = ni->lnd.lnd->tunables[i].def;
	for (unsigned int i = 0; i < conf->ntunables && !rc; i++)
		rc = conf->tunables[i].name
			     ? ni_tune(ni, &conf->tunables[i], &given)
			     : -EINVAL;
	return rc;
}

static void ni_set_credits(struct lnet_ni *ni, const struct ulnet_ni_conf *conf)
{
	ni->credits_max = conf->credits ? conf->credits : NI_CREDITS;
	ni->peer_credits =
		conf->peer_credits ? conf->peer_credits : NI_PEER_CREDITS;
	ni->peer_credits = MIN(ni->peer_credits, ni->credits_max);
	ni->peer_buffer_credits = conf->peer_buffer_credits
					  ? conf->peer_buffer_credits
					  : ni->peer_credits;
	ni->lnd.credits = ni->credits_max;
	ni->lnd.peer_credits = ni->peer_credits;
	ni->peer_timeout =
		conf->peer_timeout ? conf->peer_timeout : NI_PEER_TIMEOUT;
}

/* ---- life ---- */

void ni_free(struct lnet_ni *ni)
{
	struct lnet *node = ni->node;
	bool *gone = ni->gone;
	bool last;

	pthread_mutex_destroy(&ni->name_lock);
	free(ni->cpt);
	free(ni);
	last = atomic_fetch_sub(&net_node(node)->nis_alive, 1) == 1;
	if (gone)
		node_set_gone(node, gone);
	if (last)
		node_wake_closer(node);
}

static int ni_alloc(struct lnet *node, const struct lnd *lnd,
		    struct lnet_ni **ni_p)
{
	int index = lnd_index(net_node(node)->lnds, lnd);
	struct lnet_ni *ni = calloc(1, sizeof(*ni));

	if (!ni)
		return -ENOMEM;
	ni->cpt = calloc(node->cpts, sizeof(*ni->cpt));
	if (!ni->cpt) {
		free(ni);
		return -ENOMEM;
	}
	pthread_mutex_init(&ni->name_lock, NULL);
	ni->node = node;
	ni->lnd.lnd = lnd;
	ni->lnd.upcalls = net_node(node)->upcalls;
	ni->lnd.cpts = node->cpts;
	ni->lnd.numa_node = -1;
	ni->lnd.loops = node->loops;
	ni->lnd.tunables = ni->tunables;
	ni->lnd.conf = &node->conf;
	ni->lnd.ports = &net_node(node)->ports;
	ni->lnd.tls_rules = &net_node(node)->tls_rules;
	ni->lnd.commons = &net_node(node)->commons;
	ni->lnd.net = net_node(node)->lnd_net;
	ni->lnd.fabric = net_node(node)->fabric;
	if (index >= 0)
		ni->lnd.shared = &net_node(node)->lnd_shared[index];
	atomic_init(&ni->up, true);
	atomic_init(&ni->health, LNET_HEALTH_MAX);
	atomic_init(&ni->recovering, false);
	atomic_init(&ni->live, node->cpts);
	atomic_fetch_add(&net_node(node)->nis_alive, 1);
	*ni_p = ni;
	return 0;
}

int ni_make(struct lnet *node, const struct lnd *lnd,
	    const struct ulnet_ni_conf *conf, struct lnet_ni **ni_p)
{
	struct lnet_ni *ni;
	int rc = ni_conf_check(lnd, conf);

	if (!rc)
		rc = ni_alloc(node, lnd, &ni);
	if (rc)
		return rc;
	ni_set_credits(ni, conf);
	for (unsigned int i = 0; i < node->cpts; i++)
		ni_cpt_init(ni, &ni->cpt[i], node->cpts);
	rc = ni_tune_all(ni, conf);
	if (!rc)
		rc = ni_resolve(ni, conf);
	if (rc) {
		ni_free(ni);
		return rc;
	}
	ni->segment = nid_segment(&ni->lnd.nid);
	*ni_p = ni;
	return 0;
}

int ni_start(struct lnet_ni *ni)
{
	struct lnet *node = ni->node;
	uint64_t n = atomic_fetch_add(&net_node(node)->ni_starts, 1);
	int rc;

	ni->lnd.incarnation = hash_u64(n, node->incarnation);
	ni->bit = UINT64_C(1) << n % 64;
	rc = ni->lnd.lnd->startup(&ni->lnd);
	if (!rc)
		fsm_move(&ni->fsm, ni_states, NI_ACTIVE);
	return rc;
}

/* ---- information ---- */

static void failures_sum(const stat_t *failed, struct ulnet_failures *f)
{
	f->interrupts += stat_get(&failed[LNET_CAUSE_LOCAL_INTERRUPT]);
	f->dropped += stat_get(&failed[LNET_CAUSE_LOCAL_DROPPED]);
	f->aborted += stat_get(&failed[LNET_CAUSE_LOCAL_ABORTED]);
	f->no_route += stat_get(&failed[LNET_CAUSE_LOCAL_NO_ROUTE]);
	f->timeouts += stat_get(&failed[LNET_CAUSE_LOCAL_TIMEOUT]);
	f->errors += stat_get(&failed[LNET_CAUSE_LOCAL_ERROR]);
	f->remote_dropped += stat_get(&failed[LNET_CAUSE_REMOTE_DROPPED]);
	f->remote_timeouts += stat_get(&failed[LNET_CAUSE_REMOTE_TIMEOUT]);
	f->remote_errors += stat_get(&failed[LNET_CAUSE_REMOTE_ERROR]);
	f->network_timeouts += stat_get(&failed[LNET_CAUSE_NETWORK_TIMEOUT]);
}

static void ni_info_counts(const struct lnet_ni *ni, struct ulnet_ni_info *info)
{
	for (unsigned int i = 0; i < ni->lnd.cpts; i++) {
		const struct ni_cpt *nc = &ni->cpt[i];
		const struct traffic_stats *t = &nc->traffic;

		info->credits_max += (uint32_t)nc->credits_max;
		info->credits += credits_get(&nc->credits);
		info->credits_min += credits_get(&nc->credits_min);
		info->queued += (uint64_t)MAX(-credits_get(&nc->credits), 0);
		failures_sum(nc->failed, &info->failed);
		traffic_sum(&t->send, &info->sent);
		traffic_sum(&t->recv, &info->received);
		traffic_sum(&t->drop, &info->dropped);
		times_sum(&t->sending, &info->sending);
		times_sum(&t->answered, &info->answered);
		resent_sum(t, &info->resends);
		info->send_length += stat_get(&t->send.length);
		info->recv_length += stat_get(&t->recv.length);
		info->drop_length += stat_get(&t->drop.length);
	}
	info->resent = resends_total(&info->resends);
	info->send_count = counts_total(&info->sent);
	info->recv_count = counts_total(&info->received);
	info->drop_count = counts_total(&info->dropped);
}

void ni_info(struct lnet_ni *ni, struct ulnet_ni_info *info)
{
	const struct lnd *lnd = ni->lnd.lnd;

	*info = (struct ulnet_ni_info){
		.nid = ni->lnd.nid,
		.up = ni_is_up(ni),
		.state = fsm_name(&ni->fsm, ni_states),
		.health = ni_health(ni),
		.recovering = atomic_load(&ni->recovering),
		.pings_silent = atomic_load(&ni->recovery_silent),
		.next_ping = atomic_load(&ni->recovery_next),
		.lnd_timeout = settings_lnd_timeout(&ni->node->settings) /
			       NSEC_PER_USEC,
		.ntunables = lnd->ntunables,
		.numa_node = ni->lnd.numa_node,
		.downs = stat_get(&ni->downs),
		.ups = stat_get(&ni->ups),
	};
	pthread_mutex_lock(&ni->name_lock);
	memcpy(info->interface, ni->lnd.interface, sizeof(info->interface));
	pthread_mutex_unlock(&ni->name_lock);
	if (!ni_is_lo(ni)) {
		info->tx_credits = ni->credits_max;
		info->peer_credits = ni->peer_credits;
		info->peer_buffer_credits = ni->peer_buffer_credits;
		info->peer_timeout = ni->peer_timeout;
	}
	for (unsigned int i = 0; i < lnd->ntunables; i++)
		info->tunables[i] =
			(struct ulnet_tunable){ lnd->tunables[i].name,
						ni->tunables[i] };
	ni_info_counts(ni, info);
}

void ni_stats_reset(struct lnet_ni *ni, const struct lnet_cpt *cpt)
{
	struct ni_cpt *nc = &ni->cpt[cpt->index];

	traffic_reset(&nc->traffic);
	for (unsigned int i = 0; i < ARRAY_SIZE(nc->failed); i++)
		stat_set(&nc->failed[i], 0);
	credits_set(&nc->credits_min, credits_get(&nc->credits));
	if (cpt->index == 0) {
		stat_set(&ni->downs, 0);
		stat_set(&ni->ups, 0);
	}
}

void ni_let_go(struct lnet_ni *ni)
{
	if (atomic_fetch_sub(&ni->live, 1) == 1) {
		ni->lnd.lnd->free(&ni->lnd);
		ni_free(ni);
	}
}

void upcall_ni_stopped(struct lnd_ni *lnd, unsigned int cpt)
{
	ni_unref(ni_of(lnd), cpt);
}

bool ni_is_neighbour(const struct lnet_ni *ni, const struct ulnet_nid *nid)
{
	const struct ulnet_nid *own = &ni->lnd.nid;
	unsigned int bytes = ni->lnd.prefix / 8, bits = ni->lnd.prefix % 8;

	if (!ni->lnd.prefix || nid->size != own->size ||
	    memcmp(own->addr, nid->addr, bytes) != 0)
		return false;
	return !bits ||
	       (own->addr[bytes] ^ nid->addr[bytes]) >> (8 - bits) == 0;
}

void ni_rename(struct lnet_ni *ni, const char *name)
{
	char nid[LNET_NIDSTR_SIZE];

	log_info("ni", "%s: its interface is called %s now",
		 lnet_nid_format(&ni->lnd.nid, nid, sizeof(nid)), name);
	pthread_mutex_lock(&ni->name_lock);
	text_copy(ni->lnd.interface, sizeof(ni->lnd.interface), name);
	pthread_mutex_unlock(&ni->name_lock);
}

/* Any thread, hence not stat_inc(). */
static void count_event(struct lnet_ni *ni, bool up)
{
	enum lnet_stat s = up ? STAT_interface_ups : STAT_interface_downs;

	atomic_fetch_add(up ? &ni->ups : &ni->downs, 1);
	atomic_fetch_add(&ni->node->cpt[0]->stats[s], 1);
}

bool ni_set_up(struct lnet_ni *ni, bool up, const char *why)
{
	char nid[LNET_NIDSTR_SIZE];

	if (atomic_exchange(&ni->up, up) == up)
		return false;
	count_event(ni, up);
	lnet_nid_format(&ni->lnd.nid, nid, sizeof(nid));
	if (up)
		log_info("ni", "%s: up", nid);
	else
		log_warn("ni", "%s: down: %s", nid, why);
	return true;
}

unsigned int upcall_ni_cpt_of(const struct lnd_ni *lnd,
			      const struct ulnet_nid *nid)
{
	const struct lnet_ni *ni = container_of(lnd, const struct lnet_ni, lnd);

	return node_cpt_of(ni->node, nid);
}

bool upcall_large_nids(const struct lnd_ni *lnd)
{
	const struct lnet_ni *ni = container_of(lnd, struct lnet_ni, lnd);

	return settings_large_nids(&ni->node->settings);
}

uint64_t upcall_lnd_timeout(const struct lnd_ni *lnd)
{
	const struct lnet_ni *ni = container_of(lnd, const struct lnet_ni, lnd);

	return settings_lnd_timeout(&ni->node->settings);
}

void net_nid_given(struct lnet *node, const struct ulnet_nid *nid)
{
	(void)lnd_ports_claim(&net_node(node)->ports, nid, node->conf.port,
			      LNET_PORT_GIVEN);
}
