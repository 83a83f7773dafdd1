/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/loss.h"

#include <criterion/criterion.h>
#include <errno.h>

static const struct {
	int status;
	enum ulnet_cause unconnected, begun, queued;
	enum lnd_blame blame; /* if it was not sent */
} cases[] = {
	{ -ECONNREFUSED, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_REMOTE_ERROR,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -ECONNRESET, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_REMOTE_ERROR,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -EPIPE, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_REMOTE_ERROR,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -EPROTO, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_REMOTE_ERROR,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -ETIMEDOUT, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_NETWORK_TIMEOUT,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -EHOSTUNREACH, LNET_CAUSE_REMOTE_DROPPED, LNET_CAUSE_NETWORK_TIMEOUT,
	  LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	{ -ENETDOWN, LNET_CAUSE_LOCAL_NO_ROUTE, LNET_CAUSE_LOCAL_ERROR,
	  LNET_CAUSE_LOCAL_NO_ROUTE, LND_BLAME_NOBODY },
	{ -ENOMEM, LNET_CAUSE_LOCAL_DROPPED, LNET_CAUSE_LOCAL_ERROR,
	  LNET_CAUSE_LOCAL_DROPPED, LND_BLAME_NOBODY },
	{ -EMFILE, LNET_CAUSE_LOCAL_DROPPED, LNET_CAUSE_LOCAL_ERROR,
	  LNET_CAUSE_LOCAL_DROPPED, LND_BLAME_NOBODY },
	{ -EACCES, LNET_CAUSE_LOCAL_DROPPED, LNET_CAUSE_LOCAL_ERROR,
	  LNET_CAUSE_LOCAL_DROPPED, LND_BLAME_LOCAL },
	{ -ESHUTDOWN, LNET_CAUSE_LOCAL_DROPPED, LNET_CAUSE_SHUTDOWN,
	  LNET_CAUSE_LOCAL_ABORTED, LND_BLAME_NOBODY },
};

Test(loss, causes)
{
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = cases[i].status;

		cr_expect_eq(sock_loss_unconnected(status),
			     cases[i].unconnected, "%d", status);
		cr_expect_eq(sock_loss_begun(status), cases[i].begun, "%d",
			     status);
		cr_expect_eq(sock_loss_queued(status), cases[i].queued, "%d",
			     status);
	}
}

/* What was not begun can be sent again; what was cannot. */
Test(loss, promises)
{
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = cases[i].status;
		struct lnd_ruling waited =
			lnd_rule(status, sock_loss_unconnected(status));
		struct lnd_ruling queued =
			lnd_rule(status, sock_loss_queued(status));

		cr_expect(waited.not_delivered && queued.not_delivered);
		cr_expect_eq(waited.blame, cases[i].blame, "%d", status);
		cr_expect_eq(queued.blame, cases[i].blame, "%d", status);
		cr_expect_not(lnd_rule(status, sock_loss_begun(status))
				      .not_delivered);
	}
	cr_expect_eq(sock_loss_unconnected(0), LNET_CAUSE_OK);
}
