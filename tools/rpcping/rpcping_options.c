/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpcping_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tools/common/option.h"

#define WHO	      "rpcping"
#define INFLIGHT_MAX  65536
#define INFLIGHT_RATE 1024 /* the default with --rate */
#define SIZE_DEFAULT  64
#define PROGRESS_MAX  999
#define GRACE_DEFAULT 1000000 /* us */

static const char help[] =
	"usage: rpcping [OPTION]... NID[,NID]...\n"
	"Calls services of these nodes, and measures. Several NIDs of one node "
	"are\n"
	"separated by commas. Sizes take k, M and G; times, in seconds, us, "
	"ms, m and h.\n"
	"\n"
	"how much:\n"
	"  --time T            begin calls for that long (3 s, unless there is "
	"a --count)\n"
	"  --count N           begin that many calls to each target\n"
	"  --warmup T          before that, calls that do not count\n"
	"  --inflight N        under way at once to each target (1; with "
	"--rate 1024)\n"
	"  --rate R            begin R calls a second, whether others have "
	"ended or not\n"
	"  --batch N           calls that may travel in one message (256)\n"
	"  --deadline T        of each call (5 s)\n"
	"  --grace T           for calls under way when a signal comes (1 s)\n"
	"  --retry P[:N]       full (default), equal, mad or none; at most N "
	"times\n"
	"  --semantics S       idempotent (default), at-most-once or "
	"exactly-once\n"
	"what:\n"
	"  --size N            bytes there and back (64)\n"
	"  --bulk-read N       the service writes N bytes to our memory\n"
	"  --bulk-write N      the service reads N bytes from our memory\n"
	"  --segments N        messages that bulk data is cut into\n"
	"  --checksum          CRC32C of bulk data\n"
	"  --verify            new contents for each call, and look at what "
	"comes back\n"
	"  --service NAME      called (echo; with bulk: brw)\n"
	"  --method NAME       of it\n"
	"  --delay T           that the service takes its time\n"
	"  --progress N        reports of progress that it makes meanwhile\n"
	"output:\n"
	"  --live              a line each second, also if stderr is no "
	"terminal\n"
	"  --interval T        instead of each second\n"
	"  --explain           say where the time of a call went\n"
	"  --json              the sum of all targets, as one JSON object\n"
	"the node that calls:\n"
	"  --poll              be the node's thread, and never "
	"sleep\n" NODE_HELP_NETS
	"  -s, --socket PATH            for lnetctl; none is made without "
	"it\n" NODE_HELP_REST
	"  -l, --log LEVEL              err, warn (default), info or debug\n"
	"  -h, --help                   print this\n"
	"  -V, --version                print the version\n"
	"\n"
	"Without --net and --config it is on the targets' nets. Without "
	"--accept "
	"it does\n"
	"not listen, and may share its addresses with others.\n"
	"Exit status: 0: all calls were answered; 1: a call was lost, or there "
	"was no\n"
	"call; 2: the command line is wrong.\n";

enum {
	OPT_TIME = 256,
	OPT_COUNT,
	OPT_WARMUP,
	OPT_INFLIGHT,
	OPT_RATE,
	OPT_BATCH,
	OPT_DEADLINE,
	OPT_GRACE,
	OPT_RETRY,
	OPT_SEMANTICS,
	OPT_SIZE,
	OPT_BULK_READ,
	OPT_BULK_WRITE,
	OPT_SEGMENTS,
	OPT_CHECKSUM,
	OPT_VERIFY,
	OPT_SERVICE,
	OPT_METHOD,
	OPT_DELAY,
	OPT_PROGRESS,
	OPT_LIVE,
	OPT_INTERVAL,
	OPT_EXPLAIN,
	OPT_JSON,
	OPT_POLL,
};

static const struct option options[] = {
	NODE_OPTIONS,
	{ "time", required_argument, NULL, OPT_TIME },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "warmup", required_argument, NULL, OPT_WARMUP },
	{ "inflight", required_argument, NULL, OPT_INFLIGHT },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "deadline", required_argument, NULL, OPT_DEADLINE },
	{ "grace", required_argument, NULL, OPT_GRACE },
	{ "retry", required_argument, NULL, OPT_RETRY },
	{ "semantics", required_argument, NULL, OPT_SEMANTICS },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "bulk-read", required_argument, NULL, OPT_BULK_READ },
	{ "bulk-write", required_argument, NULL, OPT_BULK_WRITE },
	{ "segments", required_argument, NULL, OPT_SEGMENTS },
	{ "checksum", no_argument, NULL, OPT_CHECKSUM },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "service", required_argument, NULL, OPT_SERVICE },
	{ "method", required_argument, NULL, OPT_METHOD },
	{ "delay", required_argument, NULL, OPT_DELAY },
	{ "progress", required_argument, NULL, OPT_PROGRESS },
	{ "live", no_argument, NULL, OPT_LIVE },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "explain", no_argument, NULL, OPT_EXPLAIN },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "poll", no_argument, NULL, OPT_POLL },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

/* What is needed while the command line is being read only. */
struct given {
	enum ulrpc_bulk_access bulk; /* 0: none */
	bool size;
};

static int wrong(const char *what)
{
	fprintf(stderr, WHO ": %s\nSee '" WHO " --help'.\n", what);
	return OPTION_USAGE;
}

/* ---- one option ---- */

static int take_number(const char *option, const char *arg, unsigned int max,
		       uint32_t *value_p)
{
	unsigned int number;
	int status = option_number(WHO, option, arg, 1, max, &number);

	if (!status)
		*value_p = number;
	return status;
}

static int take_bulk(struct rpcping_options *o, struct given *given,
		     enum ulrpc_bulk_access access, const char *arg)
{
	const char *option =
		access == ULRPC_BULK_SINK ? "bulk-read" : "bulk-write";

	if (given->bulk && given->bulk != access)
		return wrong("--bulk-read and --bulk-write: one of them, or "
			     "two runs");
	given->bulk = access;
	return option_size(WHO, option, arg, 1, ULRPC_BULK_MAX, &o->load.bulk);
}

static int take_name(const char *option, const char *arg, const char **name_p)
{
	if (!*arg || strlen(arg) >= ULRPC_SERVICE_NAME)
		return option_bad(WHO, option, arg,
				  "a name of 1 to 63 bytes is expected");
	*name_p = arg;
	return 0;
}

static int take_semantics(const char *arg, enum ulrpc_semantics *semantics_p)
{
	static const char *const names[] = {
		[ULRPC_AT_MOST_ONCE] = "at-most-once",
		[ULRPC_IDEMPOTENT] = "idempotent",
		[ULRPC_EXACTLY_ONCE] = "exactly-once",
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(arg, names[i]) != 0)
			continue;
		*semantics_p = (enum ulrpc_semantics)i;
		return 0;
	}
	return option_bad(WHO, "semantics", arg,
			  "idempotent, at-most-once and exactly-once are "
			  "expected");
}

static int bad_retry(const char *arg)
{
	return option_bad(WHO, "retry", arg,
			  "full, equal, mad and none are expected, and the "
			  "number of retries behind a colon");
}

static bool retries_parse(const char *text, uint32_t *max_p)
{
	char *end;
	unsigned long max = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || max >= ULRPC_RETRIES_ANY)
		return false;
	*max_p = (uint32_t)max;
	return true;
}

/* POLICY[:MAX] */
static int take_retry(struct rpcping_options *o, const char *arg)
{
	static const char *const names[] = {
		[ULRPC_BACKOFF_FULL] = "full",
		[ULRPC_BACKOFF_EQUAL] = "equal",
		[ULRPC_BACKOFF_MAD] = "mad",
		[ULRPC_BACKOFF_NONE] = "none",
	};
	struct ulrpc_retry retry = { .max = ULRPC_RETRIES_ANY };
	size_t length = strcspn(arg, ":");

	for (unsigned int i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == length &&
		    !strncmp(arg, names[i], length))
			retry.policy = (enum ulrpc_backoff)i;
	if (!retry.policy ||
	    (arg[length] && !retries_parse(arg + length + 1, &retry.max)))
		return bad_retry(arg);
	o->retry = retry;
	o->load.retry = &o->retry;
	return 0;
}

static int take_amount(struct rpcping_options *o, int option, const char *arg)
{
	struct load_conf *l = &o->load;

	switch (option) {
	case OPT_TIME:
		return option_time(WHO, "time", arg, 1, &l->time);
	case OPT_COUNT:
		return option_size(WHO, "count", arg, 1, UINT64_C(1) << 60,
				   &l->count);
	case OPT_WARMUP:
		return option_time(WHO, "warmup", arg, 1, &l->warmup);
	case OPT_INFLIGHT:
		return take_number("inflight", arg, INFLIGHT_MAX, &l->inflight);
	case OPT_RATE:
		return option_rate(WHO, "rate", arg, 1e9, &l->rate);
	case OPT_BATCH:
		return take_number("batch", arg, ULRPC_BATCH_MAX, &l->batch);
	case OPT_DEADLINE:
		return option_time(WHO, "deadline", arg, 1, &l->deadline);
	case OPT_GRACE:
		return option_time(WHO, "grace", arg, 0, &o->grace);
	case OPT_RETRY:
		return take_retry(o, arg);
	case OPT_SEMANTICS:
		return take_semantics(arg, &l->semantics);
	}
	return -ENOENT;
}

static int take_what(struct rpcping_options *o, struct given *given, int option,
		     const char *arg)
{
	struct load_conf *l = &o->load;

	switch (option) {
	case OPT_SIZE:
		given->size = true;
		return option_size(WHO, "size", arg, 0, ULRPC_BODY_MAX,
				   &l->size);
	case OPT_BULK_READ:
		return take_bulk(o, given, ULRPC_BULK_SINK, arg);
	case OPT_BULK_WRITE:
		return take_bulk(o, given, ULRPC_BULK_SOURCE, arg);
	case OPT_SEGMENTS:
		return take_number("segments", arg, ULRPC_SEGMENTS_MAX,
				   &l->segments);
	case OPT_CHECKSUM:
		l->checksum = true;
		return 0;
	case OPT_VERIFY:
		l->verify = true;
		return 0;
	case OPT_SERVICE:
		return take_name("service", arg, &l->service);
	case OPT_METHOD:
		return take_name("method", arg, &l->method);
	case OPT_DELAY:
		return option_time(WHO, "delay", arg, 1, &l->delay);
	case OPT_PROGRESS:
		return take_number("progress", arg, PROGRESS_MAX, &l->progress);
	}
	return -ENOENT;
}

static int take_output(struct rpcping_options *o, int option, const char *arg)
{
	switch (option) {
	case OPT_LIVE:
		o->live = true;
		return 0;
	case OPT_INTERVAL:
		return option_time(WHO, "interval", arg, 1, &o->interval);
	case OPT_EXPLAIN:
		o->explain = o->load.explain = true;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_POLL:
		o->poll = true;
		return 0;
	}
	fputs("See '" WHO " --help'.\n", stderr); /* getopt said why */
	return OPTION_USAGE;
}

static int take_option(struct rpcping_options *o, struct given *given,
		       int option, const char *arg)
{
	int status = node_options_take(&o->node, WHO, option, arg);

	if (status < 0)
		status = take_amount(o, option, arg);
	if (status < 0)
		status = take_what(o, given, option, arg);
	return status < 0 ? take_output(o, option, arg) : status;
}

/* ---- targets ---- */

/* "NID", or "PID-NID": the process must be the same for all. */
static int take_nid(struct target *t, const char *text)
{
	struct ulnet_id id = { .pid = 0 };

	if (t->nnids == ULRPC_NIDS_MAX) {
		fprintf(stderr, WHO ": %s: more than %d NIDs of one node\n",
			t->text, ULRPC_NIDS_MAX);
		return OPTION_USAGE;
	}
	if ((lnet_nid_parse(text, &id.nid) && lnet_id_parse(text, &id)) ||
	    lnet_nid_is_any(&id.nid) || (t->nnids && t->pid != id.pid)) {
		fprintf(stderr, WHO ": ");
		if (strcmp(text, t->text) != 0)
			fprintf(stderr, "%s: ", t->text);
		fprintf(stderr,
			"'%s' is no NID: one like 10.0.0.1@tcp is expected\n",
			text);
		return OPTION_USAGE;
	}
	for (unsigned int i = 0; i < t->nnids; i++)
		if (lnet_nid_eq(&t->nids[i], &id.nid)) {
			fprintf(stderr, WHO ": %s: '%s' is given twice\n",
				t->text, text);
			return OPTION_USAGE;
		}
	t->nids[t->nnids++] = id.nid;
	t->pid = id.pid;
	return 0;
}

static int take_target(struct target *t, const char *text)
{
	char *copy = strdup(text), *rest = copy, *nid;
	int status = 0;

	*t = (struct target){ .text = text };
	if (!copy)
		return wrong(strerror(ENOMEM));
	while (!status && (nid = strsep(&rest, ",")))
		status = take_nid(t, nid);
	free(copy);
	return status;
}

static int take_targets(struct rpcping_options *o, int n, char **args)
{
	int status = 0;

	if (n < 1)
		return wrong("no target: one NID at least is expected");
	o->targets = calloc((size_t)n, sizeof(*o->targets));
	if (!o->targets)
		return wrong(strerror(ENOMEM));
	for (int i = 0; !status && i < n; i++)
		status = take_target(&o->targets[o->ntargets++], args[i]);
	return status;
}

/* ---- all of it ---- */

static bool fits(const struct probe *p, const struct load_conf *l,
		 enum ulrpc_bulk_access bulk)
{
	return p->bulk == bulk && (!l->delay || p->delays) &&
	       (!l->verify || p->verifies);
}

static int no_method(const struct load_conf *l, const struct service_type *type,
		     enum ulrpc_bulk_access bulk)
{
	fprintf(stderr, WHO ": service %s has no %s%s%s%s%s%s\n", type->name,
		l->method ? "method " : "method that ",
		l->method ? l->method : "", l->method ? " that " : "",
		bulk == ULRPC_BULK_SINK	    ? "can be used with --bulk-read"
		: bulk == ULRPC_BULK_SOURCE ? "can be used with --bulk-write"
					    : "can be used without bulk data",
		l->delay ? " and --delay" : "",
		l->verify ? " and --verify" : "");
	fputs("its methods:", stderr);
	for (unsigned int i = 0; i < type->nprobes; i++)
		fprintf(stderr, "%s %s (%s)", i ? "," : "",
			type->probes[i].method, type->probes[i].text);
	fputs("\n", stderr);
	return OPTION_USAGE;
}

static int choose_probe(struct load_conf *l, enum ulrpc_bulk_access bulk)
{
	const struct service_type *type;

	if (!l->service)
		l->service = bulk ? "brw" : "echo";
	type = service_find(l->service);
	if (!type) {
		if (!l->method)
			return wrong("--service: rpcping knows echo and brw; "
				     "for another one, name its --method, too");
		if (bulk || l->delay || l->verify)
			return wrong("--service: of one that rpcping does not "
				     "know, there can be no bulk data, --delay "
				     "or --verify");
		return 0;
	}
	for (unsigned int i = 0; i < type->nprobes; i++) {
		const struct probe *p = &type->probes[i];

		if (!fits(p, l, bulk) ||
		    (l->method && strcmp(p->method, l->method) != 0))
			continue;
		l->probe = p;
		l->method = p->method;
		return 0;
	}
	return no_method(l, type, bulk);
}

static int check_bulk(const struct rpcping_options *o,
		      const struct given *given)
{
	const struct load_conf *l = &o->load;
	uint64_t least = (l->bulk + LNET_MTU - 1) / LNET_MTU;

	if (!given->bulk && (l->segments || l->checksum))
		return wrong("--segments and --checksum are for bulk data");
	if (given->bulk && given->size)
		return wrong("--size is for calls without bulk data");
	if (l->segments && (l->segments < least || l->segments > l->bulk)) {
		fprintf(stderr,
			WHO ": --segments %u: %ju bytes can be cut into %ju to "
			    "%ju messages\n",
			l->segments, (uintmax_t)l->bulk, (uintmax_t)least,
			(uintmax_t)(l->bulk < ULRPC_SEGMENTS_MAX
					    ? l->bulk
					    : ULRPC_SEGMENTS_MAX));
		return OPTION_USAGE;
	}
	return 0;
}

/* As many calls under way as there is memory for: half of the host's if it is
 * not said how many. */
static int complete_inflight(struct rpcping_options *o)
{
	struct load_conf *l = &o->load;
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			  (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t most = memory / (l->bulk ? l->bulk : 1) / o->ntargets;

	if (!l->inflight && l->rate > 0) {
		l->inflight = INFLIGHT_RATE;
		if (l->inflight > most / 2)
			l->inflight = most > 1 ? (uint32_t)(most / 2) : 1;
	} else if (!l->inflight) {
		l->inflight = 1;
	}
	if (l->bulk && l->inflight > most) {
		fprintf(stderr,
			WHO ": --inflight %u: with %ju bytes of bulk data "
			    "each, for %u target%s, that is more than the "
			    "memory of this host, which is enough for %ju\n",
			l->inflight, (uintmax_t)l->bulk, o->ntargets,
			o->ntargets == 1 ? "" : "s", (uintmax_t)most);
		return OPTION_USAGE;
	}
	return 0;
}

static int complete(struct rpcping_options *o, const struct given *given)
{
	struct load_conf *l = &o->load;
	int status;

	if (o->poll && o->node.cpts > 1)
		return wrong("--cpts: with --poll there is one thread, the "
			     "program's own");
	if (l->progress && !l->delay)
		return wrong("--progress is for calls with --delay");
	if (o->json && o->explain)
		return wrong("--json and --explain: one of them");
	status = check_bulk(o, given);
	if (!status)
		status = choose_probe(l, given->bulk);
	if (!status)
		status = complete_inflight(o);
	if (status)
		return status;
	if (!l->time && !l->count)
		l->time = 3000000;
	if (!l->deadline)
		l->deadline = 5000000;
	if (!o->interval)
		o->interval = 1000000;
	if (given->bulk)
		l->size = 0;
	o->live |= isatty(STDERR_FILENO) == 1;
	/* Contents of different runs differ. */
	if (getrandom(&l->seed, sizeof(l->seed), 0) < 0)
		l->seed = (uint64_t)getpid() << 32;
	return -1;
}

static int print(const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return 0;
	perror(WHO ": stdout");
	return 1;
}

int rpcping_options_parse(struct rpcping_options *o, int argc, char **argv)
{
	struct given given = { 0 };
	int option, status;

	*o = (struct rpcping_options){ .load.size = SIZE_DEFAULT,
				       .load.semantics = ULRPC_IDEMPOTENT,
				       .grace = GRACE_DEFAULT };
	node_options_init(&o->node);
	/* It only calls: any number of them share an address. */
	o->node.accept = LNET_ACCEPT_NONE;
	argv[0] = WHO;
	while ((option = getopt_long(argc, argv, NODE_LETTERS "hV", options,
				     NULL)) != -1) {
		if (option == 'h')
			return print(help);
		if (option == 'V')
			return print(WHO " (" PACKAGE_NAME ") " PACKAGE_VERSION
					 "\n");
		status = take_option(o, &given, option, optarg);
		if (status)
			return status;
	}
	status = take_targets(o, argc - optind, argv + optind);
	return status ? status : complete(o, &given);
}

void rpcping_options_free(struct rpcping_options *o)
{
	node_options_free(&o->node);
	free(o->targets);
}
