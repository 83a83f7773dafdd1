/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/peer.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "lnd/socklnd/handshake.h"
#include "lnd/socklnd/tx.h"

/* Refusals in a row that are taken for "later". */
#define RETRIES 3
/* Looks for progress in each part of the timeout. */
#define CHECKS		4
#define KEEPALIVE_AGAIN (10 * NSEC_PER_SEC)

const struct fsm_state sock_peer_states[PEER_STATES] = {
	[PEER_IDLE] = { "idle", FSM_TO(PEER_CONNECTING) | FSM_TO(PEER_FAILED) },
	[PEER_CONNECTING] = { "connecting", FSM_TO(PEER_IDLE) |
						    FSM_TO(PEER_RETRYING) |
						    FSM_TO(PEER_FAILED) },
	[PEER_RETRYING] = { "retrying", FSM_TO(PEER_IDLE) },
	[PEER_FAILED] = { "failed", FSM_TO(PEER_IDLE) },
};

static uint64_t ms_tunable(const struct sock_peer *peer, enum sock_tunable t)
{
	return (uint64_t)peer->cpt->sni->tunables[t] * NSEC_PER_MSEC;
}

static uint64_t peer_now(const struct sock_peer *peer)
{
	return loop_now(peer->cpt->loop);
}

/* ---- the table ---- */

static uint64_t peer_hash(const struct sock_cpt *cpt, const struct ulnet_id *id)
{
	return hash_u64(lnet_nid_to_nid4(&id->nid) ^ (uint64_t)id->pid << 32,
			cpt->sni->seed);
}

static bool is_id(const struct sock_peer *peer, const struct ulnet_id *id)
{
	return peer->id.pid == id->pid && lnet_nid_eq(&peer->id.nid, &id->nid);
}

struct sock_peer *sock_peer_lookup(struct sock_cpt *cpt,
				   const struct ulnet_id *id)
{
	struct hash_node *n;

	if (cpt->last && is_id(cpt->last, id))
		return cpt->last;
	n = hash_first(&cpt->peers, peer_hash(cpt, id));
	for (; n; n = hash_next(n)) {
		struct sock_peer *peer =
			container_of(n, struct sock_peer, hash);

		if (is_id(peer, id)) {
			cpt->last = peer;
			return peer;
		}
	}
	return NULL;
}

static void on_peer_timer(struct timer *t);
static void on_peer_check(struct timer *t);
static void on_peer_settle(struct work *w);

struct sock_peer *sock_peer_lookup_or_make(struct sock_cpt *cpt,
					   const struct ulnet_id *id)
{
	struct sock_peer *peer = sock_peer_lookup(cpt, id);

	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->cpt = cpt;
	peer->id = *id;
	peer->want = cpt->sni->conns_per_peer;
	peer->next_cookie = SOCK_COOKIE_FIRST;
	list_init(&peer->conns);
	list_init(&peer->unacked);
	timer_init(&peer->timer, on_peer_timer);
	timer_init(&peer->check, on_peer_check);
	peer->work.fn = on_peer_settle;
	if (hash_add(&cpt->peers, &peer->hash, peer_hash(cpt, id))) {
		free(peer);
		return NULL;
	}
	return peer;
}

/* Is it the one whose HELLO says @incarnation, or nobody yet? */
static bool is_free_for(const struct sock_peer *peer, uint64_t incarnation)
{
	return !peer || list_empty(&peer->conns) ||
	       peer->incarnation == incarnation;
}

struct sock_peer *sock_peer_greeted(struct sock_cpt *cpt,
				    const struct sock_hello *hello)
{
	struct ulnet_id id = { hello->src_nid, hello->src_pid };

	for (uint64_t i = 0; sock_pid_is_user(id.pid); i++) {
		uint64_t h = hash_u64(hello->src_incarnation + i, 0);

		if (id.pid != LNET_PID_ANY &&
		    is_free_for(sock_peer_lookup(cpt, &id),
				hello->src_incarnation))
			break;
		id.pid = LNET_PID_USERFLAG | (uint32_t)h;
	}
	return sock_peer_lookup_or_make(cpt, &id);
}

char *sock_peer_str(const struct sock_peer *peer, char *buf, size_t size)
{
	return sock_pid_is_user(peer->id.pid)
		       ? lnet_id_format(&peer->id, buf, size)
		       : lnet_nid_format(&peer->id.nid, buf, size);
}

static bool is_idle(const struct sock_peer *peer)
{
	return list_empty(&peer->conns) && !peer->wanted &&
	       list_empty(&peer->unacked) && peer->fsm.state == PEER_IDLE;
}

void sock_peer_settle(struct sock_peer *peer)
{
	if (peer->settling)
		return;
	peer->settling = true;
	loop_defer(peer->cpt->loop, &peer->work);
}

/* ---- opening connections ---- */

/* What is to be opened next, or SOCK_NONE. */
static enum sock_type missing(const struct sock_peer *peer)
{
	unsigned int in = peer->count[SOCK_BULK_IN];
	unsigned int out = peer->count[SOCK_BULK_OUT];

	if (!peer->count[SOCK_CONTROL])
		return SOCK_CONTROL;
	if (in < peer->want && in <= out)
		return SOCK_BULK_IN;
	if (out < peer->want)
		return SOCK_BULK_OUT;
	return in < peer->want ? SOCK_BULK_IN : SOCK_NONE;
}

/* What certainly was not sent ends with this, when no connection comes up. (A
 * kernel says NETWORK_TIMEOUT after ETIMEDOUT, which would not promise that.) */
static enum ulnet_cause peer_cause_of(int status)
{
	switch (status) {
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ENETDOWN:
	case -ETIMEDOUT:
		return LNET_CAUSE_REMOTE_DROPPED;
	default:
		return LNET_CAUSE_LOCAL_DROPPED;
	}
}

static const char *hint(int status)
{
	if (status == -ECONNRESET)
		return " (closed without an answer: no such NID there, or it "
		       "takes connections from privileged ports only)";
	return status == -EALREADY ? " (it refuses the connection)" : "";
}

/* Those who wait for a connection hear what has come of it, and may send. */
static void peer_tell(struct sock_peer *peer, int status,
		      enum ulnet_cause cause)
{
	bool wanted = peer->wanted;

	peer->wanted = false;
	if (wanted)
		lnet_peer_connected(peer->cpt->sni->ni, &peer->id.nid, status,
				    cause);
	sock_peer_settle(peer);
}

static void failed(struct sock_peer *peer, int status)
{
	uint64_t max = ms_tunable(peer, SOCK_max_reconnectms);
	char nid[LNET_NIDSTR_SIZE];

	if (!peer->backoff)
		log_warn_limited(&peer->cpt->complaints, peer_now(peer),
				 "socklnd", "%s: cannot connect: %s%s",
				 sock_peer_str(peer, nid, sizeof(nid)),
				 strerror(-status), hint(status));
	peer->retries = 0;
	peer->offer = 0;
	peer->backoff = peer->backoff ? 2 * peer->backoff
				      : ms_tunable(peer, SOCK_min_reconnectms);
	peer->backoff = MIN(peer->backoff, max);
	fsm_move(&peer->fsm, sock_peer_states, PEER_FAILED);
	loop_timer_arm(peer->cpt->loop, &peer->timer,
		       peer_now(peer) + peer->backoff);
	peer_tell(peer, status, peer_cause_of(status));
}

static void open_next(struct sock_peer *peer)
{
	enum sock_type type = missing(peer);
	int rc;

	if (type == SOCK_NONE)
		return;
	loop_timer_cancel(peer->cpt->loop, &peer->timer);
	rc = sock_handshake_connect(peer, type);
	if (rc)
		failed(peer, rc);
	else
		fsm_move(&peer->fsm, sock_peer_states, PEER_CONNECTING);
}

static void on_peer_settle(struct work *w)
{
	struct sock_peer *peer = container_of(w, struct sock_peer, work);

	peer->settling = false;
	if (peer->fsm.state == PEER_IDLE && peer->wanted) {
		peer->opens = true;
		open_next(peer);
		return;
	}
	/* The failure of an idle one is remembered until the timer. */
	if (!is_idle(peer) || timer_armed(&peer->timer))
		return;
	loop_timer_cancel(peer->cpt->loop, &peer->check);
	if (peer->cpt->last == peer)
		peer->cpt->last = NULL;
	hash_del(&peer->cpt->peers, &peer->hash);
	free(peer);
}

int sock_peer_want(struct sock_peer *peer)
{
	if (peer->fsm.state == PEER_FAILED || sock_pid_is_user(peer->id.pid))
		return -EHOSTUNREACH;
	peer->wanted = true;
	sock_peer_settle(peer);
	return -EINPROGRESS;
}

/* It does not want more connections: are those that there are enough? */
static bool is_content(struct sock_peer *peer)
{
	unsigned int in = peer->count[SOCK_BULK_IN];
	unsigned int out = peer->count[SOCK_BULK_OUT];

	if (!peer->count[SOCK_CONTROL] || !in || !out)
		return false;
	peer->want = MIN(in, out);
	return true;
}

/* Are there messages that want connections? */
static bool is_wanted(const struct sock_peer *peer)
{
	return peer->wanted || (peer->opens && !list_empty(&peer->conns));
}

static void retry_later(struct sock_peer *peer)
{
	fsm_move(&peer->fsm, sock_peer_states, PEER_RETRYING);
	loop_timer_arm(peer->cpt->loop, &peer->timer,
		       peer_now(peer) + ms_tunable(peer, SOCK_min_reconnectms));
}

void sock_peer_attempt_done(struct sock_peer *peer, int status)
{
	bool again = status == -EALREADY || status == -EPROTONOSUPPORT;

	if (!status) {
		peer->retries = 0;
	} else if (!again || (++peer->retries > RETRIES && !is_content(peer))) {
		failed(peer, status);
		return;
	} else if (status == -EALREADY && missing(peer) != SOCK_NONE) {
		retry_later(peer);
		return;
	}
	fsm_move(&peer->fsm, sock_peer_states, PEER_IDLE);
	if (is_wanted(peer))
		open_next(peer);
}

/* The wait is over: after a retry or a failure; or the failure is forgotten. */
static void on_peer_timer(struct timer *t)
{
	struct sock_peer *peer = container_of(t, struct sock_peer, timer);

	if (peer->fsm.state == PEER_IDLE) {
		peer->backoff = 0;
		sock_peer_settle(peer);
		return;
	}
	fsm_move(&peer->fsm, sock_peer_states, PEER_IDLE);
	if (is_wanted(peer)) {
		open_next(peer);
	} else if (peer->backoff) {
		loop_timer_arm(peer->cpt->loop, &peer->timer,
			       peer_now(peer) +
				       ms_tunable(peer, SOCK_max_reconnectms));
	}
	sock_peer_settle(peer);
}

/* ---- connections that others open ---- */

int sock_peer_admit(struct sock_peer *peer, const struct sock_hello *hello,
		    enum sock_type type)
{
	const struct sock_ni *sni = peer->cpt->sni;

	/* It has been restarted, and does not know the old ones. */
	if (!list_empty(&peer->conns) &&
	    (hello->src_incarnation != peer->incarnation ||
	     hello->version != peer->version)) {
		sock_peer_close(peer, -ECONNRESET, LNET_CAUSE_LOCAL_ERROR);
		return -EALREADY;
	}
	/* It opens this one because it has none: the old ones are dead, which
	 * we have not seen yet. */
	if (sock_pid_is_user(peer->id.pid) && type == SOCK_CONTROL)
		sock_peer_close(peer, -ECONNRESET, LNET_CAUSE_LOCAL_ERROR);
	/* Both open one: that of the higher NID survives. */
	if (peer->attempt && lnet_nid_cmp(&peer->id.nid, &sni->ni->nid) < 0)
		return -EALREADY;
	if (peer->count[type] >=
	    (peer->opens ? peer->want : sni->conns_per_peer))
		return -EALREADY;
	return 0;
}

/* ---- open connections ---- */

static void meet(struct sock_peer *peer, const struct sock_conn *first)
{
	peer->version = first->version;
	peer->incarnation = first->hello.src_incarnation;
	peer->offer = 0;
	peer->heard = false;
	peer->met = peer_now(peer);
	peer->kept_alive = 0;
	peer->watched = false;
	sock_peer_watch(peer);
}

/* How well a connection suits: 2 preferred, 1 if need be, 0 not at all. */
static int suits(const struct sock_conn *conn, bool noop, bool bulk)
{
	switch (conn->type) {
	case SOCK_CONTROL:
		return noop || bulk ? 1 : 2;
	case SOCK_BULK_OUT:
		return noop || !bulk ? 1 : 2;
	case SOCK_BULK_IN:
		return noop ? 2 : conn->version < 3 ? 1 : 0;
	default:
		return conn->version < 3 ? 2 : 0;
	}
}

/* Most messages are small, and most peers have one connection for those. */
static void find_small(struct sock_peer *peer)
{
	struct sock_conn *conn;
	unsigned int n = 0;

	peer->small = NULL;
	list_for_each_entry (conn, &peer->conns, link) {
		if (suits(conn, false, false) < 2)
			continue;
		peer->small = n++ ? NULL : conn;
	}
}

void sock_peer_add(struct sock_peer *peer, struct sock_conn *conn)
{
	char text[CONN_STR_SIZE];

	conn->peer = peer;
	if (list_empty(&peer->conns))
		meet(peer, conn);
	list_del(&conn->link);
	list_add_tail(&peer->conns, &conn->link);
	peer->count[conn->type]++;
	find_small(peer);
	if (peer->fsm.state == PEER_FAILED)
		fsm_move(&peer->fsm, sock_peer_states, PEER_IDLE);
	if (peer->fsm.state == PEER_IDLE)
		loop_timer_cancel(peer->cpt->loop, &peer->timer);
	sock_conn_open(conn);
	log_debug("socklnd", "%s: open",
		  sock_conn_str(conn, text, sizeof(text)));
	if (sock_conn_watch(conn, ENV_READ))
		sock_peer_close(peer, -ENOMEM, LNET_CAUSE_LOCAL_ERROR);
	else if (sock_peer_choose(peer, 1))
		peer_tell(peer, 0, LNET_CAUSE_OK);
}

void sock_peer_del(struct sock_peer *peer, struct sock_conn *conn)
{
	peer->count[conn->type]--;
	find_small(peer);
	if (!list_empty(&peer->conns))
		return;
	peer->version = 0;
	peer->incarnation = 0;
	peer->opens = false;
	peer->want = peer->cpt->sni->conns_per_peer;
	loop_timer_cancel(peer->cpt->loop, &peer->check);
}

/* Bytes before the next message; among equals, the one not used for longest. */
static bool is_less_busy(const struct sock_conn *a, const struct sock_conn *b)
{
	uint64_t left_a = sock_conn_left(a), left_b = sock_conn_left(b);

	return left_a < left_b || (left_a == left_b && a->used < b->used);
}

struct sock_conn *sock_peer_choose(struct sock_peer *peer, size_t size)
{
	bool bulk = size >= (size_t)peer->cpt->sni->tunables[SOCK_min_bulk];
	struct sock_conn *conn, *best = NULL;
	int best_suits = 0;

	if (peer->small && size && !bulk) {
		peer->small->used = ++peer->uses;
		return peer->small;
	}
	list_for_each_entry (conn, &peer->conns, link) {
		int s = suits(conn, size == 0, bulk);

		if (!s || s < best_suits)
			continue;
		if (best && s == best_suits && !is_less_busy(conn, best))
			continue;
		best = conn;
		best_suits = s;
	}
	if (best)
		best->used = ++peer->uses;
	return best;
}

static void log_closed(const struct sock_peer *peer, int status)
{
	char nid[LNET_NIDSTR_SIZE];

	if (status && status != -ESHUTDOWN)
		log_warn_limited(&peer->cpt->complaints, peer_now(peer),
				 "socklnd", "%s: connections closed: %s",
				 sock_peer_str(peer, nid, sizeof(nid)),
				 strerror(-status));
}

/* A peer that takes connections and closes them at once, without a word, is one
 * that cannot be connected to. */
static bool is_proven(const struct sock_peer *peer)
{
	return peer->heard || peer_now(peer) - peer->met >=
				      ms_tunable(peer, SOCK_min_reconnectms);
}

static void closed_unproven(struct sock_peer *peer, int status)
{
	struct sock_conn *attempt = peer->attempt;

	if (peer->fsm.state != PEER_IDLE && peer->fsm.state != PEER_CONNECTING)
		return;
	peer->attempt = NULL;
	if (attempt)
		sock_conn_drop(attempt);
	failed(peer, status);
}

void sock_peer_close(struct sock_peer *peer, int status, enum ulnet_cause cause)
{
	bool by_peer = !status || status == -ECONNRESET || status == -EPIPE;
	bool unproven = by_peer && peer->opens && !list_empty(&peer->conns) &&
			!is_proven(peer);
	struct sock_conn *conn;
	struct list closing;

	if (!list_empty(&peer->conns))
		log_closed(peer, status);
	if (!status)
		status = -ECONNRESET;
	/* None of them takes messages any more, before anybody hears of it. */
	list_init(&closing);
	list_splice_tail(&closing, &peer->conns);
	peer->small = NULL;
	if (status != -ESHUTDOWN && !sock_pid_is_user(peer->id.pid))
		list_for_each_entry (conn, &closing, link)
			sock_tx_give_back(conn);
	while (!list_empty(&closing))
		sock_conn_close(list_first(&closing, struct sock_conn, link),
				status, cause);
	sock_tx_fail_unacked(peer, status, cause);
	if (unproven)
		closed_unproven(peer, status);
	sock_peer_settle(peer);
}

/* ---- progress, signs of life ---- */

static void check_soon(struct sock_peer *peer)
{
	loop_timer_arm(peer->cpt->loop, &peer->check,
		       peer_now(peer) +
			       sock_ni_timeout(peer->cpt->sni) / CHECKS);
}

void sock_peer_watch(struct sock_peer *peer)
{
	if (peer->watched)
		return;
	peer->watched = true;
	peer->since = peer_now(peer);
	check_soon(peer);
}

static bool is_stalled(struct sock_peer *peer, uint64_t now)
{
	uint64_t timeout = sock_ni_timeout(peer->cpt->sni);
	struct sock_conn *conn;

	if (!list_empty(&peer->unacked) &&
	    now - list_first(&peer->unacked, struct sock_tx, link)->since >=
		    timeout)
		return true;
	list_for_each_entry (conn, &peer->conns, link)
		if (sock_conn_is_stalled(conn, now, peer->since, timeout))
			return true;
	return false;
}

static bool is_busy(const struct sock_peer *peer)
{
	const struct sock_conn *conn;

	if (!list_empty(&peer->unacked))
		return true;
	list_for_each_entry (conn, &peer->conns, link)
		if (sock_conn_is_busy(conn))
			return true;
	return false;
}

/* Last sign of life: something came in, or TCP acknowledged something. */
static uint64_t last_heard(const struct sock_peer *peer)
{
	const struct sock_conn *conn;
	uint64_t last = 0;

	list_for_each_entry (conn, &peer->conns, link)
		last = MAX(last, MAX(conn->heard, conn->acked_at));
	return last;
}

/* Says that we are alive, if it is time; returns when to look again. */
static uint64_t keep_alive(struct sock_peer *peer, uint64_t now)
{
	uint64_t period = (uint64_t)peer->cpt->sni->tunables[SOCK_keepalive] *
			  NSEC_PER_SEC;
	uint64_t due = last_heard(peer) + period;
	struct sock_conn *conn;

	if (!period)
		return TIME_NEVER;
	if (peer->kept_alive)
		due = MAX(due, peer->kept_alive + KEEPALIVE_AGAIN);
	if (due > now)
		return due;
	peer->kept_alive = now;
	conn = sock_peer_choose(peer, 0);
	if (conn)
		sock_tx_keepalive(conn);
	return now + KEEPALIVE_AGAIN;
}

static void on_peer_check(struct timer *t)
{
	struct sock_peer *peer = container_of(t, struct sock_peer, check);
	uint64_t now = peer_now(peer), next;

	if (is_stalled(peer, now)) {
		sock_peer_close(peer, -ETIMEDOUT, LNET_CAUSE_NETWORK_TIMEOUT);
		return;
	}
	if (is_proven(peer))
		peer->backoff = 0;
	if (peer->watched && is_busy(peer)) {
		check_soon(peer);
		keep_alive(peer, now);
		return;
	}
	/* What keep_alive() sends is looked after, too. */
	peer->watched = false;
	next = keep_alive(peer, now);
	if (!peer->watched && next != TIME_NEVER)
		loop_timer_arm(peer->cpt->loop, &peer->check, next);
}

/* ---- the end ---- */

static void peer_stop(struct sock_peer *peer)
{
	struct sock_conn *attempt = peer->attempt;

	peer->attempt = NULL;
	if (attempt)
		sock_conn_drop(attempt);
	loop_timer_cancel(peer->cpt->loop, &peer->timer);
	if (peer->fsm.state != PEER_IDLE)
		fsm_move(&peer->fsm, sock_peer_states, PEER_IDLE);
	peer->wanted = false;
	sock_peer_close(peer, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
}

void sock_peers_stop(struct sock_cpt *cpt)
{
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	while ((n = hash_walk(&cpt->peers, &bucket, n)))
		peer_stop(container_of(n, struct sock_peer, hash));
}
