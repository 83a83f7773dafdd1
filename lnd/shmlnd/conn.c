/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/conn.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/fork.h"
#include "base/iov.h"
#include "lnd/shmlnd/peer.h"

const struct fsm_state shm_conn_states[SHM_CONN_STATES] = {
	[SHM_CONN_NEW] = { "new", FSM_TO(SHM_CONN_GREETING) |
					  FSM_TO(SHM_CONN_CLOSED) },
	[SHM_CONN_GREETING] = { "greeting", FSM_TO(SHM_CONN_MOVING) |
						    FSM_TO(SHM_CONN_OPEN) |
						    FSM_TO(SHM_CONN_CLOSED) },
	[SHM_CONN_MOVING] = { "moving",
			      FSM_TO(SHM_CONN_OPEN) | FSM_TO(SHM_CONN_CLOSED) },
	[SHM_CONN_OPEN] = { "open",
			    FSM_TO(SHM_CONN_LEFT) | FSM_TO(SHM_CONN_CLOSED) },
	[SHM_CONN_LEFT] = { "left", FSM_TO(SHM_CONN_CLOSED) },
	[SHM_CONN_CLOSED] = { "closed", 0 },
};

/* ---- causes ---- */

enum ulnet_cause shm_loss_unconnected(int status)
{
	switch (status) {
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EPIPE:
	case -ETIMEDOUT:
	case -EALREADY:
	case -EPROTO:
	case -EPROTONOSUPPORT:
	case -EACCES:
	case -EMSGSIZE:
		return LNET_CAUSE_REMOTE_DROPPED;
	default:
		return LNET_CAUSE_LOCAL_DROPPED;
	}
}

enum ulnet_cause shm_loss_begun(int status)
{
	switch (status) {
	case -ESHUTDOWN:
		return LNET_CAUSE_SHUTDOWN;
	case -ETIMEDOUT:
		return LNET_CAUSE_NETWORK_TIMEOUT;
	case -ECONNRESET:
	case -EPIPE:
	case -EPROTO:
	case -ECANCELED:
		return LNET_CAUSE_REMOTE_ERROR;
	default:
		return LNET_CAUSE_LOCAL_ERROR;
	}
}

enum ulnet_cause shm_loss_queued(int status)
{
	switch (shm_loss_begun(status)) {
	case LNET_CAUSE_SHUTDOWN:
		return LNET_CAUSE_LOCAL_ABORTED;
	case LNET_CAUSE_LOCAL_ERROR:
		return LNET_CAUSE_LOCAL_DROPPED;
	default:
		return LNET_CAUSE_REMOTE_DROPPED;
	}
}

/* ---- life ---- */

static void on_stall(struct timer *t);
static void on_wake_again(struct timer *t);
static void on_resume(struct work *w);

static void line_init(struct shm_line *line, struct shm_conn *conn, bool begun)
{
	list_init(&line->msgs);
	line->conn = conn;
	line->begun = begun;
}

struct shm_conn *shm_conn_new(struct shm_ni *sni, struct loop *loop, int fd)
{
	struct shm_conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		fork_fd_close(fd);
		return NULL;
	}
	conn->sni = sni;
	conn->loop = loop;
	conn->io.fd = fd;
	list_init(&conn->link);
	list_init(&conn->flush);
	line_init(&conn->queue, conn, false);
	line_init(&conn->sent, conn, true);
	line_init(&conn->lent, conn, true);
	list_init(&conn->refused);
	timer_init(&conn->timer, NULL);
	timer_init(&conn->again, on_wake_again);
	return conn;
}

/* The memory goes at the end of the turn: it may be in use up the stack. */
static void on_freed(struct work *w)
{
	struct shm_conn *conn = container_of(w, struct shm_conn, work);

	if (conn->spent)
		shm_ring_empty(&conn->ring);
	shm_ring_unmap(&conn->ring);
	shm_view_close(conn);
	free(conn);
}

static void conn_silence(struct shm_conn *conn)
{
	loop_unwatch(conn->loop, &conn->io);
	loop_timer_cancel(conn->loop, &conn->timer);
	loop_timer_cancel(conn->loop, &conn->again);
}

static void conn_end(struct shm_conn *conn, bool spent)
{
	fsm_move(&conn->fsm, shm_conn_states, SHM_CONN_CLOSED);
	conn->spent = spent;
	conn_silence(conn);
	fork_fd_close(conn->io.fd);
	conn->work.fn = on_freed;
	loop_defer(conn->loop, &conn->work);
}

void shm_conn_drop(struct shm_conn *conn)
{
	BUG_ON(conn->fsm.state >= SHM_CONN_OPEN);
	/* This side has written nothing, and reads nothing. */
	conn_end(conn, true);
}

bool shm_conn_hung_up(const struct shm_conn *conn)
{
	struct pollfd p = { .fd = conn->io.fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

/* ---- connections that only the peer has ---- */

void shm_conn_release(struct shm_conn *conn)
{
	list_del(&conn->link);
	conn->cpt->nleft--;
	conn_end(conn, shm_conn_hung_up(conn));
}

/* Reads in a turn, of what the peer still sends. */
#define LEFT_READS 64

static void left_on_ready(struct env_io *io, int revents)
{
	struct shm_conn *conn = container_of(io, struct shm_conn, io);
	ssize_t n = revents & ENV_ERROR ? 0 : 1;
	char bytes[256];

	/* Descriptors that it sends are lost in the system. */
	for (unsigned int i = 0; n > 0 && i < LEFT_READS; i++)
		n = recv(io->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		shm_conn_release(conn);
}

/* Waits until the peer has closed its end. Returns false: the system is not
 * able to tell of that. */
static bool conn_leave(struct shm_conn *conn)
{
	conn_silence(conn);
	conn->io.fn = left_on_ready;
	conn->io.rest = NULL;
	conn->io.news = NULL;
	conn->io.eager = false;
	conn->io.events = ENV_READ;
	if (shutdown(conn->io.fd, SHUT_WR) || loop_watch(conn->loop, &conn->io))
		return false;
	fsm_move(&conn->fsm, shm_conn_states, SHM_CONN_LEFT);
	conn->peer = NULL;
	list_add_tail(&conn->cpt->left, &conn->link);
	conn->cpt->nleft++;
	shm_conn_resume(conn);
	return true;
}

/* ---- wake-ups ---- */

/* ns: when a wake-up is sent again for which the system had no memory */
#define WAKE_AGAIN (10 * NSEC_PER_MSEC)

/* A full socket (EAGAIN) holds earlier wake-ups, so the peer is going to be
 * awake: it looks at the ring after it has read them. A socket without a peer
 * has ended, which is noticed elsewhere. */
void shm_conn_wake(struct shm_conn *conn)
{
	const char byte = 0;

	if (likely(send(conn->io.fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		   1) ||
	    errno == EAGAIN || errno == EPIPE || errno == ECONNRESET)
		return;
	loop_timer_arm(conn->loop, &conn->again,
		       loop_now(conn->loop) + WAKE_AGAIN);
}

static void on_wake_again(struct timer *t)
{
	shm_conn_wake(container_of(t, struct shm_conn, again));
}

/* Reads the wake-ups that have come. Returns 0; or -errno, or 1 if the peer has
 * closed the socket. */
static int take_wake_ups(struct shm_conn *conn)
{
	char bytes[64];
	ssize_t n;

	if (unlikely(conn->view_state == SHM_VIEW_EXPECTED)) {
		n = shm_view_take(conn, bytes, sizeof(bytes));
	} else {
		n = recv(conn->io.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 0)
			n = -errno;
	}
	if (n > 0)
		return 0;
	if (n == 0)
		return 1;
	return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
}

static bool has_to_write(const struct shm_conn *conn)
{
	return conn->tx || conn->abort_due || conn->owed ||
	       !list_empty(&conn->queue.msgs);
}

/* What it has lent, and has no answer to. */
static uint32_t unanswered(const struct shm_conn *conn)
{
	return conn->lent_slots & ~conn->owed;
}

/* What this side waits for. */
static uint32_t conn_wants(const struct shm_conn *conn)
{
	return (conn->paused ? 0 : SHM_WANTS_FRAMES) |
	       (has_to_write(conn) ? SHM_WANTS_ROOM : 0) |
	       (conn->lent_slots ? SHM_WANTS_ANSWERS : 0);
}

/* This side may sleep from now on, and is woken. Returns false: there is
 * something to do already. */
static bool conn_sleep(struct shm_conn *conn)
{
	return shm_ring_sleep(&conn->ring, conn_wants(conn));
}

static bool conn_news(const struct env_io *io)
{
	const struct shm_conn *conn =
		container_of((struct env_io *)io, struct shm_conn, io);

	return shm_ring_has_news(&conn->ring, conn_wants(conn));
}

static bool conn_rest(struct env_io *io)
{
	struct shm_conn *conn = container_of(io, struct shm_conn, io);

	conn->resting = conn_sleep(conn);
	return conn->resting;
}

/* What this side waits for has changed: if it rests, it is woken for that. */
static void conn_rearm(struct shm_conn *conn)
{
	if (conn->resting && !conn_sleep(conn))
		shm_conn_resume(conn);
}

/* ---- outgoing ---- */

static void flush_soon(struct shm_conn *conn)
{
	struct shm_cpt *cpt = conn->cpt;

	if (list_empty(&conn->flush))
		list_add_tail(&cpt->flush, &conn->flush);
	if (cpt->flush_scheduled)
		return;
	cpt->flush_scheduled = true;
	loop_defer_last(cpt->loop, &cpt->flush_work);
}

static void conn_failed(struct shm_conn *conn, int status)
{
	if (!conn->failed)
		conn->failed = status;
	flush_soon(conn);
}

/* Is there room for @bytes, frames' headers included? */
static in_line bool has_room(struct shm_conn *conn, uint32_t bytes)
{
	int rc;

	if (likely(bytes <= shm_ring_room(&conn->ring)))
		return true;
	rc = shm_ring_look_room(&conn->ring);
	if (rc) {
		conn_failed(conn, rc);
		return false;
	}
	return bytes <= shm_ring_room(&conn->ring);
}

static void frame_written(struct shm_conn *conn, uint32_t type, uint32_t length)
{
	shm_ring_commit(&conn->ring, type, length);
	shm_ring_publish(&conn->ring);
	conn->unannounced = true;
}

/* The payload that the first frame of a message takes; the rest follows. */
static uint32_t first_part(const struct shm_conn *conn,
			   const struct lnd_msg *msg, size_t hdr_len)
{
	uint32_t most = conn->ring.size / 2;

	if (shm_frame_space((uint32_t)hdr_len + msg->length) <= most)
		return msg->length;
	return MIN(msg->length, conn->ring.size / 4);
}

/* ---- loans ---- */

#define ALL_SLOTS (UINT32_MAX >> (32 - SHM_LOANS))

/* Is @msg long enough that it pays to lend its payload, and is there a slot? */
static bool may_lend(const struct shm_conn *conn, const struct lnd_msg *msg)
{
	return msg->length >= conn->copy_min && conn->lent_slots != ALL_SLOTS &&
	       msg->niov <= SHM_SEGMENTS;
}

static unsigned int first_slot(uint32_t slots)
{
	return (unsigned int)__builtin_ctz(slots);
}

/* Writes to @s where the payload of @msg lies; returns the number of segments.
 */
static uint32_t segments_of(const struct lnd_msg *msg, struct shm_segment *s)
{
	struct iovec iov[SHM_SEGMENTS];
	unsigned int n =
		iov_slice(iov, msg->iov, msg->niov, msg->offset, msg->length);

	for (unsigned int i = 0; i < n; i++)
		s[i] = (struct shm_segment){ (uintptr_t)iov[i].iov_base,
					     iov[i].iov_len };
	return n;
}

/* Writes a frame that lends the payload of @msg. Returns 0; -EAGAIN: there is
 * no room; -EOPNOTSUPP: the peer does not read the payload where it lies. */
static int tx_lend(struct shm_conn *conn, struct lnd_msg *msg, size_t hdr_len)
{
	unsigned int slot = first_slot(~conn->lent_slots);
	struct shm_loan *l = &conn->loans[slot];
	struct shm_segment from[SHM_SEGMENTS];
	struct shm_loan_hdr hdr = { .loan = (conn->loans_made + 1) * SHM_LOANS +
					    slot,
				    .segments = segments_of(msg, from) };
	size_t all = hdr.segments * sizeof(from[0]);
	uint32_t length = (uint32_t)(hdr_len + sizeof(hdr) + all);
	uint8_t *body;
	bool shared;

	if (!has_room(conn, shm_frame_space(length)))
		return -EAGAIN;
	*l = (struct shm_loan){ .loan = hdr.loan, .msg = msg };
	shared = shm_view_lend(conn, l, from, hdr.segments);
	if (!shared && !shm_ring_peer_copies(&conn->ring))
		return -EOPNOTSUPP;
	/* No loan has the number 0. */
	conn->loans_made = (conn->loans_made + 1) % (UINT32_MAX / SHM_LOANS);
	body = shm_ring_body(&conn->ring);
	lnet_msg_header(msg, body, hdr_len);
	memcpy(body + hdr_len, &hdr, sizeof(hdr));
	memcpy(body + hdr_len + sizeof(hdr), from, all);
	shm_ring_lend(&conn->ring, hdr.loan);
	conn->lent_slots |= 1u << slot;
	msg->priv = &conn->lent;
	list_add_tail(&conn->lent.msgs, &msg->link);
	frame_written(conn,
		      (shared ? SHM_SHARED_MESSAGE : SHM_LENT_MESSAGE) +
			      msg->large,
		      length);
	return 0;
}

static void free_slot(struct shm_conn *conn, unsigned int slot)
{
	shm_ring_call_back(&conn->ring, conn->loans[slot].loan);
	shm_view_return(conn, &conn->loans[slot]);
	conn->lent_slots &= ~(1u << slot);
	conn->owed &= ~(1u << slot);
}

/* Looks what has become of loans. */
static void look_at_loans(struct shm_conn *conn)
{
	if (!shm_ring_look_answers(&conn->ring))
		return;
	for (uint32_t s = unanswered(conn); s; s &= s - 1) {
		unsigned int slot = first_slot(s);
		struct lnd_msg *msg = conn->loans[slot].msg;
		uint32_t answer =
			shm_ring_answer_to(&conn->ring, conn->loans[slot].loan);

		if (!answer)
			continue;
		flush_soon(conn);
		if (answer == SHM_REFUSED) {
			conn->owed |= 1u << slot;
			continue;
		}
		free_slot(conn, slot);
		if (msg) {
			list_del(&msg->link);
			msg->priv = &conn->sent;
			list_add_tail(&conn->sent.msgs, &msg->link);
		}
	}
}

/* Takes the payload of @msg back. If the peer refuses it, a frame says so. */
static void call_back(struct shm_conn *conn, const struct lnd_msg *msg)
{
	for (uint32_t s = conn->lent_slots; s; s &= s - 1) {
		struct shm_loan *l = &conn->loans[first_slot(s)];

		if (l->msg != msg)
			continue;
		l->msg = NULL;
		shm_ring_call_back(&conn->ring, l->loan);
	}
}

static bool tx_more(struct shm_conn *conn);

/* Writes what loans were refused for. Returns false: there is no room for all
 * of it. */
static bool tx_owed(struct shm_conn *conn)
{
	while (conn->owed) {
		unsigned int slot = first_slot(conn->owed);
		const struct shm_loan *l = &conn->loans[slot];
		struct lnd_msg *msg = l->msg;
		const uint64_t number = l->loan;
		uint32_t n = msg ? MIN(msg->length, conn->ring.size / 4) : 0;
		uint32_t length = (uint32_t)sizeof(number) + n;
		uint8_t *body;

		if (!has_room(conn, shm_frame_space(length)))
			return false;
		body = shm_ring_body(&conn->ring);
		memcpy(body, &number, sizeof(number));
		if (n)
			iov_gather(body + sizeof(number), msg->iov, msg->niov,
				   msg->offset, n);
		frame_written(conn, msg ? SHM_AGAIN : SHM_CALL_BACK, length);
		free_slot(conn, slot);
		if (!msg)
			continue;
		list_del(&msg->link);
		msg->priv = &conn->sent;
		conn->tx = msg;
		conn->tx_done = n;
		if (!tx_more(conn))
			return false;
	}
	return true;
}

/* ---- outgoing messages ---- */

/* Writes the first frame of @msg. Returns false: there is no room. */
static in_line bool tx_begin(struct shm_conn *conn, struct lnd_msg *msg)
{
	size_t hdr_len = msg->large ? LNET_HDR_LARGE_SIZE : LNET_HDR_SIZE;
	uint32_t n = first_part(conn, msg, hdr_len);
	uint8_t *body;

	if (unlikely(may_lend(conn, msg))) {
		int rc = tx_lend(conn, msg, hdr_len);

		if (rc != -EOPNOTSUPP)
			return !rc;
	}
	if (!has_room(conn, shm_frame_space((uint32_t)hdr_len + n)))
		return false;
	body = shm_ring_body(&conn->ring);
	lnet_msg_header(msg, body, hdr_len);
	if (n)
		iov_gather(body + hdr_len, msg->iov, msg->niov, msg->offset, n);
	frame_written(conn, msg->large ? SHM_LARGE_MESSAGE : SHM_MESSAGE,
		      (uint32_t)hdr_len + n);
	msg->priv = &conn->sent;
	conn->tx_done = n;
	if (unlikely(n < msg->length))
		conn->tx = msg;
	else
		list_add_tail(&conn->sent.msgs, &msg->link);
	return true;
}

/* Writes more of the message that is partly written. Returns false: there is no
 * room for all of it. */
static bool tx_more(struct shm_conn *conn)
{
	struct lnd_msg *msg = conn->tx;

	while (conn->tx_done < msg->length) {
		uint32_t n = MIN(msg->length - conn->tx_done,
				 conn->ring.size / 4);

		if (!has_room(conn, shm_frame_space(n)))
			return false;
		iov_gather(shm_ring_body(&conn->ring), msg->iov, msg->niov,
			   msg->offset + conn->tx_done, n);
		frame_written(conn, SHM_MORE, n);
		conn->tx_done += n;
	}
	conn->tx = NULL;
	list_add_tail(&conn->sent.msgs, &msg->link);
	return true;
}

/* Writes what there is room for. */
static void tx_pump(struct shm_conn *conn)
{
	if (conn->abort_due && has_room(conn, shm_frame_space(0))) {
		frame_written(conn, SHM_ABORT, 0);
		conn->abort_due = false;
	}
	if (conn->abort_due || (conn->tx && !tx_more(conn)) || !tx_owed(conn))
		return;
	while (!list_empty(&conn->queue.msgs) && !conn->failed) {
		struct lnd_msg *msg =
			list_first(&conn->queue.msgs, struct lnd_msg, link);

		list_del(&msg->link);
		if (!tx_begin(conn, msg)) {
			list_add(&conn->queue.msgs, &msg->link);
			return;
		}
		if (conn->tx && !tx_more(conn))
			return;
	}
}

int shm_tx_send(struct lnd_ni *ni, struct lnd_msg *msg)
{
	struct shm_cpt *cpt = &shm_ni_of(ni)->cpts[msg->cpt];
	struct ulnet_id to = { msg->next_hop, msg->next_pid };
	struct shm_peer *peer = shm_peer_lookup(cpt, &to);
	struct shm_conn *conn = peer ? peer->conn : NULL;

	/* LNet may have chosen the NI before it began to stop. */
	if (unlikely(!conn && cpt->stopping))
		return -ENETDOWN;
	/* A process that only calls cannot be connected to. */
	if (unlikely(!conn && shm_pid_is_user(to.pid)))
		return -EHOSTUNREACH;
	if (unlikely(!conn)) {
		peer = shm_peer_lookup_or_make(cpt, &to);
		if (!peer)
			return -ENOMEM;
		connect_want(&peer->connect);
		return -EINPROGRESS;
	}
	if (unlikely(has_to_write(conn)) || !tx_begin(conn, msg)) {
		msg->priv = &conn->queue;
		list_add_tail(&conn->queue.msgs, &msg->link);
	}
	flush_soon(conn);
	return 0;
}

/* Ends the messages that are in @msgs now. Users' handlers run. */
static void end_all(struct list *msgs, int status, enum ulnet_cause cause)
{
	struct lnd_msg *msg;
	struct list now;

	list_init(&now);
	list_splice_tail(&now, msgs);
	while ((msg = list_pop(&now, struct lnd_msg, link)))
		lnet_finalize(msg, status, cause);
}

/* ns: from one look to the next, whether the peer has stalled */
static uint64_t look_interval(const struct shm_conn *conn)
{
	int64_t own = conn->sni->tunables[SHM_stall_timeout];

	return (own ? (uint64_t)own * NSEC_PER_SEC
		    : lnet_lnd_timeout(conn->sni->ni)) /
	       SHM_STALL_LOOKS;
}

static void look_later(struct shm_conn *conn)
{
	conn->look = loop_now(conn->loop) + look_interval(conn);
	loop_timer_arm(conn->loop, &conn->timer, conn->look);
}

/* Something is under way: the peer has to go on. */
static void watch_stall(struct shm_conn *conn)
{
	if (timer_armed(&conn->timer))
		return;
	conn->room.waits = conn->more.waits = conn->answers.waits = false;
	look_later(conn);
}

/* The end of a turn. */
static void conn_flush(struct shm_conn *conn)
{
	if (has_to_write(conn))
		tx_pump(conn);
	if (unlikely(conn->failed)) {
		shm_peer_lost(conn, conn->failed, conn->ring.why);
		return;
	}
	if (conn->unannounced) {
		conn->unannounced = false;
		if (shm_ring_must_wake(&conn->ring, SHM_WANTS_FRAMES))
			shm_conn_wake(conn);
	}
	if (unlikely(has_to_write(conn) || conn->lent_slots)) {
		watch_stall(conn);
		conn_rearm(conn);
	}
	end_all(&conn->sent.msgs, 0, LNET_CAUSE_OK);
}

void shm_tx_flush(struct work *w)
{
	struct shm_cpt *cpt = container_of(w, struct shm_cpt, flush_work);
	struct shm_conn *conn;
	struct list batch;

	cpt->flush_scheduled = false;
	list_init(&batch);
	list_splice_tail(&batch, &cpt->flush);
	while ((conn = list_pop(&batch, struct shm_conn, flush)))
		conn_flush(conn);
}

bool shm_tx_has_begun(struct lnd_ni *ni, const struct lnd_msg *msg)
{
	const struct shm_line *line = msg->priv;

	(void)ni;
	return line->begun;
}

static void tx_cancel(struct lnd_msg *msg, int status)
{
	const struct shm_line *line = msg->priv;
	struct shm_conn *conn = line->conn;

	if (conn->tx == msg) {
		/* The peer is told not to wait for the rest. */
		conn->tx = NULL;
		conn->abort_due = true;
		flush_soon(conn);
	} else {
		list_del(&msg->link);
		if (line == &conn->lent)
			call_back(conn, msg);
	}
	lnet_finalize(msg, status,
		      line->begun ? LNET_CAUSE_NETWORK_TIMEOUT
				  : LNET_CAUSE_LOCAL_TIMEOUT);
}

void shm_conn_give_back(struct shm_conn *conn)
{
	struct list *l, *before;

	for (l = conn->queue.msgs.prev; l != &conn->queue.msgs; l = before) {
		struct lnd_msg *msg = container_of(l, struct lnd_msg, link);

		before = l->prev;
		if (msg->again)
			continue;
		list_del(&msg->link);
		connect_want(&conn->peer->connect);
		lnet_send_again(msg);
	}
}

void shm_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status)
{
	(void)ni;
	if (msg->incoming)
		shm_rx_cancel(msg, status);
	else
		tx_cancel(msg, status);
}

/* ---- both ---- */

/* Reads and writes what can be. Users' handlers run. */
static void conn_serve(struct shm_conn *conn)
{
	int rc;

	if (unlikely(conn->lent_slots))
		look_at_loans(conn);
	if (unlikely(has_to_write(conn)))
		flush_soon(conn);
	rc = shm_rx_read(conn);
	if (!shm_conn_is_open(conn))
		return;
	if (unlikely(rc))
		shm_peer_lost(conn, rc, conn->ring.why);
	else if (unlikely(conn->ended && !conn->paused))
		shm_peer_lost(conn, 0, NULL);
	else if (unlikely(conn->rx))
		watch_stall(conn);
}

void shm_conn_resume(struct shm_conn *conn)
{
	if (conn->resuming)
		return;
	conn->resuming = true;
	loop_defer(conn->loop, &conn->resume);
}

/* LNet has answered in an earlier turn, or there is something to read. */
static void on_resume(struct work *w)
{
	struct shm_conn *conn = container_of(w, struct shm_conn, resume);
	int rc = 0;

	conn->resuming = false;
	/* Now nobody up the stack reads out of it. */
	if (conn->fsm.state == SHM_CONN_LEFT)
		shm_view_close(conn);
	if (!shm_conn_is_open(conn))
		return;
	if (conn->rx && conn->paused &&
	    (conn->rx->answered || conn->rx->bounced)) {
		rc = shm_rx_take_held(conn);
		/* shm_rx_read() tells only of what it reads itself. */
		if (shm_conn_is_open(conn))
			shm_rx_give_room(conn);
	}
	if (!shm_conn_is_open(conn))
		return;
	if (rc)
		shm_peer_lost(conn, rc, conn->ring.why);
	else
		conn_serve(conn);
	if (shm_conn_is_open(conn))
		conn_rearm(conn);
}

/* What is in the ring was sent before. */
static void conn_ended(struct shm_conn *conn)
{
	conn->ended = true;
	conn->io.events = 0;
	(void)!loop_watch(conn->loop, &conn->io);
}

static void conn_on_ready(struct env_io *io, int revents)
{
	struct shm_conn *conn = container_of(io, struct shm_conn, io);
	int rc = 0;

	if (unlikely(revents & ENV_ERROR)) {
		shm_peer_lost(conn, -ENOMEM, NULL);
		return;
	}
	if (conn->resting) {
		conn->resting = false;
		shm_ring_awake(&conn->ring);
	}
	if (!(revents & ENV_POLLED))
		rc = take_wake_ups(conn);
	if (unlikely(rc))
		conn_ended(conn);
	conn_serve(conn);
}

/* Has the peer stalled? It may be stopped, or does not do what it has to. What
 * lies in the ring to be read waits for this side. */
static int look_at_stall(struct shm_conn *conn, bool room, bool more,
			 bool answers)
{
	bool late = loop_now(conn->loop) > conn->look + look_interval(conn) / 2;
	int rc = shm_ring_look_room(&conn->ring);

	if (rc)
		return rc;
	more = more && !shm_ring_has_frames(&conn->ring);
	room = shm_stall_look(&conn->room, room, conn->ring.freed, late);
	more = shm_stall_look(&conn->more, more, conn->ring.head, late);
	/* It has to read the frames in front of a loan, too. */
	answers = shm_stall_look(&conn->answers, answers,
				 conn->ring.freed + conn->ring.heard, late);
	if (room)
		conn->ring.why = "has made no room (stall_timeout)";
	else if (more)
		conn->ring.why = "has not gone on with a message "
				 "(stall_timeout)";
	else if (answers)
		conn->ring.why = "has not copied what is lent to it "
				 "(stall_timeout)";
	return room || more || answers ? -ETIMEDOUT : 0;
}

static void on_stall(struct timer *t)
{
	struct shm_conn *conn = container_of(t, struct shm_conn, timer);
	bool room, more, answers;
	int rc;

	look_at_loans(conn);
	room = has_to_write(conn);
	more = conn->rx && !conn->paused;
	answers = unanswered(conn);
	if (!room && !more && !answers)
		return;
	/* Room that this look finds nobody else tells of. */
	if (room)
		flush_soon(conn);
	rc = look_at_stall(conn, room, more, answers);
	if (rc)
		shm_peer_lost(conn, rc, conn->ring.why);
	else
		look_later(conn);
}

int shm_conn_open(struct shm_conn *conn, struct shm_peer *peer)
{
	uint64_t least;
	int rc;

	loop_unwatch(conn->loop, &conn->io);
	conn->peer = peer;
	conn->io.fn = conn_on_ready;
	conn->io.rest = conn_rest;
	conn->io.news = conn_news;
	conn->io.eager = true;
	conn->io.events = ENV_READ;
	conn->resume.fn = on_resume;
	timer_init(&conn->timer, on_stall);
	rc = loop_watch(conn->loop, &conn->io);
	if (rc)
		return rc;
	fsm_move(&conn->fsm, shm_conn_states, SHM_CONN_OPEN);
	if (conn->accepted)
		conn->cpt->accepted++;
	least = (uint64_t)conn->sni->tunables[SHM_copy_min];
	conn->copy_min = least ? (uint32_t)least : UINT32_MAX;
	shm_rx_try_copy(conn);
	/* The peer may have written something already. */
	conn->resting = true;
	conn_rearm(conn);
	return 0;
}

/* Nothing is sent any more. Users' handlers run, and may do anything: @conn has
 * left all lists before. */
static void tx_end(struct shm_conn *conn, int status)
{
	struct lnd_msg *tx = conn->tx;

	look_at_loans(conn);
	while (conn->lent_slots)
		free_slot(conn, first_slot(conn->lent_slots));
	conn->tx = NULL;
	conn->abort_due = false;
	list_del(&conn->flush);
	end_all(&conn->sent.msgs, 0, LNET_CAUSE_OK);
	if (tx)
		lnet_finalize(tx, status, shm_loss_begun(status));
	end_all(&conn->lent.msgs, status, shm_loss_begun(status));
	end_all(&conn->queue.msgs, status, shm_loss_queued(status));
}

void shm_conn_retire(struct shm_conn *conn)
{
	conn_ended(conn);
	tx_end(conn, -ECONNRESET);
	if (shm_conn_is_open(conn))
		conn_serve(conn);
}

void shm_conn_close(struct shm_conn *conn, int status)
{
	if (conn->accepted)
		conn->cpt->accepted--;
	/* A peer that hears of the end may empty the memory. */
	look_at_loans(conn);
	if (shm_conn_hung_up(conn) || conn->cpt->stopping || !conn_leave(conn))
		conn_end(conn, shm_conn_hung_up(conn));
	list_del(&conn->flush);
	shm_rx_stop(conn, status);
	tx_end(conn, status);
}
