/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/peer.h"

#include <errno.h>

#include "base/share.h"

/* This many rounds in a row follow each other at once. Later ones begin
 * RETRY_PAUSE after each other. */
#define RETRIES_AT_ONCE 10
#define RETRY_PAUSE	NSEC_PER_SEC
/* ns: a peer that has not answered a round for so long is silent. LNet, which
 * may know another path, is told. RDMA itself repeats a lost request only
 * later. */
#define SILENCE (2 * NSEC_PER_SEC + NSEC_PER_SEC / 2)
/* ns: the longest time for resolving address and route, with a margin: those
 * who wait must be told the result of the attempt itself, not that of a
 * time-out. */
#define RESOLVE_TIME (11 * NSEC_PER_SEC)
#define ANSWER_MIN   (5 * NSEC_PER_SEC)

const struct fsm_state ib_link_states[IB_LINK_STATES] = {
	[IB_LINK_NEW] = { "new", FSM_TO(IB_LINK_CONNECTING) |
					 FSM_TO(IB_LINK_ACCEPTING) },
	[IB_LINK_CONNECTING] = { "connecting",
				 FSM_TO(IB_LINK_OPEN) |
					 FSM_TO(IB_LINK_REFUSED) },
	[IB_LINK_ACCEPTING] = { "accepting", FSM_TO(IB_LINK_OPEN) |
						     FSM_TO(IB_LINK_REFUSED) },
	[IB_LINK_OPEN] = { "open", FSM_TO(IB_LINK_LOST) },
	[IB_LINK_REFUSED] = { "refused", FSM_TO(IB_LINK_GONE) },
	[IB_LINK_LOST] = { "lost", FSM_TO(IB_LINK_GONE) },
	[IB_LINK_GONE] = { "gone", 0 },
};

static inline uint64_t peer_now(const struct ib_peer *peer)
{
	return loop_now(peer->ps->set.loop);
}

/* ---- peers by NID ---- */

static uint64_t peer_key(const struct ib_peers *ps, const struct ulnet_nid *nid)
{
	return hash_u64(lnet_nid_to_nid4(nid), ps->seed);
}

struct ib_peer *ib_peer_find(const struct ib_peers *ps,
			     const struct ulnet_nid *nid)
{
	struct ib_peer *peer;

	if (!lnet_nid_is_nid4(nid))
		return NULL;
	hash_for_each_equal (peer, &ps->hash, peer_key(ps, nid), hash)
		if (lnet_nid_eq(&peer->terms.peer.nid, nid))
			return peer;
	return NULL;
}

/* Forgets what the peer has told: the next request asks for our own limits. */
static void forget_terms(struct ib_peer *peer)
{
	const struct ib_peers_conf *conf = peer->ps->conf;

	peer->terms.peer.stamp = 0;
	peer->terms.depth = conf->terms.depth;
	peer->terms.frags = conf->frags;
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
		loop_defer(ps->set.loop, &ps->work);
	}
}

/* Is nothing left of the peer but remembered failures? */
static bool peer_is_idle(const struct ib_peer *peer)
{
	return connect_is_idle(&peer->connect) && list_empty(&peer->links) &&
	       !peer->conn_lost && !peer->settling;
}

static void peer_forget(struct ib_peer *peer)
{
	if (!peer_is_idle(peer))
		return;
	if (!peer->connect.failures || peer->ps->stopping)
		peer_free(peer);
	else
		connect_remember(&peer->connect);
}

/* Is @link older than the last connection that the peer has opened, and silent
 * since then? The peer may have lost such a connection without our knowing, so
 * it is not used. */
static bool is_stale_link(const struct ib_peer *peer,
			  const struct ib_link *link)
{
	const struct ib_link *last =
		list_entry(peer->open.prev, struct ib_link, open);

	return link != last && last->passive &&
	       link->conn->heard_at < last->opened;
}

static bool is_usable(const struct ib_peer *peer, const struct ib_link *link)
{
	return ib_conn_is_open(link->conn) && !is_stale_link(peer, link);
}

/* Returns the next usable connection, each in turn; NULL: none is usable. */
static struct ib_link *next_in_turn(struct ib_peer *peer)
{
	unsigned int skip = peer->turns++ % peer->n[IB_LINK_OPEN];
	struct ib_link *link, *found = NULL;

	list_for_each_entry (link, &peer->open, open) {
		if (!is_usable(peer, link))
			continue;
		found = link;
		if (!skip--)
			break;
	}
	return found;
}

/* Returns the connection that ib_peers_get() finds; NULL: none is usable. */
static struct ib_conn *peer_conn(struct ib_peer *peer, bool any)
{
	struct ib_link *link = peer->ordered;

	if (list_empty(&peer->open))
		return NULL;
	if (any || !link || !is_usable(peer, link))
		link = next_in_turn(peer);
	if (!any)
		peer->ordered = link;
	return link ? link->conn : NULL;
}

/* A connection is open: tells those who wait for it. */
static void attempt_opened(struct ib_peer *peer)
{
	peer->connect.retries = 0;
	connect_opened(&peer->connect);
	connect_tell(&peer->connect, 0, LNET_CAUSE_OK);
}

static void on_peer_work(struct work *w)
{
	struct ib_peer *peer = container_of(w, struct ib_peer, work);
	struct ib_peers *ps = peer->ps;
	bool emptied;

	/* Only this function frees a peer. Callbacks below may call
	 * peer_settle() again, which then schedules another pass. */
	peer->settling = false;
	if (peer->conn_lost && !peer->n[IB_LINK_LOST]) {
		peer->conn_lost = false;
		if (!ps->stopping)
			ps->user->disconnected(ps, &peer->terms.peer.nid);
	}
	if (peer->connect.wanted && peer_conn(peer, false))
		attempt_opened(peer);
	connect_settle(&peer->connect);
	emptied = ps->down && !ps->set.conns;
	peer_forget(peer);
	if (emptied)
		ps->user->emptied(ps);
}

/* Defers on_peer_work() to the end of the turn. */
static void peer_settle(struct ib_peer *peer)
{
	connect_unremember(&peer->connect);
	if (peer->settling)
		return;
	peer->settling = true;
	loop_defer(peer->ps->set.loop, &peer->work);
}

/* Finds or makes a peer. NULL: no memory. on_peer_work() will free the peer, if
 * nothing needs it by then. */
static struct ib_peer *peer_make(struct ib_peers *ps,
				 const struct ulnet_nid *nid)
{
	struct ib_peer *peer = ib_peer_find(ps, nid);

	if (peer)
		goto found;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->ps = ps;
	peer->terms.peer.nid = *nid;
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
	peer_settle(peer);
	return peer;
}

/* ---- connections ---- */

static void link_move(struct ib_link *link, enum ib_link_state to)
{
	struct ib_peer *peer = link->peer;

	peer->n[link->fsm.state]--;
	fsm_move(&link->fsm, ib_link_states, to);
	peer->n[to]++;
	peer_settle(peer);
}

/* Opens a connection with @peer; or, if @qp is not NULL, accepts that one.
 * Returns 0; or -errno: the caller still owns @qp. */
static int link_open(struct ib_peer *peer, struct ib_qp *qp,
		     const struct ib_request *request)
{
	struct ib_link *link = calloc(1, sizeof(*link));
	struct ib_peers *ps = peer->ps;
	int rc;

	if (!link)
		return -ENOMEM;
	link->peer = peer;
	link->passive = qp;
	list_init(&link->open);
	rc = qp ? ib_conn_accept(&ps->set, qp, request, link, &link->conn)
		: ib_conn_connect(&ps->set, request, link, &link->conn);
	if (rc) {
		free(link);
		return rc;
	}
	list_add_tail(&peer->links, &link->link);
	peer->n[IB_LINK_NEW]++;
	link_move(link, qp ? IB_LINK_ACCEPTING : IB_LINK_CONNECTING);
	if (qp) {
		peer->accepted++;
		ps->accepted++;
		peer->races = 0;
	}
	return 0;
}

/* Closes the connections of @peer with other incarnations than @stamp. */
static void peer_close_others(struct ib_peer *peer, uint64_t stamp)
{
	struct ib_link *link;

	/* Attempts of this side go on: the peer will reject those for its
	 * earlier incarnation. */
	list_for_each_entry (link, &peer->links, link)
		if ((link->fsm.state == IB_LINK_OPEN ||
		     link->fsm.state == IB_LINK_ACCEPTING) &&
		    link->conn->terms.peer.stamp != stamp)
			ib_conn_close(link->conn, -ESTALE);
}

/* ---- attempts ---- */

static struct ib_peer *peer_of(const struct connect *c)
{
	return container_of(c, struct ib_peer, connect);
}

uint64_t ib_peers_wait_max(const struct ib_peers *ps)
{
	return RESOLVE_TIME + MAX(ANSWER_MIN, ps->set.timeout / 4);
}

static void peer_attempt_law(const struct connect *c, struct connect_law *law)
{
	const struct ib_peers *ps = peer_of(c)->ps;

	law->min_pause = ps->conf->min_pause;
	law->max_pause = ps->conf->max_pause;
	law->memory = TIME_NEVER;
	law->timeout = ib_peers_wait_max(ps);
}

/* ---- waiting for a connection ---- */

static void peer_look_for_silence(struct connect *c)
{
	if (c->fsm.state == CONNECT_CONNECTING)
		connect_look_at(c, c->began + SILENCE);
}

/* One more caller waits for a connection. */
static void attempt_request(struct ib_peer *peer)
{
	struct connect *c = &peer->connect;

	/* If the peer stays silent, the new caller is told of that, too. */
	if (c->told_silent || !c->wanted)
		peer_look_for_silence(c);
	c->told_silent = false;
	connect_want(c);
}

static void attempt_look(struct connect *c)
{
	connect_tell_silent(c, SILENCE);
}

static void peer_attempt_silent(struct connect *c, uint64_t ns)
{
	struct ib_peer *peer = peer_of(c);

	peer->ps->user->silent(peer->ps, &peer->terms.peer.nid, ns);
}

static void peer_attempt_tell(struct connect *c, bool wanted, int status,
			      enum ulnet_cause cause)
{
	struct ib_peer *peer = peer_of(c);
	struct ib_peers *ps = peer->ps;
	const struct ulnet_nid *nid = &peer->terms.peer.nid;

	(void)wanted;
	ps->user->connected(ps, nid, status, cause);
}

static void peer_attempt_settle(struct connect *c)
{
	peer_settle(peer_of(c));
}

static void peer_attempt_failed(struct connect *c, int status, bool first)
{
	struct ib_peer *peer = peer_of(c);
	char nid[LNET_NIDSTR_SIZE];

	if (!first)
		return;
	lnet_nid_format(&peer->terms.peer.nid, nid, sizeof(nid));
	log_warn_limited(&peer->ps->set.log_limit, peer_now(peer), "o2iblnd",
			 "peer %s: cannot be connected to: %s", nid,
			 strerror(-status));
}

/* ---- rounds of attempts ---- */

/* Begins another round, because the peer has told how it is to be asked, or has
 * sent a request of its own. */
static void round_again(struct ib_peer *peer)
{
	struct connect *c = &peer->connect;
	uint64_t at = 0;

	if (++c->retries > RETRIES_AT_ONCE)
		at = c->began + RETRY_PAUSE;
	connect_again(c, at, c->status, c->cause);
}

/* The last attempt of the round has ended. */
static void round_over(struct ib_peer *peer)
{
	struct connect *c = &peer->connect;

	if (peer->again || peer->n[IB_LINK_ACCEPTING])
		round_again(peer);
	else
		connect_failed(c, c->status, c->cause);
}

static void round_begin(struct connect *c)
{
	struct ib_peer *peer = peer_of(c);
	unsigned int n = MAX(peer->ps->conf->conns_per_peer, 1u);
	int rc = 0;

	connect_move(c, CONNECT_CONNECTING);
	peer->again = false;
	c->began = peer_now(peer);
	peer_look_for_silence(c);
	/* If one attempt of an earlier round has succeeded, others of that
	 * round may still be under way: fewer new ones are made then. */
	while (!rc && peer->n[IB_LINK_CONNECTING] < n)
		rc = link_open(peer, NULL, &peer->terms);
	if (peer->n[IB_LINK_CONNECTING])
		return;
	c->status = rc;
	c->cause = rc == -ENODEV ? LNET_CAUSE_LOCAL_NO_ROUTE
				 : LNET_CAUSE_LOCAL_DROPPED;
	round_over(peer);
}

static int round_is_due(const struct connect *c)
{
	const struct ib_peer *peer = peer_of(c);

	if (peer->ps->down)
		return peer->ps->down;
	if (!c->wanted)
		return -ENOENT;
	if (peer->n[IB_LINK_ACCEPTING])
		return -EINPROGRESS;
	/* Before another round the queue pairs of the last one must be gone. */
	return c->fsm.state == CONNECT_AGAIN && peer->refused ? -EINPROGRESS
							      : 0;
}

static const struct connect_ops attempt_ops = {
	.law = peer_attempt_law,
	.is_due = round_is_due,
	.begin = round_begin,
	.look = attempt_look,
	.failed = peer_attempt_failed,
	.tell = peer_attempt_tell,
	.silent = peer_attempt_silent,
	.settle = peer_attempt_settle,
	.outlasts = true,
};

/* ---- results of attempts ---- */

/* An attempt of this side to connect was refused. */
static void attempt_refused(struct ib_link *link, int status,
			    const struct ib_refusal *refusal)
{
	const struct ib_request *asked = &link->conn->terms;
	struct ib_peer *peer = link->peer;
	struct ib_verdict v =
		ib_refusal_judge(status, refusal, asked, &peer->terms);

	/* If the device could only make a queue pair of less depth, the next
	 * round asks for that depth. */
	peer->terms.depth = MIN(peer->terms.depth, asked->depth);
	if (peer->connect.fsm.state != CONNECT_CONNECTING)
		return;
	peer->again |= v.again;
	peer->connect.status = v.status;
	peer->connect.cause = v.cause;
	if (!peer->n[IB_LINK_CONNECTING])
		round_over(peer);
}

/* The peer's only connection has ended before any message has passed: pauses.
 */
static void attempt_useless(struct ib_peer *peer)
{
	if (peer->ps->stopping || peer->ps->down)
		return;
	if (peer->connect.fsm.state == CONNECT_IDLE)
		connect_pause(&peer->connect);
}

/* ---- requests of peers ---- */

/* A request that ib_admit() approves is accepted, unless the peer has
 * restarted, loses a race with this side, or has used up its share. */

static void reject(struct ib_qp *qp, const struct ib_reject *r, const char *why)
{
	uint8_t bytes[IB_REJECT_SIZE];
	size_t n = ib_reject_encode(r, bytes);

	log_debug("o2iblnd", "rejected a connection: %s: %s",
		  ib_reject_name(r->reason), why);
	qp->port->verbs->reject(qp, bytes, n);
	qp->port->verbs->destroy(qp);
}

static void log_no_room(struct ib_peers *ps, const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	lnet_nid_format(nid, text, sizeof(text));
	log_warn_limited(&ps->set.log_limit, loop_now(ps->set.loop), "o2iblnd",
			 "peer %s: rejected: it has used up its share of %u "
			 "connections",
			 text, ps->conf->accept_max);
}

static void log_impostor(struct ib_peers *ps, const struct ulnet_nid *from,
			 const char *why)
{
	char text[LNET_NIDSTR_SIZE];

	lnet_nid_format(from, text, sizeof(text));
	log_warn_limited(&ps->set.log_limit, loop_now(ps->set.loop), "o2iblnd",
			 "a request of %s is rejected: %s", text, why);
}

static bool has_room(struct ib_peers *ps, const struct ib_peer *peer)
{
	const struct ib_peers_conf *conf = ps->conf;

	if (peer->accepted < conf->accept_peer_max &&
	    share_allows(peer->accepted, ps->accepted, conf->accept_max, 1))
		return true;
	log_no_room(ps, &peer->terms.peer.nid);
	return false;
}

/* Has the peer another incarnation than before? If so, closes its old
 * connections. */
static bool has_restarted(struct ib_peer *peer, uint64_t stamp)
{
	if (!peer->terms.peer.stamp || peer->terms.peer.stamp == stamp)
		return false;
	peer_close_others(peer, stamp);
	peer->terms.peer.stamp = stamp;
	return true;
}

/* Does the peer's request lose against one of ours, which goes on? */
static bool loses_race(struct ib_peer *peer)
{
	const struct ib_peers *ps = peer->ps;

	if (!peer->n[IB_LINK_CONNECTING] ||
	    peer->races >= IB_RACE_REJECTS_MAX ||
	    !ib_race_is_lower(ps->conf->race, &peer->terms.peer.nid,
			      &ps->set.self.nid))
		return false;
	peer->races++;
	return true;
}

void ib_peers_on_request(struct ib_peers *ps, struct ib_qp *qp,
			 const struct ib_source *from, const void *private,
			 size_t length)
{
	enum ib_reject_reason reason = IB_REJECT_RESOURCES;
	const struct ib_terms *terms = &ps->conf->terms;
	const char *why = "the port is down";
	struct ib_request request;
	struct ib_reject r;
	struct ib_peer *peer;
	int rc;

	rc = ib_admit(terms, from, private, length, &request, &r, &why);
	if (rc) {
		if (rc == -EPERM)
			log_impostor(ps, &from->nid, why);
		reject(qp, &r, why);
		return;
	}
	if (ps->stopping || ps->down)
		goto no;
	if (!ps->user->owns(ps, &request.peer.nid)) {
		reason = IB_REJECT_STALE;
		why = "another CPT has this peer now";
		goto no;
	}
	why = "no memory, or the peer has used up its share";
	peer = peer_make(ps, &request.peer.nid);
	if (!peer)
		goto no;
	/* This comes before the share is looked at: connections of the earlier
	 * incarnation count for it. */
	if (has_restarted(peer, request.peer.stamp)) {
		reason = IB_REJECT_STALE;
		why = "the peer has restarted";
		goto no;
	}
	if (!has_room(ps, peer))
		goto no;
	reason = IB_REJECT_RACE;
	why = "this side is connecting to the peer";
	if (loses_race(peer))
		goto no;
	reason = IB_REJECT_RESOURCES;
	why = "no queue pair can be made";
	if (!link_open(peer, qp, &request))
		return;
no:
	ib_admit_reject(terms, reason, &r);
	reject(qp, &r, why);
}

/* ---- events of connections ---- */

static void on_established(struct ib_conn *conn)
{
	struct ib_link *link = conn->user;
	struct ib_peer *peer = link->peer;

	link_move(link, IB_LINK_OPEN);
	link->opened = peer_now(peer);
	list_add_tail(&peer->open, &link->open);
	peer->terms = conn->terms;
	peer->terms.frags = MIN(peer->terms.frags, peer->ps->conf->frags);
	peer_close_others(peer, conn->terms.peer.stamp);
	attempt_opened(peer);
}

static void on_refused(struct ib_conn *conn, int status,
		       const struct ib_refusal *refusal)
{
	struct ib_link *link = conn->user;

	link_move(link, IB_LINK_REFUSED);
	if (link->passive)
		return;
	link->peer->refused++;
	attempt_refused(link, status, refusal);
}

static void link_lost(struct ib_link *link, int status)
{
	struct ib_conn *conn = link->conn;
	struct ib_peer *peer = link->peer;

	link->conn_lost = status != -ESHUTDOWN;
	list_del(&link->open);
	if (peer->ordered == link)
		peer->ordered = NULL;
	link_move(link, IB_LINK_LOST);
	if (peer->n[IB_LINK_OPEN])
		return;
	if (conn->terms.peer.stamp == peer->terms.peer.stamp)
		forget_terms(peer);
	if (!link->passive && !link->heard)
		attempt_useless(peer);
}

static void peer_on_closed(struct ib_conn *conn, int status)
{
	link_lost(conn->user, status);
	ib_peers_of(conn)->user->closed(conn);
}

static void peer_on_gone(struct ib_conn *conn)
{
	struct ib_link *link = conn->user;
	struct ib_peer *peer = link->peer;

	if (link->conn_lost)
		peer->conn_lost = true;
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

static void peer_on_arrived(struct ib_conn *conn, struct ib_rx *rx)
{
	link_heard(conn->user);
	ib_peers_of(conn)->user->arrived(conn, rx);
}

static void peer_on_done(struct ib_tx *tx)
{
	if (!tx->status)
		link_heard(tx->conn->user);
	ib_peers_of(tx->conn)->user->done(tx);
}

static void peer_on_silent(struct ib_conn *conn, uint64_t ns)
{
	ib_peers_of(conn)->user->stalled(conn, ns);
}

static const struct ib_conn_user conn_user = {
	.established = on_established,
	.silent = peer_on_silent,
	.refused = on_refused,
	.closed = peer_on_closed,
	.gone = peer_on_gone,
	.arrived = peer_on_arrived,
	.done = peer_on_done,
};

/* Finds or makes the peer @nid, if it may have connections. Returns 0, or as
 * ib_peers_get(). */
static int peer_get(struct ib_peers *ps, const struct ulnet_nid *nid,
		    struct ib_peer **peer_p)
{
	if (ps->stopping)
		return -ESHUTDOWN;
	if (ps->down)
		return ps->down;
	if (!lnet_nid_is_nid4(nid))
		return -EAFNOSUPPORT;
	*peer_p = peer_make(ps, nid);
	return *peer_p ? 0 : -ENOMEM;
}

int ib_peers_connect(struct ib_peers *ps, const struct ulnet_nid *nid)
{
	struct ib_peer *peer;
	int rc = peer_get(ps, nid, &peer);

	if (!rc)
		attempt_request(peer);
	return rc;
}

/* The fast path of ib_peers_get(): returns the connection of the last ordered
 * message, if it is to the same peer and usable; otherwise NULL. */
static in_line struct ib_conn *last_conn(const struct ib_peers *ps,
					 const struct ulnet_nid *nid)
{
	const struct ib_peer *peer = ps->last;

	if (ps->stopping || ps->down || !peer || !peer->ordered ||
	    !lnet_nid_eq(&peer->terms.peer.nid, nid) ||
	    !is_usable(peer, peer->ordered))
		return NULL;
	return peer->ordered->conn;
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
	rc = ib_peers_connect(ps, nid);
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

bool ib_peers_are_connecting(const struct ib_peers *ps,
			     const struct ulnet_nid *nid)
{
	const struct ib_peer *peer = ib_peer_find(ps, nid);

	return peer && peer->connect.wanted;
}

uint64_t ib_peers_paused_until(const struct ib_peers *ps,
			       const struct ulnet_nid *nid)
{
	const struct ib_peer *peer = ib_peer_find(ps, nid);

	return peer ? connect_paused_until(&peer->connect) : 0;
}

/* ---- all peers of a CPT ---- */

static void on_peers_work(struct work *w)
{
	struct ib_peers *ps = container_of(w, struct ib_peers, work);

	ps->user->stopped(ps);
}

void ib_peers_init(struct ib_peers *ps, const struct ib_conn_set *set,
		   const struct ib_peers_conf *conf,
		   const struct ib_peers_user *user, void *priv)
{
	*ps = (struct ib_peers){
		.set = *set,
		.conf = conf,
		.user = user,
		.priv = priv,
		.seed = loop_random(set->loop),
		.work = { .fn = on_peers_work },
	};
	ps->set.user = &conn_user;
	hash_init(&ps->hash);
	connect_set_init(&ps->connects, set->loop, &attempt_ops);
}

void ib_peers_fini(struct ib_peers *ps)
{
	BUG_ON(ps->set.conns || ps->accepted);
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

		if (ps->stopping)
			peer->connect.wanted = false;
		connect_reset(&peer->connect);
		list_for_each_entry (link, &peer->links, link)
			ib_conn_close(link->conn, status);
		peer_settle(peer);
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
	loop_defer(ps->set.loop, &ps->work);
}
