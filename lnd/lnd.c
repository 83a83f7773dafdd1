/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/lnd.h"

#include <errno.h>

static const struct lnd_verdict verdicts[LNET_CAUSE_COUNT] = {
	[LNET_CAUSE_OK] = { false, LND_BLAME_NOBODY },
	[LNET_CAUSE_LOCAL_INTERRUPT] = { true, LND_BLAME_LOCAL },
	[LNET_CAUSE_LOCAL_DROPPED] = { true, LND_BLAME_LOCAL },
	[LNET_CAUSE_LOCAL_ABORTED] = { true, LND_BLAME_LOCAL },
	/* There may be a way from another NI to this peer NI, and from this NI
	 * to another one of the peer. */
	[LNET_CAUSE_LOCAL_NO_ROUTE] = { true, LND_BLAME_BOTH },
	[LNET_CAUSE_LOCAL_ERROR] = { false, LND_BLAME_LOCAL },
	[LNET_CAUSE_LOCAL_TIMEOUT] = { true, LND_BLAME_LOCAL },
	[LNET_CAUSE_REMOTE_ERROR] = { false, LND_BLAME_PEER },
	[LNET_CAUSE_REMOTE_DROPPED] = { true, LND_BLAME_PEER },
	[LNET_CAUSE_REMOTE_TIMEOUT] = { false, LND_BLAME_PEER },
	[LNET_CAUSE_NETWORK_TIMEOUT] = { false, LND_BLAME_BOTH },
	[LNET_CAUSE_RESPONSE_TIMEOUT] = { false, LND_BLAME_PEER },
	[LNET_CAUSE_CANCELED] = { false, LND_BLAME_NOBODY },
	[LNET_CAUSE_SHUTDOWN] = { false, LND_BLAME_NOBODY },
};

static bool blames_nobody(int status)
{
	switch (status) {
	case -ENOMEM:
	case -ENOBUFS:
	case -EMFILE:
	case -ENFILE:
	case -EAFNOSUPPORT:
	case -ENETDOWN:
	case -ESHUTDOWN:
	case -ECANCELED:
		return true;
	default:
		return false;
	}
}

struct lnd_verdict lnd_judge(int status, enum ulnet_cause cause)
{
	struct lnd_verdict r = verdicts[cause];

	if (blames_nobody(status))
		r.blame = LND_BLAME_NOBODY;
	return r;
}

enum ulnet_cause lnd_refusal_cause(int rc)
{
	switch (rc) {
	case -EAFNOSUPPORT:
	case -ENETDOWN:
	case -ENETUNREACH:
		return LNET_CAUSE_LOCAL_NO_ROUTE;
	case -EHOSTUNREACH:
	case -ECONNREFUSED:
		return LNET_CAUSE_REMOTE_DROPPED;
	default:
		return LNET_CAUSE_LOCAL_DROPPED;
	}
}

/* ---- lists of LNDs ---- */

const struct lnd *lnd_find(const struct lnd *const *lnds, int type)
{
	for (unsigned int i = 0; lnds[i]; i++)
		if (lnds[i]->type == type)
			return lnds[i];
	return NULL;
}

int lnd_index(const struct lnd *const *lnds, const struct lnd *lnd)
{
	for (unsigned int i = 0; lnds[i]; i++) {
		if (lnds[i] != lnd)
			continue;
		BUG_ON(i >= LND_COUNT_MAX);
		return (int)i;
	}
	return -1;
}
