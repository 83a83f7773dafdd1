/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intrusive doubly linked list. An entry can be removed without its head; a
 * removed entry points to itself, so "is it queued?" is list_empty(&entry).
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/util.h"

struct list {
	struct list *next;
	struct list *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_add_between(struct list *e, struct list *prev,
				    struct list *next)
{
	e->prev = prev;
	e->next = next;
	prev->next = e;
	next->prev = e;
}

static inline void list_add(struct list *head, struct list *e)
{
	list_add_between(e, head, head->next);
}

static inline void list_add_tail(struct list *head, struct list *e)
{
	list_add_between(e, head->prev, head);
}

/* Removes an entry that is not looked at again, unless it is added anew. */
static inline void list_unlink(struct list *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
}

static inline void list_del(struct list *e)
{
	list_unlink(e);
	list_init(e);
}

/* Moves all entries of @from to the tail of @to. @from is empty afterwards. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

static inline struct list *list_after(const struct list *l)
{
#ifdef __clang_analyzer__
	/* For the static analyzer: says that neighbours point at each other.
	 * Otherwise it believes that an entry that list_del() has removed is
	 * still the next one. */
	l->next->prev = (struct list *)l;
#endif
	return l->next;
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first(head, type, member) \
	list_entry(list_after(head), type, member)

static inline struct list *list_take(struct list *head)
{
	struct list *first = list_after(head);

	list_del(first);
	return first;
}

/* Removes the first entry and returns it; NULL: there is none. */
#define list_pop(head, type, member) \
	(list_empty(head) ? NULL : list_entry(list_take(head), type, member))

#define list_for_each_entry(pos, head, member)                         \
	for (pos = list_entry((head)->next, __typeof__(*pos), member); \
	     &pos->member != (head);                                   \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))

/* In the body @pos may be removed or freed, but not @tmp. */
#define list_for_each_entry_safe(pos, tmp, head, member)                  \
	for (pos = list_entry((head)->next, __typeof__(*pos), member),    \
	    tmp = list_entry(pos->member.next, __typeof__(*pos), member); \
	     &pos->member != (head); pos = tmp,                           \
	    tmp = list_entry(tmp->member.next, __typeof__(*tmp), member))

#endif
