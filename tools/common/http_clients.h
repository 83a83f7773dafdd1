/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of an HTTP server, and which of them has to go when there are
 * too many: a stranger's, who connects and says nothing, and not that of
 * somebody who asks. Sends and closes nothing itself. Thread: the server's.
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
	uint64_t number; /* in the order of coming; 0: the place is free */
	int fd;
	bool asked;	  /* has sent a whole request */
	bool leaving;	  /* was told to go */
	uint8_t from[16]; /* address without the port; IPv4: 4 bytes, zeros */
};

/* All zero at first. */
struct http_clients {
	uint64_t numbers;
	struct http_client client[HTTP_CLIENTS_ROOM];
};

/* A client has connected from @from (NULL: not known). NULL: no place is
 * free. */
struct http_client *http_client_come(struct http_clients *all, int fd,
				     const struct sockaddr *from);
void http_client_go(struct http_client *c);
/*
 * If more than HTTP_CLIENTS are there: marks one as leaving, and returns its
 * descriptor, which is to be shut down. Otherwise HTTP_CLIENT_NOBODY. One of
 * the host with most connections goes; of these, who has not asked; of these,
 * the oldest. It is not the last one that has come.
 */
int http_clients_dismiss(struct http_clients *all);

#endif
