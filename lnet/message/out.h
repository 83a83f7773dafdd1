/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An outgoing message: a request of this node, an answer, or a message that a
 * router passes on. An incoming message (in.h) becomes an outgoing one when it
 * is answered or passed on. end.h says how an outgoing message ends.
 *
 * The CPT that made a message is called its home: msg->home. The CPT that owns
 * the peer handles the message: msg->cpt. A message goes from one CPT to the
 * other as work that is posted. All functions are called on msg->cpt, unless
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
	OUT_OP,	    /* a PUT or GET of this node; part of an lnet_op */
	OUT_ANSWER, /* an ACK or REPLY; part of the msg_in that it answers */
	/* a message for another node; part of the msg_in that came */
	OUT_FORWARD,
	/* a message sent a second time by a fault rule (tamper.h) */
	OUT_DUPLICATE,
};

enum out_state {
	OUT_NEW,	 /* has neither path nor credits */
	OUT_DISCOVERING, /* waits until its peer is discovered */
	OUT_DELAYED,	 /* has a path; a fault rule delays it (out_delay()) */
	OUT_PEER_QUEUE,	 /* waits for a credit of the peer NI */
	/* has a credit of the peer NI; waits for one of the local NI */
	OUT_NI_QUEUE,
	/* has a path, but no credits; waits for a connection */
	OUT_CONNECTING,
	/* has both credits, and the LND is sending it; messages through 0@lo,
	 * or given to the LND's answer(), need no credits */
	OUT_LND,
	/* has both credits; the LND has refused it, and it will fail */
	OUT_REFUSED,
	/* has no credits; waits until its next attempt begins (end.h) */
	OUT_PAUSED,
	OUT_DONE,
	OUT_STATES
};
extern const struct fsm_state out_states[OUT_STATES];

/* msg_out.flags: */
/* the message is never sent again */
#define MSG_ONCE 1u
/* it goes only to the NID @target */
#define MSG_EXACT 2u
/* if a send from @local_nid to @target fails, it may take another path */
#define MSG_PREFER_PATH 4u
/* an attempt has failed, but the peer may have received the message */
#define MSG_MAYBE_ARRIVED 8u
/* if it fails, no NI loses health */
#define MSG_PROBE 16u
/* it does not wait for discovery any more */
#define MSG_DISCOVERY_WAITED 32u
/* the present attempt goes through a gateway */
#define MSG_ROUTED 64u

struct msg_out {
	struct lnd_msg lnd; /* the part that the LND sees */
	/* the CPT that made the message, and that frees it */
	struct lnet_cpt *home;
	struct lnet_cpt *cpt; /* the CPT that handles the message */
	enum out_role role;
	struct fsm fsm;
	uint8_t flags; /* MSG_* */
	/* its operation was abandoned: the message is not sent again */
	atomic_bool abandoned;
	int status;
	enum ulnet_cause cause;
	struct lnet_hdr hdr;
	/* the NI that the message is sent or received through; a reference */
	struct lnet_ni *ni;
	/* the peer NI that the message is sent to; a reference */
	struct lnet_peer_ni *lpni;
	/* What the sender asked for. (hdr.src_nid, hdr.dest_nid, lnd.next_hop
	 * and lnd.deadline belong to the last attempt.) */
	struct ulnet_nid local_nid; /* the local NI; LNET_NID_ANY: any */
	struct ulnet_nid target;
	uint64_t deadline; /* ns: of all attempts together */
	/* With OUT_ANSWER and OUT_FORWARD: the last hop of the msg_in;
	 * otherwise NULL. */
	const struct ulnet_nid *hop;
	/* With MSG_ROUTED: the gateway, and the local NI to use (LNET_NID_ANY:
	 * any). */
	struct ulnet_nid gateway;
	struct ulnet_nid gateway_from;
	/* in the queue in which the message waits */
	struct list link;
	struct list active; /* in msg_cpt.active_out or .active_in */
	/* passes the message to another CPT; later ends the message */
	struct work work;
	/* on the loop of @cpt; its function is out_late() or in_late() */
	struct timer timer;
	uint32_t nsends; /* number of attempts that have begun */
	/* a copy of the payload, which is sent instead; NULL: none */
	struct msg_copy *copy;
	struct msg_retries *retries; /* NULL: no attempt has failed (end.h) */
	/* with OUT_OP: the operation whose request this is */
	struct lnet_op *op;
	/* Run as .work, on @done_cpt, when the message has ended. */
	work_fn done;
	struct lnet_cpt *done_cpt;
};

/* The beginning of a copy of a message's payload (tamper.c). */
struct msg_copy {
	/* @msg leaves its path, and was sent if @sent. This function ends the
	 * copy. */
	void (*end)(struct msg_out *msg, bool sent);
};

/* The functions of discovery that messages call; msg_cpt.discovery. */
struct msg_discovery {
	/* Must @msg, which has no path yet, wait for the discovery of its peer?
	 * If so, this function has called out_discovery_wait(). Called on the
	 * CPT that owns the target. */
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

/* Initializes @msg, whose memory is part of an operation or of a msg_in. @msg
 * is on @cpt and in the list @active, and has no payload, path or operation.
 * The caller sets what else the role of @msg needs. @late: the function of
 * msg->timer. */
void out_init(struct msg_out *msg, struct lnet_cpt *cpt, struct list *active,
	      timer_fn late);
/* Takes @msg, which has ended, off all lists. The caller then frees it. */
void out_fini(struct msg_out *msg);

/* Makes the payload [@offset, @offset + @length) of @md. */
void out_set_payload(struct msg_out *msg, const struct lnet_md *md,
		     uint32_t offset, uint32_t length);

/* Returns the CPT of @cpt's node that sends messages to @dst. */
struct lnet_cpt *out_sender(struct lnet_cpt *cpt, const struct ulnet_nid *dst);

/* Sets the target of @msg, and the time (ns) by which it must be sent. */
static inline void out_address(struct msg_out *msg,
			       const struct ulnet_nid *target,
			       uint64_t deadline)
{
	msg->target = *target;
	msg->hdr.dest_nid = *target;
	msg->deadline = deadline;
	msg->lnd.deadline = deadline;
}

/* Sends @msg: passes it to the CPT that owns its target, where it takes a path
 * and credits. When it has ended, msg->done() is called. The caller must have
 * set hdr (except src_nid), local_nid and the payload, and have called
 * out_address(). */
void out_launch(struct msg_out *msg);

/*
 * ---- waiting for discovery ----
 *
 * A message that waits has neither credits nor a path. It waits no longer than
 * one attempt may take, and then goes to @target itself. So a peer that does
 * not answer to discovery costs the message no more than a path that fails.
 */

/* Puts @msg, which is new, into @waiting. */
void out_discovery_wait(struct msg_out *msg, struct list *waiting);
/* Sends all messages in @waiting. */
void out_discovery_over(struct list *waiting);
/* @msg has waited for discovery long enough: sends it. */
void out_discovery_late(struct msg_out *msg);

/* Must @msg use the local NI and the NID that its sender named, whatever other
 * NIDs the peer has? */
bool out_keeps_path(const struct msg_out *msg);

/* ---- the path ---- */

/* Fills @request for the next attempt of @msg, after the attempts in @failed
 * have failed. @request borrows @msg and @failed. */
void out_path_request(const struct msg_out *msg,
		      const struct failed_paths *failed,
		      struct path_request *request);
/* Calls path_select() for the next attempt of @msg, and returns its result. */
int out_select(const struct msg_out *msg, struct path *path);

/* Makes the next attempt of @msg use @path, which was taken for it. */
void out_use_path(struct msg_out *msg, const struct path *path);
/* Makes @msg, which has no credits, give up its path. */
void out_forget_path(struct msg_out *msg);
/* Begins an attempt of @msg, which has a path. */
void out_go(struct msg_out *msg);

/* @msg waits for a connection or a credit, or is delayed, and its NI is down or
 * no longer configured: is there another path for it? False for a duplicate:
 * its payload is a copy that belongs to its path, and the original may be gone.
 */
bool out_can_leave(const struct msg_out *msg);
/* Takes @msg off its queue, returns what it holds, gives up its path, and moves
 * it to the state @to. */
void out_withdraw(struct msg_out *msg, enum out_state to);
/* Sends @msg, which was withdrawn, with its old deadline. */
void out_send_anew(struct msg_out *msg);

/* Returns what @msg holds in its present state. */
void out_release(struct msg_out *msg);

/* Delays @msg, which has a path, by @ns, for a fault rule; then it takes its
 * credits. Meanwhile it ends at its deadline, or when its NI ends, like a
 * message that waits for a connection. */
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

/* Makes @msg, which has a path, take both credits and go to the LND, or wait
 * for them. */
void credit_take(struct msg_out *msg);
/* Payloads up to this length are offered to the LND's push(). */
#define OUT_PUSH_MAX 1024
/* The straight way of @msg, which has a path: if it is small, and no message
 * waits for the peer's or the NI's credits, offers it to the LND's push().
 * Returns whether @msg has been sent, without credits. Uses only msg->hdr,
 * .lnd, .cpt, .ni, .lpni and .nsends. */
bool credit_offer(struct msg_out *msg);
/* As credit_offer(). If @msg has been sent, msg->done() will be called at the
 * end of this turn. */
bool credit_push(struct msg_out *msg);

/* Returns the credits that @msg holds in its state, or takes it off the queue
 * in which it waits for one. The caller must change the state. */
void credit_return(struct msg_out *msg);

/* Gives @msg to the LND. It must have a path, and its credits if it needs any.
 */
void credit_transmit(struct msg_out *msg);

/* The timer of @msg has fired before the deadline of its attempt. If @msg still
 * waits for a connection, and another path has one, @msg takes that path. */
void credit_connect_late(struct msg_out *msg);

/* ---- from CPT to CPT ---- */

/* Returns the CPT that handles @msg. May be called on other CPTs. If the result
 * is the caller's own CPT, the caller sees what was written to @msg before it
 * was handed over. */
static inline struct lnet_cpt *out_where(const struct msg_out *msg)
{
	return __atomic_load_n(&msg->cpt, __ATOMIC_ACQUIRE);
}

/* Hands @msg to @cpt, which runs @fn as msg->work in a later turn. */
void out_post(struct msg_out *msg, struct lnet_cpt *cpt, work_fn fn);
/* As out_post(), but if @msg is on @cpt already, @fn runs at once. */
static inline void out_pass(struct msg_out *msg, struct lnet_cpt *cpt,
			    work_fn fn)
{
	if (likely(msg->cpt == cpt))
		fn(&msg->work);
	else
		out_post(msg, cpt, fn);
}

#endif
