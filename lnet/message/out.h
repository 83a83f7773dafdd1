/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An outgoing message: a request of this node, an answer, or a message that a
 * router passes on. in.h: incoming messages, which become such a message when
 * they are answered or passed on. end.h: how an outgoing message ends.
 *
 * A message is made on one CPT, its home, and handled by the CPT that owns the
 * peer; to change CPTs, it posts itself. All functions are for msg->cpt, unless
 * they say otherwise.
 */
#ifndef LNET_OUT_H
#define LNET_OUT_H

#include "base/fsm.h"
#include "base/loop.h"
#include "lnd/lnd.h"
#include "lnet/message/wire.h"

struct lnet_cpt;
struct lnet_md;
struct lnet_ni;
struct lnet_op;
struct lnet_peer_ni;
struct msg_retries;
struct path;
struct path_request;
struct failed_paths;

enum out_role {
	OUT_OP,	       /* a PUT or GET of this node; part of a lnet_op */
	OUT_ANSWER,    /* an ACK or REPLY; part of the msg_in it answers */
	OUT_FORWARD,   /* for another node; part of the msg_in that came */
	OUT_DUPLICATE, /* sent a second time, for a fault rule (tamper.h) */
};

enum out_state {
	OUT_NEW,	 /* has neither path nor credits */
	OUT_DISCOVERING, /* waits until its peer is discovered */
	OUT_DELAYED,	 /* has a path; waits, by a fault rule (out_delay()) */
	OUT_PEER_QUEUE,	 /* waits for a credit of the peer NI */
	OUT_NI_QUEUE,	 /* has that credit; waits for one of the local NI */
	OUT_CONNECTING,	 /* has no credits; waits for a connection */
	OUT_LND,	 /* has both credits; the LND is sending it. (Through
			  * 0@lo, or as an answer(), it needs no credits) */
	OUT_REFUSED,	 /* has both credits; the LND refused it; will fail */
	OUT_PAUSED,	 /* has no credits; waits for another attempt (end.h) */
	OUT_DONE,
	OUT_STATES
};
extern const struct fsm_state out_states[OUT_STATES];

/* msg_out.flags */
#define MSG_ONCE  1u /* is never sent again */
#define MSG_EXACT 2u /* goes to @target, no other NID */
#define MSG_PREFER_PATH \
	4u /* may leave @local_nid and @target if they
				  * fail */
#define MSG_MAYBE_ARRIVED \
	8u			 /* the peer may have received an attempt that
				  * failed */
#define MSG_PROBE	     16u /* if it fails, no NI loses health */
#define MSG_DISCOVERY_WAITED 32u /* does not wait for discovery any more */
#define MSG_ROUTED	     64u /* this attempt goes by a gateway */

struct msg_out {
	struct lnd_msg lnd;    /* what the LND sees */
	struct lnet_cpt *home; /* frees it */
	struct lnet_cpt *cpt;  /* handles it */
	enum out_role role;
	struct fsm fsm;
	uint8_t flags;	       /* MSG_* */
	atomic_bool abandoned; /* its operation has ended: not sent again */
	int status;
	enum ulnet_cause cause;
	struct lnet_hdr hdr;
	struct lnet_ni *ni;	   /* sent or received through; referenced */
	struct lnet_peer_ni *lpni; /* sent to; referenced */
	/* What the sender asked for. hdr.src_nid, hdr.dest_nid, lnd.next_hop
	 * and lnd.deadline are those of the last attempt. */
	struct ulnet_nid local_nid; /* the local NI; ANY */
	struct ulnet_nid target;
	uint64_t deadline; /* ns, of all attempts together */
	/* OUT_ANSWER, OUT_FORWARD: the last hop of the msg_in; else NULL. */
	const struct ulnet_nid *hop;
	/* MSG_ROUTED: the gateway, and the local NI to use; ANY: any. */
	struct ulnet_nid gateway;
	struct ulnet_nid gateway_from;
	struct list link;	     /* in a queue of waiting messages */
	struct list active;	     /* msg_cpt.active_out or .active_in */
	struct work work;	     /* passes between CPTs; ends later */
	struct timer timer;	     /* on @cpt's loop: out_late(), in_late() */
	uint32_t nsends;	     /* attempts begun */
	struct msg_copy *copy;	     /* the payload is sent from; or NULL */
	struct msg_retries *retries; /* NULL: no attempt has failed (end.h) */
	struct lnet_op *op;	     /* OUT_OP */
	/* Run as .work, on @done_cpt, when the message has ended. */
	work_fn done;
	struct lnet_cpt *done_cpt;
};

/* The head of a copy of a message's payload (tamper.c). */
struct msg_copy {
	/* @msg leaves its path, sent or not. The copy ends. */
	void (*end)(struct msg_out *msg, bool sent);
};

/* What discovery does for messages; msg_cpt.discovery. */
struct msg_discovery {
	/* Must @msg, which has no path yet, wait for the discovery of its
	 * peer? True: out_discovery_wait() was called. On the CPT that owns
	 * the target. */
	bool (*waits)(struct msg_out *msg);
};

static inline void out_move(struct msg_out *msg, enum out_state to)
{
	fsm_move(&msg->fsm, out_states, to);
}

static inline struct msg_out *out_of(const struct lnd_msg *lnd)
{
	return container_of(lnd, struct msg_out, lnd);
}

/* Initializes @msg, whose memory is part of an operation or of a msg_in, on
 * @cpt, in the list @active, without payload, path or operation. The caller
 * sets what else its role needs. @late: the function of msg->timer. */
void out_init(struct msg_out *msg, struct lnet_cpt *cpt, struct list *active,
	      timer_fn late);
/* Takes @msg, which has ended, off all lists; the caller frees it. */
void out_fini(struct msg_out *msg);

/* The payload is [@offset, @offset + @length) of @md. */
void out_set_payload(struct msg_out *msg, const struct lnet_md *md,
		     uint32_t offset, uint32_t length);

/* The CPT of @cpt's node that sends messages to @dst. */
struct lnet_cpt *out_sender(struct lnet_cpt *cpt, const struct ulnet_nid *dst);

/* Sets to which NID, and by when (ns), @msg is to be sent. */
static inline void out_address(struct msg_out *msg,
			       const struct ulnet_nid *target,
			       uint64_t deadline)
{
	msg->target = *target;
	msg->hdr.dest_nid = *target;
	msg->deadline = deadline;
	msg->lnd.deadline = deadline;
}

/* Sends @msg: passes it to the CPT of its target, where it takes a path and
 * credits. msg->done() follows. The caller has set hdr (but src_nid), local_nid
 * and the payload, and called out_address(). */
void out_launch(struct msg_out *msg);

/*
 * ---- waiting for discovery ----
 *
 * A message that waits has neither credits nor a path. It waits no longer than
 * one attempt may take, and then goes to @target itself. So a peer that does
 * not answer to discovery costs the message no more than a path that fails.
 */

/* @msg, which is new, joins @waiting. */
void out_discovery_wait(struct msg_out *msg, struct list *waiting);
/* Sends all messages of @waiting. */
void out_discovery_over(struct list *waiting);
/* @msg has waited long enough: sends it. */
void out_discovery_late(struct msg_out *msg);

/* Is @msg bound to the local NI and the NID that its sender named, whatever
 * other NIDs the peer has? */
bool out_keeps_path(const struct msg_out *msg);

/* ---- the path ---- */

/* Fills @request for the next attempt of @msg, if all paths of @failed have
 * failed. @request borrows @msg and @failed. */
void out_path_request(const struct msg_out *msg,
		      const struct failed_paths *failed,
		      struct path_request *request);
/* path_select() for the next attempt of @msg; returns its result. */
int out_select(const struct msg_out *msg, struct path *path);

/* The next attempt of @msg goes by @path, which was taken for it. */
void out_use_path(struct msg_out *msg, const struct path *path);
/* @msg, which has no credits, gives up its path. */
void out_forget_path(struct msg_out *msg);
/* Begins an attempt of @msg, which has a path. */
void out_go(struct msg_out *msg);

/* Is there another path for @msg, which waits for a connection or a credit, or
 * is delayed? (Its NI is down or not configured any more, and does not count.)
 * False for a duplicate: its payload is a copy that belongs to its path, and
 * the original may be gone. */
bool out_can_leave(const struct msg_out *msg);
/* Takes @msg off its queue, returns what it has, gives up its path, and moves
 * it to the state @to. */
void out_withdraw(struct msg_out *msg, enum out_state to);
/* Sends @msg, which was withdrawn, by its old deadline. */
void out_send_anew(struct msg_out *msg);

/* Returns what @msg has taken in its present state. */
void out_release(struct msg_out *msg);

/* Delays @msg, which has a path, by @ns, for a fault rule; then it takes its
 * credits. It ends at its deadline, or with its NI, like a message that waits
 * for a connection. */
void out_delay(struct msg_out *msg, uint64_t ns);
/* The delay of @msg is over. */
void out_delay_late(struct msg_out *msg);

/*
 * ---- credits (credit.c) ----
 *
 * Credits limit how many messages the LND sends at a time, for each peer NI and
 * for each local NI.
 *
 * A message takes a credit of its peer NI, then one of its local NI, and
 * returns them in the opposite order. If a credit is missing, the message waits
 * in a queue. Answers and urgent messages are served before all others;
 * otherwise, first come, first served. A negative count says how many messages
 * wait. Messages through 0@lo need no credits.
 *
 * A message for which the LND has no connection yet returns both credits, and
 * waits in lpni->connecting until the LND reports the result of the attempt to
 * connect. So unreachable peers use up no credits.
 *
 * Each CPT has its own part of the credits of a local NI. Returning a credit
 * calls the LND's send() for the message that gets the credit.
 */

/* @msg, which has a path, takes both credits and goes to the LND, or waits. */
void credit_take(struct msg_out *msg);

/* Returns the credits that @msg has in its state, or takes it off the queue
 * where it waits for one. The caller changes the state. */
void credit_return(struct msg_out *msg);

/* Gives @msg, which has a path, and its credits if it needs any, to the LND. */
void credit_transmit(struct msg_out *msg);

/* The timer of @msg has fired before the deadline of its attempt. If @msg still
 * waits for a connection, it takes another path that has one, if any. */
void credit_connect_late(struct msg_out *msg);

/* ---- from CPT to CPT ---- */

/* The CPT that handles @msg; for other CPTs. If it is the caller's own, the
 * caller sees what was written to @msg before it was handed over. */
static inline struct lnet_cpt *out_where(const struct msg_out *msg)
{
	return __atomic_load_n(&msg->cpt, __ATOMIC_ACQUIRE);
}

/* Hands @msg to @cpt and runs @fn there, as msg->work: at once if @msg is on
 * @cpt already. */
void out_pass(struct msg_out *msg, struct lnet_cpt *cpt, work_fn fn);
/* The same, but always in a later turn. */
void out_post(struct msg_out *msg, struct lnet_cpt *cpt, work_fn fn);

#endif
