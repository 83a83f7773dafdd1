/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/move.h"

#include <errno.h>

#include "lnd/socklnd/attempt.h"
#include "lnd/socklnd/host.h"
#include "lnd/socklnd/peer.h"

/* ---- where they arrive ---- */

static void conn_pass(struct sock_conn *conn);

/* The connection is there already: a share that is used up is no reason to
 * refuse it. Its peer may have come back as another process meanwhile. */
static int conn_join(struct sock_conn *conn)
{
	struct ulnet_id id = { conn->hello.src_nid, conn->hello.src_pid };
	struct sock_peer *peer;
	int rc;

	peer = sock_peer_lookup_or_make(conn->cpt, &id);
	if (!peer)
		return -ENOMEM;
	rc = sock_peer_has_conns(peer) &&
			     (peer->incarnation !=
				      conn->hello.src_incarnation ||
			      peer->version != conn->version)
		     ? -ESTALE
		     : 0;
	if (!rc && !conn->active)
		rc = sock_host_keep(conn->cpt, &id.nid, &conn->host);
	if (!rc)
		sock_peer_rejoin(peer, conn);
	sock_peer_settle(peer);
	return rc;
}

static void on_arrived(struct work *w)
{
	struct sock_conn *conn = container_of(w, struct sock_conn, work);
	const struct sock_ni *sni = conn->sni;

	if (lnet_ni_cpt_of(sni->ni, &conn->hello.src_nid) != conn->cpt->index &&
	    !conn->cpt->stopping)
		conn_pass(conn);
	else if (conn->cpt->stopping || conn_join(conn))
		sock_conn_drop(conn);
}

/* What is left of it holds the passage. */
static void conn_pass(struct sock_conn *conn)
{
	struct sock_ni *sni = conn->sni;

	conn->cpt = &sni->cpts[lnet_ni_cpt_of(sni->ni, &conn->hello.src_nid)];
	conn->loop = conn->cpt->loop;
	conn->work.fn = on_arrived;
	loop_post(conn->loop, &conn->work);
}

/* ---- where they leave ---- */

static bool peer_can_move(const struct sock_peer *peer)
{
	const struct sock_conn *conn;

	if (!connect_is_idle(&peer->connect) || !list_empty(&peer->aside) ||
	    peer->cut_off || peer->severed)
		return false;
	list_for_each_entry (conn, &peer->conns, link)
		if (!sock_conn_can_move(conn))
			return false;
	return true;
}

/* The next peer behind @n that is a process of @nid, or NULL. */
static struct sock_peer *next_of(struct sock_cpt *cpt,
				 const struct ulnet_nid *nid, uint32_t *bucket,
				 struct hash_node **n)
{
	while ((*n = hash_walk(&cpt->peers, bucket, *n))) {
		struct sock_peer *peer =
			container_of(*n, struct sock_peer, hash);

		if (lnet_nid_eq(&peer->id.nid, nid))
			return peer;
	}
	return NULL;
}

bool sock_can_move(struct lnd_ni *ni, unsigned int index,
		   const struct ulnet_nid *nid)
{
	struct sock_cpt *cpt = &sock_ni_of(ni)->cpts[index];
	struct hash_node *n = NULL;
	struct sock_peer *peer;
	uint32_t bucket = 0;

	if (cpt->stopping)
		return false;
	while ((peer = next_of(cpt, nid, &bucket, &n)))
		if (!peer_can_move(peer))
			return false;
	return true;
}

static int conn_move(struct sock_conn *conn)
{
	struct sock_peer *peer = conn->peer;
	int rc = sock_conn_leave(conn);

	if (rc)
		return rc;
	/* A process may go by another pid here than its HELLO has said. */
	conn->hello.src_nid = peer->id.nid;
	conn->hello.src_pid = peer->id.pid;
	conn_pass(conn);
	return 0;
}

static void peer_move(struct sock_peer *peer)
{
	bool heard = peer->heard;

	while (!list_empty(&peer->conns)) {
		struct sock_conn *conn =
			list_first(&peer->conns, struct sock_conn, link);
		int rc;

		conn->proven = heard;
		rc = conn_move(conn);
		if (rc)
			sock_peer_close(peer, rc);
	}
	sock_peer_settle(peer);
}

void sock_move(struct lnd_ni *ni, unsigned int index,
	       const struct ulnet_nid *nid)
{
	struct sock_cpt *cpt = &sock_ni_of(ni)->cpts[index];
	struct hash_node *n = NULL;
	struct sock_peer *peer;
	uint32_t bucket = 0;

	while ((peer = next_of(cpt, nid, &bucket, &n)))
		peer_move(peer);
}
