/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lies between ports: addresses, and the ways from one to another.
 * Inside simqp only.
 */
#ifndef LND_O2IBLND_SIMQP_FABRIC_H
#define LND_O2IBLND_SIMQP_FABRIC_H

#include "base/env.h"
#include "base/hash.h"
#include "base/list.h"
#include "lnd/o2iblnd/simqp/simqp.h"

struct simqp_port;

/* A call that is to fail. */
struct simqp_fail {
	unsigned int skip; /* good ones before it */
	int status;	   /* 0: none fails */
};

/* A NID that is in the network; lives as long as the fabric. */
struct simqp_addr {
	struct list link; /* fabric.addrs */
	struct ulnet_nid nid;
	struct simqp_device device;
	struct simqp_port *port; /* NULL: none is open */
	bool down;
	bool gone; /* the device */
	const char *why;
	struct simqp_fail fails[SIMQP_CALLS];
	int reject;    /* reason of the next rejection; 0: none */
	int unresolve; /* status of the next resolve(); 0: its own */
};

/* A direction between two NIDs; lives as long as the fabric. */
struct simqp_way {
	struct list link; /* fabric.ways */
	struct simqp_fabric *fabric;
	struct simqp_addr *src, *dst;
	uint64_t version; /* of the rules that @now is from */
	struct simqp_link now;
	uint64_t free_at; /* ns: when what was sent before has left */
};

/* What was said of a direction. */
struct simqp_rule {
	struct list link; /* fabric.links, .silences: newest first */
	struct ulnet_nid src, dst;
	struct simqp_link is; /* fabric.links */
	uint64_t until;	      /* fabric.silences; ns */
};

struct simqp_fabric {
	struct ib_fabric ib; /* first: lnd_ni.fabric points to it */
	struct env_sim *world;
	struct simqp_conf conf;
	struct rng rng;
	/* Of its own: how often memory is registered may depend on where it
	 * is, which is no part of the seed. */
	struct rng key_rng;
	struct list addrs;
	struct list ways;
	struct list links;    /* simqp_rule */
	struct list silences; /* simqp_rule */
	uint64_t version;     /* of links */
	struct hash qps;      /* by id */
	uint64_t last_qp;
	uint32_t last_key;
	struct simqp_stats stats;
};

_Static_assert(offsetof(struct simqp_fabric, ib) == 0,
	       "a fabric is what lnd_ni.fabric points to");

/* Zeroed memory. What a simulation itself needs is there: else it aborts. */
void *simqp_alloc(size_t size);

/* As simqp_fabric_new(), whose ports are for @verbs. */
int simqp_fabric_make(const struct ib_verbs *verbs, struct env_sim *world,
		      const struct simqp_conf *conf,
		      struct simqp_fabric **fabric_p) must_check;

uint64_t simqp_now(const struct simqp_fabric *f);
bool simqp_dice(struct simqp_fabric *f, uint32_t ppm);

/* Timers of any loop of the world, in a turn of whichever. */
void simqp_arm(struct loop *loop, struct timer *t, uint64_t at);
void simqp_disarm(struct loop *loop, struct timer *t);

/* NULL: it was never in the network. */
struct simqp_addr *simqp_addr_find(const struct simqp_fabric *f,
				   const struct ulnet_nid *nid);
struct simqp_addr *simqp_addr_get(struct simqp_fabric *f,
				  const struct ulnet_nid *nid);
/* Is @call to fail now? 0, or its status. */
int simqp_addr_fails(struct simqp_addr *a, enum simqp_call call);

/* The NID matches @by, which may be any. */
bool simqp_is_named(const struct ulnet_nid *nid, const struct ulnet_nid *by);

struct simqp_way *simqp_way_get(struct simqp_fabric *f, struct simqp_addr *src,
				struct simqp_addr *dst);
/* As it is now. */
const struct simqp_link *simqp_way_link(struct simqp_way *w);
bool simqp_way_is_silent(const struct simqp_way *w);
/* @length bytes leave when those before them have left; returns when the last
 * one has, ns. */
uint64_t simqp_way_take(struct simqp_way *w, uint64_t length);
/* ns that something takes on the way. */
uint64_t simqp_way_latency(struct simqp_way *w);

/* ---- what is to happen ---- */

/*
 * What is to happen on a loop, each at its time: packets that arrive, connect
 * messages, completions. One item is handled at a time, out of a timer of the
 * loop. Inside simqp only.
 */

struct simqp_wr;
struct simqp_inbox;

enum simqp_kind {
	/* of queue pairs: data */
	SIMQP_DATA,
	SIMQP_ACK,   /* all up to seq */
	SIMQP_RNR,   /* seq has met no receive */
	SIMQP_NAK,   /* seq has failed, by wc */
	SIMQP_ABORT, /* the peer's has given up on receives */
	/* of queue pairs: connect messages */
	SIMQP_REP,
	SIMQP_RTU,
	SIMQP_REJ,
	SIMQP_DREQ,
	SIMQP_GONE, /* the active side gives up */
	/* of queue pairs: from nowhere else */
	SIMQP_RESOLVED,
	SIMQP_REQUEST,
	SIMQP_FAIL,
	/* of their completion queues */
	SIMQP_RECEIVED,
	SIMQP_SENT,
	/* of ports */
	SIMQP_REQ,
	SIMQP_CHANGED,
};

struct simqp_item {
	struct list link; /* simqp_inbox.items */
	uint64_t at;	  /* ns */
	enum simqp_kind kind;
	struct simqp_way *way; /* over which it comes; NULL: none */
	uint64_t from;	       /* id of the queue pair that has sent it */
	struct simqp_wr *wr;   /* a reference; DATA */
	uint64_t seq;	       /* DATA, ACK, RNR, NAK */
	int status;	       /* errno, or reason of a rejection */
	/* Completions, NAK: */
	enum ib_wc_status wc;
	void *cookie;
	uint32_t length;
	uint32_t nwr; /* work requests that have ended with it */
	/* CHANGED: */
	bool up, removed;
	const char *why;
	/* Connect messages: */
	uint16_t src_port, service;
	uint8_t private[IB_PRIVATE_ACCEPT_SIZE];
};

typedef void (*simqp_handle_fn)(struct simqp_inbox *b, struct simqp_item *it);

struct simqp_inbox {
	struct list items; /* by time */
	struct timer timer;
	struct loop *loop;
	/* Borrows the item until return; may end the inbox. */
	simqp_handle_fn handle;
};

struct simqp_item *simqp_item_new(enum simqp_kind kind);
void simqp_item_free(struct simqp_item *it);

void simqp_inbox_init(struct simqp_inbox *b, struct loop *loop,
		      simqp_handle_fn handle);
/* Drops what is in it. */
void simqp_inbox_fini(struct simqp_inbox *b);
/* Takes @it, which is handled at @at, behind all that are until then. Never
 * before this returns. */
void simqp_inbox_put(struct simqp_inbox *b, struct simqp_item *it, uint64_t at);
/* What is in it is due now. */
void simqp_inbox_hurry(struct simqp_inbox *b, uint64_t now);
/* Drops what has come over some way. */
void simqp_inbox_cut(struct simqp_inbox *b);

#endif
