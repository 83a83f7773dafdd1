/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpcping(1): a node that calls services of other nodes, and reports how
 * quickly they answer. rpcping_load.c makes the calls; rpcping_options.c reads
 * the command line, and rpcping_report.c prints.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ulnet/path.h"
#include "ulnet/route.h"

#include "tools/common/node.h"
#include "ulnet/keys.h"
#include "rpcping.h"
#include "tools/common/program.h"
#include "tools/common/target.h"
#include "tools/common/spans.h"

#define NS_PER_US UINT64_C(1000)
/* ns: with --poll, how often rpcping_look() is called */
#define LOOK_NS (10000 * NS_PER_US)

#define SPANS_ALL 1000000

struct rpcping {
	struct ulrpc_spans *spans; /* NULL: none are wanted */
	struct rpcping_options options;
	struct say say;
	struct node node;
	struct ulrpc *rpc;
	struct load **loads; /* array: a load for each target */
	unsigned int nloads;
	int signals; /* a descriptor: signals_open() */
	int wake;    /* an eventfd, which is written to when a load has ended */
	atomic_uint ended;
	uint64_t tick; /* ns: when the next live line is due */
	/* ns: when calls are canceled, after a signal; 0: no signal has come */
	uint64_t give_up;
	bool canceled;
	/* Two arrays, each with an entry for each target, one for their sum,
	 * and one that report_live() uses for the difference. */
	struct load_stats *now, *before;
};

/* ---- the node ---- */

/* Waits for what the name of @t stands for: without an address, there is nobody
 * to call. */
static int find_target(struct rpcping *p, struct target *t)
{
	struct ulnet_name_answer *answer;
	char why[TARGET_WHY];
	int rc = target_lookup(p->node.lnet, t->text, &answer, why);

	if (rc) {
		say(&p->say, LNET_LOG_ERR, "%s: %s", t->text, why);
		return rc;
	}
	for (unsigned int i = 0; i < answer->n && i < LNET_ADDRESSES_MAX; i++)
		t->nids[t->nnids++] = answer->addresses[i].nid;
	free(answer);
	return 0;
}

static int find_targets(struct rpcping *p)
{
	struct rpcping_options *o = &p->options;
	int rc = 0;

	for (unsigned int i = 0; !rc && i < o->ntargets; i++)
		if (o->targets[i].is_name)
			rc = find_target(p, &o->targets[i]);
	return rc;
}

/* Adds the interfaces by which this host reaches the target. Returns 0 if at
 * least one NID of the target is reached. */
static int reach_target(struct rpcping *p, const struct target *t)
{
	bool reached = false;
	int rc = 0;

	for (unsigned int i = 0; i < t->nnids; i++) {
		int one = lnet_ni_reach(p->node.lnet, &t->nids[i]);

		reached |= !one;
		rc = one ? one : rc;
	}
	if (reached)
		return 0;
	say(&p->say, LNET_LOG_ERR,
	    "%s: this host has no way there: %s; see --net", t->text,
	    strerror(-rc));
	return rc;
}

/* If the command line says nothing about nets, calls go out by the interfaces
 * that the routes of this host to the targets name. */
static int add_nets(struct rpcping *p)
{
	const struct rpcping_options *o = &p->options;
	int rc = 0;

	if (o->node.nnets || o->node.ip2nets || o->node.config)
		return 0;
	for (unsigned int i = 0; !rc && i < o->ntargets; i++)
		rc = reach_target(p, &o->targets[i]);
	return rc;
}

static bool has_route(const struct rpcping *p, uint32_t net)
{
	int n = lnet_routes(p->node.lnet, NULL, 0);
	struct ulnet_route_info *infos = calloc((size_t)n + 1, sizeof(*infos));
	bool found = false;

	n = infos ? lnet_routes(p->node.lnet, infos, (unsigned int)n) : 0;
	for (int i = 0; i < n; i++)
		found |= infos[i].route.net == net;
	free(infos);
	return found;
}

/* A call to a target on no net of this node would wait until its deadline,
 * because nets and routes may be added. They can be added only through a
 * control socket, so without one such a target is an error. */
static int check_nets(const struct rpcping *p)
{
	const struct rpcping_options *o = &p->options;

	if (o->node.socket)
		return 0;
	for (unsigned int i = 0; i < o->ntargets; i++) {
		const struct target *t = &o->targets[i];
		unsigned int k = 0;
		char *nids;

		while (k < t->nnids &&
		       !node_has(&p->node, NULL, lnet_nid_net(&t->nids[k])) &&
		       !has_route(p, lnet_nid_net(&t->nids[k])))
			k++;
		if (k < t->nnids)
			continue;
		nids = node_nids(&p->node);
		say(&p->say, LNET_LOG_ERR,
		    "%s: on no net of this node, which is %s, and there is no "
		    "route: see --net, --config",
		    t->text, nids ? nids : "on others");
		free(nids);
		return -ENETUNREACH;
	}
	return 0;
}

static int open_node(struct rpcping *p)
{
	enum ulnet_run run = p->options.poll ? LNET_RUN_POLL : LNET_RUN_THREADS;
	struct ulrpc_conf conf;
	int rc = keys_read(&p->options.keys, &p->say, &p->options.node.keys);

	if (!rc)
		rc = node_begin(&p->node, &p->options.node, &p->say, run);
	if (!rc)
		rc = node_control(&p->node);
	if (!rc)
		rc = node_configure(&p->node);
	if (!rc)
		rc = find_targets(p);
	if (!rc)
		rc = add_nets(p);
	if (!rc)
		rc = check_nets(p);
	if (rc)
		return rc;
	ulrpc_conf_init(&conf);
	conf.keys = p->options.node.keys;
	rc = ulrpc_open(p->node.lnet, &conf, &p->rpc);
	if (!rc)
		rc = ulrpc_control(p->rpc, p->node.control);
	if (rc)
		say(&p->say, LNET_LOG_ERR, "cannot open RPC: %s",
		    strerror(-rc));
	else
		rc = spans_start(p->rpc, p->options.spans,
				 p->options.spans_share ? p->options.spans_share
							: SPANS_ALL,
				 &p->say, &p->spans);
	return rc;
}

/* ---- the loads ---- */

static void rpcping_on_ended(void *arg)
{
	struct rpcping *p = arg;
	const uint64_t one = 1;

	atomic_fetch_add(&p->ended, 1);
	if (!p->options.poll && write(p->wake, &one, sizeof(one)) < 0)
		abort(); /* a write to an eventfd does not fail */
}

static const char *why_not(int rc)
{
	switch (rc) {
	case -EXDEV:
		return "its NIDs belong to different threads here: use one of "
		       "them, or --cpts 1";
	case -EMSGSIZE:
		return "--size: too long for one message";
	}
	return strerror(-rc);
}

static int open_load(struct rpcping *p, const struct target *t)
{
	struct load_conf conf = p->options.load;
	int rc;

	conf.target = t->is_name ? t->text : NULL;
	conf.nids = t->nids;
	conf.nnids = t->nnids;
	conf.pid = t->pid;
	conf.seed += (uint64_t)p->nloads << 48;
	conf.ended = rpcping_on_ended;
	conf.arg = p;
	rc = load_open(p->rpc, &conf, &p->loads[p->nloads]);
	if (rc)
		say(&p->say, LNET_LOG_ERR, "%s: %s", t->text, why_not(rc));
	else
		p->nloads++;
	return rc;
}

static int open_loads(struct rpcping *p)
{
	unsigned int n = p->options.ntargets;
	int rc = 0;

	p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake < 0)
		rc = -errno;
	p->loads = calloc(n, sizeof(*p->loads));
	p->now = calloc(n + 2, sizeof(*p->now));
	p->before = calloc(n + 2, sizeof(*p->before));
	if (!p->loads || !p->now || !p->before)
		rc = -ENOMEM;
	if (rc)
		say(&p->say, LNET_LOG_ERR, "cannot start the calls: %s",
		    strerror(-rc));
	for (unsigned int i = 0; !rc && i < n; i++)
		rc = open_load(p, &p->options.targets[i]);
	return rc;
}

/* Fetches the counts of all loads, and adds them up. */
static void collect(struct rpcping *p)
{
	struct load_stats *sum = &p->now[p->nloads];

	memset(sum, 0, sizeof(*sum));
	for (unsigned int i = 0; i < p->nloads; i++) {
		load_stats(p->loads[i], &p->now[i]);
		load_stats_merge(sum, &p->now[i]);
	}
}

/* ---- while it runs ---- */

/* Is @nid that of an NI of this node, which @info then describes? */
static bool find_ni(const struct rpcping *p, const struct ulnet_nid *nid,
		    struct ulnet_ni_info *info)
{
	for (unsigned int i = 0; !lnet_ni_info(p->node.lnet, i, info); i++)
		if (lnet_nid_eq(&info->nid, nid))
			return true;
	return false;
}

/* Writes the interface by which calls to @t leave now to @buf, as "eth0,
 * 10.0.0.5@tcp"; or "" if none leads there. */
static void way_out(const struct rpcping *p, const struct target *t, char *buf,
		    size_t size)
{
	char nid[LNET_NIDSTR_SIZE];
	struct ulnet_ni_info info;
	struct ulnet_path path;

	*buf = '\0';
	if (lnet_path_explain(p->node.lnet, NULL, &t->nids[0], &path, NULL, 0) <
		    0 ||
	    path.status || !find_ni(p, &path.local, &info) || !*info.interface)
		return;
	snprintf(buf, size, "%s, %s", info.interface,
		 lnet_nid_format(&info.nid, nid, sizeof(nid)));
}

static void report_new_losses(const struct rpcping *p)
{
	unsigned int port = p->options.node.port;
	char way[LNET_INTERFACE_SIZE + LNET_NIDSTR_SIZE];

	for (unsigned int i = 0; i < p->nloads; i++) {
		way_out(p, &p->options.targets[i], way, sizeof(way));
		report_losses(p->options.targets[i].text, way,
			      port ? port : NODE_DEFAULT_PORT,
			      p->options.keys.folder, &p->now[i],
			      &p->before[i]);
	}
}

static void tick(struct rpcping *p, uint64_t now)
{
	struct load_stats *other = p->before;
	unsigned int n = p->nloads;

	p->tick = now + p->options.interval * NS_PER_US;
	collect(p);
	report_new_losses(p);
	p->now[n].last = now;
	if (p->options.live)
		report_live(&p->now[n], &p->before[n], now,
			    &p->now[n + 1].latency);
	p->before = p->now;
	p->now = other;
}

static void rpcping_stop(struct rpcping *p, uint64_t now)
{
	if (!p->give_up) {
		p->give_up = now + p->options.grace * NS_PER_US;
		for (unsigned int i = 0; i < p->nloads; i++)
			load_stop(p->loads[i]);
	} else if (!p->canceled) {
		p->canceled = true;
		for (unsigned int i = 0; i < p->nloads; i++)
			load_cancel(p->loads[i]);
	}
}

static bool rpcping_ended(struct rpcping *p)
{
	return atomic_load(&p->ended) == p->nloads;
}

/* Takes signals, and prints the live line if it is due. */
static void rpcping_look(struct rpcping *p, uint64_t now)
{
	if (signals_take(p->signals) || (p->give_up && now >= p->give_up))
		rpcping_stop(p, now);
	if (now >= p->tick)
		tick(p, now);
}

static void run_polling(struct rpcping *p)
{
	uint64_t next = 0, now;

	while (!rpcping_ended(p)) {
		lnet_poll(p->node.lnet, 0);
		now = clock_ns();
		if (now < next)
			continue;
		next = now + LOOK_NS;
		rpcping_look(p, now);
	}
}

static void run_waiting(struct rpcping *p)
{
	struct pollfd fds[] = { { .fd = p->signals, .events = POLLIN },
				{ .fd = p->wake, .events = POLLIN } };
	uint64_t now, until, counts;
	struct timespec t;

	while (!rpcping_ended(p)) {
		now = clock_ns();
		until = p->tick;
		if (p->give_up && !p->canceled && p->give_up < until)
			until = p->give_up;
		until = until > now ? until - now : 0;
		t.tv_sec = (time_t)(until / 1000000000);
		t.tv_nsec = (long)(until % 1000000000);
		ppoll(fds, 2, &t, NULL);
		if (read(p->wake, &counts, sizeof(counts)) < 0)
			/* No signal has come: ppoll() returned for another
			 * reason. */
			counts = 0;
		rpcping_look(p, clock_ns());
	}
}

static void rpcping_run(struct rpcping *p)
{
	uint64_t now = clock_ns();

	p->tick = now + p->options.interval * NS_PER_US;
	p->before[p->nloads].last = now;
	for (unsigned int i = 0; i < p->nloads; i++)
		load_start(p->loads[i]);
	if (p->options.poll)
		run_polling(p);
	else
		run_waiting(p);
}

/* ---- the end ---- */

static int rpcping_report(struct rpcping *p)
{
	const struct rpcping_options *o = &p->options;
	unsigned int n = p->nloads;

	if (o->live)
		report_live_end();
	if (o->json)
		report_json(o, p->now, p->rpc);
	for (unsigned int i = 0; !o->json && i < n + (n > 1); i++)
		report_text(o, i < n ? o->targets[i].text : "all", &p->now[i]);
	if (o->load.explain && !o->json)
		report_explain(&p->now[n], p->rpc);
	return option_printed("rpcping");
}

/* Reports the whole run. Returns the exit status: 0 if there were calls, and
 * all were answered; else 1. */
static int result(struct rpcping *p)
{
	const struct load_stats *sum;

	collect(p);
	report_new_losses(p);
	if (rpcping_report(p) != OPTION_DONE)
		return 1;
	sum = &p->now[p->nloads];
	return sum->lost || !sum->answered ? 1 : 0;
}

static void rpcping_close_all(struct rpcping *p)
{
	for (unsigned int i = 0; i < p->nloads; i++)
		load_free(p->loads[i]);
	free(p->loads);
	free(p->now);
	free(p->before);
	ulrpc_spans_stop(p->spans);
	if (p->rpc)
		ulrpc_close(p->rpc);
	node_close(&p->node);
	ulrpc_keys_put(p->options.node.keys);
	if (p->wake >= 0)
		close(p->wake);
	if (p->signals >= 0)
		close(p->signals);
}

int main(int argc, char **argv)
{
	struct rpcping p = { .signals = -1, .wake = -1 };
	int status;

	if (secure_stdio())
		return 1;
	status = rpcping_options_parse(&p.options, argc, argv);
	if (status)
		goto out;
	p.say = (struct say){ .who = "rpcping" };
	node_options_log(&p.options.node);
	status = 1;
	p.signals = signals_open("rpcping", 0);
	if (p.signals < 0)
		goto out;
	node_raise_files(&p.say);
	if (!open_node(&p) && !open_loads(&p)) {
		rpcping_run(&p);
		status = result(&p);
	}
	rpcping_close_all(&p);
out:
	rpcping_options_free(&p.options);
	return status == OPTION_DONE ? 0 : status;
}
