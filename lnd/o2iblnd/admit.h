/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a connection comes about, as far as the bytes of the request and of
 * its answer tell: what is asked for must be what this side is and can do.
 * Pure. Whether the peer is known as another one, and races of two requests, is
 * the peers' business.
 *
 * Thread: any.
 */
#ifndef LND_O2IBLND_ADMIT_H
#define LND_O2IBLND_ADMIT_H

#include "lnd/o2iblnd/credit.h"
#include "lnd/o2iblnd/verbs.h"

/* What this side agrees to. */
struct ib_terms {
	struct ib_end self;
	uint16_t depth;	 /* peer_credits: 1 to IB_DEPTH_MAX */
	uint16_t frags;	 /* of a peer's descriptor, at most */
	bool privileged; /* only from ports below 1024 */
	bool starting;	 /* an NI of this port is about to be up */
};

/* A request that may be accepted. */
struct ib_request {
	struct ib_end peer;
	uint16_t depth;
	uint16_t frags;
};

/* The connect request with @private, @from somebody. 0; or -errno, the answer
 * for the peer in @reject, and constant text for the log in @why:
 *	-EACCES		the port it comes from
 *	-EPERM		the address it comes from: another NID's
 *	-EPROTO		it makes no sense
 *	-EADDRNOTAVAIL	it is for somebody else
 *	-ESTALE		it is for an earlier life of this side
 *	-E2BIG		it wants a deeper queue, or more fragments */
int ib_admit(const struct ib_terms *terms, const struct ib_source *from,
	     const void *private, size_t length, struct ib_request *request,
	     struct ib_reject *reject, const char **why) must_check;
/* The reject for @reason, with all that this side agrees to. */
void ib_admit_reject(const struct ib_terms *terms, enum ib_reject_reason reason,
		     struct ib_reject *reject);

/* The peer @peer has accepted a request for @asked with @private: on what
 * terms? 0; -EPROTO, -ESTALE: on none; *@why as above. */
int ib_admit_answer(const struct ib_end *self, const struct ulnet_nid *peer,
		    const struct ib_request *asked, const void *private,
		    size_t length, struct ib_request *agreed,
		    const char **why) must_check;

/* ---- two requests at the same time ---- */

/*
 * Two nodes that ask each other for a connection at the same time: whose
 * request goes on. The node that has asked, and is asked, rejects the request
 * of a peer that is "lower". Both have to order themselves alike, and
 * nodes of different versions do not: then both reject, or both accept.
 */
enum ib_race_rule {
	IB_RACE_HASH, /* nodes since 2.16: by ib_race_hash() */
	IB_RACE_NID,  /* nodes up to 2.15: by the 64-bit NID */
	IB_RACE_RULES
};

/* After so many rejects of one peer its next request is accepted. */
#define IB_RACE_REJECTS_MAX 20

/* Of a NID that has a 64-bit form: net number XOR address, the latter as a
 * little-endian machine loads the bytes that are on the wire. */
uint32_t ib_race_hash(const struct ulnet_nid *nid);

/* Is @a lower than @b? */
bool ib_race_is_lower(enum ib_race_rule rule, const struct ulnet_nid *a,
		      const struct ulnet_nid *b);

/* ---- refusals ---- */

/* What the peer, or its system, has answered to a request; all 0: nothing. */
struct ib_refusal {
	int cm_reason; /* IB_CM_REJECT_* or another number of the CM */
	bool said;     /* by an LND: */
	struct ib_reject reject;
};

/*
 * A request to connect that came to nothing: is it to be made again, and how?
 * If not, how do the messages end that have waited for it?
 *
 *	answer			again?
 *	RACE			yes; the peer's own request is on its way
 *	STALE			yes, to the incarnation that was offered
 *	FRAGS, DEPTH		with what was offered, if it is less than asked
 *	INCOMPATIBLE		if it is our version that the peer speaks
 *	RESOURCES, FATAL, EARLY, SERVICE, and whatever else
 *				no
 *	CM: stale connection	yes
 *	CM: no listener, others	no
 *	no answer, no way, failures of this side
 *				no
 */
struct ib_verdict {
	bool again; /* the request is to be made again */
	/* How the messages that wait end, if it is not, or if it has been made
	 * again too often: */
	int status;
	enum ulnet_cause cause;
};

/* A connection that asked for @asked was refused with @status and @refusal, as
 * ib_conn_user.refused() has them. @known is what the next request is to ask
 * for: it becomes what the peer wants. */
struct ib_verdict ib_refusal_judge(int status, const struct ib_refusal *refusal,
				   const struct ib_request *asked,
				   struct ib_request *known);

#endif
