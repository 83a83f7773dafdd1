/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside simqp: addresses, links between them, ports, and the timed items that
 * are delivered to ports and queue pairs.
 */
#ifndef LND_O2IBLND_SIMQP_FABRIC_H
#define LND_O2IBLND_SIMQP_FABRIC_H

#include "base/env.h"
#include "base/hash.h"
#include "base/list.h"
#include "lnd/o2iblnd/simqp/simqp.h"

struct simqp_port;

/* The next call of a function that is to fail. */
struct simqp_fail {
	unsigned int skip; /* number of calls that succeed before that */
	/* errno of the call that fails; 0: none is to fail */
	int status;
};

/* A NID known to the network. Lives as long as the fabric. */
struct simqp_addr {
	struct list link; /* in fabric.addrs */
	struct ulnet_nid nid;
	struct simqp_device device;
	/* the open port with this address; NULL: none is open */
	struct simqp_port *port;
	bool down;
	bool gone; /* the device was removed */
	const char *why;
	struct simqp_fail fails[SIMQP_CALLS];
	/* the CM's reason for rejecting the next request; 0: the request is not
	 * rejected */
	int reject;
	/* status of the next resolve(); 0: it goes on as usual */
	int unresolve;
};

/* One direction between two NIDs. Lives as long as the fabric. */
struct simqp_way {
	struct list link; /* in fabric.ways */
	struct simqp_fabric *fabric;
	struct simqp_addr *src, *dst;
	/* fabric.version when @now was taken from the rules */
	uint64_t version;
	struct simqp_link now;
	/* ns: when the last byte of what was sent before has left */
	uint64_t free_at;
};

/* A rule for the ways from @src to @dst; both may be LNET_NID_ANY. */
struct simqp_rule {
	struct list link; /* in fabric.links or fabric.silences */
	struct ulnet_nid src, dst;
	/* the link, of a rule in fabric.links */
	struct simqp_link is;
	/* ns: when the silence of a rule in fabric.silences ends */
	uint64_t until;
};

struct simqp_fabric {
	/* the first field, since lnd_ni.fabric points to it */
	struct ib_fabric ib;
	struct env_sim *world;
	struct simqp_conf conf;
	struct rng rng;
	/* For keys only. How often memory is registered may depend on
	 * addresses, which do not follow from the seed. */
	struct rng key_rng;
	struct list addrs;
	struct list ways;
	struct list links;    /* of simqp_rule.link, the newest first */
	struct list silences; /* of simqp_rule.link, the newest first */
	uint64_t version;     /* number of changes of links */
	struct hash qps;      /* all queue pairs, by id */
	uint64_t last_qp;
	uint32_t last_key;
	struct simqp_stats stats;
};

_Static_assert(offsetof(struct simqp_fabric, ib) == 0,
	       "a fabric is what lnd_ni.fabric points to");

/* Allocates zeroed memory, or aborts. */
void *simqp_alloc(size_t size);

uint64_t simqp_now(const struct simqp_fabric *f);
bool simqp_dice(struct simqp_fabric *f, uint32_t ppm);

/* Arm and cancel a timer of any loop of the world. May be called in any turn.
 */
void simqp_arm(struct loop *loop, struct timer *t, uint64_t at);
void simqp_disarm(struct loop *loop, struct timer *t);

/* simqp_addr_find() returns the address @nid, or NULL if the network does not
 * know it; simqp_addr_get() makes it known. */
struct simqp_addr *simqp_addr_find(const struct simqp_fabric *f,
				   const struct ulnet_nid *nid);
struct simqp_addr *simqp_addr_get(struct simqp_fabric *f,
				  const struct ulnet_nid *nid);
/* Counts a @call at @a. Returns 0, or the status with which it must fail. */
int simqp_addr_fails(struct simqp_addr *a, enum simqp_call call);

/* Is @nid equal to @by, or @by LNET_NID_ANY? */
bool simqp_is_named(const struct ulnet_nid *nid, const struct ulnet_nid *by);

struct simqp_way *simqp_way_get(struct simqp_fabric *f, struct simqp_addr *src,
				struct simqp_addr *dst);
/* Returns the link of the way, by the present rules. */
const struct simqp_link *simqp_way_link(struct simqp_way *w);
bool simqp_way_is_silent(const struct simqp_way *w);
/* Queues @length bytes for sending. Returns when the last of them has left, ns.
 */
uint64_t simqp_way_take(struct simqp_way *w, uint64_t length);
/* Returns the latency of one packet, with jitter, ns. */
uint64_t simqp_way_latency(struct simqp_way *w);

/* ---- timed items ---- */

/*
 * Timed items of a loop: packets, connect messages, completions. They are
 * handled one at a time, by a timer.
 */

struct simqp_wr;
struct simqp_inbox;

enum simqp_kind {
	/* For queue pairs: data. */
	SIMQP_DATA,
	SIMQP_ACK,   /* acknowledges all packets up to seq */
	SIMQP_RNR,   /* there was no receive for seq */
	SIMQP_NAK,   /* seq has failed with wc */
	SIMQP_ABORT, /* the peer has used up its retries for a receive */
	/* For queue pairs: connect messages. */
	SIMQP_REP,
	SIMQP_RTU,
	SIMQP_REJ,
	SIMQP_DREQ,
	SIMQP_GONE, /* the active side has given up */
	/* For queue pairs, from themselves. */
	SIMQP_RESOLVED,
	SIMQP_REQUEST,
	SIMQP_FAIL,
	/* For the completion queues of queue pairs. */
	SIMQP_RECEIVED,
	SIMQP_SENT,
	/* For ports. */
	SIMQP_REQ,
	SIMQP_CHANGED,
};

struct simqp_item {
	struct list link; /* in simqp_inbox.items */
	uint64_t at;	  /* ns: when it is handled */
	enum simqp_kind kind;
	/* the way over which it comes; NULL: it is local */
	struct simqp_way *way;
	uint64_t from;	     /* id of the sending queue pair */
	struct simqp_wr *wr; /* DATA: the work request, a reference */
	uint64_t seq;	     /* DATA, ACK, RNR, NAK: number of a packet */
	int status;	     /* an errno, or the reason of a rejection */
	/* status of a completion, or of a NAK */
	enum ib_wc_status wc;
	void *cookie;
	uint32_t length;
	uint32_t nwr; /* number of work requests that complete with it */
	/* CHANGED: as in ib_events.port_changed() */
	bool up, removed;
	const char *why;
	/* of a connect message: the source port, the service, and the private
	 * data */
	uint16_t src_port, service;
	uint8_t private[IB_PRIVATE_ACCEPT_SIZE];
};

typedef void (*simqp_handle_fn)(struct simqp_inbox *b, struct simqp_item *it);

struct simqp_inbox {
	struct list items; /* sorted by time */
	struct timer timer;
	struct loop *loop;
	/* Borrows the item until return; may free the inbox. */
	simqp_handle_fn handle;
};

struct simqp_item *simqp_item_new(enum simqp_kind kind);
void simqp_item_free(struct simqp_item *it);

void simqp_inbox_init(struct simqp_inbox *b, struct loop *loop,
		      simqp_handle_fn handle);
/* Frees all items, without handling them. */
void simqp_inbox_fini(struct simqp_inbox *b);
/* Takes @it, to be handled at @at, after all earlier ones and never before this
 * function returns. */
void simqp_inbox_put(struct simqp_inbox *b, struct simqp_item *it, uint64_t at);
/* Makes all items due now. */
void simqp_inbox_expedite(struct simqp_inbox *b, uint64_t now);
/* Drops all items that come over a way, and not those of this node. */
void simqp_inbox_cut(struct simqp_inbox *b);

/* ---- ports ---- */

struct simqp_port {
	struct ib_port ib;
	struct simqp_fabric *fabric;
	struct simqp_addr *addr;
	struct ib_port_conf conf;
	bool listening;
	bool removed; /* the device was removed */
	bool dying;   /* the node is dead: work requests complete at once */
	struct simqp_inbox inbox; /* items for CPT 0 */
	struct list qps;	  /* of simqp_qp.link */
	struct hash keys;	  /* registered memory, by key */
	struct simqp_usage usage;
	uint16_t last_src_port;
	uint8_t src_ports[8192]; /* bitmap of source ports in use */
};

static inline struct simqp_port *simqp_port(struct ib_port *ib)
{
	return container_of(ib, struct simqp_port, ib);
}

/* Takes a free source port, and returns it; 0: none is left. */
uint16_t simqp_src_port_get(struct simqp_port *port);
void simqp_src_port_put(struct simqp_port *port, uint16_t src_port);

/* Is all of @sge in memory that is registered with its lkey? True if @sge is
 * empty. */
bool simqp_mr_is_local(const struct simqp_port *port, const struct ib_sge *sge);
/* May peers write to all @length bytes at @addr with @rkey? */
bool simqp_mr_is_remote(const struct simqp_port *port, uint64_t addr,
			uint64_t length, uint32_t rkey);

#endif
