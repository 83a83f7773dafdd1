/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message on its way through this node: sent, or being received.
 *
 * It is made on one CPT (its home, whose pool it comes from) and handled on the
 * one that owns the peer; it passes between CPTs by posting itself.
 * How it ends: end.h.
 */
#ifndef LNET_MSG_H
#define LNET_MSG_H

#include "base/fsm.h"
#include "base/hash.h"
#include "base/mailbox.h"
#include "lnd/lnd.h"
#include "lnet/message/wire.h"

struct lnet_cpt;
struct lnet_md;
struct lnet_ni;
struct lnet_op;
struct lnet_peer_ni;
struct router_buf;
struct lnet_wish;
struct msg_again;
struct msg_copy;
struct path;
struct path_want;
struct paths_tried;

/* The role of a message on this node, which decides what the end of the message
 * means. */
enum msg_role {
	MSG_OP,		 /* a PUT or GET of ours; part of an operation */
	MSG_ACK_OUT,	 /* an ACK that we send */
	MSG_REPLY_OUT,	 /* a REPLY that we send: ends in a GET event */
	MSG_PUT_IN,	 /* a PUT for one of our MDs */
	MSG_GET_IN,	 /* a GET for one of our MDs; becomes a REPLY_OUT */
	MSG_REPLY_IN,	 /* a REPLY to an operation of ours */
	MSG_ACK_IN,	 /* an ACK to an operation of ours */
	MSG_AGAIN_OUT,	 /* one that we send again, and nobody waits for */
	MSG_FORWARD_IN,	 /* one for another node, which we pass on ... */
	MSG_FORWARD_OUT, /* ... and send, once it is here (forward.h) */
};

enum msg_state {
	MSG_NEW,	 /* nothing taken yet */
	MSG_PEER_QUEUE,	 /* waits for a credit of the peer NI */
	MSG_NI_QUEUE,	 /* has that; waits for a credit of the NI */
	MSG_LND,	 /* has both; the LND is sending it */
	MSG_REFUSED,	 /* has both; the LND did not want it; about to fail */
	MSG_CONNECTING,	 /* has none; waits until the LND has a connection */
	MSG_PAUSED,	 /* has none; waits for another try */
	MSG_DISCOVERING, /* waits until its peer is discovered (await.h) */
	MSG_DELAYED,	 /* kept back: received, or has a path (delay.h) */
	MSG_PARKED,	 /* received; waits for its sender's share (park.h) */
	MSG_BUFFERLESS,	 /* received; waits for a router's buffer (forward.h) */
	MSG_OFFERED,	 /* received; asks other CPTs for a buffer (hold.h) */
	MSG_HELD,	 /* received; waits for a buffer (hold.h) */
	MSG_RECV,	 /* the LND is storing its payload */
	MSG_ANSWERING,	 /* has no credit: the answer to its GET (answer()) */
	MSG_DONE,
	MSG_STATES
};
extern const struct fsm_state msg_states[MSG_STATES];

/* Flags. */
#define MSG_ONCE    1u	 /* is never sent again */
#define MSG_EXACT   2u	 /* goes to the NID asked for, and to no other */
#define MSG_PREFERS 4u	 /* NI and NID asked for are left when they fail */
#define MSG_DOUBTED 8u	 /* a try has failed, and the peer may have got it */
#define MSG_PROBE   16u	 /* that it fails is no news: it costs no health */
#define MSG_AWAITED 32u	 /* has waited for discovery, and does not again */
#define MSG_ROUTED  64u	 /* this try goes by a gateway */
#define MSG_SCARCE  128u /* forward.c's: it counts in router_pool.failing */

struct lnet_msg {
	struct lnd_msg lnd;    /* what the LND sees */
	struct lnet_cpt *home; /* frees it */
	struct lnet_cpt *cpt;  /* handles it */
	enum msg_role role;
	struct fsm fsm;
	int status;
	enum ulnet_cause cause;
	struct lnet_hdr hdr;
	struct lnet_ni *ni;	   /* sent or received through; referenced */
	struct lnet_peer_ni *lpni; /* sent to; referenced */
	/* What was asked for, which no try changes. hdr.src_nid, hdr.dest_nid,
	 * lnd.next_hop and lnd.deadline are those of the last try. */
	struct ulnet_nid want_ni; /* send: local NI asked for; ANY */
	struct ulnet_nid target;  /* send: NID asked for */
	uint64_t deadline;	  /* send: ns, of all tries together */
	/* MSG_ROUTED: by which, and from which NI of ours; ANY: from any. */
	struct ulnet_nid gateway;
	struct ulnet_nid gateway_from;
	struct list link;	 /* in a queue of waiting messages, or in
				    * hold.waiting */
	struct list active;	 /* msg_cpt.active */
	struct work work;	 /* passage between CPTs, deferred end */
	struct timer timer;	 /* of what it waits for, on cpt's loop */
	uint32_t tries;		 /* transmissions begun */
	struct msg_copy *copy;	 /* sent from that (copy.h); NULL: not */
	struct msg_again *again; /* of its failed tries (end.h); or NULL */
	uint8_t flags;		 /* MSG_* */
	/* Of work: what its end means to those whose message it is; on the CPT
	 * of its MD or operation, else its home's. */
	work_fn done;
	atomic_bool forsaken; /* nobody wants it any more: no other try */
	struct lnet_op *op;   /* MSG_OP, *_IN answers */
	struct lnet_md *md;   /* PUT_IN, GET_IN, REPLY_OUT: referenced */
	uint32_t mlength;
	uint32_t offset; /* in the MD */
	/* received: */
	struct ulnet_nid from;	     /* last hop */
	struct ulnet_nid initiator;  /* primary NID of hdr.src_nid */
	void *rx;		     /* the LND's name for it */
	struct lnet_peer_ni *sender; /* who has @from; referenced; home's. NULL:
				      * came through 0@lo */
	uint64_t took; /* an ACK or REPLY: ns since its operation began */
	/* forward.c's, of MSG_FORWARD_*; home's: */
	struct router_buf *buf;	   /* that it has; or NULL */
	struct lnet_peer_ni *dest; /* hdr.dest_nid's; referenced; or NULL */
	/* hold.c's; home's but for @asks: */
	struct hash_node by_bits; /* hold.waiting_by_bits */
	uint64_t arrival;	  /* the cpt's number of it */
	struct lnet_wish *wish;	  /* MSG_OFFERED: fetched it; or NULL */
	uint32_t asks;		  /* MSG_OFFERED: CPTs to be asked: bits */
	uint32_t came; /* ... where a buffer has come meanwhile: bits */
	bool aside;    /* the LND has put the payload aside */
};

/* What is above messages: where one was, or is to go on (msgs.c). */
struct msg_stages {
	/* A message of others has its path: forward.c. */
	void (*goes)(struct lnet_msg *msg);
	/* By state: what it waits for has not come in time, or is due. NULL:
	 * the message itself knows. */
	void (*late[MSG_STATES])(struct lnet_msg *msg);
	/* MSG_HELD: it is given up. */
	void (*cancel_held)(struct lnet_msg *msg);
};

static inline void msg_move(struct lnet_msg *msg, enum msg_state to)
{
	fsm_move(&msg->fsm, msg_states, to);
}

static inline struct lnet_msg *msg_of(struct lnd_msg *lnd)
{
	return container_of(lnd, struct lnet_msg, lnd);
}

/* Takes a message into life on @cpt, or out of it: without payload, path or
 * owner; what else its role needs is for the caller to set. A message of role
 * MSG_OP is part of its operation's memory; others come from the CPT's pool. */
void msg_init(struct lnet_msg *msg, struct lnet_cpt *cpt, enum msg_role role);
void msg_fini(struct lnet_msg *msg);
/* NULL: messages_max are in use. */
struct lnet_msg *msg_new(struct lnet_cpt *cpt, enum msg_role role);
/* On any CPT. */
void msg_free(struct lnet_msg *msg);
/* The same, as the end of a message that nobody waits for; on its home. */
void msg_free_work(struct work *w);

/* The payload is [@offset, @offset + @length) of @md. */
void msg_set_payload(struct lnet_msg *msg, const struct lnet_md *md,
		     uint32_t offset, uint32_t length);

/* The CPT, of @cpt's node, that sends what goes to @dst. */
struct lnet_cpt *msg_sender(struct lnet_cpt *cpt, const struct ulnet_nid *dst);

/* To whom and by when @msg is to be sent. */
static inline void msg_address(struct lnet_msg *msg,
			       const struct ulnet_nid *target,
			       uint64_t deadline)
{
	msg->target = *target;
	msg->hdr.dest_nid = *target;
	msg->deadline = deadline;
	msg->lnd.deadline = deadline;
}

/* Sends: hdr (but for src_nid), want_ni and payload are set, and msg_address()
 * was called. Passes to the CPT of the target, takes path and credits, and ends
 * in msg->done(). */
void msg_launch(struct lnet_msg *msg);

/* What to look for, for the next try of @msg, when all of @tried have failed.
 * @want lives as long as @msg and @tried. */
void msg_path_want(const struct lnet_msg *msg, const struct paths_tried *tried,
		   struct path_want *want);

/* @path, which was taken for that, is the one of the next try of @msg. */
void msg_use_path(struct lnet_msg *msg, const struct path *path);
/* @msg has no path any more; it has no credit. */
void msg_forget_path(struct lnet_msg *msg);
/* What has a path begins its try. */
void msg_go(struct lnet_msg *msg);

/* What has a path and credits (credit.h) goes to the LND. */
void msg_transmit(struct lnet_msg *msg);

/* What has come in, and was admitted, is dealt with (parse.c). On its home. */
void msg_arrived(struct lnet_msg *msg);

/* Does it go from the NI that its sender named to the NID that it names, and
 * nowhere else, whatever else its peer may have? */
bool msg_keeps_path(const struct lnet_msg *msg);

/* Gives back what the message holds in its present state. */
void msg_release(struct lnet_msg *msg);

/* A message that waits for a connection or a credit gets another path, on
 * msg->cpt, in three steps. Is there one? It is looked for without the NI that
 * the message waits for, which is down or no longer in the configuration. */
bool msg_has_path(const struct lnet_msg *msg);
/* It leaves the queue, gives back what it holds, and has no path; its state is
 * @to from now on. */
void msg_withdraw(struct lnet_msg *msg, enum msg_state to);
/* It is sent, by the deadline that it has. */
void msg_send_anew(struct lnet_msg *msg);

/* The LND shall store the payload, by lnd.deadline; then comes @done. */
void msg_recv(struct lnet_msg *msg, work_fn done);
/* The LND shall put the payload aside, in memory of its own, so that it can
 * give us what comes behind. 0, or what eager_recv() says. On the home. */
int msg_put_aside(struct lnet_msg *msg);
/* Another CPT is about to look at what has come in. Is the payload so long that
 * its connection had better stand meanwhile? For a moment: then msg->timer
 * fires, and the payload is put aside; whoever gets @msg back cancels the
 * timer. On the home. */
bool msg_stands(struct lnet_msg *msg);
/* Is the REPLY to the GET @msg, which has come in, one for msg_answer()? */
bool msg_is_answerable(const struct lnet_msg *msg);
/* A REPLY, whose GET has come in as msg->rx, is given to the LND as the answer
 * to that, by lnd.deadline. 0, or what answer() says; then the GET is to be
 * discarded still. */
int msg_answer(struct lnet_msg *msg);
/* The LND shall throw it away; nothing of it remains to be done there. */
void msg_discard(struct lnet_msg *msg);

/* @cpt handles @msg from now on, and whoever had it before does not look into
 * it any more. Others, who do not know where it is, ask msg_where(): what it
 * was before can be read if that is the own CPT. */
static inline void msg_goes_to(struct lnet_msg *msg, struct lnet_cpt *cpt)
{
	__atomic_store_n(&msg->cpt, cpt, __ATOMIC_RELEASE);
}
static inline struct lnet_cpt *msg_where(const struct lnet_msg *msg)
{
	return __atomic_load_n(&msg->cpt, __ATOMIC_ACQUIRE);
}

/* Runs @fn (of msg->work) on @cpt: at once when that is here. */
void msg_pass(struct lnet_msg *msg, struct lnet_cpt *cpt, work_fn fn);
/* ... in a later turn. */
void msg_post(struct lnet_msg *msg, struct lnet_cpt *cpt, work_fn fn);

#endif
