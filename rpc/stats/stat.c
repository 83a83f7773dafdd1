/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stats/stat.h"

#include <errno.h>
#include <string.h>

#include "rpc/run.h"

/* ---- names ---- */

#define NAME(name, help) #name,
const char *const rpc_stat_names[RPC_STATS] = {
#define STAT	 NAME
#define STAT_NOW NAME
#include "rpc/stats/stat.def"
#undef STAT
#undef STAT_NOW
};
const char *const stat_count_names[STAT_COUNTS_ALL] = { STAT_COUNTS(NAME) };
static const char *const call_times[] = { STAT_CALL_TIMES(NAME) };
static const char *const request_times[] = { STAT_REQUEST_TIMES(NAME) };

static const char *call_end_name(unsigned int end)
{
	return ulrpc_cause_name((enum ulrpc_cause)end);
}

static const char *request_end_name(unsigned int end)
{
	static const char *const names[STAT_REQUEST_ENDS] = {
		[WIRE_OK] = "ok",
		[WIRE_FAILED] = "failed",
		[WIRE_NO_SERVICE] = "no service",
		[WIRE_NO_METHOD] = "no method",
		[WIRE_OVERLOADED] = "overloaded",
		[WIRE_EXPIRED] = "expired",
		[WIRE_NOT_CONNECTED] = "not connected",
		[WIRE_STALE_EPOCH] = "stale epoch",
		[WIRE_SHUTTING_DOWN] = "shutting down",
		[WIRE_BAD_REQUEST] = "bad request",
		[WIRE_REFUSED] = "refused",
		[WIRE_TOO_LONG] = "too long",
		[WIRE_BULK_FAILED] = "bulk failed",
		[WIRE_VERSION_UNKNOWN] = "version unknown",
		[WIRE_DOUBTFUL] = "doubtful",
		[WIRE_UNKNOWN_CALL] = "unknown call",
		[WIRE_HELD] = "held",
		[WIRE_STALLED] = "stalled",
		[WIRE_UNKNOWN_SET] = "unknown metadata",
		/* WIRE_ANNEXED and WIRE_HELD_ANNEXED are counted as what
		 * they say: ok or failed. */
		[STAT_UNANSWERED] = "unanswered",
		[STAT_CANCELED] = "canceled",
	};

	return names[end];
}

#define ALL_COUNTS ((1u << STAT_COUNTS_ALL) - 1)

const struct stat_kind stat_kinds[STAT_SIDES] = {
	[STAT_CALLS] = { ULRPC_CAUSE_COUNT, ARRAY_SIZE(call_times), ALL_COUNTS,
			 call_times, call_end_name },
	[STAT_REQUESTS] = { STAT_REQUEST_ENDS, ARRAY_SIZE(request_times),
			    ALL_COUNTS & ~(1u << STAT_COUNT_attempts),
			    request_times, request_end_name },
};

/* ---- services and methods ---- */

struct stat_service *stat_service_get(struct stat_shard *st,
				      enum stat_side side, const char *name)
{
	struct list *services = &st->services[side];
	struct stat_service *sv;

	BUG_ON(strlen(name) >= ULRPC_SERVICE_NAME);
	list_for_each_entry (sv, services, link)
		if (!strcmp(sv->name, name))
			return sv;
	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return NULL;
	sv->side = side;
	hash_init(&sv->methods);
	text_copy(sv->name, sizeof(sv->name), name);
	list_add_tail(services, &sv->link);
	return sv;
}

static struct stat_method *method_of_hash(struct hash_node *n)
{
	return n ? container_of(n, struct stat_method, hash) : NULL;
}

static struct stat_method *method_new(struct stat_service *sv, uint32_t number)
{
	struct stat_method *m;

	m = calloc(1, sizeof(*m) + stat_kinds[sv->side].ntimes *
					   sizeof(m->times[0]));
	if (!m)
		return NULL;
	m->number = number;
	if (hash_add(&sv->methods, &m->hash, number)) {
		free(m);
		return NULL;
	}
	return m;
}

/* The number of a method is a checksum of its name, and serves as its hash. */
struct stat_method *stat_method_find(const struct stat_service *sv,
				     uint32_t number)
{
	return method_of_hash(hash_first(&sv->methods, number));
}

struct stat_method *stat_method_get(struct stat_service *sv, uint32_t number)
{
	struct stat_method *m = stat_method_find(sv, number);

	return m ? m : method_new(sv, number);
}

int stat_service_gauge(struct stat_shard *sum, enum stat_side side,
		       const char *service, uint64_t under_way,
		       uint64_t waiting)
{
	struct stat_service *sv = stat_service_get(sum, side, service);

	if (!sv)
		return -ENOMEM;
	sv->under_way += under_way;
	sv->waiting += waiting;
	return 0;
}

int stat_service_streams(struct stat_shard *sum, enum stat_side side,
			 const char *service, uint64_t streams)
{
	struct stat_service *sv = stat_service_get(sum, side, service);

	if (!sv)
		return -ENOMEM;
	sv->streams += streams;
	return 0;
}

int stat_gauge(struct stat_shard *sum, enum stat_side side, const char *service,
	       uint32_t number, const struct stat_method_gauges *g)
{
	struct stat_service *sv = stat_service_get(sum, side, service);
	struct stat_method *m = sv ? stat_method_get(sv, number) : NULL;

	if (!m)
		return -ENOMEM;
	m->gauges.estimate = MAX(m->gauges.estimate, g->estimate);
	m->gauges.timeout = MAX(m->gauges.timeout, g->timeout);
	return 0;
}

int stat_method_add(struct stat_service *sv, uint32_t number)
{
	return !sv || stat_method_get(sv, number) ? 0 : -ENOMEM;
}

struct stat_method *stat_method_walk(const struct stat_service *sv,
				     uint32_t *bucket,
				     const struct stat_method *m)
{
	return method_of_hash(
		hash_walk(&sv->methods, bucket, m ? &m->hash : NULL));
}

/* ---- times of what has failed ---- */

static struct stat_failed *failed_find(const struct stat_method *m,
				       unsigned int end)
{
	struct stat_failed *f = m->failed;

	while (f && f->end != end)
		f = f->next;
	return f;
}

/* Finds the times, or makes them. Returns NULL if there is no memory. */
static struct hist *failed_get(struct stat_method *m, unsigned int end)
{
	struct stat_failed *f = failed_find(m, end);

	if (f)
		return &f->total;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->end = end;
	f->next = m->failed;
	m->failed = f;
	return &f->total;
}

static void failed_forget(struct stat_method *m)
{
	struct stat_failed *f, *next;

	for (f = m->failed; f; f = next) {
		next = f->next;
		free(f);
	}
	m->failed = NULL;
}

static int failed_merge(struct stat_method *to, const struct stat_method *from)
{
	const struct stat_failed *f;

	for (f = from->failed; f; f = f->next) {
		struct hist *h = failed_get(to, f->end);

		if (!h)
			return -ENOMEM;
		hist_merge(h, &f->total);
	}
	return 0;
}

const struct hist *stat_failed_times(const struct stat_method *m,
				     unsigned int end)
{
	const struct stat_failed *f = failed_find(m, end);

	return f ? &f->total : NULL;
}

void stat_ok_times(const struct stat_method *m, struct hist *h)
{
	const struct stat_failed *f;

	*h = m->times[0];
	for (f = m->failed; f; f = f->next)
		hist_subtract(h, &f->total);
}

static void stat_service_free(struct stat_service *sv)
{
	struct stat_method *m, *next;
	uint32_t bucket = 0;

	for (m = stat_method_walk(sv, &bucket, NULL); m; m = next) {
		next = stat_method_walk(sv, &bucket, m);
		hash_del(&sv->methods, &m->hash);
		failed_forget(m);
		free(m);
	}
	hash_fini(&sv->methods);
	list_del(&sv->link);
	free(sv);
}

/* ---- peers ---- */

void stat_peer_add(struct stat_shard *st, enum stat_side side,
		   struct stat_peer *p, struct ulnet_id id)
{
	p->id = id;
	list_add_tail(&st->peers[side], &p->link);
}

static void peer_forget_times(struct stat_peer *p)
{
	if (!p->times)
		return;
	hist_small_clear(p->times);
	free(p->times);
	p->times = NULL;
}

void stat_peer_del(struct stat_shard *st, enum stat_side side,
		   struct stat_peer *p)
{
	struct stat_cursor *c;

	if (!p->link.next)
		return;
	stat_fold(st);
	list_for_each_entry (c, &st->cursors, link)
		if (c->next == &p->link)
			c->next = p->link.next;
	list_del(&p->link);
	p->link.next = NULL;
	st->gone[side].peers++;
	stat_counts_add(st->gone[side].counts, p->counts);
	if (p->times)
		hist_merge_small(&st->gone[side].times, p->times);
	peer_forget_times(p);
}

void stat_peer_reset(struct stat_peer *p)
{
	memset(p->counts, 0, sizeof(p->counts));
	peer_forget_times(p);
}

struct stat_cursor *stat_cursor_new(struct stat_shard *st, enum stat_side side)
{
	struct stat_cursor *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->side = side;
	c->next = st->peers[side].next;
	list_add_tail(&st->cursors, &c->link);
	return c;
}

struct stat_peer *stat_cursor_next(struct stat_shard *st, struct stat_cursor *c)
{
	struct list *at = c->next;

	if (at == &st->peers[c->side])
		return NULL;
	c->next = at->next;
	return container_of(at, struct stat_peer, link);
}

void stat_cursor_end(struct stat_cursor *c)
{
	list_del(&c->link);
	free(c);
}

/* ---- the shard ---- */

void stat_shard_init(struct stat_shard *st)
{
	*st = (struct stat_shard){ 0 };
	for (enum stat_side side = 0; side < STAT_SIDES; side++) {
		list_init(&st->services[side]);
		list_init(&st->peers[side]);
	}
	list_init(&st->cursors);
}

void stat_shard_fini(struct stat_shard *st)
{
	struct stat_service *sv, *next;

	for (enum stat_side side = 0; side < STAT_SIDES; side++) {
		BUG_ON(!list_empty(&st->peers[side]));
		list_for_each_entry_safe (sv, next, &st->services[side], link)
			stat_service_free(sv);
	}
	while (!list_empty(&st->cursors))
		stat_cursor_end(
			list_first(&st->cursors, struct stat_cursor, link));
}

static void ends_add(uint64_t *to, const uint64_t *from)
{
	for (unsigned int i = 0; i < STAT_ENDS_MAX; i++)
		to[i] += from[i];
}

static int service_merge(struct stat_service *to,
			 const struct stat_service *from, uint64_t now)
{
	const struct stat_method *m = NULL;
	uint32_t bucket = 0;

	if (!to)
		return -ENOMEM;
	ends_add(to->refused, from->refused);
	slow_merge(&to->slow, &from->slow, now);
	while ((m = stat_method_walk(from, &bucket, m))) {
		struct stat_method *sum = stat_method_get(to, m->number);

		if (!sum || failed_merge(sum, m))
			return -ENOMEM;
		stat_counts_add(sum->counts, m->counts);
		ends_add(sum->ends, m->ends);
		for (unsigned int i = 0; i < stat_kinds[from->side].ntimes; i++)
			hist_merge(&sum->times[i], &m->times[i]);
	}
	return 0;
}

int stat_shard_merge(struct stat_shard *to, struct stat_shard *from,
		     uint64_t now)
{
	int rc = 0;

	stat_fold(from);
	for (unsigned int i = 0; i < RPC_STATS; i++)
		to->counts[i] += from->counts[i];
	ends_add(to->refused, from->refused);
	for (enum stat_side side = 0; side < STAT_SIDES; side++) {
		struct stat_service *sv;

		list_for_each_entry (sv, &from->services[side], link)
			if (!rc)
				rc = service_merge(
					stat_service_get(to, side, sv->name),
					sv, now);
		to->gone[side].peers += from->gone[side].peers;
		stat_counts_add(to->gone[side].counts, from->gone[side].counts);
		hist_merge(&to->gone[side].times, &from->gone[side].times);
	}
	return rc;
}

static void service_reset(struct stat_service *sv)
{
	struct stat_method *m = NULL;
	uint32_t bucket = 0;

	memset(sv->refused, 0, sizeof(sv->refused));
	memset(&sv->slow, 0, sizeof(sv->slow));
	while ((m = stat_method_walk(sv, &bucket, m))) {
		memset(m->counts, 0, sizeof(m->counts));
		memset(m->ends, 0, sizeof(m->ends));
		failed_forget(m);
		memset(m->times, 0,
		       stat_kinds[sv->side].ntimes * sizeof(m->times[0]));
	}
}

void stat_shard_reset(struct stat_shard *st)
{
	stat_fold(st);
	memset(st->counts, 0, RPC_STATS_NOW * sizeof(st->counts[0]));
	memset(st->refused, 0, sizeof(st->refused));
	memset(st->gone, 0, sizeof(st->gone));
	for (enum stat_side side = 0; side < STAT_SIDES; side++) {
		struct stat_service *sv;

		list_for_each_entry (sv, &st->services[side], link)
			service_reset(sv);
	}
}

/* ---- counting runs ---- */

_Static_assert((int)ULRPC_CAUSE_OK == 0 && (int)WIRE_OK == 0 &&
		       (int)STAT_CALL_TIME_total == 0 &&
		       (int)STAT_REQUEST_TIME_total == 0,
	       "run.c: an end that is not 0 has failed; fold_peer(): total");

static uint64_t run_time(const struct run *run, enum stat_side side,
			 unsigned int time)
{
	return side == STAT_CALLS ? rpc_ns(run->times[time]) : run->times[time];
}

static in_line void fold_time(struct hist *h, const struct run *run,
			      uint64_t ns, uint32_t n)
{
	if (run->how & RUN_FINE)
		hist_add_fine(h, ns, &run->fine, n);
	else
		hist_add(h, ns, n);
}

static bool fold_time_small(struct hist_small *h, const struct run *run,
			    uint64_t ns, uint32_t n)
{
	return run->how & RUN_FINE ? hist_small_add_fine(h, ns, &run->fine, n)
				   : hist_small_add(h, ns, n);
}

static void fold_peer(struct stat_shard *st, enum stat_side side,
		      const struct run *run, uint32_t n)
{
	uint64_t total = run_time(run, side, 0);
	struct stat_peer *p = run->peer;

	if (run->how & RUN_GONE) {
		stat_counts_add(st->gone[side].counts, run->counts);
		fold_time(&st->gone[side].times, run, total, n);
		return;
	}
	stat_counts_add(p->counts, run->counts);
	if (unlikely(!p->times))
		p->times = calloc(1, sizeof(*p->times));
	if (unlikely(!p->times || !fold_time_small(p->times, run, total, n)))
		st->counts[RPC_STAT_unrecorded] += n;
}

/* Is this one of the times to which run->fine adds? */
static bool has_fine(const struct run *run, unsigned int time)
{
	return run->how & RUN_FINE && (time == STAT_REQUEST_TIME_total ||
				       time == STAT_REQUEST_TIME_service);
}

static void fold_method(struct stat_method *m, enum stat_side side,
			const struct run *run, uint32_t n)
{
	stat_counts_add(m->counts, run->counts);
	m->ends[run->how & RUN_END] += n;
	for (unsigned int i = 0; run->how >= RUN_TIME(i); i++)
		if (has_fine(run, i))
			fold_time(&m->times[i], run, run->times[i], n);
		else if (run->how & RUN_TIME(i))
			hist_add(&m->times[i], run_time(run, side, i), n);
}

/* Counts a run that has no struct stat_method. Of calls: there was no memory
 * for it. Of requests: they named a service or method that this server does not
 * have. */
static void fold_elsewhere(struct stat_shard *st, enum stat_side side,
			   const struct run *run, uint32_t n)
{
	if (side == STAT_CALLS)
		st->counts[RPC_STAT_unrecorded] += n;
	else if (run->service)
		run->service->refused[run->how & RUN_END] += n;
	else
		st->refused[run->how & RUN_END] += n;
}

/* Returns the method of a run with a service. NULL: of calls, there is no
 * memory for it; of requests, the server does not have it. */
static in_line struct stat_method *method_of_run(enum stat_side side,
						 const struct run *run)
{
	return side == STAT_CALLS ? stat_method_get(run->service, run->number)
				  : stat_method_find(run->service, run->number);
}

void stat_on_run(struct shard *s, enum stat_side side, const struct run *run)
{
	uint32_t n = (uint32_t)run->counts[STAT_COUNT_calls];
	struct stat_shard *st = s->stats;
	struct stat_method *m = NULL;

	if (run->service)
		m = method_of_run(side, run);
	if (run->peer)
		fold_peer(st, side, run, n);
	if (likely(m))
		fold_method(m, side, run, n);
	else
		fold_elsewhere(st, side, run, n);
}

bool stat_on_failed_run(struct shard *s, enum stat_side side,
			const struct run *run)
{
	uint32_t n = (uint32_t)run->counts[STAT_COUNT_calls];
	struct stat_method *m = NULL;
	struct hist *h;

	if (run->service)
		m = method_of_run(side, run);
	if (!m)
		return true;
	h = failed_get(m, run->how & RUN_END);
	if (h)
		fold_time(h, run, run_time(run, side, 0), n);
	else
		s->stats->counts[RPC_STAT_unrecorded] += n;
	return h;
}

void stat_fold(struct stat_shard *st)
{
	if (st->shard)
		runs_fold(st->shard);
}

void stat_call_late(const struct call_report *r)
{
	const uint64_t counts[STAT_COUNTS_ALL] = {
		[STAT_COUNT_bulk_sent_bytes] = r->bulk_sent,
		[STAT_COUNT_bulk_received_bytes] = r->bulk_received,
	};
	struct stat_method *m =
		r->stats ? stat_method_get(r->stats, r->method) : NULL;
	bool there = r->peer && r->peer->link.next;

	stat_counts_add(there ? r->peer->counts
			      : r->shard->stats->gone[STAT_CALLS].counts,
			counts);
	if (m)
		stat_counts_add(m->counts, counts);
}
