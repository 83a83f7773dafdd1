/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells users who watch the connections of peers that connections have ended or
 * fallen silent; ulnet/loop.h has the contract. Each CPT tells the watches that
 * were added on it. */
#include "lnet/discovery/discovery.h"
#include "lnet/message/op.h"
#include "lnet/message/throttle.h"
#include "lnet/message/reroute.h"
#include "lnet/net/net.h"
#include "lnet/node/node.h"
#include "lnet/route/route.h"
#include "ulnet/loop.h"

_Static_assert(sizeof(struct list) ==
		       sizeof((struct ulnet_peer_watch){ 0 }.opaque),
	       "room for a link");

/* Which function of a watch is to be called. */
enum watch_event { WATCH_DISCONNECTED, WATCH_SILENT, WATCH_CHANGED };

/* A path that a user suspects counts as silent for this time: a little less
 * than RPC waits for an answer, so that a local NI that has heard nothing since
 * the message was lost is to blame as well. With a longer time the NI would
 * seem well because of what it has heard before, and each of the peer's NIs
 * would be tried from it. */
#define SUSPECTED_AFTER (40 * NSEC_PER_MSEC)

static struct list *watch_link(struct ulnet_peer_watch *watch)
{
	return (void *)watch->opaque;
}

/* @fn: the function that the user has called. */
static struct list *watches_of(struct lnet *node, unsigned int cpt,
			       const char *fn)
{
	node_check_owner(node, cpt, fn);
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
	list_add_tail(watches_of(node, cpt, "lnet_peer_watch_add"),
		      watch_link(watch));
}

void lnet_peer_watch_del(struct lnet *node, unsigned int cpt,
			 struct ulnet_peer_watch *watch)
{
	(void)watches_of(node, cpt, "lnet_peer_watch_del");
	list_del(watch_link(watch));
}

static struct ulnet_peer_watch *watch_of(struct list *link)
{
	return container_of(link, struct ulnet_peer_watch, opaque);
}

static void watch_call(struct ulnet_peer_watch *watch, enum watch_event event,
		       const struct ulnet_id *peer)
{
	if (event == WATCH_DISCONNECTED && watch->disconnected)
		watch->disconnected(watch, peer);
	else if (event == WATCH_SILENT && watch->silent)
		watch->silent(watch, peer);
	else if (event == WATCH_CHANGED && watch->changed)
		watch->changed(watch);
}

/* Tells each watch of the event. A function that is called may delete any
 * watch, so a mark in the list remembers the place: it moves behind each watch
 * before that is called. Nested calls of watches_tell() find the marks of outer
 * calls in the list; their functions are NULL. */
static void watches_tell(struct lnet_cpt *cpt, const struct ulnet_id *peer,
			 enum watch_event event)
{
	struct list *watches = watches_of(cpt->node, cpt->index, __func__);
	struct ulnet_peer_watch mark = { .disconnected = NULL };
	struct list *here = watch_link(&mark);

	if (cpt->closing)
		return;
	list_add(watches, here);
	while (here->next != watches) {
		struct ulnet_peer_watch *watch = watch_of(here->next);

		list_del(here);
		list_add(watch_link(watch), here);
		watch_call(watch, event, peer);
	}
	list_del(here);
}

/* ---- peers behind gateways ---- */

/* Tells watches of each peer NI of @cpt for which @selects() is true. Users'
 * functions may send to new peers, which may make the CPT forget other peers:
 * hence the reference, and hash_hold_size(). */
static void tell_of_each(struct lnet_cpt *cpt, enum watch_event event,
			 bool (*selects)(const struct lnet_cpt *cpt,
					 const struct lnet_peer_ni *lpni,
					 const void *arg),
			 const void *arg)
{
	struct hash *peers = &peer_cpt(cpt)->peers;
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	hash_hold_size(peers, true);
	while ((n = hash_walk(peers, &bucket, n))) {
		struct lnet_peer_ni *lpni =
			container_of(n, struct lnet_peer_ni, hash);
		const struct ulnet_id peer = { lpni->nid, LNET_PID_ANY };

		if (lpni->place.state != PEER_HERE || !selects(cpt, lpni, arg))
			continue;
		peer_ref(lpni);
		watches_tell(cpt, &peer, event);
		peer_unref(lpni);
	}
	hash_hold_size(peers, false);
}

/* Do messages to the peer NI go through the gateway @arg (its NID)? */
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
	enum watch_event event;
};

static void gateway_news(struct work *w)
{
	struct gateway_news *news = container_of(w, struct gateway_news, work);
	struct lnet_cpt *cpt = news->cpt;

	if (!cpt->closing)
		tell_of_each(cpt, news->event, is_behind, &news->gateway);
	free(news);
	atomic_fetch_sub(&cpt->node->gateway_news, 1);
	cpt_ended_one(cpt);
}

/* Something has happened to the gateway @nid that affects messages to and from
 * all peers behind it, on all CPTs: tells the watches of all CPTs. Without
 * memory a CPT is not told, and its users notice the losses only by their
 * timeouts. */
static void tell_behind(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
			enum watch_event event)
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
					       .event = event };
		atomic_fetch_add(&node->gateway_news, 1);
		loop_post(node->loops[i], &news->work);
	}
}

void upcall_peer_silent(struct lnd_ni *lnd, const struct ulnet_id *peer,
			uint64_t ns)
{
	struct lnet_ni *ni = ni_of(lnd);
	struct lnet_cpt *cpt = node_cpt_here(ni->node);

	reroute_silent(ni, cpt, peer, ns);
	watches_tell(cpt, peer, WATCH_SILENT);
	tell_behind(cpt, &peer->nid, WATCH_SILENT);
}

/* As disc_cpt.gone: the peer has said that its NI is down, or does not belong
 * to it. */
static void watches_peer_ni_gone(struct lnet_cpt *cpt,
				 struct lnet_peer_ni *lpni)
{
	const struct ulnet_id peer = { lpni->nid, LNET_PID_ANY };

	peer_ref(lpni);
	watches_tell(cpt, &peer, WATCH_SILENT);
	peer_unref(lpni);
}

/* As disc_cpt.changed: NIDs of this node, or the states of its NIs, have
 * changed. */
static void watches_changed(struct lnet_cpt *cpt)
{
	watches_tell(cpt, NULL, WATCH_CHANGED);
}

static void path_suspect(struct lnet_cpt *cpt, const struct ulnet_nid *local,
			 const struct ulnet_id *peer)
{
	struct lnet_ni *ni;

	if (cpt->closing)
		return;
	ni = config_ni(cpt->config, local);
	if (!ni)
		return;
	reroute_silent(ni, cpt, peer, SUSPECTED_AFTER);
	disc_gateway_suspect(cpt, &peer->nid);
}

void lnet_peer_suspect(struct lnet *node, unsigned int cpt,
		       const struct ulnet_nid *local,
		       const struct ulnet_id *peer)
{
	node_check_owner(node, cpt, "lnet_peer_suspect");
	path_suspect(node->cpt[cpt], local, peer);
}

void lnet_send_suspect(struct lnet *node, unsigned int cpt,
		       struct ulnet_md_handle md)
{
	struct ulnet_nid local;
	struct ulnet_id hop;

	node_check_owner(node, cpt, "lnet_send_suspect");
	if (op_path(node->cpt[cpt], md.cookie, &local, &hop))
		path_suspect(node->cpt[cpt], &local, &hop);
}

void lnet_peer_throttle(struct lnet *node, unsigned int cpt,
			const struct ulnet_nid *nid, bool full)
{
	node_check_owner(node, cpt, "lnet_peer_throttle");
	throttle_peer(node->cpt[cpt], nid, full);
}

void upcall_peer_disconnected(struct lnd_ni *lnd, const struct ulnet_id *peer)
{
	struct lnet_cpt *cpt = node_cpt_here(ni_of(lnd)->node);

	cpt_stat(cpt, STAT_disconnects);
	disc_disconnected(cpt, ni_of(lnd), &peer->nid);
	watches_tell(cpt, peer, WATCH_DISCONNECTED);
	tell_behind(cpt, &peer->nid, WATCH_DISCONNECTED);
}

/* Is the peer NI on the net of the local NI @arg? */
static bool is_on_net_of(const struct lnet_cpt *cpt,
			 const struct lnet_peer_ni *lpni, const void *arg)
{
	const struct lnet_ni *ni = arg;

	(void)cpt;
	return lpni->net->segment == ni->segment;
}

void watches_ni_gone(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	tell_of_each(cpt, WATCH_DISCONNECTED, is_on_net_of, ni);
}
