/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fork.h"
#include "lnd/socklnd/host.h"
#include "lnd/socklnd/message.h"
#include "lnd/socklnd/tls.h"

#define CLOSES FSM_TO(CONN_CLOSED)

const struct fsm_state sock_conn_states[CONN_STATES] = {
	[CONN_NEW] = { "new", FSM_TO(CONN_CONNECTING) | FSM_TO(CONN_REQUESTED) |
				      CLOSES },
	[CONN_CONNECTING] = { "connecting", FSM_TO(CONN_SECURING) |
						    FSM_TO(CONN_WAITING) |
						    CLOSES },
	[CONN_SECURING] = { "securing", FSM_TO(CONN_WAITING) | CLOSES },
	[CONN_WAITING] = { "waiting", FSM_TO(CONN_OPEN) | CLOSES },
	[CONN_REQUESTED] = { "requested", FSM_TO(CONN_GREETED) | CLOSES },
	[CONN_GREETED] = { "greeted", FSM_TO(CONN_MOVING) | CLOSES },
	[CONN_MOVING] = { "moving", FSM_TO(CONN_OPEN) | CLOSES },
	[CONN_OPEN] = { "open",
			FSM_TO(CONN_SUSPENDED) | FSM_TO(CONN_MOVING) | CLOSES },
	[CONN_SUSPENDED] = { "suspended", FSM_TO(CONN_OPEN) |
						  FSM_TO(CONN_FINISHING) |
						  CLOSES },
	[CONN_FINISHING] = { "finishing", FSM_TO(CONN_FINISHED) | CLOSES },
	[CONN_FINISHED] = { "finished", CLOSES },
	[CONN_CLOSED] = { "closed", 0 },
};

/* ---- the old descriptor of a connection that has moved ---- */

/*
 * libev forgets a descriptor only some time after it was told to, and until
 * then its number must not be used again. So a connection that moves to another
 * CPT gets a second descriptor of its socket for the new loop; the old one is
 * kept, unwatched, until the connection ends, and then closed by the old loop.
 * It counts in the NI's passage until then.
 */
struct sock_old_fd {
	struct work work;
	struct sock_ni *sni;
	struct loop *loop;
	int fd;
};

static void on_old_fd(struct work *w)
{
	struct sock_old_fd *old = container_of(w, struct sock_old_fd, work);
	struct sock_ni *sni = old->sni;

	fork_fd_close(old->fd);
	free(old);
	passage_arrived(&sni->passage);
}

/* Makes a record of the descriptor of @conn, counted in the NI's passage. NULL:
 * no memory, or the NI goes down. */
static struct sock_old_fd *old_fd_new(const struct sock_conn *conn)
{
	struct sock_old_fd *old = malloc(sizeof(*old));

	if (!old || !passage_hold(&conn->sni->passage)) {
		free(old);
		return NULL;
	}
	old->work.fn = on_old_fd;
	old->sni = conn->sni;
	old->loop = conn->loop;
	old->fd = conn->io.fd;
	return old;
}

/* ---- life ---- */

static void on_freed(struct work *w)
{
	free(container_of(w, struct sock_conn, work));
}

struct sock_conn *sock_conn_new(struct loop *loop, int fd,
				const union netif_addr *remote)
{
	struct sock_conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		fork_fd_close(fd);
		return NULL;
	}
	conn->loop = loop;
	conn->io.fd = fd;
	conn->remote = *remote;
	list_init(&conn->link);
	list_init(&conn->queue);
	list_init(&conn->flush);
	timer_init(&conn->timer, NULL);
	conn->heard = conn->progress = loop_now(loop);
	return conn;
}

int sock_conn_watch(struct sock_conn *conn, int events)
{
	conn->events = events;
	if (conn->reading != CONN_READ_ON)
		events &= ~ENV_READ;
	if (conn->io.impl && conn->io.events == events)
		return 0;
	conn->io.events = events;
	return loop_watch(conn->loop, &conn->io);
}

/* Closes the socket and leaves all lists now; the memory is freed at the end of
 * the turn. */
static void conn_end(struct sock_conn *conn)
{
	fsm_move(&conn->fsm, sock_conn_states, CONN_CLOSED);
	loop_unwatch(conn->loop, &conn->io);
	loop_timer_cancel(conn->loop, &conn->timer);
	if (conn->leave)
		conn->leave(conn);
	sock_tls_free_conn(conn);
	sock_host_put(conn->cpt, conn->host);
	conn->host = NULL;
	fork_fd_close(conn->io.fd);
	if (conn->old_fd)
		loop_post(conn->old_fd->loop, &conn->old_fd->work);
	list_del(&conn->link);
	free(conn->readahead);
	conn->readahead = NULL;
	conn->work.fn = on_freed;
	loop_defer(conn->loop, &conn->work);
}

void sock_conn_drop(struct sock_conn *conn)
{
	BUG_ON(sock_conn_is_open(conn));
	conn_end(conn);
}

static void conn_on_ready(struct env_io *io, int revents)
{
	struct sock_conn *conn = container_of(io, struct sock_conn, io);

	if (unlikely(revents & ENV_ERROR)) {
		sock_peer_lost(conn, -ENOMEM);
		return;
	}
	if (revents & ENV_WRITE)
		sock_tx_writable(conn);
	if (revents & ENV_READ && sock_conn_is_open(conn))
		sock_rx_readable(conn);
}

/* Called like conn_on_ready(), for a connection with TLS. */
static void conn_on_ready_tls(struct env_io *io, int revents)
{
	struct sock_conn *conn = container_of(io, struct sock_conn, io);

	if (unlikely(revents & ENV_ERROR)) {
		sock_peer_lost(conn, -ENOMEM);
		return;
	}
	if (revents & ENV_WRITE)
		sock_tx_writable_tls(conn);
	if (revents & ENV_READ && sock_conn_is_open(conn))
		sock_rx_readable_tls(conn);
}

void sock_conn_open(struct sock_conn *conn)
{
	fsm_move(&conn->fsm, sock_conn_states, CONN_OPEN);
	loop_timer_cancel(conn->loop, &conn->timer);
	conn->io.fn = conn->tls ? conn_on_ready_tls : conn_on_ready;
	conn->io.eager = true;
	conn->heard = conn->progress = loop_now(conn->loop);
	sock_rx_open(conn);
	/* Bulk connections ask for little more than a header, so that payloads
	 * are read straight to their place. */
	conn->rx_limit = conn->type == SOCK_CONTROL ? RX_LIMIT_SMALL_FRAMES
						    : RX_LIMIT_PAYLOADS;
}

void sock_conn_close(struct sock_conn *conn, int status)
{
	sock_peer_del(conn->peer, conn);
	conn_end(conn);
	list_del(&conn->flush);
	/* Users' handlers run, and may do anything: the connection has left all
	 * lists before. */
	sock_rx_conn_closed(conn, status);
	sock_tx_conn_closed(conn, status);
}

/* ---- the end of a suspended connection ---- */

static bool has_to_write(const struct sock_conn *conn)
{
	return !list_empty(&conn->queue) || conn->tx || conn->rest ||
	       (conn->tls && sock_tls_waits(conn));
}

/* Tells the peer, inside of TLS, that this side has finished. */
static void finish_tls(struct sock_conn *conn)
{
	sock_tls_close(conn);
	if (sock_tls_waits(conn))
		sock_tx_flush_soon(conn);
}

void sock_conn_all_written(struct sock_conn *conn)
{
	if (conn->fsm.state == CONN_FINISHING && conn->tls &&
	    !has_to_write(conn))
		finish_tls(conn);
	if (conn->fsm.state == CONN_FINISHING && !has_to_write(conn)) {
		fsm_move(&conn->fsm, sock_conn_states, CONN_FINISHED);
		shutdown(conn->io.fd, SHUT_WR);
		/* From now on the peer has sock_timeout to finish, too. */
		conn->heard = loop_now(conn->loop);
	}
	if (conn->fsm.state == CONN_FINISHED && conn->reading == CONN_READ_EOF)
		sock_conn_close(conn, -ECONNRESET);
}

void sock_conn_finish(struct sock_conn *conn)
{
	if (conn->fsm.state == CONN_SUSPENDED)
		fsm_move(&conn->fsm, sock_conn_states, CONN_FINISHING);
	sock_conn_all_written(conn);
}

void sock_conn_read_eof(struct sock_conn *conn)
{
	conn->reading = CONN_READ_EOF;
	if (sock_conn_watch(conn, conn->events))
		sock_conn_close(conn, -ENOMEM);
	else
		sock_conn_finish(conn);
}

/* ---- to another CPT ---- */

bool sock_conn_can_move(const struct sock_conn *conn)
{
	return conn->fsm.state == CONN_OPEN && !has_to_write(conn) &&
	       conn->out.state == SOCK_OUT_IDLE && !conn->rx &&
	       conn->reading == CONN_READ_ON && !conn->readahead &&
	       !conn->old_fd;
}

int sock_conn_leave(struct sock_conn *conn)
{
	struct sock_old_fd *old = old_fd_new(conn);
	int fd;

	if (!old)
		return -ENOMEM;
	fd = fcntl(conn->io.fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		int rc = -errno;

		free(old);
		passage_arrived(&conn->sni->passage);
		return rc;
	}
	sock_peer_del(conn->peer, conn);
	fsm_move(&conn->fsm, sock_conn_states, CONN_MOVING);
	loop_unwatch(conn->loop, &conn->io);
	loop_timer_cancel(conn->loop, &conn->timer);
	sock_host_put(conn->cpt, conn->host);
	conn->host = NULL;
	conn->peer = NULL;
	conn->old_fd = old;
	conn->io = (struct env_io){ .fd = fd };
	return 0;
}

/* ---- progress ---- */

bool sock_conn_is_busy(const struct sock_conn *conn)
{
	return has_to_write(conn) || conn->rx || conn->part_len ||
	       conn->acked != conn->written;
}

bool sock_conn_is_silent(struct sock_conn *conn, const struct silence_law *law,
			 uint64_t now)
{
	struct silence_acks tcp;

	if (conn->acked == conn->written || conn->progress == now) {
		conn->silence = (struct silence){ 0 };
		return false;
	}
	sock_tcp_look(conn->io.fd, &tcp);
	return silence_look(&conn->silence, law, now, &tcp);
}

bool sock_conn_is_overdue(struct sock_conn *conn, uint64_t now, uint64_t since,
			  uint64_t timeout)
{
	/* When all is acknowledged already, there is no need to ask the system.
	 */
	uint64_t left =
		conn->acked == conn->written ? 0 : sock_unacked(conn->io.fd);
	uint64_t acked = conn->written - left;
	bool sending = acked != conn->written || conn->tx || conn->rest;
	bool receiving = conn->reading == CONN_READ_ON &&
			 (conn->rx || conn->part_len ||
			  conn->fsm.state == CONN_FINISHED);

	/* Bytes that are too few to make the socket readable (SO_RCVLOWAT)
	 * count as progress, too. */
	if (receiving && now != conn->heard)
		sock_rx_take_any(conn);
	if (acked != conn->acked)
		conn->acked_at = now;
	if (acked != conn->acked || !sending)
		conn->progress = now;
	conn->acked = acked;
	return (sending && now - MAX(conn->progress, since) >= timeout) ||
	       (receiving && now - conn->heard >= timeout);
}

uint64_t sock_conn_left(const struct sock_conn *conn)
{
	uint64_t left = conn->queued + (conn->rest ? conn->rest_len : 0);

	return conn->tx ? left + conn->tx->msg->length - conn->tx_done : left;
}

char *sock_conn_str(const struct sock_conn *conn, char *buf, size_t size)
{
	char nid[LNET_NIDSTR_SIZE] = "unknown peer", addr[SOCK_ADDRSTR_SIZE];

	if (conn->peer)
		sock_peer_str(conn->peer, nid, sizeof(nid));
	snprintf(buf, size, "%s, %s, %s", nid,
		 sock_addr_format(&conn->remote, addr, sizeof(addr)),
		 sock_type_name(conn->type));
	return buf;
}
