/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measurements of LNet's core; bench/run calls this and makes the table.
 *
 *	core WHAT [N [ENTRIES]]
 *
 * prints one number.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <malloc.h>
#include <ulnet/sim.h>

#include "base/loop.h"
#include "lnet/text/networks.h"
#include "lnet/discovery/session.h"
#include "lnet/message/wire.h"
#include "lnet/net/ni.h"
#include "lnet/node/node.h"
#include "lnet/path/path.h"
#include "lnet/peer/member.h"
#include "rpc/rpc.h"
#include "rpc/stats/hist.h"
#include "ulnet/policy.h"

#define PORTAL	     5
#define PAYLOAD	     64
#define SELECT_TURNS 100 /* how many times select_ratio() measures */
#define INLINE_TURNS 1000 /* how many times inline_timing() measures */
#define POLICIES     100

static char payload[PAYLOAD];
static uint64_t events;

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "core: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void on_event(const struct ulnet_event *ev)
{
	events++;
	if (ev->terminal && !ev->unlinked)
		LNetMDUnlink(ev->md);
}

static struct ulnet_id id_of(uint32_t addr)
{
	return (struct ulnet_id){ lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
						addr),
				  LNET_PID_LUSTRE };
}

/* ---- an LND that does nothing, to see LNet alone ---- */

static struct lnd_msg *sent;

static int null_startup(struct lnd_ni *ni)
{
	ni->priv = NULL;
	return 0;
}

static void null_shutdown(struct lnd_ni *ni, unsigned int cpt)
{
	lnet_ni_stopped(ni, cpt);
}

static void null_free(struct lnd_ni *ni)
{
	(void)ni;
}

static int null_send(struct lnd_ni *ni, struct lnd_msg *msg)
{
	(void)ni;
	sent = msg;
	return 0;
}

static void null_recv(struct lnd_ni *ni, void *rx, struct lnd_msg *msg,
		      uint32_t rlength)
{
	(void)ni;
	(void)rx;
	(void)rlength;
	if (msg)
		lnet_finalize(msg, 0, LNET_CAUSE_OK);
}

static void null_cancel(struct lnd_ni *ni, struct lnd_msg *msg, int status)
{
	(void)ni;
	lnet_finalize(msg, status, LNET_CAUSE_LOCAL_TIMEOUT);
}

static const struct lnd null_lnd = {
	.name = "null",
	.type = -1,
	.startup = null_startup,
	.shutdown = null_shutdown,
	.free = null_free,
	.send = null_send,
	.recv = null_recv,
	.cancel = null_cancel,
};

struct bare {
	struct env_sim *env;
	struct loop *loop;
	struct lnet *node;
	struct lnd_ni *ni;
	void (*turn)(struct bare *b, uint64_t n);
	uint64_t n;
	struct work work;
	struct ulnet_md_handle md;
	uint8_t hdr[LNET_HDR_SIZE];
};

static struct lnet *bare_open(struct bare *b)
{
	struct ulnet_ni_conf ni = { .nid = id_of(0x0a000001).nid,
				    .credits = 1000000,
				    .peer_credits = 60000 };
	struct node_params p = { .lnds = open_lnds, .lnd = &null_lnd };
	struct env *env;

	must(env_sim_new(1, &b->env), "env");
	must(env_sim_env(b->env, &env), "env");
	must(loop_new(env, &b->loop), "loop");
	lnet_conf_init(&p.conf);
	p.loops = &b->loop;
	must(node_open(&p, &b->node), "node");
	must(lnet_ni_add(b->node, &ni), "NI");
	b->ni = &net_node(b->node)->config->ni[1]->lnd;
	return b->node;
}

/* Makes a peer with the NID of @addr, as it is after its discovery, and never
 * frees it. */
static struct lnet_peer *bare_discovered(struct bare *b, uint32_t addr)
{
	struct lnet_cpt *cpt = b->node->cpt[0];
	const struct ulnet_nid nid = id_of(addr).nid;
	struct lnet_peer_ni *p = peer_get(cpt, &nid);

	must(p ? 0 : -ENOMEM, "peer");
	p->peer->multi_rail = p->peer->settled = p->peer->merged = true;
	p->peer->merged_in = disc_cpt(cpt)->era;
	p->peer->acked_version = disc_cpt(cpt)->version;
	return p->peer;
}

static void bare_work(struct work *w)
{
	struct bare *b = container_of(w, struct bare, work);

	b->turn(b, b->n);
}

/* Runs everything in one turn of the loop, as an LND would. */
static double bare_run(struct bare *b, uint64_t n)
{
	double t = now_seconds();

	b->n = n;
	b->work.fn = bare_work;
	loop_post(b->loop, &b->work);
	while (env_sim_step(b->env, env_sim_now(b->env)))
		;
	return (now_seconds() - t) / (double)n * 1e9;
}

/* ---- one PUT down: from LNetPut() to the LND ---- */

static void put_turn(struct bare *b, uint64_t n)
{
	struct ulnet_id to = id_of(0x0a000002);

	while (n--) {
		must(LNetPut(LNET_NID_ANY, b->md, LNET_NOACK_REQ, to, PORTAL, 1,
			     0, 0),
		     "put");
		lnet_finalize(sent, 0, LNET_CAUSE_OK);
	}
}

static double put_path(uint64_t n)
{
	struct bare b = { .turn = put_turn };
	struct ulnet_md md = { .start = payload,
			       .length = PAYLOAD,
			       .threshold = LNET_MD_THRESH_INF,
			       .handler = NULL };

	bare_open(&b);
	bare_discovered(&b, 0x0a000002);
	must(LNetMDBind(b.node, &md, LNET_RETAIN, &b.md), "bind");
	return bare_run(&b, n);
}

/* ---- the choice of a path, among as many rails on both sides ---- */

static void select_turn(struct bare *b, uint64_t n)
{
	struct lnet_cpt *cpt = b->node->cpt[0];
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct ulnet_nid to = id_of(0x0a010001).nid;
	const struct path_request request = { .src = &any, .dst = &to };
	struct path path;

	while (n--) {
		path.lpni = path_get_only(cpt, &any, &to);
		if (path.lpni)
			path.ni = path.lpni->only;
		else
			must(path_get(cpt, &request, &path), "path");
		peer_unref(path.lpni);
		ni_unref(path.ni, cpt->index);
	}
}

static void select_prepare(struct bare *b, uint32_t rails)
{
	struct lnet_cpt *cpt = b->node->cpt[0];
	struct lnet_peer *peer = bare_discovered(b, 0x0a010001);

	for (uint32_t i = 2; i <= rails; i++) {
		struct ulnet_ni_conf ni = { .nid = id_of(0x0a000000 + i).nid };
		const struct ulnet_nid nid = id_of(0x0a010000 + i).nid;

		must(lnet_ni_add(b->node, &ni), "NI");
		must(member_add(cpt, peer, &nid), "peer NI");
	}
}

static double select_path(uint64_t n, uint32_t rails)
{
	struct bare b = { .turn = select_turn };

	bare_open(&b);
	select_prepare(&b, rails);
	return bare_run(&b, n);
}

static void policy_add(struct bare *b, const char *src, const char *dst,
		       uint32_t priority)
{
	struct ulnet_policy p = { .priority = priority };

	text_copy(p.src, sizeof(p.src), src);
	text_copy(p.dst, sizeof(p.dst), dst);
	must(lnet_policy_add(b->node, LNET_POLICY_LAST, &p, NULL), "policy");
}

/* The last policies match all NIs of both sides alike, so that each candidate
 * is compared by all criteria; the policies before them match nothing here. */
static double select_by_policies(uint64_t n, uint32_t rails)
{
	struct bare b = { .turn = select_turn };
	char nid[LNET_NIDSTR_SIZE];

	bare_open(&b);
	select_prepare(&b, rails);
	for (unsigned int i = 0; i + 3 < POLICIES; i++) {
		snprintf(nid, sizeof(nid), "10.7.%u.[1-9]@tcp", i);
		policy_add(&b, i % 3 ? nid : "", i % 3 == 1 ? "" : nid,
			   i % 3 == 2 ? LNET_PRIORITY_NONE : i);
	}
	policy_add(&b, "10.0.*.*@tcp", "", 7);
	policy_add(&b, "", "10.1.*.*@tcp", 7);
	policy_add(&b, "10.0.*.*@tcp", "10.1.*.*@tcp", LNET_PRIORITY_NONE);
	return bare_run(&b, n);
}

/* ---- what it costs to time a request that is run inline: ns ---- */

/* Times @n requests whose handlers do nothing. Returns ns for each. */
static double time_inline(const struct shard *s, uint64_t n)
{
	struct hist_fine fine = { 0 };
	struct hist h = { 0 };
	double t = now_seconds();

	for (uint64_t i = 0; i < n; i++) {
		uint64_t stamp = shard_stamp(s), took;

		__asm__ volatile("" ::: "memory"); /* the handler */
		took = shard_took(s, stamp);
		/* Those that took longer because something else ran count
		 * elsewhere. */
		if (took >= HIST_FINE_END ||
		    hist_fine_add(&fine, (uint32_t)took))
			continue;
		hist_add_fine(&h, 0, &fine, UINT8_MAX);
		fine = (struct hist_fine){ 0 };
	}
	return (now_seconds() - t) / (double)n * 1e9;
}

/* A disturbance can only make a measurement longer: the shortest one counts. */
static double inline_timing(uint64_t n)
{
	uint64_t rate = UINT64_C(1) << 31; /* of a tick that takes half a ns */
	struct shard *s = calloc(1, sizeof(*s));
	double least = 1e9;

	must(s ? 0 : -ENOMEM, "shard");
	s->tick_ns = &rate;
	for (uint64_t i = 0; i < INLINE_TURNS; i++) {
		double ns = time_inline(s, n / INLINE_TURNS);

		least = MIN(least, ns);
	}
	free(s);
	return least;
}

/* ---- ip2nets rules for many hosts, the last one for this host: ms ---- */

static double ip2nets_time(uint64_t n, uint64_t rules)
{
	struct ip2nets_address here = { .interface = "eth0",
					.nid = id_of(0x0a000001).nid };
	const size_t size = 64 * (rules + 1);
	char *text = malloc(size), *end = text, *networks;
	double t;

	must(text ? 0 : -ENOMEM, "text");
	for (uint64_t i = 1; i < rules; i++)
		end += sprintf(end, "tcp%u(eth0) 10.[100-200].%u.[1-99/2]\n",
			       (unsigned int)i % 100, (unsigned int)i % 256);
	text_copy(end, size - (size_t)(end - text), "tcp7 10.0.*.[1-9]");
	t = now_seconds();
	for (uint64_t i = 0; i < n; i++) {
		must(ip2nets_networks(text, &here, 1, &networks, NULL),
		     "rules");
		free(networks);
	}
	t = now_seconds() - t;
	free(text);
	return t / (double)n * 1e3;
}

/* Looks up the peer NI by its NID, which every choice must do. */
static void search_turn(struct bare *b, uint64_t n)
{
	struct lnet_cpt *cpt = b->node->cpt[0];
	const struct ulnet_nid to = id_of(0x0a010001).nid;

	while (n--)
		must(peer_search(cpt, &to) ? 0 : -ENOENT, "peer NI");
}

/* Returns how many times as long as the lookup of a peer NI the choice of a
 * path takes. Both are measured in turn on the same machine; a disturbance can
 * only make a measurement longer, so the shortest ones are compared. */
static double select_ratio(uint64_t n, uint32_t rails)
{
	struct bare b = { .turn = select_turn };
	double chosen = 1e9, found = 1e9, ns;

	bare_open(&b);
	select_prepare(&b, rails);
	for (unsigned int i = 0; i < SELECT_TURNS; i++) {
		b.turn = select_turn;
		ns = bare_run(&b, n / SELECT_TURNS);
		chosen = MIN(chosen, ns);
		b.turn = search_turn;
		ns = bare_run(&b, n / SELECT_TURNS);
		found = MIN(found, ns);
	}
	return chosen / found;
}

/* ---- one PUT up: from lnet_parse() to the event ---- */

static void parse_turn(struct bare *b, uint64_t n)
{
	struct ulnet_id from = id_of(0x0a000002);

	while (n--)
		must(lnet_parse(b->ni, b->hdr, sizeof(b->hdr), &from, b),
		     "parse");
}

static void parse_prepare(struct bare *b)
{
	struct lnet_hdr hdr = { .dest_nid = id_of(0x0a000001).nid,
				.src_nid = id_of(0x0a000002).nid,
				.dest_pid = LNET_PID_LUSTRE,
				.src_pid = LNET_PID_LUSTRE,
				.type = LNET_MSG_PUT,
				.payload_length = PAYLOAD,
				.wmd = LNET_WIRE_NONE,
				.match_bits = 1,
				.portal = PORTAL };

	hdr_encode(&hdr, b->hdr, sizeof(b->hdr));
}

static void attach(struct lnet *node, struct ulnet_id who, uint64_t bits,
		   uint64_t ignore)
{
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;
	struct ulnet_md umd = { .start = payload,
				.length = PAYLOAD,
				.threshold = LNET_MD_THRESH_INF,
				.options = LNET_MD_OP_PUT | LNET_MD_OP_GET |
					   LNET_MD_MANAGE_REMOTE,
				.handler = on_event };

	must(LNetMEAttach(node, PORTAL, who, bits, ignore, LNET_UNLINK,
			  LNET_INS_AFTER, &me),
	     "attach");
	must(LNetMDAttach(me, &umd, LNET_UNLINK, &md), "attach");
}

static double parse_path(uint64_t n)
{
	struct bare b = { .turn = parse_turn };

	bare_open(&b);
	attach(b.node, id_of(0x0a000002), 1, 0);
	parse_prepare(&b);
	return bare_run(&b, n);
}

/* ---- matching among many entries; the one that fits was attached last ---- */

static double match(uint64_t n, uint64_t entries, const char *kind)
{
	struct bare b = { .turn = parse_turn };
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	bool unique = !strcmp(kind, "match-unique");
	bool masked = !strcmp(kind, "match-masked");

	bare_open(&b);
	for (uint64_t i = entries; i > 0; i--)
		attach(b.node, unique ? id_of(0x0a000002) : any, i,
		       masked ? UINT64_C(1) << 63 : 0);
	parse_prepare(&b);
	return 1e9 / bare_run(&b, n);
}

/* ---- whole PUTs, from the call to the event ---- */

struct flood {
	struct lnet *from;
	struct ulnet_id to;
	uint64_t left;
	struct ulnet_md md;
};

static struct flood flood;

static void flood_put(void)
{
	struct ulnet_md_handle md;

	flood.left--;
	must(LNetMDBind(flood.from, &flood.md, LNET_UNLINK, &md), "bind");
	must(LNetPut(LNET_NID_ANY, md, LNET_NOACK_REQ, flood.to, PORTAL, 1, 0,
		     0),
	     "put");
}

static void on_sent(const struct ulnet_event *ev)
{
	events++;
	if (ev->terminal && flood.left)
		flood_put();
}

static int flood_start(void *arg)
{
	for (uint64_t depth = 64; depth-- && flood.left;)
		flood_put();
	(void)arg;
	return 0;
}

static void flood_init(struct lnet *from, struct ulnet_id to, uint64_t n)
{
	flood.from = from;
	flood.to = to;
	flood.left = n;
	flood.md = (struct ulnet_md){ .start = payload,
				      .length = PAYLOAD,
				      .threshold = 1,
				      .handler = on_sent };
}

static double lo(uint64_t n)
{
	struct ulnet_conf conf;
	struct ulnet_id self = { LNET_NID_LO, LNET_PID_LUSTRE };
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct lnet *node;
	double t;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	must(lnet_open(&conf, &node), "open");
	attach(node, any, 1, 0);
	flood_init(node, self, n);
	t = now_seconds();
	flood_start(NULL);
	while (events < 2 * n)
		lnet_poll(node, 1000000);
	t = now_seconds() - t;
	lnet_close(node);
	return t / (double)n * 1e9;
}

/* A network without latency, discovery or faults: only what is sent is counted.
 */
static struct lnet_sim *sim_pair(struct lnet **a, struct lnet **b)
{
	struct ulnet_sim_link link = { .latency = 1000 };
	struct ulnet_nid any = LNET_NID_ANY;
	struct ulnet_conf conf;
	struct lnet_sim *sim;

	lnet_conf_init(&conf);
	conf.discovery = LNET_DISCOVERY_OFF;
	must(lnet_sim_new(1, 1, &sim), "sim");
	must(lnet_sim_node_add(sim, "10.0.0.1@tcp", &conf, NULL, NULL), "node");
	must(lnet_sim_node_add(sim, "10.0.0.2@tcp", &conf, NULL, NULL), "node");
	must(lnet_sim_link_set(sim, &any, &any, &link), "link");
	*a = lnet_sim_node(sim, 0);
	*b = lnet_sim_node(sim, 1);
	return sim;
}

enum sim_figure { SIM_NS, SIM_MESSAGES, SIM_EVENTS };

static double sim_put(uint64_t n, enum sim_figure figure)
{
	struct lnet *a, *b;
	struct lnet_sim *sim = sim_pair(&a, &b);
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_sim_stats stats;
	double t;

	attach(b, any, 1, 0);
	flood_init(a, id_of(0x0a000002), n);
	t = now_seconds();
	flood_start(NULL);
	lnet_sim_run_all(sim);
	t = now_seconds() - t;
	lnet_sim_stats(sim, &stats);
	if (stats.messages != n || lnet_sim_free(sim)) {
		fprintf(stderr, "core: messages were lost\n");
		exit(1);
	}
	switch (figure) {
	case SIM_MESSAGES:
		return (double)n / t;
	case SIM_EVENTS:
		return (double)stats.events / t;
	default:
		return t / (double)n * 1e9;
	}
}

/* ---- size of a simulated node ---- */

static double sim_nodes(uint64_t n)
{
	size_t before, used;
	struct lnet_sim *sim;
	char nid[64];

	must(lnet_sim_new(1, 1, &sim), "sim");
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	for (uint64_t i = 0; i < n; i++) {
		snprintf(nid, sizeof(nid), "10.%u.%u.%u@tcp",
			 (unsigned int)(i >> 16 & 255),
			 (unsigned int)(i >> 8 & 255), (unsigned int)(i & 255));
		must(lnet_sim_node_add(sim, nid, NULL, NULL, NULL), "node");
	}
	used = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	lnet_sim_free(sim);
	return (double)(1 << 30) / ((double)used / (double)n);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 0) : 100000;
	uint64_t entries = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	double v;

	if (!n || !entries) {
		fprintf(stderr, "core: a number is missing\n");
		return 2;
	}
	if (!strcmp(what, "put-path"))
		v = put_path(n);
	else if (!strcmp(what, "select"))
		v = select_path(n, (uint32_t)entries);
	else if (!strcmp(what, "select-policies"))
		v = select_by_policies(n, (uint32_t)entries);
	else if (!strcmp(what, "ip2nets"))
		v = ip2nets_time(n, entries);
	else if (!strcmp(what, "inline-timing"))
		v = inline_timing(n);
	else if (!strcmp(what, "select-ratio"))
		v = select_ratio(n, (uint32_t)entries);
	else if (!strcmp(what, "parse-path"))
		v = parse_path(n);
	else if (!strncmp(what, "match-", 6))
		v = match(n, entries, what);
	else if (!strcmp(what, "lo-put"))
		v = lo(n);
	else if (!strcmp(what, "sim-put"))
		v = sim_put(n, SIM_NS);
	else if (!strcmp(what, "sim-rate"))
		v = sim_put(n, SIM_MESSAGES);
	else if (!strcmp(what, "sim-events"))
		v = sim_put(n, SIM_EVENTS);
	else if (!strcmp(what, "sim-nodes"))
		v = sim_nodes(n);
	else {
		fprintf(stderr, "usage: core put-path|select|select-policies|"
				"select-ratio|parse-path|match-unique|match-"
				"wildcard|match-masked|lo-put|"
				"sim-put|sim-rate|sim-events|sim-nodes|ip2nets|"
				"inline-timing [N [ENTRIES]]\n");
		return 2;
	}
	printf("%.1f\n", v);
	return 0;
}
