/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Earliest deadline first; requests with the same deadline, or without one,
 * which come last, in the order of their arrival. As long as all can be done in
 * time, all are; a caller who gives little time goes before others, so this is
 * for callers who can be trusted with that.
 */
#include "rpc/server/sched.h"

struct edf {
	struct sched sched;
	struct heap items; /* sched_item.node, by deadline */
};

static struct sched *edf_new(const struct sched_plan *plan)
{
	struct edf *f = malloc(sizeof(*f));

	if (!f)
		return NULL;
	f->sched.ops = plan->ops;
	heap_init(&f->items);
	return &f->sched;
}

static void edf_free(struct sched *s)
{
	struct edf *f = container_of(s, struct edf, sched);

	BUG_ON(heap_first(&f->items));
	free(f);
}

static void edf_enqueue(struct sched *s, struct sched_item *item, uint64_t now)
{
	struct edf *f = container_of(s, struct edf, sched);

	(void)now;
	heap_add(&f->items, &item->node, item->deadline);
}

static void edf_remove(struct sched *s, struct sched_item *item)
{
	struct edf *f = container_of(s, struct edf, sched);

	heap_del(&f->items, &item->node);
}

static struct sched_item *edf_dequeue(struct sched *s, uint64_t now,
				      uint64_t *again)
{
	struct edf *f = container_of(s, struct edf, sched);
	struct heap_node *n = heap_first(&f->items);
	struct sched_item *item;

	(void)now;
	(void)again;
	if (!n)
		return NULL;
	item = container_of(n, struct sched_item, node);
	heap_del(&f->items, n);
	return item;
}

/* Between none and all of them it is not known, so it is all. */
static unsigned int edf_ahead(const struct sched *s,
			      const struct sched_item *item,
			      unsigned int queued)
{
	const struct edf *f = container_of(s, struct edf, sched);
	const struct heap_node *n = heap_first(&f->items);

	return n && n->key <= item->deadline ? queued : 0;
}

const struct sched_ops sched_edf = {
	.name = "edf",
	.new = edf_new,
	.free = edf_free,
	.enqueue = edf_enqueue,
	.dequeue = edf_dequeue,
	.remove = edf_remove,
	.ahead = edf_ahead,
};
