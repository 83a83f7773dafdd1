/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LND over TCP: an NI, what it has on each CPT, and the watch on its link.
 *
 *	socklnd.c	what LNet calls; connections that move to another CPT
 *	link.c		notices when addresses and links go and come; CPT 0
 *	handshake.c	request and HELLO, of the side that connects
 *	listener.c	request and HELLO, of the side that accepts. A listener,
 *			one for each address, accepts connections on CPT 0, and
 *			passes each one to the CPT that owns its peer
 *	caller.c	shares handshakes, and the processor time of TLS,
 *			between the addresses that call a listener
 *	attempt.c	when to open connections to a peer, and how many at once
 *	host.c		limits for all processes of one address together
 *	peer.c		a peer: chooses its connections, gives them up
 *	conn.c		an open connection
 *	tx.c, rx.c	outgoing and incoming messages
 *	proto.c		bytes on the wire
 *	tls.c		TLS below the protocol, on nets that demand it
 *	sock.c		sockets of the system; causes for its errors
 *
 * Rules of the protocol: spec lnet-tcp-wire, sections 2 and 3.
 */
#ifndef LND_SOCKLND_SOCKLND_H
#define LND_SOCKLND_SOCKLND_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/hash.h"
#include "base/log.h"
#include "base/passage.h"
#include "base/pool.h"
#include "lnd/connect.h"
#include "lnd/link.h"
#include "lnd/lnd.h"

/* Bytes that one read takes at most, besides payload that goes straight to its
 * place. Large, so that one read takes all small messages of a turn. */
#define SOCK_RX_BUFFER (256u << 10)
/* Bytes of small messages in one write, at most. */
#define SOCK_TX_BUFFER (128u << 10)
/* Bytes of messages that are pushed on one connection in a turn, at most. */
#define SOCK_PUSH_BUFFER 4096u

struct keys;
struct sock_listener;

/* The numbers that users may set for an NI: socklnd(7). They have the names of
 * the kernel's module parameters, where there are such. */
enum sock_tunable {
#define TUNABLE(name, unit, min, max, def, help) SOCK_##name,
#include "lnd/socklnd/tunable.def"
#undef TUNABLE
	SOCK_TUNABLES
};

/* What the NI has on one CPT. Owner: the CPT's thread. */
struct sock_cpt {
	struct sock_ni *sni;
	/* the keys with which TLS begins (tls.h); NULL: the NI is without TLS
	 */
	struct keys *keys;
	unsigned int index;
	struct loop *loop;
	bool stopping;
	struct hash peers; /* of sock_peer.hash */
	struct hash hosts; /* of sock_host.hash */
	/* the peer that was looked up or heard last, or NULL */
	struct sock_peer *last;
	/* of sock_conn.flush: connections with something to write */
	struct list flush;
	/* writes at the end of the turn what the connections in @flush have */
	struct work flush_work;
	bool flush_scheduled;
	/* for attempt.c only: */
	unsigned int connecting; /* attempts under way */
	/* of sock_host.turn: hosts that wait until fewer attempts are under way
	 */
	struct list turns;
	struct work turns_work;
	bool turns_scheduled;
	struct connect_set connects;
	/* for link.c only: */
	struct work link_work; /* runs when the link has changed */
	/* link_work was posted to this CPT, and has not run */
	atomic_bool link_posted;
	/* the CPT's last work for the NI: lnet_ni_stopped() */
	struct work stopped;
	/* bytes: the sum of sock_host.copied of all hosts */
	uint64_t copied;
	struct pool txs, rxs;
	/* limits the complaints about peers in the log */
	struct log_limit complaints;
	uint8_t *rx_buffer; /* SOCK_RX_BUFFER bytes */
	uint8_t *tx_buffer; /* SOCK_TX_BUFFER bytes */
	/* what sock_tx_push() has taken for one connection, which has it as its
	 * sock_conn.rest. It is free again when that turn's writes are over. */
	uint8_t push_buffer[SOCK_PUSH_BUFFER];
	bool pushing; /* a connection has push_buffer */
};

struct sock_ni {
	struct lnd_ni *ni;
	const int64_t *tunables;
	uint64_t seed;
	bool secured; /* the NI's connections have TLS (tls.h) */
	/* By NID, the peers that have proved who they are: sock_peer.proof. Any
	 * thread. */
	pthread_mutex_t proofs_lock;
	struct hash proofs;
	/* how many bulk connections to have with a peer, in each direction */
	unsigned int conns_per_peer;
	bool privileged; /* the NI connects from privileged ports */
	atomic_bool told_unprivileged;
	/* does the NI's address exist, and is its link up? */
	atomic_bool up;
	/* how many of the open connections were opened by peers */
	atomic_uint accepted;
	struct sock_cpt *cpts;

	/* for CPT 0 only: */
	struct list in_listener; /* node in sock_listener.nis */
	struct sock_listener *listener;
	struct lnd_link link;

	/* Counts what CPT 0 posts to other CPTs: connections for the CPT of
	 * their peer, and changes of links. The NI ends on CPT 0 when
	 * everything has arrived. */
	struct passage passage;
};

static inline struct sock_ni *sock_ni_of(struct lnd_ni *ni)
{
	return ni->priv;
}

static inline bool sock_ni_is_up(const struct sock_ni *sni)
{
	return atomic_load_explicit(&sni->up, memory_order_relaxed);
}

/* Returns the hash of a NID (with @pid 0) or of a process. */
static inline uint64_t sock_nid_hash(const struct ulnet_nid *nid, uint32_t pid,
				     uint64_t seed)
{
	if (likely(lnet_nid_is_nid4(nid)))
		return hash_u64(lnet_nid_to_nid4(nid) ^ (uint64_t)pid << 32,
				seed);
	return hash_bytes(nid, sizeof(*nid), hash_u64(pid, seed));
}

/* Returns the value, in ns, of a tunable whose unit is ms. */
static inline uint64_t sock_ni_ms(const struct sock_ni *sni,
				  enum sock_tunable t)
{
	return (uint64_t)sni->tunables[t] * NSEC_PER_MSEC;
}

/* Returns for how long a connection may make no progress, in ns. */
static inline uint64_t sock_ni_timeout(const struct sock_ni *sni)
{
	int64_t own = sni->tunables[SOCK_sock_timeout];

	return own ? (uint64_t)own * NSEC_PER_SEC : lnet_lnd_timeout(sni->ni);
}

/* ---- the watch on links (link.c) ---- */

/*
 * Notices when the address of an NI, or the link below it, goes and comes back
 * (requirement E3), and calls lnet_ni_set_up(). One watch for all NIs of a
 * node, on CPT 0's thread. The system's messages (rtnetlink) only tell when to
 * look: the state of all NIs is then read anew, so that lost or forged messages
 * do no harm.
 *
 * While an NI is down, messages for its peers are refused, and those under way
 * end at once, as do attempts to connect. So LNet can send over another NI what
 * was not sent, and users can ask over another one what became of the rest.
 *
 * Connections stay open, since TCP outlives an outage. If they were closed, the
 * peer would not hear of that without a link, and what it goes on sending over
 * them would be lost. Connections that stall are suspended (peer.h); so are
 * those that this node has opened, if the link was away for long. Connections
 * that hang for too long end by their time-out.
 */

/* Called when the NI starts. */
void sock_link_init(struct sock_cpt *cpt);
/* Sets @sni->up by the state of its link, now and whenever that changes. If the
 * system does not report changes, as in some sandboxes, a warning is logged,
 * and the state stays as it is. Returns 0 or -errno, which was logged. */
int sock_link_join(struct sock_ni *sni);
/* Stops watching the link of @sni. No effect on an NI that has not joined. */
void sock_link_leave(struct sock_ni *sni);

#endif
