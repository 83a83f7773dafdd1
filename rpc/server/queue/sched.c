/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/queue/sched.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "rpc/server/queue/gate.h"

#define QUANTUM_MAX 65536

/* All policies. The first one is the default. */
static const struct sched_ops *const policies[] = {
	&sched_fair,
	&sched_rr,
	&sched_fifo,
	&sched_edf,
};

static int __attribute__((format(printf, 4, 5)))
plan_error(struct ulnet_text_error *err, size_t offset, int rc, const char *fmt,
	   ...)
{
	va_list args;

	if (!err)
		return rc;
	err->offset = offset;
	va_start(args, fmt);
	vsnprintf(err->what, sizeof(err->what), fmt, args);
	va_end(args);
	return rc;
}

static size_t sched_blanks(const char *s)
{
	return strspn(s, " \t");
}

static size_t word(const char *s)
{
	return strcspn(s, " \t;");
}

static bool sched_is_word(const char *s, const char *name)
{
	size_t n = word(s);

	return n == strlen(name) && !strncmp(s, name, n);
}

/* If text[*at_p] begins with "quantum=N", reads N and moves *@at_p behind it.
 * Returns 0 or -EINVAL. */
static int plan_quantum(const char *text, size_t *at_p, struct sched_plan *plan,
			struct ulnet_text_error *err)
{
	static const char name[] = "quantum=";
	const char *s = text + *at_p;
	unsigned long n;
	char *end;

	if (strncmp(s, name, strlen(name)) != 0)
		return 0;
	if (!plan->ops->quantum)
		return plan_error(err, *at_p, -EINVAL, "%s has no quantum",
				  plan->ops->name);
	s += strlen(name);
	n = isdigit((unsigned char)*s) ? strtoul(s, &end, 10) : 0;
	if (!n || n > QUANTUM_MAX || end != s + word(s))
		return plan_error(err, *at_p, -EINVAL,
				  "quantum: not from 1 to %d", QUANTUM_MAX);
	plan->quantum = (unsigned int)n;
	*at_p = (size_t)(end - text);
	*at_p += sched_blanks(text + *at_p);
	return 0;
}

static int plan_order(const char *text, size_t *at_p, struct sched_plan *plan,
		      struct ulnet_text_error *err)
{
	const char *s = text + *at_p;

	plan->ops = policies[0];
	if (sched_is_word(s, "tbf"))
		return 0;
	plan->ops = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (sched_is_word(s, policies[i]->name))
			plan->ops = policies[i];
	if (!plan->ops)
		return plan_error(err, *at_p, -EOPNOTSUPP,
				  "'%.*s' is no policy: fair, rr, fifo, edf or "
				  "tbf is expected",
				  (int)word(s), s);
	*at_p += word(s);
	*at_p += sched_blanks(text + *at_p);
	return plan_quantum(text, at_p, plan, err);
}

static int sched_plan_rules(const char *text, size_t at,
			    struct sched_plan *plan,
			    struct ulnet_text_error *err)
{
	int rc;

	if (!text[at])
		return 0;
	if (!sched_is_word(text + at, "tbf"))
		return plan_error(err, at, -EINVAL,
				  "%.*s: 'tbf' is expected here",
				  (int)MIN(word(text + at), 32u), text + at);
	at += word(text + at);
	at += sched_blanks(text + at);
	plan->rules_at = at;
	rc = gate_rules_parse(text + at, &plan->rules, err);
	if (rc == -EINVAL && err)
		err->offset += at;
	return rc;
}

int sched_plan_parse(const char *text, struct sched_plan *plan,
		     struct ulnet_text_error *err)
{
	size_t at;
	int rc;

	*plan = (struct sched_plan){ .ops = policies[0] };
	if (!text)
		return 0;
	at = sched_blanks(text);
	rc = plan_order(text, &at, plan, err);
	return rc ? rc : sched_plan_rules(text, at, plan, err);
}

int sched_plan_check(const struct sched_plan *plan, const char *text,
		     bool (*has)(const void *arg, uint32_t method),
		     const void *arg, struct ulnet_text_error *err)
{
	int rc;

	if (!plan->rules)
		return 0;
	rc = gate_rules_check(plan->rules, text + plan->rules_at, has, arg,
			      err);
	if (rc && err)
		err->offset += plan->rules_at;
	return rc;
}

void sched_plan_free(struct sched_plan *plan)
{
	gate_rules_free(plan->rules);
	plan->rules = NULL;
}

static struct sched *sched_new(const struct sched_plan *plan)
{
	struct sched *s = calloc(1, plan->ops->size);

	if (!s)
		return NULL;
	s->ops = plan->ops;
	if (s->ops->init)
		s->ops->init(s, plan);
	return s;
}

int lanes_init(struct lanes *l, const struct sched_plan *plan,
	       unsigned int ratio)
{
	bool ok = true;

	*l = (struct lanes){ .ratio = ratio };
	for (unsigned int i = 0; i < LANES; i++) {
		l->lane[i].sched = sched_new(plan);
		ok = ok && l->lane[i].sched;
	}
	if (plan->rules) {
		l->gate = gate_new(plan->rules, ratio);
		ok = ok && l->gate;
	}
	if (ok)
		return 0;
	lanes_fini(l);
	return -ENOMEM;
}

void lanes_fini(struct lanes *l)
{
	BUG_ON(l->queued);
	for (unsigned int i = 0; i < LANES; i++) {
		free(l->lane[i].sched);
		l->lane[i].sched = NULL;
	}
	if (l->gate)
		gate_free(l->gate);
	l->gate = NULL;
}

static void lane_put(struct lanes *l, struct sched_item *item, uint64_t now)
{
	struct sched *s = l->lane[item->lane].sched;

	s->ops->enqueue(s, item, now);
	item->client->queued++;
	l->lane[item->lane].queued++;
	l->queued++;
}

out_of_line void lanes_release(struct lanes *l, uint64_t now, uint64_t *again)
{
	struct sched_item *item;

	while ((item = gate_next(l->gate, now, again)))
		lane_put(l, item, item->released);
}

static out_of_line bool lanes_hold(struct lanes *l, struct sched_item *item,
				   uint64_t now)
{
	uint64_t again = TIME_NEVER;

	lanes_release(l, now, &again);
	return gate_hold(l->gate, item, now);
}

void lanes_put(struct lanes *l, struct sched_item *item, uint64_t now)
{
	item->queued = true;
	if (unlikely(l->gate) && lanes_hold(l, item, now))
		return;
	lane_put(l, item, now);
}

static void lanes_taken(struct lanes *l, struct sched_item *item)
{
	item->queued = false;
	item->client->queued--;
	l->lane[item->lane].queued--;
	l->queued--;
}

void lanes_remove(struct lanes *l, struct sched_item *item)
{
	struct sched *s = l->lane[item->lane].sched;

	BUG_ON(!item->queued);
	if (unlikely(item->flow)) {
		item->queued = false;
		gate_remove(l->gate, item);
		return;
	}
	s->ops->remove(s, item);
	lanes_taken(l, item);
}

/* Takes all items out of @l: @held are those in the gate, by their arrival.
 * Those in lanes are sorted likewise. */
static void lanes_empty(struct lanes *l, struct heap *held, struct heap *queued)
{
	uint64_t again = TIME_NEVER;

	heap_init(held);
	heap_init(queued);
	while (l->gate && !gate_is_empty(l->gate)) {
		struct sched_item *item = gate_any(l->gate);

		lanes_remove(l, item);
		heap_add(held, &item->node, item->arrival);
	}
	for (unsigned int i = 0; i < LANES; i++)
		while (l->lane[i].queued) {
			struct sched *s = l->lane[i].sched;
			struct sched_item *item =
				s->ops->dequeue(s, TIME_NEVER, &again);

			BUG_ON(!item);
			lanes_taken(l, item);
			heap_add(queued, &item->node, item->arrival);
		}
}

static struct sched_item *heap_pop(struct heap *h)
{
	struct heap_node *n = heap_first(h);

	if (!n)
		return NULL;
	heap_del(h, n);
	return container_of(n, struct sched_item, node);
}

/* Items that were in lanes have passed the old gate, and do not wait in the new
 * one. */
void lanes_move(struct lanes *from, struct lanes *to, uint64_t now)
{
	struct heap held, queued;
	struct sched_item *item;

	lanes_empty(from, &held, &queued);
	while ((item = heap_pop(&queued))) {
		item->queued = true;
		lane_put(to, item, now);
	}
	while ((item = heap_pop(&held))) {
		item->queued = true;
		if (to->gate && gate_hold(to->gate, item, now))
			continue;
		item->released = now;
		lane_put(to, item, now);
	}
}

static bool lower_waits(const struct lanes *l, unsigned int lane,
			unsigned int mask)
{
	while (++lane < LANES)
		if (mask & 1u << lane && l->lane[lane].queued)
			return true;
	return false;
}

static struct sched_item *take_from(struct lanes *l, unsigned int i,
				    unsigned int mask, uint64_t now,
				    uint64_t *again)
{
	struct lane *lane = &l->lane[i];
	struct sched_item *item;

	if (!(mask & 1u << i) || !lane->queued)
		return NULL;
	item = lane->sched->ops->dequeue(lane->sched, now, again);
	if (!item)
		return NULL;
	lane->row = lower_waits(l, i, mask) ? lane->row + 1 : 0;
	lanes_taken(l, item);
	return item;
}

struct sched_item *lanes_take(struct lanes *l, unsigned int mask, uint64_t now,
			      uint64_t *again)
{
	if (unlikely(l->gate))
		lanes_release(l, now, again);
	/* The first pass leaves out lanes that have had `ratio` items in a row
	 * while a lower lane waits. The second pass is needed if that lower
	 * lane then holds back all of its items: it looks at all lanes. */
	for (unsigned int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < LANES; i++) {
			struct sched_item *item;

			if (!pass && l->lane[i].row >= l->ratio &&
			    lower_waits(l, i, mask)) {
				l->lane[i].row = 0;
				continue;
			}
			item = take_from(l, i, mask, now, again);
			if (item)
				return item;
		}
	return NULL;
}

/* Each item of this lane that is ahead, and @item itself, may let at most
 * `ratio` items of each higher lane go first. Each `ratio` items of this lane
 * let at most one item of each lower lane go first. */
unsigned int lanes_ahead(const struct lanes *l, const struct sched_item *item)
{
	const struct lane *own = &l->lane[item->lane];
	const struct sched_ops *ops = own->sched->ops;
	uint64_t ahead = ops->ahead ? ops->ahead(own->sched, item, own->queued)
				    : own->queued;
	uint64_t n = ahead;

	for (unsigned int i = 0; i < LANES; i++) {
		uint64_t most = i < item->lane ? (ahead + 1) * l->ratio
					       : ahead / l->ratio;

		if (i != item->lane)
			n += MIN(l->lane[i].queued, most);
	}
	return (unsigned int)MIN(n, UINT32_MAX);
}

uint64_t lanes_gate_wait(const struct lanes *l, const struct sched_item *item,
			 uint64_t now)
{
	return unlikely(l->gate) ? gate_wait(l->gate, item, now) : 0;
}

bool lanes_any(const struct lanes *l)
{
	return l->queued || (l->gate && !gate_is_empty(l->gate));
}
