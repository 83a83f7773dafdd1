/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/peer.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "lnd/socklnd/message.h"
#include "lnd/socklnd/tls.h"

/* How many times a peer is checked for progress within a time-out. */
#define CHECKS 4
/* Suspended connections are checked again after 1/RECOVERY_CHECKS of the time
 * for which they have been suspended, but no more often than RECOVERY_PERIOD.
 */
#define RECOVERY_CHECKS 16
#define RECOVERY_PERIOD (50 * NSEC_PER_MSEC)
#define KEEPALIVE_AGAIN (10 * NSEC_PER_SEC)

static uint64_t peer_now(const struct sock_peer *peer)
{
	return loop_now(peer->cpt->loop);
}

/* ---- the table ---- */

static uint64_t peer_hash(const struct sock_cpt *cpt, const struct ulnet_id *id)
{
	return sock_nid_hash(&id->nid, id->pid, cpt->sni->seed);
}

struct sock_peer *sock_peer_search(struct sock_cpt *cpt,
				   const struct ulnet_id *id)
{
	struct sock_peer *peer;

	hash_for_each_equal (peer, &cpt->peers, peer_hash(cpt, id), hash) {
		if (sock_peer_is(peer, id)) {
			cpt->last = peer;
			return peer;
		}
	}
	return NULL;
}

static void on_peer_check(struct timer *t);
static void on_peer_settle(struct work *w);

struct sock_peer *sock_peer_search_or_make(struct sock_cpt *cpt,
					   const struct ulnet_id *id)
{
	struct sock_peer *peer = sock_peer_search(cpt, id);

	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->cpt = cpt;
	peer->id = *id;
	peer->bulk_target = cpt->sni->conns_per_peer;
	list_init(&peer->conns);
	list_init(&peer->suspended);
	connect_init(&peer->connect, &cpt->connects);
	list_init(&peer->turn);
	timer_init(&peer->check, on_peer_check);
	peer->work.fn = on_peer_settle;
	if (hash_add(&cpt->peers, &peer->hash, peer_hash(cpt, id))) {
		free(peer);
		return NULL;
	}
	return peer;
}

/* May the process with @incarnation have the pid of @peer? It may if @peer is
 * NULL, has no connections, or is that very process. */
static bool is_free_for(const struct sock_peer *peer, uint64_t incarnation)
{
	return !peer || !sock_peer_has_conns(peer) ||
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

static bool socklnd_is_idle(const struct sock_peer *peer)
{
	return !sock_peer_has_conns(peer) && connect_is_idle(&peer->connect);
}

bool sock_is_connected(struct lnd_ni *ni, unsigned int cpt,
		       const struct ulnet_nid *nid)
{
	const struct sock_peer *peer;

	hash_for_each (peer, &sock_ni_of(ni)->cpts[cpt].peers, hash) {
		if (lnet_nid_eq(&peer->id.nid, nid) && !socklnd_is_idle(peer))
			return true;
	}
	return false;
}

void sock_peer_settle(struct sock_peer *peer)
{
	if (peer->settling)
		return;
	peer->settling = true;
	loop_defer(peer->cpt->loop, &peer->work);
}

/* Called when connections are lost, perhaps with data that TCP had not
 * delivered, or that this node had not read: schedules that LNet is told at the
 * end of the turn. */
static void peer_conn_lost(struct sock_peer *peer)
{
	peer->conn_lost = true;
	sock_peer_settle(peer);
}

static void tell_conn_lost(struct sock_peer *peer)
{
	bool lost = peer->conn_lost && !peer->cpt->stopping;

	peer->conn_lost = false;
	if (lost)
		lnet_peer_disconnected(peer->cpt->sni->ni, &peer->id);
}

/* Messages that were taken off connections. They end later, when handlers may
 * run. */
struct detached {
	struct list begun, queued; /* of sock_tx.link */
	struct list coming;	   /* of lnd_msg.link */
};

/* Takes the messages off all @conns. Returns 0; or -errno, as sock_tx_detach():
 * the connections have to be closed. */
static int detach_all(struct list *conns, struct detached *d)
{
	struct sock_conn *conn;
	int failed = 0;

	list_for_each_entry (conn, conns, link) {
		int rc = sock_tx_detach(conn, &d->begun, &d->queued);

		sock_rx_detach(conn, &d->coming);
		if (rc)
			failed = rc;
	}
	return failed;
}

/* Ends all messages under way; connections stay. Users' handlers run. */
static void end_messages(struct sock_peer *peer, int status)
{
	struct detached d;
	int rc, rc_suspended;

	list_init(&d.begun);
	list_init(&d.queued);
	list_init(&d.coming);
	rc = detach_all(&peer->conns, &d);
	rc_suspended = detach_all(&peer->suspended, &d);
	if (rc || rc_suspended)
		sock_peer_close(peer, rc ? rc : rc_suspended);
	sock_tx_end(&d.begun, status, sock_loss_begun(status));
	sock_tx_end(&d.queued, status, sock_loss_queued(status));
	sock_rx_end(&d.coming, status);
}

static void abort_messages(struct sock_peer *peer)
{
	peer->abort_due = false;
	/* The link may be back already. */
	if (sock_ni_is_up(peer->cpt->sni))
		return;
	if (sock_peer_has_conns(peer))
		peer_conn_lost(peer);
	connect_reset(&peer->connect);
	connect_tell(&peer->connect, -ENETDOWN, LNET_CAUSE_LOCAL_NO_ROUTE);
	end_messages(peer, -ENETDOWN);
}

/* Closes the connections of @peer, because the node's keys do not prove any
 * more who it is. */
static void peer_cut(struct sock_peer *peer)
{
	peer->cut_due = false;
	sock_tls_forget(peer);
	sock_peer_close(peer, -EKEYREJECTED);
}

static void peer_link_back(struct sock_peer *peer);

static void on_peer_settle(struct work *w)
{
	struct sock_peer *peer = container_of(w, struct sock_peer, work);

	peer->settling = false;
	if (unlikely(peer->abort_due))
		abort_messages(peer);
	if (unlikely(peer->cut_due))
		peer_cut(peer);
	if (unlikely(peer->link_lost_at))
		peer_link_back(peer);
	tell_conn_lost(peer);
	connect_settle(&peer->connect);
	/* Handlers have run, and may have changed everything. */
	if (peer->settling || !socklnd_is_idle(peer))
		return;
	BUG_ON(!list_empty(&peer->connect.failed) || !list_empty(&peer->turn));
	loop_timer_cancel(peer->cpt->loop, &peer->check);
	if (peer->cpt->last == peer)
		peer->cpt->last = NULL;
	hash_del(&peer->cpt->peers, &peer->hash);
	sock_tls_forget(peer);
	free(peer->note);
	free(peer);
}

/* ---- connections that the peer opens ---- */

/* Has nothing come from the peer for so long that it may believe its
 * connections stalled or ended? */
static bool peer_is_silent(const struct sock_peer *peer)
{
	const struct sock_conn *conn;
	uint64_t last = 0;

	list_for_each_entry (conn, &peer->conns, link)
		last = MAX(last, conn->heard);
	return peer_now(peer) - last >= SOCK_RTO_MIN;
}

/* Does a new connection of @type replace all present ones? Only one for control
 * does, and only if there already is one. From a process that only calls that
 * is enough: it has no other reason to open a second one. With any other peer,
 * both sides may have connected at the same time; so nothing may have come from
 * it for a while. */
static bool takes_over(const struct sock_peer *peer, enum sock_type type)
{
	return type == SOCK_CONTROL && peer->count[SOCK_CONTROL] &&
	       (sock_pid_is_user(peer->id.pid) || peer_is_silent(peer));
}

int sock_peer_admit(struct sock_peer *peer, const struct sock_hello *hello,
		    enum sock_type type)
{
	const struct sock_ni *sni = peer->cpt->sni;

	/* The peer has restarted, and does not know the old connections. */
	if (sock_peer_has_other_conns(peer, hello)) {
		sock_peer_close(peer, -ECONNRESET);
		return -EALREADY;
	}
	/* Both sides are opening a connection. The one that the higher NID
	 * opens wins, unless this node's attempt is so silent that it has a
	 * second socket. */
	if (peer->attempt && !peer->second &&
	    lnet_nid_cmp(&peer->id.nid, &sni->ni->nid) < 0)
		return -EALREADY;
	if (takes_over(peer, type))
		return 0;
	if (peer->count[type] >=
	    (peer->opens ? peer->bulk_target : sni->conns_per_peer))
		return -EALREADY;
	return 0;
}

/* ---- open connections ---- */

static void first_conn_opened(struct sock_peer *peer,
			      const struct sock_conn *first)
{
	peer->version = first->version;
	peer->incarnation = first->hello.src_incarnation;
	peer->offer = 0;
	peer->heard = false;
	peer->opened_at = peer_now(peer);
	peer->kept_alive = 0;
	peer->watched = false;
	sock_peer_watch(peer);
}

/* Returns how well @conn suits a message: 2: well; 1: if no other does; 0: it
 * must not carry it. */
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

/* Sets peer->small, for the fast path of sock_peer_choose(). */
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

static void peer_close_all(struct list *conns, int status)
{
	while (!list_empty(conns))
		sock_conn_close(list_first(conns, struct sock_conn, link),
				status);
}

/* Is it certain that the peer accepts connections? Some peers close them right
 * after accepting them, some with a word; if no pause followed, messages would
 * open connections without end. So the peer must have kept its connections for
 * max_reconnectms, or for min_reconnectms if it has sent something. */
static bool is_proven(const struct sock_peer *peer)
{
	const struct sock_ni *sni = peer->cpt->sni;
	uint64_t min = sock_ni_ms(sni, SOCK_min_reconnectms);
	uint64_t max = sock_ni_ms(sni, SOCK_max_reconnectms);

	return peer_now(peer) - peer->opened_at >=
	       (peer->heard ? MIN(min, max) : max);
}

/* Called while @peer has connections: pauses begin anew if it is proven. */
static bool peer_prove(struct sock_peer *peer)
{
	bool proven = !list_empty(&peer->conns) && is_proven(peer);

	if (proven)
		peer->connect.failures = 0;
	return proven;
}

/* Suspends all open connections, so that they take no more messages. Closes the
 * connections that were suspended before. Users' handlers run. */
static void peer_suspend(struct sock_peer *peer)
{
	struct sock_conn *conn;
	struct list older;

	(void)peer_prove(peer);
	list_init(&older);
	list_splice_tail(&older, &peer->suspended);
	list_splice_tail(&peer->suspended, &peer->conns);
	peer->small = NULL;
	peer->suspended_at = peer_now(peer);
	list_for_each_entry (conn, &peer->suspended, link) {
		fsm_move(&conn->fsm, sock_conn_states, CONN_SUSPENDED);
		peer->count[conn->type]--;
	}
	list_for_each_entry (conn, &peer->suspended, link)
		sock_tx_give_back(conn);
	if (!list_empty(&older))
		peer_conn_lost(peer);
	peer_close_all(&older, -ETIMEDOUT);
	sock_peer_watch(peer);
}

/* Called when the link is back. If it was away for less than path_silent_min,
 * the peer's TCP will soon retransmit, and connections stay in use. Otherwise
 * those that this node has opened are suspended, to be replaced. */
static void peer_link_back(struct sock_peer *peer)
{
	uint64_t min = sock_ni_ms(peer->cpt->sni, SOCK_path_silent_min);
	uint64_t away = peer_now(peer) - peer->link_lost_at;

	if (!sock_ni_is_up(peer->cpt->sni))
		return;
	peer->link_lost_at = 0;
	if (!peer->opens || list_empty(&peer->conns) || !min || away < min)
		return;
	peer->renewing = true;
	peer_suspend(peer);
	connect_want(&peer->connect);
}

/* Called when the peer has opened a new connection, and does not use the old
 * ones any more: closes the old ones in order. */
static void finish_suspended(struct sock_peer *peer)
{
	struct sock_conn *conn, *next;

	list_for_each_entry_safe (conn, next, &peer->suspended, link)
		sock_conn_finish(conn);
}

/* Called when @conn is about to be added: if it is a new one for control, it
 * replaces the present connections. */
static void peer_make_room(struct sock_peer *peer, const struct sock_conn *conn)
{
	if (conn->type != SOCK_CONTROL)
		return;
	if (peer->count[SOCK_CONTROL]) {
		/* peer_suspend() gives messages back to LNet, where they wait
		 * for @conn. */
		connect_want(&peer->connect);
		peer_suspend(peer);
	}
	if (!conn->active)
		finish_suspended(peer);
}

void sock_peer_note(struct sock_peer *peer, const char *why)
{
	free(peer->note);
	peer->note = strdup(why);
}

void sock_peer_add(struct sock_peer *peer, struct sock_conn *conn)
{
	char text[CONN_STR_SIZE];

	conn->peer = peer;
	sock_tls_prove(peer, conn);
	peer_make_room(peer, conn);
	if (conn->type == SOCK_CONTROL)
		peer->renewing = false;
	if (list_empty(&peer->conns))
		first_conn_opened(peer, conn);
	list_del(&conn->link);
	list_add_tail(&peer->conns, &conn->link);
	peer->count[conn->type]++;
	/* If all other connections were lost while this one was opening, the
	 * first connection may be for bulk, by which the peer cannot answer.
	 * Then this node has to open more. */
	peer->opens |= conn->active;
	peer->opens_bulk |= conn->active && conn->type != SOCK_CONTROL;
	find_small(peer);
	sock_conn_open(conn);
	log_debug("socklnd", "%s: open",
		  sock_conn_str(conn, text, sizeof(text)));
	if (sock_conn_watch(conn, ENV_READ))
		sock_peer_lost(conn, -ENOMEM);
	else
		sock_attempt_opened(peer, (enum sock_type)conn->type);
}

void sock_peer_rejoin(struct sock_peer *peer, struct sock_conn *conn)
{
	sock_peer_add(peer, conn);
	peer->heard |= conn->peer_heard;
	peer->opened_at = MIN(peer->opened_at, conn->peer_opened_at);
}

void sock_peer_del(struct sock_peer *peer, struct sock_conn *conn)
{
	list_del(&conn->link);
	if (conn->fsm.state == CONN_OPEN) {
		peer->count[conn->type]--;
		find_small(peer);
	}
	if (sock_peer_has_conns(peer))
		return;
	peer->version = 0;
	peer->incarnation = 0;
	peer->opens = false;
	peer->opens_bulk = false;
	peer->renewing = false;
	peer->bulk_target = peer->cpt->sni->conns_per_peer;
	loop_timer_cancel(peer->cpt->loop, &peer->check);
}

/* Is @a to be preferred to @b? It is if it has fewer bytes to write, or as
 * many, but has not been used for longer. */
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
	if (best && bulk && best_suits < 2)
		sock_peer_saw_bulk(peer);
	return best;
}

void sock_peer_saw_bulk(struct sock_peer *peer)
{
	if (peer->opens_bulk || !peer->opens)
		return;
	peer->opens_bulk = true;
	sock_peer_settle(peer);
}

/* Has a process that only calls ended? It may have exited without reading
 * everything, which is no reason for a warning. */
static bool peer_has_left(const struct sock_peer *peer, int status)
{
	return sock_pid_is_user(peer->id.pid) &&
	       (status == -ECONNRESET || status == -EPIPE);
}

static void log_closed(const struct sock_peer *peer, int status)
{
	char nid[LNET_NIDSTR_SIZE];

	if (!status || status == -ESHUTDOWN)
		return;
	sock_peer_str(peer, nid, sizeof(nid));
	if (peer_has_left(peer, status))
		log_debug("socklnd", "%s: connections closed: %s", nid,
			  strerror(-status));
	else
		log_warn_limited(&peer->cpt->complaints, peer_now(peer),
				 "socklnd", "%s: connections closed: %s", nid,
				 strerror(-status));
}

void sock_peer_close(struct sock_peer *peer, int status)
{
	bool by_peer = !status || status == -ECONNRESET || status == -EPIPE;
	bool in_vain = !list_empty(&peer->conns) && !peer_prove(peer) &&
		       by_peer && peer->opens;
	struct sock_conn *conn;
	struct list closing;

	if (sock_peer_has_conns(peer)) {
		log_closed(peer, status);
		peer_conn_lost(peer);
	}
	if (!status)
		status = -ECONNRESET;
	/* From here on no connection takes messages, so handlers may run.
	 * Messages are given back to LNet if they may wait for another
	 * connection. They may not if the NI goes down, or if the peer is a
	 * process that only calls. */
	list_init(&closing);
	list_splice_tail(&closing, &peer->conns);
	list_splice_tail(&closing, &peer->suspended);
	peer->small = NULL;
	if (status != -ESHUTDOWN && !sock_pid_is_user(peer->id.pid))
		list_for_each_entry (conn, &closing, link)
			sock_tx_give_back(conn);
	peer_close_all(&closing, status);
	if (in_vain)
		sock_attempt_in_vain(peer, status);
	sock_peer_settle(peer);
}

void sock_peer_lost(struct sock_conn *conn, int status)
{
	struct sock_peer *peer = conn->peer;

	if (conn->fsm.state != CONN_OPEN && !status) {
		sock_conn_read_eof(conn);
	} else if (conn->fsm.state == CONN_OPEN || list_empty(&peer->conns)) {
		sock_peer_close(peer, status);
	} else {
		peer_conn_lost(peer);
		sock_conn_close(conn, status);
	}
	sock_peer_settle(peer);
}

/* ---- progress, keepalive ---- */

static struct silence_law silence_law_of(const struct sock_peer *peer)
{
	const struct sock_ni *sni = peer->cpt->sni;
	uint64_t max = sock_ni_ms(sni, SOCK_path_silent_max);

	return (struct silence_law){
		.min = sock_ni_ms(sni, SOCK_path_silent_min),
		.max = max ? max : sock_ni_timeout(sni),
	};
}

static uint64_t check_period(const struct sock_peer *peer)
{
	uint64_t most = sock_ni_timeout(peer->cpt->sni) / CHECKS;
	struct silence_law law = silence_law_of(peer);
	uint64_t period = silence_period(&law);

	/* Without a link nothing can be done. */
	if (!sock_ni_is_up(peer->cpt->sni) || !law.min)
		return most;
	if (sock_peer_is_suspended(peer))
		period = MAX((peer_now(peer) - peer->suspended_at) /
				     RECOVERY_CHECKS,
			     RECOVERY_PERIOD);
	return MIN(most, period);
}

static void arm_check(struct sock_peer *peer)
{
	loop_timer_arm(peer->cpt->loop, &peer->check,
		       peer_now(peer) + check_period(peer));
}

void sock_peer_watch(struct sock_peer *peer)
{
	if (peer->watched)
		return;
	peer->watched = true;
	peer->watched_since = peer_now(peer);
	arm_check(peer);
}

/* Returns the first of @conns that has made no progress for sock_timeout, or
 * NULL. */
static struct sock_conn *find_overdue(const struct sock_peer *peer,
				      struct list *conns, uint64_t now)
{
	uint64_t timeout = sock_ni_timeout(peer->cpt->sni);
	struct sock_conn *conn, *first = NULL;

	list_for_each_entry (conn, conns, link)
		if (sock_conn_is_overdue(conn, now, peer->watched_since,
					 timeout) &&
		    !first)
			first = conn;
	return first;
}

static void give_up_overdue(struct sock_peer *peer, uint64_t now)
{
	struct sock_conn *conn = find_overdue(peer, &peer->conns, now);

	if (!conn)
		conn = find_overdue(peer, &peer->suspended, now);
	if (conn)
		sock_peer_lost(conn, -ETIMEDOUT);
}

/* Returns the longest silence, ns, of any of @conns; 0: none is silent. Looks
 * at every connection, because its silence is measured from one look to the
 * next. */
static uint64_t silent_for(const struct sock_peer *peer, struct list *conns)
{
	struct silence_law law = silence_law_of(peer);
	uint64_t now = peer_now(peer), ns = 0;
	struct sock_conn *conn;

	list_for_each_entry (conn, conns, link)
		if (sock_conn_is_silent(conn, &law, now))
			ns = MAX(ns, conn->silence.quiet);
	return ns;
}

/* Called when TCP has got through on the suspended connections before a new one
 * was open: they take messages again. */
static void peer_resume(struct sock_peer *peer)
{
	struct sock_conn *conn;

	list_for_each_entry (conn, &peer->suspended, link) {
		fsm_move(&conn->fsm, sock_conn_states, CONN_OPEN);
		peer->count[conn->type]++;
	}
	list_splice_tail(&peer->conns, &peer->suspended);
	find_small(peer);
	sock_attempt_opened(peer, SOCK_CONTROL);
}

/* Does TCP get through on the suspended connections, and does the peer still
 * use them? The peer does if it has closed none of them, and was not asked for
 * a new connection. */
static bool can_resume(struct sock_peer *peer)
{
	const struct sock_conn *conn;

	if (peer->renewing ||
	    (peer->attempt && peer->attempt->fsm.state == CONN_WAITING))
		return false;
	list_for_each_entry (conn, &peer->suspended, link)
		if (conn->fsm.state != CONN_SUSPENDED)
			return false;
	return !silent_for(peer, &peer->suspended);
}

static void socklnd_look_for_silence(struct sock_peer *peer)
{
	char nid[LNET_NIDSTR_SIZE];
	uint64_t ns;

	if (sock_peer_is_suspended(peer)) {
		if (can_resume(peer))
			peer_resume(peer);
		return;
	}
	ns = silent_for(peer, &peer->conns);
	if (!ns)
		return;
	log_debug("socklnd", "%s: connections are silent",
		  sock_peer_str(peer, nid, sizeof(nid)));
	peer_suspend(peer);
	lnet_peer_silent(peer->cpt->sni->ni, &peer->id, ns);
}

static bool is_busy(const struct sock_peer *peer)
{
	const struct sock_conn *conn;

	list_for_each_entry (conn, &peer->conns, link)
		if (sock_conn_is_busy(conn))
			return true;
	/* Check again while there are suspended connections, which still have
	 * to be resumed or to end. */
	return !list_empty(&peer->suspended);
}

/* Returns when (ns) something last came in, or was acknowledged by TCP. */
static uint64_t last_heard(const struct sock_peer *peer)
{
	const struct sock_conn *conn;
	uint64_t last = 0;

	list_for_each_entry (conn, &peer->conns, link)
		last = MAX(last, MAX(conn->heard, conn->acked_at));
	return last;
}

/* Sends a keepalive if one is due. Returns when to check again, in ns. */
static uint64_t keep_alive(struct sock_peer *peer, uint64_t now)
{
	uint64_t period = (uint64_t)peer->cpt->sni->tunables[SOCK_keepalive] *
			  NSEC_PER_SEC;
	uint64_t due = last_heard(peer) + period;
	struct sock_conn *conn;

	if (!period || list_empty(&peer->conns))
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

	give_up_overdue(peer, now);
	if (!sock_peer_has_conns(peer))
		return;
	socklnd_look_for_silence(peer);
	peer_prove(peer);
	if (peer->watched && is_busy(peer)) {
		arm_check(peer);
		keep_alive(peer, now);
		return;
	}
	/* cleared first, because keep_alive() may send something and so set it
	 * again */
	peer->watched = false;
	next = keep_alive(peer, now);
	if (!peer->watched && next != TIME_NEVER)
		loop_timer_arm(peer->cpt->loop, &peer->check, next);
}

void sock_peer_refused(struct sock_peer *peer)
{
	if (!peer->renewing)
		return;
	peer->renewing = false;
	loop_timer_arm(peer->cpt->loop, &peer->check, peer_now(peer));
}

/* ---- links ---- */

void sock_peers_link_down(struct sock_cpt *cpt)
{
	struct sock_peer *peer;

	hash_for_each (peer, &cpt->peers, hash) {
		peer->abort_due = true;
		if (!peer->link_lost_at)
			peer->link_lost_at = peer_now(peer);
		sock_peer_settle(peer);
	}
}

/* Called when a link has come up: TCP may get through, and connections may be
 * missing. */
static void peer_look_again(struct sock_peer *peer)
{
	if (peer->watched)
		arm_check(peer);
	if (peer->opens || peer->link_lost_at)
		sock_peer_settle(peer);
	sock_attempt_retry_now(peer);
}

void sock_peers_link_up(struct sock_cpt *cpt)
{
	struct sock_peer *peer;

	hash_for_each (peer, &cpt->peers, hash)
		peer_look_again(peer);
}

/* ---- the end ---- */

static void peer_stop(struct sock_peer *peer)
{
	peer->connect.wanted = false;
	connect_reset(&peer->connect);
	sock_peer_close(peer, -ESHUTDOWN);
}

void sock_peers_stop(struct sock_cpt *cpt)
{
	struct sock_peer *peer;

	hash_for_each (peer, &cpt->peers, hash)
		peer_stop(peer);
}
