/* SPDX-License-Identifier: BSD-3-Clause */
/* First come, first served. */
#include "rpc/server/sched.h"

struct fifo {
	struct sched sched;
	struct list items;
};

static struct sched *fifo_new(const struct sched_plan *plan)
{
	struct fifo *f = malloc(sizeof(*f));

	if (!f)
		return NULL;
	f->sched.ops = plan->ops;
	list_init(&f->items);
	return &f->sched;
}

static void fifo_free(struct sched *s)
{
	struct fifo *f = container_of(s, struct fifo, sched);

	BUG_ON(!list_empty(&f->items));
	free(f);
}

static void fifo_enqueue(struct sched *s, struct sched_item *item, uint64_t now)
{
	struct fifo *f = container_of(s, struct fifo, sched);

	(void)now;
	list_add_tail(&f->items, &item->link);
}

static struct sched_item *fifo_dequeue(struct sched *s, uint64_t now,
				       uint64_t *again)
{
	struct fifo *f = container_of(s, struct fifo, sched);
	struct sched_item *item;

	(void)now;
	(void)again;
	if (list_empty(&f->items))
		return NULL;
	item = list_first(&f->items, struct sched_item, link);
	list_del(&item->link);
	return item;
}

static void fifo_remove(struct sched *s, struct sched_item *item)
{
	(void)s;
	list_del(&item->link);
}

const struct sched_ops sched_fifo = {
	.name = "fifo",
	.new = fifo_new,
	.free = fifo_free,
	.enqueue = fifo_enqueue,
	.dequeue = fifo_dequeue,
	.remove = fifo_remove,
};
