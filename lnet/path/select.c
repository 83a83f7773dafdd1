/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/select.h"

#include <errno.h>

#include "lnet/net/net.h"
#include "lnet/path/stage.h"
#include "lnet/path/verdict.h"
#include "lnet/peer/provenance.h"
#include "lnet/route/route.h"

static out_of_line uint32_t criteria_ignored(const struct lnet_cpt *cpt)
{
	uint32_t ignored = RANK_SELDOM;

	if (!cpt->policies)
		ignored |= RANK_BY_POLICY;
	if (!settings_health_is_on(&cpt->node->settings))
		ignored |= RANK_BY(HEALTH) | RANK_BY(PEER_HEALTH);
	return ignored;
}

/* Is seek.ignored the usual one? With health_sensitivity 0, health decides
 * nothing. Whatever the setting, interfaces that are down are avoided. */
static inline bool is_usual(const struct lnet_cpt *cpt)
{
	return likely(!cpt->policies &&
		      settings_health_is_on(&cpt->node->settings));
}

/* ---- nets ---- */

/* A net (segment) that both this node and the peer are on. */
struct shared_net {
	const struct lnet_net *ours;
	struct lnet_peer_net *theirs;
};

static struct lnet_peer_ni *first_of(const struct lnet_peer_net *theirs)
{
	return list_first(&theirs->nis, struct lnet_peer_ni, link);
}

/* Does the peer say that any NI of @theirs is up? If so, NIs that it says are
 * down are avoided; if not, the peer may be mistaken, and they are used. */
static bool any_is_up(const struct lnet_peer_net *theirs)
{
	const struct lnet_peer_ni *p;

	list_for_each_entry (p, &theirs->nis, link)
		if (!p->down)
			return true;
	return false;
}

/* Of the paths from @ni to the NIs of @theirs (NULL: to the NI named), takes
 * the one on which the message has failed least often, and returns how often
 * that was. */
static unsigned int fewest_failures(const struct seek *s,
				    const struct lnet_ni *ni,
				    const struct lnet_peer_net *theirs)
{
	const struct failed_paths *failed = s->request->failed;
	unsigned int fewest = UINT32_MAX;
	const struct lnet_peer_ni *p;
	bool up;

	if (!theirs)
		return failed_paths_count(failed, &ni->lnd.nid,
					  s->request->dst);
	up = any_is_up(theirs);
	list_for_each_entry (p, &theirs->nis, link)
		if (!p->down || !up)
			fewest = MIN(fewest,
				     failed_paths_count(failed, &ni->lnd.nid,
							&p->nid));
	return fewest;
}

static void rank_their_net(const struct lnet_peer_net *pn, struct path_rank *r)
{
	const struct lnet_peer_ni *p;
	uint64_t use = 0;
	int32_t health = 0;
	bool up = false;

	list_for_each_entry (p, &pn->nis, link) {
		health = MAX(health, p->health);
		use = MAX(use, p->use);
		up |= !p->down;
	}
	r->key[LNET_PATH_PEER_UP] = up;
	r->key[LNET_PATH_PEER_HEALTH] = health;
	r->key[LNET_PATH_PEER_TURN] = rank_of_use(use);
}

/* A net of this host is better than others, once an NI of the peer there has
 * said whose it is; and worse before. */
static int64_t rank_of_host(const struct shared_net *net)
{
	const struct lnet_peer_ni *p;

	if (likely(!net_is_of_host(net->ours)))
		return 0;
	list_for_each_entry (p, &net->theirs->nis, link)
		if (!provenance_is_unverified(p))
			return 1;
	return -1;
}

static void rank_our_net(const struct seek *s, const struct lnet_net *net,
			 struct path_rank *r)
{
	int32_t health = 0;
	uint64_t use = 0;

	for (unsigned int i = 0; i < net->nnis; i++) {
		const struct lnet_ni *ni = net->ni[i];

		if (ni_is_up(ni))
			health = MAX(health, ni_health(ni));
		use = MAX(use, ni->cpt[s->cpt->index].use);
	}
	r->key[LNET_PATH_HEALTH] = health;
	r->key[LNET_PATH_TURN] = rank_of_use(use);
}

static void rank_net_tries(const struct seek *s, const struct shared_net *net,
			   struct path_rank *r)
{
	unsigned int fewest = UINT32_MAX, all = 0;

	for (unsigned int i = 0; i < net->ours->nnis; i++) {
		const struct lnet_ni *ni = net->ours->ni[i];

		all += failed_paths_count(s->request->failed, &ni->lnd.nid,
					  NULL);
		if (ni_is_up(ni))
			fewest = MIN(fewest,
				     fewest_failures(s, ni, net->theirs));
	}
	r->key[LNET_PATH_UNTRIED] = -(int64_t)fewest;
	r->key[LNET_PATH_LESS_TRIED] = -(int64_t)all;
}

static bool net_is_up(const struct lnet_net *net)
{
	for (unsigned int i = 0; i < net->nnis; i++)
		if (ni_is_up(net->ni[i]))
			return true;
	return false;
}

/* All NIs of a net have the priority of the net. */
static out_of_line void rank_net_by_policy(const struct seek *s,
					   const struct shared_net *net,
					   struct path_rank *r)
{
	r->key[LNET_PATH_PEER_PRIORITY] = rank_of_priority(
		verdict_of_peer_ni(s->cpt, first_of(net->theirs))
			->net_priority);
	r->key[LNET_PATH_PRIORITY] = rank_of_priority(
		verdict_of_ni(s->cpt, net->ours->ni[0])->net_priority);
}

/* The NID that stands for a segment in a trace: the one with address 0, which
 * no NI has. */
static struct ulnet_nid segment_name(uint32_t segment)
{
	struct ulnet_nid nid = lnet_nid_make(segment_net(segment), 0);

	nid.size = (uint8_t)(segment >> 24);
	return nid;
}

static void net_offer(struct stage *st, struct lnet_peer_net *theirs)
{
	const struct ulnet_nid nid = segment_name(theirs->segment);
	const struct seek *s = st->seek;
	struct shared_net net = { config_net(s->cpt->config, theirs->segment),
				  theirs };
	struct path_rank *r = stage_rank(st);

	if (!net.ours) {
		stage_refuse(st, LNET_PATH_NET, &nid, LNET_PATH_UNREACHED);
		return;
	}
	if (!net_is_up(net.ours)) {
		stage_refuse(st, LNET_PATH_NET, &nid, LNET_PATH_DOWN);
		return;
	}
	rank_our_net(s, net.ours, r);
	rank_their_net(theirs, r);
	r->key[LNET_PATH_NEAR] = rank_of_host(&net);
	if (unlikely(s->cpt->policies))
		rank_net_by_policy(s, &net, r);
	if (unlikely(s->request->failed))
		rank_net_tries(s, &net, r);
	stage_offer(st, LNET_PATH_NET, theirs, &nid);
}

/* Returns the shared net if there is only one and no trace is wanted; otherwise
 * one whose .theirs is NULL. */
static struct shared_net only_net(const struct seek *s)
{
	struct shared_net only = { NULL, NULL };
	struct lnet_peer_net *theirs;

	if (unlikely(s->trace))
		return only;
	list_for_each_entry (theirs, &s->dst->peer->nets, link) {
		const struct lnet_net *ours =
			config_net(s->cpt->config, theirs->segment);

		if (!ours)
			continue;
		if (only.theirs)
			return (struct shared_net){ NULL, NULL };
		only = (struct shared_net){ ours, theirs };
	}
	return only;
}

/* Returns the best shared net; its .theirs is NULL if all local NIs on shared
 * nets are down. */
static struct shared_net choose_net(const struct seek *s)
{
	struct lnet_peer_net *theirs;
	struct stage st;

	stage_begin(&st, s, LNET_PATH_NET);
	list_for_each_entry (theirs, &s->dst->peer->nets, link)
		net_offer(&st, theirs);
	theirs = stage_end(&st);
	return (struct shared_net){
		theirs ? config_net(s->cpt->config, theirs->segment) : NULL,
		theirs
	};
}

/* ---- local NIs ---- */

/* Would a message from @ni to an NI of @theirs (NULL: to the NI named) have to
 * wait for a connection that is being made, and may never be ready? Of the
 * peer's NIs that are up, only the healthiest ones are considered, if health
 * counts. */
static bool waits_for_connection(const struct seek *s, const struct lnet_ni *ni,
				 const struct lnet_peer_net *theirs)
{
	bool by_health = !(s->ignored & RANK_BY(HEALTH));
	uint64_t connecting = 0, connected = 0;
	const struct lnet_peer_ni *p;
	int32_t best = -1;
	bool up;

	if (!theirs)
		return s->dst->connecting_from & ni->bit;
	up = any_is_up(theirs);
	list_for_each_entry (p, &theirs->nis, link) {
		int32_t health = by_health ? p->health : 0;

		if ((p->down && up) || health < best)
			continue;
		if (health > best)
			connecting = connected = 0;
		best = health;
		connecting |= p->connecting_from;
		connected |= p->connected_from;
	}
	return connecting & ~connected & ni->bit;
}

/* Returns the bits (lnet_ni.bit) of all local NIs that are connecting to an NI
 * of @theirs (NULL: to the NI named). */
static uint64_t who_connects(const struct seek *s,
			     const struct lnet_peer_net *theirs)
{
	const struct lnet_peer_ni *p;
	uint64_t from = 0;

	if (!theirs)
		return s->dst ? s->dst->connecting_from : 0;
	list_for_each_entry (p, &theirs->nis, link)
		from |= p->connecting_from;
	return from;
}

static void rank_nearness(const struct seek *s, const struct lnet_ni *ni,
			  struct path_rank *r)
{
	const struct lnet *node = s->cpt->node;
	uint32_t distance = numa_distance(
		net_node(node)->numa, ni->lnd.numa_node, s->request->numa_node);

	r->key[LNET_PATH_NEAR] = rank_of_distance(
		distance, settings_numa_range(&node->settings));
}

static void rank_ni_tries(const struct seek *s, const struct lnet_ni *ni,
			  const struct lnet_peer_net *theirs,
			  struct path_rank *r)
{
	r->key[LNET_PATH_UNTRIED] = -(int64_t)fewest_failures(s, ni, theirs);
	r->key[LNET_PATH_LESS_TRIED] = -(int64_t)failed_paths_count(
		s->request->failed, &ni->lnd.nid, NULL);
}

/* Do policies prefer @ni for messages to an NI of @theirs (NULL: to the NI
 * named)? */
static bool prefers_ni(const struct seek *s, const struct lnet_ni *ni,
		       const struct lnet_peer_net *theirs)
{
	struct lnet_peer_ni *p;

	if (!theirs && !s->dst)
		return policies_pair(s->cpt->policies, &ni->lnd.nid,
				     s->request->dst);
	if (!theirs)
		return verdict_prefers(s->cpt, s->dst, ni);
	list_for_each_entry (p, &theirs->nis, link)
		if (!p->down && verdict_prefers(s->cpt, p, ni))
			return true;
	return false;
}

static out_of_line void rank_ni_by_policy(const struct seek *s,
					  struct lnet_ni *ni,
					  const struct lnet_peer_net *theirs,
					  struct path_rank *r)
{
	r->key[LNET_PATH_PRIORITY] =
		rank_of_priority(verdict_of_ni(s->cpt, ni)->priority);
	r->key[LNET_PATH_PREFERRED] = prefers_ni(s, ni, theirs);
}

/* Returns the best local NI of @net for messages to an NI of @theirs (NULL: to
 * the NI named), or NULL if all local NIs of @net are down. */
static struct lnet_ni *choose_ni(const struct seek *s,
				 const struct lnet_net *net,
				 const struct lnet_peer_net *theirs)
{
	uint64_t connecting = who_connects(s, theirs);
	struct stage st;

	stage_begin(&st, s, LNET_PATH_LOCAL_NI);
	for (unsigned int i = 0; i < net->nnis; i++) {
		struct lnet_ni *ni = net->ni[i];
		const struct ni_cpt *nc = &ni->cpt[s->cpt->index];
		struct path_rank *r;

		if (!ni_is_up(ni)) {
			stage_refuse(&st, LNET_PATH_LOCAL_NI, &ni->lnd.nid,
				     LNET_PATH_DOWN);
			continue;
		}
		r = stage_rank(&st);
		if (unlikely(s->request->failed))
			rank_ni_tries(s, ni, theirs, r);
		r->key[LNET_PATH_HEALTH] = ni_health(ni);
		if (unlikely(s->cpt->policies))
			rank_ni_by_policy(s, ni, theirs, r);
		if (unlikely(connecting))
			r->key[LNET_PATH_CONNECTED] =
				!waits_for_connection(s, ni, theirs);
		if (unlikely(s->request->flags & PATH_NEAR))
			rank_nearness(s, ni, r);
		r->key[LNET_PATH_CREDITS] = credits_get(&nc->credits);
		r->key[LNET_PATH_TURN] = rank_of_use(nc->use);
		stage_offer(&st, LNET_PATH_LOCAL_NI, ni, &ni->lnd.nid);
	}
	return stage_end(&st);
}

/* Notes in the trace that @ni was taken without comparison with the other NIs
 * of its net, which lost by @why. */
static void trace_only_ni(const struct seek *s, const struct lnet_ni *ni,
			  enum ulnet_path_why why)
{
	const struct lnet_net *net = config_net(s->cpt->config, ni->segment);

	for (unsigned int i = 0; i < net->nnis; i++)
		stage_trace(s->trace, LNET_PATH_LOCAL_NI, &net->ni[i]->lnd.nid,
			    net->ni[i] == ni	   ? LNET_PATH_CHOSEN
			    : ni_is_up(net->ni[i]) ? why
						   : LNET_PATH_DOWN,
			    NULL);
}

/* ---- NIs of the peer ---- */

static void rank_peer_ni_tries(const struct seek *s,
			       const struct lnet_peer_ni *p,
			       const struct lnet_ni *ni, struct path_rank *r)
{
	const struct failed_paths *failed = s->request->failed;

	r->key[LNET_PATH_UNTRIED] =
		-(int64_t)failed_paths_count(failed, &ni->lnd.nid, &p->nid);
	r->key[LNET_PATH_LESS_TRIED] =
		-(int64_t)failed_paths_count(failed, NULL, &p->nid);
}

/* Before the first message to @p its credits are not set yet. Messages that
 * wait for a connection hold no credits yet, but are counted here: otherwise a
 * peer NI that cannot be reached would seem to be the least busy one. */
static int64_t credits_left(const struct lnet_peer_ni *p,
			    const struct lnet_ni *ni)
{
	int64_t credits =
		p->credits_max ? p->credits : (int64_t)ni->peer_credits;

	return credits - (int64_t)p->nconnecting;
}

static out_of_line void rank_peer_ni_by_policy(const struct seek *s,
					       struct lnet_peer_ni *p,
					       const struct lnet_ni *ni,
					       struct path_rank *r)
{
	r->key[LNET_PATH_PRIORITY] =
		rank_of_priority(verdict_of_peer_ni(s->cpt, p)->priority);
	r->key[LNET_PATH_PREFERRED] = ni && verdict_prefers(s->cpt, p, ni);
}

/* Returns the best peer NI of @theirs for messages from @ni. @named, a
 * constant, says that s->ignored lacks NAMED: the peer NI that the sender named
 * is then the best while no other one is healthier. */
static in_line struct lnet_peer_ni *best_peer_ni(
	const struct seek *s, const struct lnet_peer_net *theirs,
	const struct lnet_ni *ni, bool named)
{
	bool connecting = who_connects(s, theirs) & ni->bit;
	struct lnet_peer_ni *p;
	struct stage st;

	stage_begin(&st, s, LNET_PATH_PEER_NI);
	list_for_each_entry (p, &theirs->nis, link) {
		struct path_rank *r = stage_rank(&st);

		if (unlikely(s->request->failed))
			rank_peer_ni_tries(s, p, ni, r);
		r->key[LNET_PATH_PEER_UP] = !p->down;
		r->key[LNET_PATH_HEALTH] = p->health;
		if (named)
			r->key[LNET_PATH_NAMED] = p == s->dst;
		if (unlikely(s->cpt->policies))
			rank_peer_ni_by_policy(s, p, ni, r);
		if (unlikely(connecting))
			r->key[LNET_PATH_CONNECTED] =
				(p->connected_from & ni->bit) != 0;
		r->key[LNET_PATH_CREDITS] = credits_left(p, ni);
		r->key[LNET_PATH_TURN] = rank_of_use(p->use);
		stage_offer(&st, LNET_PATH_PEER_NI, p, &p->nid);
	}
	return stage_end(&st);
}

static struct lnet_peer_ni *choose_peer_ni(const struct seek *s,
					   const struct lnet_peer_net *theirs,
					   const struct lnet_ni *ni)
{
	return best_peer_ni(s, theirs, ni, false);
}

/* Notes in the trace that the peer NI named was taken without comparison. */
static void trace_only_peer_ni(const struct seek *s)
{
	struct lnet_peer_ni *p;

	if (!s->dst) {
		stage_trace(s->trace, LNET_PATH_PEER_NI, s->request->dst,
			    LNET_PATH_CHOSEN, NULL);
		return;
	}
	list_for_each_entry (p, &s->dst->net->nis, link)
		stage_trace(s->trace, LNET_PATH_PEER_NI, &p->nid,
			    p == s->dst ? LNET_PATH_CHOSEN
					: LNET_PATH_NOT_ASKED,
			    NULL);
}

/* ---- the cases ---- */

/* Is the NI named the only candidate, although its peer is multi-rail? It is if
 * the message answers one that came from this NI, and the peer does not say
 * that this NI is down. */
static bool keeps_to_named(const struct seek *s)
{
	return s->request->flags & PATH_KEEP &&
	       (!s->dst->down || !any_is_up(s->dst->net));
}

static out_of_line int from_named_to_best(const struct seek *s,
					  struct path *path)
{
	struct seek named = *s;

	named.ignored &= ~RANK_BY(NAMED);
	path->lpni = path->dst =
		best_peer_ni(&named, s->dst->net, s->src, true);
	return 0;
}

static int from_named(const struct seek *s, struct path *path)
{
	bool is_hop = s->request->flags & PATH_HOP;

	if (!ni_is_up(s->src))
		return -ENETDOWN;
	path->ni = s->src;
	if (unlikely(is_hop && s->dst && s->dst->peer->multi_rail &&
		     !provenance_is_unverified(s->dst))) {
		path->lpni = path->dst = choose_peer_ni(s, s->dst->net, s->src);
		return 0;
	}
	/* For a hop choose_from() has put the NI into the trace. */
	if (unlikely(s->trace && !is_hop))
		trace_only_ni(s, s->src, LNET_PATH_NOT_ASKED);
	if (s->mr && !keeps_to_named(s))
		return from_named_to_best(s, path);
	path->lpni = path->dst = s->dst;
	if (unlikely(s->trace))
		trace_only_peer_ni(s);
	return 0;
}

static int by_route(const struct seek *s, struct path *path);

/* All local NIs on the peer's nets are down. Perhaps a gateway leads to another
 * net of the peer; but a gateway is never reached through another gateway. */
static out_of_line int by_route_instead(const struct seek *s, struct path *path)
{
	int rc = s->request->flags & PATH_HOP ? -EHOSTUNREACH
					      : by_route(s, path);

	return rc == -EHOSTUNREACH ? -ENETDOWN : rc;
}

static int from_best_to_best(const struct seek *s, struct path *path)
{
	struct shared_net net = only_net(s);

	if (!net.theirs)
		net = choose_net(s);
	if (!net.theirs)
		return by_route_instead(s, path);
	path->ni = choose_ni(s, net.ours, net.theirs);
	if (!path->ni)
		return by_route_instead(s, path);
	path->lpni = path->dst = choose_peer_ni(s, net.theirs, path->ni);
	return 0;
}

/* Returns the local NI by which a peer that is not multi-rail knows this node.
 * NULL: there is none, it is deleted or down, or policies prefer another one.
 */
static struct lnet_ni *known_by(const struct seek *s)
{
	struct lnet_ni *ni;

	if (!s->dst || s->dst->peer->multi_rail ||
	    lnet_nid_is_any(&s->dst->preferred))
		return NULL;
	ni = config_ni(s->cpt->config, &s->dst->preferred);
	if (unlikely(s->cpt->policies) && ni &&
	    verdict_has_better(s->cpt, s->dst, ni))
		return NULL;
	return ni && ni_is_up(ni) ? ni : NULL;
}

static int from_best_to_named(const struct seek *s, struct path *path)
{
	uint32_t segment = nid_segment(s->request->dst);
	struct lnet_ni *ni = known_by(s);

	if (!ni)
		ni = choose_ni(s, config_net(s->cpt->config, segment), NULL);
	else if (unlikely(s->trace))
		trace_only_ni(s, ni, LNET_PATH_PREFERRED);
	if (!ni)
		return -ENETDOWN;
	path->ni = ni;
	path->lpni = path->dst = s->dst;
	if (unlikely(s->trace))
		trace_only_peer_ni(s);
	return 0;
}

/* ---- gateways ---- */

/* The best route, and the net of the peer to which it leads. */
struct way {
	struct lnet_route *route;
	struct lnet_peer_net *theirs; /* NULL: the net of the NI named */
};

/* Returns why the route is no candidate, or LNET_PATH_CHOSEN if it is one.
 * @from: the local NI by which the message must leave, or NULL. */
static enum ulnet_path_why refuses_route(const struct seek *s,
					 const struct lnet_route *r,
					 const struct lnet_ni *from)
{
	uint32_t near = nid_segment(&r->gateway);
	const struct lnet_net *net = config_net(s->cpt->config, near);
	struct directory *d = &s->cpt->node->directory;

	if (!net || config_is_mine(s->cpt->config, &r->gateway))
		return LNET_PATH_UNREACHED;
	if (from && from->segment != near)
		return LNET_PATH_NOT_ASKED;
	if (s->request->flags & PATH_FORWARD &&
	    directory_same(d, &r->gateway, s->request->hop))
		return LNET_PATH_NOT_ASKED;
	if (!net_is_up(net) || route_state(r, 0) == ROUTE_DOWN)
		return LNET_PATH_DOWN;
	return LNET_PATH_CHOSEN;
}

/* Did the message that is being answered come through this gateway? For a
 * message to a process that only calls: or did the last message of that
 * process? */
static bool came_by(const struct seek *s, const struct lnet_route *r)
{
	const struct ulnet_nid *hop = s->request->hop;

	if (!hop && s->request->flags & PATH_CALLER && s->dst)
		hop = &s->dst->heard_via;
	return hop && !(s->request->flags & PATH_FORWARD) &&
	       directory_same(&s->cpt->node->directory, &r->gateway, hop);
}

/* Do policies prefer the route for messages to an NI of @theirs (NULL: to the
 * NI named)? */
static bool prefers_route(const struct seek *s, const struct lnet_route *r,
			  const struct lnet_peer_net *theirs)
{
	struct lnet_peer_ni *p;

	if (!theirs && !s->dst)
		return policies_gateway(s->cpt->policies, s->request->dst,
					&r->gateway);
	if (!theirs)
		return verdict_prefers(s->cpt, s->dst, r);
	list_for_each_entry (p, &theirs->nis, link)
		if (verdict_prefers(s->cpt, p, r))
			return true;
	return false;
}

static out_of_line void rank_route_by_policy(const struct seek *s,
					     const struct lnet_route *r,
					     const struct lnet_peer_net *theirs,
					     struct path_rank *k)
{
	if (theirs)
		k->key[LNET_PATH_PEER_PRIORITY] = rank_of_priority(
			verdict_of_peer_ni(s->cpt, first_of(theirs))
				->net_priority);
	k->key[LNET_PATH_ROUTE_PREFERRED] = prefers_route(s, r, theirs);
}

static void rank_route(const struct seek *s, const struct lnet_route *r,
		       const struct lnet_peer_net *theirs, struct path_rank *k)
{
	uint32_t sensitivity = settings_route_health(&s->cpt->node->settings);

	k->key[LNET_PATH_PEER_UP] =
		2 * (route_state(r, sensitivity) == ROUTE_UP) +
		(!theirs || any_is_up(theirs));
	if (unlikely(s->request->failed))
		k->key[LNET_PATH_UNTRIED] = -(int64_t)failed_paths_by(
			s->cpt, s->request->failed, &r->gateway);
	if (unlikely(s->cpt->policies))
		rank_route_by_policy(s, r, theirs, k);
	k->key[LNET_PATH_ROUTE_PRIORITY] =
		came_by(s, r) ? 1 : rank_of_priority(r->priority);
	k->key[LNET_PATH_HOPS] = -(int64_t)MAX(r->hops, 1);
	k->key[LNET_PATH_HEALTH] = route_health(r);
	k->key[LNET_PATH_CREDITS] = -(int64_t)route_queue(r);
	k->key[LNET_PATH_TURN] = rank_of_use(r->use[s->cpt->index]);
}

/* Offers the routes to @net. *@best is set together with st->best. */
static void offer_routes(struct stage *st, uint32_t net,
			 struct lnet_peer_net *theirs,
			 const struct lnet_ni *from, struct way *best)
{
	const struct seek *s = st->seek;
	unsigned int i, end = routes_to(s->cpt->routes, net, &i);

	for (; i < end; i++) {
		struct lnet_route *r = s->cpt->routes->route[i];
		enum ulnet_path_why why = refuses_route(s, r, from);

		if (why != LNET_PATH_CHOSEN) {
			stage_refuse(st, LNET_PATH_GATEWAY, &r->gateway, why);
			continue;
		}
		rank_route(s, r, theirs, stage_rank(st));
		stage_offer(st, LNET_PATH_GATEWAY, r, &r->gateway);
		if (st->best == r)
			*best = (struct way){ r, theirs };
	}
}

static struct way choose_way(const struct seek *s, const struct lnet_ni *from)
{
	struct way best = { NULL, NULL };
	struct lnet_peer_net *theirs;
	struct stage st;

	stage_begin(&st, s, LNET_PATH_GATEWAY);
	if (!s->mr)
		offer_routes(&st, lnet_nid_net(s->request->dst), NULL, from,
			     &best);
	else
		list_for_each_entry (theirs, &s->dst->peer->nets, link)
			offer_routes(&st, segment_net(theirs->segment), theirs,
				     from, &best);
	(void)stage_end(&st);
	return best;
}

/* Returns the best peer NI of a net that this node is not on. All that is known
 * of it is what the peer says of its NIs. */
static struct lnet_peer_ni *choose_far_ni(const struct seek *s,
					  const struct lnet_peer_net *theirs)
{
	struct lnet_peer_ni *p;
	struct stage st;

	stage_begin(&st, s, LNET_PATH_PEER_NI);
	list_for_each_entry (p, &theirs->nis, link) {
		struct path_rank *r = stage_rank(&st);

		r->key[LNET_PATH_PEER_UP] = !p->down;
		if (unlikely(s->cpt->policies))
			rank_peer_ni_by_policy(s, p, NULL, r);
		r->key[LNET_PATH_TURN] = rank_of_use(p->use);
		stage_offer(&st, LNET_PATH_PEER_NI, p, &p->nid);
	}
	return stage_end(&st);
}

/* Chooses a gateway on the net of path->from. If there is none, and the sender
 * did not name that NI, sets path->from to NULL and chooses any gateway. */
static struct way choose_way_from(const struct seek *s, struct path *path)
{
	unsigned int seen = s->trace ? s->trace->n : 0;
	struct way way = choose_way(s, path->from);

	if (way.route || !path->from || s->src)
		return way;
	/* The trace loses these routes, since the next choice adds them again.
	 */
	if (s->trace)
		s->trace->n = seen;
	path->from = NULL;
	return choose_way(s, NULL);
}

/* If the peer knows this node by one NI, chooses the NI by which the message
 * must leave. The trace shows that NI here, and not on the way to the gateway,
 * since another CPT may choose that way. */
static void choose_from(const struct seek *s, struct path *path)
{
	uint32_t near = nid_segment(&path->route->gateway);

	if (!s->mr && !path->from)
		path->from =
			choose_ni(s, config_net(s->cpt->config, near), NULL);
	else if (path->from && unlikely(s->trace))
		trace_only_ni(s, path->from,
			      s->src ? LNET_PATH_NOT_ASKED
				     : LNET_PATH_PREFERRED);
}

static int seek_gateway(const struct seek *s, struct path *path);

static int by_route(const struct seek *s, struct path *path)
{
	struct way way;

	if (s->src && config_net(s->cpt->config, nid_segment(s->request->dst)))
		return -EINVAL;
	if (s->src && !ni_is_up(s->src))
		return -ENETDOWN;
	path->from = s->src ? s->src : s->mr ? NULL : known_by(s);
	way = choose_way_from(s, path);
	if (!way.route)
		return -EHOSTUNREACH;
	path->route = way.route;
	path->dst = way.theirs ? choose_far_ni(s, way.theirs) : s->dst;
	choose_from(s, path);
	if (node_cpt_of(s->cpt->node, &way.route->gateway) != s->cpt->index)
		return 0;
	return seek_gateway(s, path);
}

static int (*const cases[PATH_CASES])(const struct seek *s,
				      struct path *path) = {
	[PATH_SPEC_LOCAL_MR] = from_named,
	[PATH_SPEC_LOCAL_NMR] = from_named,
	[PATH_SPEC_REMOTE_MR] = by_route,
	[PATH_SPEC_REMOTE_NMR] = by_route,
	[PATH_ANY_LOCAL_MR] = from_best_to_best,
	[PATH_ANY_LOCAL_NMR] = from_best_to_named,
	[PATH_ANY_REMOTE_MR] = by_route,
	[PATH_ANY_REMOTE_NMR] = by_route,
};

/* Is the peer on any net of this node? */
static bool shares_net(const struct seek *s)
{
	const struct lnet_peer_net *pn;

	list_for_each_entry (pn, &s->dst->peer->nets, link)
		if (config_net(s->cpt->config, pn->segment))
			return true;
	return false;
}

static enum path_case case_of(struct seek *s)
{
	uint32_t segment = nid_segment(s->request->dst);
	bool local;

	s->mr = s->dst && s->dst->peer->multi_rail &&
		!(s->request->flags & PATH_EXACT) &&
		!provenance_is_unverified(s->dst);
	if (s->src)
		local = s->src->segment == segment;
	else if (s->mr)
		local = shares_net(s);
	else
		local = config_net(s->cpt->config, segment);
	/* The order of enum path_case. */
	return (enum path_case)(4 * !s->src + 2 * !local + !s->mr);
}

/* Chooses the path to the gateway of path->route, as for a message to the
 * gateway: a gateway with several NIs is a peer like any other (B5). */
static int seek_gateway(const struct seek *s, struct path *path)
{
	const struct ulnet_nid *gateway = &path->route->gateway;
	struct path hop = { .ni = NULL };
	struct path_request request = *s->request;
	struct seek to = { .cpt = s->cpt,
			   .request = &request,
			   .ignored = s->ignored,
			   .trace = s->trace };
	int rc;

	request.dst = gateway;
	request.flags = (request.flags & ~PATH_EXACT) | PATH_HOP;
	to.src = path->from;
	to.dst = peer_find(s->cpt, gateway);
	rc = cases[case_of(&to)](&to, &hop);
	path->ni = hop.ni;
	path->lpni = hop.lpni;
	return rc;
}

int path_select(struct lnet_cpt *cpt, const struct path_request *request,
		struct path *path, struct path_trace *trace)
{
	struct seek s = { .cpt = cpt,
			  .request = request,
			  .ignored = STAGE_IGNORED,
			  .trace = trace };

	/* Some NIs of the configuration may have been freed already. */
	if (unlikely(cpt->closing))
		return -ESHUTDOWN;
	if (unlikely(!is_usual(cpt)))
		s.ignored = criteria_ignored(cpt);
	/* No path leads to 0@lo. */
	if (unlikely(lnet_nid_is_lo(request->dst)))
		return -EHOSTUNREACH;
	if (!lnet_nid_is_any(request->src)) {
		s.src = config_ni(cpt->config, request->src);
		if (!s.src)
			return -EINVAL;
	}
	s.dst = peer_find(cpt, request->dst);
	path->ni = path->from = NULL;
	path->lpni = NULL;
	path->route = NULL;
	path->which = case_of(&s);
	return cases[path->which](&s, path);
}
