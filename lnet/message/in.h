/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message that has come in, and was admitted (parse.c): from the LND's
 * lnet_parse() on, until it is over, or becomes a message that goes out: its
 * answer, or the same message if it is for another node. A msg_in contains the
 * msg_out for that from the beginning, with what both need: the header, the
 * LND's part, the NI, timer and work.
 *
 * The CPT that received the message is its home. All functions are for that
 * CPT, unless they say otherwise.
 */
#ifndef LNET_IN_H
#define LNET_IN_H

#include "base/hash.h"
#include "lnet/core/stat.h"
#include "lnet/message/out.h"

struct lnet_query;
struct router_buf;

enum in_state {
	IN_NEW,	       /* nobody has been told of it */
	IN_DELAYED,    /* kept back (tamper.h) */
	IN_PARKED,     /* waits for its sender's share (park.h) */
	IN_BUFFERLESS, /* waits for a router's buffer (forward.h) */
	IN_OFFERED,    /* asks other CPTs for a buffer (hold.h) */
	IN_HELD,       /* waits for a buffer (hold.h) */
	IN_RECV,       /* the LND is storing its payload */
	IN_DONE,       /* over; or .out goes out */
	IN_STATES
};
extern const struct fsm_state in_states[IN_STATES];

struct msg_in {
	struct msg_out out;
	struct fsm fsm;
	bool aside;		    /* the LND has put the payload aside */
	struct ulnet_nid from;	    /* last hop */
	struct ulnet_nid initiator; /* primary NID of out.hdr.src_nid */
	void *rx;		    /* the LND's name for it */
	/* Who has @from; referenced. NULL: came through 0@lo. */
	struct lnet_peer_ni *sender;
	struct lnet_op *op; /* a REPLY: the GET that it answers */
	struct lnet_md *md; /* a PUT, GET: referenced */
	uint32_t mlength;
	uint32_t offset; /* in the MD */
	uint64_t took;	 /* an ACK or REPLY: ns since its operation began */
	/* forward.c's: */
	bool forward;		   /* for another node */
	bool scarce;		   /* it counts in router_pool.failing */
	struct router_buf *buf;	   /* that it has; or NULL */
	struct lnet_peer_ni *dest; /* hdr.dest_nid's; referenced; or NULL */
	/* hold.c's; only its home reads them, but for @asks: */
	struct hash_node by_bits; /* hold.waiting_by_bits */
	uint64_t arrival;	  /* its number, as counted on the CPT */
	struct lnet_query *query; /* IN_OFFERED: has fetched it; or NULL */
	uint32_t asks;		  /* IN_OFFERED: CPTs to be asked: bits */
	uint32_t came; /* ... where a buffer has come meanwhile: bits */
};

static inline struct msg_in *in_of(struct lnd_msg *lnd)
{
	return container_of(lnd, struct msg_in, out.lnd);
}

static inline struct msg_in *in_of_work(struct work *w)
{
	return container_of(w, struct msg_in, out.work);
}

static inline void in_move(struct msg_in *msg, enum in_state to)
{
	fsm_move(&msg->fsm, in_states, to);
}

/* @late is its timer's function. NULL: messages_max are in use. */
struct msg_in *in_new(struct lnet_cpt *cpt, timer_fn late);
/* On any CPT. */
void in_free(struct msg_in *msg);
/* The same, as the end of a message that nobody waits for; on its home. */
void in_free_work(struct work *w);

/* Runs @fn (of msg->out.work) on @cpt: at once when that is here. */
static inline void in_pass(struct msg_in *msg, struct lnet_cpt *cpt, work_fn fn)
{
	out_pass(&msg->out, cpt, fn);
}

/* Deals with @msg from the beginning (parse.c). */
void in_arrived(struct msg_in *msg);
/* The function of its timer: what @msg waits for has not come (parse.c). */
void in_late(struct timer *t);

/* What was received, @length bytes of it stored, counts as accepted. */
void in_count(const struct msg_in *msg, uint32_t length);

/* Has the LND store the payload, by lnd.deadline; then @done runs on @cpt, with
 * the status. */
void in_recv(struct msg_in *msg, struct lnet_cpt *cpt, work_fn done);
/* The LND has stored the payload, or could not (lnet_finalize()). */
void in_received(struct msg_in *msg, int status, enum ulnet_cause cause);
/* Stops the LND, if it is still storing the payload; in_received() follows. */
void in_cancel(struct msg_in *msg, int status);

/* Has the LND put the payload aside, in memory of its own, so that it can give
 * us what comes behind. 0, or the error of eager_recv(). */
int in_put_aside(struct msg_in *msg);
/* Another CPT is about to look at @msg. Is the payload so long that its
 * connection had better stand still meanwhile, rather than the payload be put
 * aside? If so, arms the timer, by which it is put aside after all; whoever
 * gets @msg back cancels the timer. */
bool in_stands(struct msg_in *msg);

/* msg->out is what is sent from now on, in this @role; it ends in @done. */
void in_turn(struct msg_in *msg, enum out_role role, work_fn done);

/* Is the REPLY to the GET @msg one for in_answer()? */
bool in_is_answerable(const struct msg_in *msg);
/* Gives msg->out, the REPLY to the GET @msg, to the LND as the answer to it, by
 * lnd.deadline. 0, or the error of answer(); then the GET is still to be
 * discarded. */
int in_answer(struct msg_in *msg);

/* Has the LND throw the payload away, after which it knows @msg no more. The
 * first keeps the reference to the NI, the second gives it back. */
void in_discard(struct msg_in *msg);
void in_let_go(struct msg_in *msg);

/*
 * What becomes of received messages that are not wanted: nobody is told but the
 * counters.
 */

/* Drops what the LND calls @rx, of which no msg_in was made. */
void rx_drop(struct lnet_cpt *cpt, struct lnet_ni *ni, void *rx, uint32_t type,
	     uint32_t length, enum lnet_stat why);

/* The LND throws the payload away; @msg is freed. */
void in_drop(struct msg_in *msg, enum lnet_stat why);

#endif
