/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/rails.h"

#include <stdlib.h>

#include "rpc/rpc.h"
#include "rpc/server/session/export.h"
#include "rpc/stats/stat.h"

static uint64_t rail_hash(const struct rails *rs, const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), rs->seed);
}

static struct export_rail *rail_find(const struct export *e,
				     const struct ulnet_nid *nid)
{
	struct export_rail *rail;

	list_for_each_entry (rail, &e->rails, link)
		if (lnet_nid_eq(&rail->nid, nid))
			return rail;
	return NULL;
}

bool rails_know(const struct export *e, const struct ulnet_nid *nid)
{
	return rail_find(e, nid) != NULL;
}

bool rails_other(const struct export *e, struct ulnet_nid *nid)
{
	const struct export_rail *rail, *other = NULL;

	list_for_each_entry (rail, &e->rails, link)
		if (!lnet_nid_eq(&rail->nid, nid))
			other = rail;
	if (other)
		*nid = other->nid;
	return other;
}

static void rail_del(struct rails *rs, struct export_rail *rail)
{
	if (rail->far)
		atomic_fetch_sub(&rs->shard->far, 1);
	hash_del(&rs->by_nid, &rail->hash);
	list_del(&rail->link);
	rail->export->nrails--;
	free(rail);
}

/* Looks up whether another CPT owns the NID of @rail, which may change. */
static void rail_look(struct shard *s, struct export_rail *rail)
{
	bool far = lnet_cpt_of(s->node, &rail->nid) != (int)s->cpt;

	if (far && !rail->far)
		atomic_fetch_add(&s->far, 1);
	else if (!far && rail->far)
		atomic_fetch_sub(&s->far, 1);
	rail->far = far;
}

void rails_look(struct rails *rs, const struct export *e)
{
	struct export_rail *rail;

	list_for_each_entry (rail, &e->rails, link)
		rail_look(rs->shard, rail);
}

static struct export_rail *rail_add(struct rails *rs, struct export *e,
				    const struct ulnet_nid *nid)
{
	struct export_rail *rail = calloc(1, sizeof(*rail));

	if (!rail)
		return NULL;
	rail->export = e;
	rail->nid = *nid;
	if (hash_add(&rs->by_nid, &rail->hash, rail_hash(rs, nid))) {
		free(rail);
		return NULL;
	}
	rail_look(rs->shard, rail);
	e->nrails++;
	return rail;
}

static void log_replaced(struct rails *rs, const struct export *e)
{
	char text[LNET_NIDSTR_SIZE];

	if (!rpc_may_log(&rs->logged_at, shard_now(rs->shard)))
		return;
	lnet_log(LNET_LOG_WARN, "rpc",
		 "client %s, pid %u, is heard from more than %d NIDs",
		 lnet_nid_format(&e->peer.nid, text, sizeof(text)), e->peer.pid,
		 EXPORT_RAILS_MAX);
}

static void rail_replaced(struct rails *rs, struct export *e)
{
	stat_count(rs->shard, RPC_STAT_rails_replaced);
	log_replaced(rs, e);
	rail_del(rs, list_first(&e->rails, struct export_rail, link));
}

bool rails_hear(struct rails *rs, struct export *e, const struct ulnet_nid *nid)
{
	struct export_rail *rail = rail_find(e, nid);
	bool new = !rail;

	if (rail) {
		list_del(&rail->link);
	} else {
		if (e->nrails == EXPORT_RAILS_MAX)
			rail_replaced(rs, e);
		rail = rail_add(rs, e, nid);
	}
	if (rail)
		list_add_tail(&e->rails, &rail->link);
	e->rail = *nid;
	return new &&rail;
}

bool rails_leave(struct rails *rs, struct export *e,
		 const struct ulnet_nid *nid)
{
	struct export_rail *rail = rail_find(e, nid);

	if (rail)
		rail_del(rs, rail);
	if (list_empty(&e->rails))
		return false;
	e->rail = list_entry(e->rails.prev, struct export_rail, link)->nid;
	return true;
}

void rails_drop(struct rails *rs, struct export *e)
{
	while (!list_empty(&e->rails))
		rail_del(rs, list_first(&e->rails, struct export_rail, link));
}

void rails_each_at(struct rails *rs, const struct ulnet_nid *nid,
		   void (*fn)(struct export *e, void *arg), void *arg)
{
	const struct export_rail *rail;

	hash_for_each_equal (rail, &rs->by_nid, rail_hash(rs, nid), hash)
		if (lnet_nid_eq(&rail->nid, nid))
			fn(rail->export, arg);
}

/* ---- the notifier ---- */

static void notifier_tell_client(struct exports *x, const struct export *e)
{
	const struct export_rail *rail;
	bool told = false;

	list_for_each_entry (rail, &e->rails, link) {
		const struct ulnet_id to = { rail->nid, e->peer.pid };

		told |= lnet_tell(x->shard->node, x->shard->cpt, &to) == 0;
	}
	if (told)
		stat_count(x->shard, RPC_STAT_callers_told);
}

static void notifier_tell(struct ulnet_timer *t)
{
	struct exports *x = container_of(t, struct exports, rails.notifier);
	struct rails *rs = &x->rails;
	const struct export *e = NULL;
	unsigned int n = 0;

	while (n < NOTIFIER_SLICE &&
	       (e = id_walk(&x->table, &rs->notifier_pos))) {
		if (!(e->peer.pid & LNET_PID_USERFLAG))
			continue;
		notifier_tell_client(x, e);
		n++;
	}
	if (e)
		shard_arm(x->shard, &rs->notifier,
			  rpc_at(shard_now(x->shard), NSEC_PER_MSEC));
}

void notifier_begin(struct shard *s)
{
	struct rails *rs;

	if (!s->exports || s->exports->closing)
		return;
	rs = &s->exports->rails;
	rs->notifier_pos = 0;
	if (!lnet_timer_armed(&rs->notifier))
		shard_arm(s, &rs->notifier, shard_now(s));
}

/* ---- life ---- */

void rails_init(struct rails *rs, struct shard *s, uint64_t seed)
{
	*rs = (struct rails){ .shard = s, .seed = seed };
	hash_init(&rs->by_nid);
	lnet_timer_init(&rs->notifier, notifier_tell);
}

void rails_fini(struct rails *rs)
{
	hash_fini(&rs->by_nid);
}
