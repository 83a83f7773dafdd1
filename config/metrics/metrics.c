/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "ulnet/loop.h"

/* ==== metrics ==== */

enum kind { U64, U32, I64, I32, BOOL, NS, DOWN };

/* A field of a structure about an interface, a peer NI, a route, or buffers.
 * Rows with the same name, which follow each other, are one metric with several
 * labels. */
struct metric {
	/* name of the metric, without "ulnet_ni_" or another prefix */
	const char *name;
	const char *type; /* type of the metric, as Prometheus calls it */
	/* text about the metric; NULL: that of the row before */
	const char *help;
	const char *label; /* label of this row; NULL: none */
	size_t at;	   /* offset of the field */
	/* type of the field; NS: uint64_t, printed as seconds; DOWN: const char
	 * *, printed as 1 if it is "down" */
	enum kind kind;
};

/* clang-format off */
/* Fields that struct ulnet_ni_info and struct ulnet_peer_info both have. */
#define BY_TYPE(S, name, what, help)                                           \
	{ name, "counter", help, "type=\"put\"",                               \
	  offsetof(S, what.put), U64 },                                        \
	{ name, "counter", NULL, "type=\"get\"",                               \
	  offsetof(S, what.get), U64 },                                        \
	{ name, "counter", NULL, "type=\"reply\"",                             \
	  offsetof(S, what.reply), U64 },                                      \
	{ name, "counter", NULL, "type=\"ack\"",                               \
	  offsetof(S, what.ack), U64 }
#define FAILED(S, cause, field, help)                                          \
	{ "send_failures_total", "counter", help, "cause=\"" cause "\"",       \
	  offsetof(S, failed.field), U64 }
#define RESENDS(S, cause, field, help)                                         \
	{ "resends_total", "counter", help, "cause=\"" cause "\"",             \
	  offsetof(S, resends.field), U64 }
/* A summary, in Prometheus, is a metric with a sum and a count. */
#define TIMES(S, name, what, help)                                             \
	{ name "_sum", "summary", help, NULL, offsetof(S, what.ns), NS },      \
	{ name "_count", "summary", NULL, NULL, offsetof(S, what.n), U64 }
#define BOTH(S)                                                                \
	{ "health", "gauge", "Health of the interface, 0 to 1000",             \
	  NULL, offsetof(S, health), I32 },                                    \
	{ "recovering", "gauge", "1 if it is ill, and pinged until it is well",\
	  NULL, offsetof(S, recovering), BOOL },                               \
	{ "credits", "gauge",                                                  \
	  "Messages that may be sent at once; negative: that many wait",       \
	  NULL, offsetof(S, credits), I64 },                                   \
	{ "credits_min", "gauge", "Lowest number of credits so far",           \
	  NULL, offsetof(S, credits_min), I64 },                               \
	{ "credits_max", "gauge", "Credits when nothing is being sent",        \
	  NULL, offsetof(S, credits_max), U32 },                               \
	BY_TYPE(S, "sent_messages_total", sent, "Messages sent"),              \
	BY_TYPE(S, "received_messages_total", received, "Messages received"),  \
	BY_TYPE(S, "dropped_messages_total", dropped,                          \
		"Messages received and dropped"),                              \
	RESENDS(S, "timeout", timeout,                                         \
		"Messages that had another try, having failed here"),          \
	RESENDS(S, "local", local, NULL),                                      \
	RESENDS(S, "remote", remote, NULL),                                    \
	FAILED(S, "local_interrupt", interrupts, "Sends that failed"),         \
	FAILED(S, "local_dropped", dropped, NULL),                             \
	FAILED(S, "local_aborted", aborted, NULL),                             \
	FAILED(S, "local_no_route", no_route, NULL),                           \
	FAILED(S, "local_timeout", timeouts, NULL),                            \
	FAILED(S, "local_error", errors, NULL),                                \
	FAILED(S, "remote_dropped", remote_dropped, NULL),                     \
	FAILED(S, "remote_timeout", remote_timeouts, NULL),                    \
	FAILED(S, "remote_error", remote_errors, NULL),                        \
	FAILED(S, "network_timeout", network_timeouts, NULL),                  \
	TIMES(S, "send_seconds", sending,                                      \
	      "Time until PUTs and GETs were sent; samples"),                  \
	TIMES(S, "answer_seconds", answered,                                   \
	      "Time until the ACK or REPLY of PUTs and GETs came")
/* clang-format on */

#define NI(field) offsetof(struct ulnet_ni_info, field)
static const struct metric ni_metrics[] = {
	{ "up", "gauge", "1 if the interface can be used", NULL, NI(up), BOOL },
	{ "down_events_total", "counter", "Times that it went down", NULL,
	  NI(downs), U64 },
	{ "up_events_total", "counter", "Times that it came up again", NULL,
	  NI(ups), U64 },
	BOTH(struct ulnet_ni_info),
	{ "sent_bytes_total", "counter", "Payload bytes sent", NULL,
	  NI(send_length), U64 },
	{ "received_bytes_total", "counter", "Payload bytes received", NULL,
	  NI(recv_length), U64 },
	{ "dropped_bytes_total", "counter", "Payload bytes dropped", NULL,
	  NI(drop_length), U64 },
	{ "queued_messages", "gauge", "Messages that wait for a credit", NULL,
	  NI(queued), U64 },
};

#define PEER(field) offsetof(struct ulnet_peer_info, field)
static const struct metric peer_metrics[] = {
	{ "down", "gauge", "1 if the peer says that this NID does not work",
	  NULL, PEER(down), BOOL },
	BOTH(struct ulnet_peer_info),
	{ "router_credits", "gauge",
	  "Buffers of this router it may have; negative: that many wait", NULL,
	  PEER(router_credits), I64 },
	{ "queued_messages", "gauge", "Messages that wait for a credit", NULL,
	  PEER(queued), U64 },
	{ "queued_bytes", "gauge", "Bytes that wait for a credit", NULL,
	  PEER(queued_bytes), U64 },
	{ "connecting_messages", "gauge", "Messages that wait for a connection",
	  NULL, PEER(connecting), U64 },
	{ "used_by_messages", "gauge", "Messages that are using it", NULL,
	  PEER(refs), U64 },
};

#define ROUTE(field) offsetof(struct ulnet_route_info, field)
static const struct metric route_metrics[] = {
	{ "up", "gauge", "1 if the route works", NULL, ROUTE(up), BOOL },
	{ "down", "gauge", "1 if nothing is sent by it; what is neither is ill",
	  NULL, ROUTE(state), DOWN },
	{ "health", "gauge", "Health of the gateway's best NID, 0 to 1000",
	  NULL, ROUTE(health), I32 },
};

#define BUFFERS(field) offsetof(struct buffers_sum, field)
static const struct metric router_metrics[] = {
	{ "buffers", "gauge", "Buffers for messages that are passed on", NULL,
	  BUFFERS(count), U32 },
	{ "buffers_free", "gauge", "Buffers that are free", NULL, BUFFERS(free),
	  I64 },
	{ "buffers_min", "gauge",
	  "Lowest number of free buffers so far; negative: that many waited",
	  NULL, BUFFERS(free_min), I64 },
	{ "buffers_waiting", "gauge", "Messages that wait for a buffer", NULL,
	  BUFFERS(waiting), I64 },
};

/* ---- the format ---- */

static void metrics_print_nid(FILE *out, const char *label,
			      const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	fprintf(out, "%s=", label);
	metric_quoted(out, lnet_nid_format(nid, text, sizeof(text)));
}

static void metrics_print_net(FILE *out, const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	fputs(",net=", out);
	metric_quoted(out,
		      lnet_net_format(lnet_nid_net(nid), text, sizeof(text)));
}

static void print_value(FILE *out, const struct metric *m, const char *info)
{
	const void *p = info + m->at;

	switch (m->kind) {
	case U64:
		fprintf(out, "%" PRIu64 "\n", *(const uint64_t *)p);
		break;
	case U32:
		fprintf(out, "%" PRIu32 "\n", *(const uint32_t *)p);
		break;
	case I64:
		fprintf(out, "%" PRId64 "\n", *(const int64_t *)p);
		break;
	case I32:
		fprintf(out, "%" PRId32 "\n", *(const int32_t *)p);
		break;
	case BOOL:
		fprintf(out, "%d\n", *(const bool *)p);
		break;
	case NS:
		metric_seconds(out, *(const uint64_t *)p);
		break;
	case DOWN:
		fprintf(out, "%d\n",
			strcmp(*(const char *const *)p, "down") == 0);
		break;
	}
}

/* The metrics of structures of one type. */
struct group {
	const char *prefix;
	const struct metric *metrics;
	size_t nmetrics;
	size_t size; /* bytes of a structure */
	void (*labels)(FILE *out, const void *info);
};

static void print_group_head(FILE *out, const struct group *g, size_t i)
{
	const struct metric *m = &g->metrics[i];
	char name[128];
	int len = (int)strlen(m->name);

	if (strcmp(m->type, "summary") == 0)
		len -= (int)strlen("_sum");
	snprintf(name, sizeof(name), "ulnet_%s_%.*s", g->prefix, len, m->name);
	metric_head(out, name, m->type, m->help);
}

static void print_sample(FILE *out, const struct group *g,
			 const struct metric *m, const char *info)
{
	fprintf(out, "ulnet_%s_%s{", g->prefix, m->name);
	g->labels(out, info);
	if (m->label)
		fprintf(out, ",%s", m->label);
	fputs("} ", out);
	print_value(out, m, info);
}

/* Prints the metrics of the @n structures @infos. Prometheus wants all samples
 * of a metric to follow each other. */
static void print_group(FILE *out, const struct group *g, const void *infos,
			size_t n)
{
	for (size_t i = 0; n && i < g->nmetrics; i++) {
		/* Without help the row belongs to the metric before it. */
		if (g->metrics[i].help)
			print_group_head(out, g, i);
		for (size_t k = 0; k < n; k++)
			print_sample(out, g, &g->metrics[i],
				     (const char *)infos + k * g->size);
	}
}

/* ---- the groups ---- */

static void ni_labels(FILE *out, const void *info)
{
	const struct ulnet_ni_info *ni = info;

	metrics_print_nid(out, "nid", &ni->nid);
	metrics_print_net(out, &ni->nid);
	fputs(",interface=", out);
	metric_quoted(out, ni->interface);
}

static int metrics_print_nis(FILE *out, struct lnet *node)
{
	static const struct group group = { "ni", ni_metrics,
					    ARRAY_SIZE(ni_metrics),
					    sizeof(struct ulnet_ni_info),
					    ni_labels };
	struct ulnet_ni_info *infos = NULL, *more;
	unsigned int n;

	for (n = 0;; n++) {
		more = realloc(infos, (n + 1) * sizeof(*infos));
		if (!more) {
			free(infos);
			return -ENOMEM;
		}
		infos = more;
		if (lnet_ni_info(node, n, &infos[n]))
			break;
	}
	print_group(out, &group, infos, n);
	free(infos);
	return 0;
}

static void peer_labels(FILE *out, const void *info)
{
	const struct ulnet_peer_info *peer = info;

	metrics_print_nid(out, "nid", &peer->nid);
	fputc(',', out);
	metrics_print_nid(out, "peer", &peer->primary);
	metrics_print_net(out, &peer->nid);
}

static int metrics_print_peers(FILE *out, struct lnet *node, unsigned int max)
{
	static const struct group group = { "peer", peer_metrics,
					    ARRAY_SIZE(peer_metrics),
					    sizeof(struct ulnet_peer_info),
					    peer_labels };
	struct ulnet_peer_info *infos = calloc(max ? max : 1, sizeof(*infos));
	size_t n;
	int known;

	if (!infos)
		return -ENOMEM;
	known = lnet_peers(node, infos, max);
	if (known < 0) {
		free(infos);
		return known;
	}
	n = MIN((unsigned int)known, max);
	metric_head(out, "ulnet_peer_nis", "gauge", "NIDs of peers known now");
	fprintf(out, "ulnet_peer_nis %d\n", known);
	metric_head(out, "ulnet_peer_nis_hidden", "gauge",
		    "NIDs of peers that have no metrics here: over the limit");
	fprintf(out, "ulnet_peer_nis_hidden %zu\n", (size_t)known - n);
	print_group(out, &group, infos, n);
	free(infos);
	return 0;
}

/* Makes names of counters as Prometheus has them: send_count becomes
 * send_total, send_length send_bytes_total, errors errors_total. */
static void stat_name(const struct ulnet_stat *s, char *buf, size_t size)
{
	static const char *const ends[][2] = { { "_count", "" },
					       { "_length", "_bytes" } };
	size_t len = strlen(s->name);
	const char *unit = "";

	for (size_t i = 0; !s->now && i < ARRAY_SIZE(ends); i++) {
		size_t end = strlen(ends[i][0]);

		if (len > end && strcmp(s->name + len - end, ends[i][0]) == 0) {
			len -= end;
			unit = ends[i][1];
			break;
		}
	}
	snprintf(buf, size, "ulnet_%.*s%s%s", (int)len, s->name, unit,
		 s->now ? "" : "_total");
}

static int print_stats(FILE *out, struct lnet *node)
{
	struct ulnet_stat *stats;
	int n = stats_read(node, &stats);
	char name[128];

	for (int i = 0; i < n; i++) {
		stat_name(&stats[i], name, sizeof(name));
		metric_head(out, name, stats[i].now ? "gauge" : "counter",
			    stats[i].help);
		fprintf(out, "%s %" PRIu64 "\n", name, stats[i].value);
	}
	free(stats);
	return MIN(n, 0);
}

static int print_objects(FILE *out, struct lnet *node)
{
	struct ulnet_object *objects;
	int n = objects_read(node, &objects);

	if (n > 0)
		metric_head(out, "ulnet_objects", "gauge",
			    "Objects that there are now, by kind");
	for (int i = 0; i < n; i++) {
		fputs("ulnet_objects{kind=", out);
		metric_quoted(out, objects[i].name);
		fprintf(out, "} %" PRIu64 "\n", objects[i].now);
	}
	free(objects);
	return MIN(n, 0);
}

static void route_labels(FILE *out, const void *info)
{
	const struct ulnet_route *route =
		&((const struct ulnet_route_info *)info)->route;
	char net[LNET_NIDSTR_SIZE];

	fputs("net=", out);
	metric_quoted(out, lnet_net_format(route->net, net, sizeof(net)));
	fputc(',', out);
	metrics_print_nid(out, "gateway", &route->gateway);
}

static int metrics_print_routes(FILE *out, struct lnet *node)
{
	static const struct group group = { "route", route_metrics,
					    ARRAY_SIZE(route_metrics),
					    sizeof(struct ulnet_route_info),
					    route_labels };
	struct ulnet_route_info *infos;
	int n = routes_read(node, &infos);

	print_group(out, &group, infos, (size_t)MAX(n, 0));
	free(infos);
	return MIN(n, 0);
}

static void buffers_labels(FILE *out, const void *info)
{
	fputs("kind=", out);
	metric_quoted(out, ((const struct buffers_sum *)info)->kind);
}

static void metrics_print_buffers(FILE *out, struct lnet *node)
{
	static const struct group group = { "router", router_metrics,
					    ARRAY_SIZE(router_metrics),
					    sizeof(struct buffers_sum),
					    buffers_labels };
	struct buffers_sum sums[LNET_BUFFER_KINDS];

	if (buffers_sum(node, sums))
		print_group(out, &group, sums, LNET_BUFFER_KINDS);
}

int metrics_print(FILE *out, struct lnet *node, unsigned int peers)
{
	int rc;

	metric_head(out, "ulnet_build_info", "gauge",
		    "1; its label is the version");
	fputs("ulnet_build_info{version=\"" PACKAGE_VERSION "\"} 1\n", out);
	rc = print_stats(out, node);
	if (!rc)
		rc = print_objects(out, node);
	if (!rc)
		rc = metrics_print_nis(out, node);
	if (!rc)
		rc = metrics_print_routes(out, node);
	if (!rc)
		metrics_print_buffers(out, node);
	return rc ? rc : metrics_print_peers(out, node, peers);
}

/* ==== what "lnetctl top" reads ==== */

static uint64_t failures(const struct ulnet_failures *f)
{
	return f->interrupts + f->dropped + f->aborted + f->no_route +
	       f->timeouts + f->errors + f->remote_dropped +
	       f->remote_timeouts + f->remote_errors + f->network_timeouts;
}

static int top_stats(struct lnet *node, FILE *out)
{
	struct ulnet_stat *stats;
	int n = stats_read(node, &stats);

	for (int i = 0; i < n; i++)
		fprintf(out, "stat %s %" PRIu64 "\n", stats[i].name,
			stats[i].value);
	free(stats);
	return MIN(n, 0);
}

static void top_ni(const struct ulnet_ni_info *ni, FILE *out)
{
	char nid[LNET_NIDSTR_SIZE];

	fprintf(out, "ni %s %s %" PRId32 " %" PRId64 " %" PRIu32 " %" PRId64,
		lnet_nid_format(&ni->nid, nid, sizeof(nid)),
		ni->up ? "up" : "down", ni->health, ni->credits,
		ni->credits_max, ni->credits_min);
	fprintf(out,
		" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		ni->send_count, ni->recv_count, ni->send_length,
		ni->recv_length, ni->drop_count, failures(&ni->failed),
		ni->resent, ni->queued);
}

static int top_nis(struct lnet *node, FILE *out)
{
	struct ulnet_ni_info info;
	int rc;

	for (unsigned int i = 0; !(rc = lnet_ni_info(node, i, &info)); i++)
		top_ni(&info, out);
	return rc == -ENOENT ? 0 : rc;
}

/* Prints the end of a line about a NID of a peer or of a gateway. */
static void top_use(const struct ulnet_peer_info *p, FILE *out)
{
	fprintf(out, " %" PRId64 " %" PRIu32 " %" PRId64, p->credits,
		p->credits_max, p->credits_min);
	fprintf(out,
		" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64
		"\n",
		p->send_count, p->recv_count, p->queued, p->queued_bytes,
		p->connecting, p->drop_count, failures(&p->failed), p->resent,
		p->router_credits, p->router_credits_min);
}

static void top_peer(const struct ulnet_peer_info *p, FILE *out)
{
	char nid[LNET_NIDSTR_SIZE];

	fprintf(out, "peer %s %s %" PRId32,
		lnet_nid_format(&p->nid, nid, sizeof(nid)),
		p->down ? "down" : "up", p->health);
	top_use(p, out);
}

static int top_peers(struct lnet *node, unsigned int max, FILE *out)
{
	struct ulnet_peer_info *infos = calloc(max + 1, sizeof(*infos));
	int n;

	if (!infos)
		return -ENOMEM;
	n = lnet_peers(node, infos, max);
	if (n >= 0)
		fprintf(out, "peers %d\n", n);
	for (int i = 0; i < n && i < (int)max; i++)
		top_peer(&infos[i], out);
	free(infos);
	return MIN(n, 0);
}

/* Prints the line of a route. A gateway to which nothing was ever sent is no
 * known peer: all its numbers are 0. */
static void top_route(struct lnet *node, const struct ulnet_route_info *r,
		      FILE *out)
{
	char net[LNET_NIDSTR_SIZE], gateway[LNET_NIDSTR_SIZE];
	struct ulnet_peer_info use = { .credits = 0 };

	(void)lnet_peer_info(node, &r->route.gateway, &use);
	fprintf(out, "route %s %s %s %" PRId32,
		lnet_net_format(r->route.net, net, sizeof(net)),
		lnet_nid_format(&r->route.gateway, gateway, sizeof(gateway)),
		r->state, r->health);
	top_use(&use, out);
}

static int top_routes(struct lnet *node, FILE *out)
{
	struct ulnet_route_info *infos;
	int n = routes_read(node, &infos);

	for (int i = 0; i < n; i++)
		top_route(node, &infos[i], out);
	free(infos);
	return MIN(n, 0);
}

static void top_buffers(struct lnet *node, FILE *out)
{
	struct buffers_sum sums[LNET_BUFFER_KINDS];

	if (!buffers_sum(node, sums))
		return;
	for (int k = 0; k < LNET_BUFFER_KINDS; k++)
		fprintf(out,
			"buffers %s %" PRIu32 " %" PRId64 " %" PRId64
			" %" PRId64 "\n",
			sums[k].kind, sums[k].count, sums[k].free,
			sums[k].free_min, sums[k].waiting);
}

int top_print(FILE *out, struct lnet *node, unsigned int peers)
{
	int rc;

	fprintf(out, "clock %" PRIu64 "\n", lnet_now(node, 0));
	rc = top_stats(node, out);
	if (!rc)
		rc = top_nis(node, out);
	if (!rc)
		rc = top_routes(node, out);
	if (!rc)
		top_buffers(node, out);
	return rc ? rc : top_peers(node, peers, out);
}
