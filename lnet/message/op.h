/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation: one LNetPut() or LNetGet(), from the call to its terminal
 * event. Belongs to the home CPT of its MD. Its id is what goes on the wire as
 * the handle that the answer brings back, so an answer finds its very
 * operation, or nothing.
 */
#ifndef LNET_OP_H
#define LNET_OP_H

#include "lnet/core/stat.h"
#include "lnet/message/in.h"

enum op_state {
	OP_SENDING,	      /* the request is on its way out */
	OP_SENDING_RECEIVING, /* ... and the answer is already coming in */
	OP_SENDING_ANSWERED,  /* ... and the answer is there */
	OP_WAITING,	      /* sent; the answer is awaited */
	OP_RECEIVING,	      /* sent; the answer is coming in */
	OP_DONE,
	OP_STATES
};
extern const struct fsm_state op_states[OP_STATES];

struct lnet_op {
	struct msg_out msg; /* the request; first: shares its memory */
	struct lnet_cpt *cpt;
	uint64_t id;
	struct fsm fsm;
	bool want_answer;
	bool tracked;	      /* the answer has the deadline, too */
	struct lnet_md *md;   /* referenced */
	struct list link;     /* md->ops */
	uint64_t began;	      /* ns; the deadline is the request's */
	struct timer timer;   /* while OP_WAITING */
	struct msg_in *reply; /* OP_SENDING_RECEIVING, OP_RECEIVING */
	uint32_t events;      /* event places still reserved */
	uint32_t refs; /* 1 until it ends, 1 for a cancellation under way */
	struct work cancel; /* passes to the CPT of the request, or of the
			     * reply, and back */
	bool canceling;
	int cancel_status;
	enum ulnet_cause cancel_cause;
};

/* What LNetPut() and LNetGet() say. */
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

/* On the home of the MD; as LNetPut(3). */
int op_begin(struct lnet_cpt *cpt, const struct op_args *args);

/* An answer has come in, as @msg. Returns why it is dropped, or STAT_COUNT: a
 * REPLY is set up then to be received, and op_replied() follows. */
enum lnet_stat op_answer(struct lnet_cpt *cpt, struct msg_in *msg);
void op_replied(struct lnet_op *op, const struct msg_in *msg);

/* The MD was unlinked by its user, or the node closes: the operation ends soon,
 * wherever its request is, or its answer. */
void op_abandon(struct lnet_op *op, int status, enum ulnet_cause cause);

/* portal_users.abandon. */
void op_abandon_link(struct list *link);

/* All operations of the CPT end (shutdown). */
void ops_abandon(struct lnet_cpt *cpt);

#endif
