/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transmits: a buffer for one message, and the state of the exchange that it
 * begins. A PUT begins as a PUT_REQ and goes on, in the same transmit, as its
 * PUT_DONE; a GET_REQ waits for the peer's GET_DONE; at the other side, a
 * PUT_ACK waits for the PUT_DONE. An IMMEDIATE is a single message.
 *
 *	new ---> reserved ---> queued ---> (writing) ---> posted ---> done
 *	  `----------------------^  ^                       |          ^ ^
 *				    |		         (waiting) ----' |
 *				    `--- PUT_ACK came ------'-- answered-'
 *
 * In "done" the result is known, and does not change any more. The user is
 * told once all posted work requests have completed, since until then the
 * device uses buffer and memory.
 *
 * Causes of failure when the connection ends (lnd.h, cause.h), by the reason
 * for that, and by how far the transmit has come:
 *
 *	reason		nothing sent	posted		sent, no answer
 *	peer		REMOTE_DROPPED	REMOTE_ERROR	REMOTE_ERROR
 *	silence		REMOTE_DROPPED	NETWORK_TIMEOUT	NETWORK_TIMEOUT
 *	deadline	LOCAL_TIMEOUT	NETWORK_TIMEOUT	REMOTE_TIMEOUT
 *	this side	LOCAL_DROPPED	LOCAL_ERROR	LOCAL_ERROR
 *	link, device	LOCAL_NO_ROUTE	LOCAL_ERROR	LOCAL_ERROR
 *	NI goes down	LOCAL_ABORTED	SHUTDOWN	SHUTDOWN
 *
 * Buffers are registered memory, in slabs. A pool belongs to one CPT and one
 * port, and grows by slabs. Its limit holds for what the user sends; answers to
 * peers may exceed it, by D for each connection at most.
 *
 * Owner: the pool; from ib_tx_get() on a connection. Thread: its CPT's.
 */
#ifndef LND_O2IBLND_TX_H
#define LND_O2IBLND_TX_H

#include "base/fsm.h"
#include "base/list.h"
#include "lnd/o2iblnd/credit.h"
#include "lnd/o2iblnd/verbs.h"
#include "lnd/o2iblnd/wire.h"

/* ---- WRITEs ---- */

/*
 * Splitting of a payload into WRITEs. Source and target are lists of parts of
 * any length that need not match: a WRITE goes to one fragment of the peer, and
 * gathers several parts of local memory.
 *
 * Thread: any, one at a time.
 */

/* Most scatter/gather entries of a WRITE. */
#define IB_WRITE_SGES 16

/* How far the WRITEs of a payload have come. */
struct ib_writes {
	const struct ib_rdma *rdma; /* NULL: there is nothing to write */
	const struct ib_sge *sge;
	/* index of the next fragment of @rdma; index of the next entry of the
	 * source */
	unsigned int frag, sge_at;
	/* bytes of that fragment that are written; bytes of that entry */
	uint32_t frag_done, sge_done;
	uint32_t left; /* number of bytes that are not in a WRITE yet */
};

/* Begins to write @length bytes from @sge to @rdma, each of which has as many
 * bytes. Both are borrowed until the last WRITE. */
void ib_writes_init(struct ib_writes *w, const struct ib_rdma *rdma,
		    const struct ib_sge *sge, uint32_t length);

static inline bool ib_writes_end(const struct ib_writes *w)
{
	return !w->left;
}

/* Makes the next WRITE in @wr, with its entries, at most @max_sge, in @sge.
 * Must not be called when nothing is left. */
void ib_writes_next(struct ib_writes *w, struct ib_wr *wr, struct ib_sge *sge,
		    unsigned int max_sge);

/* Counts the WRITEs that are left, with at most @max_sge entries each. */
unsigned int ib_writes_count(const struct ib_writes *w, unsigned int max_sge);

/* ---- transmits ---- */

struct ib_conn;
struct ib_regcache;
struct ib_tx_slab;

enum ib_tx_state {
	IB_TX_NEW,	/* being filled in */
	IB_TX_RESERVED, /* waits for a reserved credit */
	IB_TX_QUEUED,	/* waits for a credit, or for its turn */
	IB_TX_WRITING,	/* some WRITEs are posted, more are to follow */
	IB_TX_POSTED,	/* the SEND is posted */
	IB_TX_WAITING,	/* sent; waits for the peer's answer */
	IB_TX_DONE,
	IB_TX_STATES
};
extern const struct fsm_state ib_tx_states[IB_TX_STATES];

/* Why a connection has ended. */
enum ib_blame {
	IB_BLAME_PEER,	   /* the peer disconnected, or violated the protocol */
	IB_BLAME_SILENCE,  /* the peer's device does not acknowledge */
	IB_BLAME_DEADLINE, /* a deadline was missed */
	IB_BLAME_SELF,	   /* a local failure */
	IB_BLAME_LINK,	   /* the port or device failed */
	IB_BLAME_SHUTDOWN, /* the NI shuts down */
	IB_BLAMES
};

struct ib_tx {
	struct fsm fsm;
	uint8_t type;	/* enum ib_msg_type of the message in the buffer */
	bool begun;	/* something may have been sent */
	bool reserved;	/* it has a reserved credit, and has not used it */
	bool abandoned; /* the user has abandoned the transmit */
	/* the connection has made it for itself: done() is not called */
	bool own;
	bool has_result;
	bool answer; /* it answers a peer: not limited by pool->max */
	/* in the pool's free list, in a queue, or in conn->waiting */
	struct list link;
	struct list all; /* in conn->all, in the order of ib_tx_get() */
	struct ib_conn *conn;
	struct ib_tx_pool *pool;
	/* The message buffer, of IB_MSG_SIZE_MAX bytes; sge.length is the
	 * length of the message in it. */
	struct ib_sge sge;
	/* number by which the peer's answer names the request: see ib_tx_name()
	 */
	uint64_t cookie;
	/* ns that each message may take; the user may lower it */
	uint64_t time;
	uint64_t deadline; /* ns: when the message in the buffer is overdue */
	/* number of post_send() calls that have not completed */
	unsigned int posts;

	/* Local memory that the payload of a PUT, or of the answer to a GET, is
	 * written from; else NULL. */
	const struct ib_sge *source;
	/* number of bytes of the payload, or of the sink for it */
	uint32_t length;
	/* the peer's memory; its fragments are behind the message */
	struct ib_rdma rdma;
	struct ib_writes writes;
	unsigned int nwrites; /* number of WRITEs that are not posted yet */

	/* result; valid if has_result */
	int status;
	enum ulnet_cause cause;
	uint32_t nob; /* result: number of bytes received or written */

	void *user; /* the user's own */
};

struct ib_tx_pool {
	/* immutable after init */
	struct ib_port *port;
	uint32_t max; /* the most transmits of the user at a time */
	/* cache from which registrations are evicted when memory is short;
	 * NULL: none; set later */
	struct ib_regcache *regcache;

	struct list free;
	struct list slabs;
	uint32_t total, used;
	/* number of transmits in use that are not answers to peers */
	uint32_t requests;
	uint64_t next_cookie;
	uint64_t refused; /* how often max was reached */
	uint64_t failed;  /* how often memory was short */
};

void ib_tx_pool_init(struct ib_tx_pool *pool, struct ib_port *port,
		     uint32_t max);
/* All transmits must have been put. */
void ib_tx_pool_fini(struct ib_tx_pool *pool);

/* Part of ib_tx_new(), for when no transmit is free: grows the pool. */
struct ib_tx *ib_tx_new_grown(struct ib_tx_pool *pool, bool answer);

/* Returns a new transmit. NULL: no memory; or pool->max is reached and this is
 * not an @answer to a peer. */
static inline struct ib_tx *ib_tx_new(struct ib_tx_pool *pool, bool answer)
{
	struct ib_tx *tx;

	if (pool->requests >= pool->max && !answer) {
		pool->refused++;
		return NULL;
	}
	if (unlikely(list_empty(&pool->free)))
		return ib_tx_new_grown(pool, answer);
	tx = list_first(&pool->free, struct ib_tx, link);
	list_del(&tx->link);
	tx->fsm.state = IB_TX_NEW;
	tx->type = 0;
	tx->begun = false;
	tx->reserved = false;
	tx->abandoned = false;
	tx->own = false;
	tx->has_result = false;
	tx->answer = answer;
	tx->source = NULL;
	tx->length = 0;
	tx->nwrites = 0;
	tx->status = 0;
	tx->cause = LNET_CAUSE_OK;
	tx->nob = 0;
	tx->user = NULL;
	pool->used++;
	pool->requests += !answer;
	return tx;
}

/* Returns @tx, which is in no list, to its pool. */
static inline void ib_tx_put(struct ib_tx *tx)
{
	struct ib_tx_pool *pool = tx->pool;

	BUG_ON(!list_empty(&tx->link) || !list_empty(&tx->all) || tx->posts);
	pool->used--;
	pool->requests -= !tx->answer;
	list_add(&pool->free, &tx->link);
}

static inline uint8_t *ib_tx_buf(const struct ib_tx *tx)
{
	return tx->sge.addr;
}

/* Gives @tx a new cookie, unique in the pool, for its next request. */
static inline uint64_t ib_tx_name(struct ib_tx *tx)
{
	tx->cookie = tx->pool->next_cookie++;
	return tx->cookie;
}

/* Sets the result, unless the transmit has one. */
static inline void ib_tx_result(struct ib_tx *tx, int status,
				enum ulnet_cause cause)
{
	if (tx->has_result)
		return;
	tx->has_result = true;
	tx->status = status;
	tx->cause = cause;
}

/* Returns the cause of the failure of @tx, if its connection ends now. */
enum ulnet_cause ib_tx_cause(const struct ib_tx *tx, enum ib_blame blame);

#endif
