/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "lnd/socklnd/conn.h"
#include "lnd/socklnd/shared.h"

/* Connections taken in one turn, so that others get theirs. */
#define BATCH 64
/* How long it rests when there are no file descriptors. */
#define REST (100 * NSEC_PER_MSEC)

static void take_reserve(struct sock_listener *l);

static int pause_listening(struct sock_listener *l, bool pause)
{
	l->io.events = pause ? 0 : ENV_READ;
	return loop_watch(l->loop, &l->io);
}

static void on_rested(struct timer *t)
{
	struct sock_listener *l = container_of(t, struct sock_listener, rest);

	take_reserve(l);
	if (pause_listening(l, false))
		loop_timer_arm(l->loop, &l->rest, loop_now(l->loop) + REST);
}

static void rest(struct sock_listener *l, int rc)
{
	log_warn_limited(&l->complaints, loop_now(l->loop), "socklnd",
			 "cannot take connections, trying again: %s",
			 strerror(-rc));
	pause_listening(l, true);
	loop_timer_arm(l->loop, &l->rest, loop_now(l->loop) + REST);
}

/* Failures of one connection that was about to come, not of the listener. */
static bool is_passing(int rc)
{
	return rc == -ECONNABORTED || rc == -EINTR || rc == -EPROTO ||
	       rc == -EPERM || rc == -ENETDOWN || rc == -EHOSTUNREACH ||
	       rc == -ENETUNREACH;
}

static void listener_take(struct sock_listener *l, int fd,
			  const union sock_addr *from)
{
	char who[SOCK_ADDRSTR_SIZE];

	if (l->conf->accept == LNET_ACCEPT_SECURE &&
	    !sock_port_is_privileged(sock_port_of(from))) {
		log_warn_limited(&l->complaints, loop_now(l->loop), "socklnd",
				 "%s: refused: not a privileged port "
				 "(accept=secure)",
				 sock_addr_format(from, who, sizeof(who)));
		close(fd);
		return;
	}
	if (l->nhandshakes >= l->conf->accept_max)
		l->users->drop(
			list_first(&l->handshakes, struct sock_conn, link));
	l->users->accept(l, fd, from);
}

/* ---- no file descriptor is left ---- */

static bool is_out_of_files(int rc)
{
	return rc == -EMFILE || rc == -ENFILE;
}

/* Has it said nothing that we have not read? */
static bool is_silent(const struct sock_conn *conn)
{
	char c;

	return recv(conn->io.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

/* The handshake that is silent longest gives one. */
static bool listener_make_room(struct sock_listener *l, int rc)
{
	struct sock_conn *first;

	if (!is_out_of_files(rc) || list_empty(&l->handshakes))
		return false;
	first = list_first(&l->handshakes, struct sock_conn, link);
	if (!is_silent(first))
		return false;
	l->users->drop(first);
	return true;
}

static void take_reserve(struct sock_listener *l)
{
	if (l->reserve < 0)
		l->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void complain_of_files(struct sock_listener *l,
			      const union sock_addr *from, int rc)
{
	char who[SOCK_ADDRSTR_SIZE];

	log_warn_limited(&l->complaints, loop_now(l->loop), "socklnd",
			 "%s: refused: no file descriptor is left (%s)",
			 sock_addr_format(from, who, sizeof(who)),
			 rc == -EMFILE ? "the limit of this process: ulimit -n"
				       : "of the whole system");
}

/* The next connection is told to come again later. 0; -EAGAIN: there is none,
 * which the system does not say while there are no files; @rc: not even that
 * was possible. */
static int refuse_next(struct sock_listener *l, int rc)
{
	union sock_addr from;
	int fd;

	if (!is_out_of_files(rc) || l->reserve < 0)
		return rc;
	close(l->reserve);
	l->reserve = -1;
	fd = sock_accept(l->io.fd, &from);
	if (fd >= 0) {
		complain_of_files(l, &from, rc);
		l->users->refuse(l, fd);
	}
	take_reserve(l);
	return fd >= 0 || is_passing(fd) ? 0 : fd;
}

/* Takes the next connection. 0; -EAGAIN: none; -errno: none can be taken. */
static int listener_next(struct sock_listener *l)
{
	union sock_addr from;
	int fd = sock_accept(l->io.fd, &from);

	if (fd >= 0) {
		listener_take(l, fd, &from);
		return 0;
	}
	if (fd == -EAGAIN)
		return fd;
	if (is_passing(fd) || listener_make_room(l, fd))
		return 0;
	return refuse_next(l, fd);
}

static void on_connections(struct env_io *io, int revents)
{
	struct sock_listener *l = container_of(io, struct sock_listener, io);
	int rc = 0;

	if (unlikely(revents & ENV_ERROR)) {
		rest(l, -ENOMEM);
		return;
	}
	for (unsigned int i = 0; i < BATCH && !rc; i++)
		rc = listener_next(l);
	if (rc && rc != -EAGAIN)
		rest(l, rc);
	/* Most have said already what they have to say: they make room for the
	 * next ones now. The listener may be gone after that. */
	lobby_serve(&l->lobby);
}

/* ---- handshakes ---- */

int sock_listener_add(struct sock_listener *l, struct sock_conn *conn)
{
	int rc = lobby_enter(&l->lobby, &conn->guest, conn->io.fd);

	if (rc)
		return rc;
	conn->listener = l;
	l->nhandshakes++;
	sock_listener_step(l, conn);
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

/* Ends the handshakes for @sni; NULL: all. */
static void drop_handshakes(struct sock_listener *l, const struct sock_ni *sni)
{
	struct sock_conn *conn, *next;

	list_for_each_entry_safe (conn, next, &l->handshakes, link)
		if (!sni || conn->sni == sni)
			l->users->drop(conn);
}

/* The system does not let the lobby be watched. */
static void on_lobby_failed(struct lobby *lobby)
{
	struct sock_listener *l =
		container_of(lobby, struct sock_listener, lobby);

	log_warn_limited(&l->complaints, loop_now(l->loop), "socklnd",
			 "handshakes cannot be watched: %s", strerror(ENOMEM));
	drop_handshakes(l, NULL);
	/* Without the lobby, connections are served as long as new ones
	 * come. */
	(void)!lobby_watch(lobby);
}

/* ---- its life ---- */

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
	loop_timer_cancel(l->loop, &l->rest);
	lobby_close(&l->lobby);
	loop_unwatch(l->loop, &l->io);
	if (l->io.fd >= 0)
		close(l->io.fd);
	if (l->reserve >= 0)
		close(l->reserve);
	list_del(&l->link);
	sock_shared_put(l->shared);
	free(l);
}

static int listener_new(struct sock_ni *sni,
			const struct sock_listener_users *users,
			struct sock_listener **l_p)
{
	struct sock_shared *s = sock_shared_get(sni->ni->shared);
	struct sock_listener *l = s ? calloc(1, sizeof(*l)) : NULL;
	int rc;

	if (!l) {
		sock_shared_put(sni->ni->shared);
		return -ENOMEM;
	}
	l->users = users;
	l->shared = sni->ni->shared;
	l->conf = sni->ni->conf;
	l->loop = sni->ni->loops[0];
	l->addr = sock_addr(&sni->ni->nid, l->conf->port);
	list_init(&l->nis);
	list_init(&l->handshakes);
	timer_init(&l->rest, on_rested);
	list_add_tail(&s->listeners, &l->link);
	l->reserve = -1;
	l->io.fn = on_connections;
	l->io.fd = sock_listen(&l->addr, l->conf->accept_backlog);
	rc = l->io.fd < 0 ? l->io.fd : pause_listening(l, false);
	if (!rc)
		rc = lobby_open(&l->lobby, l->loop, on_lobby_failed);
	if (!rc)
		take_reserve(l);
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
			if (sock_addr_is(&l->addr, &sni->ni->nid))
				return l;
	return NULL;
}

int sock_listener_join(struct sock_ni *sni,
		       const struct sock_listener_users *users)
{
	struct sock_listener *l = listener_of(sni);
	int rc = 0;

	if (sni->ni->conf->accept == LNET_ACCEPT_NONE)
		return 0;
	if (!l)
		rc = listener_new(sni, users, &l);
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

void sock_listener_step(struct sock_listener *l, struct sock_conn *conn)
{
	list_del(&conn->link);
	list_add_tail(&l->handshakes, &conn->link);
	loop_timer_arm(l->loop, &conn->timer,
		       loop_now(l->loop) +
			       l->conf->accept_timeout * NSEC_PER_USEC);
}

struct sock_ni *sock_listener_find(struct sock_listener *l,
				   const struct ulnet_nid *nid)
{
	struct sock_ni *sni;

	list_for_each_entry (sni, &l->nis, in_listener)
		if (lnet_nid_eq(&sni->ni->nid, nid))
			return sni;
	return NULL;
}
