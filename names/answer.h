/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers about names. An answer is shared by all users of its name, and does
 * not change. Only its count of references does, which the lock of the node's
 * names guards (names.c).
 */
#ifndef NAMES_ANSWER_H
#define NAMES_ANSWER_H

#include "names/target.h"

struct answer {
	unsigned int refs;
	struct ulnet_name_answer a; /* a.addresses points to @addresses */
	struct ulnet_address addresses[];
};

/* Returns a copy of *@a with one reference, sorted by priority. If *@a is a
 * failure without addresses, the copy gets the addresses of @before (NULL:
 * none). Returns NULL if there is no memory. Any thread. */
struct answer *answer_new(const struct ulnet_name_answer *a,
			  const struct answer *before);
/* Have @a and @b the same content? References do not count. */
bool answer_eq(const struct answer *a, const struct answer *b);
/* Returns a copy, to be freed by free(3); NULL: no memory. */
struct ulnet_name_answer *answer_copy(const struct answer *answer);

static inline void answer_put(struct answer *answer)
{
	if (answer && --answer->refs == 0)
		free(answer);
}

/* Returns the net of a host's addresses if the text of the name has none: tcp;
 * but if @node has no NI there, and has one on another net over TCP, that net.
 * Any thread. */
uint32_t answer_net(struct lnet *node);

/* A list of addresses that is being made. */
struct address_list {
	unsigned int n;
	struct ulnet_address address[LNET_ADDRESSES_MAX];
};

/* Adds @address, unless there is no room, or @list has its NID already: two
 * servers with one NID at different ports cannot be told apart. */
void address_add(struct address_list *list,
		 const struct ulnet_address *address);

#endif
