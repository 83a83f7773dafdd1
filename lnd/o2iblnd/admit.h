/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission: whether a connection may be established, judged by the bytes of
 * the request and of its answer. Pure functions. Whether the peer has
 * restarted, and races of two requests, are peer.c's business.
 *
 * Thread: any.
 */
#ifndef LND_O2IBLND_ADMIT_H
#define LND_O2IBLND_ADMIT_H

#include "lnd/o2iblnd/credit.h"
#include "lnd/o2iblnd/verbs.h"

/* What this side offers to peers. */
struct ib_terms {
	struct ib_end self;
	/* queue depth: the tunable peer_credits, 1 to IB_DEPTH_MAX */
	uint16_t depth;
	uint16_t frags;	 /* most fragments in a descriptor of a peer */
	bool privileged; /* peers must connect from ports below 1024 */
	bool starting;	 /* another NI of this address is starting */
};

/* Who asks for a connection, and with which limits. */
struct ib_request {
	struct ib_end peer;
	uint16_t depth;
	uint16_t frags;
};

/* Decodes and judges a connect request, of @length bytes at @private, that came
 * from @from. Returns 0 and @request; or -errno, with the reject to send in
 * @reject and constant text for the log in *@why:
 *	-EACCES		its source port is not privileged
 *	-EPERM		its source address is not that of its NID
 *	-EPROTO		malformed
 *	-EADDRNOTAVAIL	for another NI
 *	-ESTALE		for an earlier incarnation of this NI
 *	-E2BIG		asks for a deeper queue, or more fragments */
int ib_admit(const struct ib_terms *terms, const struct ib_source *from,
	     const void *private, size_t length, struct ib_request *request,
	     struct ib_reject *reject, const char **why) must_check;
/* Makes a reject for @reason that tells the limits of this side. */
void ib_admit_reject(const struct ib_terms *terms, enum ib_reject_reason reason,
		     struct ib_reject *reject);

/* Judges the answer @private of @peer to our request for @asked. Returns 0,
 * with what is agreed in @agreed; or -EPROTO or -ESTALE, with constant text for
 * the log in *@why. */
int ib_admit_answer(const struct ib_end *self, const struct ulnet_nid *peer,
		    const struct ib_request *asked, const void *private,
		    size_t length, struct ib_request *agreed,
		    const char **why) must_check;

/* ---- races of requests ---- */

/*
 * When two nodes request a connection to each other at the same time, each
 * rejects the request of a peer that is "lower". Nodes of different versions
 * may order themselves differently: then both reject, or both accept.
 */
enum ib_race_rule {
	IB_RACE_HASH, /* nodes since 2.16: by ib_race_hash() */
	IB_RACE_NID,  /* nodes up to 2.15: by the 64-bit NID */
	IB_RACE_RULES
};

/* After this many rejects in a row the next request of a peer is accepted. */
#define IB_RACE_REJECTS_MAX 20

/* The hash of a NID that has a 64-bit form: net number XOR address, where the
 * bytes of the address on the wire are read as little-endian. */
uint32_t ib_race_hash(const struct ulnet_nid *nid);

/* Is @a lower than @b? */
bool ib_race_is_lower(enum ib_race_rule rule, const struct ulnet_nid *a,
		      const struct ulnet_nid *b);

/* ---- refusals ---- */

/* How the peer, or its host, has refused a request; all 0: no answer. */
struct ib_refusal {
	int cm_reason;	 /* IB_CM_REJECT_* or another number of the CM */
	bool has_reject; /* the peer's LND has sent @reject */
	struct ib_reject reject;
};

/*
 * What follows when a request was refused: whether it is made again, and if
 * not, how the messages end that have waited.
 *
 *	refused with		again?
 *	RACE			yes; the peer's own request is on its way
 *	STALE			yes, to the incarnation that was told
 *	FRAGS, DEPTH		yes, if less is offered than was asked for
 *	INCOMPATIBLE		yes, if the peer speaks our version
 *	any other reason	no
 *	CM: stale connection	yes
 *	CM: others		no
 *	no answer, no route, local failure
 *				no
 */
struct ib_verdict {
	bool again; /* the request is to be made again */
	/* how the waiting messages end, if the request is not made again, or
	 * has been made too often */
	int status;
	enum ulnet_cause cause;
};

/* Judges the refusal of a request for @asked; @status and @refusal are those of
 * ib_conn_user.refused(). Sets in @next what the peer has told: incarnation,
 * depth, fragments. */
struct ib_verdict ib_refusal_judge(int status, const struct ib_refusal *refusal,
				   const struct ib_request *asked,
				   struct ib_request *next);

#endif
