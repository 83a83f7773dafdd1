/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/metrics/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The nets that are in the drawing, each once. */
struct nets {
	uint32_t *all;
	unsigned int n;
	bool failed; /* there was no memory */
};

struct drawing {
	struct lnet *node;
	FILE *out;
	struct nets nets;
	struct peer_list peers;
	struct ulnet_route_info *routes;
	int nroutes;
};

/* Writes the name of a node of the drawing. It begins with @what, because an NI
 * and a NID of a peer may have the same NID. */
static void dot_nid(FILE *out, const char *what, const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	fprintf(out, "\"%s %s\"", what,
		lnet_nid_format(nid, text, sizeof(text)));
}

static void dot_net(FILE *out, uint32_t net)
{
	char text[LNET_NIDSTR_SIZE];

	fprintf(out, "\"net %s\"", lnet_net_format(net, text, sizeof(text)));
}

static const char *color(bool usable, int32_t health)
{
	if (!usable)
		return ", color=red";
	return health < LNET_HEALTH_MAX ? ", color=orange" : "";
}

/* Draws a net, unless that was done before. */
static void need_net(struct drawing *d, uint32_t net)
{
	char text[LNET_NIDSTR_SIZE];
	uint32_t *all;

	for (unsigned int i = 0; i < d->nets.n; i++)
		if (d->nets.all[i] == net)
			return;
	all = realloc(d->nets.all, (d->nets.n + 1) * sizeof(*all));
	if (!all) {
		d->nets.failed = true;
		return;
	}
	d->nets.all = all;
	all[d->nets.n++] = net;
	fputc('\t', d->out);
	dot_net(d->out, net);
	fprintf(d->out, " [shape=ellipse, label=\"%s\"];\n",
		lnet_net_format(net, text, sizeof(text)));
}

/* Begins the drawing's node for a NID, and its label, the first line of which
 * is the NID. */
static void begin_label(struct drawing *d, const char *what,
			const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	fputs("\t\t", d->out);
	dot_nid(d->out, what, nid);
	fprintf(d->out, " [label=\"%s",
		lnet_nid_format(nid, text, sizeof(text)));
}

static void dot_ni(struct drawing *d, const struct ulnet_ni_info *info)
{
	begin_label(d, "ni", &info->nid);
	fputs("\\n", d->out);
	for (const char *c = info->interface; *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', d->out);
		fputc((unsigned char)*c < ' ' ? '?' : *c, d->out);
	}
	fprintf(d->out, "\\nhealth %" PRId32 "\"%s];\n", info->health,
		color(info->up, info->health));
}

/* Draws the NIs of this node, except 0@lo. */
static int dot_nis(struct drawing *d)
{
	struct ulnet_ni_info info;
	int rc;

	fputs("\tsubgraph \"cluster node\" {\n\t\tlabel=\"this node\";\n",
	      d->out);
	for (unsigned int i = 0; !(rc = lnet_ni_info(d->node, i, &info)); i++)
		if (!lnet_nid_is_lo(&info.nid))
			dot_ni(d, &info);
	fputs("\t}\n", d->out);
	return rc == -ENOENT ? 0 : rc;
}

/* Links a NID with its net. @before: the NID is drawn to the left of the net.
 */
static void link_net(struct drawing *d, const char *what,
		     const struct ulnet_nid *nid, bool before)
{
	uint32_t net = lnet_nid_net(nid);

	need_net(d, net);
	fputc('\t', d->out);
	if (before) {
		dot_nid(d->out, what, nid);
		fputs(" -> ", d->out);
		dot_net(d->out, net);
	} else {
		dot_net(d->out, net);
		fputs(" -> ", d->out);
		dot_nid(d->out, what, nid);
	}
	fputs(" [dir=none];\n", d->out);
}

static int link_nis(struct drawing *d)
{
	struct ulnet_ni_info info;
	int rc;

	for (unsigned int i = 0; !(rc = lnet_ni_info(d->node, i, &info)); i++)
		if (!lnet_nid_is_lo(&info.nid))
			link_net(d, "ni", &info.nid, true);
	return rc == -ENOENT ? 0 : rc;
}

/* @infos: the @n NIDs of one peer. */
static void dot_peer(struct drawing *d, const struct ulnet_peer_info *infos,
		     unsigned int n)
{
	char text[LNET_NIDSTR_SIZE];

	fputs("\tsubgraph ", d->out);
	dot_nid(d->out, "cluster peer", &infos->primary);
	fprintf(d->out, " {\n\t\tlabel=\"%s%s\";\n",
		lnet_nid_format(&infos->primary, text, sizeof(text)),
		infos->multi_rail ? "" : "\\nnot multi-rail");
	for (unsigned int i = 0; i < n; i++) {
		begin_label(d, "peer", &infos[i].nid);
		fprintf(d->out, "\\nhealth %" PRId32 "\"%s];\n",
			infos[i].health,
			color(!infos[i].down, infos[i].health));
	}
	fputs("\t}\n", d->out);
	for (unsigned int i = 0; i < n; i++)
		link_net(d, "peer", &infos[i].nid, false);
}

/* Links the gateway, which may be no known peer yet, with the net. */
static void dot_route(struct drawing *d, const struct ulnet_route_info *info)
{
	const struct ulnet_route *r = &info->route;
	const struct ulnet_peer_info *known;

	need_net(d, r->net);
	if (!peer_list_find(&d->peers, &r->gateway, &known)) {
		begin_label(d, "peer", &r->gateway);
		fputs("\"];\n", d->out);
		link_net(d, "peer", &r->gateway, false);
	}
	fputc('\t', d->out);
	dot_nid(d->out, "peer", &r->gateway);
	fputs(" -> ", d->out);
	dot_net(d->out, r->net);
	fprintf(d->out,
		" [label=\"hops %" PRIu32 "\\npriority %" PRIu32 "\"%s];\n",
		r->hops ? r->hops : 1, r->priority,
		info->up ? "" : ", style=dashed, color=red");
}

static int dot_draw(struct drawing *d)
{
	unsigned int span;
	int rc;

	fputs("digraph ulnet {\n\trankdir=LR;\n\tnode [shape=box];\n", d->out);
	rc = dot_nis(d);
	if (!rc)
		rc = link_nis(d);
	if (rc)
		return rc;
	for (unsigned int i = 0; i < d->peers.n; i += span) {
		span = peer_list_span(&d->peers, i);
		dot_peer(d, &d->peers.infos[i], span);
	}
	for (int i = 0; i < d->nroutes; i++)
		dot_route(d, &d->routes[i]);
	fputs("}\n", d->out);
	return d->nets.failed ? -ENOMEM : 0;
}

int dot_print(FILE *out, struct lnet *node, unsigned int peers)
{
	struct drawing d = { .node = node, .out = out };
	int rc = peer_list_read(node, &d.peers);

	if (rc)
		return rc;
	(void)peers; /* all peers are drawn */
	d.nroutes = routes_read(node, &d.routes);
	rc = d.nroutes < 0 ? d.nroutes : dot_draw(&d);
	peer_list_free(&d.peers);
	free(d.routes);
	free(d.nets.all);
	return rc;
}
