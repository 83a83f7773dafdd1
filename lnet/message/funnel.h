/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first part of the end of a message that was to be sent, and could not be:
 * what the failure is evidence of, and whether there is another try. (The rest
 * is msg_finalize()'s, in msg.h.) In this order:
 *	1. it is counted, and noted whether the peer may have got the message;
 *	2. whose fault it may be loses health: see lnd/cause.h; a message that
 *	   was too late was so for want of what it waited for;
 *	3. what was not delivered is sent again, if it may and can be
 *	   (resend.h).
 */
#ifndef LNET_FUNNEL_H
#define LNET_FUNNEL_H

#include "ulnet/lnet.h"

struct lnet_msg;

/* @msg, still as it was, has failed. True: it goes on. On its CPT. */
bool funnel_failed(struct lnet_msg *msg, int status, enum ulnet_cause cause);

#endif
