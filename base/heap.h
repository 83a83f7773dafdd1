/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intrusive priority queue (a pairing heap): the node with the least key is
 * first; of those with equal keys, the one added first. Adding takes constant
 * time, removing amortized logarithmic time; nothing is allocated.
 *
 * Owner: whoever embeds it. Thread: owner.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base/util.h"

struct heap_node {
	struct heap_node *child; /* the first child */
	struct heap_node *next;	 /* the next sibling */
	/* the sibling before; of a first child, the parent */
	struct heap_node *prev;
	uint64_t key;
	/* in order of adding: of nodes with equal keys, the one with the lower
	 * number comes first */
	uint64_t order;
};

struct heap {
	/* the node with the least key; NULL: the heap is empty */
	struct heap_node *root;
	uint64_t added; /* number of nodes ever added */
};

static inline void heap_init(struct heap *h)
{
	h->root = NULL;
	h->added = 0;
}

/* Returns the node with the least key; NULL: the heap is empty. */
static inline struct heap_node *heap_first(const struct heap *h)
{
	return h->root;
}

void heap_add(struct heap *h, struct heap_node *n, uint64_t key);
/* @n must be in @h. */
void heap_del(struct heap *h, struct heap_node *n);

#endif
