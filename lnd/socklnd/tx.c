/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/iov.h"
#include "lnd/socklnd/host.h"
#include "lnd/socklnd/tls.h"

/* Writes to one connection in a turn, at most, so that other connections are
 * served, too. */
#define WRITES_PER_TURN 2
/* NOOPs that are queued on a connection, at most. A peer that causes more asks
 * for acknowledgements without reading them. */
#define NOOPS_MAX 4096

static struct sock_cpt *tx_cpt(const struct sock_tx *tx)
{
	return tx->conn->cpt;
}

static uint32_t tx_length(const struct sock_tx *tx)
{
	return tx->msg ? tx->msg->length : 0;
}

/* Returns the size of a frame as sock_peer_choose() counts it, which is the
 * same for all versions. */
static size_t tx_size(const struct sock_tx *tx)
{
	return SOCK_HDR_SIZE + (tx->msg ? LNET_HDR_SIZE : 0) + tx_length(tx);
}

/* Is the payload of @tx sent from the user's memory? */
static bool tx_is_large(const struct sock_tx *tx)
{
	return tx_length(tx) >= tx_cpt(tx)->sni->tunables[SOCK_zc_min_payload];
}

static struct sock_tx *tx_new(struct sock_conn *conn, struct lnd_msg *msg)
{
	struct sock_tx *tx = pool_get(&conn->cpt->txs);

	if (!tx)
		return NULL;
	*tx = (struct sock_tx){ .msg = msg, .conn = conn };
	list_init(&tx->link);
	return tx;
}

/* Ends @tx, and takes it off any list. Users' handlers run. */
static void tx_done(struct sock_tx *tx, int status, enum ulnet_cause cause)
{
	struct lnd_msg *msg = tx->msg;

	list_del(&tx->link);
	pool_put(&tx_cpt(tx)->txs, tx);
	if (msg)
		lnet_finalize(msg, status, cause);
}

/* ---- queues ---- */

const struct fsm_state sock_out_states[SOCK_OUT_STATES] = {
	[SOCK_OUT_IDLE] = { "idle", FSM_TO(SOCK_OUT_LISTED) |
					    FSM_TO(SOCK_OUT_WAITING) },
	[SOCK_OUT_LISTED] = { "listed", FSM_TO(SOCK_OUT_WRITING) |
						FSM_TO(SOCK_OUT_IDLE) },
	[SOCK_OUT_WRITING] = { "writing", FSM_TO(SOCK_OUT_IDLE) |
						  FSM_TO(SOCK_OUT_WAITING) },
	[SOCK_OUT_WAITING] = { "waiting", FSM_TO(SOCK_OUT_WRITING) },
};

static void tx_out_move(struct sock_conn *conn, enum sock_out_state to)
{
	fsm_move(&conn->out, sock_out_states, to);
}

/* Called when something was queued on @conn: schedules that it is written at
 * the end of the turn. */
static in_line void out_schedule(struct sock_conn *conn)
{
	struct sock_cpt *cpt = conn->cpt;

	if (conn->out.state != SOCK_OUT_IDLE)
		return;
	/* The connection was written to in this turn already. What is left
	 * waits for the next turn, so that handlers that keep sending do not
	 * keep others out. */
	if (conn->flushed == loop_now(conn->loop) &&
	    !sock_conn_watch(conn, ENV_READ | ENV_WRITE)) {
		tx_out_move(conn, SOCK_OUT_WAITING);
		return;
	}
	tx_out_move(conn, SOCK_OUT_LISTED);
	list_add_tail(&cpt->flush, &conn->flush);
	if (cpt->flush_scheduled)
		return;
	cpt->flush_scheduled = true;
	loop_defer_last(cpt->loop, &cpt->flush_work);
}

static void tx_queue(struct sock_tx *tx)
{
	struct sock_conn *conn = tx->conn;

	list_add_tail(&conn->queue, &tx->link);
	conn->queued += tx_size(tx);
	out_schedule(conn);
	sock_peer_watch(conn->peer);
}

static void tx_unqueue(struct sock_tx *tx)
{
	struct sock_conn *conn = tx->conn;

	list_del(&tx->link);
	conn->queued -= tx_size(tx);
	if (!tx->msg)
		conn->noops--;
	if (conn->noop == tx)
		conn->noop = NULL;
}

/* Returns what send() does without a connection: -EINPROGRESS or -EHOSTUNREACH.
 */
static int tx_wait(struct sock_peer *peer)
{
	/* A process that only calls cannot be connected to. A message to it
	 * waits only if other messages do already, or if its connections are
	 * suspended. */
	if (sock_pid_is_user(peer->id.pid) && !peer->connect.wanted &&
	    !sock_peer_is_suspended(peer)) {
		sock_peer_settle(peer);
		return -EHOSTUNREACH;
	}
	connect_want(&peer->connect);
	return -EINPROGRESS;
}

static int refuse_large(const struct sock_conn *conn)
{
	char text[CONN_STR_SIZE];

	log_warn_limited(
		&conn->cpt->complaints, loop_now(conn->loop), "socklnd",
		"%s: a message from or for an IPv6 NID cannot go over "
		"this connection, whose protocol is %u (set large_nids "
		"to 1 on both nodes)",
		sock_conn_str(conn, text, sizeof(text)), conn->version);
	return -EAFNOSUPPORT;
}

int sock_tx_send(struct lnd_ni *ni, struct lnd_msg *msg)
{
	struct sock_cpt *cpt = &sock_ni_of(ni)->cpts[msg->cpt];
	struct sock_conn *conn;
	struct ulnet_id to = { msg->next_hop, msg->next_pid };
	struct sock_peer *peer;
	struct sock_tx *tx;

	if (unlikely(!sock_ni_is_up(cpt->sni)))
		return -ENETDOWN;
	/* A process that only calls cannot be connected to. */
	if (sock_pid_is_user(to.pid) && !sock_peer_lookup(cpt, &to))
		return -EHOSTUNREACH;
	peer = sock_peer_lookup_or_make(cpt, &to);
	if (!peer)
		return -ENOMEM;
	conn = sock_peer_choose(peer,
				SOCK_HDR_SIZE + LNET_HDR_SIZE + msg->length);
	if (!conn)
		return tx_wait(peer);
	if (unlikely(msg->large && conn->version < 4))
		return refuse_large(conn);
	tx = tx_new(conn, msg);
	if (!tx)
		return -ENOMEM;
	msg->priv = tx;
	tx_queue(tx);
	return 0;
}

/* Gives back the memory of conn->rest, which conn->rest still points to. */
static void rest_release(struct sock_conn *conn)
{
	if (likely(conn->rest == conn->cpt->push_buffer))
		conn->cpt->pushing = false;
	else
		free(conn->rest);
}

static void rest_free(struct sock_conn *conn)
{
	if (conn->rest)
		rest_release(conn);
	conn->rest = NULL;
	if (!conn->copied)
		return;
	sock_host_copy_put(conn->cpt, conn->copied_of, conn->copied);
	conn->copied = 0;
	conn->copied_of = NULL;
}

void sock_tx_end(struct list *list, int status, enum ulnet_cause cause)
{
	struct list failed;
	struct sock_tx *tx;

	list_init(&failed);
	list_splice_tail(&failed, list);
	while ((tx = list_pop(&failed, struct sock_tx, link)))
		tx_done(tx, status, cause);
}

void sock_tx_give_back(struct sock_conn *conn)
{
	struct list *l, *before;

	for (l = conn->queue.prev; l != &conn->queue; l = before) {
		struct sock_tx *tx = container_of(l, struct sock_tx, link);
		struct lnd_msg *msg = tx->msg;

		before = l->prev;
		if (!msg || msg->again)
			continue;
		tx_unqueue(tx);
		pool_put(&conn->cpt->txs, tx);
		connect_want(&conn->peer->connect);
		lnet_send_again(msg);
	}
}

void sock_tx_conn_closed(struct sock_conn *conn, int status)
{
	struct sock_tx *tx = conn->tx;

	conn->tx = NULL;
	conn->noop = NULL;
	rest_free(conn);
	if (tx)
		tx_done(tx, status, sock_loss_begun(status));
	sock_tx_end(&conn->queue, status, sock_loss_queued(status));
}

/* ---- zero-copy acknowledgements, signs of life ---- */

static void queue_noop(struct sock_conn *conn, uint64_t c0, uint64_t c1)
{
	struct sock_tx *tx =
		conn->noops < NOOPS_MAX ? tx_new(conn, NULL) : NULL;

	/* A peer that gets no acknowledgement would close the connection in the
	 * end, so this node closes it now. */
	if (!tx) {
		sock_peer_lost(conn, -ENOBUFS);
		return;
	}
	conn->noops++;
	tx->cookie[0] = c0;
	tx->cookie[1] = c1;
	tx_queue(tx);
	conn->noop = tx;
}

/* Adds @cookie to the NOOP @tx. There is room for it if @tx is a keepalive, has
 * one cookie, or has a range of cookies that @cookie continues. Returns false
 * if there is none. On the wire two cookies are (higher, lower), a range is
 * (first, last). */
static bool noop_takes(struct sock_tx *tx, uint64_t cookie)
{
	uint64_t *c = tx->cookie;

	if (c[1] == SOCK_COOKIE_KEEPALIVE) {
		c[1] = cookie;
		return true;
	}
	if (c[0] == 0) {
		bool next = cookie == c[1] + 1;
		uint64_t old = c[1];

		c[0] = next ? old : MAX(old, cookie);
		c[1] = next ? cookie : MIN(old, cookie);
		return true;
	}
	if (c[0] < c[1] && cookie == c[1] + 1) {
		c[1] = cookie;
		return true;
	}
	return false;
}

void sock_tx_ack(struct sock_conn *conn, uint64_t cookie)
{
	struct sock_conn *to = sock_peer_choose(conn->peer, 0);

	if (!to || (conn->type == SOCK_BULK_IN && conn->fsm.state == CONN_OPEN))
		to = conn;
	if (!to->noop || !noop_takes(to->noop, cookie))
		queue_noop(to, 0, cookie);
}

void sock_tx_keepalive(struct sock_conn *conn)
{
	if (!conn->noop)
		queue_noop(conn, 0, SOCK_COOKIE_KEEPALIVE);
}

/* Takes the cookie of a NOOP that is queued for @peer and has no other cookie;
 * that NOOP is not sent then. Returns 0 if there is none. */
static uint64_t take_ack(struct sock_peer *peer)
{
	struct sock_conn *conn;

	list_for_each_entry (conn, &peer->conns, link) {
		struct sock_tx *noop = conn->noop;
		uint64_t cookie;

		if (!noop || noop->cookie[0] ||
		    noop->cookie[1] == SOCK_COOKIE_KEEPALIVE)
			continue;
		cookie = noop->cookie[1];
		tx_unqueue(noop);
		tx_done(noop, 0, LNET_CAUSE_OK);
		return cookie;
	}
	return 0;
}

/* ---- frames ---- */

/* @msg NULL: a NOOP. */
static in_line void encode(const struct sock_conn *conn,
			   const struct lnd_msg *msg, const uint64_t cookie[2],
			   uint8_t *buf)
{
	struct sock_hdr hdr = {
		.type = msg ? SOCK_MSG_LNET : SOCK_MSG_NOOP,
		.cookie = { cookie[0], cookie[1] },
	};

	sock_hdr_encode(&hdr, buf);
	if (msg)
		lnet_msg_header(msg, buf + SOCK_HDR_SIZE,
				sock_conn_lnet_hdr(conn));
}

/* ---- pushing ---- */

/* Returns the connection that a message of @size bytes with its headers may be
 * pushed on. NULL: there is none, or something else is to be written to it
 * first, or was in this turn. */
static in_line struct sock_conn *push_conn(const struct sock_peer *peer,
					   size_t size)
{
	struct sock_conn *conn = peer->small;
	const struct sock_cpt *cpt = peer->cpt;

	if (unlikely(!conn || conn->out.state > SOCK_OUT_LISTED || conn->tx ||
		     !list_empty(&conn->queue) ||
		     size >= (size_t)cpt->sni->tunables[SOCK_min_bulk] ||
		     conn->flushed == loop_now(conn->loop)))
		return NULL;
	if (likely(!conn->rest))
		return cpt->pushing ? NULL : conn;
	return conn->rest == cpt->push_buffer &&
			       size <= SOCK_PUSH_BUFFER - conn->rest_len
		       ? conn
		       : NULL;
}

/* Begins to push on @conn, if that has not begun. Returns the cookie that the
 * next frame acknowledges, or 0. */
static in_line uint64_t push_begin(struct sock_conn *conn)
{
	if (unlikely(conn->rest))
		return 0;
	conn->cpt->pushing = true;
	conn->rest = conn->cpt->push_buffer;
	conn->rest_off = conn->rest_len = 0;
	return take_ack(conn->peer);
}

bool sock_tx_push(struct lnd_ni *ni, struct lnd_msg *msg)
{
	const struct sock_ni *sni = sock_ni_of(ni);
	const struct ulnet_id to = { msg->next_hop, msg->next_pid };
	struct sock_peer *peer = sock_peer_lookup(&sni->cpts[msg->cpt], &to);
	size_t size = SOCK_HDR_SIZE + LNET_HDR_SIZE + msg->length;
	uint64_t cookie[2] = { 0 };
	struct sock_conn *conn;
	uint8_t *at;

	if (unlikely(!peer || msg->large || !sock_ni_is_up(sni) ||
		     msg->length >= sni->tunables[SOCK_zc_min_payload]))
		return false;
	conn = push_conn(peer, size);
	if (unlikely(!conn || sock_conn_lnet_hdr(conn) != LNET_HDR_SIZE))
		return false;
	cookie[1] = push_begin(conn);
	at = conn->rest + conn->rest_len;
	encode(conn, msg, cookie, at);
	iov_gather(at + SOCK_HDR_SIZE + LNET_HDR_SIZE, msg->iov, msg->niov,
		   msg->offset, msg->length);
	conn->rest_len += (uint32_t)size;
	conn->used = ++peer->uses;
	out_schedule(conn);
	sock_peer_watch(peer);
	return true;
}

/* ---- writing ---- */

/* Moves what was pushed on @conn into @buf, so that messages in the queue can
 * join the same write. Returns the number of bytes. */
static size_t push_gather(struct sock_conn *conn, uint8_t *buf)
{
	size_t n = conn->rest_len;

	memcpy(buf, conn->rest, n);
	rest_free(conn);
	return n;
}

/*
 * Moves what is queued into @buf, behind the @n bytes that are there. Small
 * messages are copied whole, and are done then; of a large one the header is
 * copied, and it becomes conn->tx. Returns the number of all bytes. The
 * connection may be closed on return.
 *
 * The small message that empties the queue becomes *@last, which the caller
 * ends after the write, so that the peer need not wait until its handlers have
 * run. (The other messages end at once, since that returns credits: messages
 * that wait for credits can join this write.)
 */
static in_line size_t tx_gather(struct sock_conn *conn, uint8_t *buf, size_t n,
				struct sock_tx **last)
{
	size_t hdr = SOCK_HDR_SIZE + sock_conn_lnet_hdr(conn);

	while (sock_conn_is_open(conn) && !list_empty(&conn->queue)) {
		struct sock_tx *tx =
			list_first(&conn->queue, struct sock_tx, link);
		const struct lnd_msg *msg = tx->msg;
		bool large = tx_is_large(tx);
		uint32_t copied = large ? 0 : tx_length(tx);

		if (n + hdr + copied > SOCK_TX_BUFFER)
			break;
		tx_unqueue(tx);
		if (msg && n == 0)
			tx->cookie[1] = take_ack(conn->peer);
		encode(conn, tx->msg, tx->cookie, buf + n);
		n += msg ? hdr : SOCK_HDR_SIZE;
		if (large) {
			conn->tx = tx;
			conn->tx_done = 0;
			break;
		}
		if (copied)
			iov_gather(buf + n, msg->iov, msg->niov, msg->offset,
				   copied);
		n += copied;
		if (list_empty(&conn->queue)) {
			*last = tx;
			break;
		}
		tx_done(tx, 0, LNET_CAUSE_OK);
	}
	return n;
}

/* Fills @iov with the @len bytes at @buf, and the rest of the payload of
 * conn->tx, if there is one. Returns the number of fragments. */
static unsigned int with_payload(const struct sock_conn *conn, void *buf,
				 size_t len, struct iovec iov[1 + LNET_MAX_IOV])
{
	const struct lnd_msg *msg = conn->tx ? conn->tx->msg : NULL;
	unsigned int n = 0;

	if (len)
		iov[n++] = (struct iovec){ buf, len };
	if (msg)
		n += iov_slice(iov + n, msg->iov, msg->niov,
			       msg->offset + conn->tx_done,
			       msg->length - conn->tx_done);
	return n;
}

/* Writes once: the @len bytes at @buf, and the rest of the payload of conn->tx.
 * Returns the bytes written, or -errno. */
static ssize_t write_with_payload(struct sock_conn *conn, void *buf, size_t len)
{
	struct iovec iov[1 + LNET_MAX_IOV];
	struct msghdr m = { .msg_iov = iov };
	ssize_t n;

	m.msg_iovlen = with_payload(conn, buf, len, iov);
	do
		n = sendmsg(conn->io.fd, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Writes once: the @len bytes at @buf. Returns the bytes written, or -errno. */
static in_line ssize_t write_plain(struct sock_conn *conn, const void *buf,
				   size_t len)
{
	ssize_t n;

	do
		n = send(conn->io.fd, buf, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Does what write_with_payload() and write_plain() do, through TLS: bytes that
 * TLS has taken count as written. */
static ssize_t write_tls(struct sock_conn *conn, void *buf, size_t len)
{
	struct iovec iov[1 + LNET_MAX_IOV];

	return sock_tls_writev(conn, iov, with_payload(conn, buf, len, iov));
}

/* Called when all of conn->tx is written: ends it. Users' handlers run. */
static void tx_written(struct sock_conn *conn)
{
	struct sock_tx *tx = conn->tx;

	conn->tx = NULL;
	tx_done(tx, 0, LNET_CAUSE_OK);
}

/* Keeps the @len bytes at @p, which are still to be written, in conn->rest. If
 * there is a rest already, @p lies in it; the push buffer is left for others.
 * Returns 0 or -ENOMEM. */
static int keep_rest(struct sock_conn *conn, const uint8_t *p, size_t len)
{
	if (!conn->rest || conn->rest == conn->cpt->push_buffer) {
		uint8_t *copy = malloc(len);

		if (!copy)
			return -ENOMEM;
		memcpy(copy, p, len);
		if (conn->rest)
			rest_release(conn);
		conn->rest = copy;
		p = copy;
	}
	conn->rest_off = (uint32_t)(p - conn->rest);
	conn->rest_len = (uint32_t)len;
	return 0;
}

/* Called when @n bytes were written, of @len bytes at @buf followed by the rest
 * of conn->tx: keeps what is left of @buf. Returns 0 or -ENOMEM. */
static in_line int account(struct sock_conn *conn, const uint8_t *buf,
			   size_t len, size_t n)
{
	if (n < len)
		return keep_rest(conn, buf + n, len - n);
	if (unlikely(conn->rest))
		rest_free(conn);
	if (!conn->tx)
		return 0;
	conn->tx_done += (uint32_t)(n - len);
	if (conn->tx_done == conn->tx->msg->length)
		tx_written(conn);
	return 0;
}

/* Called after a write that has returned @n: does what account() does, or
 * returns the error. */
static in_line int wrote(struct sock_conn *conn, const uint8_t *buf, size_t len,
			 ssize_t n, bool tls)
{
	if (n == -EAGAIN)
		n = 0;
	if (n < 0)
		return (int)n;
	/* With TLS, sock_tls_flush() counts the bytes that go to the socket. */
	if (!tls)
		conn->written += (size_t)n;
	return account(conn, buf, len, (size_t)n);
}

/* Writes @len bytes at @buf, then the rest of conn->tx. Returns 0 or -errno. */
static in_line int write_part(struct sock_conn *conn, uint8_t *buf, size_t len,
			      bool tls)
{
	ssize_t n = tls			 ? write_tls(conn, buf, len)
		    : unlikely(conn->tx) ? write_with_payload(conn, buf, len)
					 : write_plain(conn, buf, len);

	return wrote(conn, buf, len, n, tls);
}

/* Writes once. Returns true if there is more to write, and room for it in the
 * socket. */
static in_line bool write_once(struct sock_conn *conn, bool tls)
{
	uint8_t *buf = conn->cpt->tx_buffer;
	struct sock_tx *last = NULL;
	size_t len = 0;
	int rc;

	if (conn->rest == conn->cpt->push_buffer && !list_empty(&conn->queue))
		len = push_gather(conn, buf);
	if (conn->rest) {
		buf = conn->rest + conn->rest_off;
		len = conn->rest_len;
	} else if (!conn->tx) {
		len = tx_gather(conn, buf, len, &last);
	}
	if (!sock_conn_is_open(conn) || (!len && !conn->tx))
		return false;
	rc = write_part(conn, buf, len, tls);
	if (last)
		tx_done(last, 0, LNET_CAUSE_OK);
	/* Handlers that have run may have closed the connection. */
	if (!sock_conn_is_open(conn))
		return false;
	if (rc)
		sock_peer_lost(conn, rc);
	return !rc && !conn->rest && !conn->tx && !list_empty(&conn->queue);
}

/* Called when as much was written as the socket takes, or as may be in one
 * turn. */
static in_line void out_pause(struct sock_conn *conn, bool tls)
{
	bool pending;

	if (!sock_conn_is_open(conn))
		return;
	pending = conn->rest || conn->tx || !list_empty(&conn->queue) ||
		  (tls && sock_tls_waits(conn));
	tx_out_move(conn, pending ? SOCK_OUT_WAITING : SOCK_OUT_IDLE);
	if (sock_conn_watch(conn, ENV_READ | (pending ? ENV_WRITE : 0)))
		sock_peer_lost(conn, -ENOMEM);
	else if (unlikely(conn->fsm.state != CONN_OPEN) && !pending)
		sock_conn_all_written(conn);
}

/* Writes what can be written now. What is left waits until the socket is
 * writable, or for the next turn. All functions that have @tls get it as a
 * constant, so that connections without TLS pay nothing for it. */
static in_line void write_out(struct sock_conn *conn, bool tls)
{
	tx_out_move(conn, SOCK_OUT_WRITING);
	conn->flushed = loop_now(conn->loop);
	if (tls) {
		int rc = sock_tls_flush(conn);

		if (rc) {
			sock_peer_lost(conn, rc);
			return;
		}
	}
	for (int i = 0; i < WRITES_PER_TURN && write_once(conn, tls); i++)
		;
	out_pause(conn, tls);
}

/* Has @conn been pushed on, and has nothing else to write, nor anything to
 * watch but what it watches already? */
static in_line bool only_pushed(const struct sock_conn *conn)
{
	return conn->rest == conn->cpt->push_buffer &&
	       list_empty(&conn->queue) && conn->events == ENV_READ &&
	       conn->fsm.state == CONN_OPEN;
}

/* The write of what was pushed has returned @n, which is not all. */
static out_of_line void pushed_in_part(struct sock_conn *conn, ssize_t n)
{
	int rc;

	tx_out_move(conn, SOCK_OUT_WRITING);
	rc = wrote(conn, conn->rest, conn->rest_len, n, false);
	if (rc)
		sock_peer_lost(conn, rc);
	out_pause(conn, false);
}

static void out_write_any(struct sock_conn *conn)
{
	write_out(conn, false);
}

/* Nothing can happen to @conn during the write of what was pushed, nor after
 * it, since nobody waits for its end. */
static in_line void out_write(struct sock_conn *conn)
{
	ssize_t n;

	if (!likely(only_pushed(conn))) {
		out_write_any(conn);
		return;
	}
	conn->flushed = loop_now(conn->loop);
	n = write_plain(conn, conn->rest, conn->rest_len);
	if (unlikely(n != (ssize_t)conn->rest_len)) {
		pushed_in_part(conn, n);
		return;
	}
	conn->written += (size_t)n;
	conn->cpt->pushing = false;
	conn->rest = NULL;
	tx_out_move(conn, SOCK_OUT_IDLE);
}

static void out_write_tls(struct sock_conn *conn)
{
	write_out(conn, true);
}

static bool begins_with_noop(const struct sock_conn *conn)
{
	return !conn->tx && !conn->rest && !list_empty(&conn->queue) &&
	       !list_first(&conn->queue, struct sock_tx, link)->msg;
}

static in_line void flush(struct sock_cpt *cpt,
			  void (*write)(struct sock_conn *conn))
{
	struct list acks;
	struct sock_conn *conn;

	list_init(&acks);
	cpt->flush_scheduled = false;
	while ((conn = list_pop(&cpt->flush, struct sock_conn, flush))) {
		if (begins_with_noop(conn))
			list_add_tail(&acks, &conn->flush);
		else
			write(conn);
	}
	/* Writes the NOOPs whose cookies no message has taken along. */
	while ((conn = list_pop(&acks, struct sock_conn, flush)))
		write(conn);
}

void sock_tx_flush(struct work *w)
{
	flush(container_of(w, struct sock_cpt, flush_work), out_write);
}

void sock_tx_flush_tls(struct work *w)
{
	flush(container_of(w, struct sock_cpt, flush_work), out_write_tls);
}

void sock_tx_writable(struct sock_conn *conn)
{
	if (conn->out.state == SOCK_OUT_WAITING)
		out_write_any(conn);
}

void sock_tx_writable_tls(struct sock_conn *conn)
{
	if (conn->out.state == SOCK_OUT_WAITING)
		out_write_tls(conn);
}

void sock_tx_flush_soon(struct sock_conn *conn)
{
	out_schedule(conn);
}

/* ---- giving up ---- */

/* Copies the rest of conn->tx's payload to conn->rest. Returns 0, -ENOBUFS or
 * -ENOMEM. */
static int copy_rest(struct sock_conn *conn)
{
	const struct lnd_msg *msg = conn->tx->msg;
	uint32_t before = conn->rest ? conn->rest_len : 0;
	uint32_t left = msg->length - conn->tx_done;
	struct sock_host *host;
	uint8_t *copy;
	int rc =
		sock_host_copy_get(conn->cpt, &conn->peer->id.nid, left, &host);

	if (rc)
		return rc;
	copy = malloc(before + left);
	if (!copy) {
		sock_host_copy_put(conn->cpt, host, left);
		return -ENOMEM;
	}
	if (before)
		memcpy(copy, conn->rest + conn->rest_off, before);
	iov_gather(copy + before, msg->iov, msg->niov,
		   msg->offset + conn->tx_done, left);
	if (conn->rest)
		rest_release(conn);
	conn->rest = copy;
	conn->rest_off = 0;
	conn->rest_len = before + left;
	conn->copied = left;
	conn->copied_of = host;
	return 0;
}

int sock_tx_detach(struct sock_conn *conn, struct list *begun,
		   struct list *queued)
{
	struct list *l, *next;
	int rc = conn->tx ? copy_rest(conn) : 0;

	if (conn->tx && !rc) {
		list_add_tail(begun, &conn->tx->link);
		conn->tx = NULL;
	}
	for (l = conn->queue.next; l != &conn->queue; l = next) {
		struct sock_tx *tx = container_of(l, struct sock_tx, link);

		next = l->next;
		if (!tx->msg)
			continue;
		tx_unqueue(tx);
		list_add_tail(queued, &tx->link);
	}
	return rc;
}

/* Gives up a message of which a part may have been sent. If the rest of its
 * frame cannot be sent, closes all connections to the peer. */
static void cancel_writing(struct sock_tx *tx, int status)
{
	struct sock_conn *conn = tx->conn;
	int rc = copy_rest(conn);

	conn->tx = NULL;
	tx_done(tx, status, LNET_CAUSE_NETWORK_TIMEOUT);
	/* Users' handlers may have closed the connection. */
	if (rc && sock_conn_is_open(conn))
		sock_peer_lost(conn, rc);
}

bool sock_tx_has_begun(struct lnd_ni *ni, const struct lnd_msg *msg)
{
	const struct sock_tx *tx = msg->priv;

	(void)ni;
	return tx == tx->conn->tx;
}

void sock_tx_cancel(struct sock_tx *tx, int status)
{
	if (tx == tx->conn->tx) {
		cancel_writing(tx, status);
		return;
	}
	tx_unqueue(tx);
	tx_done(tx, status, LNET_CAUSE_LOCAL_TIMEOUT);
}
