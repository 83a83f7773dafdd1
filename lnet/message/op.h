/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation: one LNetPut() or LNetGet(), from the call to its terminal
 * event. It belongs to the CPT of its MD. The request carries the id of the
 * operation as a handle; the answer carries the handle back, and so finds its
 * operation.
 */
#ifndef LNET_OP_H
#define LNET_OP_H

#include "lnet/core/stat.h"
#include "lnet/message/in.h"

enum op_state {
	OP_SENDING, /* the request is being sent */
	/* the request is being sent, and the answer is already coming in */
	OP_SENDING_RECEIVING,
	/* the request is being sent, and the answer has already come */
	OP_SENDING_ANSWERED,
	/* the request was sent, and the answer has not come yet */
	OP_WAITING,
	/* the request was sent, and the answer is coming in */
	OP_RECEIVING,
	OP_DONE,
	OP_STATES
};
extern const struct fsm_state op_states[OP_STATES];

struct lnet_op {
	/* the request; the first field, so that both have the same address */
	struct msg_out msg;
	struct lnet_cpt *cpt;
	uint64_t id; /* its handle on the wire, if it expects an answer */
	struct fsm fsm;
	bool expects_answer;
	/* the operation ends at its deadline even if only the answer is late */
	bool tracked;
	struct lnet_md *md; /* a reference */
	struct list link;   /* in md->ops */
	uint64_t began;	    /* ns: when the operation began */
	struct timer timer; /* armed while OP_WAITING */
	/* the answer; with OP_SENDING_RECEIVING and OP_RECEIVING */
	struct msg_in *reply;
	uint32_t events; /* number of slots reserved in the event queue */
	/* 1 until the operation has ended, and 1 during a cancellation */
	uint32_t refs;
	/* work of a cancellation, which visits the CPT of the request or of the
	 * reply, and returns */
	struct work cancel;
	bool canceling;
	int cancel_status;
	enum ulnet_cause cancel_cause;
};

/* The arguments of LNetPut() and LNetGet(). */
struct op_args {
	enum ulnet_msg_type type;
	struct ulnet_nid self;
	uint64_t md; /* cookie of the MD's handle */
	bool ack;
	struct ulnet_id target;
	unsigned int portal;
	uint8_t flags; /* MSG_ONCE, MSG_EXACT, MSG_PROBE */
	uint64_t match_bits;
	uint32_t offset;
	uint64_t hdr_data;
	struct lnet_cpt *cpt; /* private to op.c */
};

/* As LNetPut(3) or LNetGet(3), on the CPT of the MD. */
int op_begin(struct lnet_cpt *cpt, const struct op_args *args);

/* Sets *@local and *@hop to the path of the request of the MD @md that the LND
 * of @cpt has. Returns false: there is none. */
bool op_path(const struct lnet_cpt *cpt, uint64_t md, struct ulnet_nid *local,
	     struct ulnet_id *hop);

/* Gives @msg, an ACK or a REPLY, to its operation. Returns STAT_COUNT, or the
 * counter of the reason for which @msg must be dropped. If @msg is a REPLY, it
 * is then received, and op_replied() must be called. */
enum lnet_stat op_answer(struct lnet_cpt *cpt, struct msg_in *msg);
void op_replied(struct lnet_op *op, const struct msg_in *msg);

/* As portal_users.abandon: the user has unlinked the MD. */
void op_abandon_link(struct list *link);

/* Abandons all operations of @cpt, because @cpt closes. */
void ops_abandon(struct lnet_cpt *cpt);

#endif
