/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/peer.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "lnd/socklnd/handshake.h"
#include "lnd/socklnd/host.h"

/* After so many refusals in a row, a peer that has connections is not asked for
 * more. */
#define RETRIES 3
/* After so many looks, an attempt that has reached the peer but was not
 * answered yields to other peers. */
#define LOOKS 8
/* How often the time between looks doubles, at most, while there is nothing to
 * see: up to as long as LOOKS of them take otherwise. */
#define DOUBLINGS 3
_Static_assert(1u << DOUBLINGS == LOOKS,
	       "the longest time is LOOKS of the first");

static struct sock_peer *attempt_peer_of(const struct connect *c)
{
	return container_of(c, struct sock_peer, connect);
}

static uint64_t attempt_now(const struct sock_peer *peer)
{
	return loop_now(peer->cpt->loop);
}

/* ---- which connection ---- */

/* Returns the type of connection to open next; SOCK_NONE: none is missing. */
static enum sock_type missing(const struct sock_peer *peer)
{
	unsigned int in = peer->count[SOCK_BULK_IN];
	unsigned int out = peer->count[SOCK_BULK_OUT];

	if (!peer->count[SOCK_CONTROL])
		return SOCK_CONTROL;
	if (!peer->opens_bulk && !peer->cpt->sni->tunables[SOCK_eager_bulk])
		return SOCK_NONE;
	if (in < peer->bulk_target && in <= out)
		return SOCK_BULK_IN;
	if (out < peer->bulk_target)
		return SOCK_BULK_OUT;
	return in < peer->bulk_target ? SOCK_BULK_IN : SOCK_NONE;
}

/* Called when the peer refuses more bulk connections. Returns true if there are
 * some in each direction: then no more are wanted from now on. */
static bool accept_fewer(struct sock_peer *peer)
{
	unsigned int in = peer->count[SOCK_BULK_IN];
	unsigned int out = peer->count[SOCK_BULK_OUT];

	if (!peer->count[SOCK_CONTROL] || !in || !out)
		return false;
	peer->bulk_target = MIN(in, out);
	return true;
}

/* Does what attempt_is_due() does, for a process that only calls. While its
 * connections are suspended, messages wait for them; otherwise messages end. */
static int user_is_due(const struct sock_peer *peer)
{
	if (!peer->connect.wanted)
		return -ENOENT;
	return sock_peer_is_suspended(peer) ? -EAGAIN : -EHOSTUNREACH;
}

static int attempt_is_due(const struct connect *c)
{
	const struct sock_peer *peer = attempt_peer_of(c);

	if (!sock_ni_is_up(peer->cpt->sni))
		return c->wanted ? -ENETDOWN : -ENOENT;
	if (sock_pid_is_user(peer->id.pid))
		return user_is_due(peer);
	if (!c->wanted && (!peer->opens || list_empty(&peer->conns)))
		return -ENOENT;
	if (missing(peer) == SOCK_NONE)
		return c->wanted ? -EAGAIN : -ENOENT;
	return 0;
}

/* ---- outcomes ---- */

/* connect_ops.tell(). Called for connections that the peer has opened, too. */
static void attempt_tell(struct connect *c, bool wanted, int status,
			 enum ulnet_cause cause)
{
	struct sock_peer *peer = attempt_peer_of(c);

	if (wanted || !sock_pid_is_user(peer->id.pid))
		lnet_peer_connected(peer->cpt->sni->ni, &peer->id, status,
				    cause);
}

static void attempt_silent(struct connect *c, uint64_t ns)
{
	struct sock_peer *peer = attempt_peer_of(c);

	lnet_peer_silent(peer->cpt->sni->ni, &peer->id, ns);
}

static const char *hint(int status)
{
	if (status == -ECONNRESET)
		return " (closed without an answer: no such NID there, or it "
		       "takes connections from privileged ports only, or with "
		       "TLS only)";
	if (status == -EALREADY)
		return " (it refuses the connection for now, as nodes do that "
		       "have no file descriptors left: its log says why)";
	return status == -EMFILE ? " (this process: see ulimit -n)" : "";
}

/* Does @status mean that the peer is gone? That is no reason for a warning:
 * those who wanted to reach it are told. */
static bool attempt_is_gone(int status)
{
	return status == -ECONNREFUSED || status == -EHOSTUNREACH ||
	       status == -ETIMEDOUT;
}

static void log_failure(struct sock_peer *peer, int status, bool first)
{
	char nid[LNET_NIDSTR_SIZE];

	sock_peer_str(peer, nid, sizeof(nid));
	if (attempt_is_gone(status))
		log_debug("socklnd", "%s: cannot connect: %s", nid,
			  strerror(-status));
	else if (first)
		log_warn_limited(&peer->cpt->complaints, attempt_now(peer),
				 "socklnd", "%s: cannot connect: %s%s%s%s", nid,
				 strerror(-status), peer->note ? ": " : "",
				 peer->note ? peer->note : "",
				 peer->note ? "" : hint(status));
}

static void attempt_log(struct connect *c, int status, bool first)
{
	struct sock_peer *peer = attempt_peer_of(c);

	sock_peer_refused(peer);
	log_failure(peer, status, first);
	free(peer->note);
	peer->note = NULL;
	peer->offer = 0;
}

static void attempt_failed(struct sock_peer *peer, int status)
{
	connect_failed(&peer->connect, status, sock_loss_unconnected(status));
}

/* ---- turns ---- */

static void drop_sockets(struct sock_peer *peer)
{
	struct sock_conn *first = peer->attempt, *second = peer->second;

	peer->attempt = NULL;
	peer->second = NULL;
	if (first)
		sock_conn_drop(first);
	if (second)
		sock_conn_drop(second);
}

static bool is_full(const struct sock_cpt *cpt)
{
	return cpt->connecting >=
	       (unsigned int)cpt->sni->tunables[SOCK_max_connecting];
}

/* Puts @host into the queue for turns, or takes it out, as its state demands.
 * Schedules on_turns() if an attempt can begin. */
static void host_line_up(struct sock_cpt *cpt, struct sock_host *host)
{
	if (host->connecting || list_empty(&host->waiting))
		list_del(&host->turn);
	else if (list_empty(&host->turn))
		list_add_tail(&cpt->turns, &host->turn);
	if (list_empty(&cpt->turns) || is_full(cpt) || cpt->turns_scheduled)
		return;
	cpt->turns_scheduled = true;
	loop_defer(cpt->loop, &cpt->turns_work);
}

/* Makes @peer give up its turn, or its place in the queue for turns. */
static void leave_host(struct sock_peer *peer)
{
	struct sock_host *host = peer->host;

	if (!host)
		return;
	host_line_up(peer->cpt, host);
	peer->host = NULL;
	sock_host_release(peer->cpt, host);
}

static void attempt_leave(struct connect *c, enum connect_state to)
{
	struct sock_peer *peer = attempt_peer_of(c);

	if (c->fsm.state == CONNECT_CONNECTING) {
		drop_sockets(peer);
		peer->cpt->connecting--;
		peer->host->connecting = false;
	}
	list_del(&peer->turn);
	if (to != CONNECT_QUEUED && to != CONNECT_CONNECTING)
		leave_host(peer);
}

/* Sets the time of the next look at an attempt. Jitter keeps many clients of
 * one server from retrying at the same moments. */
static void attempt_look_later(struct sock_peer *peer)
{
	uint64_t half = sock_ni_ms(peer->cpt->sni, SOCK_max_reconnectms) / 2;
	uint64_t after = half + loop_random(peer->cpt->loop) % (half + 1);

	connect_look_at(&peer->connect,
			attempt_now(peer) + (after << peer->doublings));
}

static void attempt_begin(struct sock_peer *peer)
{
	enum sock_type type = missing(peer);
	int rc;

	connect_move(&peer->connect, CONNECT_CONNECTING);
	peer->cpt->connecting++;
	peer->host->connecting = true;
	host_line_up(peer->cpt, peer->host);
	peer->looks = 0;
	peer->doublings = 0;
	rc = sock_handshake_connect(peer, type, &peer->attempt);
	if (rc)
		attempt_failed(peer, rc);
	else
		attempt_look_later(peer);
}

static void wait_for_turn(struct sock_peer *peer)
{
	connect_move(&peer->connect, CONNECT_QUEUED);
	list_add_tail(&peer->host->waiting, &peer->turn);
	host_line_up(peer->cpt, peer->host);
}

static void begin_or_wait(struct connect *c)
{
	struct sock_peer *peer = attempt_peer_of(c);

	if (c->wanted)
		peer->opens = true;
	peer->host = sock_host_hold(peer->cpt, &peer->id.nid);
	if (!peer->host)
		attempt_failed(peer, -ENOMEM);
	else if (peer->host->connecting || is_full(peer->cpt) ||
		 !list_empty(&peer->cpt->turns))
		wait_for_turn(peer);
	else
		attempt_begin(peer);
}

static void on_turns(struct work *w)
{
	struct sock_cpt *cpt = container_of(w, struct sock_cpt, turns_work);

	cpt->turns_scheduled = false;
	while (!list_empty(&cpt->turns) && !is_full(cpt)) {
		struct sock_host *host =
			list_first(&cpt->turns, struct sock_host, turn);

		attempt_begin(
			list_first(&host->waiting, struct sock_peer, turn));
	}
}

/* ---- an attempt ---- */

/* Has the peer's system not acknowledged the SYN, or the HELLO, of @conn? The
 * HELLO counts only after SOCK_RTO_MIN, when TCP has repeated it. */
static bool is_unheard(const struct sock_conn *conn)
{
	if (conn->fsm.state == CONN_CONNECTING)
		return !sock_is_connected_tcp(conn->io.fd);
	return loop_now(conn->loop) - conn->heard >= SOCK_RTO_MIN &&
	       sock_unacked(conn->io.fd);
}

/* Was nothing heard on either socket of the attempt? */
static bool attempt_is_unheard(const struct sock_peer *peer)
{
	return is_unheard(peer->attempt) &&
	       (!peer->second || is_unheard(peer->second));
}

static struct sock_conn *other_socket(const struct sock_conn *conn)
{
	const struct sock_peer *peer = conn->peer;

	return conn == peer->attempt ? peer->second : peer->attempt;
}

/* Makes @conn and @second (NULL: none) the sockets of the attempt. */
static void set_sockets(struct sock_peer *peer, struct sock_conn *conn,
			struct sock_conn *second)
{
	peer->attempt = conn;
	peer->second = second;
}

bool sock_attempt_reached(struct sock_conn *conn)
{
	bool calls = sock_pid_is_user(conn->sni->ni->conf->pid);
	struct sock_conn *other = other_socket(conn);

	if (!other)
		return true;
	if (is_unheard(other)) {
		set_sockets(conn->peer, conn, NULL);
		sock_conn_drop(other);
		return true;
	}
	if (!calls)
		return true;
	set_sockets(conn->peer, other, NULL);
	sock_conn_drop(conn);
	return false;
}

bool sock_attempt_answered(struct sock_conn *conn)
{
	struct sock_conn *other = other_socket(conn);

	if (other && is_unheard(other)) {
		sock_conn_drop(other);
		other = NULL;
	}
	set_sockets(conn->peer, other, NULL);
	return other;
}

/* Opens a second socket for the attempt. If that fails, the first one goes
 * on. */
static void try_second(struct sock_peer *peer)
{
	struct sock_conn *old = peer->second;

	if (old && !is_unheard(old))
		return;
	peer->second = NULL;
	if (old)
		sock_conn_drop(old);
	sock_handshake_connect(peer, (enum sock_type)peer->attempt->type,
			       &peer->second);
}

/* Does the attempt yield to others? While nothing is heard from the host, it
 * yields only to other hosts: another process of the same host would fare no
 * better. */
static bool yields(struct sock_peer *peer)
{
	bool others = !list_empty(&peer->cpt->turns);

	if (attempt_is_unheard(peer))
		return others;
	if (!others && list_empty(&peer->host->waiting))
		return false;
	peer->looks += 1u << peer->doublings;
	return peer->looks >= LOOKS;
}

/* Has the peer's system acknowledged the HELLO? Then only the peer can do more:
 * it may be stopped. */
static bool is_acknowledged(const struct sock_conn *conn)
{
	return conn->fsm.state == CONN_WAITING && !sock_unacked(conn->io.fd);
}

/* Is there nothing to do but to wait for the answer, and no other peer that
 * waits for a turn? */
static bool has_only_to_wait(const struct sock_peer *peer)
{
	return is_acknowledged(peer->attempt) &&
	       (!peer->second || is_acknowledged(peer->second)) &&
	       list_empty(&peer->cpt->turns) &&
	       list_empty(&peer->host->waiting);
}

/* Tells those who wait for a connection that the peer is silent: they may know
 * another path. Round-trip times are not known yet, so the silence has to last
 * for path_silent_min. */
static void tell_of_silence(struct sock_peer *peer)
{
	uint64_t min = sock_ni_ms(peer->cpt->sni, SOCK_path_silent_min);

	if (min)
		connect_tell_silent(&peer->connect, min);
}

static void look_after(struct connect *c)
{
	struct sock_peer *peer = attempt_peer_of(c);

	if (yields(peer)) {
		wait_for_turn(peer);
		return;
	}
	if (attempt_is_unheard(peer)) {
		try_second(peer);
		tell_of_silence(peer);
	}
	peer->doublings = has_only_to_wait(peer)
				  ? MIN(peer->doublings + 1, DOUBLINGS)
				  : 0;
	attempt_look_later(peer);
}

/* Called when the peer asks to try again later. It does so once when both have
 * connected at the same time; several times in a row are worth a line in the
 * log. */
static void retry_later(struct sock_peer *peer)
{
	struct connect *c = &peer->connect;
	uint64_t pause = connect_pause_ns(c, c->retries + 1);

	if (c->retries == RETRIES && !sock_peer_has_conns(peer))
		log_failure(peer, -EALREADY, !c->failures);
	connect_again(c, attempt_now(peer) + pause, -EALREADY,
		      sock_loss_unconnected(-EALREADY));
	sock_peer_refused(peer);
}

/* Is it pointless to ask the peer again? */
static bool attempt_is_final(struct sock_peer *peer, int status)
{
	peer->connect.retries++;
	if (status == -EALREADY &&
	    (list_empty(&peer->conns) || sock_peer_is_suspended(peer)))
		return attempt_now(peer) >= peer->connect.give_up;
	return peer->connect.retries > RETRIES && !accept_fewer(peer);
}

void sock_attempt_done(struct sock_peer *peer, int status)
{
	bool again = status == -EALREADY || status == -EPROTONOSUPPORT;

	if (!status) {
		peer->connect.retries = 0;
		peer->connect.give_up = 0;
	} else if (!again || attempt_is_final(peer, status)) {
		attempt_failed(peer, status);
		return;
	} else if (status == -EALREADY && missing(peer) != SOCK_NONE) {
		retry_later(peer);
		return;
	}
	connect_move(&peer->connect, CONNECT_IDLE);
}

void sock_attempt_in_vain(struct sock_peer *peer, int status)
{
	enum connect_state state = peer->connect.fsm.state;

	if (state == CONNECT_PAUSED || state == CONNECT_AGAIN)
		return;
	sock_peer_note(peer, "it has closed the connection soon after it was "
			     "opened");
	attempt_failed(peer, status);
}

void sock_attempt_opened(struct sock_peer *peer, enum sock_type type)
{
	const struct sock_conn *attempt = peer->attempt;

	/* This node's own attempt is no longer needed, if it has heard nothing.
	 */
	if (attempt && attempt->type == (int)type && attempt_is_unheard(peer))
		connect_move(&peer->connect, CONNECT_IDLE);
	connect_opened(&peer->connect);
	if (sock_peer_choose(peer, 1))
		connect_tell(&peer->connect, 0, LNET_CAUSE_OK);
}

void sock_attempt_retry_now(struct sock_peer *peer)
{
	if (!peer->connect.wanted)
		return;
	connect_retry_now(&peer->connect);
	if (peer->second)
		try_second(peer);
}

/* ---- */

static void attempt_law(const struct connect *c, struct connect_law *law)
{
	const struct sock_ni *sni = attempt_peer_of(c)->cpt->sni;

	law->min_pause = sock_ni_ms(sni, SOCK_min_reconnectms);
	law->max_pause = sock_ni_ms(sni, SOCK_max_reconnectms);
	law->memory = law->max_pause;
	law->timeout = sock_ni_timeout(sni);
}

static void attempt_settle(struct connect *c)
{
	sock_peer_settle(attempt_peer_of(c));
}

static const struct connect_ops attempt_ops = {
	.law = attempt_law,
	.is_due = attempt_is_due,
	.begin = begin_or_wait,
	.leave = attempt_leave,
	.look = look_after,
	.failed = attempt_log,
	.tell = attempt_tell,
	.silent = attempt_silent,
	.settle = attempt_settle,
};

void sock_attempts_init(struct sock_cpt *cpt)
{
	connect_set_init(&cpt->connects, cpt->loop, &attempt_ops);
	list_init(&cpt->turns);
	cpt->turns_work.fn = on_turns;
}
