/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node's configuration: its defaults, and what makes sense.
 */
#include <errno.h>

#include "lnet/core/setting.h"
#include "lnet/node/node.h"

#define ACCEPT_PORT 988
/* What net.core.somaxconn is, and cuts it down to if that is less. */
#define ACCEPT_BACKLOG	    4096
#define ACCEPT_MAX	    1024
#define ACCEPT_TIMEOUT_USEC (5 * USEC_PER_SEC)

#define USEC_PER_SEC UINT64_C(1000000)
#define TIMEOUT_MAX  (TIMEOUT_MAX_SEC * USEC_PER_SEC)

/* Ports that only privileged processes get. */
#define PRIVILEGED_PORTS 1024

#define DEFAULT(field, value)              \
	do {                               \
		if (!(field))              \
			(field) = (value); \
	} while (0)

static void conf_defaults(struct ulnet_conf *c)
{
	DEFAULT(c->cpts, 1);
	DEFAULT(c->transaction_timeout, 50 * USEC_PER_SEC);
	DEFAULT(c->peers_max, 100000);
	DEFAULT(c->messages_max, 65536);
	DEFAULT(c->lazy_max, 4096);
	DEFAULT(c->lazy_bytes_max, UINT64_C(64) << 20);
	DEFAULT(c->discovery, LNET_DISCOVERY_ON);
	DEFAULT(c->interfaces_max, 200);
	DEFAULT(c->port, ACCEPT_PORT);
	DEFAULT(c->accept_backlog, ACCEPT_BACKLOG);
	DEFAULT(c->accept_max, ACCEPT_MAX);
	DEFAULT(c->accept_timeout, ACCEPT_TIMEOUT_USEC);
}

void lnet_conf_init(struct ulnet_conf *conf)
{
	*conf = (struct ulnet_conf){ 0 };
	conf_defaults(conf);
}

static int accept_conf_check(const struct ulnet_conf *c)
{
	if (c->accept > LNET_ACCEPT_NONE)
		return -EINVAL;
	/* No node connects to a process whose pid has this flag. */
	if (c->accept != LNET_ACCEPT_NONE && c->pid & LNET_PID_USERFLAG)
		return -EINVAL;
	if (c->accept_backlog > INT32_MAX || c->accept_max > INT32_MAX ||
	    c->accept_timeout > TIMEOUT_MAX)
		return -EINVAL;
	return 0;
}

static int conf_check(const struct ulnet_conf *c)
{
	if (c->cpts > LNET_CPTS_MAX)
		return -EINVAL;
	if (c->run > LNET_RUN_EV || (c->run != LNET_RUN_THREADS && c->cpts > 1))
		return -EINVAL;
	if ((c->run == LNET_RUN_EV) != (c->ev != NULL))
		return -EINVAL;
	if (c->transaction_timeout > TIMEOUT_MAX ||
	    (unsigned int)c->discovery > LNET_DISCOVERY_VERIFY ||
	    c->interfaces_max > INTERFACES_LIMIT || c->pid == LNET_PID_ANY)
		return -EINVAL;
	return accept_conf_check(c);
}

int node_conf_fill(struct ulnet_conf *c)
{
	conf_defaults(c);
	if (c->accept == LNET_ACCEPT_DEFAULT)
		c->accept = c->port < PRIVILEGED_PORTS ? LNET_ACCEPT_SECURE
						       : LNET_ACCEPT_ALL;
	return conf_check(c);
}
