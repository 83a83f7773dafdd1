/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to peers that are waited for, pings and discoveries, and the
 * waiting that can be ended. */
#ifndef CONFIG_REQUEST_INQUIRY_H
#define CONFIG_REQUEST_INQUIRY_H

#include <pthread.h>

#include "config/yaml/scope.h"
#include "ulnet/lnet.h"

struct inquiries;

/* For one thread to end what another one waits for. The one that waits owns
 * it. */
struct cancel {
	pthread_mutex_t lock;
	bool canceled;
	struct inquiries *waiting; /* for these; NULL: for nothing */
};

void cancel_init(struct cancel *c);
void cancel_fini(struct cancel *c);
/* Any thread. What is waited for now or later ends at once. */
void cancel_now(struct cancel *c);

enum inquiry_kind { INQUIRY_PING, INQUIRY_DISCOVER };

struct inquiry {
	enum inquiry_kind kind;
	const struct tree *nids; /* a list of texts */
	uint64_t timeout;	 /* us, for each */
	struct ulnet_nid source; /* PING: from there; ANY: from anywhere */
	bool force;		 /* DISCOVER: even if it is up to date */
};

/*
 * Reads what is to be asked out of @args, a mapping: "nids", "timeout" in
 * seconds, "source", "force"; or one item of what ping and discover print, or
 * one NID. Borrows from @args.
 */
int inquiry_read(const struct scope *s, const struct tree *args,
		 enum inquiry_kind kind, struct inquiry *q) must_check;

/*
 * Asks all of the NIDs at the same time, and adds the results to the output of
 * the scope's answer and the failures to its errors, in the order of the list.
 * @cancel may be NULL. Returns the first failure.
 */
int inquire(struct lnet *node, const struct scope *s, const struct inquiry *q,
	    struct cancel *cancel);

#endif
