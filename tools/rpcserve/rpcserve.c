/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpcserve(1): a node that runs services by name. What they do is in services/.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cutoff.h"
#include "tools/common/exporter.h"
#include "tools/common/lst_options.h"
#include "tools/common/metrics.h"
#include "tools/common/metrics_options.h"
#include "tools/common/node.h"
#include "tools/common/option.h"
#include "services/services.h"
#include "tools/common/secure.h"
#include "tools/common/signals.h"

#define WHO	     "rpcserve"
#define SERVICES_MAX 24 /* there are no portals for more */
#define WORKERS_MAX  4096
#define MEMORY_MAX   (UINT64_C(1) << 40)
#define GRACE_US     5000000
#define REPLIES_US   1000000 /* more, for replies that are on their way */
/* With --poll, a look for signals after that many turns. */
#define TURNS 10000

struct rpcserve {
	struct node_options options;
	struct service_conf conf;
	const struct service_type *types[SERVICES_MAX];
	unsigned int ntypes;
	struct lst_options lst_options;
	struct metrics_options metrics_options;
	bool poll;
	uint64_t grace; /* us */
	struct say say;
	struct node node;
	struct ulrpc *rpc;
	struct lst *lst; /* NULL: none */
	struct metrics_source metrics;
	struct exporter *exporter; /* NULL: none */
	struct service *services[SERVICES_MAX]; /* those that run */
	unsigned int nservices;
};

/* ---- the command line ---- */

static const char help[] =
	"usage: rpcserve [OPTION]...\n"
	"A node that runs services, until SIGINT or SIGTERM.\n"
	"\n"
	"      --service NAME           run this one, instead of all; can be "
	"given\n"
	"                               several times\n"
	"      --list                   print services and methods, and exit\n"
	"      --workers N              threads for each service\n"
	"      --queue N                requests of a client that may wait\n"
	"      --window N               calls in flight for each client\n"
	"      --policy TEXT            order and limits of waiting requests\n"
	"      --segments N             bulk messages in flight for each "
	"request\n"
	"      --buffers N              request buffers for each service\n"
	"      --memory SIZE            for bulk data at most (256M)\n"
	"      --grace T                for requests under way at the end (5 "
	"s)\n"
	METRICS_HELP LST_HELP
	"      --poll                   be the node's thread, and never "
	"sleep\n" NODE_HELP_NETS
	"  -s, --socket PATH            for lnetctl; none is made without "
	"it\n" NODE_HELP_REST
	"  -l, --log LEVEL              err, warn (default), info or debug\n"
	"  -h, --help                   print this\n"
	"  -V, --version                print the version\n";

enum {
	OPT_SERVICE = 256,
	OPT_LIST,
	OPT_WORKERS,
	OPT_QUEUE,
	OPT_WINDOW,
	OPT_POLICY,
	OPT_SEGMENTS,
	OPT_BUFFERS,
	OPT_MEMORY,
	OPT_GRACE,
	OPT_POLL,
};

static const struct option options[] = {
	NODE_OPTIONS,
	{ "service", required_argument, NULL, OPT_SERVICE },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "workers", required_argument, NULL, OPT_WORKERS },
	{ "queue", required_argument, NULL, OPT_QUEUE },
	{ "window", required_argument, NULL, OPT_WINDOW },
	{ "policy", required_argument, NULL, OPT_POLICY },
	{ "segments", required_argument, NULL, OPT_SEGMENTS },
	{ "buffers", required_argument, NULL, OPT_BUFFERS },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "grace", required_argument, NULL, OPT_GRACE },
	METRICS_OPTIONS,
	LST_OPTIONS,
	{ "poll", no_argument, NULL, OPT_POLL },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int take_service(struct rpcserve *r, const char *name)
{
	const struct service_type *type = service_find(name);

	if (!type) {
		fprintf(stderr, WHO ": --service %s: there are:", name);
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

static int take_number(const char *option, const char *arg, unsigned int min,
		       unsigned int max, uint32_t *value_p)
{
	unsigned int number;
	int status = option_number(WHO, option, arg, min, max, &number);

	if (!status)
		*value_p = number;
	return status;
}

static int take_option(struct rpcserve *r, int option, const char *arg)
{
	int status = node_options_take(&r->options, WHO, option, arg);

	if (status < 0)
		status = lst_options_take(&r->lst_options, WHO, option, arg);
	if (status < 0)
		status = metrics_options_take(&r->metrics_options, WHO, option,
					      arg);
	if (status >= 0)
		return status;
	switch (option) {
	case OPT_SERVICE:
		return take_service(r, arg);
	case OPT_WORKERS:
		return take_number("workers", arg, 1, WORKERS_MAX,
				   &r->conf.workers);
	case OPT_QUEUE:
		return take_number("queue", arg, 1, 1u << 24,
				   &r->conf.queue_max);
	case OPT_WINDOW:
		return take_number("window", arg, 1, 1u << 20,
				   &r->conf.window);
	case OPT_POLICY:
		r->conf.policy = arg;
		return 0;
	case OPT_SEGMENTS:
		return take_number("segments", arg, 1, ULRPC_SEGMENTS_MAX,
				   &r->conf.segments);
	case OPT_BUFFERS:
		return take_number("buffers", arg, 2, ULRPC_BUFFERS_MAX,
				   &r->conf.buffers);
	case OPT_MEMORY:
		return option_size(WHO, "memory", arg, 4096, MEMORY_MAX,
				   &r->conf.memory);
	case OPT_GRACE:
		return option_time(WHO, "grace", arg, 0, &r->grace);
	case OPT_POLL:
		r->poll = true;
		return 0;
	}
	fputs("See '" WHO " --help'.\n", stderr); /* getopt said why */
	return OPTION_USAGE;
}

static int flushed(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror(WHO ": stdout");
	return 1;
}

static int print_list(void)
{
	const struct service_type *type;

	for (unsigned int i = 0; (type = service_at(i)); i++) {
		printf("%s: %s\n", type->name, type->text);
		for (unsigned int k = 0; k < type->nprobes; k++)
			printf("  %-14s %s\n", type->probes[k].method,
			       type->probes[k].text);
	}
	return flushed();
}

/* As lnetd's. */
static int parse(struct rpcserve *r, int argc, char **argv)
{
	int option, status;

	argv[0] = WHO;
	while ((option = getopt_long(argc, argv,
				     NODE_LETTERS METRICS_LETTERS "hV", options,
				     NULL)) != -1) {
		if (option == 'h' || option == 'V') {
			fputs(option == 'h' ? help
					    : WHO " (" PACKAGE_NAME
						  ") " PACKAGE_VERSION "\n",
			      stdout);
			return flushed();
		}
		if (option == OPT_LIST)
			return print_list();
		status = take_option(r, option, optarg);
		if (status)
			return status;
	}
	if (optind < argc) {
		fprintf(stderr,
			WHO ": unexpected argument: %s\nSee '" WHO
			    " --help'.\n",
			argv[optind]);
		return OPTION_USAGE;
	}
	if (lst_options_check(&r->lst_options, WHO))
		return OPTION_USAGE;
	if (r->poll && r->options.cpts > 1) {
		fputs(WHO ": --cpts: with --poll there is one thread, the "
			  "program's own\n",
		      stderr);
		return OPTION_USAGE;
	}
	if (r->poll && r->metrics_options.address) {
		fputs(WHO ": --metrics: not with --poll, where the node does "
			  "nothing while the program waits for who asks: use "
			  "--socket, and 'lnetctl metrics'\n",
		      stderr);
		return OPTION_USAGE;
	}
	for (unsigned int i = 0; !r->ntypes && service_at(i); i++)
		r->types[i] = service_at(i);
	while (r->types[r->ntypes])
		r->ntypes++;
	return -1;
}

/* ---- services ---- */

static int start_services(struct rpcserve *r)
{
	int rc = ulrpc_open(r->node.lnet, NULL, &r->rpc);

	if (!rc)
		rc = ulrpc_control(r->rpc, r->node.control);
	if (rc)
		say(&r->say, LNET_LOG_ERR, "cannot open RPC: %s",
		    strerror(-rc));
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

static int start_selftest(struct rpcserve *r)
{
	return lst_options_open(&r->lst_options, &r->say, r->node.lnet,
				&r->lst);
}

static int start_metrics(struct rpcserve *r)
{
	r->metrics =
		(struct metrics_source){ metrics_ask_control, r->node.control,
					 r->metrics_options.peers };
	return exporter_start(&r->metrics, r->metrics_options.address, &r->say,
			      &r->exporter);
}

static uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Stops the services, the last one first. What one of them leaves of the grace
 * is for the next, because there is one grace for all of them. */
static void stop_services(struct rpcserve *r)
{
	uint64_t end = clock_us() + r->grace;
	struct cutoff cutoff;

	cutoff_begin(&cutoff, r->node.lnet, r->grace + REPLIES_US);
	while (r->nservices) {
		struct service *s = r->services[--r->nservices];
		const char *name = s->type->name;
		uint64_t now = clock_us();
		int rc = s->type->stop(s, end > now ? end - now : 0);

		if (rc)
			say(&r->say, LNET_LOG_WARN,
			    "service %s: requests were left unanswered: %s",
			    name,
			    rc == -ETIMEDOUT ? "the time of --grace was over"
					     : strerror(-rc));
	}
	if (r->rpc)
		ulrpc_close(r->rpc);
	cutoff_end(&cutoff);
}

/* ---- from the beginning to the end ---- */

static int announce(const struct rpcserve *r)
{
	char *nids = node_nids(&r->node), port[64];
	int rc = nids ? 0 : -ENOMEM;

	node_port_note(&r->node, port, sizeof(port));
	if (!rc)
		printf(WHO ": ready: %s%s, services", nids, port);
	for (unsigned int i = 0; !rc && i < r->nservices; i++) {
		const struct service *s = r->services[i];

		printf("%s %s (portal %u)", i ? "," : "", s->type->name,
		       ulrpc_service_portal(s->running));
	}
	if (!rc && r->options.socket)
		printf(", socket %s", r->options.socket);
	if (!rc && (putchar('\n') < 0 || fflush(stdout)))
		rc = -EIO;
	if (rc)
		say(&r->say, LNET_LOG_ERR, "stdout: %s", strerror(-rc));
	free(nids);
	return rc;
}

/* Without a network nobody can call, and without a socket none can be added. */
static int check_reachable(const struct rpcserve *r)
{
	struct ulnet_ni_info info;

	for (unsigned int i = 0; lnet_ni_info(r->node.lnet, i, &info) == 0; i++)
		if (!lnet_nid_is_lo(&info.nid))
			return 0;
	if (r->options.socket)
		return 0;
	say(&r->say, LNET_LOG_ERR,
	    "no network: --net or --config is needed, or --socket, to add one "
	    "later");
	return -ENETDOWN;
}

/* The signal's number. */
static int wait_for_end(struct rpcserve *r, int signals)
{
	struct pollfd fd = { .fd = signals, .events = POLLIN };
	int number;

	while (!(number = signals_take(signals))) {
		if (!r->poll)
			poll(&fd, 1, -1);
		for (unsigned int i = 0; r->poll && i < TURNS; i++)
			lnet_poll(r->node.lnet, 0);
	}
	return number;
}

static int serve(struct rpcserve *r, int signals)
{
	int rc = node_open(&r->node, &r->options, &r->say,
			   r->poll ? LNET_RUN_POLL : LNET_RUN_THREADS);

	if (!rc)
		rc = node_control(&r->node);
	/* Before there is a network, so that nobody is told "no such service"
	 * who comes too early. */
	if (!rc)
		rc = start_services(r);
	if (!rc)
		rc = start_selftest(r);
	if (!rc)
		rc = node_configure(&r->node);
	if (!rc)
		rc = check_reachable(r);
	if (!rc)
		rc = start_metrics(r);
	if (!rc)
		rc = announce(r);
	if (!rc) {
		say(&r->say, LNET_LOG_INFO, "%s: ending",
		    strsignal(wait_for_end(r, signals)));
		signals_release();
	}
	exporter_stop(r->exporter); /* which asks RPC and the node */
	if (r->node.lnet)
		stop_services(r);
	node_close(&r->node);
	lst_free(r->lst);
	return rc;
}

int main(int argc, char **argv)
{
	struct rpcserve r = { .grace = GRACE_US };
	int status, signals;

	if (secure_stdio())
		return 1;
	node_options_init(&r.options);
	metrics_options_init(&r.metrics_options);
	status = parse(&r, argc, argv);
	if (status >= 0)
		goto out;
	r.say = (struct say){ .who = WHO, .level = r.options.log };
	lnet_log_set(r.say.level, NULL, NULL);
	status = 1;
	signals = signals_open();
	if (signals < 0) {
		say(&r.say, LNET_LOG_ERR, "signals: %s", strerror(-signals));
		goto out;
	}
	node_raise_files(&r.say);
	status = serve(&r, signals) ? 1 : 0;
	close(signals);
out:
	node_options_free(&r.options);
	lst_options_free(&r.lst_options);
	return status;
}
