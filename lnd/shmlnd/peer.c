/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/shmlnd/peer.h"

#include <errno.h>
#include <unistd.h>

#include "base/share.h"

/* ns: an attempt that hears nothing for so long is told to LNet. */
#define SILENT (300 * NSEC_PER_MSEC)

static struct shm_peer *peer_of(const struct connect *c)
{
	return container_of(c, struct shm_peer, connect);
}

static uint64_t peer_now(const struct shm_peer *peer)
{
	return loop_now(peer->cpt->loop);
}

/* ---- the table ---- */

static uint64_t peer_hash(const struct shm_cpt *cpt, const struct ulnet_id *id)
{
	return hash_u64(lnet_nid_to_nid4(&id->nid) ^ (uint64_t)id->pid << 32,
			cpt->sni->seed);
}

struct shm_peer *shm_peer_lookup(struct shm_cpt *cpt, const struct ulnet_id *id)
{
	struct shm_peer *peer;

	hash_for_each_equal (peer, &cpt->peers, peer_hash(cpt, id), hash)
		if (peer->id.pid == id->pid &&
		    lnet_nid_eq(&peer->id.nid, &id->nid))
			return peer;
	return NULL;
}

static void on_peer_settle(struct work *w);

struct shm_peer *shm_peer_lookup_or_make(struct shm_cpt *cpt,
					 const struct ulnet_id *id)
{
	struct shm_peer *peer = shm_peer_lookup(cpt, id);

	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->cpt = cpt;
	peer->id = *id;
	peer->offer = SHM_RING_MAX;
	connect_init(&peer->connect, &cpt->connects);
	peer->work.fn = on_peer_settle;
	if (hash_add(&cpt->peers, &peer->hash, peer_hash(cpt, id))) {
		free(peer);
		return NULL;
	}
	return peer;
}

char *shm_peer_str(const struct shm_peer *peer, char *buf, size_t size)
{
	return shm_pid_is_user(peer->id.pid)
		       ? lnet_id_format(&peer->id, buf, size)
		       : lnet_nid_format(&peer->id.nid, buf, size);
}

static bool peer_is_idle(const struct shm_peer *peer)
{
	return !peer->conn && !peer->old && connect_is_idle(&peer->connect);
}

bool shm_is_connected(struct lnd_ni *ni, unsigned int cpt,
		      const struct ulnet_nid *nid)
{
	const struct shm_peer *peer;

	hash_for_each (peer, &shm_ni_of(ni)->cpts[cpt].peers, hash)
		if (lnet_nid_eq(&peer->id.nid, nid) && !peer_is_idle(peer))
			return true;
	return false;
}

uint64_t shm_paused_until(struct lnd_ni *ni, unsigned int cpt,
			  const struct ulnet_id *id)
{
	const struct shm_peer *peer =
		shm_peer_lookup(&shm_ni_of(ni)->cpts[cpt], id);

	return peer ? connect_paused_until(&peer->connect) : 0;
}

/* ---- the end of a turn ---- */

void shm_peer_settle(struct shm_peer *peer)
{
	if (peer->settling)
		return;
	peer->settling = true;
	loop_defer(peer->cpt->loop, &peer->work);
}

static void tell_conn_lost(struct shm_peer *peer)
{
	bool lost = peer->conn_lost && !peer->cpt->stopping;

	peer->conn_lost = false;
	if (lost)
		lnet_peer_disconnected(peer->cpt->sni->ni, &peer->id);
}

static void on_peer_settle(struct work *w)
{
	struct shm_peer *peer = container_of(w, struct shm_peer, work);

	peer->settling = false;
	tell_conn_lost(peer);
	connect_settle(&peer->connect);
	/* Handlers have run, and may have changed everything. */
	if (peer->settling || !peer_is_idle(peer))
		return;
	hash_del(&peer->cpt->peers, &peer->hash);
	free(peer);
}

/* ---- connections ---- */

/* Is the holder the user, rather than the process? */
static bool held_by_user(const struct shm_conn *conn)
{
	return conn->who.uid != geteuid();
}

/* @user: held_by_user(@conn) */
static bool same_holder(const struct shm_conn *held,
			const struct shm_conn *conn, bool user)
{
	return held->who.pid == conn->who.pid ||
	       (user && held->who.uid == conn->who.uid);
}

/* Do @held and @conn have the same holder, and were they opened by the same
 * side? */
static bool counts_for(const struct shm_conn *held, const struct shm_conn *conn,
		       bool user)
{
	return held &&
	       (held->accepted == conn->accepted ||
		held->fsm.state == SHM_CONN_LEFT) &&
	       same_holder(held, conn, user);
}

/* Returns how many connections the holder of @conn has, beside it. */
static uint64_t held_by(const struct shm_conn *conn)
{
	const struct shm_cpt *cpt = conn->cpt;
	bool user = held_by_user(conn);
	const struct shm_conn *left;
	const struct shm_peer *p;
	uint64_t held = 0;

	hash_for_each (p, &cpt->peers, hash)
		held += (uint64_t)counts_for(p->conn, conn, user) +
			counts_for(p->old, conn, user) +
			counts_for(p->attempt, conn, user);
	list_for_each_entry (left, &cpt->left, link)
		held += counts_for(left, conn, user);
	return held;
}

/* This node's own connections are as many as its messages need, so they use up
 * nothing of what others may have; and however many are left, who has none is
 * connected to. */
int shm_peer_check_share(const struct shm_peer *peer,
			 const struct shm_conn *conn)
{
	const struct shm_cpt *cpt = peer->cpt;
	uint64_t max = (uint64_t)cpt->sni->tunables[SHM_max_conns];
	uint64_t used = cpt->nleft + (conn->accepted ? cpt->accepted : 0);
	uint64_t held = held_by(conn);
	char nid[LNET_NIDSTR_SIZE];

	max = MAX(max / cpt->sni->ni->cpts, 1);
	if ((!conn->accepted && !held) || share_allows(held, used, max, 1))
		return 0;
	log_warn_limited(&peer->cpt->complaints, peer_now(peer), "shmlnd",
			 "%s: %s for now: process %d of user %u has its share "
			 "of the connections (max_conns)",
			 shm_peer_str(peer, nid, sizeof(nid)),
			 conn->accepted ? "refused" : "not connected to",
			 conn->who.pid, conn->who.uid);
	return -EALREADY;
}

static uint64_t mapped_by(const struct shm_conn *held,
			  const struct shm_conn *conn, bool user)
{
	return held && held->view.map && same_holder(held, conn, user)
		       ? held->view.size
		       : 0;
}

/* What a CPT may map of peers' memory: its part of map_max. However many CPTs
 * there are, that has room for a commons as large as this node's own. */
static uint64_t map_part(const struct shm_cpt *cpt)
{
	const struct lnd_ni *ni = cpt->sni->ni;
	uint64_t max = (uint64_t)cpt->sni->tunables[SHM_map_max];

	return MAX(max / ni->cpts, MIN(max, commons_max(ni->commons)));
}

bool shm_peer_may_map(const struct shm_conn *conn, uint64_t size)
{
	const struct shm_cpt *cpt = conn->cpt;
	bool user = held_by_user(conn);
	const struct shm_peer *p;
	uint64_t held = 0;

	hash_for_each (p, &cpt->peers, hash)
		held += mapped_by(p->conn, conn, user) +
			mapped_by(p->old, conn, user);
	return share_allows(held, cpt->mapped, map_part(cpt), size);
}

void shm_peer_complain(const struct shm_conn *conn, const char *what,
		       const char *why)
{
	char nid[LNET_NIDSTR_SIZE];

	log_warn_limited(&conn->cpt->complaints, loop_now(conn->loop), "shmlnd",
			 "%s: %s: %s",
			 shm_peer_str(conn->peer, nid, sizeof(nid)), what, why);
}

/* Is a new connection one instead of @conn, rather than one more? */
static bool is_over(const struct shm_conn *conn)
{
	return conn && conn->accepted && shm_conn_hung_up(conn);
}

int shm_peer_admit(const struct shm_peer *peer, const struct shm_conn *conn)
{
	const struct ulnet_nid *own = &peer->cpt->sni->ni->nid;

	if (peer->attempt && lnet_nid_cmp(own, &peer->id.nid) < 0)
		return -EALREADY;
	return is_over(peer->conn) ? 0 : shm_peer_check_share(peer, conn);
}

void shm_peer_yield(struct shm_peer *peer)
{
	if (peer->connect.fsm.state == CONNECT_CONNECTING)
		connect_move(&peer->connect, CONNECT_IDLE);
}

static void log_closed(const struct shm_peer *peer, int status, const char *why)
{
	char nid[LNET_NIDSTR_SIZE];

	if (!status || status == -ESHUTDOWN || status == -ECONNRESET)
		return;
	log_warn_limited(&peer->cpt->complaints, peer_now(peer), "shmlnd",
			 "%s: connection closed: %s",
			 shm_peer_str(peer, nid, sizeof(nid)),
			 why ? why : strerror(-status));
}

/* From here on new messages wait for another connection than @conn. */
static void leave_conn(struct shm_peer *peer, struct shm_conn *conn)
{
	if (conn == peer->old) {
		peer->old = NULL;
	} else {
		peer->conn = NULL;
		peer->conn_lost = true;
	}
	shm_peer_settle(peer);
}

void shm_peer_lost(struct shm_conn *conn, int status, const char *why)
{
	struct shm_peer *peer = conn->peer;

	log_closed(peer, status, why);
	leave_conn(peer, conn);
	if (status != -ESHUTDOWN && !shm_pid_is_user(peer->id.pid))
		shm_conn_give_back(conn);
	shm_conn_close(conn, status ? status : -ECONNRESET);
	shm_peer_settle(peer);
}

/* The peer has opened a new connection: its old one has ended for it. */
static void retire(struct shm_peer *peer)
{
	struct shm_conn *conn = peer->conn;

	if (peer->old)
		shm_peer_lost(peer->old, 0, NULL);
	leave_conn(peer, conn);
	peer->old = conn;
	if (!shm_pid_is_user(peer->id.pid))
		shm_conn_give_back(conn);
	shm_conn_retire(conn);
}

void shm_peer_opened(struct shm_peer *peer, struct shm_conn *conn)
{
	char nid[LNET_NIDSTR_SIZE];
	int rc;

	if (peer->conn)
		retire(peer);
	rc = shm_conn_open(conn, peer);
	if (rc) {
		shm_conn_drop(conn);
		if (peer->connect.fsm.state == CONNECT_CONNECTING)
			shm_attempt_done(peer, rc, NULL);
		return;
	}
	peer->conn = conn;
	log_debug("shmlnd", "%s: open, rings of %u bytes",
		  shm_peer_str(peer, nid, sizeof(nid)), conn->ring.size);
	connect_opened(&peer->connect);
	shm_peer_yield(peer);
	peer->connect.failures = 0;
	connect_tell(&peer->connect, 0, LNET_CAUSE_OK);
}

/* ---- attempts ---- */

static int attempt_is_due(const struct connect *c)
{
	const struct shm_peer *peer = peer_of(c);

	if (!c->wanted)
		return -ENOENT;
	if (shm_pid_is_user(peer->id.pid))
		return -EHOSTUNREACH;
	return peer->conn ? -ENOENT : 0;
}

static void attempt_law(const struct connect *c, struct connect_law *law)
{
	const struct shm_ni *sni = peer_of(c)->cpt->sni;

	law->min_pause = shm_ni_ms(sni, SHM_min_reconnectms);
	law->max_pause = MAX(law->min_pause,
			     shm_ni_ms(sni, SHM_max_reconnectms));
	law->memory = law->max_pause;
	law->timeout = lnet_lnd_timeout(sni->ni);
}

void shm_attempt_done(struct shm_peer *peer, int status, const char *why)
{
	struct connect *c = &peer->connect;
	const struct shm_conn *conn = peer->attempt;
	uint64_t now = peer_now(peer);
	uint64_t pause = 0;

	peer->note = why;
	if (status == -EMSGSIZE && conn &&
	    shm_ring_size(conn->hello.ring_size) == conn->hello.ring_size &&
	    conn->hello.ring_size < conn->ring.size) {
		/* The peer wants smaller rings. */
		peer->offer = conn->hello.ring_size;
	} else if (status == -EALREADY && now < c->give_up) {
		pause = connect_pause_ns(c, ++c->retries);
	} else {
		connect_failed(c, status, shm_loss_unconnected(status));
		return;
	}
	connect_again(c, now + pause, -EALREADY, LNET_CAUSE_REMOTE_DROPPED);
}

static void attempt_begin(struct connect *c)
{
	struct shm_peer *peer = peer_of(c);
	int rc;

	connect_move(c, CONNECT_CONNECTING);
	peer->note = NULL;
	rc = shm_gate_connect(peer, &peer->attempt);
	if (rc)
		shm_attempt_done(peer, rc, peer->note);
	else
		connect_look_at(c, peer_now(peer) + SILENT);
}

static void attempt_leave(struct connect *c, enum connect_state to)
{
	struct shm_peer *peer = peer_of(c);
	struct shm_conn *conn = peer->attempt;

	(void)to;
	peer->attempt = NULL;
	if (conn)
		shm_conn_drop(conn);
}

static void attempt_look(struct connect *c)
{
	connect_tell_silent(c, SILENT);
	connect_look_at(c, connect_now(c) + SILENT);
}

/* Is the peer just not there? That is no reason for a warning. */
static bool is_gone(int status)
{
	return status == -ECONNREFUSED || status == -ECONNRESET ||
	       status == -EPIPE || status == -ETIMEDOUT || status == -EALREADY;
}

static void attempt_log(struct connect *c, int status, bool first)
{
	struct shm_peer *peer = peer_of(c);
	char nid[LNET_NIDSTR_SIZE];

	shm_peer_str(peer, nid, sizeof(nid));
	peer->offer = SHM_RING_MAX;
	if (is_gone(status))
		log_debug("shmlnd", "%s: cannot connect: %s", nid,
			  strerror(-status));
	else if (first)
		log_warn_limited(&peer->cpt->complaints, peer_now(peer),
				 "shmlnd", "%s: cannot connect: %s%s%s", nid,
				 strerror(-status), peer->note ? ": " : "",
				 peer->note ? peer->note : "");
}

static void attempt_tell(struct connect *c, bool wanted, int status,
			 enum ulnet_cause cause)
{
	struct shm_peer *peer = peer_of(c);

	if (wanted || !shm_pid_is_user(peer->id.pid))
		lnet_peer_connected(peer->cpt->sni->ni, &peer->id, status,
				    cause);
}

static void attempt_silent(struct connect *c, uint64_t ns)
{
	struct shm_peer *peer = peer_of(c);

	lnet_peer_silent(peer->cpt->sni->ni, &peer->id, ns);
}

static void attempt_settle(struct connect *c)
{
	shm_peer_settle(peer_of(c));
}

static const struct connect_ops attempt_ops = {
	.law = attempt_law,
	.is_due = attempt_is_due,
	.begin = attempt_begin,
	.leave = attempt_leave,
	.look = attempt_look,
	.failed = attempt_log,
	.tell = attempt_tell,
	.silent = attempt_silent,
	.settle = attempt_settle,
};

/* ---- all peers of a CPT ---- */

void shm_peers_init(struct shm_cpt *cpt)
{
	hash_init(&cpt->peers);
	connect_set_init(&cpt->connects, cpt->loop, &attempt_ops);
}

void shm_peers_stop(struct shm_cpt *cpt)
{
	struct shm_peer *peer;

	hash_for_each (peer, &cpt->peers, hash) {
		peer->connect.wanted = false;
		connect_reset(&peer->connect);
		if (peer->old)
			shm_peer_lost(peer->old, -ESHUTDOWN, NULL);
		if (peer->conn)
			shm_peer_lost(peer->conn, -ESHUTDOWN, NULL);
		shm_peer_settle(peer);
	}
	while (!list_empty(&cpt->left))
		shm_conn_release(list_first(&cpt->left, struct shm_conn, link));
}
