/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/news.h"

#include "rpc/server/export.h"
#include "rpc/stats/stat.h"

static void client_tell(struct exports *x, const struct export *e)
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

static void news_tell(struct ulnet_timer *t)
{
	struct news *news = container_of(t, struct news, timer);
	struct exports *x = news->exports;
	const struct export *e = NULL;
	unsigned int n = 0;

	while (n < NEWS_SLICE && (e = id_walk(&x->table, &news->pos))) {
		if (!(e->peer.pid & LNET_PID_USERFLAG))
			continue;
		client_tell(x, e);
		n++;
	}
	if (e)
		shard_arm(x->shard, &news->timer,
			  rpc_at(shard_now(x->shard), NSEC_PER_MSEC));
}

void news_begin(struct shard *s)
{
	struct news *news;

	if (!s->exports || s->exports->closing)
		return;
	news = &s->exports->news;
	news->pos = 0;
	if (!lnet_timer_armed(&news->timer))
		shard_arm(s, &news->timer, shard_now(s));
}

void news_init(struct news *news, struct exports *x)
{
	news->exports = x;
	news->pos = 0;
	lnet_timer_init(&news->timer, news_tell);
}

void news_stop(struct news *news)
{
	shard_cancel(news->exports->shard, &news->timer);
}
