/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: takes requests, gives answers, and lets no client hurt
 * another one. Places and memory are shared by user (the system says which one
 * a client is of): one with many clients, long requests or long answers leaves
 * room for others. Knows nothing of what they say.
 */
#ifndef CONFIG_SERVER_H
#define CONFIG_SERVER_H

#include "config/control.h"

struct server;

/* The line that ends a request, and an answer. */
#define DOCUMENT_END "...\n"

int server_start(struct lnet_control *control,
		 const struct ulnet_control_conf *conf,
		 struct server **server_p) must_check;
/* Ends all clients, and waits for their threads. */
void server_stop(struct server *server);

#endif
