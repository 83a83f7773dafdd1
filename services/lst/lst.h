/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LNet's self-test on a node: answers the consoles of lst(8), ulnet's and
 * kernels', as a member of groups that are sent to ("to") and that send
 * ("from"). This is all that programs see of it.
 *
 * What strangers can make it keep is bounded: one session, and those that end;
 * LST_TESTS_MAX tests of it; LST_UNITS_MAX units of tests with LST_UNIT_BYTES
 * of bulk data for the node; on each CPT LST_SLOTS requests of each kind that
 * are being served, with LNET_MTU bytes each at most. What goes beyond is
 * answered with ENOMEM, or waits in LNet, where each peer has its share
 * (LNetSetLazyPortal(3)). A session that its console has left ends a while
 * after the last request, and frees what it has.
 *
 * Nothing in the protocol tells a console from a stranger: who may be one is a
 * matter of NIDs, of the very one that a request came from.
 */
#ifndef SERVICES_LST_LST_H
#define SERVICES_LST_LST_H

#include <ulnet/loop.h>

#define LST_SESSION_S  100
#define LST_RPC_S      64
#define LST_TESTS_MAX  1024 /* of a session, and as many batches */
#define LST_UNITS_MAX  16384
#define LST_UNIT_BYTES (UINT64_C(256) << 20)
#define LST_SLOTS      64

struct lst;

/* 0 is the usual value of each. */
struct lst_conf {
	/* Who may be a console, and so make this node serve and send; others
	 * are answered with EACCES, and tests of others with ESRCH unless there
	 * is a session. NULL: anybody may, and tests are always answered. */
	const struct ulnet_nidlist *consoles;
	uint32_t session_s; /* LST_SESSION_S: it ends after so much silence */
	uint32_t rpc_s;	    /* LST_RPC_S: a destination has to answer */
};

/*
 * Serves on @node from now on, until lnet_close() or, in the simulator, a
 * crash. On error, too, *@lst_p is to be freed with lst_free() when the node is
 * gone, unless it was left alone. A thread that runs no loop, or the one that
 * drives the node. -ENOMEM, or what LNetMEAttach(3) says. @conf NULL: all is as
 * usual; its list is borrowed until lst_free().
 */
int lst_open(struct lnet *node, const struct lst_conf *conf,
	     struct lst **lst_p);
/* NULL is fine. */
void lst_free(struct lst *lst);

#endif
