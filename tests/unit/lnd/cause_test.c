/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows from the end of a message: may it be sent again, and whose
 * health suffers (D2)? */
#include "lnd/cause.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(cause, verdicts)
{
	static const struct {
		int status;
		enum ulnet_cause cause;
		struct lnd_verdict want;
	} cases[] = {
		{ 0, LNET_CAUSE_OK, { false, LND_BLAME_NOBODY } },
		{ -EINTR,
		  LNET_CAUSE_LOCAL_INTERRUPT,
		  { true, LND_BLAME_LOCAL } },
		{ -EACCES,
		  LNET_CAUSE_LOCAL_DROPPED,
		  { true, LND_BLAME_LOCAL } },
		{ -EIO, LNET_CAUSE_LOCAL_ABORTED, { true, LND_BLAME_LOCAL } },
		{ -ENETUNREACH,
		  LNET_CAUSE_LOCAL_NO_ROUTE,
		  { true, LND_BLAME_BOTH } },
		{ -EIO, LNET_CAUSE_LOCAL_ERROR, { false, LND_BLAME_LOCAL } },
		{ -ETIMEDOUT,
		  LNET_CAUSE_LOCAL_TIMEOUT,
		  { true, LND_BLAME_LOCAL } },
		{ -ECONNRESET,
		  LNET_CAUSE_REMOTE_ERROR,
		  { false, LND_BLAME_PEER } },
		{ -EHOSTUNREACH,
		  LNET_CAUSE_REMOTE_DROPPED,
		  { true, LND_BLAME_PEER } },
		{ -ETIMEDOUT,
		  LNET_CAUSE_REMOTE_TIMEOUT,
		  { false, LND_BLAME_PEER } },
		{ -ETIMEDOUT,
		  LNET_CAUSE_NETWORK_TIMEOUT,
		  { false, LND_BLAME_BOTH } },
		{ -ETIMEDOUT,
		  LNET_CAUSE_RESPONSE_TIMEOUT,
		  { false, LND_BLAME_PEER } },
		{ -EIO, LNET_CAUSE_CANCELED, { false, LND_BLAME_NOBODY } },
		{ -EIO, LNET_CAUSE_SHUTDOWN, { false, LND_BLAME_NOBODY } },
	};

	cr_assert_eq(sizeof(cases) / sizeof(cases[0]), LNET_CAUSE_COUNT);
	for (unsigned int i = 0; i < LNET_CAUSE_COUNT; i++) {
		struct lnd_verdict r =
			lnd_judge(cases[i].status, cases[i].cause);
		const char *name = lnet_cause_name(cases[i].cause);

		cr_expect_eq(cases[i].cause, i);
		cr_expect_eq(r.not_delivered, cases[i].want.not_delivered, "%s",
			     name);
		cr_expect_eq(r.blame, cases[i].want.blame, "%s", name);
	}
}

/* Lack of resources and administrative errors blame nobody, whatever the cause;
 * the promise of non-delivery stays. */
Test(cause, blames_nobody)
{
	static const int status[] = { -ENOMEM,	  -ENOBUFS,	 -EMFILE,
				      -ENFILE,	  -EAFNOSUPPORT, -ENETDOWN,
				      -ESHUTDOWN, -ECANCELED };

	for (unsigned int i = 0; i < sizeof(status) / sizeof(status[0]); i++)
		for (unsigned int c = 1; c < LNET_CAUSE_COUNT; c++) {
			struct lnd_verdict r =
				lnd_judge(status[i], (enum ulnet_cause)c);

			cr_expect_eq(r.blame, LND_BLAME_NOBODY);
			cr_expect_eq(r.not_delivered,
				     lnd_judge(-EIO, (enum ulnet_cause)c)
					     .not_delivered);
		}
}

Test(cause, refusals)
{
	static const struct {
		int rc;
		enum ulnet_cause cause;
		enum lnd_blame blame;
	} cases[] = {
		{ -ENOMEM, LNET_CAUSE_LOCAL_DROPPED, LND_BLAME_NOBODY },
		{ -EMFILE, LNET_CAUSE_LOCAL_DROPPED, LND_BLAME_NOBODY },
		{ -EINVAL, LNET_CAUSE_LOCAL_DROPPED, LND_BLAME_LOCAL },
		{ -EAFNOSUPPORT, LNET_CAUSE_LOCAL_NO_ROUTE, LND_BLAME_NOBODY },
		{ -ENETDOWN, LNET_CAUSE_LOCAL_NO_ROUTE, LND_BLAME_NOBODY },
		{ -ENETUNREACH, LNET_CAUSE_LOCAL_NO_ROUTE, LND_BLAME_BOTH },
		{ -EHOSTUNREACH, LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
		{ -ECONNREFUSED, LNET_CAUSE_REMOTE_DROPPED, LND_BLAME_PEER },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum ulnet_cause c = lnd_refusal_cause(cases[i].rc);

		cr_expect_eq(c, cases[i].cause, "%d", cases[i].rc);
		cr_expect_eq(lnd_judge(cases[i].rc, c).blame, cases[i].blame);
		cr_expect(lnd_judge(cases[i].rc, c).not_delivered);
	}
}
