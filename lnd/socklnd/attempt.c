/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/attempt.h"

#include <errno.h>
#include <string.h>

#include "base/backoff.h"
#include "base/log.h"
#include "lnd/socklnd/handshake.h"
#include "lnd/socklnd/host.h"
#include "lnd/socklnd/loss.h"

/* Refusals in a row after which the connections that there are must do. */
#define RETRIES 3
/* An attempt that TCP has brought to the peer, who has not answered yet, does
 * not make room for others until it was looked after so many times. */
#define LOOKS 8

const struct fsm_state sock_peer_states[SOCK_PEER_STATES] = {
	[SOCK_PEER_IDLE] = { "idle", FSM_TO(SOCK_PEER_QUEUED) |
					     FSM_TO(SOCK_PEER_CONNECTING) |
					     FSM_TO(SOCK_PEER_PAUSED) },
	[SOCK_PEER_QUEUED] = { "waits for its turn",
			       FSM_TO(SOCK_PEER_IDLE) |
				       FSM_TO(SOCK_PEER_CONNECTING) |
				       FSM_TO(SOCK_PEER_PAUSED) },
	[SOCK_PEER_CONNECTING] = { "connecting",
				   FSM_TO(SOCK_PEER_IDLE) |
					   FSM_TO(SOCK_PEER_QUEUED) |
					   FSM_TO(SOCK_PEER_PAUSED) },
	[SOCK_PEER_PAUSED] = { "paused", FSM_TO(SOCK_PEER_IDLE) },
};

static uint64_t attempt_now(const struct sock_peer *peer)
{
	return loop_now(peer->cpt->loop);
}

static void attempt_timer(struct sock_peer *peer, uint64_t at)
{
	loop_timer_arm(peer->cpt->loop, &peer->timer, at);
}

/* ---- which connection ---- */

/* The type of connection that is to be opened next, or SOCK_NONE. */
static enum sock_type missing(const struct sock_peer *peer)
{
	unsigned int in = peer->count[SOCK_BULK_IN];
	unsigned int out = peer->count[SOCK_BULK_OUT];

	if (!peer->count[SOCK_CONTROL])
		return SOCK_CONTROL;
	if (!peer->bulk && !peer->cpt->sni->tunables[SOCK_eager_bulk])
		return SOCK_NONE;
	if (in < peer->want && in <= out)
		return SOCK_BULK_IN;
	if (out < peer->want)
		return SOCK_BULK_OUT;
	return in < peer->want ? SOCK_BULK_IN : SOCK_NONE;
}

/* The peer does not want more connections: are those that there are enough? */
static bool is_content(struct sock_peer *peer)
{
	unsigned int in = peer->count[SOCK_BULK_IN];
	unsigned int out = peer->count[SOCK_BULK_OUT];

	if (!peer->count[SOCK_CONTROL] || !in || !out)
		return false;
	peer->want = MIN(in, out);
	return true;
}

/* Is there a connection to be opened? */
static bool is_due(const struct sock_peer *peer)
{
	/* Who only calls does not listen. */
	if (sock_pid_is_user(peer->id.pid) || !sock_ni_is_up(peer->cpt->sni))
		return false;
	if (peer->wanted)
		return true;
	return peer->opens && !list_empty(&peer->conns) &&
	       missing(peer) != SOCK_NONE;
}

/* ---- what comes of it ---- */

/* Those who wait for a connection hear what has come of it, and may send. LNet
 * is told of one that the peer has opened, too. */
static void attempt_tell(struct sock_peer *peer, int status)
{
	bool wanted = peer->wanted;

	peer->wanted = false;
	peer->told_silent = false;
	/* An attempt that goes on has still to end in time. */
	if (peer->fsm.state != SOCK_PEER_CONNECTING)
		peer->give_up = 0;
	if (wanted || (!status && !sock_pid_is_user(peer->id.pid)))
		lnet_peer_connected(peer->cpt->sni->ni, &peer->id, status,
				    sock_loss_unconnected(status));
	sock_peer_settle(peer);
}

static const char *hint(int status)
{
	if (status == -ECONNRESET)
		return " (closed without an answer: no such NID there, or it "
		       "takes connections from privileged ports only)";
	if (status == -EALREADY)
		return " (it refuses the connection for now, as nodes do that "
		       "have no file descriptors left: its log says why)";
	return status == -EMFILE ? " (this process: see ulimit -n)" : "";
}

/* A peer that has gone is nothing to warn of: those who wanted to reach it are
 * told. */
static bool is_gone(int status)
{
	return status == -ECONNREFUSED || status == -EHOSTUNREACH ||
	       status == -ETIMEDOUT;
}

static void log_failure(struct sock_peer *peer, int status)
{
	char nid[LNET_NIDSTR_SIZE];

	sock_peer_str(peer, nid, sizeof(nid));
	if (is_gone(status))
		log_debug("socklnd", "%s: cannot connect: %s", nid,
			  strerror(-status));
	else if (!peer->failures)
		log_warn_limited(&peer->cpt->complaints, attempt_now(peer),
				 "socklnd", "%s: cannot connect: %s%s", nid,
				 strerror(-status), hint(status));
}

/* ---- failures that are remembered ---- */

static void stop_remembering(struct sock_peer *peer)
{
	if (list_empty(&peer->failed))
		return;
	list_del(&peer->failed);
	peer->cpt->nfailed--;
}

/* As if there had been no failure. */
static void attempt_forget(struct sock_peer *peer)
{
	stop_remembering(peer);
	peer->failures = 0;
	loop_timer_cancel(peer->cpt->loop, &peer->timer);
	if (peer->fsm.state == SOCK_PEER_PAUSED)
		fsm_move(&peer->fsm, sock_peer_states, SOCK_PEER_IDLE);
	sock_peer_settle(peer);
}

static void attempt_remember(struct sock_peer *peer)
{
	struct sock_cpt *cpt = peer->cpt;

	if (peer->wanted || !list_empty(&peer->failed))
		return;
	list_add_tail(&cpt->failed, &peer->failed);
	if (++cpt->nfailed > ATTEMPT_FAILURES_MAX)
		attempt_forget(
			list_first(&cpt->failed, struct sock_peer, failed));
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

/* Something has changed: @host has a turn to wait for, or none. */
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

/* @peer neither waits for a turn nor has one any more. */
static void leave_host(struct sock_peer *peer)
{
	struct sock_host *host = peer->host;

	if (!host)
		return;
	host_line_up(peer->cpt, host);
	peer->host = NULL;
	sock_host_release(peer->cpt, host);
}

/* Stops what is going on; what follows is another state. */
static void attempt_leave(struct sock_peer *peer, enum sock_peer_state to)
{
	struct sock_cpt *cpt = peer->cpt;

	if (peer->fsm.state == SOCK_PEER_CONNECTING) {
		drop_sockets(peer);
		cpt->connecting--;
		peer->host->connecting = false;
	}
	list_del(&peer->turn);
	if (to == SOCK_PEER_IDLE || to == SOCK_PEER_PAUSED)
		leave_host(peer);
	loop_timer_cancel(cpt->loop, &peer->timer);
	if ((enum sock_peer_state)peer->fsm.state != to)
		fsm_move(&peer->fsm, sock_peer_states, to);
}

/* ns, before retry @n. */
static uint64_t attempt_pause(const struct sock_peer *peer, unsigned int n)
{
	const struct sock_ni *sni = peer->cpt->sni;
	const struct backoff_law law = {
		.base = sock_ni_ms(sni, SOCK_min_reconnectms),
		.cap = sock_ni_ms(sni, SOCK_max_reconnectms),
	};

	return backoff_pause(&law, n, loop_random(peer->cpt->loop));
}

static void attempt_failed(struct sock_peer *peer, int status)
{
	uint64_t pause = attempt_pause(peer, peer->failures + 1);

	attempt_leave(peer, SOCK_PEER_PAUSED);
	sock_peer_refused(peer);
	log_failure(peer, status);
	peer->retries = 0;
	peer->offer = 0;
	peer->failures++;
	attempt_timer(peer, attempt_now(peer) + pause);
	attempt_tell(peer, status);
	attempt_remember(peer);
}

/* When to look after an attempt again: jitter keeps many clients of one server
 * from knocking at the same moments. */
static void look_later(struct sock_peer *peer)
{
	uint64_t half = sock_ni_ms(peer->cpt->sni, SOCK_max_reconnectms) / 2;
	uint64_t after = half + loop_random(peer->cpt->loop) % (half + 1);

	attempt_timer(peer, MIN(attempt_now(peer) + after, peer->give_up));
}

static void attempt_begin(struct sock_peer *peer)
{
	enum sock_type type = missing(peer);
	int rc;

	attempt_leave(peer, SOCK_PEER_CONNECTING);
	peer->cpt->connecting++;
	peer->host->connecting = true;
	host_line_up(peer->cpt, peer->host);
	peer->looks = 0;
	rc = sock_handshake_connect(peer, type, &peer->attempt);
	if (rc)
		attempt_failed(peer, rc);
	else
		look_later(peer);
}

static void wait_for_turn(struct sock_peer *peer)
{
	attempt_leave(peer, SOCK_PEER_QUEUED);
	list_add_tail(&peer->host->waiting, &peer->turn);
	host_line_up(peer->cpt, peer->host);
	attempt_timer(peer, peer->give_up);
}

static void begin_or_wait(struct sock_peer *peer)
{
	if (missing(peer) == SOCK_NONE)
		return;
	stop_remembering(peer);
	if (peer->wanted)
		peer->opens = true;
	if (!peer->give_up)
		peer->give_up =
			attempt_now(peer) + sock_ni_timeout(peer->cpt->sni);
	peer->host = sock_host_hold(peer->cpt, &peer->id.nid);
	if (!peer->host)
		attempt_failed(peer, -ENOMEM);
	else if (peer->host->connecting || is_full(peer->cpt) ||
		 !list_empty(&peer->cpt->turns))
		wait_for_turn(peer);
	else
		attempt_begin(peer);
}

/* The next one, or none for now. */
static void begin_or_rest(struct sock_peer *peer)
{
	if (is_due(peer)) {
		begin_or_wait(peer);
		return;
	}
	peer->give_up = 0;
	sock_peer_settle(peer);
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

/* Is it @peer that has to connect, or to be heard again? */
static bool is_callers_turn(const struct sock_peer *peer)
{
	return sock_pid_is_user(peer->id.pid) && sock_peer_is_cut(peer) &&
	       sock_ni_is_up(peer->cpt->sni);
}

void sock_attempt_settle(struct sock_peer *peer)
{
	if (peer->fsm.state != SOCK_PEER_IDLE)
		return;
	if (is_due(peer))
		begin_or_wait(peer);
	else if (peer->wanted && !is_callers_turn(peer))
		attempt_tell(peer, sock_ni_is_up(peer->cpt->sni) ? -EHOSTUNREACH
								 : -ENETDOWN);
}

void sock_attempt_want(struct sock_peer *peer)
{
	peer->wanted = true;
	stop_remembering(peer);
	sock_peer_settle(peer);
}

/* ---- an attempt ---- */

/* Has the last thing that was written to @conn not arrived? TCP repeats it
 * again and again, less and less often; a HELLO for the first time after
 * SOCK_RTO_MIN. */
static bool is_unheard(const struct sock_conn *conn)
{
	if (conn->fsm.state == CONN_CONNECTING)
		return true;
	return loop_now(conn->loop) - conn->heard >= SOCK_RTO_MIN &&
	       sock_unacked(conn->io.fd);
}

bool sock_attempt_reached(struct sock_conn *conn)
{
	struct sock_peer *peer = conn->peer;
	struct sock_conn *first = peer->attempt, *second = peer->second;

	peer->second = NULL;
	if (!second)
		return true;
	/* The peer has the HELLO of the first socket by now: it is to answer
	 * that one. */
	if (conn == second && !is_unheard(first)) {
		sock_conn_drop(second);
		return false;
	}
	peer->attempt = conn;
	sock_conn_drop(conn == first ? second : first);
	return true;
}

/* Opens a second socket for the attempt. If that is impossible just now, the
 * first one has not failed for it. */
static void try_second(struct sock_peer *peer)
{
	struct sock_conn *old = peer->second;

	peer->second = NULL;
	if (old)
		sock_conn_drop(old);
	sock_handshake_connect(peer, (enum sock_type)peer->attempt->type,
			       &peer->second);
}

/* Does the attempt make room for others? While nothing is heard from the host,
 * another process of the host would be no better off. */
static bool gives_way(struct sock_peer *peer)
{
	bool others = !list_empty(&peer->cpt->turns);

	if (is_unheard(peer->attempt))
		return others;
	return (others || !list_empty(&peer->host->waiting)) &&
	       ++peer->looks >= LOOKS;
}

/* Nothing was heard for as long as a path may be silent at least, as it is not
 * known what is usual: those who wait may know another path. Once for all
 * attempts for them. */
static void tell_of_silence(struct sock_peer *peer)
{
	const struct sock_ni *sni = peer->cpt->sni;
	uint64_t min = sock_ni_ms(sni, SOCK_path_silent_min);
	uint64_t began = peer->give_up - sock_ni_timeout(sni);

	if (!peer->wanted || peer->told_silent || !min ||
	    attempt_now(peer) - began < min)
		return;
	peer->told_silent = true;
	lnet_peer_silent(sni->ni, &peer->id, attempt_now(peer) - began);
}

static void look_after(struct sock_peer *peer)
{
	if (attempt_now(peer) >= peer->give_up) {
		attempt_failed(peer, -ETIMEDOUT);
		return;
	}
	if (gives_way(peer)) {
		wait_for_turn(peer);
		return;
	}
	if (is_unheard(peer->attempt)) {
		try_second(peer);
		tell_of_silence(peer);
	}
	look_later(peer);
}

/* After a pause. Nobody waits: the failure is remembered for a while, unless
 * the peer was heard since, on a connection that is gone by now. */
static void go_on(struct sock_peer *peer)
{
	fsm_move(&peer->fsm, sock_peer_states, SOCK_PEER_IDLE);
	begin_or_rest(peer);
	if (peer->fsm.state != SOCK_PEER_IDLE)
		return;
	if (peer->failures)
		attempt_timer(peer, attempt_now(peer) +
					    sock_ni_ms(peer->cpt->sni,
						       SOCK_max_reconnectms));
	else
		stop_remembering(peer);
}

static void on_attempt_timer(struct timer *t)
{
	struct sock_peer *peer = container_of(t, struct sock_peer, timer);

	switch ((enum sock_peer_state)peer->fsm.state) {
	case SOCK_PEER_IDLE:
		attempt_forget(peer);
		break;
	case SOCK_PEER_QUEUED:
		attempt_failed(peer, -ETIMEDOUT);
		break;
	case SOCK_PEER_CONNECTING:
		look_after(peer);
		break;
	default:
		go_on(peer);
		break;
	}
}

/* The peer wants the connection to be tried again later. That happens once when
 * both have connected at the same time; after several times somebody may want
 * to know. */
static void retry_later(struct sock_peer *peer)
{
	uint64_t pause = attempt_pause(peer, peer->retries + 1);

	if (peer->retries == RETRIES && !sock_peer_has_conns(peer))
		log_failure(peer, -EALREADY);
	attempt_leave(peer, SOCK_PEER_PAUSED);
	sock_peer_refused(peer);
	attempt_timer(peer, attempt_now(peer) + pause);
	if (peer->retries == STALL_REFUSALS && list_empty(&peer->conns))
		sock_peer_reset_stalled(peer);
}

/* Is there no sense in asking the peer once more? */
static bool is_final(struct sock_peer *peer, int status)
{
	peer->retries++;
	if (status == -EALREADY &&
	    (list_empty(&peer->conns) || sock_peer_is_cut(peer)))
		return attempt_now(peer) >= peer->give_up;
	return peer->retries > RETRIES && !is_content(peer);
}

void sock_attempt_done(struct sock_peer *peer, int status)
{
	bool again = status == -EALREADY || status == -EPROTONOSUPPORT;

	if (!status) {
		peer->retries = 0;
		peer->give_up = 0;
	} else if (!again || is_final(peer, status)) {
		attempt_failed(peer, status);
		return;
	} else if (status == -EALREADY && missing(peer) != SOCK_NONE) {
		retry_later(peer);
		return;
	}
	attempt_leave(peer, SOCK_PEER_IDLE);
	begin_or_rest(peer);
}

void sock_attempt_in_vain(struct sock_peer *peer, int status)
{
	if (peer->fsm.state != SOCK_PEER_PAUSED)
		attempt_failed(peer, status);
}

void sock_attempt_opened(struct sock_peer *peer, enum sock_type type)
{
	const struct sock_conn *attempt = peer->attempt;

	/* The connection is what an attempt of ours that has heard nothing was
	 * for. */
	if (peer->fsm.state == SOCK_PEER_CONNECTING && attempt &&
	    attempt->type == (int)type && is_unheard(attempt))
		attempt_leave(peer, SOCK_PEER_IDLE);
	if (peer->fsm.state == SOCK_PEER_PAUSED ||
	    peer->fsm.state == SOCK_PEER_QUEUED)
		attempt_leave(peer, SOCK_PEER_IDLE);
	if (peer->fsm.state == SOCK_PEER_IDLE)
		loop_timer_cancel(peer->cpt->loop, &peer->timer);
	stop_remembering(peer);
	if (sock_peer_choose(peer, 1))
		attempt_tell(peer, 0);
}

bool sock_attempt_is_idle(const struct sock_peer *peer)
{
	return peer->fsm.state == SOCK_PEER_IDLE && !peer->wanted &&
	       !timer_armed(&peer->timer);
}

void sock_attempt_stop(struct sock_peer *peer)
{
	peer->wanted = false;
	attempt_leave(peer, SOCK_PEER_IDLE);
	attempt_forget(peer);
}

/* ---- events of links and addresses ---- */

void sock_attempt_cut_off(struct sock_peer *peer)
{
	attempt_leave(peer, SOCK_PEER_IDLE);
	peer->retries = 0;
	attempt_forget(peer);
	attempt_tell(peer, -ENETDOWN);
}

void sock_attempt_hurry(struct sock_peer *peer)
{
	if (!peer->wanted)
		return;
	if (peer->fsm.state == SOCK_PEER_PAUSED)
		attempt_timer(peer, attempt_now(peer));
	else if (peer->fsm.state == SOCK_PEER_CONNECTING && peer->second)
		try_second(peer);
}

/* ---- */

void sock_attempt_init(struct sock_peer *peer)
{
	list_init(&peer->turn);
	list_init(&peer->failed);
	timer_init(&peer->timer, on_attempt_timer);
}

void sock_attempts_init(struct sock_cpt *cpt)
{
	list_init(&cpt->turns);
	list_init(&cpt->failed);
	cpt->turns_work.fn = on_turns;
}
