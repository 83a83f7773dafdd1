/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that ask peers and wait for the answers: "ping" and "discover". */
#ifndef CONFIG_REQUEST_INQUIRY_H
#define CONFIG_REQUEST_INQUIRY_H

#include <pthread.h>
#include <stdatomic.h>

#include "config/yaml/scope.h"
#include "ulnet/lnet.h"

/* A thread that carries out requests has one: by it, any thread can end the
 * work on a request whose answer nobody wants any more. */
struct cancel {
	pthread_mutex_t lock;
	atomic_bool canceled;
	/* the node is being closed, so changes need not be undone */
	atomic_bool at_end;
	/* ends the wait that is under way; NULL: none is */
	void (*wake)(void *arg);
	void *arg;
};

void cancel_init(struct cancel *c);
void cancel_fini(struct cancel *c);
/* May be called by any thread. Ends at once the wait of the owner that is under
 * way, and all later ones. */
void cancel_now(struct cancel *c);
/* Must the owner stop? If @c is NULL: never. */
static inline bool cancel_is_due(struct cancel *c)
{
	return c && atomic_load(&c->canceled);
}
/* To be called by the owner when it begins to wait: @wake(@arg) ends the wait.
 * With @wake NULL: when it has stopped waiting. @wake is called at once if
 * cancel_now() was called before. */
void cancel_watch(struct cancel *c, void (*wake)(void *arg), void *arg);

enum inquiry_kind { INQUIRY_PING, INQUIRY_DISCOVER };

/*
 * Pings or discovers all NIDs in @args at the same time, and waits for the
 * answers. @args is a mapping with "nids", "timeout" in seconds, "source" and
 * "force"; or an item that ping or discover has printed; or one NID. An item of
 * "nids" is a text, or a mapping with "nid" and "port", at which the node then
 * connects, until the wait ends. Adds
 * results to the output of the scope's answer, and failures to its errors, in
 * the order of the NIDs. @cancel may be NULL. Returns the first failure.
 */
int inquire(struct lnet *node, const struct scope *s, const struct tree *args,
	    enum inquiry_kind kind, struct cancel *cancel);

#endif
