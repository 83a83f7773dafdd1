/* SPDX-License-Identifier: BSD-3-Clause */
/* Without RDMA, a text says what is missing. */
#include "lnd/o2iblnd/verbs.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

static const struct ib_events nobody;

/* No host has this address, so this holds on hosts with RDMA, too. */
Test(rdma, an_address_without_a_device)
{
	const struct ib_port_conf conf = { .service = 987, .tos = -1 };
	const struct ib_verbs *verbs = ib_verbs_rdma();
	struct lnd_ni ni = { .cpts = 1, .numa_node = -1 };
	const char *why = NULL;
	struct ib_port *port = NULL;
	struct loop *loop;
	struct env *env;

	if (!verbs)
		return;
	cr_assert_eq(lnet_nid_parse("192.0.2.1@o2ib", &ni.nid), 0);
	cr_assert_eq(env_ev_new(NULL, &env), 0);
	cr_assert_eq(loop_new(env, &loop), 0);
	ni.loops = &loop;
	cr_assert_eq(verbs->open(&ni, &conf, &nobody, NULL, &port, &why),
		     -ENODEV);
	cr_assert_null(port);
	cr_assert_not_null(why);
	if (access("/dev/infiniband", F_OK))
		cr_assert(strstr(why, "/dev/infiniband"), "%s", why);
	/* @why may be NULL */
	cr_assert_eq(verbs->open(&ni, &conf, &nobody, NULL, &port, NULL),
		     -ENODEV);
	loop_free(loop);
}

Test(rdma, how_work_requests_end)
{
	for (unsigned int i = 0; i < IB_WC_STATUSES; i++) {
		const char *name = ib_wc_status_name(i);

		cr_assert(name && *name);
		for (unsigned int j = 0; j < i; j++)
			cr_assert_str_neq(name, ib_wc_status_name(j));
	}
}
