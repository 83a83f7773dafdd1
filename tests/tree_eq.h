/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TREE_EQ_H
#define TESTS_TREE_EQ_H

#include "config/yaml/tree.h"

/* Whether both trees have the same nodes, keys and texts. How a text is quoted
 * matters only where it tells null from a text. */
static inline bool tree_eq(const struct tree *a, const struct tree *b)
{
	const struct list *la = a->children.next, *lb = b->children.next;

	if (a->kind != b->kind || a->count != b->count ||
	    strcmp(a->text, b->text) != 0 ||
	    tree_is_null(a) != tree_is_null(b) || !a->key != !b->key ||
	    (a->key && strcmp(a->key, b->key) != 0))
		return false;
	for (; la != &a->children; la = la->next, lb = lb->next)
		if (!tree_eq(container_of(la, struct tree, link),
			     container_of(lb, struct tree, link)))
			return false;
	return true;
}

#endif
