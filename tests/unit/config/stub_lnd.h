/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stub LND. Its interfaces are eth0 to eth7. It loses messages to 10.77.0.97,
 * and refuses messages to any other address.
 */
#ifndef TESTS_CONFIG_STUB_LND_H
#define TESTS_CONFIG_STUB_LND_H

#include <errno.h>
#include <string.h>
#include "lnd/lnd.h"
#include "lnet/node/node.h"

/* last byte of the address whose messages are lost; -1: those to any address */
static int stub_lnd_loses = 97;

struct stub_lnd_cpt {
	struct lnd_ni *ni;
	unsigned int index;
	struct list sends; /* lnd_msg.link */
	struct work work;
	bool scheduled, stopped;
};

static void stub_lnd_run(struct work *w)
{
	struct stub_lnd_cpt *pc = container_of(w, struct stub_lnd_cpt, work);

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

static int stub_lnd_startup(struct lnd_ni *ni)
{
	struct stub_lnd_cpt *pc = calloc(ni->cpts, sizeof(*pc));

	if (!pc)
		return -ENOMEM;
	for (unsigned int i = 0; i < ni->cpts; i++) {
		pc[i].ni = ni;
		pc[i].index = i;
		pc[i].work.fn = stub_lnd_run;
		list_init(&pc[i].sends);
	}
	ni->priv = pc;
	return 0;
}

static void stub_lnd_shutdown(struct lnd_ni *ni, unsigned int cpt)
{
	struct stub_lnd_cpt *pc = &((struct stub_lnd_cpt *)ni->priv)[cpt];

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

static void stub_lnd_free(struct lnd_ni *ni)
{
	free(ni->priv);
}

static int stub_lnd_send(struct lnd_ni *ni, struct lnd_msg *msg)
{
	struct stub_lnd_cpt *pc = &((struct stub_lnd_cpt *)ni->priv)[msg->cpt];

	if (stub_lnd_loses >= 0 && msg->next_hop.addr[3] != stub_lnd_loses)
		return -EHOSTUNREACH;
	list_add_tail(&pc->sends, &msg->link);
	if (!pc->scheduled) {
		pc->scheduled = true;
		loop_defer(ni->loops[msg->cpt], &pc->work);
	}
	return 0;
}

static void stub_lnd_recv(struct lnd_ni *ni, void *rx, struct lnd_msg *msg,
			  uint32_t rlength)
{
	(void)ni;
	(void)rx;
	(void)msg;
	(void)rlength;
	abort(); /* no message ever comes */
}

static void stub_lnd_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status)
{
	(void)ni;
	list_del(&msg->link);
	lnet_finalize(msg, status, LNET_CAUSE_LOCAL_TIMEOUT);
}

/* eth0 has address 10.77.0.2, eth1 10.77.0.3, and so on; interface "none" has
 * no address. */
static int stub_lnd_resolve(const char *interface, struct ulnet_nid *nid,
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

static const struct lnd_tunable stub_lnd_tunables[] = {
	{ "conns_per_peer", "", "connections", 1, 127, 1 },
	{ "tos", "", "type of service", -1, 255, -1 },
	{ "nagle", "", "wait for more", 0, 1, 0 },
};

static const struct lnd stub_lnd = {
	.name = "stub",
	.type = -1,
	.tunables = stub_lnd_tunables,
	.ntunables = ARRAY_SIZE(stub_lnd_tunables),
	.resolve = stub_lnd_resolve,
	.startup = stub_lnd_startup,
	.shutdown = stub_lnd_shutdown,
	.free = stub_lnd_free,
	.send = stub_lnd_send,
	.recv = stub_lnd_recv,
	.cancel = stub_lnd_cancel,
};

#endif
