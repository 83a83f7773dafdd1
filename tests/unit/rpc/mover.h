/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A method that moves bulk between memory of its service and memory that its
 * caller lends, for tests of what becomes of bulk on a bad network. Client and
 * service are both real.
 */
#ifndef TESTS_MOVER_H
#define TESTS_MOVER_H

#include "tests/unit/rpc/serve_rig.h"

enum move { MOVE_NOTHING, MOVE_GET, MOVE_PUT };

#define MOVER_AT_ONCE 16 /* requests */

struct mover {
	struct lnet_sim *sim;
	enum move move;	  /* what requests do from now on */
	uint32_t length;  /* of each memory */
	uint32_t segment; /* bytes of each of the caller's segments; 0: the
			   * most that one can have */
	uint8_t *own, *lent;
	unsigned int runs;  /* of the handler */
	unsigned int ended; /* moves, and the status of the last one */
	int status;
	struct moving {
		struct mover *m;
		struct ulrpc_request *r;
	} moving[MOVER_AT_ONCE];
};

void mover_init(struct mover *m, struct lnet_sim *sim, uint32_t length);
void mover_fini(struct mover *m);

/* Returns the method "move", whose handler does what m->move says, and then
 * answers the request: with the error, if there was one. */
struct ulrpc_method_conf mover_method(struct mover *m);
/* Does what the handler does for @r, a request of another method. */
void mover_go(struct mover *m, struct ulrpc_request *r);

/* Fills both memories, differently, and with other bytes for each @n. */
void mover_fill(struct mover *m, unsigned int n);
bool mover_is_done(const struct mover *m);
/* Lends the caller's memory for what m->move says. */
struct ulrpc_bulk *mover_lend(const struct mover *m, struct ulrpc *rpc);

/* ---- with the nodes of a serve_rig ---- */

/* Opens nodes with such links, a service with the method alone, and its
 * client. */
void mover_open(struct mover *m, struct serve_rig *g, uint64_t seed,
		uint32_t length, const struct ulnet_sim_link *link);
void mover_close(struct mover *m, struct serve_rig *g);
/* Calls the method, with what mover_lend() lends, unless nothing is to be
 * moved. Returns the bulk, or NULL. @deadline: us. */
struct ulrpc_bulk *mover_call(struct mover *m, struct serve_rig *g,
			      uint64_t deadline, struct called *c);

#endif
