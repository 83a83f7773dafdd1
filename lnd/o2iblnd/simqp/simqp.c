/* SPDX-License-Identifier: BSD-3-Clause */
/* The backend, as the LND sees it. */
#include "lnd/o2iblnd/simqp/simqp.h"

#include "lnd/o2iblnd/simqp/cm.h"
#include "lnd/o2iblnd/simqp/fabric.h"
#include "lnd/o2iblnd/simqp/mr.h"
#include "lnd/o2iblnd/simqp/port.h"
#include "lnd/o2iblnd/simqp/qp.h"

static const struct ib_verbs verbs = {
	.name = "simulated",
	.open = simqp_open,
	.close = simqp_close,
	.deafen = simqp_deafen,
	.resolve = simqp_resolve,
	.create = simqp_create,
	.connect = simqp_connect,
	.accept = simqp_accept,
	.reject = simqp_reject,
	.disconnect = simqp_disconnect,
	.destroy = simqp_destroy,
	.post_recv = simqp_post_recv,
	.post_send = simqp_post_send,
	.reg = simqp_reg,
	.dereg = simqp_dereg,
};

const struct ib_verbs *simqp_verbs(void)
{
	return &verbs;
}

int simqp_fabric_new(struct env_sim *world, const struct simqp_conf *conf,
		     struct simqp_fabric **fabric_p)
{
	return simqp_fabric_make(&verbs, world, conf, fabric_p);
}
