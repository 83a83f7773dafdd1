/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gets a node's metrics, in the text format of Prometheus, by requests to its
 * control, and serves them by HTTP. Manual: ulnet_metrics(7).
 */
#ifndef TOOLS_EXPORTER_H
#define TOOLS_EXPORTER_H

#include "option.h"
#include "program.h"

/* How many NIDs of peers have metrics by default, and at most. Each NID has
 * some forty time series. */
#define METRICS_PEERS	  256
#define METRICS_PEERS_MAX 10000

/* The node to ask: ask() does what lnet_control_request() does. */
struct metrics_source {
	int (*ask)(void *arg, const char *request, char **answer_p);
	void *arg;
	unsigned int peers; /* most NIDs of peers that have metrics */
};

/* An ask() for a node in this process: @arg is its struct lnet_control. */
int metrics_ask_control(void *arg, const char *request, char **answer_p);

/*
 * Sets *@text_p, to be freed, to the metrics of the node, and of RPC if it runs
 * there. Waits for the node's answers. Returns 0; an error of ask(); or the
 * negative status of an answer, whose errors are printed on stderr.
 */
int metrics_text(const struct metrics_source *source, char **text_p,
		 size_t *len_p);

/* What a command line says about metrics: where they are served, and how many.
 */
struct metrics_options {
	/* address to serve them at; NULL: they are not served */
	const char *address;
	unsigned int peers; /* how many NIDs of peers have metrics */
};

/* A row's take(): stores the address to listen at, "[ADDRESS:]PORT", in
 * numbers. An address with colons is in brackets; the default is 127.0.0.1. */
int metrics_take_address(const struct option_at *at);

/* ---- the server ---- */

/* An HTTP server with one thread, which asks the node once a second at most,
 * however many HTTP clients ask. Serves HTTP_CLIENTS connections at the same
 * time (http_clients.h): one more takes the place of a silent one. Closes a
 * connection after EXPORTER_TIMEOUT_S of silence. */
struct exporter;

#define EXPORTER_MEMORY	   16384 /* bytes that a connection has for headers */
#define EXPORTER_TIMEOUT_S 5

/*
 * Serves at @address, which is as metrics_take_address() takes it; does nothing
 * if @address is NULL. @source, which the exporter's thread asks, and @say are
 * borrowed until exporter_stop(). Logs errors, and returns them: -EINVAL,
 * -ENOMEM, or those of listening.
 */
int exporter_start(const struct metrics_source *source, const char *address,
		   const struct say *say, struct exporter **exporter_p);
/* Waits for the exporter's thread, which may be waiting for an answer of the
 * node. @e may be NULL. */
void exporter_stop(struct exporter *e);

#endif
