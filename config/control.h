/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node under control, and its control socket, which takes requests, gives
 * answers, and lets no client hurt another one. Places and memory are shared by
 * user (the system says which one a client is of): one with many clients, long
 * requests or long answers leaves room for others. The socket's file is made so
 * that at no time somebody else may use it.
 */
#ifndef CONFIG_CONTROL_H
#define CONFIG_CONTROL_H

#include "config/request/request.h"

/* The line that ends a request, and an answer. */
#define DOCUMENT_END "...\n"

/* lnet_control_request() of a client, who can be stopped from waiting. */
int control_request(struct lnet_control *control, const char *request,
		    size_t len, struct cancel *cancel,
		    char **answer_p) must_check;

/* ---- the socket: server.c, which knows nothing of what requests say ---- */

/* A file on which nobody listens is replaced. -EADDRINUSE: somebody does;
 * -ENOTSOCK: the file is no socket; -ENAMETOOLONG; -EINVAL: there is no such
 * group, or no path; what the file system says. */
int server_start(struct lnet_control *control,
		 const struct ulnet_control_conf *conf,
		 struct server **server_p) must_check;
/* Ends all clients, waits for their threads, and removes the file if it is
 * still the socket's own. */
void server_stop(struct server *server);

#endif
