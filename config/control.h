/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket of a node, which takes requests and sends answers. Each
 * user, as the system tells it, has a share of the connections and of the
 * memory, so that a user with many clients, long requests or long answers
 * leaves room for others. A user who must not use the socket cannot open its
 * file at any time, not even while the file is being made.
 */
#ifndef CONFIG_CONTROL_H
#define CONFIG_CONTROL_H

#include "config/request/request.h"

/* The line that ends a request, and an answer. */
#define DOCUMENT_END "...\n"

/* What one side of a connection has received. */
struct received {
	char *buf;
	size_t len, room;
	/* For document_length(): */
	size_t seen; /* bytes that were searched */
	size_t line; /* where the line at @seen begins */
};

/* Returns the length of the first document in @r, including its last line,
 * which begins at r->line; 0: the document is not complete. */
size_t document_length(struct received *r);

/* As lnet_control_request(), but cancel_now(@cancel) ends its waiting. */
int control_request(struct lnet_control *control, const char *request,
		    size_t len, struct cancel *cancel,
		    char **answer_p) must_check;

/* ---- the socket: server.c ---- */

/* Replaces a socket on which nobody listens. -EADDRINUSE: somebody does;
 * -ENOTSOCK: the file is no socket; -ENAMETOOLONG; -EINVAL: there is no such
 * group, or no path; errors of the file system. */
int server_start(struct lnet_control *control,
		 const struct ulnet_control_conf *conf,
		 struct server **server_p) must_check;
/* Disconnects all clients, waits for their threads, and removes the file unless
 * it has been replaced. */
void server_stop(struct server *server);

#endif
