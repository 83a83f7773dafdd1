/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fair between clients, in rounds: in each, every client that has something
 * waiting is served one request, its oldest one. So who asks for much waits
 * behind his own requests, and not others behind them.
 *
 * A client that comes while a round goes on, and has had nothing of it yet, is
 * served in it: who calls again as soon as he has his reply has his part of each
 * round, however many others never run out of requests.
 */
#include "rpc/sched.h"

struct fair {
	struct sched sched;
	struct list now;  /* of sched_flow.turn: to be served in this round */
	struct list next; /* and in the next one */
	uint64_t round;
	unsigned int clients; /* in both */
};

static struct sched_flow *fair_flow(const struct sched_item *item)
{
	return &item->client->flow[item->lane];
}

static struct sched *fair_new(void)
{
	struct fair *f = malloc(sizeof(*f));

	if (!f)
		return NULL;
	f->sched.ops = &sched_fair;
	list_init(&f->now);
	list_init(&f->next);
	f->round = 1; /* a new client was served in round 0 */
	f->clients = 0;
	return &f->sched;
}

static void fair_free(struct sched *s)
{
	struct fair *f = container_of(s, struct fair, sched);

	BUG_ON(f->clients);
	free(f);
}

static void fair_enqueue(struct sched *s, struct sched_item *item, uint64_t now)
{
	struct fair *f = container_of(s, struct fair, sched);
	struct sched_flow *flow = fair_flow(item);

	(void)now;
	if (!flow->queued++) {
		list_init(&flow->items);
		list_add_tail(flow->served < f->round ? &f->now : &f->next,
			      &flow->turn);
		f->clients++;
	}
	list_add_tail(&flow->items, &item->link);
}

static void fair_remove(struct sched *s, struct sched_item *item)
{
	struct fair *f = container_of(s, struct fair, sched);
	struct sched_flow *flow = fair_flow(item);

	list_del(&item->link);
	if (!--flow->queued) {
		list_del(&flow->turn);
		f->clients--;
	}
}

static struct sched_item *fair_dequeue(struct sched *s, uint64_t now,
				       uint64_t *again)
{
	struct fair *f = container_of(s, struct fair, sched);
	struct sched_flow *flow;
	struct sched_item *item;

	(void)now;
	(void)again;
	if (!f->clients)
		return NULL;
	if (list_empty(&f->now)) {
		list_splice_tail(&f->now, &f->next);
		f->round++;
	}
	flow = list_first(&f->now, struct sched_flow, turn);
	item = list_first(&flow->items, struct sched_item, link);
	flow->served = f->round;
	list_del(&flow->turn);
	list_add_tail(&f->next, &flow->turn);
	fair_remove(s, item);
	return item;
}

/* In each round one of each client. */
static unsigned int fair_ahead(const struct sched *s,
			       const struct sched_item *item,
			       unsigned int queued)
{
	const struct fair *f = container_of(s, struct fair, sched);
	uint64_t rounds = (uint64_t)fair_flow(item)->queued + 1;

	return (unsigned int)MIN(queued, rounds * f->clients);
}

const struct sched_ops sched_fair = {
	.name = "fair",
	.new = fair_new,
	.free = fair_free,
	.enqueue = fair_enqueue,
	.dequeue = fair_dequeue,
	.remove = fair_remove,
	.ahead = fair_ahead,
};
