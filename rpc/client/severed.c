/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/severed.h"

#include "base/backoff.h"
#include "rpc/client/attempt.h"
#include "rpc/client/fetch.h"
#include "rpc/client/import.h"
#include "rpc/client/timeout.h"
#include "rpc/ends.h"

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
	attempts_ask_severed(imp, &imp->severed);
	fetches_severed(imp, &imp->severed);
}

/* Of several rails that have failed meanwhile none is told from the others. */
static void note_rail(struct severed *s, const struct ulnet_nid *rail)
{
	if (!lnet_timer_armed(&s->timer))
		s->rail = *rail;
	else if (!lnet_nid_eq(&s->rail, rail))
		s->rail = LNET_NID_ANY;
}

static void import_severed(struct import *imp, const struct ulnet_nid *rail)
{
	struct severed *s = &imp->severed;
	uint64_t due;

	if (!import_is_up(imp) || list_empty(&imp->calls))
		return;
	note_rail(s, rail);
	s->at = shard_now(imp->shard);
	if (lnet_timer_armed(&s->timer))
		return;
	lnet_timer_init(&s->timer, on_time_to_ask);
	due = rpc_at(s->at, severed_pause(imp));
	shard_arm(imp->shard, &s->timer, MAX(due, s->asked + ASK_EACH));
}

static void sever_import(struct import *imp, void *arg)
{
	const struct ulnet_id *peer = arg;

	if (peer->pid == imp->pid || peer->pid == LNET_PID_ANY)
		import_severed(imp, &peer->nid);
}

void severed_on_end(struct shard *s, const struct end *end)
{
	struct ulnet_id peer = end->peer;

	if (!s->imports)
		return;
	if (lnet_nid_is_any(&peer.nid))
		imports_each_far(s, sever_import, &peer);
	else
		imports_each_at(s, &peer.nid, sever_import, &peer);
}
