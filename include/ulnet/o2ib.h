/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calculates what the tunables of two nodes on an o2ib net lead to: the
 * adjusted tunables of each, the parameters that a connection negotiates, and
 * the work requests and the memory that it takes. Nothing is allocated or
 * remembered, and no device is needed. Manual: lnet_o2ib_calculate(3),
 * o2ibcalc(1).
 *
 * The conventions are those of lnet.h. Any thread may call these functions.
 */
#ifndef ULNET_O2IB_H
#define ULNET_O2IB_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Models: releases of the kernel's LND that calculate differently, and USER,
 * the LND of ulnet. */
enum ulnet_o2ib_model {
	LNET_O2IB_2_10_54,
	LNET_O2IB_2_10,
	LNET_O2IB_2_11,
	LNET_O2IB_2_12,
	LNET_O2IB_2_15,
	LNET_O2IB_2_16,
	LNET_O2IB_USER,
	LNET_O2IB_MODELS
};

/* How the memory of bulk messages is registered with the device. */
enum ulnet_o2ib_registration {
	LNET_O2IB_REG_USUAL, /* as usual for the model */
	LNET_O2IB_REG_GLOBAL,
	LNET_O2IB_REG_FMR,
	LNET_O2IB_REG_FASTREG,
	LNET_O2IB_REG_USER,
	LNET_O2IB_REGS
};

/* Does the node's kernel have a global memory region? */
enum ulnet_o2ib_global_mr {
	LNET_O2IB_MR_KERNEL, /* as the release in .kernel tells */
	LNET_O2IB_MR_NO,
	LNET_O2IB_MR_YES,
};

#define LNET_O2IB_KERNEL_SIZE 64

/* The inputs of the calculation for one node; o2ibcalc(1) lists their meanings
 * and defaults. */
struct ulnet_o2ib_conf {
	enum ulnet_o2ib_model model;
	enum ulnet_o2ib_registration registration;
	enum ulnet_o2ib_global_mr global_mr;
	/* release as uname -r prints it; "": not known, and taken to have no
	 * global memory region */
	char kernel[LNET_O2IB_KERNEL_SIZE];
	uint32_t peer_credits;
	uint32_t credits;
	uint32_t peer_credits_hiw;
	uint32_t concurrent_sends;
	int32_t map_on_demand; /* negative: the default of the model */
	uint32_t ntx;
	uint32_t fmr_pool_size;
	uint32_t fmr_flush_trigger;
	uint32_t ncpts;
	uint32_t conns_per_peer;
	uint32_t wrq_sge;
	uint32_t version; /* version of the protocol: 1 or 2 */
	/* work requests that a queue of the device can have; 0: not known */
	uint32_t max_qp_wr;
	/* entries that a completion queue of the device can have; 0: not known
	 */
	uint32_t max_cqe;
	uint32_t page_size; /* bytes of a page */
	/* model USER: work requests for data that the send queue has room for,
	 * per message, on average */
	uint32_t max_writes;
	uint32_t pieces; /* model USER: pieces of memory of a bulk message */
};

/* ---- rules, and what they did ---- */

/* A rule of the calculation, which explains how a value was found. */
struct ulnet_o2ib_rule {
	const char *id;	  /* such as "peer_credits.min" */
	const char *text; /* the rule in words */
};

enum ulnet_o2ib_side {
	LNET_O2IB_A,
	LNET_O2IB_B,
	LNET_O2IB_BOTH, /* about the connection */
};

enum ulnet_o2ib_note_kind {
	LNET_O2IB_COMPUTED,
	LNET_O2IB_CHANGED, /* the value is not what was configured */
	LNET_O2IB_WARNING,
	LNET_O2IB_ERROR, /* the NI does not start, or there is no connection */
};

#define LNET_O2IB_HOW_SIZE 96

struct ulnet_o2ib_note {
	enum ulnet_o2ib_note_kind kind;
	enum ulnet_o2ib_side side;
	const char *name; /* name of the value, as constant text */
	const struct ulnet_o2ib_rule *rule;
	/* LNET_O2IB_CHANGED: the value that was configured */
	int64_t before;
	int64_t value; /* the value in effect */
	/* the calculation with its numbers; may be "" */
	char how[LNET_O2IB_HOW_SIZE];
};

#define LNET_O2IB_NOTES_MAX 128

/* Notes on a calculation. All 0 before the first use. */
struct ulnet_o2ib_notes {
	enum ulnet_o2ib_side side; /* which side the next notes are about */
	unsigned int n;
	unsigned int lost; /* number of notes for which there was no room */
	struct ulnet_o2ib_note note[LNET_O2IB_NOTES_MAX];
};

/* ---- results ---- */

/* A node, with adjusted inputs. */
struct ulnet_o2ib_node {
	/* no field is left at "default" or "not known" */
	struct ulnet_o2ib_conf conf;
	bool starts;
	bool pools; /* the NI has pools of memory regions */
	/* the NI can neither offer nor accept fewer fragments */
	bool frags_fixed;
	/* greatest depth of the queue that the NI offers or accepts */
	uint32_t depth_max;
	uint32_t frags_offered; /* most fragments that the NI asks for */
	/* most fragments that the NI accepts when it is asked */
	uint32_t frags_accepted;
	/* work requests for registration, per message */
	uint32_t wrs_extra;
};

enum ulnet_o2ib_answer {
	LNET_O2IB_ACCEPTED,
	LNET_O2IB_QUEUE_SIZE,
	LNET_O2IB_FRAGS,
	LNET_O2IB_UNCOMPAT, /* the versions do not match */
	LNET_O2IB_FATAL,
};

/* A request for the connection, and the answer to it. */
struct ulnet_o2ib_attempt {
	uint32_t version;
	uint32_t depth;
	uint32_t frags;
	enum ulnet_o2ib_answer answer;
	/* what the acceptor allows instead; with LNET_O2IB_ACCEPTED: the depth
	 * of the acceptor's queue */
	uint32_t limit;
};

enum ulnet_o2ib_verdict {
	LNET_O2IB_CONNECTED,
	LNET_O2IB_NO_NI,
	LNET_O2IB_FRAGS_FIXED,
	LNET_O2IB_FRAGS_DEMANDED,
	LNET_O2IB_FRAGS_V1,
	LNET_O2IB_NO_DEPTH,
	LNET_O2IB_NO_VERSION,
	LNET_O2IB_NO_CQ,
	LNET_O2IB_NO_CQ_TO_ASK,
	LNET_O2IB_VERDICTS
};

#define LNET_O2IB_ATTEMPTS_MAX 8

struct ulnet_o2ib_conn {
	enum ulnet_o2ib_verdict verdict;
	enum ulnet_o2ib_side initiator;
	uint32_t version;
	uint32_t depth;
	uint32_t frags;
	unsigned int rejects;
	unsigned int nattempts;
	struct ulnet_o2ib_attempt attempts[LNET_O2IB_ATTEMPTS_MAX];
	/* Indexed by side, A or B: */
	/* number of owed credits at which they are returned at once */
	uint32_t hiw[2];
	/* concurrent_sends of the side on this connection */
	uint32_t concurrent_sends[2];
	/* the side's device has lowered the depth */
	bool capped[2];
};

/* What a connection takes on one side. */
struct ulnet_o2ib_resources {
	uint32_t max_recv_wr; /* receive requests posted for messages */
	uint64_t rx_bytes;
	uint64_t rx_pages;
	uint64_t max_send_wr;
	/* work requests of the send queue that the device grants */
	uint64_t max_send_wr_granted;
	uint64_t cq_entries;
	/* highest number of messages that are sent and not completed */
	uint32_t posted_max;
	uint32_t bulk_wrs; /* work requests of a bulk message of 1 MiB */
	/* work requests in use if all posted messages are bulk messages of 1
	 * MiB */
	uint64_t typical_wrs;
	/* work requests in use if all posted messages have the most fragments
	 */
	uint64_t worst_wrs;
	uint64_t worst_percent; /* worst_wrs in percent of max_send_wr */
	/* highest number of messages that take credits and are under way in one
	 * direction */
	uint32_t wire_messages;
	/* highest number of answers to such messages under way in one direction
	 */
	uint32_t wire_answers;
	/* connections of the pair of NIs; the next four numbers are for all of
	 * them together */
	uint32_t conns;
	uint64_t peer_recv_wr;
	uint64_t peer_send_wr;
	uint64_t peer_cq_entries;
	uint64_t peer_rx_bytes;
	/* message buffers of the whole node, when it starts */
	uint64_t tx_buffers;
	uint64_t tx_bytes;
	/* memory regions in the pools of the whole node */
	uint64_t mr_regions;
	uint32_t mr_pages; /* pages that each memory region may have */
	/* bytes of the whole node, for receiving from all peers */
	uint64_t node_rx_bytes;
};

struct ulnet_o2ib_pair {
	struct ulnet_o2ib_conf node[2];
	/* the side that asks for the connection */
	enum ulnet_o2ib_side initiator;
	uint32_t npeers; /* peers that each node has; 0 = 1 */
};

struct ulnet_o2ib_result {
	struct ulnet_o2ib_node node[2];
	struct ulnet_o2ib_conn conn;
	/* all 0 if there is no connection, unless its verdict is
	 * LNET_O2IB_NO_CQ */
	struct ulnet_o2ib_resources res[2];
};

/* ---- functions; @notes may be NULL ---- */

/* Sets a node's inputs to the defaults of model 2.15. */
ULNET_EXPORT void lnet_o2ib_conf_init(struct ulnet_o2ib_conf *conf);

/* Adjusts the tunables of a node. Returns 0; -EINVAL: the NI does not start, or
 * @conf makes no sense; @notes say why. Fills in @node also on error. */
ULNET_EXPORT int lnet_o2ib_adjust(const struct ulnet_o2ib_conf *conf,
				  struct ulnet_o2ib_node *node,
				  struct ulnet_o2ib_notes *notes);
/* Negotiates the connection between @nodes[0], which is A, and @nodes[1], which
 * is B. Returns 0; -ECONNREFUSED: there is no connection, and conn->verdict
 * says why. */
ULNET_EXPORT int lnet_o2ib_negotiate(const struct ulnet_o2ib_node *nodes,
				     enum ulnet_o2ib_side initiator,
				     struct ulnet_o2ib_conn *conn,
				     struct ulnet_o2ib_notes *notes);
/* Calculates what the connection takes on @side, A or B, and what the node
 * takes with @npeers such peers (0 = 1). Returns 0; -ENOSPC: the completion
 * queues would be longer than the device allows. */
ULNET_EXPORT int lnet_o2ib_resources(const struct ulnet_o2ib_node *nodes,
				     const struct ulnet_o2ib_conn *conn,
				     enum ulnet_o2ib_side side, uint32_t npeers,
				     struct ulnet_o2ib_resources *res,
				     struct ulnet_o2ib_notes *notes);
/* Does all three steps. Returns 0; -ECONNREFUSED: there is no connection, and
 * result->conn.verdict says why. */
ULNET_EXPORT int lnet_o2ib_calculate(const struct ulnet_o2ib_pair *pair,
				     struct ulnet_o2ib_result *result,
				     struct ulnet_o2ib_notes *notes);

/* Does the kernel with this release, such as "3.10.0-693.el7" or "693", have a
 * global memory region? Returns 1 or 0; -EINVAL: @kernel is no release. */
ULNET_EXPORT int lnet_o2ib_kernel_global_mr(const char *kernel);
/* Finds a model by its name, or by a release after 2.10 that the model stands
 * for, such as "2.14.2". -EINVAL: there is none. */
ULNET_EXPORT int lnet_o2ib_model_parse(const char *name,
				       enum ulnet_o2ib_model *model_p);
/* Finds a kind of registration by its name. -EINVAL: there is none. */
ULNET_EXPORT int lnet_o2ib_registration_parse(
	const char *name, enum ulnet_o2ib_registration *registration_p);
/* Return constant texts; NULL: the number has none. */
ULNET_EXPORT const char *lnet_o2ib_model_name(enum ulnet_o2ib_model model);
ULNET_EXPORT const char *lnet_o2ib_registration_name(
	enum ulnet_o2ib_registration registration);
ULNET_EXPORT const char *lnet_o2ib_answer_name(enum ulnet_o2ib_answer answer);
ULNET_EXPORT const char *lnet_o2ib_verdict_text(
	enum ulnet_o2ib_verdict verdict);
/* Returns rule @number, counted from 0; NULL: there are no more rules. */
ULNET_EXPORT const struct ulnet_o2ib_rule *lnet_o2ib_rule(unsigned int number);

#ifdef __cplusplus
}
#endif

#endif
