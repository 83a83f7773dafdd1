/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/iov.h"
#include "lnd/socklnd/tls.h"

/* Payloads of at least this size are read straight to their place, and not
 * copied. */
#define DIRECT_MIN 8192u
/* Sizes of the chunks in which a long payload is waited for: each wait costs
 * system calls, and perhaps a wake-up. */
#define CHUNK_MAX (256u << 10)
#define CHUNK_MIN (64u << 10)
/* When the peer has closed one connection, each of the others is read at most
 * so often before all are closed. */
#define DRAIN_READS 64

/* ---- the end of a message ---- */

/* Ends a message that LNet has answered, and whose payload is complete or never
 * will be. Users' handlers run. */
static void rx_finish(struct sock_rx *rx)
{
	struct lnd_msg *msg = rx->msg;
	int status = rx->status;
	enum ulnet_cause cause =
		status ? sock_loss_begun(status) : LNET_CAUSE_OK;

	if (msg && rx->bounce && !status)
		iov_scatter(msg->iov, msg->niov, msg->offset, rx->bounce,
			    msg->length);
	free(rx->bounce);
	pool_put(&rx->cpt->rxs, rx);
	if (msg)
		lnet_finalize(msg, status, cause);
}

static uint32_t csum_of_msg(const struct lnd_msg *msg, uint32_t csum)
{
	struct iovec iov[LNET_MAX_IOV];
	unsigned int n =
		iov_slice(iov, msg->iov, msg->niov, msg->offset, msg->length);

	for (unsigned int i = 0; i < n; i++)
		csum = sock_csum(csum, iov[i].iov_base, iov[i].iov_len);
	return csum;
}

/* Does the payload have the checksum that was announced? Also true for a
 * payload that was truncated or discarded, which is not checked (spec 3.10). */
static bool csum_matches(const struct sock_rx *rx, uint32_t announced)
{
	if (!rx->summed)
		return true;
	if (rx->bounce)
		return sock_csum(rx->csum, rx->bounce, rx->length) == announced;
	if (rx->length && (!rx->msg || rx->msg->length != rx->length))
		return true;
	return (rx->length ? csum_of_msg(rx->msg, rx->csum) : rx->csum) ==
	       announced;
}

/* Called when all of the payload has been read. Returns 0; -EIO: the checksum
 * is wrong. */
static int rx_complete(struct sock_conn *conn)
{
	struct sock_rx *rx = conn->rx;
	int rc = 0;

	conn->rx = NULL;
	rx->conn = NULL;
	if (!csum_matches(rx, conn->hdr.csum)) {
		rc = rx->status = -EIO;
	} else if (rx->cookie) {
		sock_tx_ack(conn, rx->cookie);
	}
	if (rx->answered)
		rx_finish(rx);
	return rc;
}

void sock_rx_conn_closed(struct sock_conn *conn, int status)
{
	struct sock_rx *rx = conn->rx;

	if (!rx)
		return;
	conn->rx = NULL;
	rx->conn = NULL;
	rx->status = status;
	if (rx->answered)
		rx_finish(rx);
}

/* ---- LNet's answers ---- */

/* Called when nobody wants the payload any more. Frees its bounce buffer at
 * once, because the rest of the payload may take long to come. */
static void rx_discard(struct sock_rx *rx)
{
	rx->msg = NULL;
	free(rx->bounce);
	rx->bounce = NULL;
}

/* Called when LNet has answered: if reading is paused, schedules
 * rx_on_resume(). Does not read at once, because LNet is in the midst of
 * something. */
static void rx_resume(struct sock_conn *conn)
{
	if (likely(conn->reading != CONN_READ_PAUSED))
		return;
	conn->reading = CONN_READ_RESUMING;
	loop_timer_arm(conn->loop, &conn->timer, loop_now(conn->loop));
}

/* Does LNet answer from within lnet_parse(), and is all of the payload in the
 * read buffer? */
static bool rx_is_buffered(const struct sock_rx *rx)
{
	const struct sock_conn *conn = rx->conn;

	return conn && conn->buffered && conn->buffered_len >= rx->length &&
	       !rx->summed;
}

/* Stores the payload from the read buffer, and ends the message at once. This
 * is the fast path for small messages, which therefore need no deadline. */
static void rx_take_buffered(struct sock_rx *rx, struct lnd_msg *msg)
{
	struct sock_conn *conn = rx->conn;

	iov_scatter(msg->iov, msg->niov, msg->offset, conn->buffered,
		    msg->length);
	conn->rx = NULL;
	conn->buffered = NULL;
	if (rx->cookie)
		sock_tx_ack(conn, rx->cookie);
	pool_put(&rx->cpt->rxs, rx);
	lnet_finalize(msg, 0, LNET_CAUSE_OK);
}

void sock_rx_recv(struct lnd_ni *ni, void *priv, struct lnd_msg *msg,
		  uint32_t rlength)
{
	struct sock_rx *rx = priv;

	(void)ni;
	(void)rlength;
	if (likely(msg && rx_is_buffered(rx))) {
		rx_take_buffered(rx, msg);
		return;
	}
	rx->answered = true;
	rx->msg = msg;
	if (msg)
		msg->priv = rx;
	else
		rx_discard(rx);
	if (rx->conn)
		rx_resume(rx->conn);
	else
		rx_finish(rx);
}

int sock_rx_eager_recv(struct lnd_ni *ni, void *priv)
{
	struct sock_rx *rx = priv;

	(void)ni;
	if (rx->bounced)
		return 0;
	if (rx->length) {
		rx->bounce = malloc(rx->length);
		if (!rx->bounce)
			return -ENOMEM;
	}
	rx->bounced = true;
	if (rx->conn)
		rx_resume(rx->conn);
	return 0;
}

void sock_rx_detach(struct sock_conn *conn, struct list *coming)
{
	struct sock_rx *rx = conn->rx;

	if (!rx || !rx->msg)
		return;
	list_add_tail(coming, &rx->msg->link);
	rx_discard(rx);
}

void sock_rx_end(struct list *coming, int status)
{
	struct lnd_msg *msg;

	while ((msg = list_pop(coming, struct lnd_msg, link)))
		lnet_finalize(msg, status, sock_loss_begun(status));
}

void sock_rx_cancel(struct sock_rx *rx, int status)
{
	struct lnd_msg *msg = rx->msg;

	rx_discard(rx);
	lnet_finalize(msg, status, LNET_CAUSE_NETWORK_TIMEOUT);
}

/* ---- bytes ---- */

/* Writes to @iov the fragments where the next bytes of the payload go, and to
 * *@bytes their total size. Returns their number; 0: the payload is
 * discarded. */
static in_line unsigned int destination(const struct sock_rx *rx,
					struct iovec *iov, size_t *bytes)
{
	const struct lnd_msg *msg = rx->msg;

	*bytes = 0;
	if (rx->bounce) {
		*bytes = rx->length - rx->got;
		iov[0] = (struct iovec){ rx->bounce + rx->got, *bytes };
		return 1;
	}
	if (!msg || rx->got >= msg->length)
		return 0;
	*bytes = msg->length - rx->got;
	return iov_slice(iov, msg->iov, msg->niov, msg->offset + rx->got,
			 *bytes);
}

static uint32_t left_of(const struct sock_rx *rx)
{
	return rx->length - rx->got;
}

/* Stores payload from the read buffer. Returns how many of the @len bytes
 * belonged to the message. */
static size_t take_payload(struct sock_rx *rx, const uint8_t *p, size_t len)
{
	const struct lnd_msg *msg = rx->msg;
	uint32_t n = (uint32_t)MIN(len, rx->length - rx->got);

	if (rx->bounce)
		memcpy(rx->bounce + rx->got, p, n);
	else if (msg && rx->got < msg->length)
		iov_scatter(msg->iov, msg->niov, msg->offset + rx->got, p,
			    MIN(n, msg->length - rx->got));
	rx->got += n;
	return n;
}

/* Returns the checksum of the header at @lnet. With version 2 it also covers
 * socklnd's own header, which is in front of @lnet, with its checksum set to 0.
 */
static uint32_t csum_start(const struct sock_conn *conn, const uint8_t *lnet)
{
	uint8_t buf[SOCK_HDR_SIZE];

	if (conn->version > 2)
		return SOCK_CSUM_INIT;
	memcpy(buf, lnet - SOCK_HDR_SIZE, SOCK_HDR_SIZE);
	sock_hdr_clear_csum(buf);
	return sock_csum(sock_csum(SOCK_CSUM_INIT, buf, sizeof(buf)), lnet,
			 sock_conn_lnet_hdr(conn));
}

static struct sock_rx *rx_new(struct sock_conn *conn, const uint8_t *lnet)
{
	struct sock_rx *rx = pool_get(&conn->cpt->rxs);

	if (!rx)
		return NULL;
	*rx = (struct sock_rx){
		.cpt = conn->cpt,
		.conn = conn,
		.cookie = conn->hdr.cookie[0],
		.length = lnet_hdr_payload(lnet, sock_conn_lnet_hdr(conn)),
	};
	if (conn->hdr.csum) {
		rx->summed = true;
		rx->csum = csum_start(conn, lnet);
	}
	return rx;
}

/* Returns -EPROTO if @hdr acknowledges something, because this node never asks
 * for that; else 0. */
static int check_acks(const struct sock_hdr *hdr)
{
	return sock_hdr_acks(hdr) ? -EPROTO : 0;
}

/* Gives LNet a message of @length bytes by its straight way, if all of the
 * payload has been read, and needs neither a check nor an acknowledgement.
 * Returns whether LNet has taken it. */
static in_line bool rx_taken(const struct sock_conn *conn, const uint8_t *lnet,
			     const uint8_t *next, size_t len, uint32_t length)
{
	return likely(next && len >= length) &&
	       !(conn->hdr.csum | conn->hdr.cookie[0]) &&
	       lnet_take(conn->sni->ni, lnet, sock_conn_lnet_hdr(conn),
			 &conn->peer->id, NULL, next);
}

/* Gives LNet a message by the way that suits all. Returns 0 or -errno. */
static int rx_give(struct sock_conn *conn, const uint8_t *lnet,
		   const uint8_t *next, size_t len)
{
	struct sock_rx *rx = rx_new(conn, lnet);
	int rc;

	if (!rx)
		return -ENOMEM;
	conn->rx = rx;
	conn->buffered = next;
	conn->buffered_len = len;
	rc = lnet_parse(conn->sni->ni, lnet, sock_conn_lnet_hdr(conn),
			&conn->peer->id, rx);
	conn->buffered = NULL;
	if (!rc)
		return 0;
	conn->rx = NULL;
	pool_put(&conn->cpt->rxs, rx);
	return rc;
}

/* Begins a message whose LNet header is at @lnet, right behind socklnd's.
 * @next: the @len bytes that were read after the headers. Returns how many of
 * them were consumed as payload, or -errno. */
static in_line ssize_t rx_on_message(struct sock_conn *conn,
				     const uint8_t *lnet, const uint8_t *next,
				     size_t len)
{
	uint32_t length = lnet_hdr_payload(lnet, sock_conn_lnet_hdr(conn));
	const struct sock_rx *rx;
	int rc = check_acks(&conn->hdr);

	if (rc)
		return rc;
	if (!rx_taken(conn, lnet, next, len, length)) {
		rc = rx_give(conn, lnet, next, len);
		if (rc)
			return rc;
	}
	/* Handlers may have closed the connection, which ends the message. */
	if (!sock_conn_is_open(conn))
		return 0;
	if (length >= DIRECT_MIN)
		conn->rx_limit = RX_LIMIT_PAYLOADS;
	if (length >= conn->sni->tunables[SOCK_min_bulk] &&
	    conn->type == SOCK_CONTROL)
		sock_peer_saw_bulk(conn->peer);
	rx = conn->rx;
	if (likely(!rx))
		return (ssize_t)length;
	if (unlikely(!rx->answered && !rx->bounced)) {
		conn->reading = CONN_READ_PAUSED;
		return sock_conn_watch(conn, conn->events);
	}
	return length ? 0 : rx_complete(conn);
}

/* Collects a header of which not all has come. Returns how many of the @len
 * bytes at @p were consumed, or -errno. */
static out_of_line ssize_t on_part(struct sock_conn *conn, const uint8_t *p,
				   size_t len)
{
	unsigned int want = SOCK_HDR_SIZE;
	size_t n;
	int rc = 0;

	if (conn->part_len >= SOCK_HDR_SIZE)
		want += (unsigned int)sock_conn_lnet_hdr(conn);
	n = MIN(len, want - conn->part_len);
	memcpy(conn->buf + conn->part_len, p, n);
	conn->part_len += (unsigned int)n;
	if (conn->part_len < want)
		return (ssize_t)n;
	if (want > SOCK_HDR_SIZE) {
		conn->part_len = 0;
		rc = (int)rx_on_message(conn, conn->buf + SOCK_HDR_SIZE, NULL,
					0);
	} else {
		rc = sock_hdr_decode(&conn->hdr, conn->buf, conn->swap);
		if (!rc && conn->hdr.type == SOCK_MSG_NOOP) {
			conn->part_len = 0;
			rc = check_acks(&conn->hdr);
		}
	}
	return rc ? rc : (ssize_t)n;
}

/* Parses a header, or the part of one that has come, at @p. Returns how many of
 * the @len bytes were consumed, payload included, or -errno. */
static ssize_t on_header(struct sock_conn *conn, const uint8_t *p, size_t len)
{
	size_t all = SOCK_HDR_SIZE + sock_conn_lnet_hdr(conn);
	ssize_t rc;

	if (conn->part_len || len < all)
		return on_part(conn, p, len);
	rc = sock_hdr_decode(&conn->hdr, p, conn->swap);
	if (rc)
		return rc;
	if (conn->hdr.type == SOCK_MSG_NOOP) {
		all = SOCK_HDR_SIZE;
		rc = check_acks(&conn->hdr);
	} else {
		rc = rx_on_message(conn, p + SOCK_HDR_SIZE, p + all, len - all);
	}
	return rc < 0 ? rc : (ssize_t)all + rc;
}

/* Keeps @len bytes that were read before reading was paused. Returns 0 or
 * -ENOMEM. */
static int keep_readahead(struct sock_conn *conn, const uint8_t *p, size_t len)
{
	BUG_ON(conn->readahead);
	conn->readahead = malloc(len);
	if (!conn->readahead)
		return -ENOMEM;
	memcpy(conn->readahead, p, len);
	conn->readahead_len = len;
	return 0;
}

/* Parses the @len bytes at @p. Returns 0 or -errno. The connection may be
 * closed on return. */
static int rx_parse(struct sock_conn *conn, const uint8_t *p, size_t len)
{
	while (len && sock_conn_is_open(conn)) {
		if (unlikely(conn->reading != CONN_READ_ON))
			return keep_readahead(conn, p, len);
		ssize_t n;

		if (!conn->rx) {
			n = on_header(conn, p, len);
			if (n < 0)
				return (int)n;
		} else {
			n = (ssize_t)take_payload(conn->rx, p, len);
			if (conn->rx->got == conn->rx->length) {
				int rc = rx_complete(conn);

				if (rc)
					return rc;
			}
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Handles @n bytes that were read. The first @direct of them are at their place
 * already, the rest is in the read buffer. Returns 0 or -errno. */
static in_line int on_bytes(struct sock_conn *conn, size_t n, size_t direct)
{
	size_t placed = MIN(n, direct);
	struct sock_rx *rx = conn->rx;
	int rc = 0;

	if (placed) {
		rx->got += (uint32_t)placed;
		if (rx->got == rx->length)
			rc = rx_complete(conn);
	}
	n -= placed;
	if (n == conn->rx_limit)
		conn->rx_limit = RX_LIMIT_SMALL_FRAMES;
	return rc ? rc : rx_parse(conn, conn->cpt->rx_buffer, n);
}

/* Returns the status for a read that has returned @n <= 0; 0: the peer has
 * closed the connection between messages. */
static int rx_status_of(const struct sock_conn *conn, ssize_t n, int error)
{
	if (n < 0)
		return -error;
	return conn->rx || conn->part_len ? -ECONNRESET : 0;
}

static void readable_from(struct sock_conn *conn, uint32_t bytes)
{
	if (likely(conn->readable_from == bytes))
		return;
	conn->readable_from = bytes;
	sock_readable_from(conn->io.fd, bytes);
}

/* Sets how many bytes must come before @conn is read again. */
static in_line void wait_for_chunk(struct sock_conn *conn)
{
	const struct sock_rx *rx = conn->rx;
	uint32_t left = rx && rx->answered ? left_of(rx) : 0;

	readable_from(conn, left < CHUNK_MIN ? 1 : MIN(left, CHUNK_MAX));
}

void sock_rx_take_any(struct sock_conn *conn)
{
	readable_from(conn, 1);
}

/*
 * Reads @conn once, and handles what has come. Returns 1: there may be more; 0:
 * there is nothing now, or @conn was closed meanwhile; RX_ENDED: the caller
 * closes @conn, because of *@status.
 */
#define RX_ENDED (-1)
static in_line int read_some(struct sock_conn *conn, int *status, bool tls)
{
	struct iovec iov[LNET_MAX_IOV + 1];
	size_t direct = 0;
	unsigned int niov = 0;
	ssize_t n;

	if (conn->reading != CONN_READ_ON)
		return 0;
	if (conn->rx)
		niov = destination(conn->rx, iov, &direct);
	iov[niov].iov_base = conn->cpt->rx_buffer;
	iov[niov].iov_len = conn->rx_limit;
	/* A payload that is discarded is read in large amounts. */
	if (conn->rx && !direct)
		iov[niov].iov_len =
			MIN(SOCK_RX_BUFFER, conn->rx_limit + left_of(conn->rx));
	n = tls	   ? sock_tls_readv(conn, iov, niov + 1)
	    : niov ? readv(conn->io.fd, iov, (int)niov + 1)
		   : recv(conn->io.fd, iov->iov_base, iov->iov_len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		*status = rx_status_of(conn, n, errno);
		return RX_ENDED;
	}
	conn->heard = loop_now(conn->loop);
	conn->cpt->last = conn->peer;
	sock_peer_heard(conn->peer);
	*status = on_bytes(conn, (size_t)n, direct);
	if (!sock_conn_is_open(conn))
		return 0;
	if (*status)
		return RX_ENDED;
	/* With TLS it is not known how many bytes of the socket the rest takes.
	 */
	if (!tls)
		wait_for_chunk(conn);
	return 1;
}

static int read_once(struct sock_conn *conn, int *status)
{
	return read_some(conn, status, false);
}

/* Does what read_once() does, on a connection with TLS: reads the socket once,
 * and handles everything that TLS makes of it, because what TLS holds does not
 * make the socket readable. */
static int read_once_tls(struct sock_conn *conn, int *status)
{
	int pumped, rc;

	if (conn->reading != CONN_READ_ON)
		return 0;
	pumped = sock_tls_pump(conn);
	if (pumped && pumped != -EAGAIN) {
		*status = pumped;
		return RX_ENDED;
	}
	do
		rc = read_some(conn, status, true);
	while (rc == 1);
	/* TLS itself may have something to send. */
	if (!rc && sock_conn_is_open(conn) && sock_tls_waits(conn))
		sock_tx_flush_soon(conn);
	return rc || pumped || !sock_conn_is_open(conn) ? rc : 1;
}

/*
 * Called when the peer has closed @conn between messages, which ends all its
 * connections: first reads what the peer has sent over the others. The reads
 * are limited, because the peer might go on sending.
 */
static void drain_others(struct sock_conn *conn)
{
	struct sock_conn *other, *next;
	int status;

	list_for_each_entry_safe (other, next, &conn->peer->conns, link) {
		if (other == conn)
			continue;
		for (unsigned int i = 0; i < DRAIN_READS; i++)
			if ((other->tls ? read_once_tls(other, &status)
					: read_once(other, &status)) != 1)
				break;
		/* Handlers may have closed all connections of the peer. */
		if (!sock_conn_is_open(conn))
			return;
	}
}

/* Called when LNet has answered in an earlier turn: goes on reading. */
static void rx_on_resume(struct timer *t)
{
	struct sock_conn *conn = container_of(t, struct sock_conn, timer);
	struct sock_peer *peer = conn->peer;
	uint8_t *readahead = conn->readahead;
	size_t len = conn->readahead_len;
	int rc;

	conn->reading = CONN_READ_ON;
	conn->readahead = NULL;
	/* The connection was not read until now, so its silence did not count.
	 */
	conn->heard = loop_now(conn->loop);
	rc = sock_conn_watch(conn, conn->events);
	/* If there is no message, the connection has just opened:
	 * sock_rx_open(). */
	if (!rc && conn->rx && !conn->rx->length)
		rc = rx_complete(conn);
	if (!rc && readahead)
		rc = rx_parse(conn, readahead, len);
	free(readahead);
	if (!sock_conn_is_open(conn))
		return;
	if (rc)
		sock_peer_lost(conn, rc);
	else if (conn->tls)
		sock_rx_readable_tls(conn);
	else if (conn->rx || conn->part_len)
		sock_peer_watch(peer);
}

void sock_rx_open(struct sock_conn *conn)
{
	conn->readable_from = 1;
	timer_init(&conn->timer, rx_on_resume);
	if (!conn->tls)
		return;
	/* Bytes that came behind the HELLO are in memory already, and the
	 * socket does not become readable for them. */
	conn->reading = CONN_READ_RESUMING;
	loop_timer_arm(conn->loop, &conn->timer, loop_now(conn->loop));
}

/* Called when @conn was read. @rc and @status: what read_once() has returned.
 */
static in_line void was_read(struct sock_conn *conn, int rc, int status)
{
	struct sock_peer *peer = conn->peer;

	if (rc == RX_ENDED && !status && conn->fsm.state == CONN_OPEN)
		drain_others(conn);
	if (!sock_conn_is_open(conn))
		return;
	if (rc == RX_ENDED)
		sock_peer_lost(conn, status);
	else if (conn->rx || conn->part_len)
		sock_peer_watch(peer);
}

void sock_rx_readable(struct sock_conn *conn)
{
	int status = 0;
	int rc = read_some(conn, &status, false);

	was_read(conn, rc, status);
}

void sock_rx_readable_tls(struct sock_conn *conn)
{
	int status = 0;
	int rc = read_once_tls(conn, &status);

	was_read(conn, rc, status);
}
