/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LND over RDMA: an NI, and its part on each CPT.
 *
 *	o2iblnd.c	what LNet calls
 *	tunable.def	what users may set
 *	port.c		the port of an NI: its changes, and the device that goes
 *			and comes back
 *	xfer.c		LNet's messages, and what they have become
 *	memory.c	registered memory for payloads, and who waits for it
 *	regcache.c	registrations of users' memory: payloads that are not
 *			copied
 *	peer.c		peers, their connections, and attempts to have some
 *	conn.c		a connection; receive.c, exchange.c, credit.c, admit.c
 *			belong to it
 *	tx.c		buffers for messages
 *	wire.c		bytes on the wire
 *	verbs.h		the contract with the two backends:
 *	rdma*.c		the one on rdma-core
 *	simqp/		the simulated one
 *	calc_*.c	what tunables come to
 *
 * Rules of the protocol: spec o2ib-wire, section 1.
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

/* Owner: its CPT's thread. */
struct ib_cpt {
	struct ib_ni *ini;
	unsigned int index;
	bool attached; /* txs, arenas and regs are there, of the port */
	bool stopping; /* shutdown() was called */
	bool stopped;  /* ... and there are no peers any more */
	bool told;     /* ... and LNet, or CPT 0, knows */
	struct ib_peers peers;
	struct ib_tx_pool txs;
	struct ib_arena arena[IB_USES];
	struct ib_regcache regs; /* of users' memory */
	struct hash holders;	 /* memory.c's: ib_holder.hash */
	uint64_t seed;		 /* of the hash */
	struct pool xfers;
	unsigned int under_way; /* xfers that have a transmit */
	struct list hungry;	/* ib_xfer.link: wait for memory, in order */
	uint64_t round;		/* of feeding them */
	struct list got;	/* ib_xfer.link: LNet is to take their data */
	struct work feed;	/* memory has come back, and somebody waits */
	bool feeding;		/* ... is due */
	struct work news;	/* of the port, from CPT 0 */
	atomic_bool news_posted;
	atomic_bool given;  /* with the news: the port is there to be used */
	struct work let_go; /* to CPT 0: is not used by this CPT any more */
};

struct ib_ni {
	/* immutable after startup() */
	struct lnd_ni *ni;
	const struct ib_verbs *verbs;
	struct ib_port_conf port_conf;
	struct ib_peers_conf peers_conf;
	struct ib_conn_conf conn_conf;
	struct ib_cpt *cpts;

	atomic_int fault;	/* 0; -ENETDOWN: the port cannot be used */
	atomic_bool going;	/* ... and is to be let go of */
	struct passage passage; /* from CPT 0 to all: news */

	/* CPT 0: */
	struct ib_port *port; /* NULL: there is no device */
	unsigned int holders; /* CPTs that have not let go of it */
	struct timer reopen;
	bool closed; /* nothing is on its way to other CPTs any more */
};

static inline struct ib_ni *ib_ni_of(const struct lnd_ni *ni)
{
	return ni->priv;
}

/* How long a message may take, ns: what was asked for may change at any
 * time. */
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

/* Before all else. */
void ib_port_init(struct ib_ni *ini);
/* On CPT 0: the NI goes down. No news follows. */
void ib_port_stop(struct ib_ni *ini);
/* At startup, on CPT 0: opens the port. 0, or -errno, as verbs.h says
 * of open(); it was logged. */
int ib_port_open(struct ib_ni *ini) must_check;
/* At startup, on each CPT, after that. */
void ib_cpt_start(struct ib_cpt *cpt);
/* The CPT's part of the NI goes down. */
void ib_cpt_stop(struct ib_cpt *cpt);
/* Something has ended on @cpt: lets go of the port, and says that this part of
 * the NI has stopped, when it is time and nothing is left. @cpt may be gone on
 * return. */
void ib_cpt_settle(struct ib_cpt *cpt);

#endif
