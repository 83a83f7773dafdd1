/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

static bool heap_before(const struct heap_node *a, const struct heap_node *b)
{
	return a->key != b->key ? a->key < b->key : a->order < b->order;
}

/* Merges two trees, of which either may be NULL, and neither has siblings.
 * Returns the result. */
static struct heap_node *heap_meld(struct heap_node *a, struct heap_node *b)
{
	struct heap_node *top = a, *under = b;

	if (!a || !b)
		return a ? a : b;
	if (heap_before(b, a)) {
		top = b;
		under = a;
	}
	under->prev = top;
	under->next = top->child;
	if (under->next)
		under->next->prev = under;
	top->child = under;
	return top;
}

/* Merges @n and all its next siblings into one tree: first in pairs, then the
 * pairs from the last to the first, which keeps trees flat. */
static struct heap_node *heap_gather(struct heap_node *n)
{
	struct heap_node *pairs = NULL, *root = NULL;

	while (n) {
		struct heap_node *a = n, *b = n->next;

		n = b ? b->next : NULL;
		a->next = a->prev = NULL;
		if (b)
			b->next = b->prev = NULL;
		a = heap_meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct heap_node *a = pairs;

		pairs = a->next;
		a->next = NULL;
		root = heap_meld(root, a);
	}
	return root;
}

void heap_add(struct heap *h, struct heap_node *n, uint64_t key)
{
	n->child = n->next = n->prev = NULL;
	n->key = key;
	n->order = h->added++;
	h->root = heap_meld(h->root, n);
}

void heap_del(struct heap *h, struct heap_node *n)
{
	struct heap_node *under = heap_gather(n->child);

	if (h->root == n) {
		h->root = under;
		return;
	}
	if (n->prev->child == n)
		n->prev->child = n->next;
	else
		n->prev->next = n->next;
	if (n->next)
		n->next->prev = n->prev;
	h->root = heap_meld(h->root, under);
}
