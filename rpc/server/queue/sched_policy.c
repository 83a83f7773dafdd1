/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies: tables of functions, which sched.c finds by their names. */
#include "rpc/server/queue/sched.h"

/* ---- first come, first served ---- */

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

/* ---- earliest deadline first ---- */

/*
 * Requests with the same deadline, or without one,
 * which come last, in the order of their arrival. As long as all can be done in
 * time, all are; a caller who gives little time goes before others, so this is
 * for callers who can be trusted with that.
 */

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

/*
 * Fair between hosts, and between the clients of each host, in rounds: in each,
 * every host that has something waiting is served one request, of the client of
 * it whose turn it is, the oldest one. So who asks for much waits behind his
 * own requests, and not others behind them; and who makes many connections has
 * no more of the workers than who makes one.
 *
 * Who comes while a round goes on, and has had nothing of it yet, is served in
 * it: who calls again as soon as he has his reply has his part of each round,
 * however many others never run out of requests.
 *
 * With a quantum of more than one, a turn is that many requests of one client
 * in a row: round robin by client ("rr"). Then who asks for little waits longer
 * for his turn, and requests of one client, which may well be about the same
 * data, come together.
 */

/* Requests in a row of a client whose turn it is, by default. */
#define RR_QUANTUM 8

/* ---- turns ---- */

/* Adds an item to those of @t. */
static void turns_add(struct turns *ts, struct turn *t)
{
	if (t->queued++)
		return;
	list_init(&t->link);
	list_add_tail(t->served < ts->round ? &ts->now : &ts->next, &t->link);
	ts->n++;
}

static void turns_remove(struct turns *ts, struct turn *t)
{
	if (--t->queued)
		return;
	list_del(&t->link);
	ts->n--;
	if (ts->current == t)
		ts->left = 0;
}

/* The client or host whose turn it is, which there is; the turn is over after
 * @quantum items. */
static struct turn *turns_take(struct turns *ts, unsigned int quantum)
{
	struct turn *t;

	if (ts->left) {
		ts->left--;
		return ts->current;
	}
	if (list_empty(&ts->now)) {
		list_splice_tail(&ts->now, &ts->next);
		ts->round++;
	}
	t = list_first(&ts->now, struct turn, link);
	t->served = ts->round;
	list_del(&t->link);
	list_add_tail(&ts->next, &t->link);
	ts->current = t;
	ts->left = quantum - 1;
	return t;
}

static void turns_init(struct turns *ts)
{
	list_init(&ts->now);
	list_init(&ts->next);
	ts->left = 0;
}

/* ---- fair, and round robin ---- */

struct fair {
	struct sched sched;
	unsigned int quantum; /* at least 1 */
	struct turns hosts;
};

static struct sched *fair_make(const struct sched_plan *plan,
			       unsigned int quantum)
{
	struct fair *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->sched.ops = plan->ops;
	f->quantum = plan->quantum ? plan->quantum : quantum;
	turns_init(&f->hosts);
	return &f->sched;
}

static struct sched *fair_new(const struct sched_plan *plan)
{
	return fair_make(plan, 1);
}

static struct sched *rr_new(const struct sched_plan *plan)
{
	return fair_make(plan, RR_QUANTUM);
}

static void fair_free(struct sched *s)
{
	struct fair *f = container_of(s, struct fair, sched);

	BUG_ON(f->hosts.n);
	free(f);
}

static void fair_enqueue(struct sched *s, struct sched_item *item, uint64_t now)
{
	struct fair *f = container_of(s, struct fair, sched);
	struct sched_client *c = item->client;
	struct sched_host *h = c->host;
	unsigned int lane = item->lane;

	(void)now;
	if (!h->flow[lane].turn.queued)
		turns_init(&h->flow[lane].clients);
	if (!c->flow[lane].turn.queued)
		list_init(&c->flow[lane].items);
	turns_add(&f->hosts, &h->flow[lane].turn);
	turns_add(&h->flow[lane].clients, &c->flow[lane].turn);
	list_add_tail(&c->flow[lane].items, &item->link);
}

static void fair_remove(struct sched *s, struct sched_item *item)
{
	struct fair *f = container_of(s, struct fair, sched);
	struct sched_client *c = item->client;
	struct sched_host *h = c->host;
	unsigned int lane = item->lane;

	list_del(&item->link);
	turns_remove(&h->flow[lane].clients, &c->flow[lane].turn);
	turns_remove(&f->hosts, &h->flow[lane].turn);
}

static struct sched_item *fair_dequeue(struct sched *s, uint64_t now,
				       uint64_t *again)
{
	struct fair *f = container_of(s, struct fair, sched);
	struct sched_client_flow *c;
	struct sched_host_flow *h;
	struct sched_item *item;

	(void)now;
	(void)again;
	if (!f->hosts.n)
		return NULL;
	h = container_of(turns_take(&f->hosts, f->quantum),
			 struct sched_host_flow, turn);
	c = container_of(turns_take(&h->clients, f->quantum),
			 struct sched_client_flow, turn);
	item = list_first(&c->items, struct sched_item, link);
	fair_remove(s, item);
	return item;
}

/* Those before an item that has @own items before it, with as many others in
 * turn: of each other one, for each turn that it takes, a quantum. */
static uint64_t fair_turns(const struct fair *f, uint64_t own, uint64_t others)
{
	return own + (own / f->quantum + 1) * f->quantum * others;
}

static unsigned int fair_ahead(const struct sched *s,
			       const struct sched_item *item,
			       unsigned int queued)
{
	const struct fair *f = container_of(s, struct fair, sched);
	const struct sched_host_flow *h = &item->client->host->flow[item->lane];
	const struct sched_client_flow *c = &item->client->flow[item->lane];
	uint64_t of_host = 0, n;

	if (h->turn.queued) {
		of_host = fair_turns(f, c->turn.queued,
				     h->clients.n - (c->turn.queued != 0));
		of_host = MIN(of_host, h->turn.queued);
	}
	n = fair_turns(f, of_host, f->hosts.n - (h->turn.queued != 0));
	return (unsigned int)MIN(queued, n);
}

const struct sched_ops sched_fair = {
	.name = "fair",
	.quantum = true,
	.new = fair_new,
	.free = fair_free,
	.enqueue = fair_enqueue,
	.dequeue = fair_dequeue,
	.remove = fair_remove,
	.ahead = fair_ahead,
};

const struct sched_ops sched_rr = {
	.name = "rr",
	.quantum = true,
	.new = rr_new,
	.free = fair_free,
	.enqueue = fair_enqueue,
	.dequeue = fair_dequeue,
	.remove = fair_remove,
	.ahead = fair_ahead,
};
