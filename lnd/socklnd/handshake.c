/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "lnd/socklnd/peer.h"
#include "lnd/socklnd/conn.h"
#include "lnd/socklnd/host.h"

#define VERSION_DEFAULT	      3
#define VERSION_DEFAULT_LARGE 4

/* The version of the HELLO for a connection with @nid whose peer's version is
 * unknown. */
static uint8_t version_of(const struct ulnet_nid *nid)
{
	return lnet_nid_is_nid4(nid) ? VERSION_DEFAULT : VERSION_DEFAULT_LARGE;
}

/* ---- bytes ---- */

static void hs_expect(struct sock_conn *conn)
{
	conn->hs_step = 0;
	conn->hs_have = 0;
	conn->hs_want = SOCK_START_SIZE;
}

/* Reads until buf holds hs_want bytes. 1: it does; 0: not yet; -errno. */
static int hs_read(struct sock_conn *conn)
{
	while (conn->hs_have < conn->hs_want) {
		ssize_t n = recv(conn->io.fd, conn->buf + conn->hs_have,
				 conn->hs_want - conn->hs_have, 0);

		if (n == 0)
			return -ECONNRESET;
		if (n > 0)
			conn->hs_have += (unsigned int)n;
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return -errno;
	}
	return 1;
}

/* Writes all of @buf at once: the socket has room, since little was sent on it
 * before. 0 or -errno. */
static int hs_write(int fd, const void *buf, size_t len)
{
	ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	return (size_t)n == len ? 0 : -EIO;
}

static int hello_write(int fd, const struct lnd_ni *ni, unsigned int version,
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
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];

	return hs_write(fd, buf, sock_hello_encode(&hello, buf));
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

/* Reads the HELLO. 1: all of it has come; 0: not yet; -errno. */
static int hello_read(struct sock_conn *conn)
{
	int rc;

	do {
		rc = hs_read(conn);
		if (rc <= 0)
			return rc;
		rc = hello_step(conn);
	} while (rc == 0);
	return rc;
}

/* ---- what the NIs of one node share ---- */

struct sock_shared *sock_shared_get(void **slot)
{
	struct sock_shared *s = *slot;

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (s)
		list_init(&s->listeners);
	*slot = s;
	return s;
}

void sock_shared_put(void **slot)
{
	struct sock_shared *s = *slot;

	if (!s || s->links || !list_empty(&s->listeners))
		return;
	free(s);
	*slot = NULL;
}

/* ---- handshakes of a listener ---- */

/* The handshake of @conn has made progress: its time-out starts again. */
static void listener_step(struct sock_listener *l, struct sock_conn *conn)
{
	list_del(&conn->link);
	list_add_tail(&l->handshakes, &conn->link);
	loop_timer_arm(l->loop, &conn->timer,
		       loop_now(l->loop) +
			       l->conf->accept_timeout * NSEC_PER_USEC);
}

/* The NI of this listener that has @nid, or NULL. */
static struct sock_ni *listener_find(struct sock_listener *l,
				     const struct ulnet_nid *nid)
{
	struct sock_ni *sni;

	list_for_each_entry (sni, &l->nis, in_listener)
		if (lnet_nid_eq(&sni->ni->nid, nid))
			return sni;
	return NULL;
}

/* Starts a handshake: guest.fn is called when @conn is readable. 0 or
 * -errno. */
static int listener_add(struct sock_listener *l, struct sock_conn *conn)
{
	int rc = lobby_enter(&l->lobby, &conn->guest, conn->io.fd);

	if (rc)
		return rc;
	conn->listener = l;
	l->nhandshakes++;
	listener_step(l, conn);
	return 0;
}

void sock_listener_del(struct sock_conn *conn)
{
	struct sock_listener *l = conn->listener;

	if (!l)
		return;
	lobby_leave(&conn->guest);
	l->nhandshakes--;
	conn->listener = NULL;
	list_del(&conn->link);
	loop_timer_cancel(l->loop, &conn->timer);
}

/* ---- passive ---- */

static void hs_complain(const struct sock_conn *conn, const char *what, int rc)
{
	char addr[SOCK_ADDRSTR_SIZE];

	log_warn_limited(&conn->listener->complaints, loop_now(conn->loop),
			 "socklnd", "%s: %s: %s",
			 sock_addr_format(&conn->remote, addr, sizeof(addr)),
			 what, strerror(-rc));
}

/* Answers the HELLO, on the CPT that owns the peer. */
static void handshake_arrive(struct sock_conn *conn)
{
	const struct lnd_ni *ni = conn->sni->ni;
	struct sock_peer *peer;
	int rc;

	peer = conn->cpt->stopping ? NULL
				   : sock_peer_greeted(conn->cpt, &conn->hello);
	if (!peer) {
		sock_conn_drop(conn);
		return;
	}
	conn->type = (int8_t)sock_type_invert(conn->hello.type);
	rc = sock_peer_admit(peer, &conn->hello, conn->type);
	if (!rc)
		rc = sock_host_get(conn->cpt, &peer->id.nid, &conn->host);
	if (!rc)
		rc = hello_write(conn->io.fd, ni, conn->hello.version,
				 &peer->id.nid, conn->type);
	else
		hello_write(conn->io.fd, ni, conn->hello.version, &peer->id.nid,
			    SOCK_NONE);
	if (rc)
		sock_conn_drop(conn);
	else
		sock_peer_add(peer, conn);
	sock_peer_settle(peer);
}

static void hs_pass(struct sock_conn *conn, unsigned int owner);

static unsigned int hs_owner(const struct sock_conn *conn)
{
	return lnet_ni_cpt_of(conn->sni->ni, &conn->hello.src_nid);
}

/* @conn has arrived on a CPT; but the peer may have another owner by now. */
static void handshake_on_moved(struct work *w)
{
	struct sock_conn *conn = container_of(w, struct sock_conn, work);
	struct sock_ni *sni = conn->sni;
	unsigned int owner = hs_owner(conn);

	if (likely(owner == conn->cpt->index))
		handshake_arrive(conn);
	else
		hs_pass(conn, owner);
	passage_arrived(&sni->passage);
}

static void hs_pass(struct sock_conn *conn, unsigned int owner)
{
	conn->cpt = &conn->sni->cpts[owner];
	conn->loop = conn->cpt->loop;
	conn->work.fn = handshake_on_moved;
	passage_send(&conn->sni->passage, conn->loop, &conn->work);
}

static void hs_move(struct sock_conn *conn)
{
	unsigned int owner = hs_owner(conn);

	sock_listener_del(conn);
	fsm_move(&conn->fsm, sock_conn_states, CONN_MOVING);
	if (owner) {
		hs_pass(conn, owner);
		return;
	}
	conn->cpt = &conn->sni->cpts[0];
	handshake_arrive(conn);
}

/* Is a well-formed HELLO acceptable to its NI? 0, -EPROTO or -EACCES. */
static int hello_check(const struct sock_conn *conn)
{
	const struct sock_hello *h = &conn->hello;

	if (sock_type_invert(h->type) == SOCK_NONE ||
	    h->src_nid.size != conn->sni->ni->nid.size ||
	    lnet_nid_net(&h->src_nid) != lnet_nid_net(&conn->sni->ni->nid))
		return -EPROTO;
	/* Only this process listens on our NID, and it does not connect to
	 * itself. */
	if (lnet_nid_eq(&h->src_nid, &conn->sni->ni->nid) &&
	    !sock_pid_is_user(h->src_pid))
		return -EPROTO;
	/* From an unprivileged port a peer may claim only the NID of the
	 * address that it connects from. */
	if (!sock_port_is_privileged(sock_port_of(&conn->remote)) &&
	    !netif_addr_is(&conn->remote, &h->src_nid))
		return -EACCES;
	return 0;
}

/* Reads the HELLO. 0: go on; -errno: drop the connection. */
static int greeted(struct sock_conn *conn)
{
	const struct lnd_ni *ni = conn->sni->ni;
	int rc = hello_read(conn);

	if (rc == 0)
		return 0;
	/* The peer's NID is in a form that we cannot read, so the answer names
	 * our own NID as its target. */
	if (rc == -EPROTONOSUPPORT)
		hello_write(conn->io.fd, ni, version_of(&ni->nid), &ni->nid,
			    SOCK_NONE);
	if (rc > 0)
		rc = hello_check(conn);
	if (rc) {
		hs_complain(conn, "HELLO", rc);
		return rc;
	}
	conn->version = (uint8_t)conn->hello.version;
	conn->swap = conn->hello.swap;
	hs_move(conn);
	return 0;
}

/* Reads the request. 1: all of it has come; 0: not yet; -errno. */
static int request_read(struct sock_conn *conn, struct ulnet_nid *target)
{
	uint8_t no[SOCK_REQUEST_SIZE];
	int rc = hs_read(conn);

	if (rc <= 0)
		return rc;
	if (conn->hs_step++ == 0) {
		rc = sock_request_size(conn->buf);
		if (rc == -EPROTONOSUPPORT) {
			sock_request_refuse(no);
			hs_write(conn->io.fd, no, sizeof(no));
		}
		if (rc < 0)
			return rc;
		conn->hs_want = (unsigned int)rc;
		rc = hs_read(conn);
		if (rc <= 0)
			return rc;
	}
	rc = sock_request_decode(conn->buf, conn->hs_want, target);
	return rc ? rc : 1;
}

/* Reads the request, which names one of the NIs of this address. 0: go on;
 * -errno: drop the connection. */
static int requested(struct sock_conn *conn)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_nid target;
	int rc = request_read(conn, &target);

	if (rc == 0)
		return 0;
	if (rc < 0) {
		hs_complain(conn, "connection request", rc);
		return rc;
	}
	conn->sni = listener_find(conn->listener, &target);
	if (!conn->sni) {
		hs_complain(conn, lnet_nid_format(&target, text, sizeof(text)),
			    -EADDRNOTAVAIL);
		return -EADDRNOTAVAIL;
	}
	rc = sock_options(conn->io.fd, &conn->sni->ni->nid,
			  conn->sni->tunables);
	if (rc)
		return rc;
	fsm_move(&conn->fsm, sock_conn_states, CONN_GREETED);
	hs_expect(conn);
	listener_step(conn->listener, conn);
	return 0;
}

static void on_passive(struct lobby_guest *g)
{
	struct sock_conn *conn = container_of(g, struct sock_conn, guest);
	int rc = 0;

	if (conn->fsm.state == CONN_REQUESTED)
		rc = requested(conn);
	/* Usually the HELLO comes with the request. */
	if (!rc && conn->fsm.state == CONN_GREETED)
		rc = greeted(conn);
	if (rc)
		sock_conn_drop(conn);
}

static void on_passive_late(struct timer *t)
{
	struct sock_conn *conn = container_of(t, struct sock_conn, timer);

	hs_complain(conn, sock_conn_states[conn->fsm.state].name, -ETIMEDOUT);
	sock_conn_drop(conn);
}

static void hs_accept(struct sock_listener *l, int fd,
		      const union netif_addr *from)
{
	struct sock_conn *conn = sock_conn_new(l->loop, fd, from);

	if (!conn)
		return;
	fsm_move(&conn->fsm, sock_conn_states, CONN_REQUESTED);
	hs_expect(conn);
	conn->guest.fn = on_passive;
	conn->timer.fn = on_passive_late;
	if (listener_add(l, conn))
		sock_conn_drop(conn);
}

/* The NI that the request on @fd names, if the request has come already; else
 * any NI. */
static struct sock_ni *refused_ni(struct sock_listener *l, int fd)
{
	uint8_t buf[SOCK_REQUEST_LARGE_SIZE + SOCK_HELLO_LARGE_SIZE];
	ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	struct sock_ni *sni = NULL;
	struct ulnet_nid target;
	int size;

	if (n >= SOCK_START_SIZE) {
		size = sock_request_size(buf);
		if (size > 0 && n >= size &&
		    !sock_request_decode(buf, (size_t)size, &target))
			sni = listener_find(l, &target);
	}
	return sni ? sni : list_first(&l->nis, struct sock_ni, in_listener);
}

static void hs_refuse(struct sock_listener *l, int fd)
{
	const struct lnd_ni *ni = refused_ni(l, fd)->ni;

	hello_write(fd, ni, version_of(&ni->nid), &ni->nid, SOCK_NONE);
	fork_fd_close(fd);
}

/* ---- listeners ---- */

/* Most connections accepted in one turn, so that other work is done as well. */
#define BATCH 64
/* How long the listener pauses when there are no file descriptors. */
#define PAUSE (100 * NSEC_PER_MSEC)

static void open_reserve(struct sock_listener *l);

static int listener_watch(struct sock_listener *l, int events)
{
	l->io.events = events;
	return loop_watch(l->loop, &l->io);
}

static void listener_resume(struct timer *t)
{
	struct sock_listener *l = container_of(t, struct sock_listener, resume);

	open_reserve(l);
	if (listener_watch(l, ENV_READ))
		loop_timer_arm(l->loop, &l->resume, loop_now(l->loop) + PAUSE);
}

static void listener_pause(struct sock_listener *l, int rc)
{
	log_warn_limited(&l->complaints, loop_now(l->loop), "socklnd",
			 "cannot take connections, trying again: %s",
			 strerror(-rc));
	listener_watch(l, 0);
	loop_timer_arm(l->loop, &l->resume, loop_now(l->loop) + PAUSE);
}

/* Is @rc a failure of one connection, and not of the listener? */
static bool is_of_one_connection(int rc)
{
	return rc == -ECONNABORTED || rc == -EINTR || rc == -EPROTO ||
	       rc == -EPERM || rc == -ENETDOWN || rc == -EHOSTUNREACH ||
	       rc == -ENETUNREACH;
}

static void listener_take(struct sock_listener *l, int fd,
			  const union netif_addr *from)
{
	char who[SOCK_ADDRSTR_SIZE];

	if (l->conf->accept == LNET_ACCEPT_SECURE &&
	    !sock_port_is_privileged(sock_port_of(from))) {
		log_warn_limited(&l->complaints, loop_now(l->loop), "socklnd",
				 "%s: refused: not a privileged port "
				 "(accept=secure)",
				 sock_addr_format(from, who, sizeof(who)));
		fork_fd_close(fd);
		return;
	}
	if (l->nhandshakes >= l->conf->accept_max)
		sock_conn_drop(
			list_first(&l->handshakes, struct sock_conn, link));
	hs_accept(l, fd, from);
}

/* ---- no file descriptor is left ---- */

static bool is_out_of_files(int rc)
{
	return rc == -EMFILE || rc == -ENFILE;
}

/* Has @conn nothing to read? */
static bool is_silent(const struct sock_conn *conn)
{
	char c;

	return recv(conn->io.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

/* Drops the handshake that has been silent longest, for its descriptor. */
static bool listener_make_room(struct sock_listener *l, int rc)
{
	struct sock_conn *first;

	if (!is_out_of_files(rc) || list_empty(&l->handshakes))
		return false;
	first = list_first(&l->handshakes, struct sock_conn, link);
	if (!is_silent(first))
		return false;
	sock_conn_drop(first);
	return true;
}

static void open_reserve(struct sock_listener *l)
{
	if (l->reserve < 0)
		l->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void complain_of_files(struct sock_listener *l,
			      const union netif_addr *from, int rc)
{
	char who[SOCK_ADDRSTR_SIZE];

	log_warn_limited(&l->complaints, loop_now(l->loop), "socklnd",
			 "%s: refused: no file descriptor is left (%s)",
			 sock_addr_format(from, who, sizeof(who)),
			 rc == -EMFILE ? "the limit of this process: ulimit -n"
				       : "of the whole system");
}

/* Refuses the next connection, by means of the reserved descriptor, after
 * accept() has failed with @rc. 0; -EAGAIN: there was no connection (accept()
 * does not say so while no descriptor is left); @rc: the reserve is lost, or
 * @rc has another reason. */
static int refuse_next(struct sock_listener *l, int rc)
{
	union netif_addr from;
	int fd;

	if (!is_out_of_files(rc) || l->reserve < 0)
		return rc;
	close(l->reserve);
	l->reserve = -1;
	fd = sock_accept(l->io.fd, &from);
	if (fd >= 0) {
		complain_of_files(l, &from, rc);
		hs_refuse(l, fd);
	}
	open_reserve(l);
	return fd >= 0 || is_of_one_connection(fd) ? 0 : fd;
}

/* Accepts the next connection. 0; -EAGAIN: there is none; -errno. */
static int listener_next(struct sock_listener *l)
{
	union netif_addr from;
	int fd = sock_accept(l->io.fd, &from);

	if (fd >= 0) {
		listener_take(l, fd, &from);
		return 0;
	}
	if (fd == -EAGAIN)
		return fd;
	if (is_of_one_connection(fd) || listener_make_room(l, fd))
		return 0;
	return refuse_next(l, fd);
}

static void on_connections(struct env_io *io, int revents)
{
	struct sock_listener *l = container_of(io, struct sock_listener, io);
	int rc = 0;

	if (unlikely(revents & ENV_ERROR)) {
		listener_pause(l, -ENOMEM);
		return;
	}
	for (unsigned int i = 0; i < BATCH && !rc; i++)
		rc = listener_next(l);
	if (rc && rc != -EAGAIN)
		listener_pause(l, rc);
	/* Most peers have already sent request and HELLO, so their handshakes
	 * can end now. The listener may be gone on return. */
	lobby_serve(&l->lobby);
}

/* Ends the handshakes for @sni; @sni NULL: all handshakes. */
static void drop_handshakes(struct sock_listener *l, const struct sock_ni *sni)
{
	struct sock_conn *conn, *next;

	list_for_each_entry_safe (conn, next, &l->handshakes, link)
		if (!sni || conn->sni == sni)
			sock_conn_drop(conn);
}

static void on_lobby_failed(struct lobby *lobby)
{
	struct sock_listener *l =
		container_of(lobby, struct sock_listener, lobby);

	log_warn_limited(&l->complaints, loop_now(l->loop), "socklnd",
			 "handshakes cannot be watched: %s", strerror(ENOMEM));
	drop_handshakes(l, NULL);
	/* If this fails, too, on_connections() goes on serving the lobby. */
	(void)!lobby_watch(lobby);
}

static const char *listen_hint(int rc)
{
	switch (rc) {
	case -EACCES:
		return " (ports below 1024 need CAP_NET_BIND_SERVICE; among "
		       "ulnet nodes any other will do)";
	case -EADDRINUSE:
		return " (another node listens there; any number of nodes that "
		       "only call, accept=none, share an address)";
	default:
		return "";
	}
}

static void listener_complain(const struct sock_listener *l, int rc)
{
	char text[SOCK_ADDRSTR_SIZE];

	log_err("socklnd", "cannot listen on %s: %s%s",
		sock_addr_format(&l->addr, text, sizeof(text)), strerror(-rc),
		listen_hint(rc));
}

static void listener_free(struct sock_listener *l)
{
	drop_handshakes(l, NULL);
	loop_timer_cancel(l->loop, &l->resume);
	lobby_close(&l->lobby);
	loop_unwatch(l->loop, &l->io);
	if (l->io.fd >= 0)
		fork_fd_close(l->io.fd);
	if (l->reserve >= 0)
		close(l->reserve);
	list_del(&l->link);
	sock_shared_put(l->shared);
	free(l);
}

static int listener_new(struct sock_ni *sni, struct sock_listener **l_p)
{
	struct sock_shared *s = sock_shared_get(sni->ni->shared);
	struct sock_listener *l = s ? calloc(1, sizeof(*l)) : NULL;
	int rc;

	if (!l) {
		sock_shared_put(sni->ni->shared);
		return -ENOMEM;
	}
	l->shared = sni->ni->shared;
	l->conf = sni->ni->conf;
	l->loop = sni->ni->loops[0];
	l->addr = netif_addr(&sni->ni->nid, l->conf->port);
	list_init(&l->nis);
	list_init(&l->handshakes);
	timer_init(&l->resume, listener_resume);
	list_add_tail(&s->listeners, &l->link);
	l->reserve = -1;
	l->io.fn = on_connections;
	l->io.fd = sock_listen(&l->addr, l->conf->accept_backlog);
	rc = l->io.fd < 0 ? l->io.fd : listener_watch(l, ENV_READ);
	if (!rc)
		rc = lobby_open(&l->lobby, l->loop, on_lobby_failed);
	if (!rc)
		open_reserve(l);
	if (!rc && l->reserve < 0)
		rc = -errno;
	if (rc) {
		listener_complain(l, rc);
		listener_free(l);
		return rc;
	}
	*l_p = l;
	return 0;
}

static struct sock_listener *listener_of(const struct sock_ni *sni)
{
	struct sock_shared *s = *sni->ni->shared;
	struct sock_listener *l;

	if (s)
		list_for_each_entry (l, &s->listeners, link)
			if (netif_addr_is(&l->addr, &sni->ni->nid))
				return l;
	return NULL;
}

int sock_listener_join(struct sock_ni *sni)
{
	struct sock_listener *l = listener_of(sni);
	int rc = 0;

	if (sni->ni->conf->accept == LNET_ACCEPT_NONE)
		return 0;
	if (!l)
		rc = listener_new(sni, &l);
	if (rc)
		return rc;
	list_add_tail(&l->nis, &sni->in_listener);
	sni->listener = l;
	return 0;
}

void sock_listener_leave(struct sock_ni *sni)
{
	struct sock_listener *l = sni->listener;

	if (!l)
		return;
	drop_handshakes(l, sni);
	list_del(&sni->in_listener);
	sni->listener = NULL;
	if (list_empty(&l->nis))
		listener_free(l);
}

/* ---- active ---- */

/* TCP has connected, or failed to: sends request and HELLO. 0 or -errno. */
static int hs_ask(struct sock_conn *conn)
{
	uint8_t buf[SOCK_REQUEST_LARGE_SIZE];
	struct sock_peer *peer = conn->peer;
	int rc = sock_error(conn->io.fd);

	if (!rc && !sock_attempt_reached(conn))
		return 0;
	if (!rc)
		rc = hs_write(conn->io.fd, buf,
			      sock_request_encode(&peer->id.nid, buf));
	if (!rc)
		rc = hello_write(conn->io.fd, conn->sni->ni, conn->version,
				 &peer->id.nid, conn->type);
	if (!rc) {
		fsm_move(&conn->fsm, sock_conn_states, CONN_WAITING);
		conn->heard = loop_now(conn->loop);
		hs_expect(conn);
		rc = sock_conn_watch(conn, ENV_READ);
	}
	return rc;
}

/* What the peer's answer means: a status for sock_attempt_done(). */
static int hello_judge(const struct sock_conn *conn)
{
	const struct sock_hello *h = &conn->hello;
	struct sock_peer *peer = conn->peer;

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

static void handshake_answered(struct sock_conn *conn)
{
	struct sock_peer *peer = conn->peer;
	int rc = hello_read(conn);
	bool goes_on;

	if (rc == 0)
		return;
	if (rc == -EPROTONOSUPPORT)
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

	if (!rc && conn->fsm.state != CONN_CONNECTING) {
		handshake_answered(conn);
		return;
	}
	if (!rc)
		rc = hs_ask(conn);
	if (rc)
		sock_attempt_done(conn->peer, rc);
}

static int connect_to(struct sock_ni *sni, const struct ulnet_nid *nid)
{
	const struct ulnet_nid *from = &sni->ni->nid;
	uint16_t port = sni->ni->conf->port;
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
	return lnet_large_nids(peer->cpt->sni->ni) ? VERSION_DEFAULT_LARGE
						   : version_of(&peer->id.nid);
}

int sock_handshake_connect(struct sock_peer *peer, enum sock_type type,
			   struct sock_conn **conn_p)
{
	struct sock_ni *sni = peer->cpt->sni;
	union netif_addr to = netif_addr(&peer->id.nid, sni->ni->conf->port);
	int fd = connect_to(sni, &peer->id.nid);
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
