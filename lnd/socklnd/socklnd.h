/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LND over TCP: an NI, and its part on each CPT.
 *
 *	socklnd.c	what LNet calls
 *	link.c		one for the node: notices that addresses and links go
 *			and come. CPT 0.
 *	handshake.c	request and HELLO, both sides. A listener, one for each
 *			address, takes connections and finds out for which NI
 *			they are, on CPT 0; a passive handshake goes on to the
 *			CPT that owns the peer.
 *	attempt.c	when connections to a peer are opened, and how many at
 *			once
 *	host.c		what the processes of one address have opened
 *	peer.c		a peer and its connections: chooses them, gives them up
 *	conn.c		an open connection
 *	tx.c, rx.c	messages out and in
 *	proto.c		bytes on the wire
 *	sock.c		sockets of the system, and its errors in LNet's words
 *	../netif.c	network interfaces of the system
 *	../silence.c	how long a peer may leave what was sent without answer
 *
 * Rules of the protocol: spec lnet-tcp-wire, sections 2 and 3.
 */
#ifndef LND_SOCKLND_SOCKLND_H
#define LND_SOCKLND_SOCKLND_H

#include <stdatomic.h>
#include "base/hash.h"
#include "base/log.h"
#include "base/passage.h"
#include "base/pool.h"
#include "lnd/connect.h"
#include "lnd/lnd.h"

/* The most bytes that one read takes besides payload that goes straight to its
 * place. Large, since a turn's small messages come in one read. */
#define SOCK_RX_BUFFER (256u << 10)
/* The most bytes of small messages in one write. */
#define SOCK_TX_BUFFER (128u << 10)

struct sock_links;
struct sock_listener;

/* The numbers that users may set for an NI: socklnd(7). The names are those of
 * the kernel's module parameters, where there are such. */
enum sock_tunable {
#define TUNABLE(name, unit, min, max, def, help) SOCK_##name,
#include "lnd/socklnd/tunable.def"
#undef TUNABLE
	SOCK_TUNABLES
};

/* Owner: its CPT's thread. */
struct sock_cpt {
	struct sock_ni *sni;
	unsigned int index;
	struct loop *loop;
	bool stopping;
	struct hash peers;	/* sock_peer.hash */
	struct hash hosts;	/* sock_host.hash */
	struct sock_peer *last; /* looked for or heard last, or NULL */
	struct list flush;	/* sock_conn.flush: have something to write */
	struct work flush_work; /* ... at the end of the turn */
	bool flush_scheduled;
	/* attempt.c's: */
	unsigned int connecting; /* attempts under way */
	struct list turns;	 /* sock_host.turn: wait for fewer attempts */
	struct work turns_work;
	bool turns_scheduled;
	struct connect_set connects;
	/* link.c's: */
	struct work news;
	atomic_bool news_posted; /* news is on its way here */
	struct work stopped; /* the last call for this CPT: lnet_ni_stopped() */
	uint64_t copied;     /* bytes, of all its hosts (sock_host.copied) */
	struct pool txs, rxs;
	struct log_limit complaints; /* about peers */
	uint8_t *rx_buffer;	     /* SOCK_RX_BUFFER bytes */
	uint8_t *tx_buffer;	     /* SOCK_TX_BUFFER bytes */
};

struct sock_ni {
	struct lnd_ni *ni;
	const int64_t *tunables;
	uint64_t seed;
	unsigned int conns_per_peer; /* each way */
	bool privileged;	     /* connects from privileged ports */
	atomic_bool told_unprivileged;
	atomic_bool up;	      /* its address is there, and the link below it */
	atomic_uint accepted; /* open connections that peers have opened */
	struct sock_cpt *cpts;

	/* CPT 0: */
	struct list in_listener; /* sock_listener.nis */
	struct sock_listener *listener;
	struct list in_links; /* sock_links.nis */
	struct sock_links *links;

	/* From CPT 0 to all: connections for the CPT of their peer, and news of
	 * links. CPT 0's part of the NI ends when all have arrived. */
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

/* The hash of a NID, or of a process, for tables of these. */
static inline uint64_t sock_nid_hash(const struct ulnet_nid *nid, uint32_t pid,
				     uint64_t seed)
{
	if (likely(lnet_nid_is_nid4(nid)))
		return hash_u64(lnet_nid_to_nid4(nid) ^ (uint64_t)pid << 32,
				seed);
	return hash_bytes(nid, sizeof(*nid), hash_u64(pid, seed));
}

/* A tunable whose unit is ms, in ns. */
static inline uint64_t sock_ni_ms(const struct sock_ni *sni,
				  enum sock_tunable t)
{
	return (uint64_t)sni->tunables[t] * NSEC_PER_MSEC;
}

/* How long a connection may make no progress, ns. */
static inline uint64_t sock_ni_timeout(const struct sock_ni *sni)
{
	int64_t own = sni->tunables[SOCK_sock_timeout];

	return own ? (uint64_t)own * NSEC_PER_SEC : lnet_lnd_timeout(sni->ni);
}

#endif
