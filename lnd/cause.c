/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/cause.h"

#include <errno.h>

#include "base/util.h"

static const struct lnd_ruling rulings[LNET_CAUSE_COUNT] = {
	[LNET_CAUSE_OK] = { false, LND_BLAME_NOBODY },
	[LNET_CAUSE_LOCAL_INTERRUPT] = { true, LND_BLAME_LOCAL },
	[LNET_CAUSE_LOCAL_DROPPED] = { true, LND_BLAME_LOCAL },
	[LNET_CAUSE_LOCAL_ABORTED] = { true, LND_BLAME_LOCAL },
	/* No way from this NI to that one: from another NI there may be one,
	 * and also from this NI to another one of the peer. */
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

static bool is_nobodys_fault(int status)
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

struct lnd_ruling lnd_rule(int status, enum ulnet_cause cause)
{
	struct lnd_ruling r = rulings[cause];

	if (is_nobodys_fault(status))
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
