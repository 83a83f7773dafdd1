/* SPDX-License-Identifier: BSD-3-Clause */
/* rpcserve(1): a node that runs the services of services/, by their names. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/etcd.h"
#include "tools/common/keys.h"
#include "tools/common/node.h"
#include "ulnet/keys.h"
#include "ulnet/stub.h"
#include "tools/common/option.h"
#include "services/services.h"
#include "tools/common/program.h"
#include "tools/common/reload.h"
#include "tools/common/rules.h"
#include "tools/common/serve.h"
#include "tools/common/spans.h"

#define WHO	     "rpcserve"
#define SERVICES_MAX 24
#define WORKERS_MAX  4096
#define MEMORY_MAX   (UINT64_C(1) << 40)
#define GRACE_US     5000000
/* us that replies which LNet is still sending get, after the grace */
#define REPLIES_US 1000000
/* With --poll, signals are looked for once in this number of turns. */
#define TURNS	10000
#define TURN_US 10000

struct rpcserve {
	struct node_options options;
	struct keys_options keys;
	struct service_conf conf;
	const struct service_type *types[SERVICES_MAX];
	unsigned int ntypes;
	bool about; /* the service that tells of the others is wanted */
	bool poll;
	uint64_t grace; /* us that requests under way get to end */
	struct say say;
	struct node node;
	struct ulrpc *rpc;
	struct serve serve;
	struct reload reload;
	const char *spans_path; /* NULL: no spans are wanted */
	struct ulrpc_spans *spans;
	struct ulrpc_service *about_runs;	/* NULL: it does not */
	struct service *services[SERVICES_MAX]; /* the services that run */
	unsigned int nservices;
	const char *registry; /* a name of etcd; NULL: none */
	unsigned int registry_ttl;
	struct etcd_library etcd;
	struct ulnet_etcd_entry *entry; /* NULL: not registered */
};

/* ---- the command line ---- */

static int take_service(const struct option_at *at)
{
	const struct service_type *type = service_find(at->text);
	struct rpcserve *r = at->object;

	if (!type) {
		fprintf(stderr, WHO ": --service %s: there are:", at->text);
		for (unsigned int i = 0; (type = service_at(i)); i++)
			fprintf(stderr, "%s %s", i ? "," : "", type->name);
		fputc('\n', stderr);
		return OPTION_USAGE;
	}
	for (unsigned int i = 0; i < r->ntypes; i++)
		if (r->types[i] == type)
			return 0;
	r->types[r->ntypes++] = type;
	return 0;
}

static int print_list(const struct option_at *at)
{
	const struct service_type *type;

	for (unsigned int i = 0; (type = service_at(i)); i++) {
		printf("%s: %s\n", type->name, type->text);
		for (unsigned int k = 0; k < type->nprobes; k++)
			printf("  %-14s %s\n", type->probes[k].method,
			       type->probes[k].text);
	}
	return option_printed(at->who);
}

#define AT(field) offsetof(struct rpcserve, field)

static const struct option_row rows[] = {
	{ "service", 0, "NAME",
	  "run only this service; can be given several times",
	  .kind = OPTION_CALL, .take = take_service },
	{ "list", 0, NULL, "print services and methods, and exit",
	  .kind = OPTION_CALL, .take = print_list },
	{ "about", 0, NULL,
	  "tell callers which services there are, and how they are: ulrpc(1)",
	  .kind = OPTION_FLAG, AT(about) },
	{ "spans", 0, "FILE",
	  "write spans of sampled requests to a file, or unix:SOCKET",
	  .kind = OPTION_TEXT, AT(spans_path), 1 },
	{ "workers", 0, "N", "threads for each service", .kind = OPTION_NUMBER,
	  AT(conf.workers), 1, WORKERS_MAX },
	{ "queue", 0, "N", "requests of one client that may wait",
	  .kind = OPTION_NUMBER, AT(conf.queue_max), 1, 1u << 24 },
	{ "window", 0, "N", "calls in flight for each client",
	  .kind = OPTION_NUMBER, AT(conf.window), 1, 1u << 20 },
	{ "policy", 0, "TEXT", "order and limits of waiting requests",
	  .kind = OPTION_TEXT, AT(conf.policy) },
	{ "segments", 0, "N", "bulk messages in flight for each request",
	  .kind = OPTION_NUMBER, AT(conf.segments), 1, ULRPC_SEGMENTS_MAX },
	{ "buffers", 0, "N", "request buffers for each service and thread",
	  .kind = OPTION_NUMBER, AT(conf.buffers), 2, ULRPC_BUFFERS_MAX },
	{ "body-limit", 0, "SIZE", "longest request and reply of echo (16M)",
	  .kind = OPTION_SIZE, AT(conf.body_limit), ULRPC_BODY_MAX,
	  ULRPC_REPLY_MAX },
	{ "memory", 0, "SIZE", "most memory for bulk data (256M)",
	  .kind = OPTION_SIZE, AT(conf.memory), 4096, MEMORY_MAX },
	{ "grace", 0, "T", "time at the end to answer requests under way (5 s)",
	  .kind = OPTION_TIME, AT(grace) },
	{ "register", 0, "NAME",
	  "keep the node in etcd as a server of etcd://HOST:PORT/PREFIX",
	  .kind = OPTION_TEXT, AT(registry), .min = 1 },
	{ "register-ttl", 0, "N",
	  "s after which it is gone there if the node has died (10)",
	  .kind = OPTION_NUMBER, AT(registry_ttl), LNET_ETCD_TTL_MIN,
	  LNET_ETCD_TTL_MAX },
	{ "poll", 0, NULL,
	  "run the node on the program's thread, and never sleep",
	  .kind = OPTION_FLAG, AT(poll) },
	{ 0 },
};

static int rpcserve_complete(struct rpcserve *r)
{
	if (serve_check(&r->serve, WHO) || keys_check(&r->keys, WHO))
		return OPTION_USAGE;
	if (r->poll && r->options.cpts > 1)
		return option_wrong(WHO, "--cpts: with --poll there is one "
					 "thread, the program's own");
	if (r->poll && r->serve.metrics.address)
		return option_wrong(WHO,
				    "--metrics: not with --poll, where the "
				    "node does nothing while the program waits "
				    "for a request: use --socket, and 'lnetctl "
				    "metrics'");
	for (unsigned int i = 0; !r->ntypes && service_at(i); i++)
		r->types[i] = service_at(i);
	while (r->types[r->ntypes])
		r->ntypes++;
	r->conf.flavour = (enum ulrpc_flavour)r->keys.flavour;
	return 0;
}

static int rpcserve_parse(struct rpcserve *r, int argc, char **argv)
{
	struct option_set set = {
		.who = WHO,
		.see = WHO " --help",
		.head = "usage: rpcserve [OPTION]...\n"
			"Runs a node with services until SIGINT or "
			"SIGTERM.\n\n",
		.parts = { { rows, r },
			   { keys_rows, &r->keys },
			   { munge_take_rows, &r->keys },
			   { flavour_rows, &r->keys },
			   { serve_rows, &r->serve },
			   { node_net_rows, &r->options },
			   { node_socket_rows, &r->options },
			   { node_rows, &r->options },
			   { node_log_rows, &r->options },
			   { option_rows, NULL } },
	};
	int status = options_parse(&set, argc, argv);

	return status ? status : rpcserve_complete(r);
}

/* ---- the end, in bounded time ---- */

/* Bounds the time that the end takes. If a peer stops reading in the middle of
 * a message, the message lasts until LNet gives the peer up. So when the grace
 * is over, a thread removes the node's networks, which ends all messages. */
struct cutoff {
	struct lnet *node;
	struct timespec at;
	bool running; /* the thread exists, and has to be joined */
	pthread_t thread;
	pthread_mutex_t lock; /* lock of @canceled */
	pthread_cond_t changed;
	bool canceled;
	atomic_bool ended; /* the thread will do nothing more */
};

static void remove_networks(struct lnet *node)
{
	struct ulnet_ni_info info;

	/* The first NI is 0@lo, which stays. */
	while (lnet_ni_info(node, 1, &info) == 0 &&
	       lnet_ni_del(node, &info.nid) == 0)
		;
}

static void *cutoff_main(void *arg)
{
	struct cutoff *c = arg;
	int rc = 0;
	bool canceled;

	pthread_mutex_lock(&c->lock);
	while (!c->canceled && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&c->changed, &c->lock, &c->at);
	canceled = c->canceled;
	pthread_mutex_unlock(&c->lock);
	if (!canceled)
		remove_networks(c->node);
	atomic_store(&c->ended, true);
	return NULL;
}

/* Schedules the removal of the networks in @us, unless a thread cannot be made.
 * @node must stay open until cutoff_end(). */
static void cutoff_begin(struct cutoff *c, struct lnet *node, uint64_t us)
{
	pthread_condattr_t attr;

	*c = (struct cutoff){ .node = node };
	clock_gettime(CLOCK_MONOTONIC, &c->at);
	c->at.tv_sec += (time_t)(us / 1000000);
	c->at.tv_nsec += (long)(us % 1000000) * 1000;
	if (c->at.tv_nsec >= 1000000000) {
		c->at.tv_sec++;
		c->at.tv_nsec -= 1000000000;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	c->running = !pthread_create(&c->thread, NULL, cutoff_main, c);
}

/* Cancels the removal of the networks, or waits until it is done. If the node
 * is polled, this function makes the turns that the thread waits for. */
static void cutoff_end(struct cutoff *c)
{
	pthread_mutex_lock(&c->lock);
	c->canceled = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
	while (c->running && !atomic_load(&c->ended) &&
	       lnet_poll(c->node, TURN_US) == 0)
		;
	if (c->running)
		pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
}

/* ---- services ---- */

static int start_reload(struct rpcserve *r)
{
	r->reload = (struct reload){ .keys = &r->keys,
				     .say = &r->say,
				     .lnet = r->node.lnet,
				     .rpc = r->rpc };
	return reload_start(&r->reload, r->node.control);
}

static int start_services(struct rpcserve *r)
{
	struct ulrpc_conf conf;
	int rc;

	ulrpc_conf_init(&conf);
	conf.keys = r->options.keys;
	rc = ulrpc_open(r->node.lnet, &conf, &r->rpc);
	if (!rc)
		rc = ulrpc_control(r->rpc, r->node.control);
	if (!rc)
		rc = start_reload(r);
	if (rc)
		say(&r->say, LNET_LOG_ERR, "cannot open RPC: %s",
		    strerror(-rc));
	if (!rc)
		rc = spans_start(r->rpc, r->spans_path, 0, &r->say, &r->spans);
	/* The file's rules must count before there is a network over which a
	 * call can come. */
	if (!rc && r->options.config && strcmp(r->options.config, "-") != 0)
		rc = rules_use(r->rpc, r->options.config, &r->say);
	for (unsigned int i = 0; !rc && i < r->ntypes; i++) {
		const struct service_type *type = r->types[i];

		rc = type->start(r->rpc, &r->conf, &r->services[r->nservices]);
		if (rc)
			say(&r->say, LNET_LOG_ERR, "service %s: %s", type->name,
			    strerror(-rc));
		else
			r->nservices++;
	}
	return rc;
}

static int start_about(struct rpcserve *r)
{
	struct ulrpc_service_conf conf;
	int rc;

	if (!r->about)
		return 0;
	ulrpc_service_conf_init(&conf);
	conf.flavour = r->conf.flavour;
	rc = ulrpc_about_start(r->rpc, &conf, &r->about_runs);
	if (rc)
		say(&r->say, LNET_LOG_ERR, "--about: %s", strerror(-rc));
	return rc;
}

/* Stops the services, the last one first. They have one grace together. */
static void stop_services(struct rpcserve *r)
{
	uint64_t end = clock_ns() / 1000 + r->grace;
	struct cutoff cutoff;

	cutoff_begin(&cutoff, r->node.lnet, r->grace + REPLIES_US);
	/* It goes on until the others have ended, and tells that they end. */
	while (r->nservices) {
		struct service *s = r->services[--r->nservices];
		const char *name = s->type->name;
		uint64_t now = clock_ns() / 1000;
		int rc = s->type->stop(s, end > now ? end - now : 0);

		if (rc)
			say(&r->say, LNET_LOG_WARN,
			    "service %s: requests were left unanswered: %s",
			    name,
			    rc == -ETIMEDOUT ? "the time of --grace was over"
					     : strerror(-rc));
	}
	if (r->about_runs)
		ulrpc_service_stop(r->about_runs, 0);
	/* Removes the command first, so that nobody renews the keys of RPC that
	 * is closed. */
	reload_stop(&r->reload);
	ulrpc_spans_stop(r->spans);
	if (r->rpc)
		ulrpc_close(r->rpc);
	cutoff_end(&cutoff);
}

/* ---- the entry in etcd ---- */

/* The NID and port by which others reach this node. */
static int own_address(const struct rpcserve *r, struct ulnet_address *a)
{
	struct ulnet_id id;

	for (unsigned int i = 0; !LNetGetId(r->node.lnet, i, &id); i++) {
		if (lnet_nid_is_lo(&id.nid))
			continue;
		a->nid = id.nid;
		a->port = (uint16_t)(r->options.port ? r->options.port
						     : NODE_DEFAULT_PORT);
		return 0;
	}
	return -EADDRNOTAVAIL;
}

static int registry_start(struct rpcserve *r)
{
	struct ulnet_text_error err = { .what = "" };
	struct ulnet_address address = { 0 };
	char why[256];
	int rc;

	if (!r->registry)
		return 0;
	rc = etcd_load(&r->etcd, why, sizeof(why));
	if (!rc)
		rc = etcd_open(&r->etcd, r->node.lnet, why, sizeof(why));
	if (rc) {
		say(&r->say, LNET_LOG_ERR, "--register: %s", why);
		return rc;
	}
	rc = own_address(r, &address);
	if (!rc)
		rc = r->etcd.reg(r->node.lnet, r->registry, &address,
				 r->registry_ttl, &r->entry, &err);
	if (rc)
		say(&r->say, LNET_LOG_ERR, "--register %s: %s", r->registry,
		    *err.what		   ? err.what
		    : rc == -EADDRNOTAVAIL ? "the node has no NID yet: --net"
					   : strerror(-rc));
	return rc;
}

/* Before the services end, so that nobody new comes. */
static void registry_stop(struct rpcserve *r)
{
	if (r->entry)
		r->etcd.withdraw(r->entry);
	r->entry = NULL;
}

/* ---- running ---- */

static int rpcserve_announce(const struct rpcserve *r)
{
	int rc = node_say_ready(&r->node);

	if (!rc)
		fputs(", services", stdout);
	for (unsigned int i = 0; !rc && i < r->nservices; i++) {
		const struct service *s = r->services[i];

		printf("%s %s (portal %u)", i ? "," : "", s->type->name,
		       ulrpc_service_portal(s->running));
	}
	if (!rc && r->about_runs)
		printf(", ulrpc.About (portal %u)",
		       ulrpc_service_portal(r->about_runs));
	return node_said(&r->node, rc);
}

/* Fails if there are neither a network, by which somebody could call, nor a
 * control socket, by which a network could be added. */
static int check_reachable(const struct rpcserve *r)
{
	if (r->options.socket || node_has(&r->node, NULL, LNET_NET_ANY))
		return 0;
	say(&r->say, LNET_LOG_ERR,
	    "no network: --net or --config is needed, or --socket, to add one "
	    "later");
	return -ENETDOWN;
}

/* Waits for a signal, and returns its number. */
static int rpcserve_wait(struct rpcserve *r, int signals)
{
	int number;

	if (!r->poll)
		return signals_wait(signals, 0);
	while (!(number = signals_take(signals)))
		for (unsigned int i = 0; i < TURNS; i++)
			lnet_poll(r->node.lnet, 0);
	return number;
}

static void on_hangup(const struct rpcserve *r)
{
	if (r->spans)
		ulrpc_spans_reopen(r->spans);
	if (!r->spans || r->keys.folder)
		reload_on_hangup(&r->reload);
}

/* Waits for a signal to end, and returns its number. */
static int rpcserve_wait_for_end(struct rpcserve *r, int signals)
{
	int number;

	while ((number = rpcserve_wait(r, signals)) == SIGHUP)
		on_hangup(r);
	return number;
}

static int rpcserve_serve(struct rpcserve *r, int signals)
{
	int rc = keys_read(&r->keys, &r->say, &r->options.keys);

	if (!rc)
		rc = node_begin(&r->node, &r->options, &r->say,
				r->poll ? LNET_RUN_POLL : LNET_RUN_THREADS);
	if (!rc)
		rc = node_control(&r->node);
	/* Starts the services before there is a network, so that no early
	 * client is told "no such service". */
	if (!rc)
		rc = start_services(r);
	if (!rc)
		rc = start_about(r);
	if (!rc)
		rc = serve_selftest(&r->serve, &r->say, r->node.lnet);
	if (!rc)
		rc = node_configure(&r->node);
	if (!rc)
		rc = check_reachable(r);
	if (!rc)
		rc = serve_metrics(&r->serve, &r->say, r->node.control);
	if (!rc)
		rc = registry_start(r);
	if (!rc)
		rc = rpcserve_announce(r);
	if (!rc) {
		node_tell_manager(&r->node, "READY=1\n");
		say(&r->say, LNET_LOG_INFO, "%s: ending",
		    strsignal(rpcserve_wait_for_end(r, signals)));
		node_tell_manager(&r->node, "STOPPING=1\n");
		signals_release();
	}
	registry_stop(r);
	serve_stop(&r->serve);
	if (r->node.lnet)
		stop_services(r);
	node_close(&r->node);
	ulrpc_keys_put(r->options.keys);
	return rc;
}

int main(int argc, char **argv)
{
	struct rpcserve r = { .grace = GRACE_US, .registry_ttl = 10 };
	int status, signals;

	if (secure_stdio())
		return 1;
	node_options_init(&r.options);
	serve_init(&r.serve);
	status = rpcserve_parse(&r, argc, argv);
	if (status)
		goto out;
	r.say = (struct say){ .who = WHO };
	node_options_log(&r.options);
	status = 1;
	signals = signals_open(WHO, SIGHUP);
	if (signals < 0)
		goto out;
	node_raise_files(&r.say);
	status = rpcserve_serve(&r, signals) ? 1 : 0;
	close(signals);
out:
	node_options_free(&r.options);
	keys_options_free(&r.keys);
	serve_free(&r.serve);
	return status == OPTION_DONE ? 0 : status;
}
