/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/quota.h"

#include "base/share.h"
#include "rpc/rpc.h"
#include "ulnet/loop.h"

void quotas_init(struct quotas *ps, const char *what, uint32_t max,
		 uint64_t seed)
{
	*ps = (struct quotas){ .what = what, .max = max, .seed = seed };
	hash_init(&ps->by_nid);
	pool_init(&ps->pool, sizeof(struct quota), 0);
}

void quotas_fini(struct quotas *ps)
{
	BUG_ON(ps->used);
	hash_fini(&ps->by_nid);
	pool_fini(&ps->pool);
}

static uint64_t quota_hash(const struct quotas *ps, const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), ps->seed);
}

static struct quota *quota_find(const struct quotas *ps,
				const struct ulnet_nid *nid)
{
	struct hash_node *n = hash_first(&ps->by_nid, quota_hash(ps, nid));

	for (; n; n = hash_next(n)) {
		struct quota *p = container_of(n, struct quota, by_nid);

		if (lnet_nid_eq(&p->nid, nid))
			return p;
	}
	return NULL;
}

static struct quota *quota_new(struct quotas *ps, const struct ulnet_nid *nid)
{
	struct quota *p = pool_get(&ps->pool);

	if (!p)
		return NULL;
	p->nid = *nid;
	p->held = 0;
	if (hash_add(&ps->by_nid, &p->by_nid, quota_hash(ps, nid))) {
		pool_put(&ps->pool, p);
		return NULL;
	}
	return p;
}

static void quota_say(struct quotas *ps, const struct ulnet_nid *nid,
		      uint32_t held, uint64_t now)
{
	char text[LNET_NIDSTR_SIZE];

	if (!rpc_says(&ps->said, now))
		return;
	lnet_log(LNET_LOG_WARN, "rpc",
		 "%s has %u of %u %s, others have %u: no more for now",
		 lnet_nid_format(nid, text, sizeof(text)), held, ps->max,
		 ps->what, ps->used - held);
}

struct quota *quota_take(struct quotas *ps, const struct ulnet_nid *nid,
			 uint32_t n, uint64_t now)
{
	struct quota *p = quota_find(ps, nid);
	uint32_t held = p ? p->held : 0;

	if (unlikely(!share_allows(held, ps->used, ps->max, n))) {
		quota_say(ps, nid, held, now);
		return NULL;
	}
	if (!p)
		p = quota_new(ps, nid);
	if (!p)
		return NULL;
	p->held += n;
	ps->used += n;
	return p;
}

void quota_put(struct quotas *ps, struct quota *p, uint32_t n)
{
	BUG_ON(p->held < n);
	ps->used -= n;
	p->held -= n;
	if (p->held)
		return;
	hash_del(&ps->by_nid, &p->by_nid);
	pool_put(&ps->pool, p);
}
