/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node under control, as the files of config/ see it.
 */
#ifndef CONFIG_CONTROL_H
#define CONFIG_CONTROL_H

#include <pthread.h>
#include "config/inquiry.h"
#include "config/tree.h"
#include "ulnet/control.h"

#define REQUEST_MAX ((size_t)4 << 20)  /* bytes */
#define ANSWER_MAX  ((size_t)64 << 20) /* bytes */

/* Of what users send; and of answers, which are the node's own. */
extern const struct tree_limits request_limits, answer_limits;

struct server;

struct lnet_control {
	struct lnet *node;     /* immutable */
	struct server *server; /* immutable; NULL: no socket */
	pthread_mutex_t lock;  /* for what follows, and for changes of the
				* node's configuration: one at a time */
	bool down;	       /* "lnet unconfigure" was last */
	char *start;	       /* what "lnet configure --all" brings back */

	pthread_mutex_t programs_lock; /* for what follows; held for moments */
	struct list programs;	       /* commands of the program's own */
	pthread_cond_t left;	       /* nobody runs one of them any more */
};

/* lnet_control_request() of a client, who can be stopped from waiting. */
int control_request(struct lnet_control *control, const char *request,
		    size_t len, struct cancel *cancel,
		    char **answer_p) must_check;

#endif
