/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of an HTTP server. If there are too many, finds the one to be
 * closed: preferably of a client that has connected and asked nothing. Sends
 * and closes nothing itself. Thread: the server's.
 */
#ifndef TOOLS_HTTP_CLIENTS_H
#define TOOLS_HTTP_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Connections that are served, and places for those that are leaving. */
#define HTTP_CLIENTS	   32
#define HTTP_CLIENTS_ROOM  (2 * HTTP_CLIENTS)
#define HTTP_CLIENT_NOBODY (-1)

struct http_client {
	/* number of the client, in the order of coming; 0: the place is free */
	uint64_t number;
	int fd;
	bool asked;   /* the client has sent a whole request */
	bool leaving; /* the connection is being shut down */
	/* address without the port; of IPv4 4 bytes, then zeros */
	uint8_t from[16];
};

/* All zero at first. */
struct http_clients {
	uint64_t numbers;
	struct http_client client[HTTP_CLIENTS_ROOM];
};

/* A client has connected from @from (NULL: not known). Returns its place; NULL:
 * no place is free. */
struct http_client *http_client_come(struct http_clients *all, int fd,
				     const struct sockaddr *from);
void http_client_go(struct http_client *c);
/*
 * If there are more than HTTP_CLIENTS connections: marks one as leaving, and
 * returns its descriptor, which the caller must shut down. Otherwise returns
 * HTTP_CLIENT_NOBODY. Chosen is a connection of the host that has most; of
 * these, one that has not asked; of these, the oldest. The client that came
 * last is never chosen.
 */
int http_clients_dismiss(struct http_clients *all);

#endif
