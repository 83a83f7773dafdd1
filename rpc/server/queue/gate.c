/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/queue/gate.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/hash.h"
#include "base/pool.h"
#include "ulnet/rpc.h"

#define RULES_MAX 256
#define DEPTH	  3
#define RATE_MAX  1000000000u
#define DEPTH_MAX 1000000u
/* more than any number that an item may have */
#define NUMBER_MAX (UINT64_C(1) << 32)

enum gate_per { GATE_PER_HOST, GATE_PER_CLIENT, GATE_PER_RULE };

/* A part of the text of the rules. */
struct gate_span {
	size_t at;
	int length;
};

struct gate_rule {
	/* the rule is for these NIDs; NULL: for any */
	struct ulnet_nidlist *nids;
	/* the rule is for one pid, or for one method; false: for any */
	bool one_pid, one_method;
	uint32_t pid, method;
	/* where the name of the method is in the text of the rules, for
	 * complaints */
	struct gate_span name;
	uint32_t rate;	/* requests per second; not 0 */
	uint32_t depth; /* tokens that a bucket holds; not 0 */
	enum gate_per per;
};

/* The parsed rules of a gate. They do not change. */
struct gate_rules {
	unsigned int n;
	struct gate_rule rule[];
};

/* "name=value" in the text of a rule. The strings do not end with a 0. */
struct gate_word {
	const char *name, *value;
	int name_length, value_length;
};

struct gate_parser {
	const char *text, *at;
	unsigned int rule; /* number of the rule that is being read, from 1 */
	struct ulnet_text_error *err;
};

/* ---- errors ---- */

static int __attribute__((format(printf, 3, 4)))
gate_error(const struct gate_parser *p, const char *where, const char *fmt, ...)
{
	char what[64];
	va_list args;

	if (!p->err)
		return -EINVAL;
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	p->err->offset = (size_t)(where - p->text);
	snprintf(p->err->what, sizeof(p->err->what), "rule %u: %s", p->rule,
		 what);
	return -EINVAL;
}

static int word_error(const struct gate_parser *p, const struct gate_word *w,
		      const char *what)
{
	return gate_error(p, w->name, "%.*s: %s", MIN(w->name_length, 16),
			  w->name, what);
}

/* ---- words ---- */

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

static bool is_item(const char *s)
{
	size_t n = strcspn(s, " \t;=");

	return n && s[n] == '=';
}

static bool gate_word_is(const char *s, int length, const char *name)
{
	return (size_t)length == strlen(name) &&
	       !strncmp(s, name, (size_t)length);
}

/* Returns the length of the list of NIDs at @value. The list may have blanks in
 * it, so it ends where the next item begins. */
static int list_length(const char *value)
{
	const char *s = value, *end = value;

	while (*s && *s != ';' && !is_item(s)) {
		s += strcspn(s, " \t;");
		end = s;
		s = skip_blanks(s);
	}
	return (int)(end - value);
}

/* Reads the next item into *@w. Returns 1; 0: the rule ends here; -EINVAL. */
static int gate_next_word(struct gate_parser *p, struct gate_word *w)
{
	p->at = skip_blanks(p->at);
	if (!*p->at || *p->at == ';')
		return 0;
	w->name = p->at;
	w->name_length = (int)strcspn(p->at, " \t;=");
	if (!is_item(p->at))
		return word_error(p, w, "is to be name=value");
	w->value = w->name + w->name_length + 1;
	w->value_length = gate_word_is(w->name, w->name_length, "nid")
				  ? list_length(w->value)
				  : (int)strcspn(w->value, " \t;");
	p->at = w->value + w->value_length;
	return w->value_length ? 1 : word_error(p, w, "has no value");
}

/* ---- items ---- */

static int gate_take_number(const struct gate_parser *p,
			    const struct gate_word *w, uint32_t min,
			    uint32_t max, uint32_t *n_p)
{
	uint64_t n = 0;

	for (int i = 0; i < w->value_length; i++) {
		if (!isdigit((unsigned char)w->value[i]))
			return word_error(p, w, "not a number");
		n = MIN(n * 10 + (uint64_t)(w->value[i] - '0'), NUMBER_MAX);
	}
	if (n < min || n > max)
		return gate_error(p, w->value, "%.*s: not from %u to %u",
				  w->name_length, w->name, min, max);
	*n_p = (uint32_t)n;
	return 0;
}

static int take_nids(const struct gate_parser *p, struct gate_rule *r,
		     const struct gate_word *w)
{
	struct ulnet_text_error err;
	char *text = strndup(w->value, (size_t)w->value_length);
	int rc = text ? lnet_nidlist_parse(text, &r->nids, &err) : -ENOMEM;

	free(text);
	return rc == -EINVAL ? gate_error(p, w->value + err.offset, "nid: %s",
					  err.what)
			     : rc;
}

static int gate_take_pid(const struct gate_parser *p, struct gate_rule *r,
			 const struct gate_word *w)
{
	r->one_pid = true;
	return gate_take_number(p, w, 0, UINT32_MAX, &r->pid);
}

static int take_method(const struct gate_parser *p, struct gate_rule *r,
		       const struct gate_word *w)
{
	char *name = strndup(w->value, (size_t)w->value_length);

	if (!name)
		return -ENOMEM;
	r->one_method = true;
	r->name = (struct gate_span){ (size_t)(w->value - p->text),
				      w->value_length };
	r->method = ulrpc_method(name);
	free(name);
	return 0;
}

static int take_rate(const struct gate_parser *p, struct gate_rule *r,
		     const struct gate_word *w)
{
	return gate_take_number(p, w, 1, RATE_MAX, &r->rate);
}

static int take_depth(const struct gate_parser *p, struct gate_rule *r,
		      const struct gate_word *w)
{
	return gate_take_number(p, w, 1, DEPTH_MAX, &r->depth);
}

static int take_per(const struct gate_parser *p, struct gate_rule *r,
		    const struct gate_word *w)
{
	static const char *const names[] = {
		[GATE_PER_HOST] = "host",
		[GATE_PER_CLIENT] = "client",
		[GATE_PER_RULE] = "rule",
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (gate_word_is(w->value, w->value_length, names[i])) {
			r->per = (enum gate_per)i;
			return 0;
		}
	return word_error(p, w, "is to be host, client or rule");
}

static const struct {
	const char *name;
	int (*take)(const struct gate_parser *p, struct gate_rule *r,
		    const struct gate_word *w);
} items[] = {
	{ "nid", take_nids },	   { "pid", gate_take_pid },
	{ "method", take_method }, { "rate", take_rate },
	{ "depth", take_depth },   { "per", take_per },
};

/* ---- rules ---- */

static int gate_take_word(struct gate_parser *p, struct gate_rule *r,
			  const struct gate_word *w, unsigned int *seen)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(items); i++) {
		if (!gate_word_is(w->name, w->name_length, items[i].name))
			continue;
		if (*seen & 1u << i)
			return word_error(p, w, "there twice");
		*seen |= 1u << i;
		return items[i].take(p, r, w);
	}
	return word_error(p, w, "there is no such item");
}

static int gate_take_rule(struct gate_parser *p, struct gate_rule *r)
{
	const char *begin = skip_blanks(p->at);
	unsigned int seen = 0;
	struct gate_word w;
	int rc;

	*r = (struct gate_rule){ .depth = DEPTH };
	while ((rc = gate_next_word(p, &w)) > 0) {
		rc = gate_take_word(p, r, &w, &seen);
		if (rc)
			return rc;
	}
	if (!rc && !r->rate)
		return gate_error(p, begin, "has no rate");
	return rc;
}

static bool rule_takes_all(const struct gate_rule *r)
{
	return !r->nids && !r->one_pid && !r->one_method;
}

static int take_rules(struct gate_parser *p, struct gate_rules *rules,
		      unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct gate_rule *r = &rules->rule[i];
		int rc;

		p->rule = i + 1;
		if (i && rule_takes_all(r - 1))
			return gate_error(p, p->at,
					  "never reached: rule %u is for all",
					  i);
		rc = gate_take_rule(p, r);
		rules->n++;
		if (rc)
			return rc;
		p->at += *p->at == ';';
	}
	return 0;
}

static unsigned int rules_count(const char *text)
{
	unsigned int n = 1;

	while ((text = strchr(text, ';'))) {
		text = skip_blanks(text + 1);
		n += *text != 0; /* no rule follows a ';' at the end */
	}
	return n;
}

int gate_rules_parse(const char *text, struct gate_rules **rules_p,
		     struct ulnet_text_error *err)
{
	struct gate_parser p = {
		.text = text, .at = text, .rule = 1, .err = err
	};
	unsigned int n = rules_count(text);
	struct gate_rules *rules;
	int rc;

	if (n > RULES_MAX)
		return gate_error(&p, text, "there are more than %u",
				  RULES_MAX);
	rules = calloc(1, sizeof(*rules) + n * sizeof(rules->rule[0]));
	if (!rules)
		return -ENOMEM;
	rc = take_rules(&p, rules, n);
	if (rc) {
		gate_rules_free(rules);
		return rc;
	}
	*rules_p = rules;
	return 0;
}

int gate_rules_check(const struct gate_rules *rules, const char *text,
		     gate_method_fn has, const void *arg,
		     struct ulnet_text_error *err)
{
	for (unsigned int i = 0; i < rules->n; i++) {
		const struct gate_rule *r = &rules->rule[i];
		const char *name = text + r->name.at;
		const struct gate_parser p = { .text = text,
					       .rule = i + 1,
					       .err = err };

		if (r->one_method && !has(arg, r->method))
			return gate_error(&p, name,
					  "method: there is no '%.*s'",
					  MIN(r->name.length, 24), name);
	}
	return 0;
}

void gate_rules_free(struct gate_rules *rules)
{
	for (unsigned int i = 0; rules && i < rules->n; i++)
		lnet_nidlist_free(rules->rule[i].nids);
	free(rules);
}

static unsigned int gate_rules_match(const struct gate_rules *rules,
				     const struct sched_item *item)
{
	const struct sched_client *c = item->client;
	unsigned int i;

	for (i = 0; i < rules->n; i++) {
		const struct gate_rule *r = &rules->rule[i];

		if (r->one_method && r->method != item->method)
			continue;
		if (r->one_pid && r->pid != c->pid)
			continue;
		if (!r->nids || lnet_nidlist_match(r->nids, c->host->nid))
			break;
	}
	return i;
}

/*
 * Token buckets. The level of a bucket is kept as a time, `full`: when it would
 * be full again if nothing more passed. Each request that passes moves `full`
 * on by the time of one token. There is a token while `full` is at most the
 * time of depth - 1 tokens away. Parts of a nanosecond are kept, so rates are
 * exact.
 */

/* The key of a bucket, or of a flow in a bucket. Has no padding, because its
 * bytes are hashed. Peers do not know the addresses of rules and buckets, so
 * nobody can choose keys that collide. */
struct gate_key {
	/* of a bucket: the address of its rule; of a flow: the address of its
	 * bucket */
	uint64_t of;
	uint64_t client;      /* 0: all clients */
	struct ulnet_nid nid; /* all 0: all NIDs */
	uint8_t zero[4];
};
_Static_assert(sizeof(struct gate_key) ==
		       2 * sizeof(uint64_t) + sizeof(struct ulnet_nid) + 4,
	       "no padding");

/* A client or host that takes turns at a bucket, in one lane. Exists while it
 * has items. */
struct gate_flow {
	/* node in gate.flows; gate_lane.common is not there */
	struct hash_node by_key;
	struct gate_key key;
	struct gate_bucket *bucket;
	struct list link;  /* node in gate_lane.flows */
	struct list items; /* of sched_item.link */
	unsigned int n;	   /* how many items are in @items */
	unsigned int lane;
};

/* The items of a bucket that are in one lane. */
struct gate_lane {
	struct list flows; /* of gate_flow.link; the first flow has its turn */
	unsigned int nflows, nitems;
	/* items that have passed in a row while lower lanes waited */
	unsigned int row;
	/* the flow of items for which no flow could be allocated */
	struct gate_flow common;
};

/* A token bucket of a rule. It is freed some time after it has no items and is
 * full again. */
struct gate_bucket {
	/* node in gate.buckets; those in gate.common[] are not there */
	struct hash_node by_key;
	struct gate_key key;
	const struct gate_rule *rule;
	struct heap_node due; /* node in gate.due, while the bucket has items */
	/* node in gate.idle[], while the bucket has no items */
	struct list link;
	uint64_t full; /* ns: when the bucket would be full again */
	/* a fraction of a ns to be added to @full: part / rate */
	uint32_t part;
	unsigned int n; /* how many items the bucket has */
	struct gate_lane lane[LANES];
};

struct gate {
	const struct gate_rules *rules;
	unsigned int ratio;
	unsigned int n; /* how many items wait in all buckets together */
	/* of gate_bucket.due: buckets, by when (ns) their next item may pass */
	struct heap due;
	struct hash buckets, flows;
	struct pool bucket_pool, flow_pool;
	/* arrays with an entry for each rule: */
	struct list *idle; /* buckets without items, the oldest first */
	/* a bucket for items whose own bucket cannot be allocated */
	struct gate_bucket *common;
};

/* ---- flows ---- */

static uint64_t gate_hash(const struct gate_key *key, unsigned int lane)
{
	return hash_bytes(key, sizeof(*key), lane);
}

static bool key_eq(const struct gate_key *a, const struct gate_key *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Returns the key of the flow of @item: in a rule's bucket a flow is a host,
 * and in a host's bucket it is a client. */
static struct gate_key flow_key(const struct gate_bucket *b,
				const struct sched_item *item)
{
	struct gate_key key = { .of = (uintptr_t)b };

	if (b->rule->per == GATE_PER_RULE)
		key.nid = *item->client->host->nid;
	else if (b->rule->per == GATE_PER_HOST)
		key.client = item->client->id;
	return key;
}

static struct gate_flow *flow_find(const struct gate *g,
				   const struct gate_key *key,
				   unsigned int lane)
{
	struct gate_flow *f;

	hash_for_each_equal (f, &g->flows, gate_hash(key, lane), by_key)
		if (f->lane == lane && key_eq(&f->key, key))
			return f;
	return NULL;
}

static void gate_flow_init(struct gate_flow *f, struct gate_bucket *b,
			   const struct gate_key *key, unsigned int lane)
{
	f->bucket = b;
	f->key = *key;
	f->lane = lane;
	f->n = 0;
	list_init(&f->items);
	list_init(&f->link);
}

static struct gate_flow *flow_get(struct gate *g, struct gate_bucket *b,
				  const struct sched_item *item)
{
	struct gate_key key = flow_key(b, item);
	struct gate_flow *f = flow_find(g, &key, item->lane);

	if (f)
		return f;
	f = pool_get(&g->flow_pool);
	if (!f)
		return &b->lane[item->lane].common;
	gate_flow_init(f, b, &key, item->lane);
	if (!hash_add(&g->flows, &f->by_key, gate_hash(&key, item->lane)))
		return f;
	pool_put(&g->flow_pool, f);
	return &b->lane[item->lane].common;
}

static void flow_put(struct gate *g, struct gate_flow *f)
{
	if (f == &f->bucket->lane[f->lane].common)
		return;
	hash_del(&g->flows, &f->by_key);
	pool_put(&g->flow_pool, f);
}

static void flow_add(struct gate_flow *f, struct sched_item *item)
{
	struct gate_lane *l = &f->bucket->lane[f->lane];

	if (f->n++ == 0) {
		list_add_tail(&l->flows, &f->link);
		l->nflows++;
	}
	l->nitems++;
	list_add_tail(&f->items, &item->link);
	item->flow = f;
}

/* Takes @item out of its flow, which is freed if that was its last item. */
static void flow_del(struct gate *g, struct sched_item *item)
{
	struct gate_flow *f = item->flow;
	struct gate_lane *l = &f->bucket->lane[f->lane];

	list_del(&item->link);
	item->flow = NULL;
	l->nitems--;
	if (--f->n)
		return;
	list_del(&f->link);
	l->nflows--;
	flow_put(g, f);
}

/* ---- buckets ---- */

static struct gate_key bucket_key(const struct gate_rule *rule,
				  const struct sched_item *item)
{
	struct gate_key key = { .of = (uintptr_t)rule };

	if (rule->per != GATE_PER_RULE)
		key.nid = *item->client->host->nid;
	if (rule->per == GATE_PER_CLIENT)
		key.client = item->client->id;
	return key;
}

static struct gate_bucket *bucket_find(const struct gate *g,
				       const struct gate_key *key)
{
	struct gate_bucket *b;

	hash_for_each_equal (b, &g->buckets, gate_hash(key, 0), by_key)
		if (key_eq(&b->key, key))
			return b;
	return NULL;
}

static void bucket_init(struct gate_bucket *b, const struct gate_rule *rule,
			const struct gate_key *key)
{
	*b = (struct gate_bucket){ .rule = rule, .key = *key };
	list_init(&b->link);
	for (unsigned int i = 0; i < LANES; i++) {
		list_init(&b->lane[i].flows);
		gate_flow_init(&b->lane[i].common, b, key, i);
	}
}

/* Frees up to two buckets that are full again, and so no different from new
 * ones. Called for each new bucket, so that there are never many full ones. */
static void buckets_reap(struct gate *g, struct list *idle, uint64_t now)
{
	for (unsigned int i = 0; i < 2 && !list_empty(idle); i++) {
		struct gate_bucket *b =
			list_first(idle, struct gate_bucket, link);

		if (b->full > now)
			return;
		list_del(&b->link);
		hash_del(&g->buckets, &b->by_key);
		pool_put(&g->bucket_pool, b);
	}
}

static struct gate_bucket *bucket_new(struct gate *g, unsigned int rule,
				      const struct gate_key *key)
{
	struct gate_bucket *b = pool_get(&g->bucket_pool);

	if (!b)
		return &g->common[rule];
	bucket_init(b, &g->rules->rule[rule], key);
	if (!hash_add(&g->buckets, &b->by_key, gate_hash(key, 0)))
		return b;
	pool_put(&g->bucket_pool, b);
	return &g->common[rule];
}

static struct gate_bucket *bucket_get(struct gate *g, unsigned int rule,
				      const struct sched_item *item,
				      uint64_t now)
{
	struct gate_key key = bucket_key(&g->rules->rule[rule], item);
	struct gate_bucket *b = bucket_find(g, &key);

	if (b)
		return b;
	buckets_reap(g, &g->idle[rule], now);
	return bucket_new(g, rule, &key);
}

static bool bucket_is_common(const struct gate *g, const struct gate_bucket *b)
{
	return b == &g->common[b->rule - g->rules->rule];
}

/* Adds @b, which has no items, to the end of the list of buckets that may be
 * freed. */
static void bucket_idle(struct gate *g, struct gate_bucket *b)
{
	if (bucket_is_common(g, b))
		return;
	list_del(&b->link);
	list_add_tail(&g->idle[b->rule - g->rules->rule], &b->link);
}

static uint64_t token_ns(const struct gate_rule *r, uint64_t n)
{
	return n * NSEC_PER_SEC / r->rate;
}

/* Returns from when on (ns) the bucket has a token. A time in the past: it has
 * one now. */
static uint64_t bucket_next(const struct gate_bucket *b)
{
	uint64_t away = token_ns(b->rule, b->rule->depth - 1);

	return b->full > away ? b->full - away : 0;
}

/* Takes a token at @at (ns). */
static void bucket_take(struct gate_bucket *b, uint64_t at)
{
	uint32_t rate = b->rule->rate;

	if (b->full < at) {
		b->full = at;
		b->part = 0;
	}
	b->full += NSEC_PER_SEC / rate;
	b->part += (uint32_t)(NSEC_PER_SEC % rate);
	if (b->part >= rate) {
		b->part -= rate;
		b->full++;
	}
}

/* Sets the time at which the next item of @b may pass, but not before @now. @b
 * has items. */
static void bucket_wait(struct gate *g, struct gate_bucket *b, uint64_t now)
{
	heap_add(&g->due, &b->due, MAX(bucket_next(b), now));
}

/* Returns the lane of @b whose turn it is. @b has to have items. */
static struct gate_lane *bucket_lane(struct gate_bucket *b, unsigned int ratio)
{
	struct gate_lane *best = NULL;

	for (unsigned int i = 0; i < LANES; i++) {
		struct gate_lane *l = &b->lane[i];

		if (!l->nitems)
			continue;
		if (best) { /* there are items in a lower lane, too */
			if (best->row++ < ratio)
				return best;
			best->row = 0;
		}
		best = l;
	}
	return best;
}

/* Returns the next item of the flow whose turn it is, and ends that turn. */
static struct sched_item *lane_turn(struct gate_lane *l)
{
	struct gate_flow *f = list_first(&l->flows, struct gate_flow, link);

	list_del(&f->link);
	list_add_tail(&l->flows, &f->link);
	return list_first(&f->items, struct sched_item, link);
}

/* ---- the gate ---- */

bool gate_hold(struct gate *g, struct sched_item *item, uint64_t now)
{
	unsigned int rule;
	struct gate_bucket *b;

	if (item->goes_on)
		return false;
	rule = gate_rules_match(g->rules, item);
	if (rule == g->rules->n)
		return false;
	b = bucket_get(g, rule, item, now);
	if (!b->n && bucket_next(b) <= now) {
		bucket_take(b, now);
		bucket_idle(g, b);
		return false;
	}
	flow_add(flow_get(g, b, item), item);
	g->n++;
	if (b->n++ == 0) {
		list_del(&b->link);
		bucket_wait(g, b, now);
	}
	return true;
}

/* Takes @item out of its bucket. The bucket's next item may not pass before @at
 * (ns). */
static void gate_leave(struct gate *g, struct sched_item *item, uint64_t at)
{
	struct gate_bucket *b = item->flow->bucket;

	heap_del(&g->due, &b->due);
	flow_del(g, item);
	g->n--;
	if (--b->n)
		bucket_wait(g, b, at);
	else
		bucket_idle(g, b);
}

struct sched_item *gate_any(const struct gate *g)
{
	const struct gate_bucket *b =
		container_of(heap_first(&g->due), struct gate_bucket, due);
	unsigned int i = 0;

	while (!b->lane[i].nitems)
		i++;
	return list_first(
		&list_first(&b->lane[i].flows, struct gate_flow, link)->items,
		struct sched_item, link);
}

struct sched_item *gate_next(struct gate *g, uint64_t now, uint64_t *again)
{
	struct heap_node *n = heap_first(&g->due);
	struct sched_item *item;
	struct gate_bucket *b;

	if (!n)
		return NULL;
	if (n->key > now) {
		*again = MIN(*again, n->key);
		return NULL;
	}
	b = container_of(n, struct gate_bucket, due);
	item = lane_turn(bucket_lane(b, g->ratio));
	item->released = MAX(n->key, 1);
	/* An item that has expired is refused, and takes no token. */
	if (item->deadline > item->released)
		bucket_take(b, item->released);
	gate_leave(g, item, item->released);
	return item;
}

void gate_remove(struct gate *g, struct sched_item *item)
{
	gate_leave(g, item, item->flow->bucket->due.key);
}

/* Returns how many items of @b pass before @item, at most. */
static uint64_t gate_ahead(const struct gate *g, const struct gate_bucket *b,
			   const struct sched_item *item)
{
	const struct gate_lane *own = &b->lane[item->lane];
	struct gate_key key = flow_key(b, item);
	const struct gate_flow *f = flow_find(g, &key, item->lane);
	uint64_t turns = f ? f->n : 0, n = turns, others = own->nflows;

	if (f)
		others--;
	n = MIN(own->nitems, n + (turns + 1) * others);
	for (unsigned int i = 0; i < item->lane; i++)
		n += MIN(b->lane[i].nitems, (n + 1) * g->ratio);
	return MIN(n + (n / g->ratio), b->n);
}

uint64_t gate_wait(const struct gate *g, const struct sched_item *item,
		   uint64_t now)
{
	unsigned int rule;
	const struct gate_bucket *b;
	struct gate_key key;
	uint64_t at;

	if (item->goes_on)
		return 0;
	rule = gate_rules_match(g->rules, item);
	if (rule == g->rules->n)
		return 0;
	key = bucket_key(&g->rules->rule[rule], item);
	b = bucket_find(g, &key);
	if (!b)
		return 0;
	at = bucket_next(b) + token_ns(b->rule, gate_ahead(g, b, item));
	return at > now ? at - now : 0;
}

bool gate_is_empty(const struct gate *g)
{
	return g->n == 0;
}

/* ---- life ---- */

struct gate *gate_new(const struct gate_rules *rules, unsigned int ratio)
{
	struct gate *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->rules = rules;
	g->ratio = ratio;
	heap_init(&g->due);
	hash_init(&g->buckets);
	hash_init(&g->flows);
	pool_init(&g->bucket_pool, sizeof(struct gate_bucket), 0);
	pool_init(&g->flow_pool, sizeof(struct gate_flow), 0);
	g->idle = calloc(rules->n, sizeof(g->idle[0]));
	g->common = calloc(rules->n, sizeof(g->common[0]));
	if (!g->idle || !g->common) {
		free(g->idle);
		free(g->common);
		free(g);
		return NULL;
	}
	for (unsigned int i = 0; i < rules->n; i++) {
		struct gate_key key = { .of = (uintptr_t)&rules->rule[i] };

		list_init(&g->idle[i]);
		bucket_init(&g->common[i], &rules->rule[i], &key);
	}
	return g;
}

void gate_free(struct gate *g)
{
	BUG_ON(g->n);
	for (unsigned int i = 0; i < g->rules->n; i++)
		while (!list_empty(&g->idle[i]))
			buckets_reap(g, &g->idle[i], TIME_NEVER);
	hash_fini(&g->buckets);
	hash_fini(&g->flows);
	pool_fini(&g->bucket_pool);
	pool_fini(&g->flow_pool);
	free(g->idle);
	free(g->common);
	free(g);
}
