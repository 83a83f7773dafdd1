/* SPDX-License-Identifier: BSD-3-Clause */
/* How connections come about: this side asks a peer, or the peer asks this
 * side. */
#include <errno.h>

#include "base/share.h"
#include "lnd/o2iblnd/peer_priv.h"

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

static struct ib_peer *peer_of(const struct connect *c)
{
	return container_of(c, struct ib_peer, connect);
}

uint64_t ib_peers_patience(const struct ib_peers *ps)
{
	return RESOLVE_TIME + MAX(ANSWER_MIN, ps->home.timeout / 4);
}

static void attempt_law(const struct connect *c, struct connect_law *law)
{
	const struct ib_peers *ps = peer_of(c)->ps;

	law->min_pause = ps->conf->min_pause;
	law->max_pause = ps->conf->max_pause;
	law->memory = TIME_NEVER;
	law->patience = ib_peers_patience(ps);
}

/* ---- those who wait ---- */

static void look_for_silence(struct connect *c)
{
	if (c->fsm.state == CONNECT_CONNECTING)
		connect_look_at(c, c->began + SILENCE);
}

void ib_attempt_want(struct ib_peer *peer)
{
	struct connect *c = &peer->connect;

	/* Who comes later does not know yet. */
	if (c->told_silent || !c->wanted)
		look_for_silence(c);
	c->told_silent = false;
	connect_want(c);
}

static void attempt_look(struct connect *c)
{
	connect_tell_silent(c, SILENCE);
}

static void attempt_silent(struct connect *c, uint64_t ns)
{
	struct ib_peer *peer = peer_of(c);

	peer->ps->user->silent(peer->ps, &peer->known.peer.nid, ns);
}

static void attempt_tell(struct connect *c, bool wanted, int status,
			 enum ulnet_cause cause)
{
	struct ib_peer *peer = peer_of(c);
	struct ib_peers *ps = peer->ps;
	const struct ulnet_nid *nid = &peer->known.peer.nid;

	(void)wanted;
	if (status)
		ps->user->failed(ps, nid, status, cause);
	else
		ps->user->connected(ps, nid);
}

static void attempt_settle(struct connect *c)
{
	ib_peer_settle(peer_of(c));
}

static void attempt_failed(struct connect *c, int status, bool first)
{
	struct ib_peer *peer = peer_of(c);
	char nid[LNET_NIDSTR_SIZE];

	if (!first)
		return;
	lnet_nid_format(&peer->known.peer.nid, nid, sizeof(nid));
	log_warn_limited(&peer->ps->home.log_limit, peer_now(peer), "o2ib",
			 "peer %s: cannot be connected to: %s", nid,
			 strerror(-status));
}

/* ---- rounds ---- */

/* The peer wants to be asked again, or is asking itself. */
static void round_again(struct ib_peer *peer)
{
	struct connect *c = &peer->connect;
	uint64_t at = 0;

	if (++c->retries > RETRIES_AT_ONCE)
		at = c->began + RETRY_PAUSE;
	connect_again(c, at, c->status, c->cause);
}

/* None of its attempts is left. */
static void round_over(struct ib_peer *peer)
{
	struct connect *c = &peer->connect;

	if (peer->again || peer->n[IB_LINK_ACCEPTING])
		round_again(peer);
	else
		connect_failed(c, c->status, c->cause);
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

static void round_begin(struct connect *c)
{
	struct ib_peer *peer = peer_of(c);
	unsigned int n = MAX(peer->ps->conf->conns_per_peer, 1u);
	int rc = 0;

	connect_begin(c);
	peer->again = false;
	c->began = peer_now(peer);
	look_for_silence(c);
	/* Those of a round before, which had success, count. */
	while (!rc && peer->n[IB_LINK_ASKING] < n)
		rc = ask(peer);
	if (peer->n[IB_LINK_ASKING])
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
	/* The queue pairs of those before are to be gone. */
	return c->fsm.state == CONNECT_AGAIN && peer->refused ? -EINPROGRESS
							      : 0;
}

const struct connect_ops ib_attempt_ops = {
	.law = attempt_law,
	.is_due = round_is_due,
	.begin = round_begin,
	.look = attempt_look,
	.failed = attempt_failed,
	.tell = attempt_tell,
	.silent = attempt_silent,
	.settle = attempt_settle,
	.outlasts = true,
};

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
	if (peer->connect.fsm.state != CONNECT_CONNECTING)
		return;
	peer->again |= v.again;
	peer->connect.status = v.status;
	peer->connect.cause = v.cause;
	if (!peer->n[IB_LINK_ASKING])
		round_over(peer);
}

void ib_attempt_opened(struct ib_peer *peer)
{
	peer->connect.retries = 0;
	connect_opened(&peer->connect);
	connect_tell(&peer->connect, 0, LNET_CAUSE_OK);
}

void ib_attempt_in_vain(struct ib_peer *peer)
{
	if (peer->ps->stopping || peer->ps->down)
		return;
	if (peer->connect.fsm.state == CONNECT_IDLE)
		connect_pause(&peer->connect);
}

void ib_attempt_stop(struct ib_peer *peer)
{
	if (peer->ps->stopping)
		peer->connect.wanted = false;
	connect_reset(&peer->connect);
}

/* ---- requests of peers ---- */

/* Those that ib_admit() finds good are accepted, unless the peer has changed,
 * races with this side, or has what it may have. */

static void reject(struct ib_qp *qp, const struct ib_reject *r, const char *why)
{
	uint8_t bytes[IB_REJECT_SIZE];
	size_t n = ib_reject_encode(r, bytes);

	log_debug("o2ib", "rejected a connection: %s: %s",
		  ib_reject_name(r->reason), why);
	qp->port->verbs->reject(qp, bytes, n);
	qp->port->verbs->destroy(qp);
}

static void log_no_room(struct ib_peers *ps, const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	lnet_nid_format(nid, text, sizeof(text));
	log_warn_limited(&ps->home.log_limit, loop_now(ps->home.loop), "o2ib",
			 "peer %s: rejected: it has its share of %u "
			 "connections",
			 text, ps->conf->accept_max);
}

static void log_impostor(struct ib_peers *ps, const struct ulnet_nid *from,
			 const char *why)
{
	char text[LNET_NIDSTR_SIZE];

	lnet_nid_format(from, text, sizeof(text));
	log_warn_limited(&ps->home.log_limit, loop_now(ps->home.loop), "o2ib",
			 "a request of %s is rejected: %s", text, why);
}

static bool has_room(struct ib_peers *ps, const struct ib_peer *peer)
{
	const struct ib_peers_conf *conf = ps->conf;

	if (peer->accepted < conf->accept_peer_max &&
	    share_allows(peer->accepted, ps->accepted, conf->accept_max, 1))
		return true;
	log_no_room(ps, &peer->known.peer.nid);
	return false;
}

/* Is the peer somebody else than it was? */
static bool is_reborn(struct ib_peer *peer, uint64_t stamp)
{
	if (!peer->known.peer.stamp || peer->known.peer.stamp == stamp)
		return false;
	ib_peer_close_others(peer, stamp);
	peer->known.peer.stamp = stamp;
	return true;
}

/* Are both sides about to connect, and is it this side's that goes on? */
static bool loses_race(struct ib_peer *peer)
{
	const struct ib_peers *ps = peer->ps;

	if (!peer->n[IB_LINK_ASKING] || peer->races >= IB_RACE_REJECTS_MAX ||
	    !ib_race_is_lower(ps->conf->race, &peer->known.peer.nid,
			      &ps->home.self.nid))
		return false;
	peer->races++;
	return true;
}

static int accept(struct ib_peer *peer, struct ib_qp *qp,
		  const struct ib_request *request)
{
	struct ib_link *link = ib_link_new(peer, true);
	struct ib_conn *conn;
	int rc;

	if (!link)
		return -ENOMEM;
	rc = ib_conn_accept(&peer->ps->home, qp, request, link, &conn);
	if (rc) {
		ib_link_drop(link);
		return rc;
	}
	ib_link_begin(link, conn);
	peer->races = 0;
	return 0;
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
	why = "no memory, or it has its share";
	peer = ib_peer_make(ps, &request.peer.nid);
	if (!peer)
		goto no;
	/* First, as it may be its former life's share. */
	if (is_reborn(peer, request.peer.stamp)) {
		reason = IB_REJECT_STALE;
		why = "it is another one than before";
		goto no;
	}
	if (!has_room(ps, peer))
		goto no;
	reason = IB_REJECT_RACE;
	why = "this side connects to it";
	if (loses_race(peer))
		goto no;
	reason = IB_REJECT_RESOURCES;
	why = "no queue pair can be had";
	if (!accept(peer, qp, &request))
		return;
no:
	ib_admit_reject(terms, reason, &r);
	reject(qp, &r, why);
}
