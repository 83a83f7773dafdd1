/* SPDX-License-Identifier: BSD-3-Clause */
/* ulrpc_bulk_close_wait(3). Any thread. */
#include <errno.h>

#include "rpc/bulk/bulk_priv.h"

struct closing {
	struct wait wait;
	bool released;
};

static void closing_on_released(void *arg)
{
	struct closing *c = arg;

	pthread_mutex_lock(&c->wait.lock);
	c->released = true;
	wait_wake(&c->wait);
	pthread_mutex_unlock(&c->wait.lock);
}

static bool closing_ready(void *arg)
{
	return ((struct closing *)arg)->released;
}

int ulrpc_bulk_close_wait(struct ulrpc_bulk *bulk)
{
	struct closing c = { .released = false };
	struct lnet *node;
	int rc;

	if (lnet_in_turn())
		return -EDEADLK;
	/* RPC may be closed already if nothing uses the memory. */
	if (!bulk || atomic_load(&bulk->refs) == 1) {
		ulrpc_bulk_close(bulk, NULL, NULL);
		return 0;
	}
	rc = wait_init(&c.wait);
	if (rc)
		return rc;
	node = bulk->rpc->node;
	ulrpc_bulk_close(bulk, closing_on_released, &c);
	/* If this node has crashed in the simulator, nobody uses the memory, or
	 * @c, any more. */
	rc = wait_until(&c.wait, node, closing_ready, &c, TIME_NEVER);
	wait_fini(&c.wait);
	return rc;
}
