/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What follows from the cause and the errno that an LND ends a message with
 * (requirement D2): may the message be sent again, and whose health suffers?
 *
 *	cause			the peer has	may be		against the
 *				got it		sent again	health of
 *	LOCAL_INTERRUPT		no		yes		the local NI
 *	LOCAL_DROPPED		no		yes		the local NI
 *	LOCAL_ABORTED		no		yes		the local NI
 *	LOCAL_NO_ROUTE		no		yes		both
 *	LOCAL_TIMEOUT		no		yes		the local NI *
 *	LOCAL_ERROR		perhaps		no		the local NI
 *	REMOTE_DROPPED		no		yes		the peer NI
 *	REMOTE_ERROR		perhaps		no		the peer NI
 *	REMOTE_TIMEOUT		perhaps		no		the peer NI
 *	NETWORK_TIMEOUT		perhaps		no		both
 *	RESPONSE_TIMEOUT	perhaps		no		the peer NI
 *	CANCELED, SHUTDOWN	perhaps		no		nobody
 *
 * (*) LNet, which knows what the message waited for, may decide otherwise.
 *
 * Whatever the cause, nobody's health suffers when the errno says that
 *	this process, or its system, lacks a resource
 *				ENOMEM, ENOBUFS, EMFILE, ENFILE
 *	this way cannot be used, or is being taken out of use
 *				EAFNOSUPPORT, ENETDOWN, ESHUTDOWN, ECANCELED
 * (ENETDOWN: an NI without a link is not used at all until the link is back.)
 */
#ifndef LND_CAUSE_H
#define LND_CAUSE_H

#include "ulnet/lnet.h"

enum lnd_blame {
	LND_BLAME_NOBODY,
	LND_BLAME_LOCAL, /* the NI that the message went out on, or came in */
	LND_BLAME_PEER,	 /* the peer NI that it went to: the next hop */
	LND_BLAME_BOTH
};

struct lnd_verdict {
	bool not_delivered; /* the peer has not got it, and never will: it may
			     * be sent again */
	enum lnd_blame blame;
};

/* For a message that has ended with @status and @cause, as given to
 * lnet_finalize() or lnet_peer_connected(). Any thread. */
struct lnd_verdict lnd_judge(int status, enum ulnet_cause cause);

/* The cause when send() has returned @rc, which is neither 0 nor -EINPROGRESS:
 * one that promises that nothing was delivered. Any thread. */
enum ulnet_cause lnd_refusal_cause(int rc);

#endif
