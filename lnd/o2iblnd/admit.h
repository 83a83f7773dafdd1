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

#endif
