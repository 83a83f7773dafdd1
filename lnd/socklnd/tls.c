/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/tls.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "lnd/socklnd/peer.h"
#include "secure/stream.h"

/* Bytes of one read during a handshake, when the connection has no CPT's buffer
 * yet. */
#define HANDSHAKE_READ 4096
/* Reads that empty a socket before it is closed, at most. */
#define EMPTY_READS 16

/* ---- identities ---- */

static bool list_has(const char *list, const struct ulnet_nid *nid)
{
	struct ulnet_nidlist *nids;
	bool has;

	if (lnet_nidlist_parse(list, &nids, NULL))
		return false;
	has = lnet_nidlist_match(nids, nid);
	lnet_nidlist_free(nids);
	return has;
}

/* May @who, which is not NULL, speak for @nid? */
static bool may_speak(const struct lnd_ni *ni, const struct identity *who,
		      const struct ulnet_nid *nid)
{
	const char *list = who->nids;

	if (who->kind == IDENTITY_CLUSTER_KEY)
		return true;
	for (unsigned int i = 0; i < who->nnids; i++) {
		if (list_has(list, nid))
			return true;
		list += strlen(list) + 1;
	}
	return lnd_tls_rules_allow(ni->tls_rules, who->name, nid);
}

bool sock_tls_speaks_for(const struct sock_conn *conn,
			 const struct ulnet_nid *nid)
{
	return may_speak(conn->sni->ni, stream_peer(conn->tls), nid);
}

char *sock_tls_who(const struct sock_conn *conn, char *buf, size_t size)
{
	const struct identity *who = stream_peer(conn->tls);

	if (who->kind == IDENTITY_CLUSTER_KEY)
		snprintf(buf, size, "key %s of the cluster", who->name);
	else
		snprintf(buf, size, "certificate of %s", who->name);
	return buf;
}

/* ---- what peers have proved ---- */

static uint64_t proof_hash(const struct sock_ni *sni,
			   const struct ulnet_nid *nid)
{
	return sock_nid_hash(nid, 0, sni->seed);
}

/* Forgets what @peer has proved. The caller holds sock_ni.proofs_lock. */
static void forget(struct sock_ni *sni, struct sock_peer *peer)
{
	if (!peer->who)
		return;
	hash_del(&sni->proofs, &peer->proof);
	identity_put(peer->who);
	peer->who = NULL;
}

void sock_tls_prove(struct sock_peer *peer, const struct sock_conn *conn)
{
	struct sock_ni *sni = conn->sni;

	if (!conn->tls)
		return;
	pthread_mutex_lock(&sni->proofs_lock);
	forget(sni, peer);
	/* If there is no memory, the peer is believed to have its own NID only.
	 */
	if (!hash_add(&sni->proofs, &peer->proof,
		      proof_hash(sni, &peer->id.nid)))
		peer->who = identity_ref(stream_peer(conn->tls));
	pthread_mutex_unlock(&sni->proofs_lock);
}

void sock_tls_forget(struct sock_peer *peer)
{
	struct sock_ni *sni = peer->cpt->sni;

	if (!sni->secured)
		return;
	pthread_mutex_lock(&sni->proofs_lock);
	forget(sni, peer);
	pthread_mutex_unlock(&sni->proofs_lock);
}

int sock_tls_vouches(struct lnd_ni *ni, const struct ulnet_nid *peer,
		     const struct ulnet_nid *nid)
{
	struct sock_ni *sni = sock_ni_of(ni);
	struct sock_peer *p;
	int may = -ENOENT;

	pthread_mutex_lock(&sni->proofs_lock);
	/* Several processes may have one NID. Those that only call do not speak
	 * for it. */
	hash_for_each_equal (p, &sni->proofs, proof_hash(sni, peer), proof)
		if (lnet_nid_eq(&p->id.nid, peer) &&
		    !sock_pid_is_user(p->id.pid))
			may = may > 0 || may_speak(ni, p->who, nid);
	pthread_mutex_unlock(&sni->proofs_lock);
	return may;
}

/* ---- an NI ---- */

/* Logs a warning if the keys of this node do not speak for its own NID: a
 * mistake that only peers would notice. */
static void warn_of_own(const struct sock_ni *sni)
{
	const struct ulnet_nid *nid = &sni->ni->nid;
	struct identity *self = keys_self(sni->cpts[0].keys);
	char text[LNET_NIDSTR_SIZE];

	if (self && !may_speak(sni->ni, self, nid))
		log_warn("socklnd",
			 "%s: the certificate of %s does not speak for this "
			 "NID, so peers without a rule that says so will "
			 "refuse it (ulnet-keys --nids, lnetctl tls set)",
			 lnet_nid_format(nid, text, sizeof(text)), self->name);
	identity_put(self);
}

int sock_tls_startup(struct sock_ni *sni)
{
	struct lnd_ni *ni = sni->ni;

	pthread_mutex_init(&sni->proofs_lock, NULL);
	hash_init(&sni->proofs);
	if (!ni->tunables[SOCK_tls])
		return 0;
#ifndef WITH_TLS
	ni->why = "tls: required: this was built without TLS (--without-tls)";
	return -EOPNOTSUPP;
#endif
	if (!ni->conf->keys) {
		ni->why = "tls: required: the node has no keys (--keys)";
		return -ENOKEY;
	}
	for (unsigned int i = 0; i < ni->cpts; i++)
		sni->cpts[i].keys = keys_ref((struct keys *)ni->conf->keys);
	sni->secured = true;
	ni->proven = true;
	warn_of_own(sni);
	return 0;
}

void sock_tls_free(struct sock_ni *sni)
{
	hash_fini(&sni->proofs);
	pthread_mutex_destroy(&sni->proofs_lock);
	for (unsigned int i = 0; i < sni->ni->cpts; i++)
		keys_put(sni->cpts[i].keys);
}

/* ---- other keys ---- */

static const char *doubt(const struct sock_cpt *cpt, const struct identity *who,
			 const struct ulnet_nid *nid)
{
	const char *why = keys_doubt(cpt->keys, who);

	if (!why && !may_speak(cpt->sni->ni, who, nid))
		why = "neither its certificate nor a rule lets it speak for "
		      "this NID any more";
	return why;
}

const char *sock_tls_doubt(const struct sock_conn *conn,
			   const struct ulnet_nid *nid)
{
	return conn->tls ? doubt(conn->cpt, stream_peer(conn->tls), nid) : NULL;
}

static const char *first_doubt(struct list *conns, const struct ulnet_nid *nid)
{
	const struct sock_conn *conn;
	const char *why = NULL;

	list_for_each_entry (conn, conns, link) {
		why = sock_tls_doubt(conn, nid);
		if (why)
			break;
	}
	return why;
}

const char *sock_tls_peer_doubt(struct sock_peer *peer)
{
	const struct ulnet_nid *nid = &peer->id.nid;
	const char *why = first_doubt(&peer->conns, nid);

	if (!why)
		why = first_doubt(&peer->suspended, nid);
	if (!why && peer->who)
		why = doubt(peer->cpt, peer->who, nid);
	return why;
}

bool sock_tls_use_keys(struct sock_cpt *cpt)
{
	struct lnd_ni *ni = cpt->sni->ni;
	struct keys *before = cpt->keys;

	if (!cpt->sni->secured)
		return false;
	if (before ==
	    (struct keys *)ni->conf->keys) /* only rules have changed */
		return true;
	cpt->keys = keys_ref((struct keys *)ni->conf->keys);
	keys_put(before);
	if (cpt->index == 0)
		warn_of_own(cpt->sni);
	return true;
}

/* ---- life of a connection ---- */

static int begin(struct sock_conn *conn, struct sock_ni *sni,
		 enum handshake_side side)
{
	/* A listener's connections, which have no CPT yet, are on CPT 0. */
	const struct sock_cpt *cpt = conn->cpt ? conn->cpt : &sni->cpts[0];

	conn->tls = stream_new(side, cpt->keys);
	return conn->tls ? 0 : -ENOMEM;
}

int sock_tls_connect(struct sock_conn *conn, struct sock_ni *sni)
{
	int rc = begin(conn, sni, HANDSHAKE_CLIENT);

	return rc ? rc : sock_tls_flush(conn);
}

/* Turns @rc, an error of the stream, into one for socklnd. -EACCES (a side is
 * not believed) gets an errno of its own, since socklnd uses -EACCES where this
 * node lacks a permission. */
static int tls_status(int rc)
{
	return rc == -EACCES ? -EKEYREJECTED : rc;
}

static int take(struct sock_conn *conn, const void *bytes, size_t n)
{
	int rc = stream_take(conn->tls, bytes, n);
	/* Flushes after an error, too: the bytes tell the peer the reason. */
	int flushed = sock_tls_flush(conn);

	return rc ? tls_status(rc) : flushed;
}

int sock_tls_accept(struct sock_conn *conn, struct sock_ni *sni,
		    const void *bytes, size_t n)
{
	int rc = begin(conn, sni, HANDSHAKE_SERVER);

	return rc ? rc : take(conn, bytes, n);
}

/* Reads what is left in the socket. Otherwise the system would reset the
 * connection when the socket is closed, and the peer might not get what was
 * sent last. */
static void socket_empty(int fd)
{
	uint8_t gone[HANDSHAKE_READ];

	for (unsigned int i = 0; i < EMPTY_READS; i++)
		if (recv(fd, gone, sizeof(gone), MSG_DONTWAIT) <= 0)
			return;
}

void sock_tls_free_conn(struct sock_conn *conn)
{
	if (!conn->tls)
		return;
	stream_close(conn->tls);
	(void)!sock_tls_flush(conn);
	if (*stream_error(conn->tls))
		socket_empty(conn->io.fd);
	stream_free(conn->tls);
	conn->tls = NULL;
}

bool sock_tls_is_up(const struct sock_conn *conn)
{
	return stream_is_up(conn->tls);
}

const char *sock_tls_error(const struct sock_conn *conn)
{
	return stream_error(conn->tls);
}

/* ---- in ---- */

int sock_tls_pump(struct sock_conn *conn)
{
	uint8_t small[HANDSHAKE_READ];
	/* A connection that is not open has no CPT's buffer to read into. */
	bool open = sock_conn_is_open(conn);
	uint8_t *buf = open ? conn->cpt->rx_buffer : small;
	size_t room = MIN(stream_room(conn->tls),
			  open ? SOCK_RX_BUFFER : sizeof(small));
	ssize_t n = room ? recv(conn->io.fd, buf, room, 0) : 0;

	if (!room)
		return -EAGAIN;
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0) {
		stream_end(conn->tls);
		return stream_is_up(conn->tls) ? 0 : -ECONNRESET;
	}
	return take(conn, buf, (size_t)n);
}

ssize_t sock_tls_recv(struct sock_conn *conn, void *to, size_t n)
{
	for (;;) {
		ssize_t did = stream_read(conn->tls, to, n);
		int rc;

		if (did != -EAGAIN)
			return did < 0 ? tls_status((int)did) : did;
		rc = sock_tls_pump(conn);
		if (rc)
			return rc;
	}
}

/* Fills @to with what the stream has. Returns what stream_read() does. */
static ssize_t fill(struct sock_conn *conn, const struct iovec *to)
{
	size_t have = 0;

	while (have < to->iov_len) {
		ssize_t did =
			stream_read(conn->tls, (uint8_t *)to->iov_base + have,
				    to->iov_len - have);

		/* An error or the end is not lost: the next call returns it
		 * again. */
		if (did <= 0)
			return have ? (ssize_t)have : did;
		have += (size_t)did;
	}
	return (ssize_t)have;
}

ssize_t sock_tls_readv(struct sock_conn *conn, const struct iovec *iov,
		       unsigned int niov)
{
	ssize_t all = 0, n = 0;

	for (unsigned int i = 0; i < niov; i++) {
		n = fill(conn, &iov[i]);
		if (n > 0)
			all += n;
		if (n < (ssize_t)iov[i].iov_len)
			break;
	}
	if (all || !n)
		return all;
	errno = -tls_status((int)n);
	return -1;
}

/* ---- out ---- */

bool sock_tls_waits(const struct sock_conn *conn)
{
	size_t n;

	stream_bytes(conn->tls, &n);
	return n;
}

int sock_tls_flush(struct sock_conn *conn)
{
	size_t n;
	const uint8_t *bytes = stream_bytes(conn->tls, &n);
	ssize_t did = n ? send(conn->io.fd, bytes, n, MSG_NOSIGNAL) : 0;

	if (did < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	stream_sent(conn->tls, (size_t)did);
	conn->written += (uint64_t)did;
	return 0;
}

/* Writes the bytes of @from until the socket takes no more. Returns what
 * sock_tls_writev() does. */
static ssize_t pour(struct sock_conn *conn, const struct iovec *from)
{
	size_t done = 0;

	while (done < from->iov_len) {
		ssize_t did = stream_write(conn->tls,
					   (uint8_t *)from->iov_base + done,
					   from->iov_len - done);
		int rc;

		if (did > 0)
			done += (size_t)did;
		else if (did != -EAGAIN)
			return did;
		if (did != -EAGAIN)
			continue;
		rc = sock_tls_flush(conn);
		if (rc)
			return rc;
		if (sock_tls_waits(conn))
			break;
	}
	return (ssize_t)done;
}

ssize_t sock_tls_writev(struct sock_conn *conn, const struct iovec *iov,
			unsigned int niov)
{
	ssize_t all = 0;
	int rc;

	for (unsigned int i = 0; i < niov; i++) {
		ssize_t n = pour(conn, &iov[i]);

		if (n < 0)
			return tls_status((int)n);
		all += n;
		if (n < (ssize_t)iov[i].iov_len)
			break;
	}
	rc = sock_tls_flush(conn);
	return rc ? rc : all ? all : -EAGAIN;
}

void sock_tls_close(struct sock_conn *conn)
{
	stream_close(conn->tls);
}
