/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that are read: two nodes, a node as lnetctl shows it, connections as
 * they were negotiated. All are YAML that anybody may have written.
 */
#ifndef TOOLS_O2IBCALC_YAML_H
#define TOOLS_O2IBCALC_YAML_H

#include "o2ibcalc_input.h"

/* In a NID, with the 0. */
#define NEGOTIATED_NID_SIZE 64

/* A connection of a file. */
struct negotiated {
	unsigned long line;
	bool has_depth, has_frags;
	unsigned long depth, frags;
	char nid[NEGOTIATED_NID_SIZE]; /* of the peer; "": the file has none */
};

struct negotiated_list {
	struct negotiated *conns;
	size_t n;
};

/* What came with a node that lnetctl shows. */
struct node_origin {
	char nid[NEGOTIATED_NID_SIZE]; /* "": not what lnetctl shows */
	unsigned int others; /* NIs on o2ib nets that were passed over */
};

/* Changes what the file is about. Returns 0 or -1, and then @c tells why. */
int pair_read(const char *text, size_t length, struct ulnet_o2ib_pair *pair,
	      struct node_origin *origin, struct complaint *c);
/* The same for one node: its inputs alone, or what lnetctl shows. */
int node_read(const char *text, size_t length, struct ulnet_o2ib_conf *conf,
	      struct node_origin *origin, struct complaint *c);
/* Every mapping with queue_depth or max_frags is a connection; one at least is
 * there if 0 is returned. */
int negotiated_read(const char *text, size_t length,
		    struct negotiated_list *list, struct complaint *c);
void negotiated_free(struct negotiated_list *list);

#endif
