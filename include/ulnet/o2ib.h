/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tunables of two nodes on an o2ib net come to: tunables as they are
 * adjusted, what a connection between the nodes is negotiated to, work requests
 * and memory. Pure calculation: nothing is allocated, nothing is remembered, no
 * device is needed. Manual: lnet_o2ib_calculate(3).
 *
 * The conventions are those of lnet.h. Any thread may call these functions.
 */
#ifndef ULNET_O2IB_H
#define ULNET_O2IB_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Releases of the kernel's LND that calculate in different ways, and this
 * implementation's LND. */
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

/* How memory of bulk messages is registered with the device. */
enum ulnet_o2ib_registration {
	LNET_O2IB_REG_USUAL, /* of the model */
	LNET_O2IB_REG_GLOBAL,
	LNET_O2IB_REG_FMR,
	LNET_O2IB_REG_FASTREG,
	LNET_O2IB_REG_USER,
	LNET_O2IB_REGS
};

/* Does the node's kernel have a global memory region? */
enum ulnet_o2ib_global_mr {
	LNET_O2IB_MR_KERNEL, /* its release tells */
	LNET_O2IB_MR_NO,
	LNET_O2IB_MR_YES,
};

#define LNET_O2IB_KERNEL_SIZE 64

/* What is known of a node. */
struct ulnet_o2ib_conf {
	enum ulnet_o2ib_model model;
	enum ulnet_o2ib_registration registration;
	enum ulnet_o2ib_global_mr global_mr;
	char kernel[LNET_O2IB_KERNEL_SIZE]; /* as uname -r says; "": not known,
					     * without global memory region */
	uint32_t peer_credits;
	uint32_t credits;
	uint32_t peer_credits_hiw;
	uint32_t concurrent_sends;
	int32_t map_on_demand; /* negative: the model's default */
	uint32_t ntx;
	uint32_t fmr_pool_size;
	uint32_t fmr_flush_trigger;
	uint32_t ncpts;
	uint32_t conns_per_peer;
	uint32_t wrq_sge;
	uint32_t version;    /* of the protocol: 1 or 2 */
	uint32_t max_qp_wr;  /* of the device; 0: not known */
	uint32_t max_cqe;    /* of the device; 0: not known */
	uint32_t page_size;  /* bytes */
	uint32_t max_writes; /* model user: work requests for data that the
			      * send queue has for each message, on average */
	uint32_t pieces; /* model user: pieces of memory of a bulk message */
};

/* ---- rules, and what they did ---- */

/* Why a value is what it is. */
struct ulnet_o2ib_rule {
	const char *id;	  /* such as "peer_credits.min" */
	const char *text; /* in words */
};

enum ulnet_o2ib_side {
	LNET_O2IB_A,
	LNET_O2IB_B,
	LNET_O2IB_BOTH, /* about the connection */
};

enum ulnet_o2ib_note_kind {
	LNET_O2IB_COMPUTED,
	LNET_O2IB_CHANGED, /* not what was configured */
	LNET_O2IB_WARNING,
	LNET_O2IB_ERROR, /* the NI does not start, or there is no connection */
};

#define LNET_O2IB_HOW_SIZE 96

struct ulnet_o2ib_note {
	enum ulnet_o2ib_note_kind kind;
	enum ulnet_o2ib_side side;
	const char *name; /* of the value: constant */
	const struct ulnet_o2ib_rule *rule;
	int64_t before;		      /* LNET_O2IB_CHANGED: what it was */
	int64_t value;		      /* what it is */
	char how[LNET_O2IB_HOW_SIZE]; /* with these numbers; may be "" */
};

#define LNET_O2IB_NOTES_MAX 128

/* Begins with all 0. */
struct ulnet_o2ib_notes {
	enum ulnet_o2ib_side side; /* that what comes next is about */
	unsigned int n;
	unsigned int lost; /* there was no room for so many */
	struct ulnet_o2ib_note note[LNET_O2IB_NOTES_MAX];
};

/* ---- results ---- */

/* A node whose NI starts, or does not. */
struct ulnet_o2ib_node {
	struct ulnet_o2ib_conf conf; /* adjusted: nothing is left open */
	bool starts;
	bool pools;		 /* has pools of memory regions */
	bool frags_fixed;	 /* can neither offer nor accept fewer */
	uint32_t depth_max;	 /* longest queue that it offers or accepts */
	uint32_t frags_offered;	 /* fragments, of a connection it asks for */
	uint32_t frags_accepted; /* ... that it is asked for */
	uint32_t wrs_extra;	 /* work requests to register, each message */
};

enum ulnet_o2ib_answer {
	LNET_O2IB_ACCEPTED,
	LNET_O2IB_QUEUE_SIZE,
	LNET_O2IB_FRAGS,
	LNET_O2IB_UNCOMPAT, /* the answering node speaks version 1 */
	LNET_O2IB_FATAL,
};

/* One request for the connection, and the answer. */
struct ulnet_o2ib_attempt {
	uint32_t version;
	uint32_t depth;
	uint32_t frags;
	enum ulnet_o2ib_answer answer;
	uint32_t limit; /* what the answering node allows instead; accepted:
			 * the depth that it has */
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
	/* By side: */
	uint32_t hiw[2];	      /* credits owed, to be returned at once */
	uint32_t concurrent_sends[2]; /* on this connection */
	bool capped[2];		      /* its device has lowered the depth */
};

/* What a side of a connection takes. */
struct ulnet_o2ib_resources {
	uint32_t max_recv_wr; /* messages that can be received, posted */
	uint64_t rx_bytes;
	uint64_t rx_pages;
	uint64_t max_send_wr;
	uint64_t max_send_wr_granted; /* by the device */
	uint64_t cq_entries;
	uint32_t posted_max;	/* messages sent and not completed */
	uint32_t bulk_wrs;	/* work requests of a bulk message of 1 MiB */
	uint64_t typical_wrs;	/* if all posted messages are such */
	uint64_t worst_wrs;	/* if all have as many fragments as may be */
	uint64_t worst_percent; /* ... of max_send_wr */
	uint32_t wire_messages; /* in flight, each way, that take credits */
	uint32_t wire_answers;	/* ... and that others have asked for */
	uint32_t conns;		/* connections of a pair of NIs; all of them: */
	uint64_t peer_recv_wr;
	uint64_t peer_send_wr;
	uint64_t peer_cq_entries;
	uint64_t peer_rx_bytes;
	uint64_t tx_buffers; /* of the node, at first */
	uint64_t tx_bytes;
	uint64_t mr_regions;	/* of the node, in pools */
	uint32_t mr_pages;	/* that each may have */
	uint64_t node_rx_bytes; /* with all peers */
};

struct ulnet_o2ib_pair {
	struct ulnet_o2ib_conf node[2];
	enum ulnet_o2ib_side initiator; /* asks for the connection */
	uint32_t npeers;		/* that each node has; 0: 1 */
};

struct ulnet_o2ib_result {
	struct ulnet_o2ib_node node[2];
	struct ulnet_o2ib_conn conn;
	struct ulnet_o2ib_resources res[2]; /* 0 without connection, unless
					     * it failed of them */
};

/* ---- functions; @notes may be NULL ---- */

/* Model 2.15 and its defaults. */
ULNET_EXPORT void lnet_o2ib_conf_init(struct ulnet_o2ib_conf *conf);

/* Returns 0; -EINVAL: the NI does not start, or @conf makes no sense, and the
 * notes say why. @node is filled in all the same. */
ULNET_EXPORT int lnet_o2ib_adjust(const struct ulnet_o2ib_conf *conf,
				  struct ulnet_o2ib_node *node,
				  struct ulnet_o2ib_notes *notes);
/* Between @nodes[0], A, and @nodes[1]. Returns 0; -ECONNREFUSED: there is no
 * connection, and conn->verdict says why. */
ULNET_EXPORT int lnet_o2ib_negotiate(const struct ulnet_o2ib_node *nodes,
				     enum ulnet_o2ib_side initiator,
				     struct ulnet_o2ib_conn *conn,
				     struct ulnet_o2ib_notes *notes);
/* Of @side, A or B. Returns 0; -ENOSPC: the device has no such completion
 * queues. */
ULNET_EXPORT int lnet_o2ib_resources(const struct ulnet_o2ib_node *nodes,
				     const struct ulnet_o2ib_conn *conn,
				     enum ulnet_o2ib_side side, uint32_t npeers,
				     struct ulnet_o2ib_resources *res,
				     struct ulnet_o2ib_notes *notes);
/* All three. Returns 0; -ECONNREFUSED: result->conn.verdict says why. */
ULNET_EXPORT int lnet_o2ib_calculate(const struct ulnet_o2ib_pair *pair,
				     struct ulnet_o2ib_result *result,
				     struct ulnet_o2ib_notes *notes);

/* Has the kernel of this release, such as "3.10.0-693.el7" or "693", a global
 * memory region? 1, 0, or -EINVAL: this is no release. */
ULNET_EXPORT int lnet_o2ib_kernel_global_mr(const char *kernel);
/* By its name, or by a later release than 2.10 that it stands for, such as
 * "2.14.2". -EINVAL: there is none. */
ULNET_EXPORT int lnet_o2ib_model_parse(const char *name,
				       enum ulnet_o2ib_model *model_p);
/* -EINVAL: none is called @name. */
ULNET_EXPORT int lnet_o2ib_registration_parse(
	const char *name, enum ulnet_o2ib_registration *registration_p);
/* Constant texts; NULL: there is none. */
ULNET_EXPORT const char *lnet_o2ib_model_name(enum ulnet_o2ib_model model);
ULNET_EXPORT const char *lnet_o2ib_registration_name(
	enum ulnet_o2ib_registration registration);
ULNET_EXPORT const char *lnet_o2ib_answer_name(enum ulnet_o2ib_answer answer);
ULNET_EXPORT const char *lnet_o2ib_verdict_text(
	enum ulnet_o2ib_verdict verdict);
/* All rules, by numbers from 0. */
ULNET_EXPORT const struct ulnet_o2ib_rule *lnet_o2ib_rule(unsigned int number);

#ifdef __cplusplus
}
#endif

#endif
