/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that wait until their peer is discovered. This room knows nothing of
 * discovery but whether a message has to wait for it. Messages that wait hold
 * neither credits nor a path.
 *
 * A message waits for as long as one try may take, a part of the time that it
 * has, and then goes to the NID that it names. So a peer that does not answer
 * costs it no more than a path that fails.
 */
#ifndef LNET_AWAIT_H
#define LNET_AWAIT_H

#include <stdbool.h>

struct list;
struct lnet_msg;

struct msg_discovery {
	/* @msg, which has no path yet, is about to be sent. True: it waits,
	 * msg_await() was called. On the CPT that owns its target. */
	bool (*waits)(struct lnet_msg *msg);
};

/* Shall the message wait? Then it does. */
bool msg_awaits(struct lnet_msg *msg);

/* @msg, which is new, joins @waiting. */
void msg_await(struct lnet_msg *msg, struct list *waiting);
/* It has waited long enough. */
void await_late(struct lnet_msg *msg);
/* All of @waiting are sent. */
void await_over(struct list *waiting);

#endif
