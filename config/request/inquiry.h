/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that ask peers and wait for the answers: "ping" and "discover". */
#ifndef CONFIG_REQUEST_INQUIRY_H
#define CONFIG_REQUEST_INQUIRY_H

#include <pthread.h>

#include "config/yaml/scope.h"
#include "ulnet/lnet.h"

struct inquiries;

/* Belongs to a thread that calls inquire(): with it any thread can end that
 * thread's wait. */
struct cancel {
	pthread_mutex_t lock;
	bool canceled;
	struct inquiries *waiting; /* what is waited for, or NULL */
};

void cancel_init(struct cancel *c);
void cancel_fini(struct cancel *c);
/* May be called by any thread. Ends at once the wait of the owner that is under
 * way, or its next one. */
void cancel_now(struct cancel *c);

enum inquiry_kind { INQUIRY_PING, INQUIRY_DISCOVER };

/*
 * Pings or discovers all NIDs in @args at the same time, and waits for the
 * answers. @args is a mapping with "nids", "timeout" in seconds, "source" and
 * "force"; or an item that ping or discover has printed; or one NID. Adds
 * results to the output of the scope's answer, and failures to its errors, in
 * the order of the NIDs. @cancel may be NULL. Returns the first failure.
 */
int inquire(struct lnet *node, const struct scope *s, const struct tree *args,
	    enum inquiry_kind kind, struct cancel *cancel);

#endif
