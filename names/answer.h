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
	struct ulnet_name_answer a; /* a.addresses is the array below */
	struct ulnet_address addresses[];
};

/* Returns a reference to a copy of *@a, sorted by priority. If *@a is a failure
 * without addresses, it gets those of @before (NULL: none). NULL: no memory.
 * Any thread. */
struct answer *answer_new(const struct ulnet_name_answer *a,
			  const struct answer *before);
/* Are they equal, except for who refers to them? */
bool answer_eq(const struct answer *a, const struct answer *b);
/* A copy for free(3); NULL: no memory. */
struct ulnet_name_answer *answer_copy(const struct answer *answer);

static inline void answer_put(struct answer *answer)
{
	if (answer && --answer->refs == 0)
		free(answer);
}

/* On which net a host's addresses are if its text does not say: tcp, unless
 * @node has no NI there but some on another net of TCP. Any thread. */
uint32_t answer_net(struct lnet *node);

/* Addresses that are being put together. */
struct address_list {
	unsigned int n;
	struct ulnet_address address[LNET_ADDRESSES_MAX];
};

/* Adds @address, unless there is no room, or @list has its NID: two servers
 * with one NID, at different ports, cannot be told apart. */
void address_add(struct address_list *list,
		 const struct ulnet_address *address);

#endif
