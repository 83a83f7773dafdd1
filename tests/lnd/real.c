/* SPDX-License-Identifier: BSD-3-Clause */
/* The rig of LNDs that run in real time: two nodes in one process. */
#include "tests/lnd/conformance.h"

#include <errno.h>
#include <unistd.h>

#include "lnet/node/node.h"
#include "tests/all_memory.h"
#include "tests/port.h"

#define ROUNDS 16
#define PAUSE  50 /* us */

static int node_up(struct lnd_rig *rig, unsigned int i)
{
	const struct real_net *net = rig->arg;
	struct ulnet_ni_conf ni = { 0 };
	struct ulnet_conf conf;
	int rc;

	lnet_conf_init(&conf);
	/* nothing is sent that a test has not sent */
	conf.discovery = LNET_DISCOVERY_OFF;
	conf.run = net->run;
	conf.cpts = net->cpts;
	conf.transaction_timeout = (rig->hasty ? 2 : 60) * 1000000;
	conf.port = rig->port;
	if (net->tune)
		net->tune(&conf, rig->hasty);
	rc = lnet_open(&conf, &rig->node[i]);
	if (rc)
		return rc;
	rig->nid[i] = LNET_NID_LO;
	if (net->registered)
		BUG_ON(heap_register(rig->node[i]));
	if (!net->nids[i])
		return 0;
	ni.tunables = rig->hasty && net->hasty ? net->hasty : net->tunables;
	ni.ntunables = net->ntunables;
	rig->tunables = ni.tunables;
	rig->ntunables = ni.ntunables;
	rc = lnet_nid_parse(net->nids[i], &ni.nid);
	if (!rc)
		rc = lnet_ni_add(rig->node[i], &ni);
	if (rc) {
		lnet_close(rig->node[i]);
		rig->node[i] = NULL;
		return rc;
	}
	rig->nid[i] = ni.nid;
	return 0;
}

static int real_up(struct lnd_rig *rig)
{
	const struct real_net *net = rig->arg;
	int rc = net->may_run ? net->may_run(&rig->why) : 0;

	rig->absent = LNET_NID_ANY;
	rig->port = net->port ? free_port() : 0;
	if (net->port && !rig->port)
		return -EADDRINUSE;
	if (!rc && net->absent)
		rc = lnet_nid_parse(net->absent, &rig->absent);
	if (!rc)
		rc = node_up(rig, 0);
	if (rc || rig->can & RIG_ONE_NODE)
		return rc;
	rc = node_up(rig, 1);
	if (rc)
		lnet_close(rig->node[0]);
	return rc;
}

static unsigned int real_down(struct lnd_rig *rig)
{
	lnet_close(rig->node[0]);
	if (!(rig->can & RIG_ONE_NODE))
		lnet_close(rig->node[1]);
	return 0;
}

static void real_run(struct lnd_rig *rig, uint64_t us)
{
	const struct real_net *net = rig->arg;

	for (unsigned int i = 0; net->run == LNET_RUN_POLL && i < ROUNDS; i++) {
		lnet_poll(rig->node[0], 0);
		if (rig->node[1] && !(rig->can & RIG_ONE_NODE))
			lnet_poll(rig->node[1], 0);
	}
	if (us)
		usleep(MIN(us, PAUSE));
}

static int real_kill(struct lnd_rig *rig)
{
	node_crash(rig->node[1]);
	rig->node[1] = NULL;
	return 0;
}

static int real_restart(struct lnd_rig *rig)
{
	return node_up(rig, 1);
}

const struct lnd_rig_ops real_ops = {
	.up = real_up,
	.down = real_down,
	.run = real_run,
	.kill_peer = real_kill,
	.restart_peer = real_restart,
};
