/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs that are a node: options of a command line that describe the
 * node, and functions that open and configure it. Failures are logged, and
 * returned as a negative errno.
 */
#ifndef TOOLS_NODE_H
#define TOOLS_NODE_H

#include <ulnet/control.h>

#include "option.h"
#include "program.h"

#define NODE_DEFAULT_PORT 988

/* What the command line says of the node. */
struct node_options {
	char *config;	   /* path of the configuration file; NULL: none */
	char *socket;	   /* path of the control socket; NULL: none */
	const char *group; /* group that may use the socket; NULL: none */
	const char **nets; /* values of --net, of which there are nnets */
	unsigned int nnets;
	/* values of --ip2nets and --routes; NULL: not given */
	const char *ip2nets, *routes;
	unsigned int port; /* TCP port; 0: the default one */
	enum ulnet_accept accept;
	unsigned int cpts; /* number of CPTs; 0: the default */
	const char *log;   /* levels of the log; NULL: not given */
	/* ulnet_conf.keys: set by the program before node_begin(), and borrowed
	 * until node_close() */
	struct ulrpc_keys *keys;
};

/* Rows of options. node_net_rows: networks and connections; node_socket_rows:
 * the control socket; node_rows: the socket's group, and CPTs; node_log_rows:
 * the log. */
extern const struct option_row node_net_rows[];
extern const struct option_row node_socket_rows[];
extern const struct option_row node_rows[];
extern const struct option_row node_log_rows[];

void node_options_init(struct node_options *o);
void node_options_free(struct node_options *o);
/* Sets the levels of the log, if they were given. To be called before there are
 * threads. */
void node_options_log(const struct node_options *o);

struct node {
	const struct node_options *options;
	const struct say *say;
	struct lnet *lnet;	      /* NULL: the node is not open */
	struct lnet_control *control; /* the control of the node; NULL: none */
};

/* Raises the limit of open files, which connections need, as far as the system
 * allows. */
void node_raise_files(const struct say *say);

/* To be called in this order. @options and @say are borrowed until
 * node_close(), which is due in any case. */
int node_begin(struct node *n, const struct node_options *options,
	       const struct say *say, enum ulnet_run run);
int node_control(struct node *n);
int node_configure(struct node *n);
void node_close(struct node *n);

/* Adds the networks that @spec says as the value of --net. */
int node_add_networks(const struct node *n, const char *spec);

/* The node's NIDs as "10.0.0.1@tcp, 10.0.0.1@tcp1", or "no network yet"; to be
 * freed. NULL: no memory. */
char *node_nids(const struct node *n);
/* Prints the beginning of the line on stdout that says that the node is ready:
 * "lnetd: ready: NIDS, port 1988 (kernel nodes use 988)". The port is there
 * because nodes with different ports cannot reach each other. Returns 0 or
 * -ENOMEM. */
int node_say_ready(const struct node *n);
/* Ends the line that node_say_ready() has begun, with the path of the control
 * socket if there is one. Does nothing if @rc is an error. Returns @rc, or an
 * error of stdout, after a message. */
int node_said(const struct node *n, int rc);
/* Tells the service manager @state, if there is a service manager:
 * lnet_notify(3). A failure is logged. */
void node_tell_manager(const struct node *n, const char *state);
/* Does the node have an NI with @nid? If @nid is NULL: does it have an NI on
 * @net, or, for LNET_NET_ANY, on any net but lo? */
bool node_has(const struct node *n, const struct ulnet_nid *nid, uint32_t net);

#endif
