/* SPDX-License-Identifier: BSD-3-Clause */
/* Attempts to connect to a peer: when, and how often. */
#include <errno.h>

#include "base/backoff.h"
#include "lnd/o2iblnd/peer_priv.h"
#include "lnd/o2iblnd/refusal.h"

/* Rounds in a row that a peer may ask for at once; then one each ... */
#define RETRIES_AT_ONCE 10
#define RETRY_PAUSE	NSEC_PER_SEC
/* Nothing was heard for so long: the peer is silent. Less than a lost connect
 * message would explain, for LNet may know another path. */
#define SILENCE (2 * NSEC_PER_SEC + NSEC_PER_SEC / 2)
/* What a request may take: two look-ups, and an answer; and a little more, so
 * that its own result is what those who wait are told. */
#define RESOLVE_TIME (11 * NSEC_PER_SEC)
#define ANSWER_MIN   (5 * NSEC_PER_SEC)

const struct fsm_state ib_peer_states[IB_PEER_STATES] = {
	[IB_PEER_IDLE] = { "idle", FSM_TO(IB_PEER_CONNECTING) |
					   FSM_TO(IB_PEER_PAUSED) },
	[IB_PEER_CONNECTING] = { "connecting", FSM_TO(IB_PEER_IDLE) |
						       FSM_TO(IB_PEER_AGAIN) |
						       FSM_TO(IB_PEER_PAUSED) },
	[IB_PEER_AGAIN] = { "again", FSM_TO(IB_PEER_CONNECTING) |
					     FSM_TO(IB_PEER_IDLE) |
					     FSM_TO(IB_PEER_PAUSED) },
	[IB_PEER_PAUSED] = { "paused", FSM_TO(IB_PEER_IDLE) },
};

static struct loop *attempt_loop(const struct ib_peer *peer)
{
	return peer->ps->home.loop;
}

uint64_t ib_peers_patience(const struct ib_peers *ps)
{
	return RESOLVE_TIME + MAX(ANSWER_MIN, ps->home.timeout / 4);
}

/* What goes on ends; what follows is another state. */
static void attempt_leave(struct ib_peer *peer, enum ib_peer_state to)
{
	loop_timer_cancel(attempt_loop(peer), &peer->timer);
	if ((enum ib_peer_state)peer->fsm.state != to)
		fsm_move(&peer->fsm, ib_peer_states, to);
	ib_peer_settle(peer);
}

/* ---- those who wait ---- */

static bool is_silence_due(const struct ib_peer *peer)
{
	return peer->fsm.state == IB_PEER_CONNECTING && !peer->told_silent;
}

static void arm_patience(struct ib_peer *peer)
{
	uint64_t at = peer->give_up;

	if (!peer->wanted || !at)
		return;
	if (is_silence_due(peer))
		at = MIN(at, peer->began + SILENCE);
	loop_timer_arm(attempt_loop(peer), &peer->patience, at);
}

static void wait_from_now(struct ib_peer *peer)
{
	if (peer->wanted && !peer->give_up)
		peer->give_up = peer_now(peer) + ib_peers_patience(peer->ps);
	arm_patience(peer);
}

static void nobody_waits(struct ib_peer *peer)
{
	peer->wanted = peer->told_silent = false;
	peer->give_up = 0;
	loop_timer_cancel(attempt_loop(peer), &peer->patience);
}

/* Last of all: whoever is told may want it again. */
static void tell_failed(struct ib_peer *peer, int status,
			enum ulnet_cause cause)
{
	struct ib_peers *ps = peer->ps;

	if (!peer->wanted)
		return;
	nobody_waits(peer);
	ib_peer_settle(peer);
	ps->user->failed(ps, &peer->known.peer.nid, status, cause);
}

void ib_attempt_want(struct ib_peer *peer)
{
	/* Who comes later does not know yet. */
	peer->told_silent = false;
	peer->wanted = true;
	if (peer->fsm.state != IB_PEER_PAUSED)
		wait_from_now(peer);
	ib_peer_settle(peer);
}

/* ---- rounds ---- */

static void log_failure(const struct ib_peer *peer, int status)
{
	struct ib_peers *ps = peer->ps;
	char nid[LNET_NIDSTR_SIZE];

	if (peer->failures > 1)
		return;
	lnet_nid_format(&peer->known.peer.nid, nid, sizeof(nid));
	log_warn_limited(&ps->home.log_limit, peer_now(peer), "o2ib",
			 "peer %s: cannot be connected to: %s", nid,
			 strerror(-status));
}

static void attempt_pause(struct ib_peer *peer)
{
	const struct ib_peers_conf *conf = peer->ps->conf;
	const struct backoff_law law = { .base = conf->min_pause,
					 .cap = conf->max_pause };
	uint64_t ns = backoff_pause(&law, ++peer->failures,
				    loop_random(attempt_loop(peer)));

	attempt_leave(peer, IB_PEER_PAUSED);
	/* Who waits, waits for the round after it. */
	peer->give_up = 0;
	loop_timer_cancel(attempt_loop(peer), &peer->patience);
	loop_timer_arm(attempt_loop(peer), &peer->timer, peer_now(peer) + ns);
}

static void round_failed(struct ib_peer *peer)
{
	peer->retries = 0;
	attempt_pause(peer);
	log_failure(peer, peer->status);
	tell_failed(peer, peer->status, peer->cause);
}

static void on_patience(struct timer *t)
{
	struct ib_peer *peer = container_of(t, struct ib_peer, patience);
	struct ib_peers *ps = peer->ps;
	uint64_t now = peer_now(peer);

	ib_peer_settle(peer);
	if (now >= peer->give_up) {
		if (peer->fsm.state == IB_PEER_AGAIN)
			round_failed(peer);
		else
			tell_failed(peer, -ETIMEDOUT,
				    LNET_CAUSE_REMOTE_DROPPED);
		return;
	}
	if (is_silence_due(peer) && now >= peer->began + SILENCE) {
		peer->told_silent = true;
		ps->user->silent(ps, &peer->known.peer.nid, now - peer->began);
	}
	arm_patience(peer);
}

/* The peer wants to be asked again, or is asking itself. */
static void round_again(struct ib_peer *peer)
{
	uint64_t at = peer_now(peer);

	if (++peer->retries > RETRIES_AT_ONCE)
		at = MAX(at, peer->began + RETRY_PAUSE);
	attempt_leave(peer, IB_PEER_AGAIN);
	if (at > peer_now(peer))
		loop_timer_arm(attempt_loop(peer), &peer->timer, at);
}

/* None of its attempts is left. */
static void round_over(struct ib_peer *peer)
{
	if (peer->again || peer->n[IB_LINK_ACCEPTING])
		round_again(peer);
	else
		round_failed(peer);
}

static int ask(struct ib_peer *peer)
{
	struct ib_link *link = ib_link_new(peer, false);
	struct ib_conn *conn;
	int rc;

	if (!link)
		return -ENOMEM;
	rc = ib_conn_connect(&peer->ps->home, &peer->known, link, &conn);
	if (rc)
		ib_link_drop(link);
	else
		ib_link_begin(link, conn);
	return rc;
}

static void round_begin(struct ib_peer *peer)
{
	unsigned int n = MAX(peer->ps->conf->conns_per_peer, 1u);
	int rc = 0;

	attempt_leave(peer, IB_PEER_CONNECTING);
	peer->again = false;
	peer->began = peer_now(peer);
	wait_from_now(peer);
	/* Those of a round before, which had success, count. */
	while (!rc && peer->n[IB_LINK_ASKING] < n)
		rc = ask(peer);
	if (peer->n[IB_LINK_ASKING])
		return;
	peer->status = rc;
	peer->cause = rc == -ENODEV ? LNET_CAUSE_LOCAL_NO_ROUTE
				    : LNET_CAUSE_LOCAL_DROPPED;
	round_over(peer);
}

static bool may_begin(const struct ib_peer *peer)
{
	switch (peer->fsm.state) {
	case IB_PEER_IDLE:
		return !peer->n[IB_LINK_ACCEPTING];
	case IB_PEER_AGAIN:
		/* The queue pairs of those before are to be gone. */
		return !peer->n[IB_LINK_ACCEPTING] && !peer->refused &&
		       !timer_armed(&peer->timer);
	default:
		return false;
	}
}

void ib_attempt_settle(struct ib_peer *peer)
{
	struct ib_peers *ps = peer->ps;

	if (ps->down)
		tell_failed(peer, ps->down, LNET_CAUSE_LOCAL_NO_ROUTE);
	if (!peer->wanted && peer->fsm.state == IB_PEER_AGAIN)
		attempt_leave(peer, IB_PEER_IDLE);
	if (!peer->wanted || ps->down)
		return;
	if (may_begin(peer))
		round_begin(peer);
	else if (peer->fsm.state != IB_PEER_PAUSED && !peer->give_up)
		wait_from_now(peer);
}

static void on_attempt_timer(struct timer *t)
{
	struct ib_peer *peer = container_of(t, struct ib_peer, timer);

	if (peer->fsm.state == IB_PEER_PAUSED)
		attempt_leave(peer, IB_PEER_IDLE);
	ib_peer_settle(peer);
}

void ib_attempt_init(struct ib_peer *peer)
{
	timer_init(&peer->timer, on_attempt_timer);
	timer_init(&peer->patience, on_patience);
}

/* ---- what becomes of them ---- */

void ib_attempt_refused(struct ib_link *link, int status,
			const struct ib_refusal *refusal)
{
	const struct ib_request *asked = &link->conn->terms;
	struct ib_peer *peer = link->peer;
	struct ib_verdict v =
		ib_refusal_judge(status, refusal, asked, &peer->known);

	/* A queue pair as it was wanted could not be had: one as deep as it
	 * came to is asked for at once, next time. */
	peer->known.depth = MIN(peer->known.depth, asked->depth);
	if (peer->fsm.state != IB_PEER_CONNECTING)
		return;
	peer->again |= v.again;
	peer->status = v.status;
	peer->cause = v.cause;
	if (!peer->n[IB_LINK_ASKING])
		round_over(peer);
}

void ib_attempt_opened(struct ib_peer *peer)
{
	peer->retries = 0;
	attempt_leave(peer, IB_PEER_IDLE);
	nobody_waits(peer);
}

void ib_attempt_in_vain(struct ib_peer *peer)
{
	if (peer->ps->stopping || peer->ps->down)
		return;
	if (peer->fsm.state == IB_PEER_IDLE)
		attempt_pause(peer);
}

void ib_attempt_stop(struct ib_peer *peer)
{
	attempt_leave(peer, IB_PEER_IDLE);
	peer->retries = peer->failures = 0;
	if (peer->ps->stopping)
		nobody_waits(peer);
}
