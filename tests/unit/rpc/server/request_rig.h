/* SPDX-License-Identifier: BSD-3-Clause */
/* A server with one service, "test", and one raw client that is connected to
 * it. */
#ifndef TESTS_REQUEST_RIG_H
#define TESTS_REQUEST_RIG_H

#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

static struct raw_client a;

static inline void rig_with(struct serve_rig *g,
			    struct ulrpc_service_conf *more, unsigned int cpts)
{
	serve_init(g, 1, cpts);
	serve_open(g, NULL);
	serve_start_with(g, more);
	raw_client_init(&a, g->sim, CALLER, SERVER);
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
}

static inline void rig(struct serve_rig *g)
{
	rig_with(g, NULL, 1);
}

static inline void settle(struct serve_rig *g)
{
	lnet_sim_run(g->sim, 20 * MSEC);
}

static inline struct service_cpt *cpt0(struct serve_rig *g)
{
	return &g->service->cpt[0];
}

#endif
