/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/loss.h"

#include <errno.h>

/* A kernel node says NETWORK_TIMEOUT after ETIMEDOUT, which would not promise
 * that nothing was delivered. */
enum ulnet_cause sock_loss_unconnected(int status)
{
	switch (status) {
	case 0:
		return LNET_CAUSE_OK;
	case -ENETUNREACH:
	case -ENETDOWN:
	case -EADDRNOTAVAIL: /* ours, to connect from */
		return LNET_CAUSE_LOCAL_NO_ROUTE;
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EPIPE:
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
	case -EALREADY:
	case -EPROTO:
	case -EPROTONOSUPPORT:
		return LNET_CAUSE_REMOTE_DROPPED;
	default:
		return LNET_CAUSE_LOCAL_DROPPED;
	}
}

enum ulnet_cause sock_loss_begun(int status)
{
	switch (status) {
	case -ESHUTDOWN:
		return LNET_CAUSE_SHUTDOWN;
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
		return LNET_CAUSE_NETWORK_TIMEOUT;
	case -ECONNRESET:
	case -ECONNREFUSED:
	case -EPIPE:
	case -EPROTO:
	case -EIO:
		return LNET_CAUSE_REMOTE_ERROR;
	default:
		return LNET_CAUSE_LOCAL_ERROR;
	}
}

enum ulnet_cause sock_loss_queued(int status)
{
	switch (sock_loss_begun(status)) {
	case LNET_CAUSE_SHUTDOWN:
		return LNET_CAUSE_LOCAL_ABORTED;
	case LNET_CAUSE_LOCAL_ERROR:
		return status == -ENETDOWN ? LNET_CAUSE_LOCAL_NO_ROUTE
					   : LNET_CAUSE_LOCAL_DROPPED;
	default:
		return LNET_CAUSE_REMOTE_DROPPED;
	}
}
