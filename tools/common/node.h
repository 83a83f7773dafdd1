/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is a node: its options; opened, put under control and
 * configured as they say. Failures are logged, and returned as a negative
 * errno.
 */
#ifndef TOOLS_NODE_H
#define TOOLS_NODE_H

#include <ulnet/control.h>

#include "option.h"
#include "program.h"

#define NODE_DEFAULT_PORT 988

/* The part of a command line that says what node a program is. */
struct node_options {
	char *config;	   /* file; NULL: none */
	char *socket;	   /* path; NULL: none */
	const char *group; /* NULL: none */
	const char **nets; /* nnets of them */
	unsigned int nnets;
	const char *ip2nets, *routes; /* NULL: none */
	unsigned int port;	      /* 0: the default one */
	enum ulnet_accept accept;
	unsigned int cpts; /* 0: the default */
	enum ulnet_log_level log;
};

/* Where it is; its socket; who and how many; what it logs. */
extern const struct option_row node_net_rows[];
extern const struct option_row node_socket_rows[];
extern const struct option_row node_rows[];
extern const struct option_row node_log_rows[];

void node_options_init(struct node_options *o);
void node_options_free(struct node_options *o);

struct node {
	const struct node_options *options;
	const struct say *say;
	struct lnet *lnet;	      /* NULL: not open */
	struct lnet_control *control; /* NULL: none */
};

/* Each connection takes a file descriptor, and the usual limit is low. */
void node_raise_files(const struct say *say);

/* Steps, in this order. @options and @say are borrowed until node_close(),
 * which is due in any case. */
int node_open(struct node *n, const struct node_options *options,
	      const struct say *say, enum ulnet_run run);
int node_control(struct node *n);
int node_configure(struct node *n);
void node_close(struct node *n);

/* Adds the networks of @spec, as the option --net does. */
int node_add_networks(const struct node *n, const char *spec);

/* "10.0.0.1@tcp, 10.0.0.1@tcp1", or "no network yet"; to be freed; NULL: no
 * memory. */
char *node_nids(const struct node *n);
/* Begins the line that says on stdout that the node is ready, "lnetd: ready:
 * NIDS, port 1988 (kernel nodes use 988)": nodes with another port are not
 * reached, and nothing else would say why. 0 or -ENOMEM. */
int node_say_ready(const struct node *n);
/* Ends that line, with the socket if there is one. @rc: what went wrong before,
 * or 0. Returns that, or -errno, after a message. */
int node_said(const struct node *n, int rc);
/* Has it an NI with @nid; if that is NULL, one on @net, LNET_NET_ANY: on any
 * but lo? */
bool node_has(const struct node *n, const struct ulnet_nid *nid, uint32_t net);

#endif
