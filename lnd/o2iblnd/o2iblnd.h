/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LND over RDMA: an NI, and its part on each CPT.
 *
 *	o2iblnd.c	the functions that LNet calls
 *	tunable.def	the tunables
 *	port.c		the port of an NI, and the removal and return of its
 *			device
 *	xfer.c		LNet's messages, mapped to the protocol's
 *	memory.c	registered bounce buffers for payloads, and their queue
 *	regcache.c	registrations of users' memory, for zero-copy payloads
 *	peer.c		peers, their connections, and connection attempts
 *	conn.c		one connection; with receive.c, exchange.c, admit.c
 *	tx.c		message buffers
 *	wire.c		encoding and decoding
 *	verbs.h		the interface of the two backends:
 *	rdma*.c		rdma-core
 *	simqp/		simulated queue pairs
 *	calc_*.c	calculation of limits from tunables
 *
 * The protocol's rules: spec o2ib-wire, section 1.
 */
#ifndef LND_O2IBLND_O2IBLND_H
#define LND_O2IBLND_O2IBLND_H

#include <stdatomic.h>
#include "base/passage.h"
#include "base/pool.h"
#include "lnd/o2iblnd/memory.h"
#include "lnd/o2iblnd/peer.h"
#include "lnd/o2iblnd/regcache.h"

/* The numbers that users may set for an NI: o2iblnd(7). The names are those of
 * the kernel's module parameters. */
enum ib_tunable {
#define TUNABLE(name, unit, min, max, def, help) IB_TUNE_##name,
#include "lnd/o2iblnd/tunable.def"
#undef TUNABLE
	IB_TUNABLES
};

/* Owned by the thread of its CPT. */
struct ib_cpt {
	struct ib_ni *ini;
	unsigned int index;
	bool attached; /* txs, arena and regs are initialized for the port */
	bool stopping; /* shutdown() was called */
	bool stopped;  /* shutdown() was called, and no peer is left */
	bool reported; /* LNet was told that this CPT has stopped */
	struct ib_peers peers;
	struct ib_tx_pool txs;
	struct ib_arena arena[IB_USES];
	struct ib_regcache regs; /* registrations of users' memory */
	struct hash holders;	 /* of ib_holder.hash, by NID (memory.c) */
	uint64_t seed;		 /* seed of the hashes in @holders */
	struct pool xfers;
	/* number of transfers in the state "moving" */
	unsigned int under_way;
	/* of ib_xfer.link: transfers that wait for memory, in order of arrival
	 */
	struct list memory_waiters;
	uint64_t round; /* number of passes over @memory_waiters */
	/* of ib_xfer.link: transfers in the state "fetched" */
	struct list fetched;
	struct work retry;	/* retries @memory_waiters */
	bool retrying;		/* @retry is deferred */
	struct work port_event; /* posted by CPT 0 when the port changes */
	atomic_bool port_event_posted;
	/* the next @port_event begins to use the port */
	atomic_bool port_offered;
	/* posted to CPT 0 when this CPT has released the port */
	struct work released;
};

struct ib_ni {
	/* immutable after startup() */
	struct lnd_ni *ni;
	const struct ib_verbs *verbs;
	struct ib_port_conf port_conf;
	struct ib_peers_conf peers_conf;
	struct ib_conn_conf conn_conf;
	struct ib_cpt *cpts;

	atomic_int fault; /* 0; or -ENETDOWN: the port cannot be used */
	/* the device is being removed: the CPTs must release the port */
	atomic_bool removed;
	struct passage passage; /* counts port events under way to CPTs */

	/* owned by CPT 0 */
	struct ib_port *port; /* NULL: no device */
	/* number of CPTs that have not released the port */
	unsigned int users;
	struct timer reopen;
	bool closed; /* no port event is under way any more */
};

static inline struct ib_ni *ib_ni_of(const struct lnd_ni *ni)
{
	return ni->priv;
}

/* Returns the time-out of a message, ns. It may change at any time, with LNet's
 * setting lnd_timeout. */
static inline uint64_t ib_timeout(const struct ib_ni *ini)
{
	int64_t own = ini->ni->tunables[IB_TUNE_timeout];

	return own ? (uint64_t)own * NSEC_PER_SEC : lnet_lnd_timeout(ini->ni);
}

static inline struct loop *ib_loop(const struct ib_cpt *cpt)
{
	return cpt->ini->ni->loops[cpt->index];
}

static inline struct ib_cpt *ib_cpt_of(const struct ib_peers *ps)
{
	return ps->priv;
}

/* ---- port.c ---- */

/* Called before all other functions of port.c. */
void ib_port_init(struct ib_ni *ini);
/* Called on CPT 0 when the NI shuts down. No port event is posted after this.
 */
void ib_port_stop(struct ib_ni *ini);
/* Opens the port, on CPT 0, at startup. Returns 0, or -errno as
 * ib_verbs.open(), after logging it. */
int ib_port_open(struct ib_ni *ini) must_check;
/* Called on each CPT, at startup, after ib_port_open(). */
void ib_cpt_start(struct ib_cpt *cpt);
/* Shuts down the CPT's part of the NI. */
void ib_cpt_stop(struct ib_cpt *cpt);
/* To be called whenever something has ended on @cpt. If nothing uses the port
 * any more, and it must be released, releases it. If nothing is left after
 * shutdown(), reports that the CPT has stopped. @cpt may be gone on return. */
void ib_cpt_settle(struct ib_cpt *cpt);

#endif
