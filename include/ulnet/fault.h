/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault injection: messages dropped, delayed, sent twice, corrupted, or failed.
 * Manual: lnet_fault(3). The conventions are those of lnet.h.
 */
#ifndef ULNET_FAULT_H
#define ULNET_FAULT_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ulnet_fault_kind {
	LNET_FAULT_DROP,      /* on receipt: dropped; with causes, as
			       * LNET_FAULT_ERROR */
	LNET_FAULT_DELAY,     /* on receipt and on sending: for .latency */
	LNET_FAULT_DUPLICATE, /* on sending: sent twice */
	LNET_FAULT_CORRUPT,   /* on sending: one bit of the payload flipped */
	LNET_FAULT_ERROR,     /* on sending: not sent, and reported failed */
	LNET_FAULT_KINDS
};

/* Bits of ulnet_fault.messages. */
#define LNET_FAULT_ACK	 UINT32_C(1)
#define LNET_FAULT_PUT	 UINT32_C(2)
#define LNET_FAULT_GET	 UINT32_C(4)
#define LNET_FAULT_REPLY UINT32_C(8)

#define LNET_FAULT_CAUSE(cause) (UINT32_C(1) << (cause))
/* All causes of failed sends: LOCAL_INTERRUPT to NETWORK_TIMEOUT. */
#define LNET_FAULT_CAUSES UINT32_C(0x7fe)

#define LNET_FAULTS_MAX	   256			   /* rules of a node */
#define LNET_FAULT_US_MAX \
	UINT64_C(604800000000) /* longest interval, and
						   * latency: a week */

/*
 * A rule: which messages it strikes, how often, and what it does to them. NIDs
 * may be LNET_NID_ANY, or stand for a net: lnet_nid_make(net, 0xffffffff).
 */
struct ulnet_fault {
	enum ulnet_fault_kind kind;
	/* Which messages: */
	struct ulnet_nid source; /* as in their headers */
	struct ulnet_nid dest;
	struct ulnet_nid local; /* the NI that sends or receives them */
	uint64_t portals; /* PUTs and GETs to these: bits; 0: all messages */
	uint32_t messages; /* LNET_FAULT_PUT and so on; 0: all */
	/* How often; exactly one of rate and interval is not 0: */
	uint32_t rate;	   /* strikes a random one of each .rate messages */
	uint64_t interval; /* us: strikes one message in each such time, at a
			    * random moment */
	bool random;	   /* only on average: one of .rate messages, or one in
			    * .interval */
	/* What it does to them: */
	uint64_t latency; /* LNET_FAULT_DELAY: us */
	uint32_t causes;  /* LNET_FAULT_ERROR, LNET_FAULT_DROP: a random one of
			  * these is reported: LNET_FAULT_CAUSE() bits */
};

struct ulnet_fault_info {
	struct ulnet_fault fault;
	uint64_t seen;		    /* messages that passed its filters */
	uint64_t fired;		    /* those of them that it struck */
	struct ulnet_counts struck; /* ... by type */
};

/* Sets the kind, and filters that all messages pass; the rest is 0. */
ULNET_EXPORT void lnet_fault_init(struct ulnet_fault *fault,
				  enum ulnet_fault_kind kind);

/* Adds a rule after the others; of several only the first that strikes a
 * message counts. -EINVAL: the rule makes no sense, or can strike nothing;
 * -EEXIST; -ENOSPC: there are LNET_FAULTS_MAX rules. */
ULNET_EXPORT int lnet_fault_add(struct lnet *node,
				const struct ulnet_fault *fault);
/* In the following functions LNET_FAULT_KINDS stands for all kinds. */

/* Deletes the rules with this kind, source and destination (NULL: any); returns
 * how many. */
ULNET_EXPORT int lnet_fault_del(struct lnet *node, enum ulnet_fault_kind kind,
				const struct ulnet_nid *source,
				const struct ulnet_nid *dest);
/* Fills @infos with up to @n rules of this kind, in their order; returns how
 * many there are. Any thread. */
ULNET_EXPORT int lnet_fault_list(struct lnet *node, enum ulnet_fault_kind kind,
				 struct ulnet_fault_info *infos,
				 unsigned int n);
/* Resets the counters of the rules of this kind. Any thread. */
ULNET_EXPORT int lnet_fault_reset(struct lnet *node,
				  enum ulnet_fault_kind kind);

#ifdef __cplusplus
}
#endif

#endif
