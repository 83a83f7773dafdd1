/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages out. A transmit is a buffer for one message, and what becomes of it:
 * of an IMMEDIATE that is all; a PUT begins as its PUT_REQ and goes on, in the
 * same transmit, as its PUT_DONE; a GET waits as its GET_REQ for the peer's
 * GET_DONE; at the other side, a PUT_ACK waits for the PUT_DONE.
 *
 *	new ---> reserved ---> queued ---> (writing) ---> posted ---> done
 *	  `----------------------^  ^                       |          ^ ^
 *				    |		         (waiting) ----' |
 *				    `--- PUT_ACK came ------'-- answered-'
 *
 * done: its result is known. The user is told later, when the device does not
 * need its buffer and its memory any more, because all that was posted of it
 * has ended. The first result counts: what befalls a transmit later does not
 * change it.
 *
 * Causes of those whose connection ends (lnd.h, cause.h), by what was left of
 * them, and what the end was due to:
 *
 *	due to		nothing left	posted		sent, no answer
 *	peer		REMOTE_DROPPED	REMOTE_ERROR	REMOTE_ERROR
 *	silence		REMOTE_DROPPED	NETWORK_TIMEOUT	NETWORK_TIMEOUT
 *	deadline	LOCAL_TIMEOUT	NETWORK_TIMEOUT	REMOTE_TIMEOUT
 *	this side	LOCAL_DROPPED	LOCAL_ERROR	LOCAL_ERROR
 *	link, device	LOCAL_NO_ROUTE	LOCAL_ERROR	LOCAL_ERROR
 *	NI goes down	LOCAL_ABORTED	SHUTDOWN	SHUTDOWN
 *
 * Buffers are registered memory, in slabs. A pool belongs to one CPT and one
 * port; it grows by slabs up to a limit, which holds for what the user sends.
 * Answers to peers go beyond it, if need be: D for each connection at most.
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
 * From what a peer says where it wants its bytes, and where they are here, to
 * the work requests that write them. Both are lists of pieces, of any length,
 * whose ends need not meet: a WRITE goes to one fragment of the peer, and
 * gathers pieces of local memory. The last one goes out however short it is.
 *
 * Thread: any, one at a time.
 */

/* Pieces that a WRITE gathers, at most. */
#define IB_WRITE_SGES 16

/* How far it has come. */
struct ib_writes {
	const struct ib_rdma *rdma; /* NULL: nothing is to be written */
	const struct ib_sge *sge;
	unsigned int frag, piece;	/* to be gone on with, and ... */
	uint32_t frag_done, piece_done; /* ... bytes of them that are done */
	uint32_t left;			/* bytes */
};

/* @length bytes, which both have; 0: nothing is to be written. Both are
 * borrowed until it is done. */
void ib_writes_init(struct ib_writes *w, const struct ib_rdma *rdma,
		    const struct ib_sge *sge, uint32_t length);

static inline bool ib_writes_end(const struct ib_writes *w)
{
	return !w->left;
}

/* The next WRITE: to @wr, which names its pieces in @sge, with room for
 * @max_sge. Not at the end. */
void ib_writes_next(struct ib_writes *w, struct ib_wr *wr, struct ib_sge *sge,
		    unsigned int max_sge);

/* How many there are still, of at most @max_sge pieces each. */
unsigned int ib_writes_count(const struct ib_writes *w, unsigned int max_sge);

/* ---- transmits ---- */

struct ib_conn;
struct ib_regcache;
struct ib_tx_slab;

enum ib_tx_state {
	IB_TX_NEW,	/* being filled in */
	IB_TX_RESERVED, /* waits for a reserved credit */
	IB_TX_QUEUED,	/* waits for a credit, or its turn */
	IB_TX_WRITING,	/* some of its WRITEs are posted, others are not */
	IB_TX_POSTED,	/* has its SEND posted */
	IB_TX_WAITING,	/* is sent, waits for the peer's answer */
	IB_TX_DONE,
	IB_TX_STATES
};
extern const struct fsm_state ib_tx_states[IB_TX_STATES];

/* What the end of a connection is due to. */
enum ib_blame {
	IB_BLAME_PEER,	   /* it has ended it, or breaks the protocol */
	IB_BLAME_SILENCE,  /* its device does not acknowledge */
	IB_BLAME_DEADLINE, /* one has passed */
	IB_BLAME_SELF,	   /* something has failed here */
	IB_BLAME_LINK,	   /* the port or its device has */
	IB_BLAME_SHUTDOWN, /* the NI goes down */
	IB_BLAMES
};

struct ib_tx {
	struct fsm fsm;
	uint8_t type;	  /* enum ib_msg_type: of what is in the buffer now */
	bool begun;	  /* something of it may have left */
	bool reserved;	  /* has a reserved credit, and is not posted yet */
	bool abandoned;	  /* the user does not want it any more */
	bool own;	  /* the connection's: the user does not know of it */
	bool known;	  /* the result is */
	bool answer;	  /* to a peer: does not count against pool->max */
	struct list link; /* pool's free ones; connection's queue, or "waiting"
			   * from posted to done if there is to be an answer */
	struct list all;  /* connection's, in order of ib_tx_get() */
	struct ib_conn *conn;
	struct ib_tx_pool *pool;
	/* Its buffer, of IB_MSG_SIZE_MAX bytes; the length is that of the
	 * message in it. */
	struct ib_sge sge;
	uint64_t cookie;    /* ib_tx_name() */
	uint64_t time;	    /* ns that it may take; the user may make it less */
	uint64_t deadline;  /* ns, of this leg */
	unsigned int posts; /* post_send() that have not ended */

	/* Its memory: where a PUT is, or a GET's answer; where a GET goes, or
	 * a PUT to this side. */
	const struct ib_sge *source;
	uint32_t length;     /* bytes */
	struct ib_rdma rdma; /* the peer's, in the buffer behind the message */
	struct ib_writes writes;
	unsigned int nwrites; /* that are not posted */

	/* The result. */
	int status;
	enum ulnet_cause cause;
	uint32_t nob; /* bytes that came, or were written */

	void *user; /* the user's */
};

struct ib_tx_pool {
	/* immutable after init */
	struct ib_port *port;
	uint32_t max;		   /* transmits of the user */
	uint64_t slab_bytes;	   /* of their buffers */
	struct ib_regcache *spare; /* gives way to them; set after init, or
				    * NULL */

	struct list free;
	struct list slabs;
	uint32_t total, used;
	uint32_t asked; /* of those that are used: no answers */
	uint64_t next_cookie;
	uint64_t refused; /* times that the limit was reached ... */
	uint64_t failed;  /* ... or no memory was to be had */
};

void ib_tx_pool_init(struct ib_tx_pool *pool, struct ib_port *port,
		     uint32_t max);
/* All transmits must be back. */
void ib_tx_pool_fini(struct ib_tx_pool *pool);

/* As ib_tx_new(), when none is free. */
struct ib_tx *ib_tx_new_grown(struct ib_tx_pool *pool, bool answer);

/* A new transmit, whose result is not known. NULL: there is no memory; or the
 * limit is reached, unless it is an @answer to a peer. */
static inline struct ib_tx *ib_tx_new(struct ib_tx_pool *pool, bool answer)
{
	struct ib_tx *tx;

	if (pool->asked >= pool->max && !answer) {
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
	tx->known = false;
	tx->answer = answer;
	tx->source = NULL;
	tx->length = 0;
	tx->nwrites = 0;
	tx->status = 0;
	tx->cause = LNET_CAUSE_OK;
	tx->nob = 0;
	tx->user = NULL;
	pool->used++;
	pool->asked += !answer;
	return tx;
}

/* It is in no list any more. */
static inline void ib_tx_put(struct ib_tx *tx)
{
	struct ib_tx_pool *pool = tx->pool;

	BUG_ON(!list_empty(&tx->link) || !list_empty(&tx->all) || tx->posts);
	pool->used--;
	pool->asked -= !tx->answer;
	list_add(&pool->free, &tx->link);
}

static inline uint8_t *ib_tx_buf(const struct ib_tx *tx)
{
	return tx->sge.addr;
}

/* A name for it, to be said to the peer, that no other one of the pool has. */
static inline uint64_t ib_tx_name(struct ib_tx *tx)
{
	tx->cookie = tx->pool->next_cookie++;
	return tx->cookie;
}

/* Its result, if none is known yet. */
static inline void ib_tx_result(struct ib_tx *tx, int status,
				enum ulnet_cause cause)
{
	if (tx->known)
		return;
	tx->known = true;
	tx->status = status;
	tx->cause = cause;
}

/* The cause, if its connection ends now. */
enum ulnet_cause ib_tx_cause(const struct ib_tx *tx, enum ib_blame blame);

#endif
