/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/shmlnd.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fork.h"
#include "lnd/shmlnd/peer.h"

/* Connections that are accepted in one turn, at most. */
#define BATCH 64
/* ns: how long accepting pauses when no file descriptor is left. */
#define PAUSE (100 * NSEC_PER_MSEC)

static uint32_t address(const struct ulnet_nid *nid)
{
	return (uint32_t)lnet_nid_to_nid4(nid);
}

static struct ulnet_nid nid_of(const struct shm_ni *sni, uint32_t addr)
{
	return lnet_nid_make(lnet_nid_net(&sni->ni->nid), addr);
}

static struct shm_hello hello_to(const struct shm_ni *sni, uint32_t dst,
				 uint32_t ring_size, int status)
{
	return (struct shm_hello){
		.magic = SHM_MAGIC,
		.version = SHM_VERSION,
		.net = LNET_NET_NUM(lnet_nid_net(&sni->ni->nid)),
		.src = address(&sni->ni->nid),
		.dst = dst,
		.src_pid = sni->ni->conf->pid,
		.ring_size = ring_size,
		.status = status,
		.incarnation = sni->ni->incarnation,
		.token = sni->token,
	};
}

/* Does who has sent @h speak another version of the protocol? */
static bool is_other_version(const struct shm_hello *h)
{
	return h->magic == SHM_MAGIC && h->version != SHM_VERSION;
}

/* Writes what the log says of it. */
static void version_text(const struct shm_hello *h, char *text, size_t size)
{
	snprintf(text, size, "it speaks version %u, this node %u", h->version,
		 SHM_VERSION);
}

/* Is @h for this NI, and from another one on its net? */
static bool is_sane(const struct shm_ni *sni, const struct shm_hello *h)
{
	return h->magic == SHM_MAGIC && h->version == SHM_VERSION &&
	       h->net == LNET_NET_NUM(lnet_nid_net(&sni->ni->nid)) &&
	       h->dst == address(&sni->ni->nid) && h->src &&
	       h->src != h->dst && h->src_pid != LNET_PID_ANY;
}

/* ---- this side is connected to ---- */

/* Answers HELLO: with @status 0 the connection is open. */
static int answer(const struct shm_conn *conn, int status)
{
	struct shm_hello h = hello_to(conn->sni, conn->hello.src,
				      conn->sni->ring_size, status);
	ssize_t n = send(conn->io.fd, &h, sizeof(h),
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	return n == sizeof(h) ? 0 : n < 0 ? -errno : -EPROTO;
}

static void gate_complain(struct shm_conn *conn, const char *what)
{
	log_warn_limited(&conn->sni->gate.complaints, loop_now(conn->loop),
			 "shmlnd", "process %d of user %u: refused: %s",
			 conn->who.pid, conn->who.uid, what);
}

static void gate_leave(struct shm_conn *conn)
{
	lobby_leave(&conn->guest);
	if (!list_empty(&conn->link))
		conn->sni->gate.ncallers--;
	list_del(&conn->link);
	loop_timer_cancel(conn->loop, &conn->timer);
}

static void gate_drop(struct shm_conn *conn)
{
	gate_leave(conn);
	shm_conn_drop(conn);
}

/* The handshake has come to the CPT that owns the peer. If both sides have
 * connected, the peer may have given this attempt up since, for that of this
 * side, which must not end for it. */
static void gate_arrive(struct shm_conn *conn)
{
	struct ulnet_id id = { nid_of(conn->sni, conn->hello.src),
			       conn->hello.src_pid };
	struct shm_peer *peer;
	int rc;

	peer = conn->cpt->stopping || shm_conn_hung_up(conn)
		       ? NULL
		       : shm_peer_lookup_or_make(conn->cpt, &id);
	if (!peer) {
		shm_conn_drop(conn);
		return;
	}
	rc = shm_peer_admit(peer, conn);
	if (!rc)
		shm_peer_yield(peer);
	if (answer(conn, rc) || rc)
		shm_conn_drop(conn);
	else
		shm_peer_opened(peer, conn);
	shm_peer_settle(peer);
}

static unsigned int gate_owner(const struct shm_conn *conn)
{
	struct ulnet_nid nid = nid_of(conn->sni, conn->hello.src);

	return lnet_ni_cpt_of(conn->sni->ni, &nid);
}

static void gate_pass(struct shm_conn *conn, unsigned int owner);

static void gate_on_moved(struct work *w)
{
	struct shm_conn *conn = container_of(w, struct shm_conn, work);
	struct shm_ni *sni = conn->sni;
	unsigned int owner = gate_owner(conn);

	atomic_fetch_sub(&conn->cpt->arriving, 1);
	if (likely(owner == conn->cpt->index || conn->cpt->stopping))
		gate_arrive(conn);
	else
		gate_pass(conn, owner);
	passage_arrived(&sni->passage);
}

static void gate_pass(struct shm_conn *conn, unsigned int owner)
{
	conn->cpt = &conn->sni->cpts[owner];
	conn->loop = conn->cpt->loop;
	atomic_fetch_add(&conn->cpt->arriving, 1);
	conn->work.fn = gate_on_moved;
	passage_send(&conn->sni->passage, conn->loop, &conn->work);
}

/* Refuses for now, because of what this side lacks. Returns what is answered.
 */
static int gate_lack(struct shm_conn *conn, const char *what, int rc)
{
	log_warn_limited(&conn->sni->gate.complaints, loop_now(conn->loop),
			 "shmlnd",
			 "process %d of user %u: refused for now: %s: %s",
			 conn->who.pid, conn->who.uid, what, strerror(-rc));
	return -EALREADY;
}

/* Is the NID that the peer gives that of its own process? The system tells who
 * has the name that belongs to it. Returns 0; or -errno: the NID is not, and
 * *@why_p says so, or else this side cannot find out. */
static int check_owner(const struct shm_conn *conn, const char **why_p)
{
	struct ulnet_nid nid = nid_of(conn->sni, conn->hello.src);
	struct shm_who owner;
	int fd, rc;

	if (!conn->who.pid) {
		*why_p = "its PID namespace is not seen from here";
		return -EACCES;
	}
	fd = shm_name_connect(conn->sni->world, &nid);
	if (fd == -ECONNREFUSED)
		*why_p = "it does not listen on the NID that it gives";
	if (fd < 0)
		return fd;
	rc = shm_who(fd, &owner);
	fork_fd_close(fd);
	if (rc)
		return rc;
	if (owner.pid == conn->who.pid && owner.uid == conn->who.uid)
		return 0;
	*why_p = "another process has the NID that it gives";
	return -EACCES;
}

/* Do as many wait for the CPT of the peer, which may be busy for long, as may
 * be under way? */
static bool is_crowded(const struct shm_conn *conn)
{
	return atomic_load(&conn->sni->cpts[gate_owner(conn)].arriving) >=
	       conn->sni->ni->conf->accept_max;
}

/* Looks at what HELLO says. Returns 0, or -errno for the answer. */
static int hello_check(struct shm_conn *conn, int fd)
{
	const char *why = NULL;
	int rc;

	if (conn->hello.ring_size > conn->sni->ring_size)
		return -EMSGSIZE;
	if (fd < 0)
		return gate_lack(conn, "cannot take its memory", fd);
	if (is_crowded(conn))
		return gate_lack(conn, "a CPT is behind (accept_max)", -EBUSY);
	rc = check_owner(conn, &why);
	/* A process that has ended meanwhile listens on nothing. */
	if (rc && shm_conn_hung_up(conn))
		return -ECONNRESET;
	if (why) {
		gate_complain(conn, why);
		return -EACCES;
	}
	if (rc)
		return gate_lack(conn, "cannot find out whose NID it gives",
				 rc);
	rc = shm_ring_map(&conn->ring, fd, conn->hello.ring_size, 1);
	if (rc == -EPROTO)
		gate_complain(conn, "its memory is not sealed, or has another "
				    "size");
	else if (rc)
		rc = gate_lack(conn, "cannot map its memory", rc);
	return rc;
}

/* What becomes of HELLO, of which @n bytes, or -errno, were read, with @fd, as
 * shm_take() does. Returns 0, or -errno for the answer. */
static int hello_judge(struct shm_conn *conn, ssize_t n, int fd)
{
	char text[SHM_VERSION_TEXT];

	/* Who has only asked whose name it is says nothing. */
	if (n <= 0)
		return -ECONNRESET;
	if (n == sizeof(conn->hello) && is_other_version(&conn->hello)) {
		version_text(&conn->hello, text, sizeof(text));
		gate_complain(conn, text);
		return -EPROTONOSUPPORT;
	}
	if (n != sizeof(conn->hello) || fd == -1 ||
	    !is_sane(conn->sni, &conn->hello)) {
		gate_complain(conn, "it has sent something else than HELLO");
		return -EPROTO;
	}
	/* Nobody can know that a process which only calls has a NID. */
	if (shm_pid_is_user(conn->sni->ni->conf->pid))
		return -ECONNREFUSED;
	return hello_check(conn, fd);
}

static void gate_on_hello(struct lobby_guest *g)
{
	struct shm_conn *conn = container_of(g, struct shm_conn, guest);
	int fd, rc;
	ssize_t n =
		shm_take(conn->io.fd, &conn->hello, sizeof(conn->hello), &fd);

	if (n == -EAGAIN || n == -EINTR)
		return;
	rc = hello_judge(conn, n, fd);
	if (fd >= 0)
		fork_fd_close(fd);
	if (rc) {
		if (n == sizeof(conn->hello) && rc != -EPROTO)
			answer(conn, rc);
		gate_drop(conn);
		return;
	}
	gate_leave(conn);
	fsm_move(&conn->fsm, shm_conn_states, SHM_CONN_MOVING);
	gate_pass(conn, gate_owner(conn));
}

static void gate_on_late(struct timer *t)
{
	struct shm_conn *conn = container_of(t, struct shm_conn, timer);

	gate_complain(conn, "it has said nothing (accept_timeout)");
	gate_drop(conn);
}

static void gate_accept(struct shm_ni *sni, int fd)
{
	struct shm_gate *g = &sni->gate;
	const struct ulnet_conf *conf = sni->ni->conf;
	struct shm_conn *conn = shm_conn_new(sni, sni->ni->loops[0], fd);

	if (!conn)
		return;
	fsm_move(&conn->fsm, shm_conn_states, SHM_CONN_GREETING);
	conn->accepted = true;
	if (shm_who(fd, &conn->who)) {
		shm_conn_drop(conn);
		return;
	}
	if (!shm_who_may(sni, &conn->who)) {
		gate_complain(conn, "another user (allow_uid, allow_gid)");
		shm_conn_drop(conn);
		return;
	}
	if (g->ncallers >= conf->accept_max)
		gate_drop(list_first(&g->callers, struct shm_conn, link));
	conn->guest.fn = gate_on_hello;
	timer_init(&conn->timer, gate_on_late);
	if (lobby_enter(&g->lobby, &conn->guest, fd)) {
		shm_conn_drop(conn);
		return;
	}
	list_add_tail(&g->callers, &conn->link);
	g->ncallers++;
	loop_timer_arm(conn->loop, &conn->timer,
		       loop_now(conn->loop) +
			       conf->accept_timeout * NSEC_PER_USEC);
}

static struct shm_ni *sni_of_gate(struct shm_gate *g)
{
	return container_of(g, struct shm_ni, gate);
}

static int gate_watch(struct shm_gate *g, int events)
{
	g->io.events = events;
	return loop_watch(sni_of_gate(g)->ni->loops[0], &g->io);
}

static void gate_pause(struct shm_gate *g, int rc)
{
	struct loop *loop = sni_of_gate(g)->ni->loops[0];

	log_warn_limited(&g->complaints, loop_now(loop), "shmlnd",
			 "cannot take connections, trying again: %s",
			 strerror(-rc));
	(void)!gate_watch(g, 0);
	loop_timer_arm(loop, &g->resume, loop_now(loop) + PAUSE);
}

static void gate_on_resume(struct timer *t)
{
	struct shm_gate *g = container_of(t, struct shm_gate, resume);
	int rc = gate_watch(g, ENV_READ);

	if (rc)
		gate_pause(g, rc);
}

static void gate_on_ready(struct env_io *io, int revents)
{
	struct shm_gate *g = container_of(io, struct shm_gate, io);
	struct shm_ni *sni = sni_of_gate(g);

	if (revents & ENV_ERROR) {
		gate_pause(g, -ENOMEM);
		return;
	}
	for (unsigned int i = 0; i < BATCH; i++) {
		int fd, rc;

		fork_hold();
		fd = fork_fd_made(accept4(io->fd, NULL, NULL,
					  SOCK_CLOEXEC | SOCK_NONBLOCK));
		rc = fd < 0 ? -errno : 0;
		if (fd >= 0)
			gate_accept(sni, fd);
		else if (rc == -EAGAIN)
			return;
		else if (rc != -EINTR && rc != -ECONNABORTED) {
			gate_pause(g, rc);
			return;
		}
	}
}

/* The loop cannot watch the lobby any longer. */
static void gate_on_lobby(struct lobby *l)
{
	struct shm_gate *g = container_of(l, struct shm_gate, lobby);

	while (!list_empty(&g->callers))
		gate_drop(list_first(&g->callers, struct shm_conn, link));
	if (lobby_watch(l))
		gate_pause(g, -ENOMEM);
}

int shm_gate_open(struct shm_ni *sni)
{
	struct shm_gate *g = &sni->gate;
	int rc;

	list_init(&g->callers);
	timer_init(&g->resume, gate_on_resume);
	g->io.fn = gate_on_ready;
	g->io.fd = shm_name_own(sni->world, &sni->ni->nid);
	if (g->io.fd < 0)
		return g->io.fd;
	rc = lobby_open(&g->lobby, sni->ni->loops[0], gate_on_lobby);
	if (!rc)
		rc = gate_watch(g, ENV_READ);
	if (rc)
		shm_gate_close(sni);
	return rc;
}

void shm_gate_close(struct shm_ni *sni)
{
	struct shm_gate *g = &sni->gate;

	if (g->io.fd < 0)
		return;
	while (!list_empty(&g->callers))
		gate_drop(list_first(&g->callers, struct shm_conn, link));
	loop_timer_cancel(sni->ni->loops[0], &g->resume);
	loop_unwatch(sni->ni->loops[0], &g->io);
	lobby_close(&g->lobby);
	fork_fd_close(g->io.fd);
	g->io.fd = -1;
}

/* ---- this side connects ---- */

/* The status of an answer. It is the peer's that has failed, whatever it says;
 * that nobody listens is true of one that only calls. */
static int refusal_of(const struct shm_hello *answer)
{
	switch (answer->status) {
	case 0:
	case -EALREADY:
	case -EMSGSIZE:
	case -EACCES:
	case -ECONNREFUSED:
		return answer->status;
	default:
		return -ECONNRESET;
	}
}

/* What becomes of the answer, of which @n bytes were read. Returns 0 or -errno.
 */
static int answer_judge(const struct shm_conn *conn, ssize_t n)
{
	const struct shm_hello *h = &conn->hello;

	if (n == 0)
		return -ECONNRESET;
	if (n == sizeof(*h) && is_other_version(h))
		return -EPROTONOSUPPORT;
	if (n != sizeof(*h) || !is_sane(conn->sni, h) ||
	    h->src != address(&conn->peer->id.nid))
		return -EPROTO;
	return refusal_of(h);
}

static void gate_on_answer(struct env_io *io, int revents)
{
	struct shm_conn *conn = container_of(io, struct shm_conn, io);
	struct shm_peer *peer = conn->peer;
	const char *why = "it refuses the connection";
	ssize_t n = -1;
	int rc;

	errno = ENOMEM;
	if (!(revents & ENV_ERROR))
		n = recv(io->fd, &conn->hello, sizeof(conn->hello),
			 MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	rc = n < 0 ? -errno : answer_judge(conn, n);
	if (rc == -EPROTONOSUPPORT) {
		version_text(&conn->hello, peer->version,
			     sizeof(peer->version));
		why = peer->version;
	}
	if (rc) {
		shm_attempt_done(peer, rc, why);
		return;
	}
	peer->attempt = NULL;
	shm_peer_opened(peer, conn);
}

/* Sends HELLO, and the memory @fd. */
static int hello_send(const struct shm_conn *conn, int fd)
{
	struct shm_hello h = hello_to(conn->sni, address(&conn->peer->id.nid),
				      conn->ring.size, 0);

	return shm_pass(conn->io.fd, &h, sizeof(h), fd);
}

/* Makes the memory, and says HELLO. */
static int greet(struct shm_conn *conn, uint32_t ring_size)
{
	int fd, rc;

	fork_hold();
	fd = shm_ring_create(ring_size);
	fork_fd_made(fd);
	if (fd < 0)
		return fd;
	rc = shm_ring_map(&conn->ring, fd, ring_size, 0);
	if (!rc)
		rc = hello_send(conn, fd);
	fork_fd_close(fd);
	if (rc)
		return rc;
	conn->io.fn = gate_on_answer;
	conn->io.events = ENV_READ;
	return loop_watch(conn->loop, &conn->io);
}

int shm_gate_connect(struct shm_peer *peer, struct shm_conn **conn_p)
{
	struct shm_cpt *cpt = peer->cpt;
	int fd = shm_name_connect(cpt->sni->world, &peer->id.nid);
	struct shm_conn *conn;
	int rc;

	if (fd < 0)
		return fd == -EAGAIN ? -EALREADY : fd;
	conn = shm_conn_new(cpt->sni, cpt->loop, fd);
	if (!conn)
		return -ENOMEM;
	conn->cpt = cpt;
	conn->peer = peer;
	fsm_move(&conn->fsm, shm_conn_states, SHM_CONN_GREETING);
	rc = shm_who(fd, &conn->who);
	if (!rc && !shm_who_may(cpt->sni, &conn->who)) {
		peer->note = "another user has this NID (allow_uid, allow_gid)";
		rc = -EACCES;
	}
	if (!rc)
		rc = shm_peer_check_share(peer, conn);
	if (!rc)
		rc = greet(conn, MIN(cpt->sni->ring_size, peer->offer));
	if (rc)
		shm_conn_drop(conn);
	else
		*conn_p = conn;
	return rc;
}
