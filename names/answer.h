/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers, which several users share: immutable, except for the number of their
 * references, which the lock of the node's names guards (names.c).
 */
#ifndef NAMES_ANSWER_H
#define NAMES_ANSWER_H

#include "names/target.h"

struct answer {
	unsigned int refs;
	struct ulnet_name_answer a; /* a.addresses points to the array below */
	struct ulnet_address addresses[];
};

/* Returns a reference to a copy of *@a, sorted by priority. If *@a is a failure
 * without addresses, it gets those of @before (NULL: none). NULL: no memory.
 * Any thread. */
struct answer *answer_new(const struct ulnet_name_answer *a,
			  const struct answer *before);
/* Are @a and @b equal, except for their numbers of references? */
bool answer_eq(const struct answer *a, const struct answer *b);
/* Returns a copy, to be freed by free(3); NULL: no memory. */
struct ulnet_name_answer *answer_copy(const struct answer *answer);

static inline void answer_put(struct answer *answer)
{
	if (answer && --answer->refs == 0)
		free(answer);
}

/* Returns the net of a host's addresses if the text does not name one: tcp,
 * unless @node has no NI there but has one on another net of TCP. Any thread.
 */
uint32_t answer_net(struct lnet *node);

/* A list of addresses that is being put together. */
struct address_list {
	unsigned int n;
	struct ulnet_address address[LNET_ADDRESSES_MAX];
};

/* Adds @address, unless there is no room, or the NID is in @list already: two
 * servers with one NID, at different ports, cannot be told apart. */
void address_add(struct address_list *list,
		 const struct ulnet_address *address);

#endif
