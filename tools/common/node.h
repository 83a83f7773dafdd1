/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is a node: opened, put under control and configured as its
 * command line says. Failures are logged, and returned as a negative errno.
 */
#ifndef TOOLS_NODE_H
#define TOOLS_NODE_H

#include <ulnet/control.h>

#include "node_options.h"
#include "say.h"

#define NODE_DEFAULT_PORT 988

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
/* ", port 1988 (kernel nodes use 988)": nodes with another port are not
 * reached, and nothing else would say why. Empty with the usual one. */
const char *node_port_note(const struct node *n, char *buf, size_t size);

#endif
