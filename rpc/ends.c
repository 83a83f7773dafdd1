/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/ends.h"

#include <pthread.h>

#include "rpc/rpc.h"
#include "rpc/stats/stat.h"

struct ends {
	struct shard *shard;
	struct ulnet_peer_watch watch;
	uint64_t said; /* ns: that another CPT had no room; or 0 */

	/* From other CPTs: */
	pthread_mutex_t lock;
	struct ulnet_work work;
	bool given;	  /* the work is */
	bool nameless[2]; /* by enum end_kind: there were too many */
	unsigned int n;
	struct end end[ENDS_MAX];
};

static void end_take(struct shard *s, const struct end *end)
{
	switch (end->kind) {
	case END_SIGN:
		s->rpc->client->on_sign(s, &end->peer.nid);
		break;
	case END_SUSPECT:
		lnet_peer_suspect(s->node, s->cpt, &end->local, &end->peer);
		break;
	default:
		s->rpc->client->on_end(s, end);
		s->rpc->server->on_end(s, end);
	}
}

/* ---- from other CPTs ---- */

static void ends_take_nameless(struct ends *ends, const bool nameless[2])
{
	for (unsigned int kind = 0; kind < 2; kind++) {
		struct end all = { .kind = (enum end_kind)kind,
				   .peer = { LNET_NID_ANY, LNET_PID_ANY } };

		if (!nameless[kind])
			continue;
		stat_count(ends->shard, RPC_STAT_ends_nameless);
		end_take(ends->shard, &all);
	}
}

static void on_ends(struct ulnet_work *work)
{
	struct ends *ends = container_of(work, struct ends, work);
	struct shard *s = ends->shard;
	struct end end[ENDS_MAX];
	bool nameless[2];
	unsigned int n;

	pthread_mutex_lock(&ends->lock);
	n = ends->n;
	memcpy(end, ends->end, n * sizeof(end[0]));
	memcpy(nameless, ends->nameless, sizeof(nameless));
	ends->n = 0;
	ends->nameless[0] = ends->nameless[1] = false;
	ends->given = false;
	pthread_mutex_unlock(&ends->lock);
	for (unsigned int i = 0; i < n; i++)
		end_take(s, &end[i]);
	ends_take_nameless(ends, nameless);
	shard_taken(s);
}

static bool ends_is_end(const struct end *end)
{
	return end->kind <= END_SILENT;
}

/* Whether there was room. */
static bool ends_put(struct ends *ends, const struct end *end)
{
	unsigned int room = ends_is_end(end) ? ENDS_MAX : ENDS_MAX / 2;
	bool fits, give;

	pthread_mutex_lock(&ends->lock);
	fits = ends->n < room;
	if (fits)
		ends->end[ends->n++] = *end;
	else if (ends_is_end(end))
		ends->nameless[end->kind] = true;
	give = !ends->given;
	ends->given = true;
	pthread_mutex_unlock(&ends->lock);
	if (give)
		shard_give(ends->shard, &ends->work);
	return fits;
}

/* CPT @cpt has not taken what it was told before. */
static void end_no_room(struct shard *s, unsigned int cpt,
			const struct end *end)
{
	char text[LNET_NIDSTR_SIZE];
	struct ends *ends = s->ends;

	if (!ends_is_end(end))
		stat_count(s, RPC_STAT_ends_untold);
	if (!rpc_says(&ends->said, shard_now(s)))
		return;
	lnet_log(LNET_LOG_WARN, "rpc",
		 "CPT %u is told too much of connections at once, the last of "
		 "it about %s: it hears of some late",
		 cpt, lnet_nid_format(&end->peer.nid, text, sizeof(text)));
}

static void end_give(struct shard *s, unsigned int cpt, const struct end *end)
{
	if (!ends_put(s->rpc->shards[cpt].ends, end))
		end_no_room(s, cpt, end);
}

/* ---- here ---- */

static void end_tell(struct shard *s, const struct end *end)
{
	struct ulrpc *rpc = s->rpc;

	end_take(s, end);
	for (unsigned int i = 0; i < rpc->ncpts && !s->aborted; i++)
		if (i != s->cpt && atomic_load(&rpc->shards[i].far))
			end_give(s, i, end);
}

void ends_on_sign(struct shard *s, const struct ulnet_nid *nid)
{
	const struct end end = { .kind = END_SIGN,
				 .peer = { *nid, LNET_PID_ANY } };

	end_tell(s, &end);
}

void ends_suspect(struct shard *s, const struct ulnet_nid *local,
		  const struct ulnet_id *peer, const struct ulnet_nid *hop)
{
	bool routed = !lnet_nid_eq(hop, &peer->nid);
	const struct end end = { .kind = END_SUSPECT,
				 .peer = { *hop,
					   routed ? LNET_PID_ANY : peer->pid },
				 .local = *local };
	int cpt;

	if (lnet_nid_is_any(local) || lnet_nid_is_any(&peer->nid) ||
	    lnet_nid_is_any(hop))
		return;
	if (!routed && !lnet_is_multi_rail(s->node, &peer->nid))
		return;
	stat_count(s, RPC_STAT_rails_suspected);
	cpt = lnet_cpt_of(s->node, hop);
	if ((unsigned int)cpt == s->cpt)
		end_take(s, &end);
	else if (!s->aborted)
		end_give(s, (unsigned int)cpt, &end);
}

static void ends_on_disconnected(struct ulnet_peer_watch *watch,
				 const struct ulnet_id *peer)
{
	struct ends *ends = container_of(watch, struct ends, watch);
	const struct end end = { .kind = END_DISCONNECTED, .peer = *peer };

	end_tell(ends->shard, &end);
}

static void ends_on_silent(struct ulnet_peer_watch *watch,
			   const struct ulnet_id *peer)
{
	struct ends *ends = container_of(watch, struct ends, watch);
	const struct end end = { .kind = END_SILENT, .peer = *peer };

	end_tell(ends->shard, &end);
}

static void on_changed(struct ulnet_peer_watch *watch)
{
	struct shard *s = container_of(watch, struct ends, watch)->shard;

	s->rpc->server->on_changed(s);
}

/* ---- the part ---- */

static int ends_shard_open(struct shard *s)
{
	struct ends *ends = calloc(1, sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	ends->shard = s;
	ends->work.fn = on_ends;
	pthread_mutex_init(&ends->lock, NULL);
	ends->watch.disconnected = ends_on_disconnected;
	ends->watch.silent = ends_on_silent;
	ends->watch.changed = on_changed;
	s->ends = ends;
	lnet_peer_watch_add(s->node, s->cpt, &ends->watch);
	return 0;
}

static void ends_shard_stop(struct shard *s)
{
	if (s->ends)
		lnet_peer_watch_del(s->node, s->cpt, &s->ends->watch);
}

static void ends_shard_free(struct shard *s)
{
	if (!s->ends)
		return;
	pthread_mutex_destroy(&s->ends->lock);
	free(s->ends);
	s->ends = NULL;
}

const struct rpc_part end_part = {
	.name = "ends",
	.shard_open = ends_shard_open,
	.shard_stop = ends_shard_stop,
	.shard_free = ends_shard_free,
};
