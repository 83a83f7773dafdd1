/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/simqp/qp.h"

#include <errno.h>

static const struct simqp_conf conf_default = {
	.ack_ns = 500 * NSEC_PER_MSEC,
	.rnr_ns = NSEC_PER_MSEC,
	.cm_ns = 2 * NSEC_PER_SEC,
	.cm_tries = 15,
};

static const struct simqp_device device_default = {
	.limits = { .max_qp_wr = 16384,
		    .max_cqe = 65536,
		    .max_sge = 32,
		    .max_mr_size = UINT64_C(1) << 40 },
	.max_inline = 256,
};

void *simqp_alloc(size_t size)
{
	void *p = calloc(1, size);

	BUG_ON(!p);
	return p;
}

int simqp_fabric_new(struct env_sim *world, const struct simqp_conf *conf,
		     struct simqp_fabric **fabric_p)
{
	struct simqp_fabric *f = calloc(1, sizeof(*f));
	const struct simqp_conf *def = &conf_default;

	if (!f)
		return -ENOMEM;
	f->ib.verbs = simqp_verbs();
	f->world = world;
	f->conf = conf ? *conf : *def;
	f->conf.ack_ns = f->conf.ack_ns ? f->conf.ack_ns : def->ack_ns;
	f->conf.rnr_ns = f->conf.rnr_ns ? f->conf.rnr_ns : def->rnr_ns;
	f->conf.cm_ns = f->conf.cm_ns ? f->conf.cm_ns : def->cm_ns;
	f->conf.cm_tries = f->conf.cm_tries ? f->conf.cm_tries : def->cm_tries;
	rng_seed(&f->rng, env_sim_random(world));
	list_init(&f->addrs);
	list_init(&f->ways);
	list_init(&f->links);
	list_init(&f->silences);
	f->version = 1;
	hash_init(&f->qps);
	f->key_rng = f->rng;
	f->last_key = (uint32_t)rng_below(&f->rng, 1 << 16);
	*fabric_p = f;
	return 0;
}

static void rules_free(struct list *rules)
{
	struct simqp_rule *r, *next;

	list_for_each_entry_safe (r, next, rules, link)
		free(r);
}

void simqp_fabric_free(struct simqp_fabric *f)
{
	struct simqp_addr *a, *next;
	struct simqp_way *w, *next_way;

	list_for_each_entry_safe (a, next, &f->addrs, link) {
		BUG_ON(a->port);
		free(a);
	}
	list_for_each_entry_safe (w, next_way, &f->ways, link)
		free(w);
	rules_free(&f->links);
	rules_free(&f->silences);
	hash_fini(&f->qps);
	free(f);
}

uint64_t simqp_now(const struct simqp_fabric *f)
{
	return env_sim_now(f->world);
}

bool simqp_dice(struct simqp_fabric *f, uint32_t ppm)
{
	return unlikely(ppm) && rng_below(&f->rng, SIMQP_ALWAYS) < ppm;
}

void simqp_stats(const struct simqp_fabric *f, struct simqp_stats *stats)
{
	*stats = f->stats;
}

/* Enters the loop, as a turn of the loop does, to arm the timer. That is
 * possible since all loops run in one thread. */
void simqp_arm(struct loop *loop, struct timer *t, uint64_t at)
{
	struct loop *before = loop_enter(loop);

	loop_timer_arm(loop, t, at);
	loop_leave(before);
}

void simqp_disarm(struct loop *loop, struct timer *t)
{
	struct loop *before = loop_enter(loop);

	if (timer_armed(t))
		loop_timer_cancel(loop, t);
	loop_leave(before);
}

/* ---- addresses ---- */

struct simqp_addr *simqp_addr_find(const struct simqp_fabric *f,
				   const struct ulnet_nid *nid)
{
	struct simqp_addr *a;

	list_for_each_entry (a, &f->addrs, link)
		if (lnet_nid_eq(&a->nid, nid))
			return a;
	return NULL;
}

struct simqp_addr *simqp_addr_get(struct simqp_fabric *f,
				  const struct ulnet_nid *nid)
{
	struct simqp_addr *a = simqp_addr_find(f, nid);

	if (a)
		return a;
	a = simqp_alloc(sizeof(*a));
	a->nid = *nid;
	a->device = device_default;
	list_add_tail(&f->addrs, &a->link);
	return a;
}

void simqp_device_set(struct simqp_fabric *f, const struct ulnet_nid *nid,
		      const struct simqp_device *device)
{
	struct simqp_addr *a = simqp_addr_get(f, nid);

	BUG_ON(a->port);
	a->device = device ? *device : device_default;
}

int simqp_addr_fails(struct simqp_addr *a, enum simqp_call call)
{
	struct simqp_fail *fail = &a->fails[call];
	int status = fail->status;

	if (likely(!status))
		return 0;
	if (fail->skip) {
		fail->skip--;
		return 0;
	}
	fail->status = 0;
	return status;
}

void simqp_fail_call(struct simqp_fabric *f, const struct ulnet_nid *nid,
		     enum simqp_call call, unsigned int skip, int status)
{
	simqp_addr_get(f, nid)->fails[call] =
		(struct simqp_fail){ .skip = skip, .status = status };
}

void simqp_reject_next(struct simqp_fabric *f, const struct ulnet_nid *nid,
		       int reason)
{
	simqp_addr_get(f, nid)->reject = reason;
}

void simqp_unresolve_next(struct simqp_fabric *f, const struct ulnet_nid *nid,
			  int status)
{
	simqp_addr_get(f, nid)->unresolve = status;
}

/* ---- ways ---- */

bool simqp_is_named(const struct ulnet_nid *nid, const struct ulnet_nid *by)
{
	return lnet_nid_is_any(by) || lnet_nid_eq(nid, by);
}

static bool rule_covers(const struct simqp_rule *r, const struct simqp_way *w)
{
	return simqp_is_named(&w->src->nid, &r->src) &&
	       simqp_is_named(&w->dst->nid, &r->dst);
}

static struct simqp_rule *fabric_rule_get(struct list *rules,
					  const struct ulnet_nid *src,
					  const struct ulnet_nid *dst)
{
	struct simqp_rule *r;

	list_for_each_entry (r, rules, link)
		if (lnet_nid_eq(&r->src, src) && lnet_nid_eq(&r->dst, dst))
			goto newest;
	r = simqp_alloc(sizeof(*r));
	r->src = *src;
	r->dst = *dst;
	list_init(&r->link);
newest:
	list_del(&r->link);
	list_add(rules, &r->link);
	return r;
}

void simqp_link_set(struct simqp_fabric *f, const struct ulnet_nid *src,
		    const struct ulnet_nid *dst, const struct simqp_link *link)
{
	fabric_rule_get(&f->links, src, dst)->is = *link;
	f->version++;
}

void simqp_silence(struct simqp_fabric *f, const struct ulnet_nid *src,
		   const struct ulnet_nid *dst, uint64_t ns)
{
	uint64_t now = simqp_now(f);

	fabric_rule_get(&f->silences, src, dst)->until =
		ns > TIME_NEVER - now ? TIME_NEVER : now + ns;
}

struct simqp_way *simqp_way_get(struct simqp_fabric *f, struct simqp_addr *src,
				struct simqp_addr *dst)
{
	struct simqp_way *w;

	list_for_each_entry (w, &f->ways, link)
		if (w->src == src && w->dst == dst)
			return w;
	w = simqp_alloc(sizeof(*w));
	w->fabric = f;
	w->src = src;
	w->dst = dst;
	list_add_tail(&f->ways, &w->link);
	return w;
}

const struct simqp_link *simqp_way_link(struct simqp_way *w)
{
	struct simqp_rule *r;

	if (likely(w->version == w->fabric->version))
		return &w->now;
	w->version = w->fabric->version;
	w->now = (struct simqp_link){ 0 };
	list_for_each_entry (r, &w->fabric->links, link) {
		if (rule_covers(r, w)) {
			w->now = r->is;
			break;
		}
	}
	return &w->now;
}

bool simqp_way_is_silent(const struct simqp_way *w)
{
	uint64_t now = simqp_now(w->fabric);
	struct simqp_rule *r;

	if (w->src->down || w->src->gone || w->dst->down || w->dst->gone)
		return true;
	list_for_each_entry (r, &w->fabric->silences, link)
		if (r->until > now && rule_covers(r, w))
			return true;
	return false;
}

uint64_t simqp_way_take(struct simqp_way *w, uint64_t length)
{
	const struct simqp_link *link = simqp_way_link(w);
	uint64_t now = simqp_now(w->fabric);

	w->free_at = MAX(w->free_at, now);
	if (link->bandwidth)
		w->free_at += (uint64_t)((unsigned __int128)length *
					 NSEC_PER_SEC / link->bandwidth);
	return w->free_at;
}

uint64_t simqp_way_latency(struct simqp_way *w)
{
	const struct simqp_link *link = simqp_way_link(w);
	uint64_t ns = MAX(link->latency, 1);

	if (link->jitter)
		ns += rng_below(&w->fabric->rng, link->jitter + 1);
	return ns;
}

/* ---- timed items ---- */

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

/* Arms the timer for the first item. */
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

void simqp_inbox_expedite(struct simqp_inbox *b, uint64_t now)
{
	struct simqp_item *it;

	list_for_each_entry (it, &b->items, link)
		it->at = now;
	inbox_arm(b);
}

void simqp_inbox_cut(struct simqp_inbox *b)
{
	struct list all;
	struct simqp_item *it;

	list_init(&all);
	list_splice_tail(&all, &b->items);
	while ((it = list_pop(&all, struct simqp_item, link))) {
		if (it->way)
			simqp_item_free(it);
		else
			list_add_tail(&b->items, &it->link);
	}
	inbox_arm(b);
}
