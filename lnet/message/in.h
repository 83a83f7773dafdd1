/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An incoming message that was admitted (parse.c). It exists from the LND's
 * call of lnet_parse() until it is over, or until it becomes an outgoing
 * message: its answer or, if it is for another node, the message itself. A
 * msg_in contains that msg_out from the beginning, and both use the same
 * header, LND's part, NI, timer and work.
 *
 * The CPT that received the message is called its home: out.home. All functions
 * are called on that CPT, unless they say otherwise.
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
	IN_NEW,	    /* not handled yet */
	IN_DELAYED, /* delayed by a fault rule (tamper.h) */
	/* waits until its sender's share has room (throttle.h) */
	IN_THROTTLED,
	IN_BUFFERLESS, /* waits for a buffer of the router (forward.h) */
	/* asks other CPTs whether they have a buffer for it (unexpected.h) */
	IN_OFFERED,
	/* waits until a buffer for it is attached (unexpected.h) */
	IN_UNEXPECTED,
	IN_RECV, /* the LND is storing its payload */
	IN_DONE, /* is over, or .out is being sent */
	IN_STATES
};
extern const struct fsm_state in_states[IN_STATES];

struct msg_in {
	struct msg_out out;
	struct fsm fsm;
	bool bounced; /* the payload is in a bounce buffer, which is counted */
	struct ulnet_nid from;	    /* NID of the last hop */
	struct ulnet_nid initiator; /* primary NID of out.hdr.src_nid */
	void *rx;		    /* the LND's handle of the message */
	/* The peer NI with @from, a reference; NULL: the message came through
	 * 0@lo. */
	struct lnet_peer_ni *sender;
	struct lnet_op *op; /* of a REPLY: the GET that it answers */
	struct lnet_md *md; /* of a PUT or GET: its MD, a reference */
	uint32_t mlength;
	uint32_t offset; /* where in the MD the payload begins */
	uint64_t took;	 /* of an ACK or REPLY: ns since its operation began */
	/* For forward.c: */
	bool forward; /* the message is for another node */
	/* the message is counted in router_pool.failing */
	bool counts_failing;
	struct router_buf *buf; /* NULL: it has no buffer */
	/* the peer NI with hdr.dest_nid, a reference; or NULL */
	struct lnet_peer_ni *dest;
	/* For unexpected.c. Only out.home reads these fields, except @asks: */
	struct hash_node by_bits; /* in unexpected_queue.waiting_by_bits */
	/* IN_OFFERED: the query that fetches the message; NULL: none */
	struct lnet_query *query;
	/* IN_OFFERED: a bit for each CPT that is still to be asked */
	uint32_t asks;
	/* IN_OFFERED: a bit for each CPT that has got a new buffer */
	uint32_t came;
};

static inline struct msg_in *in_of_work(struct work *w)
{
	return container_of(w, struct msg_in, out.work);
}

static inline void in_move(struct msg_in *msg, enum in_state to)
{
	fsm_move(&msg->fsm, in_states, to);
}

/* Makes a message. @late: the function of its timer. Returns NULL if
 * messages_max messages are in use. */
struct msg_in *in_new(struct lnet_cpt *cpt, timer_fn late);
/* Frees @msg. May be called on any CPT. */
void in_free(struct msg_in *msg);
/* Calls in_free(): for use as msg_out.done, on msg->out.home. */
void in_free_work(struct work *w);

/* Hands @msg to @cpt, which runs @fn as msg->out.work: at once, if @msg is on
 * @cpt already. */
static inline void in_pass(struct msg_in *msg, struct lnet_cpt *cpt, work_fn fn)
{
	out_pass(&msg->out, cpt, fn);
}

/* Handles @msg, which has been admitted (parse.c). */
void in_arrived(struct msg_in *msg);
/* The function of msg->out.timer: what @msg has waited for has not come in
 * time. */
void in_late(struct timer *t);

/* Counts @msg as accepted, with @length bytes stored. */
void in_count(const struct msg_in *msg, uint32_t length);

/* Makes the LND store the payload, by lnd.deadline. Then runs @done on @cpt,
 * with msg->out.status set. */
void in_recv(struct msg_in *msg, struct lnet_cpt *cpt, work_fn done);
/* To be called when the LND has stored the payload, or has failed
 * (lnet_finalize()). */
void in_received(struct msg_in *msg, int status, enum ulnet_cause cause);
/* If the LND is storing the payload, cancels that; in_received() follows. */
void in_cancel(struct msg_in *msg, int status);

/* Makes the LND copy the payload into a bounce buffer of its own, so that the
 * connection can be read on. Returns 0, or the error of eager_recv(). */
int in_bounce(struct msg_in *msg);
/* @msg is about to be handed to another CPT. Is its payload so long that it
 * should stay unread for a while, instead of being copied at once? If so, arms
 * the timer, which has the payload copied if the other CPT takes its time. The
 * function that gets @msg back must cancel the timer. */
bool in_stays_unread(struct msg_in *msg);

/* Makes msg->out a message to be sent, as @role. When it has ended, @done is
 * called. */
void in_turn(struct msg_in *msg, enum out_role role, work_fn done);

/* Would in_answer() take the REPLY to @msg, a GET? */
bool in_is_answerable(const struct msg_in *msg);
/* Gives msg->out, the REPLY to the GET @msg, to the LND, which answers the GET
 * with it by lnd.deadline. Returns 0, or the error of the LND's answer(): the
 * caller must then discard the GET. */
int in_answer(struct msg_in *msg);

/* Makes the LND discard the payload, and forget @msg. */
void in_discard(struct msg_in *msg);
/* As in_discard(), and drops the reference to the NI. */
void in_let_go(struct msg_in *msg);

/* Drops a received message for which no msg_in was made. @rx: the LND's handle
 * of the message. */
void rx_drop(struct lnet_cpt *cpt, struct lnet_ni *ni, void *rx, uint32_t type,
	     uint32_t length, enum lnet_stat why);

/* Drops @msg: counts @why, makes the LND discard the payload, and frees @msg.
 */
void in_drop(struct msg_in *msg, enum lnet_stat why);

/* ---- PUTs and GETs of peers (request.c) ---- */

/* Fills in what the header of a PUT says of its event. The caller adds .status,
 * .cause, .initiator.nid, .sender, .mlength and .offset; md_event_put() adds
 * the rest. */
static inline void request_event_init(struct ulnet_event *ev,
				      const struct lnet_hdr *hdr)
{
	ev->type = LNET_EVENT_PUT;
	ev->terminal = false;
	ev->outcome = LNET_OUTCOME_NONE;
	ev->msg_type = LNET_MSG_PUT;
	ev->target = (struct ulnet_id){ hdr->dest_nid, hdr->dest_pid };
	ev->initiator.pid = hdr->src_pid;
	ev->source = hdr->src_nid;
	ev->path_local = LNET_NID_ANY;
	ev->path_peer = LNET_NID_ANY;
	ev->path_hop = LNET_NID_ANY;
	ev->paths_tried = 0;
	ev->portal = hdr->portal;
	ev->match_bits = hdr->match_bits;
	ev->rlength = hdr->payload_length;
	ev->hdr_data = hdr->hdr_data;
	ev->elapsed = 0;
}

/* Fills @want with what @msg looks for among match entries. */
void request_match_want(const struct msg_in *msg, struct match_want *want);

/* Looks for an MD on the CPT that handles @msg now, and takes it for @msg.
 * Returns 0, or an error of match_find(). */
int request_match(struct msg_in *msg);

/* Returns the counter of the reason for which a message is dropped, if
 * request_match() has returned @rc for it. */
enum lnet_stat request_no_match(int rc);

/* If @msg is a PUT, receives its payload into the MD; if it is a GET, answers
 * it. */
void request_deliver(struct msg_in *msg);

/* Sends the REPLY to @msg, a GET that has its MD, by lnd.deadline. */
void request_send_reply(struct msg_in *msg);
/* Cancels the REPLY to @msg. At the end of this turn the MD gets the event,
 * with @status. */
void request_cancel_reply(struct msg_in *msg, int status,
			  enum ulnet_cause cause);

#endif
