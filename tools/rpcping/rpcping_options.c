/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpcping.h"
#include "ulnet/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tools/common/option.h"

#define WHO	      "rpcping"
#define INFLIGHT_MAX  65536
#define INFLIGHT_RATE 1024 /* the default of --inflight with --rate */
#define SIZE_DEFAULT  64
#define SIZE_NONE     UINT64_MAX
#define GRACE_DEFAULT 1000000 /* us: the default of --grace */

/* ---- one option ---- */

static int take_bulk(const struct option_at *at)
{
	struct rpcping_options *o = at->object;
	enum ulrpc_bulk_access access = (enum ulrpc_bulk_access)at->row->own;

	if (o->bulk && o->bulk != access)
		return option_wrong(WHO, "--bulk-read and --bulk-write: one of "
					 "them, or two runs");
	o->bulk = access;
	return option_size(at, 1, ULRPC_BULK_MAX, &o->load.bulk);
}

/* Takes --retry POLICY[:MAX]. */
static int take_retry(const struct option_at *at)
{
	struct rpcping_options *o = at->object;
	const char *arg = at->text;
	static const char *const names[] = {
		[ULRPC_BACKOFF_FULL] = "full",
		[ULRPC_BACKOFF_EQUAL] = "equal",
		[ULRPC_BACKOFF_MAD] = "mad",
		[ULRPC_BACKOFF_NONE] = "none",
	};
	struct ulrpc_retry retry = { 0 };
	size_t length = strcspn(arg, ":");
	uint64_t max = ULRPC_RETRIES_ANY;

	for (unsigned int i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == length &&
		    !strncmp(arg, names[i], length))
			retry.policy = (enum ulrpc_backoff)i;
	if (!retry.policy ||
	    (arg[length] &&
	     !number_parse(arg + length + 1, 0, ULRPC_RETRIES_ANY - 1, &max)))
		return option_bad(at, "full, equal, mad and none are expected, "
				      "and the number of retries behind a "
				      "colon");
	retry.max = (uint32_t)max;
	o->retry = retry;
	o->load.retry = &o->retry;
	return 0;
}

static const char *const choices[] = {
	[ULRPC_CHOOSE_LEAST] = "least",
	[ULRPC_CHOOSE_FIRST] = "first",
	[ULRPC_CHOOSE_TURNS] = "turns",
};

/* Takes --replicas CHOICE. */
static int take_replicas(const struct option_at *at)
{
	struct rpcping_options *o = at->object;

	for (unsigned int i = 0; i < sizeof(choices) / sizeof(choices[0]); i++)
		if (!strcmp(at->text, choices[i])) {
			o->load.replicas = true;
			o->load.choice = (enum ulrpc_choice)i;
			return 0;
		}
	return option_bad(at, "least, first and turns are expected");
}

static const char *const semantics[] = {
	[ULRPC_AT_MOST_ONCE] = "at-most-once",
	[ULRPC_IDEMPOTENT] = "idempotent",
	[ULRPC_EXACTLY_ONCE] = "exactly-once",
	NULL,
};

#define AT(field)   offsetof(struct rpcping_options, field)
#define LOAD(field) AT(load.field)

static const struct option_row rows[] = {
	{ .help = "how much:" },
	{ "time", 0, "T",
	  "begin calls for that long (3 s, unless calls are counted)",
	  .kind = OPTION_TIME, LOAD(time), 1 },
	{ "count", 0, "N", "begin that many calls to each target",
	  .kind = OPTION_SIZE, LOAD(count), 1, UINT64_C(1) << 60 },
	{ "warmup", 0, "T", "first make calls for T that do not count",
	  .kind = OPTION_TIME, LOAD(warmup), 1 },
	{ "inflight", 0, "N",
	  "calls under way at once to each target (1; 1024 with --rate)",
	  .kind = OPTION_NUMBER, LOAD(inflight), 1, INFLIGHT_MAX },
	{ "rate", 0, "R",
	  "begin R calls a second, whether others have ended or not",
	  .kind = OPTION_RATE, LOAD(rate), .max = 1000000000 },
	{ "batch", 0, "N", "calls that may travel in one message (256)",
	  .kind = OPTION_NUMBER, LOAD(batch), 1, ULRPC_BATCH_MAX },
	{ "deadline", 0, "T", "deadline of each call (5 s)",
	  .kind = OPTION_TIME, LOAD(deadline), 1 },
	{ "grace", 0, "T",
	  "time for calls under way to end after a signal (1 s)",
	  .kind = OPTION_TIME, AT(grace) },
	{ "retry", 0, "P[:N]",
	  "policy of retries: full (default), equal, mad or none; at most N "
	  "retries",
	  .kind = OPTION_CALL, .take = take_retry },
	{ "wait", 0, NULL,
	  "wait for nodes and services that are not there (the first answer "
	  "decides)",
	  .kind = OPTION_FLAG, LOAD(wait) },
	{ "semantics", 0, "S",
	  "idempotent (default), at-most-once or exactly-once",
	  .kind = OPTION_WORD, LOAD(semantics), .words = semantics },
	{ "replicas", 0, "CHOICE",
	  "targets are servers of one service: a call goes to one of them: "
	  "least (under way), first or turns",
	  .kind = OPTION_CALL, .take = take_replicas },
	{ "hedge", 0, "N",
	  "with --replicas: of 1000 calls that may go to a second server, too "
	  "(0)",
	  .kind = OPTION_NUMBER, LOAD(hedge), 1, 1000 },
	{ "spans", 0, "FILE",
	  "write spans of the calls to a file, or unix:SOCKET",
	  .kind = OPTION_TEXT, AT(spans), 1 },
	{ "spans-share", 0, "N", "of N in a million of the calls (all)",
	  .kind = OPTION_SIZE, AT(spans_share), 1, 1000000 },
	{ .help = "what:" },
	{ "size", 0, "N", "bytes of each request and reply (64)",
	  .kind = OPTION_SIZE, LOAD(size), 0, ULRPC_BODY_MAX },
	{ "bulk-read", 0, "N", "the service writes N bytes to rpcping's memory",
	  .kind = OPTION_CALL, .take = take_bulk, .own = ULRPC_BULK_SINK },
	{ "bulk-write", 0, "N",
	  "the service reads N bytes from rpcping's memory",
	  .kind = OPTION_CALL, .take = take_bulk, .own = ULRPC_BULK_SOURCE },
	{ "segments", 0, "N", "number of messages that bulk data is cut into",
	  .kind = OPTION_NUMBER, LOAD(segments), 1, ULRPC_SEGMENTS_MAX },
	{ "checksum", 0, NULL, "protect bodies and bulk data with CRC32C",
	  .kind = OPTION_FLAG, LOAD(checksum) },
	{ "verify", 0, NULL, "new contents for each call, and check all data",
	  .kind = OPTION_FLAG, LOAD(verify) },
	{ "service", 0, "NAME", "service to call (echo; with bulk data: brw)",
	  .kind = OPTION_TEXT, LOAD(service), 1, ULRPC_SERVICE_NAME - 1 },
	{ "method", 0, "NAME", "method to call", .kind = OPTION_TEXT,
	  LOAD(method), 1, ULRPC_SERVICE_NAME - 1 },
	{ "server", 0, "NAME",
	  "with --keys: call only who proves this name, or one of this pattern",
	  .kind = OPTION_TEXT, LOAD(server), 1 },
	{ "delay", 0, "T", "time that the service waits before it replies",
	  .kind = OPTION_TIME, LOAD(delay), 1 },
	{ "progress", 0, "N",
	  "reports of progress that the service makes meanwhile",
	  .kind = OPTION_NUMBER, LOAD(progress), 1, 999 },
	{ .help = "output:" },
	{ "live", 0, NULL, "print live lines also if stderr is no terminal",
	  .kind = OPTION_FLAG, AT(live) },
	{ "interval", 0, "T", "time between live lines (1 s)",
	  .kind = OPTION_TIME, AT(interval), 1 },
	{ "explain", 0, NULL, "report where the time of calls was spent",
	  .kind = OPTION_FLAG, LOAD(explain) },
	{ "json", 0, NULL,
	  "the sum of all targets, as one JSON object; if explained, each "
	  "target, too",
	  .kind = OPTION_FLAG, AT(json) },
	{ .help = "the node that calls:" },
	{ "poll", 0, NULL,
	  "run the node on the program's thread, and never sleep",
	  .kind = OPTION_FLAG, AT(poll) },
	{ 0 },
};

/* ---- targets ---- */

static int take_target(struct target *t, const char *text)
{
	struct ulnet_text_error err;
	struct ulnet_target target;

	*t = (struct target){ .text = text };
	if (lnet_target_parse(text, &target, &err))
		return option_wrong(
			WHO,
			"%s: '%s': %s; a target is NIDs, as 10.0.0.1@tcp, or a "
			"name, as host, host:port or srv:///_rpc._tcp.name",
			text, text + err.offset, err.what);
	t->is_name = target.is_name;
	t->nnids = target.nnids;
	t->pid = target.pid;
	memcpy(t->nids, target.nids, sizeof(target.nids));
	return 0;
}

static int take_targets(struct rpcping_options *o, int n, char **args)
{
	int status = 0;

	o->targets = calloc((size_t)n, sizeof(*o->targets));
	if (!o->targets)
		return option_wrong(WHO, "%s", strerror(ENOMEM));
	for (int i = 0; !status && i < n; i++)
		status = take_target(&o->targets[o->ntargets++], args[i]);
	return status;
}

/* Makes one text of those of all targets, with @between between two. */
static char *join(const struct rpcping_options *o, char between)
{
	size_t length = 1;
	char *all, *at;

	for (unsigned int i = 0; i < o->ntargets; i++)
		length += strlen(o->targets[i].text) + 1;
	at = all = malloc(length);
	for (unsigned int i = 0; all && i < o->ntargets; i++) {
		if (i)
			*at++ = between;
		at = stpcpy(at, o->targets[i].text);
	}
	return all;
}

/* Makes the first target one that has the NIDs of all: one of each server. */
static int join_nids(struct rpcping_options *o)
{
	struct target *all = &o->targets[0];

	if (o->ntargets > LNET_ADDRESSES_MAX)
		return option_wrong(WHO, "--replicas: at most %d servers",
				    LNET_ADDRESSES_MAX);
	all->nnids = 1; /* LNet discovers the others that a server has */
	for (unsigned int i = 1; i < o->ntargets; i++) {
		const struct target *t = &o->targets[i];

		if (t->pid != all->pid)
			return option_wrong(WHO,
					    "--replicas: %s: the servers have "
					    "different process ids",
					    t->text);
		all->nids[all->nnids++] = t->nids[0];
	}
	o->joined = join(o, ' ');
	return 0;
}

/* Makes the first target a name that is a list of all. */
static int join_names(struct rpcping_options *o)
{
	for (unsigned int i = 0; i < o->ntargets; i++)
		if (strstr(o->targets[i].text, "://"))
			return option_wrong(
				WHO,
				"--replicas: %s: beside a target with a "
				"scheme there is no other one",
				o->targets[i].text);
	o->joined = join(o, ',');
	return o->joined ? take_target(&o->targets[0], o->joined) : 0;
}

/* With --replicas: makes all targets one. */
static int join_targets(struct rpcping_options *o)
{
	bool names = false;
	int status;

	for (unsigned int i = 0; i < o->ntargets; i++)
		names |= o->targets[i].is_name;
	if (o->ntargets == 1 && names)
		return 0;
	status = names ? join_names(o) : join_nids(o);
	if (!status && !o->joined)
		status = option_wrong(WHO, "%s", strerror(ENOMEM));
	if (status)
		return status;
	o->targets[0].text = o->joined;
	o->ntargets = 1;
	return 0;
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
			return option_wrong(
				WHO, "--service: rpcping knows echo and brw; "
				     "for another one, name its --method, too");
		if (bulk || l->delay || l->verify)
			return option_wrong(
				WHO, "--service: of one that rpcping does not "
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

static int check_bulk(const struct rpcping_options *o)
{
	const struct load_conf *l = &o->load;
	uint64_t least = (l->bulk + LNET_MTU - 1) / LNET_MTU;

	if (!o->bulk && l->segments)
		return option_wrong(WHO, "--segments is for bulk data");
	if (o->bulk && l->size != SIZE_NONE)
		return option_wrong(WHO,
				    "--size is for calls without bulk data");
	if (l->segments && (l->segments < least || l->segments > l->bulk))
		return option_wrong(
			WHO,
			"--segments %u: %ju bytes can be cut into %ju to %ju "
			"messages",
			l->segments, (uintmax_t)l->bulk, (uintmax_t)least,
			(uintmax_t)(l->bulk < ULRPC_SEGMENTS_MAX
					    ? l->bulk
					    : ULRPC_SEGMENTS_MAX));
	return 0;
}

/* Completes --inflight, and checks that there is memory for the bulk data of
 * all calls under way. The default uses at most half of the host's memory. */
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
	if (l->bulk && l->inflight > most)
		return option_wrong(
			WHO,
			"--inflight %u: with %ju bytes of bulk data each, for "
			"%u target%s, that is more than the memory of this "
			"host, which is enough for %ju",
			l->inflight, (uintmax_t)l->bulk, o->ntargets,
			o->ntargets == 1 ? "" : "s", (uintmax_t)most);
	return 0;
}

static int rpcping_options_complete(struct rpcping_options *o)
{
	struct load_conf *l = &o->load;
	int status;

	if (o->poll && o->node.cpts > 1)
		return option_wrong(
			WHO, "--cpts: with --poll there is one thread, the "
			     "program's own");
	if (l->progress && !l->delay)
		return option_wrong(WHO,
				    "--progress is for calls with --delay");
	if (l->hedge && !l->replicas)
		return option_wrong(WHO, "--hedge is for --replicas");
	status = check_bulk(o);
	if (!status)
		status = choose_probe(l, o->bulk);
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
	if (l->size == SIZE_NONE)
		l->size = o->bulk ? 0 : SIZE_DEFAULT;
	o->live |= isatty(STDERR_FILENO) == 1;
	/* Different runs send different contents. */
	if (getrandom(&l->seed, sizeof(l->seed), 0) < 0)
		l->seed = (uint64_t)getpid() << 32;
	return 0;
}

int rpcping_options_parse(struct rpcping_options *o, int argc, char **argv)
{
	struct option_set set = {
		.who = WHO,
		.see = WHO " --help",
		.head = "usage: rpcping [OPTION]... TARGET...\n"
			"Calls services of nodes, and measures them. Several "
			"NIDs of one node are\nseparated by commas. Sizes take "
			"k, M and G; times, in seconds, us, ms, m and h.\n\n",
		.tail = "\nWithout --net and --config it uses the interfaces "
			"by which this host reaches the\ntargets. Without "
			"--accept it does not listen, and may share its "
			"addresses with\nothers.\n"
			"Exit status: 0: all calls were answered; 1: a call "
			"was lost, or there was no\ncall; 2: the command line "
			"is wrong.\n",
		.parts = { { rows, o },
			   { keys_rows, &o->keys },
			   { munge_show_rows, &o->keys },
			   { flavour_rows, &o->keys },
			   { node_net_rows, &o->node },
			   { node_socket_rows, &o->node },
			   { node_rows, &o->node },
			   { node_log_rows, &o->node },
			   { option_rows, NULL } },
		.words = "TARGET...",
		.min = 1,
		.max = -1,
	};
	int status;

	*o = (struct rpcping_options){ .load.size = SIZE_NONE,
				       .load.semantics = ULRPC_IDEMPOTENT,
				       .grace = GRACE_DEFAULT };
	node_options_init(&o->node);
	/* rpcping only calls, so any number of them can share an address. */
	o->node.accept = LNET_ACCEPT_NONE;
	status = options_parse(&set, argc, argv);
	if (!status)
		status = keys_check(&o->keys, WHO);
	o->load.flavour = (enum ulrpc_flavour)o->keys.flavour;
	if (!status && o->load.server && !o->keys.folder)
		status = option_wrong(WHO, "--server %s: --keys is missing",
				      o->load.server);
	if (!status)
		status = take_targets(o, set.nargs, set.args);
	if (!status && o->load.replicas)
		status = join_targets(o);
	return status ? status : rpcping_options_complete(o);
}

void rpcping_options_free(struct rpcping_options *o)
{
	node_options_free(&o->node);
	keys_options_free(&o->keys);
	free(o->targets);
	free(o->joined);
}
