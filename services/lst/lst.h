/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LNet's self-test on a node: answers consoles, which are lst(8) of ulnet or of
 * a kernel, and takes part in their tests as a client or as a server.
 *
 * What a console can make a node keep is bounded: one session, and sessions
 * that are ending; LST_TESTS_MAX tests and as many batches in a session;
 * LST_UNITS_MAX units of tests (session.c) and LST_UNIT_BYTES of their bulk
 * data on the node; on each CPT LST_SLOTS requests of each kind that are being
 * served, with at most LNET_MTU bytes each, which are freed when the slot was
 * idle for a second or two. Beyond that the answer is ENOMEM, or requests wait
 * in LNet, where each peer has its share (LNetSetLazyPortal(3)). A session ends
 * if no request of its console that is not refused comes for session_s.
 *
 * Slots have no shares of hosts. A host that lets the service wait for bulk
 * data holds a slot for half a minute (BULK_US of slot.c), and one that does
 * so in all slots of a CPT keeps the tests of others waiting meanwhile, for as
 * long as it goes on. Framework requests have slots of their own, so that a
 * console can always end the session; and with a list of consoles tests are
 * only served during a session. A share could not be kept by making the host
 * wait, because a request that is seen has its slot already. It would have to
 * be refused, which is an error of the test, although a single client may well
 * use all slots: tests are there to find out what a server can do.
 *
 * The protocol has no credentials: consoles are known by the NID that a request
 * came from, and by nothing else.
 */
#ifndef SERVICES_LST_LST_H
#define SERVICES_LST_LST_H

#include <ulnet/loop.h>

#define LST_SESSION_S 100
#define LST_RPC_S     64
/* tests in a session; the same limit holds for batches */
#define LST_TESTS_MAX  1024
#define LST_UNITS_MAX  16384
#define LST_UNIT_BYTES (UINT64_C(256) << 20)
#define LST_SLOTS      64

struct lst;

/* A value of 0 means the default. */
struct lst_conf {
	/* The NIDs of nodes that may be consoles, and so make this node serve
	 * and send. A framework request from any other NID is answered with
	 * EACCES, and a request of a test with ESRCH unless there is a session.
	 * NULL: any node may be a console, and tests are always served. */
	const struct ulnet_nidlist *consoles;
	/* s without a request of its console after which a session ends;
	 * default: LST_SESSION_S */
	uint32_t session_s;
	/* s in which a destination of a test has to answer; default: LST_RPC_S
	 */
	uint32_t rpc_s;
};

/*
 * Serves on @node from now on. When the node is gone, after lnet_close() or, in
 * the simulator, a crash, the caller frees *@lst_p by lst_free(). That is so
 * even if this function has returned an error, unless *@lst_p was left
 * unchanged. @conf: NULL: defaults; its list is borrowed until lst_free().
 * Returns 0; -ENOMEM; or an error of LNetMEAttach(3). Thread: one that runs no
 * loop, or, with LNET_RUN_POLL, the one that calls lnet_poll().
 */
int lst_open(struct lnet *node, const struct lst_conf *conf,
	     struct lst **lst_p);
/* @lst may be NULL. */
void lst_free(struct lst *lst);

#endif
