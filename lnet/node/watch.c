/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/node/watch.h"

#include "lnet/discovery/discovery.h"
#include "lnet/message/reroute.h"
#include "lnet/net/config.h"
#include "lnet/net/ni.h"
#include "lnet/node/node.h"
#include "lnet/route/route.h"
#include "ulnet/loop.h"

_Static_assert(sizeof(struct list) ==
		       sizeof((struct ulnet_peer_watch){ 0 }.opaque),
	       "room for a link");

typedef void (*watch_fn)(struct ulnet_peer_watch *watch,
			 const struct ulnet_id *peer);

/* A user does not say for how long it has waited: for as long as a path may be
 * silent at least (socklnd's path_silent_min). */
#define SUSPECTED_AFTER (300 * NSEC_PER_MSEC)

static struct list *watch_link(struct ulnet_peer_watch *watch)
{
	return (void *)watch->opaque;
}

static struct list *watches_of(struct lnet *node, unsigned int cpt)
{
	loop_assert_owner(node->loops[cpt]);
	return &whole_cpt(node->cpt[cpt])->watches;
}

static void watches_peer_ni_gone(struct lnet_cpt *cpt,
				 struct lnet_peer_ni *lpni);

static void watches_changed(struct lnet_cpt *cpt);

void watches_init(struct lnet_cpt *cpt)
{
	list_init(&whole_cpt(cpt)->watches);
	discovery_cpt(cpt)->disc.gone = watches_peer_ni_gone;
	discovery_cpt(cpt)->disc.changed = watches_changed;
}

void lnet_peer_watch_add(struct lnet *node, unsigned int cpt,
			 struct ulnet_peer_watch *watch)
{
	BUG_ON(!watch->disconnected);
	list_add_tail(watches_of(node, cpt), watch_link(watch));
}

void lnet_peer_watch_del(struct lnet *node, unsigned int cpt,
			 struct ulnet_peer_watch *watch)
{
	(void)watches_of(node, cpt);
	list_del(watch_link(watch));
}

static struct ulnet_peer_watch *watch_of(struct list *link)
{
	return container_of(link, struct ulnet_peer_watch, opaque);
}

static void call_disconnected(struct ulnet_peer_watch *watch,
			      const struct ulnet_id *peer)
{
	if (watch->disconnected)
		watch->disconnected(watch, peer);
}

static void call_silent(struct ulnet_peer_watch *watch,
			const struct ulnet_id *peer)
{
	if (watch->silent)
		watch->silent(watch, peer);
}

static void call_changed(struct ulnet_peer_watch *watch,
			 const struct ulnet_id *peer)
{
	(void)peer;
	if (watch->changed)
		watch->changed(watch);
}

/* A mark keeps the place in the list, from which any watch may be taken away
 * meanwhile. Marks of calls around this one have nobody to call. */
static void watches_tell(struct lnet_cpt *cpt, const struct ulnet_id *peer,
			 watch_fn call)
{
	struct list *watches = watches_of(cpt->node, cpt->index);
	struct ulnet_peer_watch mark = { .disconnected = NULL };
	struct list *place = watch_link(&mark);

	if (cpt->closing)
		return;
	list_add(watches, place);
	while (place->next != watches) {
		struct ulnet_peer_watch *watch = watch_of(place->next);

		list_del(place);
		list_add(watch_link(watch), place);
		call(watch, peer);
	}
	list_del(place);
}

static void tell_disconnected(struct lnet_cpt *cpt, const struct ulnet_id *peer)
{
	watches_tell(cpt, peer, call_disconnected);
}

static void watch_tell_silent(struct lnet_cpt *cpt, const struct ulnet_id *peer)
{
	watches_tell(cpt, peer, call_silent);
}

/* ---- peers behind gateways ---- */

/* Of each peer NI of @cpt for which @is_meant() says so. Who hears may send to
 * whom nothing was sent before, for which peers may be forgotten. */
static void tell_of_each(struct lnet_cpt *cpt, watch_fn call,
			 bool (*is_meant)(const struct lnet_cpt *cpt,
					  const struct lnet_peer_ni *lpni,
					  const void *arg),
			 const void *arg)
{
	struct hash *peers = &peer_cpt(cpt)->peers;
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	hash_keep(peers, true);
	while ((n = hash_walk(peers, &bucket, n))) {
		struct lnet_peer_ni *lpni =
			container_of(n, struct lnet_peer_ni, hash);
		const struct ulnet_id peer = { lpni->nid, LNET_PID_ANY };

		if (lpni->place.state != PEER_HERE || !is_meant(cpt, lpni, arg))
			continue;
		peer_ref(lpni);
		watches_tell(cpt, &peer, call);
		peer_unref(cpt, lpni);
	}
	hash_keep(peers, false);
}

/* @arg: the gateway's NID. */
static bool is_behind(const struct lnet_cpt *cpt,
		      const struct lnet_peer_ni *lpni, const void *arg)
{
	uint32_t segment = lpni->net->segment;

	return !config_net(cpt->config, segment) &&
	       routes_go_by(cpt, arg, segment_net(segment));
}

struct gateway_news {
	struct work work;
	struct lnet_cpt *cpt;
	struct ulnet_nid gateway;
	watch_fn call;
};

static void gateway_news(struct work *w)
{
	struct gateway_news *news = container_of(w, struct gateway_news, work);
	struct lnet_cpt *cpt = news->cpt;

	if (!cpt->closing)
		tell_of_each(cpt, news->call, is_behind, &news->gateway);
	free(news);
	atomic_fetch_sub(&cpt->node->news, 1);
	cpt_ended_one(cpt);
}

/* What has become of the gateway @nid has become of all who are behind it, as
 * far as messages on their way are concerned: on whichever CPT those are.
 * Without memory nobody is told, which costs time only. */
static void tell_behind(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
			watch_fn call)
{
	struct lnet *node = cpt->node;

	if (likely(!cpt->routes->n) || !routes_go_by(cpt, nid, LNET_NET_ANY))
		return;
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct gateway_news *news = malloc(sizeof(*news));

		if (!news)
			continue;
		*news = (struct gateway_news){ .work.fn = gateway_news,
					       .cpt = node->cpt[i],
					       .gateway = *nid,
					       .call = call };
		atomic_fetch_add(&node->news, 1);
		loop_post(node->loops[i], &news->work);
	}
}

void upcall_peer_silent(struct lnd_ni *lnd, const struct ulnet_id *peer,
			uint64_t ns)
{
	struct lnet_ni *ni = ni_of(lnd);
	struct lnet_cpt *cpt = node_cpt_here(ni->node);

	reroute_silent(ni, cpt, peer, ns);
	watch_tell_silent(cpt, peer);
	tell_behind(cpt, &peer->nid, call_silent);
}

/* disc_cpt.gone */
static void watches_peer_ni_gone(struct lnet_cpt *cpt,
				 struct lnet_peer_ni *lpni)
{
	const struct ulnet_id peer = { lpni->nid, LNET_PID_ANY };

	peer_ref(lpni);
	watch_tell_silent(cpt, &peer);
	peer_unref(cpt, lpni);
}

/* disc_cpt.changed */
static void watches_changed(struct lnet_cpt *cpt)
{
	watches_tell(cpt, NULL, call_changed);
}

void lnet_peer_suspect(struct lnet *node, unsigned int cpt,
		       const struct ulnet_nid *local,
		       const struct ulnet_id *peer)
{
	struct lnet_ni *ni;

	loop_assert_owner(node->loops[cpt]);
	if (node->cpt[cpt]->closing)
		return;
	ni = config_ni(node->cpt[cpt]->config, local);
	if (!ni)
		return;
	reroute_silent(ni, node->cpt[cpt], peer, SUSPECTED_AFTER);
	disc_gateway_suspect(node->cpt[cpt], &peer->nid);
}

void upcall_peer_disconnected(struct lnd_ni *lnd, const struct ulnet_id *peer)
{
	struct lnet_cpt *cpt = node_cpt_here(ni_of(lnd)->node);

	cpt_stat(cpt, STAT_disconnects);
	tell_disconnected(cpt, peer);
	tell_behind(cpt, &peer->nid, call_disconnected);
}

/* @arg: a local NI. */
static bool is_on_net_of(const struct lnet_cpt *cpt,
			 const struct lnet_peer_ni *lpni, const void *arg)
{
	(void)cpt;
	return lpni->net->segment == ni_segment(arg);
}

void watches_ni_gone(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	tell_of_each(cpt, call_disconnected, is_on_net_of, ni);
}
