/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ulnet/loop.h"

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

/* A gateway that was never sent to is no known peer: all its numbers are 0. */
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
