/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/client/client.h"
#include "rpc/client/import.h"
#include "rpc/wire/wire.h"

/* ---- the order of servers ---- */

/* Returns how many addresses, from @a on, have the priority of the first one.
 */
static unsigned int group_of(const struct ulnet_address *a, unsigned int n)
{
	unsigned int k = 1;

	while (k < n && a[k].priority == a->priority)
		k++;
	return k;
}

static uint64_t weights_of(const struct ulnet_address *a, unsigned int n)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += a[i].weight;
	return sum;
}

/* Moves one of the @n addresses to the front: the one whose weight @ticket
 * falls into. */
static void draw(struct ulnet_address *a, unsigned int n, uint64_t ticket)
{
	unsigned int k = 0;
	struct ulnet_address one;

	while (k + 1 < n && ticket >= a[k].weight)
		ticket -= a[k++].weight;
	one = a[k];
	memmove(a + 1, a, k * sizeof(*a));
	*a = one;
}

void target_order(struct ulnet_address *a, unsigned int n,
		  uint64_t (*random)(void *arg, uint64_t below), void *arg)
{
	while (n) {
		unsigned int left = group_of(a, n);
		uint64_t sum;

		n -= left;
		for (; (sum = weights_of(a, left)); left--)
			draw(a++, left, random(arg, sum));
		a += left;
	}
}

static uint64_t random_below(void *arg, uint64_t below)
{
	return shard_random(arg, below - 1);
}

/* ---- going to a server ---- */

/* Is no call under way that another server would have to know? All calls that
 * were never sent are in client.queue, and those that are to be sent again in
 * client.again. */
static bool may_go(const struct ulrpc_client *c)
{
	const struct ulrpc_call *call;

	if (c->nqueued != c->ncalls || !list_empty(&c->stalled) ||
	    !list_empty(&c->fenced))
		return false;
	list_for_each_entry (call, &c->again, link)
		if (call->unknown || call->flags & WIRE_CALL_RESENT)
			return false;
	return true;
}

static void target_give(struct client_target *t)
{
	if (t->given || !t->name)
		return;
	t->given = true;
	shard_hold(t->client->shard);
	shard_defer(t->client->shard, &t->work);
}

static void target_later(struct client_target *t, uint64_t pause)
{
	struct shard *s = t->client->shard;

	shard_arm(s, &t->timer, rpc_at(shard_now(s), pause));
}

/* Notes whether the client is to go to the address @at as soon as it may. */
static void target_want(struct client_target *t, bool wanted)
{
	t->wanted = wanted;
	t->client->heeds_quiet =
		wanted || client_marks(t->client) & CLIENT_CLOSED;
}

static void target_go(struct client_target *t)
{
	if (t->ops->go(t->client, &t->addresses[t->at].nid, t->pid))
		target_later(t, TARGET_PAUSE_MIN);
	else
		target_want(t, false);
}

static void target_on_work(struct ulnet_work *work)
{
	struct client_target *t =
		container_of(work, struct client_target, work);
	struct shard *s = t->client->shard;

	t->given = false;
	if (t->name && t->wanted && !lnet_timer_armed(&t->timer) &&
	    may_go(t->client))
		target_go(t);
	shard_release(s);
}

static void target_on_timer(struct ulnet_timer *timer)
{
	target_give(container_of(timer, struct client_target, timer));
}

static uint64_t target_pause(const struct client_target *t)
{
	uint64_t pause = TARGET_PAUSE_MIN;

	for (unsigned int i = t->n; i < t->failed && pause < TARGET_PAUSE_MAX;
	     i += t->n)
		pause *= 2;
	return MIN(pause, TARGET_PAUSE_MAX);
}

/* ---- what happens ---- */

/* Returns the index of @nid among the addresses; t->n: it is not there. */
static unsigned int target_find(const struct client_target *t,
				const struct ulnet_nid *nid)
{
	unsigned int i = 0;

	while (i < t->n && !lnet_nid_eq(&t->addresses[i].nid, nid))
		i++;
	return i;
}

void target_on_up(struct client_target *t)
{
	unsigned int at = target_find(t, &t->client->imp->nids[0]);

	t->failed = 0;
	if (at == t->n)
		return;
	/* The server may be back before the client could go to the next one. */
	t->at = at;
	target_want(t, false);
	shard_cancel(t->client->shard, &t->timer);
}

void target_on_down(struct client_target *t)
{
	if (t->wanted) {
		target_give(t);
		return;
	}
	/* With a single server there is no other: the import tries it again by
	 * itself. */
	if (t->n < 2 || t->pinned)
		return;
	t->failed++;
	t->at = (t->at + 1) % t->n;
	target_want(t, true);
	if (t->failed % t->n == 0)
		target_later(t, target_pause(t));
	else
		target_give(t);
}

void target_on_quiet(struct client_target *t)
{
	if (t->wanted)
		target_give(t);
}

bool target_has_more(const struct client_target *t)
{
	return t->wanted && (!t->failed || t->failed % t->n) &&
	       may_go(t->client);
}

/* If the node only calls, adds the NIs by which this host reaches the servers.
 * That could not be done when the client was opened, because the name was not
 * known. */
static void target_reach(const struct client_target *t)
{
	struct lnet *node = t->client->shard->node;
	struct ulnet_id own;

	if (LNetGetId(node, 0, &own) || !(own.pid & LNET_PID_USERFLAG))
		return;
	for (unsigned int i = 0; i < t->n; i++) {
		int rc = lnet_ni_reach(node, &t->addresses[i].nid);

		if (rc)
			lnet_log(LNET_LOG_INFO, "rpc",
				 "%s: no interface for it: %s", t->text,
				 strerror(-rc));
	}
}

/* Copies the addresses of @answer, in the order in which they are to be tried.
 */
static int target_take(struct client_target *t,
		       const struct ulnet_name_answer *answer)
{
	size_t bytes = answer->n * sizeof(*t->addresses);
	struct ulnet_address *fresh = malloc(bytes);

	if (!fresh)
		return -ENOMEM;
	memcpy(fresh, answer->addresses, bytes);
	target_order(fresh, answer->n, random_below, t->client->shard);
	free(t->addresses);
	t->addresses = fresh;
	t->n = answer->n;
	return 0;
}

/* Stays with the server, or goes to the first one if it is not among those of
 * the answer. */
static void target_choose(struct client_target *t)
{
	struct ulrpc_client *c = t->client;

	t->at = c->imp->nameless ? t->n : target_find(t, &c->imp->nids[0]);
	t->failed = 0;
	target_want(t, t->at == t->n);
	shard_cancel(c->shard, &t->timer);
	if (t->wanted) {
		t->at = 0;
		target_give(t);
	}
}

static void target_on_answer(void *arg, const struct ulnet_name_answer *answer)
{
	struct client_target *t = arg;
	struct ulrpc_client *c = t->client;

	memcpy(t->why, answer->why, sizeof(t->why));
	t->no_address = !answer->n;
	if (!answer->n) {
		if (!t->pinned)
			t->ops->no_address(c);
		return;
	}
	/* if there is no memory, the next answer counts */
	if (target_take(t, answer))
		return;
	target_reach(t);
	if (!t->pinned)
		target_choose(t);
}

void target_pin(struct client_target *t)
{
	t->pinned = true;
	target_want(t, false);
	shard_cancel(t->client->shard, &t->timer);
}

bool target_is_astray(const struct client_target *t)
{
	return t->n && target_find(t, &t->client->imp->nids[0]) == t->n;
}

void target_unpin(struct client_target *t)
{
	t->pinned = false;
	/* A server that is away is left when it cannot be connected to. */
	if (t->n)
		target_choose(t);
}

/* ---- life ---- */

struct client_target *target_new(struct ulrpc_client *c, const char *text,
				 uint32_t pid, const struct target_ops *ops)
{
	struct client_target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->text = strdup(text);
	if (!t->text) {
		free(t);
		return NULL;
	}
	t->client = c;
	t->ops = ops;
	t->pid = pid;
	strcpy(t->why, "nobody has answered yet");
	t->work.fn = target_on_work;
	lnet_timer_init(&t->timer, target_on_timer);
	return t;
}

int target_open(struct client_target *t)
{
	struct shard *s = t->client->shard;

	return lnet_name_open(s->node, s->cpt, t->text, target_on_answer, t,
			      &t->name, NULL);
}

void target_stop(struct client_target *t)
{
	shard_cancel(t->client->shard, &t->timer);
	lnet_name_close(t->name);
	t->name = NULL;
}

void target_free(struct client_target *t)
{
	if (!t)
		return;
	free(t->addresses);
	free(t->text);
	free(t);
}
