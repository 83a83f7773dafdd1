/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An incoming message that was admitted (parse.c): from the LND's lnet_parse()
 * until it is over, or becomes an outgoing message: its answer, or the same
 * message if it is for another node. A msg_in contains that msg_out from the
 * beginning, and they share the header, the LND's part, NI, timer and work.
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
struct match_want;
struct router_buf;

enum in_state {
	IN_NEW,	       /* not handled yet */
	IN_DELAYED,    /* by a fault rule (tamper.h) */
	IN_THROTTLED,  /* waits for its sender's share (throttle.h) */
	IN_BUFFERLESS, /* waits for a router's buffer (forward.h) */
	IN_OFFERED,    /* asks other CPTs for a buffer (unexpected.h) */
	IN_UNEXPECTED, /* waits for a buffer (unexpected.h) */
	IN_RECV,       /* the LND is storing its payload */
	IN_DONE,       /* over; or .out goes out */
	IN_STATES
};
extern const struct fsm_state in_states[IN_STATES];

struct msg_in {
	struct msg_out out;
	struct fsm fsm;
	bool bounced; /* the payload is in a bounce buffer, which counts */
	struct ulnet_nid from;	    /* last hop */
	struct ulnet_nid initiator; /* primary NID of out.hdr.src_nid */
	void *rx;		    /* the LND's name for it */
	/* The peer NI of @from; referenced. NULL: came through 0@lo. */
	struct lnet_peer_ni *sender;
	struct lnet_op *op; /* a REPLY: the GET that it answers */
	struct lnet_md *md; /* a PUT, GET: referenced */
	uint32_t mlength;
	uint32_t offset; /* in the MD */
	uint64_t took;	 /* an ACK or REPLY: ns since its operation began */
	/* forward.c's: */
	bool forward;		   /* for another node */
	bool counts_failing;	   /* counts in router_pool.failing */
	struct router_buf *buf;	   /* NULL: none */
	struct lnet_peer_ni *dest; /* of hdr.dest_nid; referenced; or NULL */
	/* unexpected.c's; only the home reads them, except @asks: */
	struct hash_node by_bits; /* unexpected_queue.waiting_by_bits */
	uint64_t arrival;	  /* its number, as counted on the CPT */
	struct lnet_query *query; /* IN_OFFERED: fetches it; or NULL */
	uint32_t asks;		  /* IN_OFFERED: CPTs to be asked: bits */
	uint32_t came; /* IN_OFFERED: CPTs that have new buffers: bits */
};

static inline struct msg_in *in_of_work(struct work *w)
{
	return container_of(w, struct msg_in, out.work);
}

static inline void in_move(struct msg_in *msg, enum in_state to)
{
	fsm_move(&msg->fsm, in_states, to);
}

/* @late: the function of the timer. NULL: messages_max are in use. */
struct msg_in *in_new(struct lnet_cpt *cpt, timer_fn late);
/* On any CPT. */
void in_free(struct msg_in *msg);
/* in_free() as msg_out.done, on the home. */
void in_free_work(struct work *w);

/* Hands @msg to @cpt and runs @fn there, as msg->out.work: at once if @msg is
 * on @cpt already. */
static inline void in_pass(struct msg_in *msg, struct lnet_cpt *cpt, work_fn fn)
{
	out_pass(&msg->out, cpt, fn);
}

/* Handles @msg, which was admitted (parse.c). */
void in_arrived(struct msg_in *msg);
/* The function of msg->out.timer: what @msg waits for has not come. */
void in_late(struct timer *t);

/* Counts @msg as accepted, with @length bytes stored. */
void in_count(const struct msg_in *msg, uint32_t length);

/* Has the LND store the payload, by lnd.deadline; then runs @done on @cpt, with
 * msg->out.status set. */
void in_recv(struct msg_in *msg, struct lnet_cpt *cpt, work_fn done);
/* The LND has stored the payload, or failed (lnet_finalize()). */
void in_received(struct msg_in *msg, int status, enum ulnet_cause cause);
/* Cancels the LND's storing of the payload, if it is under way; in_received()
 * follows. */
void in_cancel(struct msg_in *msg, int status);

/* Has the LND copy the payload into a bounce buffer of its own, so that it can
 * read on. 0, or the error of eager_recv(). */
int in_bounce(struct msg_in *msg);
/* @msg is about to be handed to another CPT. Is its payload so long that it had
 * better stay unread meanwhile than be copied? If so, arms the timer, which has
 * the payload copied if the other CPT takes its time; whoever gets @msg back
 * cancels the timer. */
bool in_stays_unread(struct msg_in *msg);

/* Makes msg->out what is sent from now on, as @role; @done follows. */
void in_turn(struct msg_in *msg, enum out_role role, work_fn done);

/* Would in_answer() take the REPLY to @msg, a GET? */
bool in_is_answerable(const struct msg_in *msg);
/* Gives msg->out, the REPLY to the GET @msg, to the LND as the GET's answer, by
 * lnd.deadline. Returns 0, or the error of answer(): the caller then discards
 * the GET. */
int in_answer(struct msg_in *msg);

/* Has the LND discard the payload; it forgets @msg. */
void in_discard(struct msg_in *msg);
/* The same, and drops the reference to the NI. */
void in_let_go(struct msg_in *msg);

/* Drops what the LND calls @rx, for which no msg_in was made. */
void rx_drop(struct lnet_cpt *cpt, struct lnet_ni *ni, void *rx, uint32_t type,
	     uint32_t length, enum lnet_stat why);

/* Drops @msg: counts @why, has the LND discard the payload, frees @msg. */
void in_drop(struct msg_in *msg, enum lnet_stat why);

/* ---- PUTs and GETs of peers (request.c) ---- */

/* Fills @want with what @msg looks for among match entries. */
void request_match_want(const struct msg_in *msg, struct match_want *want);

/* Looks for an MD on the CPT that handles @msg now, and takes it for @msg.
 * Returns 0, or an errno of match_find(). */
int request_match(struct msg_in *msg);

/* The reason to drop a message for which request_match() returned @rc. */
enum lnet_stat request_no_match(int rc);

/* Receives the payload of @msg, a PUT, into its MD; or answers @msg, a GET. */
void request_deliver(struct msg_in *msg);

/* Sends the REPLY to @msg, a GET that has its MD, by lnd.deadline. */
void request_send_reply(struct msg_in *msg);
/* Cancels the REPLY to @msg: the MD's event, with @status, follows at the end
 * of this turn. */
void request_cancel_reply(struct msg_in *msg, int status,
			  enum ulnet_cause cause);

#endif
