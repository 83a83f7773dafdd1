/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls to one target, one after the other or at fixed times, many under way:
 * what rpcping(1) does, and bench/rpc. All of a load happens on the thread of
 * the CPT that owns the target. A call costs no system call and no look at the
 * clock of its own: times are those of the CPT's turns.
 */
#ifndef TOOLS_RPCPING_LOAD_H
#define TOOLS_RPCPING_LOAD_H

#include <ulnet/rpc.h>

#include "services/services.h"

/* ---- histograms of times ---- */

/* Counts times in buckets whose width grows with the time: 64 to each power of
 * two, so that what is read is wrong by less than 1 %. */
#define HISTOGRAM_BITS 6
#define HISTOGRAM_TOP  44 /* bits; what is longer, 4.8 hours, is that long */
#define HISTOGRAM_SIZE ((HISTOGRAM_TOP - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

/* All zero is empty. */
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
/* What a histogram has counted between two moments; min and max are those of
 * @now. */
void histogram_since(struct histogram *to, const struct histogram *now,
		     const struct histogram *before);
/* The time that a share @q (0 to 1) of the times does not exceed, ns: the
 * middle of its bucket, but not beyond min and max. 0 without any. */
uint64_t histogram_quantile(const struct histogram *h, double q);

struct load; /* calls to one target */

/* ---- what is to be done ---- */

struct load_conf {
	const struct ulnet_nid
		*nids;	    /* of the target; borrowed, as all of it, */
	unsigned int nnids; /* until load_open() returns */
	uint32_t pid;	    /* 0: LNet's usual one */
	const char *service;
	const char *method;
	/* How to call it, constant; NULL: @size bytes, and the reply is not
	 * looked at. */
	const struct probe *probe;
	uint64_t size;	   /* bytes of payload in the bodies */
	uint64_t delay;	   /* us, for the service */
	uint32_t progress; /* reports of the service meanwhile */
	uint64_t bulk;	   /* bytes; 0: none; the probe says which way */
	uint32_t segments; /* that it is cut into; 0: as few as possible */
	bool checksum;	   /* of the bulk */
	bool verify;	   /* contents are new for each call, and looked at */
	bool explain;	   /* count what is in load_stats.explain, too */
	uint32_t inflight; /* calls under way at most; not 0 */
	uint32_t batch;	   /* that travel in one message; 0: default */
	uint64_t count;	   /* of calls; 0: no limit */
	uint64_t time;	   /* us; 0: no limit */
	uint64_t warmup;   /* us before, in which calls do not count */
	double rate; /* calls/s, begun whether others have ended or not; 0: each
		      * call begins when one has ended */
	uint64_t deadline; /* us, of each call */
	enum ulrpc_semantics semantics;
	const struct ulrpc_retry *retry; /* NULL: the default */
	uint64_t seed;
	void (*ended)(
		void *arg); /* once, in a turn of the CPT: there is no call
				   * under way, and no memory in use */
	void *arg;
};

/* ---- what became of it ---- */

/* Reasons for a call to be lost: enum ulrpc_cause, and these. */
enum load_loss_kind {
	LOAD_WRONG = ULRPC_CAUSE_COUNT, /* an answer, but a wrong one */
	LOAD_NOT_MADE,			/* ulrpc_call() refused it */
	LOAD_LOSSES,
};

struct load_loss {
	uint64_t n;
	struct ulrpc_outcome first; /* of the first one; NOT_MADE: its status */
	char what[96];		    /* WRONG: in words */
};

/* Times of a call, as struct ulrpc_outcome has them. */
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
	} rail[LOAD_RAILS]; /* as many as there are; the last one is all
			     * others when there are more */
	unsigned int nrails;
};

/* As in struct ulrpc_outcome, but that attempts are those that carried calls:
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
	uint64_t answered; /* rightly */
	uint64_t lost;
	uint64_t resent; /* attempts beyond the first, without queries */
	uint64_t went[LOAD_WENT]; /* how calls went, added up */
	uint64_t bytes;	 /* bulk, or else bodies both ways, of those answered */
	uint64_t behind; /* with a rate: due, but not begun yet or at the end */
	uint64_t inflight;	  /* now */
	uint64_t first, last;	  /* ns: begin, and the last end of a call */
	struct histogram latency; /* of those answered, from when they were to
				   * begin */
	struct load_loss loss[LOAD_LOSSES];
	struct load_explain explain;
};

void load_stats_merge(struct load_stats *to, const struct load_stats *from);

/* ---- the load ---- */

/* -errno of ulrpc_client_open(); -ENOMEM; -EMSGSIZE: more than a body may
 * have. */
int load_open(struct ulrpc *rpc, const struct load_conf *conf,
	      struct load **load_p);
/* To be called once. Any thread. */
void load_start(struct load *l);
/* Begins no more calls. The load ends when those under way have ended. Not in a
 * turn. */
void load_stop(struct load *l);
/* Cancels the calls that are under way, too, which are lost by that. Not in a
 * turn. */
void load_cancel(struct load *l);
/* What has been counted up to now; @stats, which is large, is filled. Any
 * thread but those of CPTs in a turn. */
void load_stats(struct load *l, struct load_stats *stats);
/* For a load that was not started, or has ended. NULL is fine. */
void load_free(struct load *l);

#endif
