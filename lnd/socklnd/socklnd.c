/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/socklnd.h"

#include <errno.h>

#include "lnd/netif.h"
#include "lnd/socklnd/handshake.h"
#include "lnd/socklnd/host.h"
#include "lnd/socklnd/message.h"
#include "lnd/socklnd/tls.h"

#define PAGE 4096

static void socklnd_on_stopped(struct work *w)
{
	struct sock_cpt *cpt = container_of(w, struct sock_cpt, stopped);

	BUG_ON(cpt->peers.count || cpt->hosts.count);
	lnet_ni_stopped(cpt->sni->ni, cpt->index);
}

/* Schedules lnet_ni_stopped() after everything else that this turn does. */
static void stop_soon(struct sock_cpt *cpt)
{
	loop_defer_last(cpt->loop, &cpt->stopped);
}

static void on_all_arrived(struct work *w)
{
	stop_soon(&container_of(w, struct sock_ni, passage.closed)->cpts[0]);
}

/* ---- startup ---- */

static void sock_cpt_fini(struct sock_cpt *cpt)
{
	hash_fini(&cpt->peers);
	hash_fini(&cpt->hosts);
	pool_fini(&cpt->txs);
	pool_fini(&cpt->rxs);
	free(cpt->rx_buffer);
	free(cpt->tx_buffer);
}

static int sock_cpt_init(struct sock_ni *sni, unsigned int i)
{
	struct sock_cpt *cpt = &sni->cpts[i];

	cpt->sni = sni;
	cpt->index = i;
	cpt->loop = sni->ni->loops[i];
	/* Either all connections of an NI have TLS, or none has. */
	cpt->flush_work.fn = sni->secured ? sock_tx_flush_tls : sock_tx_flush;
	cpt->stopped.fn = socklnd_on_stopped;
	sock_link_init(cpt);
	hash_init(&cpt->peers);
	hash_init(&cpt->hosts);
	sock_attempts_init(cpt);
	list_init(&cpt->flush);
	pool_init(&cpt->txs, sizeof(struct sock_tx), 0);
	pool_init(&cpt->rxs, sizeof(struct sock_rx), 0);
	/* Whole pages, since copies to them are fastest. */
	cpt->rx_buffer = aligned_alloc(PAGE, SOCK_RX_BUFFER);
	cpt->tx_buffer = aligned_alloc(PAGE, SOCK_TX_BUFFER);
	return cpt->rx_buffer && cpt->tx_buffer ? 0 : -ENOMEM;
}

static void sock_free(struct lnd_ni *ni)
{
	struct sock_ni *sni = sock_ni_of(ni);

	for (unsigned int i = 0; i < ni->cpts; i++)
		sock_cpt_fini(&sni->cpts[i]);
	sock_tls_free(sni);
	free(sni->cpts);
	free(sni);
}

static int sock_join(void *arg)
{
	struct sock_ni *sni = arg;
	int rc;

	sni->seed = loop_random(sni->ni->loops[0]);
	rc = sock_listener_join(sni);
	if (rc)
		return rc;
	rc = sock_link_join(sni);
	if (rc)
		sock_listener_leave(sni);
	return rc;
}

static int sock_startup(struct lnd_ni *ni)
{
	int64_t *conns = &ni->tunables[SOCK_conns_per_peer];
	struct sock_ni *sni;
	int rc = 0;

	sni = calloc(1, sizeof(*sni));
	if (!sni)
		return -ENOMEM;
	sni->ni = ni;
	sni->tunables = ni->tunables;
	if (!*conns)
		*conns = netif_conns(&ni->nid);
	ni->numa_node = netif_numa_node(ni->interface);
	ni->prefix = netif_prefix(&ni->nid);
	sni->conns_per_peer = (unsigned int)*conns;
	sni->privileged = ni->conf->accept == LNET_ACCEPT_SECURE ||
			  sock_port_is_privileged(ni->conf->port);
	atomic_init(&sni->up, true);
	list_init(&sni->in_listener);
	passage_init(&sni->passage, ni->loops[0], on_all_arrived);
	ni->priv = sni;
	sni->cpts = calloc(ni->cpts, sizeof(*sni->cpts));
	if (!sni->cpts) {
		free(sni);
		return -ENOMEM;
	}
	rc = sock_tls_startup(sni);
	for (unsigned int i = 0; i < ni->cpts && !rc; i++)
		rc = sock_cpt_init(sni, i);
	if (!rc)
		rc = loop_call(ni->loops[0], sock_join, sni);
	if (rc)
		sock_free(ni);
	return rc;
}

/* ---- shutdown ---- */

static void sock_shutdown(struct lnd_ni *ni, unsigned int index)
{
	struct sock_ni *sni = sock_ni_of(ni);
	struct sock_cpt *cpt = &sni->cpts[index];

	cpt->stopping = true;
	if (index == 0) {
		sock_link_leave(sni);
		sock_listener_leave(sni);
	}
	sock_peers_stop(cpt);
	if (index)
		stop_soon(cpt);
	else
		passage_close(&sni->passage);
}

/* ---- messages ---- */

static void sock_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status)
{
	(void)ni;
	if (msg->incoming)
		sock_rx_cancel(msg->priv, status);
	else
		sock_tx_cancel(msg->priv, status);
}

/* ---- connections that move to another CPT ---- */

/*
 * Open connections move when lnet_ni_cpt_of() names a new owner for the NID
 * that they lead to. On their way they count in the NI's passage. What comes in
 * meanwhile waits in the socket. A connection moves only once, and then uses
 * two descriptors (conn.c).
 */

static void conn_pass(struct sock_conn *conn);

/* Called when @conn has arrived on this CPT. It joins even if its host has used
 * up its share, since it exists already; but its peer may have restarted
 * meanwhile. Returns 0 or -errno. */
static int conn_join(struct sock_conn *conn)
{
	struct ulnet_id id = { conn->hello.src_nid, conn->hello.src_pid };
	struct sock_peer *peer = sock_peer_lookup_or_make(conn->cpt, &id);
	int rc = 0;

	if (!peer)
		return -ENOMEM;
	if (sock_tls_doubt(conn, &id.nid))
		rc = -EKEYREJECTED;
	else if (sock_peer_has_other_conns(peer, &conn->hello))
		rc = -ESTALE;
	if (!rc && !conn->active)
		rc = sock_host_keep(conn->cpt, &id.nid, &conn->host);
	if (!rc)
		sock_peer_rejoin(peer, conn);
	sock_peer_settle(peer);
	return rc;
}

static void socklnd_on_arrived(struct work *w)
{
	struct sock_conn *conn = container_of(w, struct sock_conn, work);
	const struct sock_ni *sni = conn->sni;

	if (lnet_ni_cpt_of(sni->ni, &conn->hello.src_nid) != conn->cpt->index &&
	    !conn->cpt->stopping)
		conn_pass(conn);
	else if (conn->cpt->stopping || conn_join(conn))
		sock_conn_drop(conn);
}

/* Sends @conn to the CPT that owns its NID. conn->old_fd counts in the passage.
 */
static void conn_pass(struct sock_conn *conn)
{
	struct sock_ni *sni = conn->sni;

	conn->cpt = &sni->cpts[lnet_ni_cpt_of(sni->ni, &conn->hello.src_nid)];
	conn->loop = conn->cpt->loop;
	conn->work.fn = socklnd_on_arrived;
	loop_post(conn->loop, &conn->work);
}

/* Closes the connections of @peer at the end of the turn. A peer that has
 * renewed its certificate, or that a rule lets in again, connects again. */
static void cut_soon(struct sock_peer *peer, const char *why)
{
	struct sock_cpt *cpt = peer->cpt;
	char nid[LNET_NIDSTR_SIZE];

	log_warn_limited(&cpt->complaints, loop_now(cpt->loop), "socklnd",
			 "%s: is cut off: %s",
			 sock_peer_str(peer, nid, sizeof(nid)), why);
	peer->cut_due = true;
	sock_peer_settle(peer);
}

/* What lnd.use_keys() calls: takes the node's new keys. */
static void sock_use_keys(struct lnd_ni *ni, unsigned int index)
{
	struct sock_cpt *cpt = &sock_ni_of(ni)->cpts[index];
	struct sock_peer *peer;

	if (cpt->stopping || !sock_tls_use_keys(cpt))
		return;
	hash_for_each (peer, &cpt->peers, hash) {
		const char *why = sock_tls_peer_doubt(peer);

		if (why)
			cut_soon(peer, why);
	}
}

static bool socklnd_peer_can_move(const struct sock_peer *peer)
{
	const struct sock_conn *conn;

	if (!connect_is_idle(&peer->connect) || !list_empty(&peer->suspended) ||
	    peer->abort_due || peer->cut_due || peer->conn_lost)
		return false;
	list_for_each_entry (conn, &peer->conns, link)
		if (!sock_conn_can_move(conn))
			return false;
	return true;
}

static bool sock_can_move(struct lnd_ni *ni, unsigned int index,
			  const struct ulnet_nid *nid)
{
	struct sock_cpt *cpt = &sock_ni_of(ni)->cpts[index];
	struct sock_peer *peer;

	if (cpt->stopping)
		return false;
	hash_for_each (peer, &cpt->peers, hash)
		if (lnet_nid_eq(&peer->id.nid, nid) &&
		    !socklnd_peer_can_move(peer))
			return false;
	return true;
}

static int conn_move(struct sock_conn *conn)
{
	struct sock_peer *peer = conn->peer;
	int rc = sock_conn_leave(conn);

	if (rc)
		return rc;
	/* The peer's pid may differ from the one in its HELLO: see
	 * sock_peer_greeted(). */
	conn->hello.src_nid = peer->id.nid;
	conn->hello.src_pid = peer->id.pid;
	conn_pass(conn);
	return 0;
}

static void socklnd_peer_move(struct sock_peer *peer)
{
	while (!list_empty(&peer->conns)) {
		struct sock_conn *conn =
			list_first(&peer->conns, struct sock_conn, link);
		int rc;

		conn->peer_heard = peer->heard;
		conn->peer_opened_at = peer->opened_at;
		rc = conn_move(conn);
		if (rc)
			sock_peer_close(peer, rc);
	}
	sock_peer_settle(peer);
}

static void sock_move(struct lnd_ni *ni, unsigned int index,
		      const struct ulnet_nid *nid)
{
	struct sock_cpt *cpt = &sock_ni_of(ni)->cpts[index];
	struct sock_peer *peer;

	hash_for_each (peer, &cpt->peers, hash)
		if (lnet_nid_eq(&peer->id.nid, nid))
			socklnd_peer_move(peer);
}

static uint64_t sock_paused_until(struct lnd_ni *ni, unsigned int index,
				  const struct ulnet_id *id)
{
	const struct sock_peer *peer =
		sock_peer_lookup(&sock_ni_of(ni)->cpts[index], id);

	return peer ? connect_paused_until(&peer->connect) : 0;
}

static const struct lnd_tunable sock_tunables[SOCK_TUNABLES] = {
#define TUNABLE(name, ...) [SOCK_##name] = LND_TUNABLE(name, __VA_ARGS__),
#include "lnd/socklnd/tunable.def"
#undef TUNABLE
};

const struct lnd socklnd = {
	.name = "tcp",
	.type = LNET_TYPE_SOCK,
	.tunables = sock_tunables,
	.ntunables = SOCK_TUNABLES,
	.resolve = netif_resolve,
	.source = netif_source,
	.startup = sock_startup,
	.shutdown = sock_shutdown,
	.free = sock_free,
	.send = sock_tx_send,
	.push = sock_tx_push,
	.recv = sock_rx_recv,
	.eager_recv = sock_rx_eager_recv,
	.cancel = sock_cancel,
	.has_begun = sock_tx_has_begun,
	.is_connected = sock_is_connected,
	.paused_until = sock_paused_until,
	.vouches = sock_tls_vouches,
	.use_keys = sock_use_keys,
	.can_move = sock_can_move,
	.move = sock_move,
};
