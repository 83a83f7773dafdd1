/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LND between the processes of a host: an NI, and what it has on each CPT.
 *
 *	shmlnd.c	what LNet calls
 *	name.c		addresses: names of UNIX sockets, and who owns them
 *	gate.c		the handshake, both sides; a gate, on CPT 0, has the
 *			socket of an NI and accepts connections for all CPTs
 *	peer.c		peers, and attempts to connect to them
 *	conn.c		an open connection: messages in the rings of a pair,
 *			and those that this side sends
 *	rx.c		those that come
 *	ring.c		the memory that both sides share
 *	loan.c		copies out of the memory of a peer
 *	view.c		copies out of memory that is shared from birth
 *	pass.c		descriptors that go through the socket
 *
 * A connection is a UNIX socket and a memory. The socket carries the
 * handshake, then wake-ups, of which each is a byte, perhaps a commons
 * (view.h), and its end tells of the peer's. It is used for wake-ups because a
 * send() to it never waits, whatever the peer does: an eventfd belongs to both
 * sides, and either can make the other one's write() block. shmlnd(7) has
 * drawings.
 */
#ifndef LND_SHMLND_SHMLND_H
#define LND_SHMLND_SHMLND_H

#include <stdatomic.h>
#include "base/fsm.h"
#include "base/hash.h"
#include "base/lobby.h"
#include "base/log.h"
#include "base/passage.h"
#include "base/pool.h"
#include "lnd/connect.h"
#include "lnd/lnd.h"
#include "lnd/shmlnd/loan.h"
#include "lnd/shmlnd/ring.h"

/* The numbers that users may set for an NI: shmlnd(7). */
enum shm_tunable {
#define TUNABLE(name, unit, min, max, def, help) SHM_##name,
#include "lnd/shmlnd/tunable.def"
#undef TUNABLE
	SHM_TUNABLES
};

/* What the NI has on one CPT. Owner: the CPT's thread. */
struct shm_cpt {
	struct shm_ni *sni;
	unsigned int index;
	struct loop *loop;
	bool stopping;
	struct hash peers; /* of shm_peer.hash */
	struct connect_set connects;
	/* of shm_conn.flush: connections that have written, or have to */
	struct list flush;
	struct work flush_work;
	bool flush_scheduled;
	unsigned int accepted; /* connections that peers have opened */
	/* of shm_conn.link: those that are left, whoever has opened them */
	struct list left;
	unsigned int nleft;
	uint64_t mapped; /* bytes of peers' commons */
	/* Connections that CPT 0 has accepted, on their way to this one. Any
	 * thread. */
	atomic_uint arriving;
	/* the CPT's last work for the NI: lnet_ni_stopped() */
	struct work stopped;
	struct pool rxs;
	/* limits the complaints about peers in the log */
	struct log_limit complaints;
};

/* The socket of an NI, and connections whose handshake is not over. Owner: CPT
 * 0's thread. */
struct shm_gate {
	struct env_io io; /* the socket; fd < 0: the NI goes down */
	struct lobby lobby;
	struct list callers; /* of shm_conn.link, the oldest first */
	unsigned int ncallers;
	struct timer resume; /* accepting pauses until then */
	struct log_limit complaints;
};

struct shm_ni {
	struct lnd_ni *ni;
	const int64_t *tunables;
	uint64_t seed;
	uint64_t world; /* env.world */
	uint32_t ring_size;
	struct shm_token token;
	struct shm_cpt *cpts;
	struct shm_gate gate;
	/* Counts the connections that CPT 0 has accepted and sent to the CPT of
	 * their peer. The NI ends on CPT 0 when all have arrived. */
	struct passage passage;
};

static inline struct shm_ni *shm_ni_of(struct lnd_ni *ni)
{
	return ni->priv;
}

static inline bool shm_pid_is_user(uint32_t pid)
{
	return pid & LNET_PID_USERFLAG;
}

/* Returns the value, in ns, of a tunable whose unit is ms. */
static inline uint64_t shm_ni_ms(const struct shm_ni *sni, enum shm_tunable t)
{
	return (uint64_t)sni->tunables[t] * NSEC_PER_MSEC;
}

/* ---- names (name.c) ---- */

/* @world: env.world: the nodes of a simulation have names of their own. */

/* A process at the other end of a socket, as the system says. */
struct shm_who {
	int pid; /* 0: it is in a PID namespace that is not seen from here */
	unsigned int uid, gid;
};

/* Makes a socket that is called @nid, and listens. Returns its descriptor;
 * -EADDRINUSE: another node of this host has this NID; or -errno. */
int shm_name_own(uint64_t world, const struct ulnet_nid *nid);
/* Makes a socket that is connected to that of @nid. Returns its descriptor;
 * -ECONNREFUSED: nobody has this NID; -EAGAIN: too many are connecting; or
 * -errno. */
int shm_name_connect(uint64_t world, const struct ulnet_nid *nid);
/* Sets *@who to the process that has connected @fd, or to which @fd is
 * connected. Returns 0 or -errno. */
int shm_who(int fd, struct shm_who *who) must_check;
/* Sets *@host to lnd_ni.host: the same number for all processes that see each
 * other's names, and another one for all others. Returns 0 or -errno. */
int shm_host(uint64_t world, uint64_t *host) must_check;
/* May @who be a peer? */
bool shm_who_may(const struct shm_ni *sni, const struct shm_who *who);
/* lnd.resolve() and lnd.source(). */
int shm_resolve(const char *interface, struct ulnet_nid *nid,
		char name[LNET_INTERFACE_SIZE]);
int shm_source(const struct ulnet_nid *target, struct ulnet_nid *nid);

/* ---- descriptors that are handed over (pass.c) ---- */

/* Sends @n bytes with the descriptor @fd. Returns 0 or -errno: none of it was
 * sent. */
int shm_pass(int sock, const void *bytes, size_t n, int fd) must_check;
/* Reads up to @n bytes. Returns their number, or -errno. *@fd_p: the descriptor
 * that has come with them, to be closed by fork_fd_close(); -1: none; -errno:
 * this side could not take it. */
ssize_t shm_take(int sock, void *bytes, size_t n, int *fd_p);

/* ---- the gate (gate.c) ---- */

struct shm_conn;
struct shm_peer;

/* Makes the NI's socket. Called on CPT 0's thread. Returns 0 or -errno. */
int shm_gate_open(struct shm_ni *sni) must_check;
/* Closes the socket, and all connections whose handshake is not over. */
void shm_gate_close(struct shm_ni *sni);
/* Begins to connect to @peer: the result comes by shm_attempt_done(). Returns 0
 * or -errno: nothing was begun. */
int shm_gate_connect(struct shm_peer *peer,
		     struct shm_conn **conn_p) must_check;

#endif
