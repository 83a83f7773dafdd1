/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What follows from the end of a message (requirement D2). An LND says why a
 * message has ended: a cause, and an errno. LNet asks here what that promises,
 * and whose health it is evidence against.
 *
 *	cause			the peer has	may be		health of
 *				got it		sent again
 *	LOCAL_INTERRUPT		no		yes		the local NI
 *	LOCAL_DROPPED		no		yes		the local NI
 *	LOCAL_ABORTED		no		yes		the local NI
 *	LOCAL_NO_ROUTE		no		yes		the local NI
 *	LOCAL_TIMEOUT		no		yes		the local NI *
 *	LOCAL_ERROR		perhaps		no		the local NI
 *	REMOTE_DROPPED		no		yes		the peer NI
 *	REMOTE_ERROR		perhaps		no		the peer NI
 *	REMOTE_TIMEOUT		perhaps		no		the peer NI
 *	NETWORK_TIMEOUT		perhaps		no		both
 *	RESPONSE_TIMEOUT	perhaps		no		the peer NI
 *	CANCELED, SHUTDOWN	perhaps		no		nobody
 *
 * (*) LNet, which knows what the message waited for, may know better.
 *
 * Whatever the cause, it is evidence against nobody when the errno says that
 *	this process, or its system, has run out of something
 *				ENOMEM, ENOBUFS, EMFILE, ENFILE
 *	there is no such way, or it is being taken away by those who may
 *				EAFNOSUPPORT, ENETDOWN, ESHUTDOWN, ECANCELED
 * (An NI whose link has gone is out of use until the link is back, which is
 * more than health could say.)
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

struct lnd_ruling {
	bool not_delivered; /* the peer has not got it, and will not: it may
			     * be sent again */
	enum lnd_blame blame;
};

/* For a message that has ended with @status and @cause, as lnet_finalize() and
 * lnet_peer_connected() have them. Any thread. */
struct lnd_ruling lnd_rule(int status, enum ulnet_cause cause);

/* The cause when send() was answered @rc, which is neither 0 nor
 * -EINPROGRESS; one that promises that nothing was delivered. Any thread. */
enum ulnet_cause lnd_refusal_cause(int rc);

#endif
