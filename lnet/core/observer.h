/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens inside a node, for those who check it: the simulator. A node
 * without an observer pays one test for each call.
 */
#ifndef LNET_OBSERVER_H
#define LNET_OBSERVER_H

#include "ulnet/lnet.h"

struct lnd_msg;
struct lnd_ni;

struct lnet_observer {
	/* An operation began: its id on the wire, its deadline (ns). May mark
	 * its request: @req->mark. */
	void (*begin)(void *arg, struct lnet *node, uint64_t op,
		      struct lnd_msg *req, uint64_t deadline);
	/* An event is about to be delivered; @op: of which operation, or 0. */
	void (*event)(void *arg, struct lnet *node, uint64_t op,
		      const struct ulnet_event *ev);
	/* A PUT or GET, known to the LND of @ni as @rx, has found its MD. */
	void (*accepted)(void *arg, struct lnet *node, struct lnd_ni *ni,
			 void *rx);
	/* A message for others, known to the LND of @ni as @rx, is passed on as
	 * @msg from now on, which takes the mark; and @msg ends. */
	void (*forward)(void *arg, struct lnet *node, struct lnd_ni *ni,
			void *rx, struct lnd_msg *msg);
	void (*forwarded)(void *arg, struct lnet *node, struct lnd_msg *msg);
	/* The node is closed, and @n @what were never freed. */
	void (*leaked)(void *arg, struct lnet *node, const char *what,
		       uint32_t n);
	void *arg;
};

#endif
