/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's metrics in the text format of Prometheus, got by requests to its
 * control, in this process or another. Manual: ulnet_metrics(7). */
#ifndef TOOLS_METRICS_H
#define TOOLS_METRICS_H

#include "option.h"

/* Peer NIs that have metrics of their own, unless more are asked for: each has
 * some forty time series. */
#define METRICS_PEERS	  256
#define METRICS_PEERS_MAX 10000

/* Whom to ask: as lnet_control_request(). */
struct metrics_source {
	int (*ask)(void *arg, const char *request, char **answer_p);
	void *arg;
	unsigned int peers; /* NIDs of peers, at most */
};

/* A node in this process; arg is its struct lnet_control. */
int metrics_ask_control(void *arg, const char *request, char **answer_p);

/*
 * *@text_p, to be freed, becomes what the node counts, and what RPC on it does
 * if there is any. 0; what asking fails with; a negative status of an answer,
 * whose errors are printed on stderr. Waits for the answers.
 */
int metrics_text(const struct metrics_source *source, char **text_p,
		 size_t *len_p);

/* Where to listen for TCP: "[ADDRESS:]PORT", in numbers, with the address in
 * brackets if it has colons; without one 127.0.0.1. *@info is to be given to
 * freeaddrinfo(). -EINVAL: not such a text. */
struct addrinfo;
int metrics_place(const char *address, struct addrinfo **info);

/* The part of a command line that has a node's metrics served. */
struct metrics_options {
	const char *address; /* NULL: they are not served */
	unsigned int peers;  /* at first METRICS_PEERS */
};

/* A row's take(): a place, which goes to where the row says. */
int metrics_take_place(const struct option_at *at);

#endif
