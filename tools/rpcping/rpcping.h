/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpcping(1): histograms of times, a load of calls to one target, the command
 * line, and the reports.
 */
#ifndef TOOLS_RPCPING_H
#define TOOLS_RPCPING_H

#include <stdbool.h>

#include <ulnet/rpc.h>

#include "services/services.h"
#include "tools/common/node.h"

/* ---- histograms of times ---- */

/* Times in log-linear buckets, 64 to each power of two, so that a time that is
 * read is wrong by less than 1 %. */
#define HISTOGRAM_BITS 6
#define HISTOGRAM_TOP  44 /* bits of the longest time, 4.8 hours */
#define HISTOGRAM_SIZE ((HISTOGRAM_TOP - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

/* Zeroed memory is an empty histogram. */
struct histogram {
	uint64_t n;
	uint64_t min, max; /* exact; ns */
	uint64_t sum;
	uint64_t count[HISTOGRAM_SIZE];
};

/* The bucket of @ns, which is below 2 to the power of HISTOGRAM_TOP. */
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
/* Sets @to to what was added from @before to @now, but min and max to those of
 * @now. */
void histogram_since(struct histogram *to, const struct histogram *now,
		     const struct histogram *before);
/* The time in ns that a share @q (0 to 1) of the times does not exceed. 0 when
 * empty. */
uint64_t histogram_quantile(const struct histogram *h, double q);

/* ---- a load: rpcping_load.c ---- */

/*
 * Calls to one target, one after the other or at fixed times, several under
 * way. All of a load happens on the thread of the CPT that owns the target. A
 * call costs no system call and no reading of the clock: times are those of the
 * turns of the CPT.
 */
struct load;

/* All pointers but probe are borrowed until load_open() returns. */
struct load_conf {
	const struct ulnet_nid *nids; /* of the target */
	unsigned int nnids;
	uint32_t pid; /* 0: LNet's usual one */
	const char *service;
	const char *method;
	/* How to call the method, constant; NULL: with @size bytes, and replies
	 * are not checked. */
	const struct probe *probe;
	uint64_t size;	   /* bytes of payload in the bodies */
	uint64_t delay;	   /* us, for the service */
	uint32_t progress; /* reports of the service meanwhile */
	uint64_t bulk;	   /* bytes; 0: none; the probe says which way */
	uint32_t segments; /* of the bulk; 0: as few as possible */
	bool checksum;	   /* of the bulk */
	bool verify;	   /* new contents for each call, which are checked */
	bool explain;	   /* fill load_stats.explain, too */
	uint32_t inflight; /* calls under way at most; not 0 */
	uint32_t batch;	   /* calls in one message at most; 0: default */
	uint64_t count;	   /* of calls; 0: no limit */
	uint64_t time;	   /* us; 0: no limit */
	uint64_t warmup;   /* us before time, in which calls do not count */
	double rate; /* calls/s; 0: a call begins when another has ended */
	uint64_t deadline; /* us, of each call */
	enum ulrpc_semantics semantics;
	const struct ulrpc_retry *retry; /* NULL: the default */
	uint64_t seed;
	/* Called once, in a turn of the CPT, when no call is under way any
	 * more, and no memory in use. */
	void (*ended)(void *arg);
	void *arg;
};

/* Reasons for a call to be lost: enum ulrpc_cause, and these. */
enum load_loss_kind {
	LOAD_WRONG = ULRPC_CAUSE_COUNT, /* an answer, but a wrong one */
	LOAD_NOT_MADE,			/* ulrpc_call() refused it */
	LOAD_LOSSES,
};

struct load_loss {
	uint64_t n;
	struct ulrpc_outcome first; /* of the first call; NOT_MADE: status */
	char what[96];		    /* WRONG: what is, in words */
};

/* The times in struct ulrpc_outcome. */
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

struct load_explain {
	struct histogram stage[LOAD_STAGES];
	uint64_t attempts_max; /* without queries */
	uint64_t paths;
	struct load_rail {
		struct ulnet_nid local, target;
		uint64_t n;
	} rail[LOAD_RAILS]; /* the last one has all further rails */
	unsigned int nrails;
};

/* The counts in struct ulrpc_outcome, but attempts without queries. */
enum load_went {
	LOAD_ATTEMPTS,
	LOAD_RETRIES,
	LOAD_QUERIES,
	LOAD_EXTENSIONS,
	LOAD_REFUSALS,
	LOAD_WENT,
};

struct load_stats {
	uint64_t answered; /* calls with the right answer */
	uint64_t lost;
	uint64_t resent; /* attempts beyond the first, without queries */
	uint64_t went[LOAD_WENT];
	uint64_t bytes;	 /* bulk, or else bodies both ways, of those answered */
	uint64_t behind; /* calls that were due, but not begun; with a rate */
	uint64_t inflight;	  /* now */
	uint64_t first, last;	  /* ns: begin, and the last end of a call */
	struct histogram latency; /* of those answered, from when they were
				   * due */
	struct load_loss loss[LOAD_LOSSES];
	struct load_explain explain;
};

void load_stats_merge(struct load_stats *to, const struct load_stats *from);

/* An error of ulrpc_client_open(); -ENOMEM; -EMSGSIZE: the size is more than a
 * body may have. */
int load_open(struct ulrpc *rpc, const struct load_conf *conf,
	      struct load **load_p);
/* To be called once. Any thread. */
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
/* The load was not started, or has ended. NULL is fine. */
void load_free(struct load *l);

/* ---- the command line: rpcping_options.c ---- */

/* A node to call. */
struct target {
	const char *text; /* as given */
	struct ulnet_nid nids[ULRPC_NIDS_MAX];
	unsigned int nnids;
	uint32_t pid; /* 0: the usual one */
};

struct rpcping_options {
	struct node_options node;
	struct load_conf load;	  /* of all targets, without target and ended */
	struct ulrpc_retry retry; /* load.retry points here, or is NULL */
	struct target *targets;
	unsigned int ntargets;
	uint64_t interval; /* us between live lines */
	uint64_t grace;	   /* us for calls under way when a signal comes */
	enum ulrpc_bulk_access bulk; /* 0: none */
	bool live, poll, json;
};

/* 0: @o is set; OPTION_DONE; else the exit status. The caller owes
 * rpcping_options_free() in any case. */
int rpcping_options_parse(struct rpcping_options *o, int argc, char **argv);
void rpcping_options_free(struct rpcping_options *o);

/* ---- reports: rpcping_report.c ---- */

/* Prints to stderr "2.0 s: 411522 calls/s, ...": what happened from @before to
 * @all, at @now ns. On a terminal the next line overwrites this one. @change:
 * memory for the difference. */
void report_live(const struct load_stats *all, const struct load_stats *before,
		 uint64_t now, struct histogram *change);
/* Erases the line of report_live() from a terminal. */
void report_live_end(void);

/* Prints to stderr each reason for which calls to @target were lost, once: when
 * there are none yet in @before. @port: where the target should listen. */
void report_losses(const char *target, unsigned int port,
		   const struct load_stats *now,
		   const struct load_stats *before);

/* These print to stdout. */
void report_text(const struct rpcping_options *o, const char *title,
		 const struct load_stats *stats);
void report_json(const struct load_stats *stats, struct lnet *node);
/* The time in each stage, and the counters of @rpc. Not in a turn. */
void report_explain(const struct load_stats *stats, struct ulrpc *rpc);

#endif
