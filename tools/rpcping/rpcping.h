/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpcping(1): histograms of times, a load of calls to one target, the command
 * line, and the reports.
 */
#ifndef TOOLS_RPCPING_H
#define TOOLS_RPCPING_H

#include <stdbool.h>

#include <ulnet/replicas.h>

#include "services/services.h"
#include "tools/common/keys.h"
#include "tools/common/node.h"
#include "ulnet/names.h"

/* ---- histograms of times ---- */

/* Times in log-linear buckets, 64 for each power of two, so that a time which
 * is read from a histogram is wrong by less than 1 %. */
#define HISTOGRAM_BITS 6
/* bits of the longest time in ns, which is 4.8 hours */
#define HISTOGRAM_TOP  44
#define HISTOGRAM_SIZE ((HISTOGRAM_TOP - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

/* Zeroed memory is an empty histogram. */
struct histogram {
	uint64_t n;
	uint64_t min, max; /* ns, exact */
	uint64_t sum;
	uint64_t count[HISTOGRAM_SIZE];
};

/* Returns the bucket of @ns, which has to be less than 2 to the power of
 * HISTOGRAM_TOP. */
static inline unsigned int histogram_index(uint64_t ns)
{
	unsigned int shift;

	if (ns < 1u << HISTOGRAM_BITS)
		return (unsigned int)ns;
	shift = 63 - HISTOGRAM_BITS - (unsigned int)__builtin_clzll(ns);
	return (shift << HISTOGRAM_BITS) + (unsigned int)(ns >> shift);
}

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
	if (ns >> HISTOGRAM_TOP)
		ns = (UINT64_C(1) << HISTOGRAM_TOP) - 1;
	if (!h->n++ || ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->sum += ns;
	h->count[histogram_index(ns)]++;
}

void histogram_merge(struct histogram *to, const struct histogram *from);
/* Sets @to to the times that were added between @before and @now. Its min and
 * max are those of @now. */
void histogram_since(struct histogram *to, const struct histogram *now,
		     const struct histogram *before);
/* Returns the time in ns that a share @q (0 to 1) of all times does not exceed;
 * 0: @h is empty. */
uint64_t histogram_quantile(const struct histogram *h, double q);

/* ---- a load: rpcping_load.c ---- */

/*
 * A load makes calls to one target: at a fixed rate, or each call after another
 * has ended, with several calls under way at a time. It runs on the thread of
 * the CPT that owns the target. A call costs no system call, and does not read
 * the clock: times are those of the turns of the CPT.
 */
struct load;

/* target, nids, service, server, method and retry are borrowed until
 * load_open() returns; probe is constant. */
struct load_conf {
	const char *target;	      /* a name; NULL: @nids has NIDs instead */
	const struct ulnet_nid *nids; /* NIDs of the target */
	unsigned int nnids;
	/* The target stands for several servers, @nids for one each, and each
	 * call goes to one of them: as @choice and @hedge say. */
	bool replicas;
	enum ulrpc_choice choice;
	unsigned int hedge; /* of 1000 calls */
	uint32_t pid; /* pid of the target; 0: LNet's usual one */
	const char *service;
	/* pattern of the name that the server has to prove; NULL: none */
	const char *server;
	enum ulrpc_flavour flavour; /* the lowest flavour that calls may have */
	const char *method;
	/* How to call the method. NULL: the body has @size bytes of 0, and
	 * replies are not checked. */
	const struct probe *probe;
	uint64_t size; /* bytes of payload in each body */
	/* us that the service is to wait before it replies */
	uint64_t delay;
	/* number of reports of progress that the service makes meanwhile */
	uint32_t progress;
	/* bytes of bulk data; 0: none; the probe says which way they go */
	uint64_t bulk;
	/* number of segments that the bulk is cut into; 0: as few as possible
	 */
	uint32_t segments;
	bool checksum; /* the bulk has checksums */
	/* each call has new contents, and they are checked */
	bool verify;
	bool explain;	   /* load_stats.explain is filled in, too */
	uint32_t inflight; /* the most calls under way; not 0 */
	/* the most calls in one message; 0: the library's default */
	uint32_t batch;
	uint64_t count; /* number of calls; 0: no limit */
	uint64_t time;	/* us in which calls begin; 0: no limit */
	/* us, before time begins, in which calls are not counted */
	uint64_t warmup;
	double rate; /* calls/s; 0: a call begins when another has ended */
	uint64_t deadline; /* us that each call may take */
	enum ulrpc_semantics semantics;
	/* Calls wait for a server, or for the service. If not, the load ends
	 * when the first answers say that there is none; once a call was
	 * answered, calls wait in any case. */
	bool wait;
	/* the retry policy; NULL: the library's default */
	const struct ulrpc_retry *retry;
	uint64_t seed;
	/* Called once, in a turn of the CPT, when the load has ended: no call
	 * is under way any more, and no memory is in use. */
	void (*ended)(void *arg);
	void *arg;
};

/* Reasons for which calls are lost: the values of enum ulrpc_cause, and these.
 */
enum load_loss_kind {
	/* there was an answer, but it was wrong */
	LOAD_WRONG = ULRPC_CAUSE_COUNT,
	LOAD_NOT_MADE, /* ulrpc_call() refused it */
	LOAD_LOSSES,
};

struct load_loss {
	uint64_t n;
	/* with load_conf.replicas: where the first one was; LNET_NID_ANY:
	 * nowhere */
	struct ulnet_nid server;
	/* outcome of the first call that was lost; if that call was not made,
	 * only its status */
	struct ulrpc_outcome first;
	char what[96]; /* if the answer was wrong: what is wrong */
};

/* The stages of a call, whose times struct ulrpc_outcome has. */
enum load_stage {
	LOAD_CONNECTING,
	LOAD_WINDOW,
	LOAD_WIRE,
	LOAD_THROTTLED,
	LOAD_SERVER_QUEUE,
	LOAD_SERVICE,
	LOAD_FETCH,
	LOAD_STAGES,
};

#define LOAD_RAILS 16

#define LOAD_SERVERS ULRPC_REPLICAS_MAX

/* What calls of a load with load_conf.replicas have done at a server. */
struct load_server {
	struct ulnet_nid nid;
	uint64_t answered, lost;
	/* ns: latencies of the answered ones: their sum, and the longest */
	uint64_t sum, max;
};

struct load_explain {
	struct histogram stage[LOAD_STAGES];
	/* the most attempts of a call, without queries */
	uint64_t attempts_max;
	uint64_t paths;
	struct load_rail {
		struct ulnet_nid local, target;
		uint64_t n;
		/* by rail; the last entry also counts all further rails */
	} rail[LOAD_RAILS];
	unsigned int nrails;
};

/* The counts of struct ulrpc_outcome that are added up. Attempts are counted
 * without queries. */
enum load_went {
	LOAD_ATTEMPTS,
	LOAD_RETRIES,
	LOAD_QUERIES,
	LOAD_EXTENSIONS,
	LOAD_REFUSALS,
	LOAD_WENT,
};

struct load_stats {
	uint64_t answered; /* number of calls with the right answer */
	uint64_t lost;
	/* number of attempts after the first one, without queries */
	uint64_t resent;
	uint64_t went[LOAD_WENT];
	/* bytes that answered calls have moved: of bulk or, without bulk, of
	 * bodies both ways */
	uint64_t bytes;
	/* with a rate: number of calls that were due, but were not begun */
	uint64_t behind;
	uint64_t inflight; /* number of calls that are under way now */
	/* ns: when counting began, and when a call last ended */
	uint64_t first, last;
	/* with load_conf.replicas: by server, in the order in which they first
	 * ended a call; the last entry also counts all further servers. How
	 * often calls went on to another server, and how many were hedged */
	struct load_server server[LOAD_SERVERS];
	unsigned int nservers;
	uint64_t moves, hedged;
	/* latencies of answered calls, from the time at which each was due */
	struct histogram latency;
	struct load_loss loss[LOAD_LOSSES];
	struct load_explain explain;
};

void load_stats_merge(struct load_stats *to, const struct load_stats *from);

/* Makes a load, which does nothing before load_start(). Returns 0; an error of
 * ulrpc_client_open(); -ENOMEM; -EMSGSIZE: the size is more than a body may
 * have. */
int load_open(struct ulrpc *rpc, const struct load_conf *conf,
	      struct load **load_p);
/* Starts the load. To be called once. Any thread. */
void load_start(struct load *l);
/* Begins no more calls. The load ends when those under way have ended. Not in a
 * turn. */
void load_stop(struct load *l);
/* As load_stop(), and cancels the calls under way, which count as lost. Not in
 * a turn. */
void load_cancel(struct load *l);
/* Sets @stats, which is large, to what has been counted up to now. Not in a
 * turn. */
void load_stats(struct load *l, struct load_stats *stats);
/* Frees @l, which was not started, or has ended. @l may be NULL. */
void load_free(struct load *l);

/* ---- the command line: rpcping_options.c ---- */

/* A node to call. */
struct target {
	const char *text; /* the target as the user has given it */
	bool is_name;	  /* the text is a name, not a list of NIDs */
	/* of a name: the NIDs that were found before the calls began */
	struct ulnet_nid nids[LNET_ADDRESSES_MAX];
	unsigned int nnids;
	uint32_t pid; /* pid of the target; 0: LNet's usual one */
};

struct rpcping_options {
	struct node_options node;
	struct keys_options keys;
	/* configuration of all loads; nids, pid and ended are not set */
	struct load_conf load;
	struct ulrpc_retry retry; /* load.retry points here, or is NULL */
	struct target *targets;	  /* with load.replicas, one for all */
	unsigned int ntargets;
	char *joined; /* text of that one, if several were given; else NULL */
	uint64_t interval; /* us between live lines */
	/* us that calls under way get after a signal, to end */
	uint64_t grace;
	/* how the method uses bulk; 0: it has none */
	enum ulrpc_bulk_access bulk;
	bool live, poll, json;
	const char *spans; /* path; NULL: none are wanted */
	uint64_t spans_share;
};

/* Reads the command line. Returns 0: @o is filled in; OPTION_DONE: all is done;
 * else the exit status. The caller calls rpcping_options_free() in any case. */
int rpcping_options_parse(struct rpcping_options *o, int argc, char **argv);
void rpcping_options_free(struct rpcping_options *o);

/* ---- reports: rpcping_report.c ---- */

/* Prints to stderr a line like "2.0 s: 411522 calls/s, ...": what happened from
 * @before to @all, at @now ns. On a terminal the next line overwrites this one.
 * @change: memory for the difference of the histograms. */
void report_live(const struct load_stats *all, const struct load_stats *before,
		 uint64_t now, struct histogram *change);
/* Erases the line of report_live() from a terminal. */
void report_live_end(void);

/* Prints to stderr each reason for which calls to @target were lost in @now,
 * but none in @before: so each is printed once. @way: by which interface they
 * went out, or "". @port: the port on which the target should listen. @keys:
 * calls are made with keys. */
void report_losses(const char *target, const char *way, unsigned int port,
		   bool keys, const struct load_stats *now,
		   const struct load_stats *before);

/* Print to stdout. */
void report_text(const struct rpcping_options *o, const char *title,
		 const struct load_stats *stats);
/* Prints the sum of all loads, which is behind those of all targets, in @stats.
 * With load.explain, also what report_explain() prints, for each target. */
void report_json(const struct rpcping_options *o,
		 const struct load_stats *stats, struct ulrpc *rpc);
/* Prints the time in each stage, and the counters of @rpc. Not in a turn. */
void report_explain(const struct load_stats *stats, struct ulrpc *rpc);

#endif
