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
	/* a received message is dropped; if .causes is set, a message is not
	 * sent, as with LNET_FAULT_ERROR */
	LNET_FAULT_DROP,
	/* a message, received or to be sent, waits for .latency */
	LNET_FAULT_DELAY,
	LNET_FAULT_DUPLICATE, /* a message is sent twice */
	/* one bit of the payload of a sent message is flipped */
	LNET_FAULT_CORRUPT,
	/* a message is not sent, and reported as failed */
	LNET_FAULT_ERROR,
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

#define LNET_FAULTS_MAX 256 /* rules that a node may have */
/* us: the longest .interval and .latency, a week */
#define LNET_FAULT_US_MAX UINT64_C(604800000000)

/*
 * A rule: which messages it strikes, how often, and what it does to them. A NID
 * of a rule may be LNET_NID_ANY, or lnet_nid_make(net, 0xffffffff), which
 * stands for all NIDs of the net.
 */
struct ulnet_fault {
	enum ulnet_fault_kind kind;
	/* Which messages the rule strikes: */
	struct ulnet_nid source; /* NIDs in the header of the message */
	struct ulnet_nid dest;
	struct ulnet_nid local; /* the NI that sends or receives the message */
	/* a bit for each portal: only PUTs and GETs to these portals; 0: all
	 * messages */
	uint64_t portals;
	/* LNET_FAULT_PUT and so on; 0: messages of all types */
	uint32_t messages;
	/* How often it strikes; exactly one of rate and interval is not 0: */
	/* strikes one message, chosen at random, of each .rate messages */
	uint32_t rate;
	/* us: strikes one message in each interval, at a random moment */
	uint64_t interval;
	/* strikes each message by chance: one of .rate messages, or one in
	 * .interval, on average */
	bool random;
	/* What the rule does to a message: */
	uint64_t latency; /* LNET_FAULT_DELAY: us that the message waits */
	/* LNET_FAULT_ERROR, LNET_FAULT_DROP: LNET_FAULT_CAUSE() bits, of which
	 * one, drawn at random, is reported */
	uint32_t causes;
};

struct ulnet_fault_info {
	struct ulnet_fault fault;
	/* messages that passed the filters of the rule */
	uint64_t seen;
	uint64_t fired;		    /* messages that the rule has struck */
	struct ulnet_counts struck; /* the messages struck, by type */
};

/* Sets the kind, and filters that all messages pass. The other fields are 0. */
ULNET_EXPORT void lnet_fault_init(struct ulnet_fault *fault,
				  enum ulnet_fault_kind kind);

/* Adds a rule at the end of the list. If several rules strike a message, only
 * the first of them takes effect. -EINVAL: the rule makes no sense, or can
 * strike nothing; -EEXIST: there is an equal rule; -ENOSPC: there are
 * LNET_FAULTS_MAX rules. */
ULNET_EXPORT int lnet_fault_add(struct lnet *node,
				const struct ulnet_fault *fault);
/* In the following functions LNET_FAULT_KINDS stands for all kinds. */

/* Deletes the rules with this kind, source and destination (NULL: any), and
 * returns the number of deleted rules. */
ULNET_EXPORT int lnet_fault_del(struct lnet *node, enum ulnet_fault_kind kind,
				const struct ulnet_nid *source,
				const struct ulnet_nid *dest);
/* Fills @infos with up to @n rules of this kind, in the order in which they
 * were added. Returns the number of all such rules. Any thread. */
ULNET_EXPORT int lnet_fault_list(struct lnet *node, enum ulnet_fault_kind kind,
				 struct ulnet_fault_info *infos,
				 unsigned int n);
/* Sets the counters of all rules of this kind to 0. Any thread. */
ULNET_EXPORT int lnet_fault_reset(struct lnet *node,
				  enum ulnet_fault_kind kind);

#ifdef __cplusplus
}
#endif

#endif
