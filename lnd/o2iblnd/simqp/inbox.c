/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/inbox.h"

#include "lnd/o2iblnd/simqp/wr.h"

struct simqp_item *simqp_item_new(enum simqp_kind kind)
{
	struct simqp_item *it = simqp_alloc(sizeof(*it));

	list_init(&it->link);
	it->kind = kind;
	return it;
}

void simqp_item_free(struct simqp_item *it)
{
	if (it->wr)
		simqp_wr_put(it->wr);
	free(it);
}

/* For the first item. */
static void inbox_arm(struct simqp_inbox *b)
{
	if (list_empty(&b->items))
		simqp_disarm(b->loop, &b->timer);
	else
		simqp_arm(b->loop, &b->timer,
			  list_first(&b->items, struct simqp_item, link)->at);
}

static void on_inbox_timer(struct timer *t)
{
	struct simqp_inbox *b = container_of(t, struct simqp_inbox, timer);
	struct simqp_item *it = list_first(&b->items, struct simqp_item, link);

	list_del(&it->link);
	inbox_arm(b);
	if (it->way && simqp_way_is_silent(it->way))
		it->way->fabric->stats.lost++;
	else
		b->handle(b, it);
	simqp_item_free(it);
}

void simqp_inbox_init(struct simqp_inbox *b, struct loop *loop,
		      simqp_handle_fn handle)
{
	list_init(&b->items);
	timer_init(&b->timer, on_inbox_timer);
	b->loop = loop;
	b->handle = handle;
}

void simqp_inbox_fini(struct simqp_inbox *b)
{
	struct simqp_item *it, *next;

	list_for_each_entry_safe (it, next, &b->items, link) {
		list_del(&it->link);
		simqp_item_free(it);
	}
	simqp_disarm(b->loop, &b->timer);
}

void simqp_inbox_put(struct simqp_inbox *b, struct simqp_item *it, uint64_t at)
{
	struct list *behind = b->items.prev;

	it->at = at;
	while (behind != &b->items &&
	       list_entry(behind, struct simqp_item, link)->at > at)
		behind = behind->prev;
	list_add(behind, &it->link);
	inbox_arm(b);
}

void simqp_inbox_cut(struct simqp_inbox *b)
{
	struct list all;

	list_init(&all);
	list_splice_tail(&all, &b->items);
	while (!list_empty(&all)) {
		struct simqp_item *it =
			list_first(&all, struct simqp_item, link);

		list_del(&it->link);
		if (it->way)
			simqp_item_free(it);
		else
			list_add_tail(&b->items, &it->link);
	}
	inbox_arm(b);
}
