/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/severed.h"

#include <stdlib.h>

#include "base/backoff.h"
#include "rpc/client/attempt.h"
#include "rpc/client/fetch.h"
#include "rpc/client/import.h"
#include "rpc/client/timeout.h"

/* The range of the first pause is a round trip within these bounds, unless the
 * server has many clients; that of the longest one. */
#define PAUSE_MIN  NSEC_PER_MSEC
#define PAUSE_MOST (10 * NSEC_PER_MSEC)
#define PAUSE_CAP  (100 * NSEC_PER_MSEC)
/* Between two rounds of asking. */
#define ASK_EACH (10 * NSEC_PER_MSEC)

static uint64_t severed_pause(struct import *imp)
{
	uint64_t rtt = MIN(MAX(import_rtt(imp), PAUSE_MIN), PAUSE_MOST);
	uint64_t spread = import_spread(imp);
	const struct backoff_law law = { .base = MAX(rtt, spread),
					 .cap = MAX(PAUSE_CAP, spread) };

	return backoff_pause(&law, ++imp->failures,
			     shard_random(imp->shard, UINT64_MAX));
}

/* A connection that is made again leads to questions of its own. */
static void on_time_to_ask(struct ulnet_timer *timer)
{
	struct import *imp = container_of(timer, struct import, severed.timer);

	if (!import_is_up(imp))
		return;
	imp->severed.asked = shard_now(imp->shard);
	attempts_ask_severed(imp, imp->severed.at);
	fetches_severed(imp, imp->severed.at);
}

static void import_severed(struct import *imp)
{
	struct severed *s = &imp->severed;
	uint64_t due;

	if (!import_is_up(imp) || list_empty(&imp->calls))
		return;
	s->at = shard_now(imp->shard);
	if (lnet_timer_armed(&s->timer))
		return;
	due = rpc_at(s->at, severed_pause(imp));
	shard_arm(imp->shard, &s->timer, MAX(due, s->asked + ASK_EACH));
}

void severed_init(struct severed *s)
{
	lnet_timer_init(&s->timer, on_time_to_ask);
}

static void sever_import(struct import *imp, void *arg)
{
	const uint32_t *pid = arg;

	if (*pid == imp->pid || *pid == LNET_PID_ANY)
		import_severed(imp);
}

static void sever_imports(struct shard *s, const struct ulnet_id *peer)
{
	uint32_t pid = peer->pid;

	if (s->imports)
		imports_each_at(s, &peer->nid, sever_import, &pid);
}

/* For a CPT whose imports may use a NID that another CPT owns. */
struct severed_word {
	struct ulnet_work work;
	struct shard *to;
	struct ulnet_id peer;
};

static void on_severed_word(struct ulnet_work *work)
{
	struct severed_word *word =
		container_of(work, struct severed_word, work);
	struct shard *s = word->to;

	if (!s->crashed)
		sever_imports(s, &word->peer);
	free(word);
	shard_taken(s);
}

/* Without memory it is not told: time-outs tell it, too, only later. */
static void severed_tell(struct shard *to, const struct ulnet_id *peer)
{
	struct severed_word *word = malloc(sizeof(*word));

	if (!word)
		return;
	word->work.fn = on_severed_word;
	word->to = to;
	word->peer = *peer;
	shard_give(to, &word->work);
}

void severed_on_peer(struct ulnet_peer_watch *watch,
		     const struct ulnet_id *peer)
{
	struct imports *x = container_of(watch, struct imports, watch);
	struct ulrpc *rpc = x->shard->rpc;

	sever_imports(x->shard, peer);
	for (unsigned int i = 0; i < rpc->ncpts && !x->shard->aborted; i++)
		if (i != x->shard->cpt &&
		    atomic_load(&rpc->shards[i].several_nids))
			severed_tell(&rpc->shards[i], peer);
}
