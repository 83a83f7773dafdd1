/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/peer_priv.h"

#include <errno.h>

const struct fsm_state ib_link_states[IB_LINK_STATES] = {
	[IB_LINK_NEW] = { "new",
			  FSM_TO(IB_LINK_ASKING) | FSM_TO(IB_LINK_ACCEPTING) },
	[IB_LINK_ASKING] = { "asking",
			     FSM_TO(IB_LINK_OPEN) | FSM_TO(IB_LINK_REFUSED) },
	[IB_LINK_ACCEPTING] = { "accepting", FSM_TO(IB_LINK_OPEN) |
						     FSM_TO(IB_LINK_REFUSED) },
	[IB_LINK_OPEN] = { "open", FSM_TO(IB_LINK_LOST) },
	[IB_LINK_REFUSED] = { "refused", FSM_TO(IB_LINK_GONE) },
	[IB_LINK_LOST] = { "lost", FSM_TO(IB_LINK_GONE) },
	[IB_LINK_GONE] = { "gone", 0 },
};

/* ---- peers by NID ---- */

static uint64_t peer_key(const struct ib_peers *ps, const struct ulnet_nid *nid)
{
	return hash_u64(lnet_nid_to_nid4(nid), ps->seed);
}

struct ib_peer *ib_peer_find(const struct ib_peers *ps,
			     const struct ulnet_nid *nid)
{
	struct hash_node *n;

	if (!lnet_nid_is_nid4(nid))
		return NULL;
	n = hash_first(&ps->hash, peer_key(ps, nid));
	for (; n; n = hash_next(n)) {
		struct ib_peer *peer = container_of(n, struct ib_peer, hash);

		if (lnet_nid_eq(&peer->known.peer.nid, nid))
			return peer;
	}
	return NULL;
}

/* Nothing is known of it, as of one who was never met. */
static void forget_terms(struct ib_peer *peer)
{
	const struct ib_peers_conf *conf = peer->ps->conf;

	peer->known.peer.stamp = 0;
	peer->known.depth = conf->terms.depth;
	peer->known.frags = conf->frags;
}

static void peer_free(struct ib_peer *peer)
{
	struct ib_peers *ps = peer->ps;

	BUG_ON(peer->settling || timer_armed(&peer->connect.timer));
	connect_unremember(&peer->connect);
	if (ps->last == peer)
		ps->last = NULL;
	hash_del(&ps->hash, &peer->hash);
	free(peer);
	if (ps->stopping && !ps->hash.count && !ps->stopped) {
		ps->stopped = true;
		loop_defer(ps->home.loop, &ps->work);
	}
}

/* Nothing is left of it but what has failed. */
static bool is_idle(const struct ib_peer *peer)
{
	return connect_is_idle(&peer->connect) && list_empty(&peer->links) &&
	       !peer->severed && !peer->settling;
}

static void peer_forget(struct ib_peer *peer)
{
	if (!is_idle(peer))
		return;
	if (!peer->connect.failures || peer->ps->stopping)
		peer_free(peer);
	else
		connect_remember(&peer->connect);
}

/* Who opens a connection may have lost those that it had, and has not been
 * heard to say so: what was not heard since then is not used. */
static bool is_doubtful(const struct ib_peer *peer, const struct ib_link *link)
{
	const struct ib_link *last =
		list_entry(peer->open.prev, struct ib_link, open);

	return link != last && last->passive &&
	       link->conn->heard_at < last->opened;
}

static bool is_good(const struct ib_peer *peer, const struct ib_link *link)
{
	return ib_conn_is_open(link->conn) && !is_doubtful(peer, link);
}

/* The next one, after all those that others have had. NULL: none. */
static struct ib_link *next_in_turn(struct ib_peer *peer)
{
	unsigned int skip = peer->turns++ % peer->n[IB_LINK_OPEN];
	struct ib_link *link, *found = NULL;

	list_for_each_entry (link, &peer->open, open) {
		if (!is_good(peer, link))
			continue;
		found = link;
		if (!skip--)
			break;
	}
	return found;
}

/* As ib_peers_get() says. NULL: none is open. */
static struct ib_conn *peer_conn(struct ib_peer *peer, bool any)
{
	struct ib_link *link = peer->way;

	if (list_empty(&peer->open))
		return NULL;
	if (any || !link || !is_good(peer, link))
		link = next_in_turn(peer);
	if (!any)
		peer->way = link;
	return link ? link->conn : NULL;
}

static void on_peer_work(struct work *w)
{
	struct ib_peer *peer = container_of(w, struct ib_peer, work);
	struct ib_peers *ps = peer->ps;
	bool emptied;

	/* What the user does meanwhile may call for another turn of this; only
	 * here, and when it is remembered for nothing else, a peer is freed. */
	peer->settling = false;
	if (peer->severed && !peer->n[IB_LINK_LOST]) {
		peer->severed = false;
		if (!ps->stopping)
			ps->user->disconnected(ps, &peer->known.peer.nid);
	}
	if (peer->connect.wanted && peer_conn(peer, false))
		ib_attempt_opened(peer);
	connect_settle(&peer->connect);
	emptied = ps->down && !ps->home.conns;
	peer_forget(peer);
	if (emptied)
		ps->user->emptied(ps);
}

void ib_peer_settle(struct ib_peer *peer)
{
	connect_unremember(&peer->connect);
	if (peer->settling)
		return;
	peer->settling = true;
	loop_defer(peer->ps->home.loop, &peer->work);
}

struct ib_peer *ib_peer_make(struct ib_peers *ps, const struct ulnet_nid *nid)
{
	struct ib_peer *peer = ib_peer_find(ps, nid);

	if (peer)
		goto found;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->ps = ps;
	peer->known.peer.nid = *nid;
	forget_terms(peer);
	list_init(&peer->links);
	list_init(&peer->open);
	peer->work.fn = on_peer_work;
	connect_init(&peer->connect, &ps->connects);
	if (hash_add(&ps->hash, &peer->hash, peer_key(ps, nid))) {
		free(peer);
		return NULL;
	}
found:
	ib_peer_settle(peer);
	return peer;
}

/* ---- connections ---- */

struct ib_link *ib_link_new(struct ib_peer *peer, bool passive)
{
	struct ib_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->peer = peer;
	link->passive = passive;
	list_add_tail(&peer->links, &link->link);
	list_init(&link->open);
	peer->n[IB_LINK_NEW]++;
	return link;
}

static void link_move(struct ib_link *link, enum ib_link_state to)
{
	struct ib_peer *peer = link->peer;

	peer->n[link->fsm.state]--;
	fsm_move(&link->fsm, ib_link_states, to);
	peer->n[to]++;
	ib_peer_settle(peer);
}

void ib_link_drop(struct ib_link *link)
{
	link->peer->n[link->fsm.state]--;
	list_del(&link->link);
	free(link);
}

void ib_link_begin(struct ib_link *link, struct ib_conn *conn)
{
	link->conn = conn;
	link_move(link, link->passive ? IB_LINK_ACCEPTING : IB_LINK_ASKING);
	if (!link->passive)
		return;
	link->peer->accepted++;
	link->peer->ps->accepted++;
}

void ib_peer_close_others(struct ib_peer *peer, uint64_t stamp)
{
	struct ib_link *link;

	/* What is asked for finds out by itself. */
	list_for_each_entry (link, &peer->links, link)
		if ((link->fsm.state == IB_LINK_OPEN ||
		     link->fsm.state == IB_LINK_ACCEPTING) &&
		    link->conn->terms.peer.stamp != stamp)
			ib_conn_close(link->conn, -ESTALE);
}

static void on_established(struct ib_conn *conn)
{
	struct ib_link *link = conn->user;
	struct ib_peer *peer = link->peer;

	link_move(link, IB_LINK_OPEN);
	link->opened = peer_now(peer);
	list_add_tail(&peer->open, &link->open);
	peer->known = conn->terms;
	peer->known.frags = MIN(peer->known.frags, peer->ps->conf->frags);
	ib_peer_close_others(peer, conn->terms.peer.stamp);
	ib_attempt_opened(peer);
}

static void on_refused(struct ib_conn *conn, int status,
		       const struct ib_refusal *refusal)
{
	struct ib_link *link = conn->user;

	link_move(link, IB_LINK_REFUSED);
	if (link->passive)
		return;
	link->peer->refused++;
	ib_attempt_refused(link, status, refusal);
}

static void link_lost(struct ib_link *link, int status)
{
	struct ib_conn *conn = link->conn;
	struct ib_peer *peer = link->peer;

	link->severed = status != -ESHUTDOWN;
	list_del(&link->open);
	if (peer->way == link)
		peer->way = NULL;
	link_move(link, IB_LINK_LOST);
	if (peer->n[IB_LINK_OPEN])
		return;
	if (conn->terms.peer.stamp == peer->known.peer.stamp)
		forget_terms(peer);
	if (!link->passive && !link->heard)
		ib_attempt_in_vain(peer);
}

static void on_closed(struct ib_conn *conn, int status)
{
	link_lost(conn->user, status);
	ib_peers_of(conn)->user->closed(conn);
}

static void on_gone(struct ib_conn *conn)
{
	struct ib_link *link = conn->user;
	struct ib_peer *peer = link->peer;

	if (link->severed)
		peer->severed = true;
	if (link->passive) {
		peer->accepted--;
		peer->ps->accepted--;
	} else if (link->fsm.state == IB_LINK_REFUSED) {
		peer->refused--;
	}
	link_move(link, IB_LINK_GONE);
	peer->n[IB_LINK_GONE]--;
	list_del(&link->link);
	conn->user = NULL;
	free(link);
}

static void link_heard(struct ib_link *link)
{
	link->heard = true;
	link->peer->connect.failures = 0;
}

static void on_arrived(struct ib_conn *conn, struct ib_rx *rx)
{
	link_heard(conn->user);
	ib_peers_of(conn)->user->arrived(conn, rx);
}

static void on_done(struct ib_tx *tx)
{
	if (!tx->status)
		link_heard(tx->conn->user);
	ib_peers_of(tx->conn)->user->done(tx);
}

static void on_silent(struct ib_conn *conn, uint64_t ns)
{
	ib_peers_of(conn)->user->stalled(conn, ns);
}

static const struct ib_conn_user conn_user = {
	.established = on_established,
	.silent = on_silent,
	.refused = on_refused,
	.closed = on_closed,
	.gone = on_gone,
	.arrived = on_arrived,
	.done = on_done,
};

/* The peer, if there can be connections with it. */
static int peer_get(struct ib_peers *ps, const struct ulnet_nid *nid,
		    struct ib_peer **peer_p)
{
	if (ps->stopping)
		return -ESHUTDOWN;
	if (ps->down)
		return ps->down;
	if (!lnet_nid_is_nid4(nid))
		return -EAFNOSUPPORT;
	*peer_p = ib_peer_make(ps, nid);
	return *peer_p ? 0 : -ENOMEM;
}

int ib_peers_want(struct ib_peers *ps, const struct ulnet_nid *nid)
{
	struct ib_peer *peer;
	int rc = peer_get(ps, nid, &peer);

	if (!rc)
		ib_attempt_want(peer);
	return rc;
}

/* The connection by which the last small message went, if this one can go by
 * it, as most do; or NULL. */
static in_line struct ib_conn *last_conn(const struct ib_peers *ps,
					 const struct ulnet_nid *nid)
{
	const struct ib_peer *peer = ps->last;

	if (ps->stopping || ps->down || !peer || !peer->way ||
	    !lnet_nid_eq(&peer->known.peer.nid, nid) ||
	    !is_good(peer, peer->way))
		return NULL;
	return peer->way->conn;
}

static out_of_line int get_conn(struct ib_peers *ps,
				const struct ulnet_nid *nid, bool any,
				struct ib_conn **conn_p)
{
	struct ib_peer *peer = ib_peer_find(ps, nid);
	int rc;

	ps->last = peer;
	*conn_p = NULL;
	if (!ps->stopping && !ps->down && peer)
		*conn_p = peer_conn(peer, any);
	if (*conn_p)
		return 0;
	rc = ib_peers_want(ps, nid);
	return rc ? rc : -EINPROGRESS;
}

int ib_peers_get(struct ib_peers *ps, const struct ulnet_nid *nid, bool any,
		 struct ib_conn **conn_p)
{
	struct ib_conn *conn = any ? NULL : last_conn(ps, nid);

	if (unlikely(!conn))
		return get_conn(ps, nid, any, conn_p);
	*conn_p = conn;
	return 0;
}

bool ib_peers_use(const struct ib_peers *ps, const struct ulnet_nid *nid)
{
	const struct ib_peer *peer = ib_peer_find(ps, nid);

	return peer && (peer->connect.wanted || !list_empty(&peer->links));
}

const struct ib_conn *ib_peers_conn(const struct ib_peers *ps,
				    const struct ulnet_nid *nid)
{
	const struct ib_peer *peer = ib_peer_find(ps, nid);

	if (!peer || list_empty(&peer->open))
		return NULL;
	return list_first(&peer->open, struct ib_link, open)->conn;
}

bool ib_peers_are_awaited(const struct ib_peers *ps,
			  const struct ulnet_nid *nid)
{
	const struct ib_peer *peer = ib_peer_find(ps, nid);

	return peer && peer->connect.wanted;
}

/* ---- all of them ---- */

static void on_peers_work(struct work *w)
{
	struct ib_peers *ps = container_of(w, struct ib_peers, work);

	ps->user->stopped(ps);
}

void ib_peers_init(struct ib_peers *ps, const struct ib_home *home,
		   const struct ib_peers_conf *conf,
		   const struct ib_peers_user *user, void *priv)
{
	*ps = (struct ib_peers){
		.home = *home,
		.conf = conf,
		.user = user,
		.priv = priv,
		.seed = loop_random(home->loop),
		.work = { .fn = on_peers_work },
	};
	ps->home.user = &conn_user;
	hash_init(&ps->hash);
	connect_set_init(&ps->connects, home->loop, &ib_attempt_ops);
}

void ib_peers_fini(struct ib_peers *ps)
{
	BUG_ON(ps->home.conns || ps->accepted);
	hash_fini(&ps->hash);
}

static void peers_end(struct ib_peers *ps, int status)
{
	struct hash_node *n;
	uint32_t bucket = 0;

	for (n = hash_walk(&ps->hash, &bucket, NULL); n;
	     n = hash_walk(&ps->hash, &bucket, n)) {
		struct ib_peer *peer = container_of(n, struct ib_peer, hash);
		struct ib_link *link;

		ib_attempt_stop(peer);
		list_for_each_entry (link, &peer->links, link)
			ib_conn_close(link->conn, status);
		ib_peer_settle(peer);
	}
}

void ib_peers_down(struct ib_peers *ps, int status)
{
	BUG_ON(!status);
	ps->down = status;
	peers_end(ps, status);
}

void ib_peers_up(struct ib_peers *ps)
{
	ps->down = 0;
}

void ib_peers_stop(struct ib_peers *ps)
{
	if (ps->stopping)
		return;
	ps->stopping = true;
	peers_end(ps, -ESHUTDOWN);
	if (ps->hash.count)
		return;
	ps->stopped = true;
	loop_defer(ps->home.loop, &ps->work);
}
