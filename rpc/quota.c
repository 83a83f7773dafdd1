/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/quota.h"

#include "base/share.h"
#include "rpc/rpc.h"
#include "ulnet/loop.h"

void quotas_init(struct quotas *qs, const char *what, uint32_t max,
		 uint64_t seed)
{
	*qs = (struct quotas){ .what = what, .max = max, .seed = seed };
	hash_init(&qs->by_nid);
	pool_init(&qs->pool, sizeof(struct quota), 0);
}

void quotas_fini(struct quotas *qs)
{
	BUG_ON(qs->used);
	hash_fini(&qs->by_nid);
	pool_fini(&qs->pool);
}

static uint64_t quota_hash(const struct quotas *qs, const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), qs->seed);
}

static struct quota *quota_find(const struct quotas *qs,
				const struct ulnet_nid *nid)
{
	struct quota *q;

	hash_for_each_equal (q, &qs->by_nid, quota_hash(qs, nid), by_nid)
		if (lnet_nid_eq(&q->nid, nid))
			return q;
	return NULL;
}

uint32_t quota_used(const struct quotas *qs, const struct ulnet_nid *nid)
{
	const struct quota *q = quota_find(qs, nid);

	return q ? q->used : 0;
}

static struct quota *quota_new(struct quotas *qs, const struct ulnet_nid *nid)
{
	struct quota *q = pool_get(&qs->pool);

	if (!q)
		return NULL;
	q->nid = *nid;
	q->used = 0;
	q->throttled = false;
	if (hash_add(&qs->by_nid, &q->by_nid, quota_hash(qs, nid))) {
		pool_put(&qs->pool, q);
		return NULL;
	}
	return q;
}

static void quota_log(struct quotas *qs, const struct ulnet_nid *nid,
		      uint32_t used, uint64_t now)
{
	char text[LNET_NIDSTR_SIZE];

	if (!rpc_may_log(&qs->logged_at, now))
		return;
	lnet_log(LNET_LOG_WARN, "rpc",
		 "%s has %u of %u %s, others have %u: it gets no more for now",
		 lnet_nid_format(nid, text, sizeof(text)), used, qs->max,
		 qs->what, qs->used - used);
}

struct quota *quota_take(struct quotas *qs, const struct ulnet_nid *nid,
			 uint32_t n, uint64_t now)
{
	struct quota *q = quota_find(qs, nid);
	uint32_t used = q ? q->used : 0;

	if (unlikely(!share_allows(used, qs->used, qs->max, n))) {
		quota_log(qs, nid, used, now);
		return NULL;
	}
	if (!q)
		q = quota_new(qs, nid);
	if (!q)
		return NULL;
	q->used += n;
	qs->used += n;
	return q;
}

void quota_put(struct quotas *qs, struct quota *q, uint32_t n)
{
	BUG_ON(q->used < n);
	qs->used -= n;
	q->used -= n;
	if (q->used)
		return;
	hash_del(&qs->by_nid, &q->by_nid);
	pool_put(&qs->pool, q);
}
