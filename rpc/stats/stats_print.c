/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics as YAML, in the style of the kernel's lnetctl: each level is
 * indented by 4 columns. */
#include "rpc/stats/stats.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "rpc/keys.h"
#include "rpc/stats/yaml.h"

/* ---- parts ---- */

/* Prints a line for each bucket: its key is the end of the bucket's range, in
 * us. */
static void print_buckets(struct yaml *y, const struct hist *h)
{
	yaml_line(y, "buckets:");
	y->depth++;
	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		uint64_t low, end = hist_range(i, HIST_UNIT_BITS, &low);

		if (h->n[i])
			yaml_line(y, "\"%" PRIu64 ".%03" PRIu64 "\": %" PRIu64,
				  end / NSEC_PER_USEC, end % NSEC_PER_USEC,
				  h->n[i]);
	}
	y->depth--;
}

static void print_hist(struct yaml *y, const char *key, const struct hist *h,
		       bool buckets)
{
	static const struct {
		const char *key;
		unsigned int per_10000;
	} quantiles[] = { { "p50", 5000 },
			  { "p90", 9000 },
			  { "p99", 9900 },
			  { "p999", 9990 } };
	uint64_t count = hist_count(h);

	yaml_line(y, "%s:", key);
	y->depth++;
	yaml_count(y, "count", count);
	if (count) {
		yaml_time(y, "mean", h->sum / count);
		yaml_time(y, "min", hist_min(h));
		for (unsigned int i = 0; i < ARRAY_SIZE(quantiles); i++)
			yaml_time(y, quantiles[i].key,
				  hist_quantile(h, quantiles[i].per_10000));
		yaml_time(y, "max", h->max);
		if (buckets)
			print_buckets(y, h);
	}
	y->depth--;
}

static void print_counts(struct yaml *y, enum stat_side side,
			 const uint64_t *counts)
{
	for (unsigned int i = 0; i < STAT_COUNTS_ALL; i++)
		if (stat_kinds[side].counts & 1u << i)
			yaml_count(y, stat_count_names[i], counts[i]);
}

static bool has_ends(const uint64_t *ends)
{
	for (unsigned int i = 0; i < STAT_ENDS_MAX; i++)
		if (ends[i])
			return true;
	return false;
}

static void print_ends(struct yaml *y, const char *key, enum stat_side side,
		       const uint64_t *ends)
{
	yaml_line(y, has_ends(ends) ? "%s:" : "%s: {}", key);
	y->depth++;
	for (unsigned int i = 0; i < stat_kinds[side].nends; i++)
		if (ends[i])
			yaml_count(y, stat_kinds[side].end(i), ends[i]);
	y->depth--;
}

/* ---- methods ---- */

struct row {
	const struct stat_service *service;
	const struct stat_method *method;
	/* name of the method; NULL: no program has declared it */
	const char *name;
};

static int by_name(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int cmp = strcmp(x->service->name, y->service->name);

	if (!cmp && x->name && y->name)
		cmp = strcmp(x->name, y->name);
	else if (!cmp) /* Methods with names come first. */
		cmp = !x->name - !y->name;
	return cmp ? cmp
		   : (x->method->number > y->method->number) -
			       (x->method->number < y->method->number);
}

/* Returns an array of all methods, sorted by name, and sets *@n_p to their
 * number. NULL: there are none, or there is no memory, which a line on @out
 * says. */
static struct row *rows_new(struct ulrpc *rpc, const struct list *services,
			    size_t *n_p, FILE *out)
{
	const struct stat_service *sv;
	struct row *rows;
	size_t n = 0;

	list_for_each_entry (sv, services, link)
		n += sv->methods.count;
	*n_p = n;
	rows = n ? malloc(n * sizeof(*rows)) : NULL;
	if (!rows) {
		*n_p = 0;
		if (n)
			fprintf(out, "# not all of it: no memory\n");
		return NULL;
	}
	n = 0;
	list_for_each_entry (sv, services, link) {
		const struct stat_method *m = NULL;
		uint32_t bucket = 0;

		while ((m = stat_method_walk(sv, &bucket, m)))
			rows[n++] = (struct row){
				sv, m, stats_method_name(rpc, m->number)
			};
	}
	qsort(rows, n, sizeof(*rows), by_name);
	return rows;
}

/* Prints the times of what did not end as "ok", by end. */
static void print_failed(struct yaml *y, enum stat_side side,
			 const struct stat_method *m, bool buckets)
{
	yaml_line(y, m->failed ? "failed_us:" : "failed_us: {}");
	y->depth++;
	for (unsigned int i = 1; i < stat_kinds[side].nends; i++) {
		const struct hist *h = stat_failed_times(m, i);

		if (h)
			print_hist(y, stat_kinds[side].end(i), h, buckets);
	}
	y->depth--;
}

static void print_method(struct yaml *y, const struct row *row, bool buckets)
{
	const struct stat_method *m = row->method;
	enum stat_side side = row->service->side;

	yaml_item(y);
	yaml_name(y, "service", row->service->name);
	if (row->name)
		yaml_name(y, "method", row->name);
	yaml_line(y, "number: \"0x%08" PRIx32 "\"", m->number);
	yaml_time(y, "estimate_us", m->gauges.estimate);
	if (side == STAT_CALLS)
		yaml_time(y, "timeout_us", m->gauges.timeout);
	print_counts(y, side, m->counts);
	print_ends(y, "ends", side, m->ends);
	yaml_line(y, "times_us:");
	y->depth++;
	for (unsigned int i = 0; i < stat_kinds[side].ntimes; i++)
		print_hist(y, stat_kinds[side].times[i], &m->times[i], buckets);
	y->depth--;
	print_failed(y, side, m, buckets);
	y->depth--;
}

static void print_methods(struct yaml *y, struct ulrpc *rpc, const char *key,
			  const struct list *services, bool buckets)
{
	size_t n;
	struct row *rows = rows_new(rpc, services, &n, y->out);

	yaml_line(y, n ? "%s:" : "%s: []", key);
	for (size_t i = 0; i < n; i++)
		print_method(y, &rows[i], buckets);
	free(rows);
}

static int by_service(const void *a, const void *b)
{
	const struct stat_service *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* Prints how many requests were refused because this server does not have their
 * services or methods. */
static void print_refused(struct yaml *y, const struct stat_shard *all)
{
	const struct list *services = &all->services[STAT_REQUESTS];
	const struct stat_service *sv, **sorted;
	size_t n = 0;

	print_ends(y, "refused", STAT_REQUESTS, all->refused);
	list_for_each_entry (sv, services, link)
		n += has_ends(sv->refused);
	yaml_line(y, n ? "refused_by_service:" : "refused_by_service: []");
	sorted = n ? malloc(n * sizeof(const void *)) : NULL;
	if (!sorted)
		return;
	n = 0;
	list_for_each_entry (sv, services, link)
		if (has_ends(sv->refused))
			sorted[n++] = sv;
	qsort(sorted, n, sizeof(const void *), by_service);
	for (size_t i = 0; i < n; i++) {
		yaml_item(y);
		yaml_name(y, "service", sorted[i]->name);
		print_ends(y, "ends", STAT_REQUESTS, sorted[i]->refused);
		y->depth--;
	}
	free(sorted);
}

/* Prints how many streams are open, by service. */
static void print_streams(struct yaml *y, const char *key,
			  const struct list *services)
{
	const struct stat_service *sv, **sorted;
	size_t n = 0;

	list_for_each_entry (sv, services, link)
		n += sv->streams != 0;
	yaml_line(y, n ? "%s:" : "%s: []", key);
	sorted = n ? malloc(n * sizeof(const void *)) : NULL;
	if (!sorted)
		return;
	n = 0;
	list_for_each_entry (sv, services, link)
		if (sv->streams)
			sorted[n++] = sv;
	qsort(sorted, n, sizeof(const void *), by_service);
	for (size_t i = 0; i < n; i++) {
		yaml_item(y);
		yaml_name(y, "service", sorted[i]->name);
		yaml_count(y, "open", sorted[i]->streams);
		y->depth--;
	}
	free(sorted);
}

/* ---- peers ---- */

static bool same_peer(const struct stat_peer_copy *a,
		      const struct stat_peer_copy *b)
{
	return a->id.pid == b->id.pid && lnet_nid_eq(&a->id.nid, &b->id.nid) &&
	       !proofs_cmp(a->gauges.proof, b->gauges.proof);
}

/* Prints how many of the @n connections to one peer are in each state. */
static void print_states(struct yaml *y, const struct stat_peer_copy *p,
			 size_t n)
{
	yaml_line(y, p->gauges.state ? "states:" : "states: {}");
	y->depth++;
	for (size_t i = 0; i < n; i++) {
		const char *state = p[i].gauges.state;
		uint64_t same = 0, before = 0;

		for (size_t k = 0; k < n; k++) {
			same += p[k].gauges.state == state;
			before += k < i && p[k].gauges.state == state;
		}
		if (state && !before)
			yaml_count(y, state, same);
	}
	y->depth--;
}

/* Prints the sums, or the maxima, of the gauges of @n connections to one peer.
 */
static void print_peer_gauges(struct yaml *y, enum stat_side side,
			      const struct stat_peer_copy *p, size_t n)
{
	struct stat_peer_gauges all = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct stat_peer_gauges *g = &p[i].gauges;

		all.silent = MAX(all.silent, g->silent);
		all.under_way += g->under_way;
		all.oldest = MAX(all.oldest, g->oldest);
		all.rtt = MAX(all.rtt, g->rtt);
		all.backoff = MAX(all.backoff, g->backoff);
		all.window += g->window;
		all.slots += g->slots;
	}
	if (side == STAT_CALLS)
		print_states(y, p, n);
	yaml_time(y, "silent_us", all.silent);
	yaml_count(y, "under_way", all.under_way);
	if (side == STAT_CALLS)
		yaml_time(y, "oldest_us", all.oldest);
	yaml_time(y, "rtt_us", all.rtt);
	yaml_count(y, "window", all.window);
	if (side == STAT_REQUESTS)
		return;
	yaml_count(y, "slots", all.slots);
	yaml_count(y, "patience", all.backoff);
}

static void print_peer_numbers(struct yaml *y, enum stat_side side,
			       const uint64_t *counts, const struct hist *h,
			       bool buckets)
{
	print_counts(y, side, counts);
	yaml_line(y, "times_us:");
	y->depth++;
	print_hist(y, "total", h, buckets);
	y->depth--;
}

static void print_until(struct yaml *y, int64_t until)
{
	time_t at = (time_t)until;
	char text[64];
	struct tm tm;

	if (until && gmtime_r(&at, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		yaml_line(y, "valid_until: %s", text);
	else
		yaml_line(y, "valid_until: never");
}

/* Prints who the peer of @n connections is, as the connection that was proved
 * last says. */
static void print_proof(struct yaml *y, const struct stat_peer_copy *p,
			size_t n)
{
	const struct stat_proof *best = p[0].gauges.proof;
	uint64_t renewals = 0;

	if (!best) {
		yaml_line(y, "flavour: none");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		renewals += p[i].gauges.proof->renewals;
		if (p[i].gauges.proof->age < best->age)
			best = p[i].gauges.proof;
	}
	yaml_name(y, "name", best->peer.name);
	yaml_line(y, "kind: %s", peer_kind_name(best->peer.kind));
	if (best->peer.kind == ULRPC_PEER_MUNGE) {
		yaml_count(y, "uid", best->peer.uid);
		yaml_count(y, "gid", best->peer.gid);
		yaml_name(y, "group", best->peer.group);
	}
	if (*best->peer.issuer)
		yaml_name(y, "issuer", best->peer.issuer);
	print_until(y, best->until);
	yaml_line(y, "flavour: %s", ulrpc_flavour_name(best->peer.flavour));
	yaml_line(y, "cipher: %s", best->cipher);
	yaml_count(y, "proved_s", best->age / NSEC_PER_SEC);
	yaml_count(y, "key_renewals", renewals);
}

/* Prints for how long the oldest of @n connections has existed. */
static void print_connected(struct yaml *y, enum stat_side side,
			    const struct stat_peer_copy *p, size_t n)
{
	uint64_t connected = 0, refused = 0;

	for (size_t i = 0; i < n; i++) {
		connected = MAX(connected, p[i].gauges.connected);
		refused += p[i].gauges.refused;
	}
	yaml_count(y, "connections", n);
	yaml_count(y, "connected_s", connected / NSEC_PER_SEC);
	if (side == STAT_REQUESTS)
		yaml_count(y, "refused", refused);
}

static void print_peers(struct yaml *y, const char *key,
			const struct stats_sum *sum, enum stat_side side,
			enum stats_shown shown)
{
	const struct stat_peer_copy *p = sum->peers[side];
	size_t n = sum->npeers[side];

	yaml_line(y, n ? "%s:" : "%s: []", key);
	for (size_t i = 0; i < n;) {
		const struct stat_peer_copy *first = &p[i];
		uint64_t counts[STAT_COUNTS_ALL] = { 0 };
		char text[LNET_NIDSTR_SIZE + 16];
		size_t connections = 0;
		struct hist h = { 0 };

		for (; i < n && same_peer(first, &p[i]); i++, connections++) {
			stat_counts_add(counts, p[i].counts);
			if (p[i].times)
				hist_merge_small(&h, p[i].times);
		}
		yaml_item(y);
		yaml_line(y, "peer: \"%s\"",
			  lnet_id_format(&first->id, text, sizeof(text)));
		print_proof(y, first, connections);
		print_connected(y, side, first, connections);
		if (shown != STATS_CONNECTIONS) {
			print_peer_gauges(y, side, first, connections);
			print_peer_numbers(y, side, counts, &h,
					   shown == STATS_BUCKETS);
		} else {
			yaml_count(y, "calls", counts[STAT_COUNT_calls]);
		}
		y->depth--;
	}
}

static void print_gone(struct yaml *y, const char *key,
		       const struct stat_shard *all, enum stat_side side,
		       bool buckets)
{
	yaml_line(y, "%s:", key);
	y->depth++;
	yaml_count(y, "connections", all->gone[side].peers);
	print_peer_numbers(y, side, all->gone[side].counts,
			   &all->gone[side].times, buckets);
	y->depth--;
}

void stats_print(struct ulrpc *rpc, const struct stats_sum *sum,
		 enum stats_shown shown, FILE *out)
{
	const struct stat_shard *all = &sum->all;
	bool buckets = shown == STATS_BUCKETS;
	struct yaml y = { .out = out };

	yaml_line(&y, "rpc:");
	y.depth++;
	if (shown == STATS_CONNECTIONS) {
		print_peers(&y, "servers", sum, STAT_CALLS, shown);
		print_peers(&y, "clients", sum, STAT_REQUESTS, shown);
		return;
	}
	yaml_count(&y, "cpts", rpc->ncpts);
	yaml_line(&y, "counters:");
	y.depth++;
	for (unsigned int i = 0; i < RPC_STATS; i++)
		yaml_count(&y, rpc_stat_names[i], all->counts[i]);
	y.depth--;
	print_methods(&y, rpc, "calls", &all->services[STAT_CALLS], buckets);
	print_streams(&y, "streams", &all->services[STAT_CALLS]);
	print_peers(&y, "servers", sum, STAT_CALLS, shown);
	print_gone(&y, "servers_gone", all, STAT_CALLS, buckets);
	print_methods(&y, rpc, "requests", &all->services[STAT_REQUESTS],
		      buckets);
	print_refused(&y, all);
	print_streams(&y, "streams_served", &all->services[STAT_REQUESTS]);
	print_peers(&y, "clients", sum, STAT_REQUESTS, shown);
	print_gone(&y, "clients_gone", all, STAT_REQUESTS, buckets);
}
