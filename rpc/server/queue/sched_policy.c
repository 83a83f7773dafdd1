/* SPDX-License-Identifier: BSD-3-Clause */
/* The policies in which services serve requests: struct sched_ops (sched.h). */
#include "rpc/server/queue/sched.h"

/* ---- by one key: first come, first served; earliest deadline first ---- */

/*
 * Items in the order of their keys; items with equal keys in the order of
 * arrival. fifo gives all items the same key. With edf the key is the deadline,
 * so items without a deadline come last. A caller who gives little time
 * overtakes others, so edf is for callers who can be trusted with that.
 */
struct keyed {
	struct sched sched;
	struct heap items; /* of sched_item.node */
};

static void keyed_enqueue(struct sched *s, struct sched_item *item,
			  uint64_t now)
{
	struct keyed *k = container_of(s, struct keyed, sched);

	(void)now;
	heap_add(&k->items, &item->node,
		 s->ops == &sched_edf ? item->deadline : 0);
}

static void keyed_remove(struct sched *s, struct sched_item *item)
{
	heap_del(&container_of(s, struct keyed, sched)->items, &item->node);
}

static struct sched_item *keyed_dequeue(struct sched *s, uint64_t now,
					uint64_t *again)
{
	struct keyed *k = container_of(s, struct keyed, sched);
	struct heap_node *n = heap_first(&k->items);

	(void)now;
	(void)again;
	if (!n)
		return NULL;
	heap_del(&k->items, n);
	return container_of(n, struct sched_item, node);
}

/* If the first item is due later than @item, @item would be first. Else this
 * does not search: all items count as ahead. */
static unsigned int edf_ahead(const struct sched *s,
			      const struct sched_item *item,
			      unsigned int queued)
{
	const struct keyed *k = container_of(s, struct keyed, sched);
	const struct heap_node *n = heap_first(&k->items);

	return n && n->key <= item->deadline ? queued : 0;
}

const struct sched_ops sched_fifo = {
	.name = "fifo",
	.size = sizeof(struct keyed),
	.enqueue = keyed_enqueue,
	.dequeue = keyed_dequeue,
	.remove = keyed_remove,
};

const struct sched_ops sched_edf = {
	.name = "edf",
	.size = sizeof(struct keyed),
	.enqueue = keyed_enqueue,
	.dequeue = keyed_dequeue,
	.remove = keyed_remove,
	.ahead = edf_ahead,
};

/* ---- fair, and round robin ---- */

/*
 * Fair between hosts, and between the clients of each host, in rounds. In each
 * round, one request of every host is served: the oldest one of the client of
 * the host whose turn it is. So a client that asks for much waits behind its
 * own requests, and others do not wait behind them; and a host with many
 * connections gets no more than a host with one.
 *
 * A host whose first request comes during a round is served in that round,
 * unless it has been served in it already. So a client that calls again as soon
 * as it has its reply takes part in each round.
 *
 * With a quantum of more than one, a turn is that many requests of one client
 * in a row ("rr"). A client that asks for little then waits longer for its
 * turn, but requests of one client, which are often about the same data, are
 * served together.
 */

/* Requests in a row of a client whose turn it is, by default. */
#define RR_QUANTUM 8

/* ---- turns ---- */

/* Counts one more item for @t. With its first item, @t enters the round. */
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

/* Returns the client or host whose turn it is for one item. There has to be
 * one. A turn is @quantum items. */
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

/* ---- the two policies ---- */

struct fair {
	struct sched sched;
	unsigned int quantum; /* items in a turn; at least 1 */
	struct turns hosts;
};

static void fair_init(struct sched *s, const struct sched_plan *plan)
{
	struct fair *f = container_of(s, struct fair, sched);

	f->quantum = plan->quantum ? plan->quantum : plan->ops->quantum;
	turns_init(&f->hosts);
	f->hosts.round = plan->round;
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

/* Returns how many items, at most, are served before an item that has @own
 * items of its client (or host) before it, while @others clients (or hosts)
 * take turns with that client (or host). Each of the others is served one
 * quantum for each turn that it has. */
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
	.quantum = 1,
	.size = sizeof(struct fair),
	.init = fair_init,
	.enqueue = fair_enqueue,
	.dequeue = fair_dequeue,
	.remove = fair_remove,
	.ahead = fair_ahead,
};

const struct sched_ops sched_rr = {
	.name = "rr",
	.quantum = RR_QUANTUM,
	.size = sizeof(struct fair),
	.init = fair_init,
	.enqueue = fair_enqueue,
	.dequeue = fair_dequeue,
	.remove = fair_remove,
	.ahead = fair_ahead,
};
