/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of peers: those that ib_admit() finds good are accepted, unless the
 * peer has changed, races with this side, or has what it may have. */
#include "lnd/o2iblnd/peer_priv.h"

#include <errno.h>

#include "base/share.h"

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
