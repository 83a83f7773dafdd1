/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node's metrics in the text format of Prometheus, got by requests to its
 * control, in this process or another; and served to Prometheus, by HTTP.
 * Manual: ulnet_metrics(7).
 */
#ifndef TOOLS_EXPORTER_H
#define TOOLS_EXPORTER_H

#include "option.h"
#include "program.h"

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

/* The part of a command line that has a node's metrics served. */
struct metrics_options {
	const char *address; /* NULL: they are not served */
	unsigned int peers;  /* at first METRICS_PEERS */
};

/* A row's take(): where to listen for TCP, "[ADDRESS:]PORT", in numbers, with
 * the address in brackets if it has colons; without one 127.0.0.1. Goes to
 * where the row says. */
int metrics_take_place(const struct option_at *at);

/* ---- the server ---- */

/* One thread of its own, which asks the node at most once a second, however
 * many ask; EXPORTER_CONNECTIONS connections at once, others wait in the
 * kernel; EXPORTER_TIMEOUT_S of silence end one, so who does not read, or does
 * not ask, has it only so long. */
struct exporter;

#define EXPORTER_CONNECTIONS 32
#define EXPORTER_MEMORY	     16384 /* bytes of a connection: headers */
#define EXPORTER_TIMEOUT_S   5

/*
 * Serves at @address, as metrics_take_place() takes it. If it is NULL, nothing
 * is done. @source, which the exporter's thread asks, and @say are borrowed
 * until exporter_stop(). Logs what fails; -EINVAL, -ENOMEM, or what the address
 * is refused with.
 */
int exporter_start(const struct metrics_source *source, const char *address,
		   const struct say *say, struct exporter **exporter_p);
/* Waits for its thread, and so for the node's. NULL is fine. */
void exporter_stop(struct exporter *e);

#endif
