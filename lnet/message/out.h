/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message that goes out: a request of this node's, an answer, or what a
 * router passes on. How it ends: end.h. What has come in becomes such a message
 * when it is answered, or passed on: in.h.
 *
 * A message is made on one CPT, its home, and handled on the one that owns the
 * peer; it passes between CPTs by posting itself. All functions are for
 * msg->cpt, unless they say otherwise.
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
struct msg_again;
struct path;
struct path_request;
struct failed_paths;

enum out_role {
	OUT_OP,	     /* a PUT or GET of ours; part of an operation */
	OUT_ANSWER,  /* an ACK or a REPLY; part of what it answers */
	OUT_FORWARD, /* one for another node; part of what has come in */
	OUT_TWIN,    /* one that was sent already, for a fault (tamper.h) */
};

enum out_state {
	OUT_NEW,	 /* nothing taken yet */
	OUT_DISCOVERING, /* waits until its peer is discovered */
	OUT_DELAYED,	 /* has a path, and is kept back (out_delay) */
	OUT_PEER_QUEUE,	 /* waits for a credit of the peer NI */
	OUT_NI_QUEUE,	 /* has that; waits for a credit of the NI */
	OUT_CONNECTING,	 /* has none; waits until the LND has a connection */
	OUT_LND,	 /* has both; the LND is sending it. Through 0@lo, or
			  * as an answer(), it has no peer NI and needs none */
	OUT_REFUSED,	 /* has both; the LND did not want it; about to fail */
	OUT_PAUSED,	 /* has none; waits for another try (end.h) */
	OUT_DONE,
	OUT_STATES
};
extern const struct fsm_state out_states[OUT_STATES];

/* Flags. */
#define MSG_ONCE       1u  /* is never sent again */
#define MSG_EXACT      2u  /* goes to the NID asked for, and to no other */
#define MSG_PREFERS    4u  /* may leave the NI and NID asked for if they fail */
#define MSG_QUESTIONED 8u  /* a try has failed, and the peer may have got it */
#define MSG_PROBE      16u /* a failure is no news, and costs no health */
#define MSG_AWAITED    32u /* has waited for discovery, and does not again */
#define MSG_ROUTED     64u /* this try goes by a gateway */

struct msg_out {
	struct lnd_msg lnd;    /* what the LND sees */
	struct lnet_cpt *home; /* frees it */
	struct lnet_cpt *cpt;  /* handles it */
	enum out_role role;
	struct fsm fsm;
	uint8_t flags;	      /* MSG_* */
	atomic_bool forsaken; /* nobody wants it any more: no other try */
	int status;
	enum ulnet_cause cause;
	struct lnet_hdr hdr;
	struct lnet_ni *ni;	   /* sent or received through; referenced */
	struct lnet_peer_ni *lpni; /* sent to; referenced */
	/* What was asked for, which no try changes. hdr.src_nid, hdr.dest_nid,
	 * lnd.next_hop and lnd.deadline are those of the last try. */
	struct ulnet_nid want_ni; /* local NI asked for; ANY */
	struct ulnet_nid target;  /* NID asked for */
	uint64_t deadline;	  /* ns, of all tries together */
	/* OUT_ANSWER, OUT_FORWARD: who sent what is answered, or forwarded;
	 * else NULL. */
	const struct ulnet_nid *hop;
	/* MSG_ROUTED: the gateway, and the NI of ours to it; ANY: any NI. */
	struct ulnet_nid gateway;
	struct ulnet_nid gateway_from;
	struct list link;	 /* in a queue of waiting messages */
	struct list active;	 /* msg_cpt.active_out or .active_in */
	struct work work;	 /* passage between CPTs, deferred end */
	struct timer timer;	 /* of what it waits for, on cpt's loop */
	uint32_t tries;		 /* transmissions begun */
	struct msg_copy *copy;	 /* sent from that (tamper.h); NULL: not */
	struct msg_again *again; /* of its failed tries (end.h); or NULL */
	struct lnet_op *op;	 /* OUT_OP */
	/* What .work runs when the message has ended, for those whose message
	 * it is; and on which CPT. */
	work_fn done;
	struct lnet_cpt *done_cpt;
};

/* The head of a copy of a message's payload, from which the message is sent. */
struct msg_copy {
	/* @msg leaves its path, sent or not. The copy ends. */
	void (*end)(struct msg_out *msg, bool sent);
};

struct msg_discovery {
	/* @msg, which has no path yet, is about to be sent. True: it waits,
	 * out_await() was called. On the CPT that owns its target. */
	bool (*waits)(struct msg_out *msg);
};

static inline void out_move(struct msg_out *msg, enum out_state to)
{
	fsm_move(&msg->fsm, out_states, to);
}

static inline struct msg_out *out_of(struct lnd_msg *lnd)
{
	return container_of(lnd, struct msg_out, lnd);
}

/* Begins and ends the life of @msg, whose memory is part of an operation, or of
 * a message that has come in. It begins on @cpt, in the list @active, without
 * payload, path or owner; the caller sets what else its role needs. @late is
 * the function of its timer. */
void out_init(struct msg_out *msg, struct lnet_cpt *cpt, struct list *active,
	      timer_fn late);
void out_fini(struct msg_out *msg);

/* The payload is [@offset, @offset + @length) of @md. */
void out_set_payload(struct msg_out *msg, const struct lnet_md *md,
		     uint32_t offset, uint32_t length);

/* The CPT, of @cpt's node, that sends what goes to @dst. */
struct lnet_cpt *out_sender(struct lnet_cpt *cpt, const struct ulnet_nid *dst);

/* To whom and by when @msg is to be sent. */
static inline void out_address(struct msg_out *msg,
			       const struct ulnet_nid *target,
			       uint64_t deadline)
{
	msg->target = *target;
	msg->hdr.dest_nid = *target;
	msg->deadline = deadline;
	msg->lnd.deadline = deadline;
}

/* Sends: hdr (but for src_nid), want_ni and payload are set, and out_address()
 * was called. Passes to the CPT of the target, takes path and credits, and ends
 * in msg->done(). */
void out_launch(struct msg_out *msg);

/* ---- waiting for discovery ---- */

/*
 * This room knows nothing of discovery but whether a message has to wait for
 * it. Messages that wait hold neither credits nor a path.
 *
 * A message waits for as long as one try may take, a part of the time that it
 * has, and then goes to the NID that it names. So a peer that does not answer
 * costs it no more than a path that fails.
 */

/* @msg, which is new, joins @waiting. */
void out_await(struct msg_out *msg, struct list *waiting);
/* All of @waiting are sent. */
void out_await_over(struct list *waiting);
/* @msg has waited long enough. */
void out_await_late(struct msg_out *msg);

/* Is @msg bound to the NI that its sender named and to the NID that it names,
 * whatever else its peer may have? */
bool out_keeps_path(const struct msg_out *msg);

/* ---- the path ---- */

/* What to look for, for the next try of @msg, when all paths in @failed have
 * failed. @request lives as long as @msg and @failed. */
void out_path_request(const struct msg_out *msg,
		      const struct failed_paths *failed,
		      struct path_request *request);
/* path_select() for the next try of @msg, with what that returns. */
int out_select(const struct msg_out *msg, struct path *path);

/* The next try of @msg goes by @path, which was taken for that. */
void out_use_path(struct msg_out *msg, const struct path *path);
/* @msg, which holds no credit, gives up its path. */
void out_forget_path(struct msg_out *msg);
/* @msg, which has a path, begins its try. */
void out_go(struct msg_out *msg);

/* Can @msg, which waits for a connection or a credit, or is kept back, go by
 * another path? Its NI, which is down or no longer in the configuration, does
 * not count. A twin cannot: its payload is a copy that was made for its path,
 * and the original may be gone. */
bool out_can_leave(const struct msg_out *msg);
/* @msg leaves its queue, gives back what it holds, and has no path; its state
 * is @to from now on. */
void out_withdraw(struct msg_out *msg, enum out_state to);
/* @msg is sent, by the deadline that it has. */
void out_send_anew(struct msg_out *msg);

/* Gives back what the message holds in its present state. */
void out_release(struct msg_out *msg);

/*
 * A fault rule keeps @msg, which has a path, for @ns; after that @msg takes its
 * credits. Keeping it costs no credit and no memory. @msg ends at its deadline,
 * or with its NI, like a message that waits for a connection.
 */
void out_delay(struct msg_out *msg, uint64_t ns);
/* The delay of @msg is over. */
void out_delay_late(struct msg_out *msg);

/* ---- from CPT to CPT ---- */

/* @cpt handles @msg from now on, and the CPT that had @msg does not look into
 * it any more. Others ask out_where() which CPT has it. If that is their own
 * CPT, they can read what was written to @msg before it went there. */
static inline void out_goes_to(struct msg_out *msg, struct lnet_cpt *cpt)
{
	__atomic_store_n(&msg->cpt, cpt, __ATOMIC_RELEASE);
}
static inline struct lnet_cpt *out_where(const struct msg_out *msg)
{
	return __atomic_load_n(&msg->cpt, __ATOMIC_ACQUIRE);
}

/* Runs @fn (of msg->work) on @cpt: at once when that is here. */
void out_pass(struct msg_out *msg, struct lnet_cpt *cpt, work_fn fn);
/* ... in a later turn. */
void out_post(struct msg_out *msg, struct lnet_cpt *cpt, work_fn fn);

#endif
