/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation: one LNetPut() or LNetGet(), from the call to its terminal
 * event. Belongs to the home CPT of its MD. Its id goes on the wire as a handle
 * that the answer returns, and by which the answer finds its operation.
 */
#ifndef LNET_OP_H
#define LNET_OP_H

#include "lnet/core/stat.h"
#include "lnet/message/in.h"

enum op_state {
	OP_SENDING,	      /* the request is on its way out */
	OP_SENDING_RECEIVING, /* ... and the answer is already coming in */
	OP_SENDING_ANSWERED,  /* ... and the answer has come */
	OP_WAITING,	      /* the request was sent; no answer yet */
	OP_RECEIVING,	      /* the request was sent; the answer comes in */
	OP_DONE,
	OP_STATES
};
extern const struct fsm_state op_states[OP_STATES];

struct lnet_op {
	struct msg_out msg; /* the request; first: shares its memory */
	struct lnet_cpt *cpt;
	uint64_t id;
	struct fsm fsm;
	bool expects_answer;
	bool tracked;	      /* the deadline is the answer's, too */
	struct lnet_md *md;   /* referenced */
	struct list link;     /* md->ops */
	uint64_t began;	      /* ns */
	struct timer timer;   /* while OP_WAITING */
	struct msg_in *reply; /* OP_SENDING_RECEIVING, OP_RECEIVING */
	uint32_t events;      /* reserved places in the event queue */
	uint32_t refs;	      /* 1 until it ends, 1 for a cancellation */
	struct work cancel;   /* goes to the CPT of the request or the reply,
			       * and back */
	bool canceling;
	int cancel_status;
	enum ulnet_cause cancel_cause;
};

/* The arguments of LNetPut() and LNetGet(). */
struct op_args {
	enum ulnet_msg_type type;
	struct ulnet_nid self;
	uint64_t md; /* cookie */
	bool ack;
	struct ulnet_id target;
	unsigned int portal;
	uint8_t flags; /* MSG_ONCE, MSG_EXACT, MSG_PROBE */
	uint64_t match_bits;
	uint32_t offset;
	uint64_t hdr_data;
	struct lnet_cpt *cpt; /* op.c's */
};

/* LNetPut(3), LNetGet(3); on the home of the MD. */
int op_begin(struct lnet_cpt *cpt, const struct op_args *args);

/* Gives @msg, an ACK or a REPLY, to its operation. Returns STAT_COUNT, or why
 * @msg is to be dropped. A REPLY is then received, and op_replied() follows. */
enum lnet_stat op_answer(struct lnet_cpt *cpt, struct msg_in *msg);
void op_replied(struct lnet_op *op, const struct msg_in *msg);

/* portal_users.abandon: the user has unlinked the MD. */
void op_abandon_link(struct list *link);

/* Abandons all operations of @cpt, which closes. */
void ops_abandon(struct lnet_cpt *cpt);

#endif
