/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request to connect that came to nothing: is it to be made again, and how?
 * If not, what is said of the messages that waited for it. Pure.
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

/* What is said of those who wait, if it is not made again, or not any more. */
struct ib_verdict {
	bool again;
	int status;
	enum ulnet_cause cause;
};

/* @status and @refusal as ib_conn_user.refused() had them, of a connection that
 * asked for @asked. @known: what the next one is to ask for, which is changed
 * as the peer wants it. */
struct ib_verdict ib_refusal_judge(int status, const struct ib_refusal *refusal,
				   const struct ib_request *asked,
				   struct ib_request *known);

#endif
