/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/handshake_priv.h"

#include <errno.h>
#include <sys/socket.h>

#include "lnd/socklnd/peer.h"
#include "lnd/socklnd/tls.h"

#define VERSION_DEFAULT	      3
#define VERSION_DEFAULT_LARGE 4

uint8_t sock_hs_version(const struct ulnet_nid *nid)
{
	return lnet_nid_is_nid4(nid) ? VERSION_DEFAULT : VERSION_DEFAULT_LARGE;
}

/* ---- bytes ---- */

void sock_hs_expect(struct sock_conn *conn)
{
	conn->hs_step = 0;
	conn->hs_have = 0;
	conn->hs_want = SOCK_START_SIZE;
}

/* Returns the number of bytes read; 0: the peer has closed; -EAGAIN: none yet;
 * or another negative errno. */
static ssize_t hs_recv(struct sock_conn *conn, void *to, size_t len)
{
	ssize_t n;

	if (conn->tls)
		return sock_tls_recv(conn, to, len);
	do
		n = recv(conn->io.fd, to, len, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int sock_hs_read(struct sock_conn *conn)
{
	while (conn->hs_have < conn->hs_want) {
		ssize_t n = hs_recv(conn, conn->buf + conn->hs_have,
				    conn->hs_want - conn->hs_have);

		if (n <= 0)
			return n == -EAGAIN ? 0 : n ? (int)n : -ECONNRESET;
		conn->hs_have += (unsigned int)n;
	}
	return 1;
}

int sock_hs_write_fd(int fd, const void *buf, size_t len)
{
	ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int sock_hs_write(struct sock_conn *conn, void *buf, size_t len)
{
	const struct iovec iov = { buf, len };
	ssize_t n;

	if (!conn->tls)
		return sock_hs_write_fd(conn->io.fd, buf, len);
	n = sock_tls_writev(conn, &iov, 1);
	if (n < 0)
		return n == -EPIPE ? -ECONNRESET : (int)n;
	return (size_t)n == len && !sock_tls_waits(conn) ? 0 : -EIO;
}

size_t sock_hs_hello_make(uint8_t buf[SOCK_HELLO_LARGE_SIZE],
			  const struct lnd_ni *ni, unsigned int version,
			  const struct ulnet_nid *to, enum sock_type type)
{
	struct sock_hello hello = {
		.version = version,
		.src_nid = ni->nid,
		.dst_nid = *to,
		.src_pid = ni->conf->pid,
		.src_incarnation = ni->incarnation,
		.type = type,
	};

	return sock_hello_encode(&hello, buf);
}

int sock_hs_hello_write(struct sock_conn *conn, unsigned int version,
			const struct ulnet_nid *to, enum sock_type type)
{
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];

	return sock_hs_write(
		conn, buf,
		sock_hs_hello_make(buf, conn->sni->ni, version, to, type));
}

static int hello_step(struct sock_conn *conn)
{
	int rc;

	switch (conn->hs_step++) {
	case 0:
		rc = sock_hello_size(&conn->hello, conn->buf);
		if (rc > 0)
			conn->hs_want = (unsigned int)rc;
		return rc < 0 ? rc : 0;
	case 1:
		rc = sock_hello_decode(&conn->hello, conn->buf, conn->hs_want);
		if (rc > 0)
			conn->hs_want += (unsigned int)rc;
		return rc > 0 ? 0 : rc < 0 ? rc : 1;
	default:
		rc = sock_hello_check_ips(&conn->hello,
					  conn->buf + conn->hs_want -
						  4 * conn->hello.nips,
					  4 * conn->hello.nips);
		return rc ? rc : 1;
	}
}

int sock_hs_hello_read(struct sock_conn *conn)
{
	int rc;

	do {
		rc = sock_hs_read(conn);
		if (rc <= 0)
			return rc;
		rc = hello_step(conn);
	} while (rc == 0);
	return rc;
}

/* ---- active ---- */

/* Sends request and HELLO. Returns 0 or -errno. */
static int hs_greet(struct sock_conn *conn)
{
	uint8_t buf[SOCK_REQUEST_LARGE_SIZE];
	struct sock_peer *peer = conn->peer;
	int rc = sock_hs_write(conn, buf,
			       sock_request_encode(&peer->id.nid, buf));

	if (!rc)
		rc = sock_hs_hello_write(conn, conn->version, &peer->id.nid,
					 conn->type);
	if (!rc) {
		fsm_move(&conn->fsm, sock_conn_states, CONN_WAITING);
		conn->heard = loop_now(conn->loop);
		sock_hs_expect(conn);
		rc = sock_conn_watch(conn, ENV_READ);
	}
	return rc;
}

/* Begins TLS on a connection that TCP has opened. Returns 0 or -errno. */
static int hs_begin_tls(struct sock_conn *conn)
{
	int rc = sock_tls_connect(conn, conn->sni);

	if (rc)
		return rc;
	fsm_move(&conn->fsm, sock_conn_states, CONN_SECURING);
	conn->heard = loop_now(conn->loop);
	return sock_conn_watch(conn, ENV_READ);
}

/* Called when TCP has connected, or failed to. Returns 0 or -errno. */
static int hs_ask(struct sock_conn *conn)
{
	int rc = sock_error(conn->io.fd);

	if (rc)
		return rc;
	if (!sock_attempt_reached(conn))
		return 0;
	return conn->sni->secured ? hs_begin_tls(conn) : hs_greet(conn);
}

/* Called when TLS has failed with @rc: keeps the reason for the log. Returns
 * @rc. */
static int hs_insecure(struct sock_conn *conn, int rc)
{
	const char *why = sock_tls_error(conn);

	if (rc == -ECONNRESET || rc == -EPIPE)
		why = "ended during TLS: the peer's log says why; perhaps its "
		      "net is without tls: required";
	sock_peer_note(conn->peer, why);
	return rc;
}

/* Called while TLS's handshake is under way: continues it, and greets the peer
 * when both sides have proved who they are. Returns 0 or -errno. */
static int hs_securing(struct sock_conn *conn)
{
	char who[SOCK_TLS_WHO_SIZE], why[SOCK_TLS_WHO_SIZE + 64];
	int rc = 0;

	while (!rc && !sock_tls_is_up(conn))
		rc = sock_tls_pump(conn);
	if (rc == -EAGAIN)
		return 0;
	if (rc)
		return hs_insecure(conn, rc);
	if (sock_tls_speaks_for(conn, &conn->peer->id.nid))
		return hs_greet(conn);
	snprintf(why, sizeof(why), "the %s does not speak for this NID",
		 sock_tls_who(conn, who, sizeof(who)));
	sock_peer_note(conn->peer, why);
	return -EKEYREJECTED;
}

/* Judges the peer's HELLO. Returns a status for sock_attempt_done(). */
static int hello_judge(const struct sock_conn *conn)
{
	const struct sock_hello *h = &conn->hello;
	struct sock_peer *peer = conn->peer;
	const char *doubt = sock_tls_doubt(conn, &peer->id.nid);

	if (doubt) {
		sock_peer_note(peer, doubt);
		return -EKEYREJECTED;
	}
	if (h->type == SOCK_NONE) {
		if (h->version == conn->version)
			return -EALREADY;
		peer->offer = (uint8_t)h->version;
		return -EPROTONOSUPPORT;
	}
	if (h->version != conn->version ||
	    !lnet_nid_eq(&h->src_nid, &peer->id.nid) ||
	    h->src_pid != peer->id.pid ||
	    sock_type_invert(h->type) != (enum sock_type)conn->type)
		return -EPROTO;
	if (sock_peer_has_other_conns(peer, h)) {
		sock_peer_close(peer, -ECONNRESET);
		return -EALREADY;
	}
	return 0;
}

/* Called when a connection with TLS has ended with @rc before a HELLO came:
 * keeps the reason for the log. Returns the status for sock_attempt_done(). */
static int hs_refused(struct sock_conn *conn, int rc)
{
	const char *why = sock_tls_error(conn);

	if (rc == -ECONNRESET)
		why = "ended without an answer: the peer's log says why; "
		      "perhaps the certificate here does not speak for the "
		      "NID of this node";
	if (rc == -ECONNRESET || rc == -EKEYREJECTED)
		sock_peer_note(conn->peer, why);
	return rc == -EPROTONOSUPPORT ? -EPROTO : rc;
}

static void handshake_answered(struct sock_conn *conn)
{
	struct sock_peer *peer = conn->peer;
	int rc = sock_hs_hello_read(conn);
	bool goes_on;

	if (rc == 0)
		return;
	if (rc < 0 && conn->tls)
		rc = hs_refused(conn, rc);
	else if (rc == -EPROTONOSUPPORT)
		rc = -EPROTO;
	else if (rc > 0)
		rc = hello_judge(conn);
	/* hello_judge() may have closed the peer's old connections, and this
	 * attempt with them. */
	if (conn->fsm.state == CONN_CLOSED)
		return;
	goes_on = sock_attempt_answered(conn);
	if (rc) {
		sock_conn_drop(conn);
	} else {
		conn->swap = conn->hello.swap;
		sock_peer_add(peer, conn);
	}
	if (!goes_on)
		sock_attempt_done(peer, rc);
}

static void on_active(struct env_io *io, int revents)
{
	struct sock_conn *conn = container_of(io, struct sock_conn, io);
	int rc = revents & ENV_ERROR ? -ENOMEM : 0;

	if (!rc && conn->fsm.state == CONN_WAITING) {
		handshake_answered(conn);
		return;
	}
	if (!rc)
		rc = conn->fsm.state == CONN_SECURING ? hs_securing(conn)
						      : hs_ask(conn);
	if (rc)
		sock_attempt_done(conn->peer, rc);
}

/* Returns the port at which the peer with @nid listens. */
static uint16_t port_of(const struct sock_ni *sni, const struct ulnet_nid *nid)
{
	uint16_t usual = sni->ni->conf->port;

	return sni->ni->ports ? lnd_ports_get(sni->ni->ports, nid, usual)
			      : usual;
}

static int connect_to(struct sock_ni *sni, const struct ulnet_nid *nid,
		      uint16_t port)
{
	const struct ulnet_nid *from = &sni->ni->nid;
	int fd = sock_connect(from, nid, port, sni->privileged, sni->tunables);

	if (fd != -EACCES || !sni->privileged)
		return fd;
	if (!atomic_exchange(&sni->told_unprivileged, true))
		log_warn("socklnd",
			 "no privilege for source ports below 1024 "
			 "(CAP_NET_BIND_SERVICE): peers with accept=secure, "
			 "which kernel nodes have by default, will refuse");
	return sock_connect(from, nid, port, false, sni->tunables);
}

static uint8_t version_for(const struct sock_peer *peer)
{
	if (peer->version)
		return peer->version;
	if (peer->offer)
		return peer->offer;
	return lnet_large_nids(peer->cpt->sni->ni)
		       ? VERSION_DEFAULT_LARGE
		       : sock_hs_version(&peer->id.nid);
}

int sock_handshake_connect(struct sock_peer *peer, enum sock_type type,
			   struct sock_conn **conn_p)
{
	struct sock_ni *sni = peer->cpt->sni;
	uint16_t port = port_of(sni, &peer->id.nid);
	union netif_addr to = netif_addr(&peer->id.nid, port);
	int fd = connect_to(sni, &peer->id.nid, port);
	struct sock_conn *conn;
	int rc;

	if (fd < 0)
		return fd;
	conn = sock_conn_new(peer->cpt->loop, fd, &to);
	if (!conn)
		return -ENOMEM;
	conn->sni = sni;
	conn->cpt = peer->cpt;
	conn->peer = peer;
	conn->active = true;
	conn->type = (int8_t)type;
	conn->version = version_for(peer);
	fsm_move(&conn->fsm, sock_conn_states, CONN_CONNECTING);
	conn->io.fn = on_active;
	rc = sock_conn_watch(conn, ENV_WRITE);
	if (rc) {
		sock_conn_drop(conn);
		return rc;
	}
	*conn_p = conn;
	return 0;
}
