/* SPDX-License-Identifier: BSD-3-Clause */
/* Pings that are waited for, and the waiting that can be ended. */
#ifndef CONFIG_PING_H
#define CONFIG_PING_H

#include <pthread.h>
#include "config/scope.h"
#include "ulnet/lnet.h"

#define PING_TIMEOUT	 UINT64_C(1000000) /* us, of a ping that says none */
#define PING_TIMEOUT_MAX 3600		   /* s */

struct pings;

/* By which one thread ends what another one waits for. Whoever waits owns
 * it. */
struct cancel {
	pthread_mutex_t lock;
	bool canceled;
	struct pings *waiting; /* for these; NULL: for nothing */
};

void cancel_init(struct cancel *c);
void cancel_fini(struct cancel *c);
/* Any thread. What is waited for now or later ends at once. */
void cancel_now(struct cancel *c);

/*
 * Pings all of @nids, a list of texts, at the same time, and adds the results
 * to the mapping @out and the failures to the scope's answer, in the order of
 * the list. @timeout: us, for each. @cancel may be NULL.
 */
int ping_all(struct lnet *node, const struct scope *s, const struct tree *nids,
	     uint64_t timeout, struct cancel *cancel);

#endif
