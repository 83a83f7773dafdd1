/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mailbox.h"

void mailbox_init(struct mailbox *m)
{
	atomic_init(&m->head, NULL);
}

bool mailbox_put(struct mailbox *m, struct work *w)
{
	struct work *head =
		atomic_load_explicit(&m->head, memory_order_relaxed);

	/*
	 * Release publishes @w and what it carries to the taker. Relaxed is
	 * enough for what is read: the old head is stored, not looked into.
	 * There is no ABA, because the owner only ever takes everything.
	 */
	do {
		w->next = head;
	} while (!atomic_compare_exchange_weak_explicit(&m->head, &head, w,
							memory_order_release,
							memory_order_relaxed));
	return head == NULL;
}

struct work *mailbox_take(struct mailbox *m)
{
	struct work *oldest = NULL;
	struct work *w;

	if (mailbox_empty(m))
		return NULL;
	w = atomic_exchange_explicit(&m->head, NULL, memory_order_acquire);
	while (w) {
		struct work *next = w->next;

		w->next = oldest;
		oldest = w;
		w = next;
	}
	return oldest;
}
