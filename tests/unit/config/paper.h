/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An LND made of paper, whose interfaces are eth0 to eth7, and which loses what
 * is sent to 10.77.0.97 and refuses what is sent to anybody else.
 */
#ifndef TESTS_CONFIG_PAPER_H
#define TESTS_CONFIG_PAPER_H

#include <errno.h>
#include <string.h>
#include "lnd/lnd.h"
#include "lnet/node/node.h"

/* Last byte of the address; -1: of all. */
static int paper_loses = 97;

struct paper_cpt {
	struct lnd_ni *ni;
	unsigned int index;
	struct list sends; /* lnd_msg.link */
	struct work work;
	bool scheduled, stopped;
};

static void paper_run(struct work *w)
{
	struct paper_cpt *pc = container_of(w, struct paper_cpt, work);

	pc->scheduled = false;
	if (pc->stopped) {
		lnet_ni_stopped(pc->ni, pc->index);
		return;
	}
	while (!pc->stopped && !list_empty(&pc->sends)) {
		struct lnd_msg *msg =
			list_first(&pc->sends, struct lnd_msg, link);

		list_del(&msg->link);
		lnet_finalize(msg, 0, LNET_CAUSE_OK);
	}
}

static int paper_startup(struct lnd_ni *ni)
{
	struct paper_cpt *pc = calloc(ni->cpts, sizeof(*pc));

	if (!pc)
		return -ENOMEM;
	for (unsigned int i = 0; i < ni->cpts; i++) {
		pc[i].ni = ni;
		pc[i].index = i;
		pc[i].work.fn = paper_run;
		list_init(&pc[i].sends);
	}
	ni->priv = pc;
	return 0;
}

static void paper_shutdown(struct lnd_ni *ni, unsigned int cpt)
{
	struct paper_cpt *pc = &((struct paper_cpt *)ni->priv)[cpt];

	pc->stopped = true;
	while (!list_empty(&pc->sends)) {
		struct lnd_msg *msg =
			list_first(&pc->sends, struct lnd_msg, link);

		list_del(&msg->link);
		lnet_finalize(msg, -ESHUTDOWN, LNET_CAUSE_LOCAL_ABORTED);
	}
	if (!pc->scheduled)
		lnet_ni_stopped(ni, cpt);
}

static void paper_free(struct lnd_ni *ni)
{
	free(ni->priv);
}

static int paper_send(struct lnd_ni *ni, struct lnd_msg *msg)
{
	struct paper_cpt *pc = &((struct paper_cpt *)ni->priv)[msg->cpt];

	if (paper_loses >= 0 && msg->next_hop.addr[3] != paper_loses)
		return -EHOSTUNREACH;
	list_add_tail(&pc->sends, &msg->link);
	if (!pc->scheduled) {
		pc->scheduled = true;
		loop_defer(ni->loops[msg->cpt], &pc->work);
	}
	return 0;
}

static void paper_recv(struct lnd_ni *ni, void *rx, struct lnd_msg *msg,
		       uint32_t rlength)
{
	(void)ni;
	(void)rx;
	(void)msg;
	(void)rlength;
	abort(); /* nobody sends */
}

static void paper_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status)
{
	(void)ni;
	list_del(&msg->link);
	lnet_finalize(msg, status, LNET_CAUSE_LOCAL_TIMEOUT);
}

/* eth0 is 10.77.0.2, eth1 10.77.0.3; none has no address. */
static int paper_resolve(const char *interface, struct ulnet_nid *nid,
			 char name[LNET_INTERFACE_SIZE])
{
	if (!interface) {
		snprintf(name, LNET_INTERFACE_SIZE, "eth%d", nid->addr[3] - 2);
		return nid->addr[3] < 2 || nid->addr[3] > 9 ? -EADDRNOTAVAIL
							    : 0;
	}
	if (!strcmp(interface, "none"))
		return -EADDRNOTAVAIL;
	if (strncmp(interface, "eth", 3) || interface[3] < '0' ||
	    interface[3] > '7' || interface[4])
		return -ENODEV;
	*nid = lnet_nid_make(lnet_nid_net(nid),
			     0x0a4d0002u + (uint32_t)(interface[3] - '0'));
	strcpy(name, interface);
	return 0;
}

static const struct lnd_tunable paper_tunables[] = {
	{ "conns_per_peer", "", "connections", 1, 127, 1 },
	{ "tos", "", "type of service", -1, 255, -1 },
	{ "nagle", "", "wait for more", 0, 1, 0 },
};

static const struct lnd paper = {
	.name = "paper",
	.type = -1,
	.tunables = paper_tunables,
	.ntunables = ARRAY_SIZE(paper_tunables),
	.resolve = paper_resolve,
	.startup = paper_startup,
	.shutdown = paper_shutdown,
	.free = paper_free,
	.send = paper_send,
	.recv = paper_recv,
	.cancel = paper_cancel,
};

#endif
