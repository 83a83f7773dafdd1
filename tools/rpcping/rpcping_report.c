/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpcping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ulnet/names.h"

static double us(uint64_t ns)
{
	return (double)ns / 1000;
}

static double seconds(const struct load_stats *s)
{
	return (double)(s->last - s->first) / 1e9;
}

static double mean_rate(uint64_t n, double time)
{
	return time > 0 ? (double)n / time : 0;
}

static double percent(uint64_t n, uint64_t all)
{
	return all ? 100.0 * (double)n / (double)all : 0.0;
}

/* Writes a rate like "1.50 MB/s" to @buf, and returns @buf. @rate: bytes per
 * second. */
static const char *rate_text(double rate, char *buf, size_t size)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	unsigned int i = 0;

	while (rate >= 1000 && i < 4) {
		rate /= 1000;
		i++;
	}
	snprintf(buf, size, "%.*f %s/s", rate >= 100 || !i ? 0 : 2, rate,
		 units[i]);
	return buf;
}

/* ---- while it runs ---- */

/* Returns how many calls @e counts for @rail. */
static uint64_t rail_calls(const struct load_explain *e,
			   const struct load_rail *rail)
{
	for (unsigned int i = 0; i < e->nrails; i++)
		if (lnet_nid_eq(&e->rail[i].local, &rail->local) &&
		    lnet_nid_eq(&e->rail[i].target, &rail->target))
			return e->rail[i].n;
	return 0;
}

/* Prints the share of each rail in the calls since @before, if there are
 * several rails. */
static void live_rails(const struct load_explain *all,
		       const struct load_explain *before)
{
	uint64_t n[LOAD_RAILS], sum = 0;

	if (all->nrails < 2)
		return;
	for (unsigned int i = 0; i < all->nrails; i++) {
		n[i] = all->rail[i].n - rail_calls(before, &all->rail[i]);
		sum += n[i];
	}
	fputs(", rails", stderr);
	for (unsigned int i = 0; i < all->nrails; i++)
		fprintf(stderr, " %.0f%%",
			sum ? 100.0 * (double)n[i] / (double)sum : 0.0);
}

void report_live(const struct load_stats *all, const struct load_stats *before,
		 uint64_t now, struct histogram *change)
{
	double time = (double)(now - before->last) / 1e9;
	bool terminal = isatty(STDERR_FILENO) == 1;
	char bytes[32];

	histogram_since(change, &all->latency, &before->latency);
	rate_text(mean_rate(all->bytes - before->bytes, time), bytes,
		  sizeof(bytes));
	fprintf(stderr, "%s%.1f s: %.0f calls/s, %s, ",
		terminal ? "\r\033[K" : "",
		all->first < now ? (double)(now - all->first) / 1e9 : 0.0,
		mean_rate(all->answered - before->answered, time), bytes);
	if (change->n)
		fprintf(stderr, "p50 %.1f us, p99 %.1f us, ",
			us(histogram_quantile(change, 0.5)),
			us(histogram_quantile(change, 0.99)));
	fprintf(stderr, "%ju under way, %ju lost", (uintmax_t)all->inflight,
		(uintmax_t)all->lost);
	live_rails(&all->explain, &before->explain);
	if (!terminal)
		fputc('\n', stderr);
	fflush(stderr);
}

void report_live_end(void)
{
	if (isatty(STDERR_FILENO) == 1)
		fputs("\r\033[K", stderr);
}

static const char *kind_name(unsigned int kind)
{
	if (kind == LOAD_WRONG)
		return "wrong answer";
	if (kind == LOAD_NOT_MADE)
		return "not made";
	return ulrpc_cause_name((enum ulrpc_cause)kind);
}

static const char *const executions[] = {
	[ULRPC_EXECUTED] = "executed",
	[ULRPC_NOT_EXECUTED] = "certainly not executed",
	[ULRPC_EXECUTION_UNKNOWN] = "perhaps executed",
};

/* Prints a loss like "unreachable; certainly not executed, attempts: 0". The
 * errno is printed only if the kind of loss does not imply it. */
static void print_loss(FILE *out, unsigned int kind, const struct load_loss *l)
{
	char nid[LNET_NIDSTR_SIZE], text[ULRPC_TEXT_MAX];

	fputs(kind_name(kind), out);
	if (*l->what)
		fprintf(out, ": %s", l->what);
	else if (kind == ULRPC_CAUSE_HANDLER || kind == LOAD_NOT_MADE)
		fprintf(out, ": %s", strerror(-l->first.status));
	strcpy(text, l->first.text);
	lnet_text_clean(text);
	if (*text)
		fprintf(out, " (%s)", text);
	if (kind < ULRPC_CAUSE_COUNT)
		fprintf(out, "; %s, attempts: %u",
			executions[l->first.execution], l->first.attempts);
	if (!lnet_nid_is_any(&l->server))
		fprintf(out, ", at %s",
			lnet_nid_format(&l->server, nid, sizeof(nid)));
}

/* Suggests why @target cannot be reached. Only nodes over TCP listen on @port,
 * unless the target is a name that has another one. */
static void hint_unreachable(const char *target, unsigned int port)
{
	struct ulnet_target parsed;

	if (strstr(target, "@o2ib"))
		fprintf(stderr,
			"rpcping: is there a node, and is its service number "
			"that of this node? See o2iblnd(7)\n");
	else if (strstr(target, "@shm"))
		fprintf(stderr,
			"rpcping: is there a node on this host that has the "
			"NID, and does it admit this user? See shmlnd(7)\n");
	else if (!lnet_target_parse(target, &parsed, NULL) && parsed.is_name)
		fprintf(stderr,
			"rpcping: is there a node, and does it listen on the "
			"port of the name, or else on port %u? If on another "
			"one: HOST:PORT or --port\n",
			port);
	else
		fprintf(stderr,
			"rpcping: is there a node, and does it listen on port "
			"%u? If on another one: --port\n",
			port);
}

/* Explains damage: a server of a release without handshakes takes a handshake
 * for a damaged message. */
static void hint_handshake(void)
{
	fprintf(stderr, "rpcping: or is it of a release that knows no keys? "
			"It does not answer those who have some\n");
}

/* Have calls been lost for this reason because nothing came back? */
static bool is_silence(unsigned int kind)
{
	return kind == ULRPC_CAUSE_UNREACHABLE || kind == ULRPC_CAUSE_LOST;
}

void report_losses(const char *target, const char *way, unsigned int port,
		   bool keys, const struct load_stats *now,
		   const struct load_stats *before)
{
	for (unsigned int i = 0; i < LOAD_LOSSES; i++) {
		if (!now->loss[i].n || before->loss[i].n)
			continue;
		report_live_end();
		fprintf(stderr, "rpcping: %s: a call was lost: ", target);
		print_loss(stderr, i, &now->loss[i]);
		fputc('\n', stderr);
		if (now->answered)
			continue;
		if (is_silence(i) && *way)
			fprintf(stderr, "rpcping: calls go out by %s\n", way);
		if (i == ULRPC_CAUSE_UNREACHABLE)
			hint_unreachable(target, port);
		if (i == ULRPC_CAUSE_UNREACHABLE && keys)
			hint_handshake();
	}
}

/* ---- at the end ---- */

static void print_losses(const struct load_stats *s)
{
	for (unsigned int i = 0; i < LOAD_LOSSES; i++) {
		if (!s->loss[i].n)
			continue;
		printf("  lost %ju, the first: ", (uintmax_t)s->loss[i].n);
		print_loss(stdout, i, &s->loss[i]);
		putchar('\n');
	}
	if (s->behind)
		printf("  due, but not begun, as others were under way: %ju\n",
		       (uintmax_t)s->behind);
}

/* Prints the balance of calls over the servers of a set. */
static void print_servers(const struct load_stats *s)
{
	char nid[LNET_NIDSTR_SIZE];

	for (unsigned int i = 0; i < s->nservers; i++) {
		const struct load_server *at = &s->server[i];

		printf("  server %s: answered %ju (%.1f%%), lost %ju",
		       lnet_nid_is_any(&at->nid)
			       ? "none, or others"
			       : lnet_nid_format(&at->nid, nid, sizeof(nid)),
		       (uintmax_t)at->answered,
		       percent(at->answered, s->answered), (uintmax_t)at->lost);
		if (at->answered)
			printf(", latency us: mean %.1f, max %.1f",
			       us(at->sum) / (double)at->answered, us(at->max));
		putchar('\n');
	}
	if (s->nservers)
		printf("  went on to another server %ju, hedged %ju\n",
		       (uintmax_t)s->moves, (uintmax_t)s->hedged);
}

void report_text(const struct rpcping_options *o, const char *title,
		 const struct load_stats *s)
{
	const struct histogram *h = &s->latency;
	double time = seconds(s);
	char bytes[32];

	rate_text(mean_rate(s->bytes, time), bytes, sizeof(bytes));
	printf("%s: %s.%s", title, o->load.service, o->load.method);
	if (o->load.bulk)
		printf(", %ju bytes of bulk", (uintmax_t)o->load.bulk);
	else
		printf(", %ju bytes", (uintmax_t)o->load.size);
	printf("%s, %u under way\n", o->load.verify ? ", verified" : "",
	       o->load.inflight);
	printf("  calls %ju, lost %ju, resent %ju, in %.3f s: %.0f calls/s, "
	       "%s\n",
	       (uintmax_t)(s->answered + s->lost), (uintmax_t)s->lost,
	       (uintmax_t)s->resent, time, mean_rate(s->answered, time), bytes);
	if (h->n)
		printf("  latency us: min %.1f, p50 %.1f, p90 %.1f, p99 %.1f, "
		       "p99.9 %.1f, max %.1f\n",
		       us(h->min), us(histogram_quantile(h, 0.5)),
		       us(histogram_quantile(h, 0.9)),
		       us(histogram_quantile(h, 0.99)),
		       us(histogram_quantile(h, 0.999)), us(h->max));
	print_losses(s);
	print_servers(s);
}

/* Prints a time in JSON; null if there were no answers. */
static void print_latency(const char *name, const struct histogram *h,
			  uint64_t ns, const char *end)
{
	if (h->n)
		printf("\"%s\": %.3f%s", name, us(ns), end);
	else
		printf("\"%s\": null%s", name, end);
}

/* Prints "losses": [{"cause": "deadline", ...}], with one item for each reason,
 * which has the status and execution of the first call that was lost for that
 * reason. */
static void print_json_losses(const struct load_stats *s)
{
	const char *comma = "";

	fputs("\"losses\": [", stdout);
	for (unsigned int i = 0; i < LOAD_LOSSES; i++) {
		const struct load_loss *l = &s->loss[i];

		if (!l->n)
			continue;
		printf("%s{\"cause\": \"%s\", \"status\": %d, "
		       "\"execution\": \"%s\", \"calls\": %ju}",
		       comma, kind_name(i), l->first.status,
		       ulrpc_execution_name(i == LOAD_NOT_MADE
						    ? ULRPC_NOT_EXECUTED
						    : l->first.execution),
		       (uintmax_t)l->n);
		comma = ", ";
	}
	fputs("], ", stdout);
}

/* ---- rails ---- */

/* Bytes of payload over all interfaces of the node but the first one, which is
 * 0@lo. */
struct traffic {
	uint64_t sent, received;
};

static struct traffic traffic_of(struct lnet *node)
{
	struct traffic sum = { 0 };
	struct ulnet_ni_info info;

	for (unsigned int i = 1; !lnet_ni_info(node, i, &info); i++) {
		sum.sent += info.send_length;
		sum.received += info.recv_length;
	}
	return sum;
}

static void print_shares(struct lnet *node, bool json)
{
	struct traffic all = traffic_of(node);
	char nid[LNET_NIDSTR_SIZE];
	struct ulnet_ni_info info;

	for (unsigned int i = 1; !lnet_ni_info(node, i, &info); i++) {
		double sent = percent(info.send_length, all.sent);
		double received = percent(info.recv_length, all.received);

		lnet_nid_format(&info.nid, nid, sizeof(nid));
		if (json)
			printf("%s{\"nid\": \"%s\", \"sent\": %ju, "
			       "\"sent_percent\": %.1f, \"received\": %ju, "
			       "\"received_percent\": %.1f}",
			       i > 1 ? ", " : "", nid,
			       (uintmax_t)info.send_length, sent,
			       (uintmax_t)info.recv_length, received);
		else
			printf("  interface %s: sent %.1f%%, received "
			       "%.1f%%\n",
			       nid, sent, received);
	}
}

/* ---- the sum of all ---- */

static const char *const went_names[LOAD_WENT] = {
	[LOAD_ATTEMPTS] = "attempts", [LOAD_RETRIES] = "retries",
	[LOAD_QUERIES] = "queries",   [LOAD_EXTENSIONS] = "extensions",
	[LOAD_REFUSALS] = "refusals",
};

/* Prints "servers": [...], and what became of calls between them. */
static void print_json_servers(const struct load_stats *s)
{
	char nid[LNET_NIDSTR_SIZE];

	printf("\"moves\": %ju, \"hedged\": %ju, \"servers\": [",
	       (uintmax_t)s->moves, (uintmax_t)s->hedged);
	for (unsigned int i = 0; i < s->nservers; i++) {
		const struct load_server *at = &s->server[i];

		fputs(i ? ", {\"nid\": " : "{\"nid\": ", stdout);
		if (lnet_nid_is_any(&at->nid))
			fputs("null", stdout);
		else
			printf("\"%s\"",
			       lnet_nid_format(&at->nid, nid, sizeof(nid)));
		printf(", \"answered\": %ju, \"answered_percent\": %.1f, "
		       "\"lost\": %ju, ",
		       (uintmax_t)at->answered,
		       percent(at->answered, s->answered), (uintmax_t)at->lost);
		if (at->answered)
			printf("\"mean_us\": %.3f, \"max_us\": %.3f}",
			       us(at->sum) / (double)at->answered, us(at->max));
		else
			fputs("\"mean_us\": null, \"max_us\": null}", stdout);
	}
	fputs("], ", stdout);
}

/* Prints the members that the sum and each target have, without braces. */
static void print_json_load(const struct rpcping_options *o,
			    const struct load_stats *s)
{
	const struct histogram *h = &s->latency;
	double time = seconds(s);

	printf("\"calls\": %ju, \"lost\": %ju, \"resent\": %ju, "
	       "\"not_begun\": %ju, \"bytes\": %ju, \"seconds\": %.6f, "
	       "\"calls_per_s\": %.3f, \"bytes_per_s\": %.3f, ",
	       (uintmax_t)(s->answered + s->lost), (uintmax_t)s->lost,
	       (uintmax_t)s->resent, (uintmax_t)s->behind, (uintmax_t)s->bytes,
	       time, mean_rate(s->answered, time), mean_rate(s->bytes, time));
	for (unsigned int i = 0; i < LOAD_WENT; i++)
		printf("\"%s\": %ju, ", went_names[i], (uintmax_t)s->went[i]);
	print_json_losses(s);
	if (o->load.replicas)
		print_json_servers(s);
	fputs("\"latency_us\": {", stdout);
	print_latency("min", h, h->min, ", ");
	print_latency("p50", h, histogram_quantile(h, 0.5), ", ");
	print_latency("p90", h, histogram_quantile(h, 0.9), ", ");
	print_latency("p99", h, histogram_quantile(h, 0.99), ", ");
	print_latency("p999", h, histogram_quantile(h, 0.999), ", ");
	print_latency("max", h, h->max, "}");
}

/* ---- explanations ---- */

static const char *const stage_names[LOAD_STAGES] = {
	[LOAD_CONNECTING] = "connecting",
	[LOAD_WINDOW] = "window",
	[LOAD_WIRE] = "wire",
	[LOAD_THROTTLED] = "throttled",
	[LOAD_SERVER_QUEUE] = "server queue",
	[LOAD_SERVICE] = "service",
	[LOAD_FETCH] = "fetch",
};

static void print_stages(const struct load_explain *e)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < LOAD_STAGES; i++)
		sum += e->stage[i].sum;
	printf("  %-14s %10s %10s %10s %10s %7s\n", "time in us", "mean", "p50",
	       "p99", "max", "share");
	for (unsigned int i = 0; i < LOAD_STAGES; i++) {
		const struct histogram *h = &e->stage[i];

		printf("  %-14s %10.1f %10.1f %10.1f %10.1f %6.1f%%\n",
		       stage_names[i], h->n ? us(h->sum) / (double)h->n : 0.0,
		       us(histogram_quantile(h, 0.5)),
		       us(histogram_quantile(h, 0.99)), us(h->max),
		       sum ? 100.0 * (double)h->sum / (double)sum : 0.0);
	}
}

static void print_rails(const struct load_explain *e, struct lnet *node)
{
	char local[LNET_NIDSTR_SIZE], target[LNET_NIDSTR_SIZE];
	struct ulnet_peer_info info;

	for (unsigned int i = 0; i < e->nrails; i++) {
		const struct load_rail *r = &e->rail[i];

		if (lnet_nid_is_any(&r->target)) {
			printf("  on no rail, or another one: %ju\n",
			       (uintmax_t)r->n);
			continue;
		}
		printf("  rail %s to %s: %ju",
		       lnet_nid_format(&r->local, local, sizeof(local)),
		       lnet_nid_format(&r->target, target, sizeof(target)),
		       (uintmax_t)r->n);
		if (lnet_peer_info(node, &r->target, &info) == 0)
			printf(", credits %u, fewest %jd", info.credits_max,
			       (intmax_t)info.credits_min);
		putchar('\n');
	}
}

/* Prints the counters in @yaml that are not 0. */
static void print_counters(const char *yaml, bool json)
{
	const char *line = strstr(yaml, "    counters:\n"), *comma = "";
	unsigned long long n;
	char name[64];

	if (!line)
		return;
	while ((line = strchr(line, '\n')) &&
	       sscanf(++line, "        %63[a-z_]: %llu", name, &n) == 2) {
		if (!n)
			continue;
		printf(json ? "%s\"%s\": %llu" : "%s %s %llu", comma, name, n);
		comma = json ? ", " : ",";
	}
}

void report_explain(const struct load_stats *s, struct ulrpc *rpc)
{
	struct lnet *node = ulrpc_node(rpc);
	const struct load_explain *e = &s->explain;
	uint64_t n = e->stage[LOAD_WIRE].n;
	char *yaml = NULL;

	print_stages(e);
	print_rails(e, node);
	print_shares(node, false);
	printf("  attempts: %.3f for each call, at most %ju; queries %ju, "
	       "early replies %ju, retries %ju, refusals %ju; transmissions "
	       "%.3f\n",
	       n ? (double)s->went[LOAD_ATTEMPTS] / (double)n : 0.0,
	       (uintmax_t)e->attempts_max, (uintmax_t)s->went[LOAD_QUERIES],
	       (uintmax_t)s->went[LOAD_EXTENSIONS],
	       (uintmax_t)s->went[LOAD_RETRIES],
	       (uintmax_t)s->went[LOAD_REFUSALS],
	       n ? (double)e->paths / (double)n : 0.0);
	if (ulrpc_stats(rpc, &yaml) == 0) {
		fputs("  counted:", stdout);
		print_counters(yaml, false);
		putchar('\n');
	}
	free(yaml);
}

/* ---- JSON ---- */

static void print_json_stages(const struct load_explain *e)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < LOAD_STAGES; i++)
		sum += e->stage[i].sum;
	fputs("\"time_us\": {", stdout);
	for (unsigned int i = 0; i < LOAD_STAGES; i++) {
		const struct histogram *h = &e->stage[i];

		printf("%s\"%s\": {\"mean\": %.3f, \"p50\": %.3f, "
		       "\"p99\": %.3f, \"max\": %.3f, "
		       "\"share_percent\": %.1f}",
		       i ? ", " : "", stage_names[i],
		       h->n ? us(h->sum) / (double)h->n : 0.0,
		       us(histogram_quantile(h, 0.5)),
		       us(histogram_quantile(h, 0.99)), us(h->max),
		       percent(h->sum, sum));
	}
	fputs("}, ", stdout);
}

static void print_json_paths(const struct load_explain *e, struct lnet *node)
{
	char local[LNET_NIDSTR_SIZE], target[LNET_NIDSTR_SIZE];
	struct ulnet_peer_info info;

	fputs("\"paths\": [", stdout);
	for (unsigned int i = 0; i < e->nrails; i++) {
		const struct load_rail *r = &e->rail[i];

		fputs(i ? ", {" : "{", stdout);
		if (lnet_nid_is_any(&r->target))
			fputs("\"local\": null, \"target\": null", stdout);
		else
			printf("\"local\": \"%s\", \"target\": \"%s\"",
			       lnet_nid_format(&r->local, local, sizeof(local)),
			       lnet_nid_format(&r->target, target,
					       sizeof(target)));
		printf(", \"calls\": %ju", (uintmax_t)r->n);
		if (!lnet_nid_is_any(&r->target) &&
		    lnet_peer_info(node, &r->target, &info) == 0)
			printf(", \"credits\": %u, \"credits_min\": %jd",
			       info.credits_max, (intmax_t)info.credits_min);
		putchar('}');
	}
	fputs("], ", stdout);
}

/* Prints what report_explain() prints of one target. */
static void print_json_explain(const struct load_stats *s, struct lnet *node)
{
	const struct load_explain *e = &s->explain;
	double n = (double)e->stage[LOAD_WIRE].n;

	fputs("\"explain\": {", stdout);
	print_json_stages(e);
	print_json_paths(e, node);
	printf("\"attempts_per_call\": %.3f, \"attempts_max\": %ju, "
	       "\"transmissions_per_call\": %.3f}",
	       n > 0 ? (double)s->went[LOAD_ATTEMPTS] / n : 0.0,
	       (uintmax_t)e->attempts_max, n > 0 ? (double)e->paths / n : 0.0);
}

static void print_json_counters(struct ulrpc *rpc)
{
	char *yaml = NULL;

	fputs(", \"counted\": {", stdout);
	if (ulrpc_stats(rpc, &yaml) == 0)
		print_counters(yaml, true);
	free(yaml);
	putchar('}');
}

/* Prints @text as a string of JSON. */
static void print_json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if ((unsigned char)*text < ' ') {
			printf("\\u%04x", (unsigned char)*text);
			continue;
		}
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void print_json_targets(const struct rpcping_options *o,
			       const struct load_stats *stats,
			       struct lnet *node)
{
	fputs(", \"targets\": [", stdout);
	for (unsigned int i = 0; i < o->ntargets; i++) {
		fputs(i ? ", {\"target\": " : "{\"target\": ", stdout);
		print_json_string(o->targets[i].text);
		fputs(", ", stdout);
		print_json_load(o, &stats[i]);
		fputs(", ", stdout);
		print_json_explain(&stats[i], node);
		putchar('}');
	}
	putchar(']');
}

void report_json(const struct rpcping_options *o,
		 const struct load_stats *stats, struct ulrpc *rpc)
{
	struct lnet *node = ulrpc_node(rpc);

	putchar('{');
	print_json_load(o, &stats[o->ntargets]);
	fputs(", \"rails\": [", stdout);
	print_shares(node, true);
	putchar(']');
	if (o->load.explain) {
		print_json_counters(rpc);
		print_json_targets(o, stats, node);
	}
	fputs("}\n", stdout);
}
