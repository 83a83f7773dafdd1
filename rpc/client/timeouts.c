/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/timeouts.h"

#include "rpc/client/client.h"
#include "rpc/estimate.h"
#include "rpc/run.h"
#include "rpc/stats/stat.h"

/* The least grace in T, and T without an estimate: see timeouts.h. */
#define GRACE_MIN	(20 * NSEC_PER_MSEC)
#define TIMEOUT_UNKNOWN NSEC_PER_SEC
/* ns between two times at which client_estimate() takes samples from runs of
 * calls, at least. */
#define FOLD_EACH (100 * NSEC_PER_MSEC)

struct method_timeout {
	struct list link; /* node in timeouts.methods */
	uint32_t number;
	struct estimate estimate;
};

void timeouts_free(struct timeouts *t)
{
	struct method_timeout *m;

	while ((m = list_pop(&t->methods, struct method_timeout, link)))
		free(m);
}

void client_forget_times(struct ulrpc_client *c)
{
	run_fold(c->shard, STAT_CALLS);
	timeouts_free(&c->timeouts);
	c->timeouts.advertised = 0;
}

static struct method_timeout *method_find(struct timeouts *t, uint32_t number)
{
	struct method_timeout *m;

	list_for_each_entry (m, &t->methods, link) {
		if (m->number != number)
			continue;
		if (unlikely(&m->link != t->methods.next)) {
			list_del(&m->link);
			list_add(&t->methods, &m->link);
		}
		return m;
	}
	return NULL;
}

/* Returns what is known of the method @number; NULL: there is no memory. T of
 * the method then follows from what the server advertises. */
static struct method_timeout *method_get(struct timeouts *t, uint32_t number)
{
	struct method_timeout *m = method_find(t, number);

	if (m)
		return m;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->number = number;
	list_add(&t->methods, &m->link);
	return m;
}

void timeouts_learn(struct shard *s, const struct run *run)
{
	uint32_t n = (uint32_t)run->counts[STAT_COUNT_calls];
	uint64_t there = run->times[STAT_CALL_TIME_queue] +
			 run->times[STAT_CALL_TIME_service];
	struct ulrpc_client *c;
	struct import *imp;

	(void)s;
	/* If a call was sent again, its times may be those of any attempt. */
	if (!run->peer || run->how & RUN_GONE ||
	    (run->how & RUN_CALL_EXECUTED) != RUN_CALL_EXECUTED ||
	    run->counts[STAT_COUNT_attempts] != n)
		return;
	imp = container_of(run->peer, struct import, stats);
	mean_add(&imp->rtt, rpc_ns(run->times[STAT_CALL_TIME_wire]));
	list_for_each_entry (c, &imp->clients, link) {
		struct method_timeout *m;

		if (c->stats != run->service)
			continue;
		m = method_get(&c->timeouts, run->number);
		if (m)
			estimate_add(&m->estimate, rpc_ns(there), n,
				     run->began);
	}
}

uint64_t client_estimate(struct ulrpc_client *c, uint32_t method)
{
	struct timeouts *t = &c->timeouts;
	uint64_t now = shard_now(c->shard), estimate = 0;
	struct method_timeout *m;

	if (unlikely(now >= t->folded)) {
		run_fold(c->shard, STAT_CALLS);
		t->folded = now + FOLD_EACH;
	}
	m = method_find(t, method);
	if (m)
		estimate = estimate_read(&m->estimate, now);
	return estimate ? estimate : t->advertised;
}

static inline uint64_t timeout_by(const struct ulrpc_client *c,
				  uint64_t estimate)
{
	const struct ulrpc_conf *conf = &c->rpc->conf;
	uint64_t varies = 4 * mean_deviation(&c->imp->rtt);
	uint64_t t = TIMEOUT_UNKNOWN;

	if (estimate)
		t = rpc_at(rpc_at(estimate, estimate / 2),
			   MAX(GRACE_MIN, varies));
	return MIN(MAX(t, rpc_ns(conf->timeout_min)),
		   rpc_ns(conf->timeout_max));
}

uint64_t client_timeout(struct ulrpc_client *c, uint32_t method,
			uint64_t remaining)
{
	uint64_t t = timeout_by(c, client_estimate(c, method));

	return MIN(t, remaining / 2);
}

int timeouts_gauge(struct ulrpc_client *c, struct stat_shard *sum)
{
	uint64_t now = shard_now(c->shard);
	struct method_timeout *m;
	int rc = 0;

	list_for_each_entry (m, &c->timeouts.methods, link) {
		struct stat_method_gauges g;

		g.estimate = estimate_read(&m->estimate, now);
		if (!g.estimate)
			g.estimate = c->timeouts.advertised;
		g.timeout = timeout_by(c, g.estimate);
		rc = stat_gauge(sum, STAT_CALLS, c->service, m->number, &g);
		if (rc)
			break;
	}
	return rc;
}
