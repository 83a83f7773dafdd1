/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request to connect that came to nothing: is it to be made again, and how?
 * If not, how do the messages end that have waited for it? Pure.
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
 *
 * Thread: any.
 */
#ifndef LND_O2IBLND_REFUSAL_H
#define LND_O2IBLND_REFUSAL_H

#include "lnd/o2iblnd/conn.h"

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
