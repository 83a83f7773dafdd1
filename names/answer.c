/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "names/answer.h"

#include <string.h>

/* Sorts by priority; addresses with the same priority keep their order. */
static void addresses_sort(struct ulnet_address *a, unsigned int n)
{
	for (unsigned int i = 1; i < n; i++) {
		struct ulnet_address one = a[i];
		unsigned int k = i;

		for (; k && a[k - 1].priority > one.priority; k--)
			a[k] = a[k - 1];
		a[k] = one;
	}
}

struct answer *answer_new(const struct ulnet_name_answer *a,
			  const struct answer *before)
{
	const struct ulnet_name_answer *from =
		a->status && !a->n && before ? &before->a : a;
	unsigned int n = MIN(from->n, (unsigned int)LNET_ADDRESSES_MAX);
	struct answer *made =
		malloc(sizeof(*made) + n * sizeof(made->addresses[0]));

	if (!made)
		return NULL;
	made->refs = 1;
	made->a = *a;
	made->a.why[sizeof(made->a.why) - 1] = '\0';
	made->a.n = n;
	made->a.addresses = made->addresses;
	for (unsigned int i = 0; i < n; i++)
		made->addresses[i] = from->addresses[i];
	addresses_sort(made->addresses, n);
	return made;
}

static bool address_eq(const struct ulnet_address *a,
		       const struct ulnet_address *b)
{
	return lnet_nid_eq(&a->nid, &b->nid) && a->port == b->port &&
	       a->priority == b->priority && a->weight == b->weight;
}

bool answer_eq(const struct answer *a, const struct answer *b)
{
	if (a->a.status != b->a.status || a->a.n != b->a.n ||
	    strcmp(a->a.why, b->a.why) != 0)
		return false;
	for (unsigned int i = 0; i < a->a.n; i++)
		if (!address_eq(&a->addresses[i], &b->addresses[i]))
			return false;
	return true;
}

struct ulnet_name_answer *answer_copy(const struct answer *answer)
{
	size_t bytes = answer->a.n * sizeof(answer->addresses[0]);
	struct ulnet_name_answer *copy = malloc(sizeof(*copy) + bytes);

	if (!copy)
		return NULL;
	*copy = answer->a;
	memcpy(copy + 1, answer->addresses, bytes);
	copy->addresses = (const struct ulnet_address *)(copy + 1);
	return copy;
}

uint32_t answer_net(struct lnet *node)
{
	const uint32_t usual = LNET_NET(LNET_TYPE_SOCK, 0);
	uint32_t other = usual;
	struct ulnet_ni_info info;

	for (unsigned int i = 0; !lnet_ni_info(node, i, &info); i++) {
		uint32_t net = lnet_nid_net(&info.nid);

		if (net == usual)
			return usual;
		if (LNET_NET_TYPE(net) == LNET_TYPE_SOCK && other == usual)
			other = net;
	}
	return other;
}

void address_add(struct address_list *list, const struct ulnet_address *address)
{
	for (unsigned int i = 0; i < list->n; i++)
		if (lnet_nid_eq(&list->address[i].nid, &address->nid))
			return;
	if (list->n < LNET_ADDRESSES_MAX)
		list->address[list->n++] = *address;
}
