/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages that come in on a connection: conn.h. */
#include "lnd/shmlnd/conn.h"

#include <errno.h>
#include <unistd.h>

#include "base/iov.h"
#include "lnd/shmlnd/peer.h"

static int rx_wrong(struct shm_conn *conn, const char *why)
{
	conn->ring.why = why;
	return -EPROTO;
}

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

/* No more payload is going to come for @rx. */
static void rx_over(struct shm_rx *rx, int status)
{
	rx->conn = NULL;
	rx->status = status;
	if (rx->answered)
		rx_finish(rx);
}

/* The same for conn->rx. */
static void rx_end(struct shm_conn *conn, int status)
{
	struct shm_rx *rx = conn->rx;

	conn->rx = NULL;
	conn->holding = false;
	conn->paused = false;
	rx_over(rx, status);
}

void shm_rx_stop(struct shm_conn *conn, int status)
{
	struct shm_rx *rx;

	if (conn->rx)
		rx_end(conn, status);
	while ((rx = list_pop(&conn->refused, struct shm_rx, link)))
		rx_over(rx, status);
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

/* ---- loans ---- */

void shm_rx_try_copy(struct shm_conn *conn)
{
	const struct shm_ni *sni = conn->sni;
	const struct shm_hello *h = &conn->hello;
	bool may = sni->tunables[SHM_copy_min] && h->token.at &&
		   conn->who.pid && conn->who.uid == geteuid();

	conn->may_copy =
		may && !shm_copy(conn->who.pid, &h->token, NULL, 0, NULL, 0, 0);
	shm_ring_set_copies(&conn->ring, conn->may_copy);
}

static uint32_t loan_space(uint32_t segments)
{
	return (uint32_t)(sizeof(struct shm_loan_hdr) +
			  segments * sizeof(struct shm_segment));
}

/* Copies the payload of conn->rx to where it goes. Returns 0 or -errno. A peer
 * may lend although it was told that this side does not copy. */
static int copy_lent(struct shm_conn *conn)
{
	const struct shm_rx *rx = conn->rx;
	const struct lnd_msg *msg = rx->msg;
	uint32_t n = conn->held.length - conn->held_at;
	struct iovec to[SHM_SEGMENTS] = { { rx->bounce, rx->length } };
	struct shm_segment from[SHM_SEGMENTS];
	unsigned int nto = 1;
	size_t length = rx->bounce ? rx->length : msg ? msg->length : 0;

	if (!length)
		return 0;
	if (!rx->shared && !conn->may_copy)
		return -EPERM;
	if (!rx->bounce && msg->niov > SHM_SEGMENTS)
		return -EFAULT;
	n = (n - loan_space(0)) / (uint32_t)sizeof(from[0]);
	memcpy(from, conn->held.body + conn->held_at + loan_space(0),
	       n * sizeof(from[0]));
	if (!rx->bounce)
		nto = iov_slice(to, msg->iov, msg->niov, msg->offset,
				msg->length);
	if (rx->shared)
		return shm_view_copy(conn, from, n, to, nto, length);
	return shm_copy(conn->who.pid, &conn->hello.token, from, n, to, nto,
			length);
}

/* Takes a frame that lends the payload. Returns 0 or -EPROTO. */
static int take_lent(struct shm_conn *conn)
{
	struct shm_rx *rx = conn->rx;
	int rc = copy_lent(conn);
	enum shm_answer answer = rc ? SHM_REFUSED : SHM_COPIED;

	/* Its memory may have been used for something else meanwhile. */
	if (!shm_ring_is_lent(&conn->ring, rx->loan))
		answer = SHM_CALLED_BACK;
	if (rc == -EPROTO)
		return rx_wrong(conn, "has lent what it does not share");
	if (rc && rc != -EFAULT && !rx->shared) {
		conn->may_copy = false;
		shm_ring_set_copies(&conn->ring, false);
	}
	/* The peer may go on with it when it likes: rx_again(). */
	if (answer == SHM_REFUSED) {
		free(rx->bounce);
		rx->bounce = NULL;
	}
	shm_ring_took(&conn->ring, &conn->held);
	shm_ring_answer(&conn->ring, rx->loan, answer);
	conn->answered = true;
	if (answer != SHM_REFUSED) {
		rx_end(conn, answer == SHM_COPIED ? 0 : -ECANCELED);
		return 0;
	}
	conn->rx = NULL;
	conn->holding = false;
	conn->paused = false;
	list_add_tail(&conn->refused, &rx->link);
	if (++conn->nrefused > SHM_LOANS)
		return rx_wrong(conn, "has lent more than it may");
	return 0;
}

/* The number at the beginning of @f names a loan that was refused. Takes it out
 * of the list; NULL: there is none. */
static struct shm_rx *pop_refused(struct shm_conn *conn,
				  const struct shm_frame *f)
{
	struct shm_rx *rx;
	uint64_t loan;

	memcpy(&loan, f->body, sizeof(loan));
	list_for_each_entry (rx, &conn->refused, link) {
		if (rx->loan != loan)
			continue;
		list_del(&rx->link);
		conn->nrefused--;
		return rx;
	}
	return NULL;
}

/* If LNet does not know yet where the payload of @rx goes, which was refused,
 * @rx has a bounce buffer again. Returns 0 or -ENOMEM. */
static int bounce_again(struct shm_rx *rx)
{
	if (rx->answered)
		return 0;
	rx->bounce = malloc(rx->length);
	return rx->bounce ? 0 : -ENOMEM;
}

static int rx_again(struct shm_conn *conn, const struct shm_frame *f)
{
	const uint32_t at = (uint32_t)sizeof(uint64_t);
	struct shm_rx *rx =
		conn->rx || f->length <= at ? NULL : pop_refused(conn, f);

	if (!rx)
		return rx_wrong(conn, "has gone on with no loan");
	conn->rx = rx;
	rx->loan = 0;
	if (f->length - at > rx->length)
		return rx_wrong(conn, "has sent more than it has announced");
	if (bounce_again(rx))
		return -ENOMEM;
	rx_store(rx, f->body + at, f->length - at);
	shm_ring_took(&conn->ring, f);
	if (rx->got == rx->length)
		rx_end(conn, 0);
	return 0;
}

static int rx_call_back(struct shm_conn *conn, const struct shm_frame *f)
{
	struct shm_rx *rx =
		f->length == sizeof(uint64_t) ? pop_refused(conn, f) : NULL;

	if (!rx)
		return rx_wrong(conn, "has called back no loan");
	shm_ring_took(&conn->ring, f);
	rx_over(rx, -ECANCELED);
	return 0;
}

/* ---- messages ---- */

int shm_rx_take_held(struct shm_conn *conn)
{
	struct shm_rx *rx = conn->rx;

	if (!conn->holding)
		return 0;
	if (rx->loan)
		return take_lent(conn);
	conn->holding = false;
	conn->paused = false;
	rx_store(rx, conn->held.body + conn->held_at,
		 conn->held.length - conn->held_at);
	shm_ring_took(&conn->ring, &conn->held);
	if (rx->got == rx->length)
		rx_end(conn, 0);
	return 0;
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
	       !rx->loan && conn->held.length - conn->held_at == rx->length;
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

/* The header @hdr has come in @f; @loan: the payload is lent, or 0; @shared: in
 * a commons. Returns 0 or -errno. */
static in_line int rx_parse(struct shm_conn *conn, const struct shm_frame *f,
			    const uint8_t *hdr, size_t hdr_len, uint32_t loan,
			    bool shared)
{
	struct shm_rx *rx = pool_get(&conn->cpt->rxs);
	int rc;

	if (!rx)
		return -ENOMEM;
	*rx = (struct shm_rx){ .cpt = conn->cpt,
			       .conn = conn,
			       .length = lnet_hdr_payload(hdr, hdr_len),
			       .loan = loan,
			       .shared = shared };
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
		return shm_rx_take_held(conn);
	conn->paused = true;
	return 0;
}

/* A frame that begins a message. Returns 0 or -errno. */
static in_line int rx_begin(struct shm_conn *conn, const struct shm_frame *f,
			    size_t hdr_len)
{
	uint8_t hdr[LNET_HDR_LARGE_SIZE];
	uint32_t length;

	if (unlikely(conn->rx))
		return rx_wrong(conn, "has begun a message within another one");
	if (unlikely(f->length < hdr_len))
		return rx_wrong(conn, "has sent a message without a header");
	memcpy(hdr, f->body, hdr_len);
	length = lnet_hdr_payload(hdr, hdr_len);
	if (unlikely(f->length - hdr_len > length))
		return rx_wrong(conn, "has sent more than it has announced");
	/* Large rings have room for large payloads, too. */
	if (unlikely(length >= conn->copy_min || f->length - hdr_len < length))
		shm_view_look(conn);
	/* All of the payload is in the frame, which is read once. */
	if (likely(f->length - hdr_len == length) &&
	    lnet_take(conn->sni->ni, hdr, hdr_len, &conn->peer->id, NULL,
		      f->body + hdr_len)) {
		if (likely(shm_conn_is_open(conn)))
			shm_ring_took(&conn->ring, f);
		return 0;
	}
	return rx_parse(conn, f, hdr, hdr_len, 0, false);
}

/* The same for one that lends the payload. */
static int rx_lent(struct shm_conn *conn, const struct shm_frame *f,
		   size_t hdr_len, bool shared)
{
	uint8_t hdr[LNET_HDR_LARGE_SIZE];
	struct shm_loan_hdr loan;

	if (conn->rx)
		return rx_wrong(conn, "has begun a message within another one");
	if (f->length < hdr_len + loan_space(1))
		return rx_wrong(conn, "has lent nothing");
	memcpy(hdr, f->body, hdr_len);
	memcpy(&loan, f->body + hdr_len, sizeof(loan));
	if (!loan.loan || loan.segments > SHM_SEGMENTS ||
	    f->length != hdr_len + loan_space(loan.segments))
		return rx_wrong(conn, "has lent what makes no sense");
	shm_view_look(conn);
	return rx_parse(conn, f, hdr, hdr_len, loan.loan, shared);
}

static int rx_more(struct shm_conn *conn, const struct shm_frame *f)
{
	struct shm_rx *rx = conn->rx;

	if (!rx || !f->length || f->length > rx->length - rx->got)
		return rx_wrong(conn, "has sent payload of no message");
	rx_store(rx, f->body, f->length);
	shm_ring_took(&conn->ring, f);
	if (rx->got == rx->length)
		rx_end(conn, 0);
	return 0;
}

static int rx_abort(struct shm_conn *conn, const struct shm_frame *f)
{
	if (!conn->rx || f->length)
		return rx_wrong(conn, "has ended a message that is none");
	shm_ring_took(&conn->ring, f);
	rx_end(conn, -ECANCELED);
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
	case SHM_LENT_MESSAGE:
		return rx_lent(conn, f, LNET_HDR_SIZE, false);
	case SHM_LENT_LARGE_MESSAGE:
		return rx_lent(conn, f, LNET_HDR_LARGE_SIZE, false);
	case SHM_SHARED_MESSAGE:
		return rx_lent(conn, f, LNET_HDR_SIZE, true);
	case SHM_SHARED_LARGE_MESSAGE:
		return rx_lent(conn, f, LNET_HDR_LARGE_SIZE, true);
	case SHM_AGAIN:
		return rx_again(conn, f);
	case SHM_CALL_BACK:
		return rx_call_back(conn, f);
	default:
		return rx_wrong(conn, "has sent a frame of an unknown type");
	}
}

void shm_rx_give_room(struct shm_conn *conn)
{
	uint32_t what =
		SHM_WANTS_ROOM | (conn->answered ? SHM_WANTS_ANSWERS : 0);

	conn->answered = false;
	shm_ring_give(&conn->ring);
	if (shm_ring_must_wake(&conn->ring, what))
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
