/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LNet's self-test on a node: answers the consoles of lst(8), ulnet's and
 * kernels', and takes part in their tests, as one that sends or is sent to.
 *
 * What consoles can make it keep is bounded: one session, and those that are
 * ending; LST_TESTS_MAX tests of a session; on the node LST_UNITS_MAX units of
 * tests with LST_UNIT_BYTES of bulk data; on each CPT LST_SLOTS requests of
 * each kind that are being served, with at most LNET_MTU bytes each. Beyond
 * that the answer is ENOMEM, or requests wait in LNet, where each peer has its
 * share (LNetSetLazyPortal(3)). A session ends session_s after the last request
 * of its console.
 *
 * The protocol has no credentials: consoles are known by the NID that a request
 * came from, and by nothing else.
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

/* A value that is 0 means its default. */
struct lst_conf {
	/* Who may be a console, and so make this node serve and send; others
	 * are answered with EACCES, and tests of others with ESRCH unless there
	 * is a session. NULL: anybody may, and tests are always answered. */
	const struct ulnet_nidlist *consoles;
	uint32_t session_s; /* LST_SESSION_S: without requests, it ends */
	uint32_t rpc_s;	    /* LST_RPC_S: by then a destination must answer */
};

/*
 * Serves on @node from now on, until the node is gone: after lnet_close() or,
 * in the simulator, a crash. Then the caller gives *@lst_p to lst_free(), also
 * if this failed, unless it left *@lst_p alone. -ENOMEM, or an error of
 * LNetMEAttach(3). @conf NULL: defaults; its list is borrowed until lst_free().
 * Thread: one that runs no loop, or the one that drives the node.
 */
int lst_open(struct lnet *node, const struct lst_conf *conf,
	     struct lst **lst_p);
/* NULL is fine. */
void lst_free(struct lst *lst);

#endif
