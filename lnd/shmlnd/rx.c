/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages that come in on a connection: conn.h. */
#include "lnd/shmlnd/conn.h"

#include <errno.h>

#include "base/iov.h"
#include "lnd/shmlnd/peer.h"

/* Ends a message that LNet has answered, and whose payload is complete or never
 * will be. Users' handlers run. */
static void rx_finish(struct shm_rx *rx)
{
	struct lnd_msg *msg = rx->msg;
	int status = rx->status;

	if (msg && rx->bounce && !status)
		iov_scatter(msg->iov, msg->niov, msg->offset, rx->bounce,
			    msg->length);
	free(rx->bounce);
	pool_put(&rx->cpt->rxs, rx);
	if (msg)
		lnet_finalize(msg, status,
			      status ? shm_loss_begun(status) : LNET_CAUSE_OK);
}

void shm_rx_end(struct shm_conn *conn, int status)
{
	struct shm_rx *rx = conn->rx;

	conn->rx = NULL;
	conn->holding = false;
	conn->paused = false;
	rx->conn = NULL;
	rx->status = status;
	if (rx->answered)
		rx_finish(rx);
}

/* Stores @n bytes of payload, of which there are as many left. */
static void rx_store(struct shm_rx *rx, const uint8_t *p, uint32_t n)
{
	const struct lnd_msg *msg = rx->msg;

	if (rx->bounce)
		memcpy(rx->bounce + rx->got, p, n);
	else if (msg && rx->got < msg->length)
		iov_scatter(msg->iov, msg->niov, msg->offset + rx->got, p,
			    MIN(n, msg->length - rx->got));
	rx->got += n;
}

void shm_rx_take_held(struct shm_conn *conn)
{
	struct shm_rx *rx = conn->rx;

	if (!conn->holding)
		return;
	conn->holding = false;
	conn->paused = false;
	rx_store(rx, conn->held.body + conn->held_at,
		 conn->held.length - conn->held_at);
	shm_ring_took(&conn->ring, &conn->held);
	if (rx->got == rx->length)
		shm_rx_end(conn, 0);
}

/* LNet answers from within lnet_parse(), and all of the payload is in the
 * frame: the fast path. */
static void rx_take_now(struct shm_rx *rx, struct lnd_msg *msg)
{
	struct shm_conn *conn = rx->conn;

	if (msg->length)
		iov_scatter(msg->iov, msg->niov, msg->offset,
			    conn->held.body + conn->held_at, msg->length);
	shm_ring_took(&conn->ring, &conn->held);
	conn->holding = false;
	conn->rx = NULL;
	pool_put(&rx->cpt->rxs, rx);
	lnet_finalize(msg, 0, LNET_CAUSE_OK);
}

static bool rx_is_whole(const struct shm_rx *rx)
{
	const struct shm_conn *conn = rx->conn;

	return conn && conn->holding && !conn->paused && !rx->bounced &&
	       conn->held.length - conn->held_at == rx->length;
}

void shm_rx_recv(struct lnd_ni *ni, void *priv, struct lnd_msg *msg,
		 uint32_t rlength)
{
	struct shm_rx *rx = priv;

	(void)ni;
	(void)rlength;
	if (likely(msg && rx_is_whole(rx))) {
		rx_take_now(rx, msg);
		return;
	}
	rx->answered = true;
	rx->msg = msg;
	if (msg) {
		msg->priv = rx;
	} else {
		free(rx->bounce);
		rx->bounce = NULL;
	}
	if (!rx->conn)
		rx_finish(rx);
	else if (rx->conn->paused)
		shm_conn_resume(rx->conn);
}

int shm_rx_eager_recv(struct lnd_ni *ni, void *priv)
{
	struct shm_rx *rx = priv;

	(void)ni;
	if (rx->bounced)
		return 0;
	if (rx->length) {
		rx->bounce = malloc(rx->length);
		if (!rx->bounce)
			return -ENOMEM;
	}
	rx->bounced = true;
	if (rx->conn && rx->conn->paused)
		shm_conn_resume(rx->conn);
	return 0;
}

void shm_rx_cancel(struct lnd_msg *msg, int status)
{
	struct shm_rx *rx = msg->priv;

	rx->msg = NULL;
	free(rx->bounce);
	rx->bounce = NULL;
	lnet_finalize(msg, status, LNET_CAUSE_NETWORK_TIMEOUT);
}

static int rx_wrong(struct shm_conn *conn, const char *why)
{
	conn->ring.why = why;
	return -EPROTO;
}

/* A frame that begins a message. Returns 0 or -errno. */
static in_line int rx_begin(struct shm_conn *conn, const struct shm_frame *f,
			    size_t hdr_len)
{
	uint8_t hdr[LNET_HDR_LARGE_SIZE];
	struct shm_rx *rx;
	uint32_t length;
	int rc;

	if (unlikely(conn->rx))
		return rx_wrong(conn, "has begun a message within another one");
	if (unlikely(f->length < hdr_len))
		return rx_wrong(conn, "has sent a message without a header");
	memcpy(hdr, f->body, hdr_len);
	length = lnet_hdr_payload(hdr, hdr_len);
	if (unlikely(f->length - hdr_len > length))
		return rx_wrong(conn, "has sent more than it has announced");
	/* All of the payload is in the frame, which is read once. */
	if (likely(f->length - hdr_len == length) &&
	    lnet_take(conn->sni->ni, hdr, hdr_len, &conn->peer->id, NULL,
		      f->body + hdr_len)) {
		if (likely(shm_conn_is_open(conn)))
			shm_ring_took(&conn->ring, f);
		return 0;
	}
	rx = pool_get(&conn->cpt->rxs);
	if (!rx)
		return -ENOMEM;
	*rx = (struct shm_rx){ .cpt = conn->cpt,
			       .conn = conn,
			       .length = length };
	conn->rx = rx;
	conn->held = *f;
	conn->held_at = (uint32_t)hdr_len;
	conn->holding = true;
	rc = lnet_parse(conn->sni->ni, hdr, hdr_len, &conn->peer->id, rx);
	if (unlikely(rc)) {
		conn->rx = NULL;
		conn->holding = false;
		conn->ring.why = "has sent a header that makes no sense";
		pool_put(&conn->cpt->rxs, rx);
		return rc;
	}
	if (likely(conn->rx != rx))
		return 0;
	if (rx->answered || rx->bounced)
		shm_rx_take_held(conn);
	else
		conn->paused = true;
	return 0;
}

static int rx_more(struct shm_conn *conn, const struct shm_frame *f)
{
	struct shm_rx *rx = conn->rx;

	if (!rx || !f->length || f->length > rx->length - rx->got)
		return rx_wrong(conn, "has sent payload of no message");
	rx_store(rx, f->body, f->length);
	shm_ring_took(&conn->ring, f);
	if (rx->got == rx->length)
		shm_rx_end(conn, 0);
	return 0;
}

static int rx_abort(struct shm_conn *conn, const struct shm_frame *f)
{
	if (!conn->rx || f->length)
		return rx_wrong(conn, "has ended a message that is none");
	shm_ring_took(&conn->ring, f);
	shm_rx_end(conn, -ECANCELED);
	return 0;
}

static in_line int rx_frame(struct shm_conn *conn, const struct shm_frame *f)
{
	switch (f->type) {
	case SHM_MESSAGE:
		return rx_begin(conn, f, LNET_HDR_SIZE);
	case SHM_LARGE_MESSAGE:
		return rx_begin(conn, f, LNET_HDR_LARGE_SIZE);
	case SHM_MORE:
		return rx_more(conn, f);
	case SHM_ABORT:
		return rx_abort(conn, f);
	default:
		return rx_wrong(conn, "has sent a frame of an unknown type");
	}
}

void shm_rx_give_room(struct shm_conn *conn)
{
	shm_ring_give(&conn->ring);
	if (shm_ring_must_wake(&conn->ring, SHM_WANTS_ROOM))
		shm_conn_wake(conn);
}

int shm_rx_read(struct shm_conn *conn)
{
	uint32_t told = conn->ring.head, head = told;
	struct shm_frame f;
	int rc = shm_ring_look(&conn->ring);

	while (!rc && !conn->paused && shm_conn_is_open(conn)) {
		rc = shm_ring_next(&conn->ring, &f);
		if (rc <= 0)
			break;
		rc = rx_frame(conn, &f);
		/* A peer that waits for room can go on meanwhile. */
		if (conn->ring.head - told >= conn->ring.size / 4) {
			shm_ring_give(&conn->ring);
			told = conn->ring.head;
		}
	}
	if (conn->ring.head != head && shm_conn_is_open(conn))
		shm_rx_give_room(conn);
	return rc;
}
