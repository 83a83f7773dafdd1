/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/handshake_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/log.h"
#include "lnd/socklnd/peer.h"
#include "lnd/socklnd/conn.h"
#include "lnd/socklnd/host.h"
#include "lnd/socklnd/tls.h"

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

/* Called when the handshake of @conn has made progress: starts its time-out
 * again. */
static void listener_step(struct sock_listener *l, struct sock_conn *conn)
{
	list_del(&conn->link);
	list_add_tail(&l->handshakes, &conn->link);
	sock_callers_heard(conn);
	loop_timer_arm(l->loop, &conn->timer,
		       loop_now(l->loop) +
			       l->conf->accept_timeout * NSEC_PER_USEC);
}

/* Returns one of the NIs of this listener, for what concerns all of them. */
static struct sock_ni *listener_any(const struct sock_listener *l)
{
	return list_first(&l->nis, struct sock_ni, in_listener);
}

/* Returns the NI of this listener that has @nid, or NULL. */
static struct sock_ni *listener_find(struct sock_listener *l,
				     const struct ulnet_nid *nid)
{
	struct sock_ni *sni;

	list_for_each_entry (sni, &l->nis, in_listener)
		if (lnet_nid_eq(&sni->ni->nid, nid))
			return sni;
	return NULL;
}

/* What sock_conn.leave points to: takes @conn from its listener. */
static void listener_del(struct sock_conn *conn)
{
	struct sock_listener *l = conn->listener;

	lobby_leave(&conn->guest);
	sock_callers_leave(&l->callers, conn);
	conn->listener = NULL;
	conn->leave = NULL;
	list_del(&conn->link);
	loop_timer_cancel(l->loop, &conn->timer);
}

/* Starts a handshake: guest.fn is called when @conn is readable. Returns 0 or
 * -errno. */
static int listener_add(struct sock_listener *l, struct sock_conn *conn)
{
	int rc = sock_callers_enter(&l->callers, conn);

	if (rc)
		return rc;
	conn->listener = l;
	conn->leave = listener_del;
	rc = lobby_enter(&l->lobby, &conn->guest, conn->io.fd);
	if (rc)
		return rc;
	listener_step(l, conn);
	return 0;
}

/* ---- passive ---- */

static void hs_complain(const struct sock_conn *conn, const char *what, int rc)
{
	char addr[SOCK_ADDRSTR_SIZE];

	log_warn_limited(
		&conn->listener->complaints, loop_now(conn->loop), "socklnd",
		"%s: %s: %s",
		sock_addr_format(&conn->remote, addr, sizeof(addr)), what,
		conn->tls && *sock_tls_error(conn) ? sock_tls_error(conn)
						   : strerror(-rc));
}

/* ---- TLS, of a connection that a peer has opened ---- */

/* Returns an NI of the listener's address whose connections have TLS, or NULL.
 * All such NIs have the same keys. */
static struct sock_ni *listener_secured(const struct sock_listener *l)
{
	struct sock_ni *sni;

	list_for_each_entry (sni, &l->nis, in_listener)
		if (sni->secured)
			return sni;
	return NULL;
}

/* Every TURNS_PAUSE ns, up to TURNS waiting connections of each class go on. */
#define TURNS_PAUSE NSEC_PER_MSEC
#define TURNS	    4

static void turns_arm(struct sock_listener *l)
{
	loop_timer_arm(l->loop, &l->turns, loop_now(l->loop) + TURNS_PAUSE);
}

/* Puts off the handshake of @conn until there is processor time for it. */
static void listener_defer(struct sock_conn *conn)
{
	struct sock_listener *l = conn->listener;

	lnet_ni_stranger(listener_any(l)->ni, LND_STRANGER_WAITS);
	lobby_leave(&conn->guest);
	if (!sock_callers_any_waits(&l->callers))
		turns_arm(l);
	sock_callers_wait(&l->callers, conn, loop_now(l->loop));
}

/* Lets some of the connections that have waited go on. */
static void listener_turns(struct timer *t)
{
	struct sock_listener *l = container_of(t, struct sock_listener, turns);
	struct sock_conn *conn;

	for (unsigned int i = 0; i < TURNS * DOOR_CLASSES; i++) {
		conn = sock_callers_next(&l->callers, i % DOOR_CLASSES,
					 loop_now(l->loop));
		if (conn && lobby_enter(&l->lobby, &conn->guest, conn->io.fd))
			sock_conn_drop(conn);
	}
	if (sock_callers_any_waits(&l->callers))
		turns_arm(l);
	/* The listener may be gone on return. */
	lobby_serve(&l->lobby);
}

/* Returns the processor time, ns, that this thread has used. */
static uint64_t spent(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* Charges the processor time since @before to the caller of @conn, whose TLS
 * handshake has gone on. */
static void hs_pay(struct sock_conn *conn, uint64_t before)
{
	sock_callers_pay(&conn->listener->callers, conn, spent() - before,
			 loop_now(conn->loop));
}

/* Does what sock_hs_read() does; 0 also means that the connection waits for its
 * turn. */
static int hs_read(struct sock_conn *conn)
{
	struct sock_listener *l = conn->listener;
	uint64_t before;
	int rc;

	if (!conn->tls || sock_tls_is_up(conn))
		return sock_hs_read(conn);
	if (!sock_callers_may(&l->callers, conn, loop_now(l->loop))) {
		listener_defer(conn);
		return 0;
	}
	before = spent();
	rc = sock_hs_read(conn);
	hs_pay(conn, before);
	return rc;
}

/* Refuses @conn, whose peer has not proved what it has to. Returns
 * -EKEYREJECTED. */
static int hs_unproven(const struct sock_conn *conn, const char *what)
{
	char addr[SOCK_ADDRSTR_SIZE];

	if (conn->sni)
		lnet_ni_stranger(conn->sni->ni, LND_STRANGER_UNPROVEN);
	log_warn_limited(&conn->listener->complaints, loop_now(conn->loop),
			 "socklnd", "%s: refused: %s",
			 sock_addr_format(&conn->remote, addr, sizeof(addr)),
			 what);
	return -EKEYREJECTED;
}

/* Begins TLS on @conn, whose peer has begun it, and has not named an NI yet.
 * Returns 0; -EAGAIN: the connection waits for its turn; or another negative
 * errno. */
static int hs_secure(struct sock_conn *conn)
{
	struct sock_listener *l = conn->listener;
	struct sock_ni *sni = listener_secured(l);
	unsigned int have = conn->hs_have;
	uint64_t before;
	int rc;

	if (!sni)
		return hs_unproven(conn, "speaks TLS, and no net of this "
					 "address has tls: required");
	if (!sock_callers_may(&l->callers, conn, loop_now(l->loop))) {
		listener_defer(conn);
		return -EAGAIN;
	}
	sock_callers_begin(conn);
	before = spent();
	conn->hs_have = 0;
	rc = sock_tls_accept(conn, sni, conn->buf, have);
	hs_pay(conn, before);
	return rc;
}

/* Checks that the peer has begun as the NI demands, with TLS or without.
 * Returns 0, or -EKEYREJECTED, which was logged. */
static int hs_check_tls(const struct sock_conn *conn)
{
	char nid[LNET_NIDSTR_SIZE], what[LNET_NIDSTR_SIZE + 64];

	if (!conn->tls == !conn->sni->secured)
		return 0;
	lnet_nid_format(&conn->sni->ni->nid, nid, sizeof(nid));
	snprintf(what, sizeof(what),
		 conn->tls ? "speaks TLS, and the net of %s is without"
			   : "speaks no TLS, and the net of %s requires it",
		 nid);
	return hs_unproven(conn, what);
}

/* Checks that the peer may have the NID that it names. Returns 0, or
 * -EKEYREJECTED, which was logged. */
static int hs_check_proof(const struct sock_conn *conn)
{
	char nid[LNET_NIDSTR_SIZE], who[SOCK_TLS_WHO_SIZE];
	char what[SOCK_TLS_WHO_SIZE + LNET_NIDSTR_SIZE + 64];

	if (!conn->tls || sock_tls_speaks_for(conn, &conn->hello.src_nid))
		return 0;
	snprintf(what, sizeof(what), "the %s does not speak for %s",
		 sock_tls_who(conn, who, sizeof(who)),
		 lnet_nid_format(&conn->hello.src_nid, nid, sizeof(nid)));
	return hs_unproven(conn, what);
}

/* Do the keys that this CPT has now, and the rules, believe the peer? They may
 * be newer than those with which TLS began. If not, the log says why. */
static bool hs_is_believed(const struct sock_conn *conn)
{
	const char *doubt = sock_tls_doubt(conn, &conn->hello.src_nid);
	char addr[SOCK_ADDRSTR_SIZE];

	if (!doubt)
		return true;
	log_warn_limited(&conn->cpt->complaints, loop_now(conn->loop),
			 "socklnd", "%s: refused: %s",
			 sock_addr_format(&conn->remote, addr, sizeof(addr)),
			 doubt);
	return false;
}

/* Answers the HELLO, on the CPT that owns the peer. */
static void handshake_arrive(struct sock_conn *conn)
{
	struct sock_peer *peer = NULL;
	int rc;

	if (!conn->cpt->stopping && hs_is_believed(conn))
		peer = sock_peer_greeted(conn->cpt, &conn->hello);
	if (!peer) {
		sock_conn_drop(conn);
		return;
	}
	conn->type = (int8_t)sock_type_invert(conn->hello.type);
	rc = sock_peer_admit(peer, &conn->hello, conn->type);
	if (!rc)
		rc = sock_host_get(conn->cpt, &peer->id.nid, &conn->host);
	if (!rc)
		rc = sock_hs_hello_write(conn, conn->hello.version,
					 &peer->id.nid, conn->type);
	else
		sock_hs_hello_write(conn, conn->hello.version, &peer->id.nid,
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

/* Called when @conn has arrived on a CPT, which may not own the peer any more.
 */
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

	listener_del(conn);
	fsm_move(&conn->fsm, sock_conn_states, CONN_MOVING);
	if (owner) {
		hs_pass(conn, owner);
		return;
	}
	conn->cpt = &conn->sni->cpts[0];
	handshake_arrive(conn);
}

/* Checks whether a well-formed HELLO is acceptable to its NI. Returns 0,
 * -EPROTO or -EACCES. */
static int hello_check(const struct sock_conn *conn)
{
	const struct sock_hello *h = &conn->hello;

	if (sock_type_invert(h->type) == SOCK_NONE ||
	    h->src_nid.size != conn->sni->ni->nid.size ||
	    lnet_nid_net(&h->src_nid) != lnet_nid_net(&conn->sni->ni->nid))
		return -EPROTO;
	/* Only this process listens on its NID, and it does not connect to
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

/* Reads the HELLO. Returns 0: go on; -errno: drop the connection. */
static int greeted(struct sock_conn *conn)
{
	const struct lnd_ni *ni = conn->sni->ni;
	int rc = sock_hs_hello_read(conn);

	if (rc == 0)
		return 0;
	/* The peer's NID has a form that this node cannot read, so the answer
	 * names this node's own NID as its target. */
	if (rc == -EPROTONOSUPPORT)
		sock_hs_hello_write(conn, sock_hs_version(&ni->nid), &ni->nid,
				    SOCK_NONE);
	if (rc > 0)
		rc = hello_check(conn);
	if (rc) {
		hs_complain(conn, "HELLO", rc);
		return rc;
	}
	rc = hs_check_proof(conn);
	if (rc)
		return rc;
	if (conn->tls)
		sock_callers_proved(&conn->listener->callers, conn);
	conn->version = (uint8_t)conn->hello.version;
	conn->swap = conn->hello.swap;
	hs_move(conn);
	return 0;
}

/* Reads the request. Returns 1: all of it has come; 0: not yet; or -errno. */
static int request_read(struct sock_conn *conn, struct ulnet_nid *target)
{
	uint8_t no[SOCK_REQUEST_SIZE];
	int rc = hs_read(conn);

	if (rc > 0 && conn->hs_step == 0 && !conn->tls &&
	    conn->buf[0] == SOCK_TLS_FIRST) {
		rc = hs_secure(conn);
		if (rc)
			return rc == -EAGAIN ? 0 : rc;
		rc = hs_read(conn);
	}
	if (rc <= 0)
		return rc;
	if (conn->hs_step++ == 0) {
		rc = sock_request_size(conn->buf);
		if (rc == -EPROTONOSUPPORT) {
			sock_request_refuse(no);
			sock_hs_write(conn, no, sizeof(no));
		}
		if (rc < 0)
			return rc;
		conn->hs_want = (unsigned int)rc;
		rc = sock_hs_read(conn);
		if (rc <= 0)
			return rc;
	}
	rc = sock_request_decode(conn->buf, conn->hs_want, target);
	return rc ? rc : 1;
}

/* Reads the request, which names one of the NIs of this address. Returns 0: go
 * on; -errno: drop the connection. */
static int requested(struct sock_conn *conn)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_nid target;
	int rc = request_read(conn, &target);

	if (rc == 0)
		return 0;
	if (rc < 0) {
		/* Without TLS on this address, the refusal of TLS was logged
		 * already. */
		if (rc != -EKEYREJECTED || conn->tls)
			hs_complain(conn, "connection request", rc);
		return rc;
	}
	conn->sni = listener_find(conn->listener, &target);
	if (!conn->sni) {
		hs_complain(conn, lnet_nid_format(&target, text, sizeof(text)),
			    -EADDRNOTAVAIL);
		return -EADDRNOTAVAIL;
	}
	rc = hs_check_tls(conn);
	if (rc)
		return rc;
	rc = sock_options(conn->io.fd, &conn->sni->ni->nid,
			  conn->sni->tunables);
	if (rc)
		return rc;
	fsm_move(&conn->fsm, sock_conn_states, CONN_GREETED);
	sock_hs_expect(conn);
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
	sock_hs_expect(conn);
	conn->guest.fn = on_passive;
	conn->timer.fn = on_passive_late;
	if (listener_add(l, conn))
		sock_conn_drop(conn);
}

/* Returns the NI that the request on @fd names, if the request has come
 * already; else any NI. */
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
	return sni ? sni : listener_any(l);
}

static void hs_refuse(struct sock_listener *l, int fd)
{
	const struct lnd_ni *ni = refused_ni(l, fd)->ni;
	uint8_t buf[SOCK_HELLO_LARGE_SIZE];

	sock_hs_write_fd(fd, buf,
			 sock_hs_hello_make(buf, ni, sock_hs_version(&ni->nid),
					    &ni->nid, SOCK_NONE));
	fork_fd_close(fd);
}

/* ---- listeners ---- */

/* Connections that are accepted in one turn, at most, so that other work is
 * done as well. */
#define BATCH 64
/* ns: how long accepting pauses when no file descriptor is left. */
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

/* Does @rc say that one connection has failed, and not the listener? */
static bool is_of_one_connection(int rc)
{
	return rc == -ECONNABORTED || rc == -EINTR || rc == -EPROTO ||
	       rc == -EPERM || rc == -ENETDOWN || rc == -EHOSTUNREACH ||
	       rc == -ENETUNREACH;
}

/* Called when one more connection comes: if its address, or all together, have
 * too many handshakes, drops one. */
static void listener_crowded(struct sock_listener *l,
			     const union netif_addr *from)
{
	char who[SOCK_ADDRSTR_SIZE];
	struct sock_conn *drop;
	bool own;

	if (sock_callers_allow(&l->callers, from, l->conf->accept_max, &drop))
		return;
	own = drop;
	if (!drop && l->callers.n < l->conf->accept_max)
		return;
	if (!drop)
		drop = list_first(&l->handshakes, struct sock_conn, link);
	lnet_ni_stranger(listener_any(l)->ni, LND_STRANGER_DROPPED);
	log_warn_limited(
		&l->crowds, loop_now(l->loop), "socklnd",
		"%s: dropped before it said who it is: %s (accept_max)",
		sock_addr_format(&drop->remote, who, sizeof(who)),
		own ? "its address has its share of the handshakes"
		    : "too many connections do not say it");
	sock_conn_drop(drop);
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
	listener_crowded(l, from);
	hs_accept(l, fd, from);
}

/* ---- no file descriptor is left ---- */

static bool is_out_of_files(int rc)
{
	return rc == -EMFILE || rc == -ENFILE;
}

/* Is there nothing to read on @conn? */
static bool is_silent(const struct sock_conn *conn)
{
	char c;

	return recv(conn->io.fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

/* Drops the handshake that has been silent longest, to get its descriptor. @rc:
 * the error of accept(). */
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

/* Called after accept() has failed with @rc: frees the reserved descriptor,
 * accepts the next connection with it, and refuses and closes that connection.
 * Returns 0; -EAGAIN: there was no connection, which accept() does not tell
 * when no descriptor is left; @rc: the reserved descriptor is lost, or the
 * failure had another reason. */
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

/* Accepts the next connection. Returns 0; -EAGAIN: there is none; or another
 * negative errno. */
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

/* Ends the handshakes for @sni; NULL: all handshakes. */
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
	/* If this fails, too, on_connections() serves the lobby from now on. */
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
	loop_timer_cancel(l->loop, &l->turns);
	sock_callers_fini(&l->callers);
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
	timer_init(&l->turns, listener_turns);
	sock_callers_init(&l->callers, sni->seed, loop_now(l->loop));
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
