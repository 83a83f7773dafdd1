/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether and when calls are sent again. Two things decide: a rule, which is a
 * law of back-offs (base/backoff.h) of the caller, of the client, or forced on
 * all; and the budget of the connection, from which each repetition is paid. It
 * earns a tenth of a repetition with each call, and ten in a second, so that
 * repetitions add little to the load of a slow server.
 *
 * A call that was certainly not delivered is sent again regardless of both.
 *
 * Owner: the CPT of the client.
 */
#ifndef RPC_CLIENT_RETRY_H
#define RPC_CLIENT_RETRY_H

#include "base/backoff.h"
#include "ulnet/rpc.h"

struct retry_rule {
	struct backoff_law law; /* base 0: retry_base() of the attempt */
	bool forced;		/* the policy is not the caller's */
	bool tell_overloaded;	/* a call refused so is not sent again */
};

/* 0, or -EINVAL: no such policy. NULL is fine. */
int retry_check(const struct ulrpc_retry *r) must_check;

/* Sets *@force to the policy that the administrator has put into the
 * environment, if any. 0; -EINVAL: there is no such policy. */
int retry_force(enum ulrpc_backoff *force) must_check;

/* @r: NULL: the default. @force: ULRPC_BACKOFF_DEFAULT: none. */
void retry_rule_init(struct retry_rule *rule, const struct ulrpc_retry *r,
		     enum ulrpc_backoff force);

/* ---- the budget ---- */

struct retry_budget {
	uint64_t spent; /* and not earned since, in thousandths of a retry */
	uint64_t calls; /* sent, when spent was last computed */
	uint64_t at;	/* ns: when that was */
};

/* A connection begins: nothing is spent. @calls: sent so far. */
void budget_begin(struct retry_budget *b, uint64_t calls, uint64_t now);
/* Pays for one repetition, and returns in how many ns from now the budget will
 * have earned it. @burst: repetitions that may be paid in advance: as many as
 * calls can be lost at once. @calls: sent so far, without repetitions. */
uint64_t budget_take(struct retry_budget *b, uint32_t burst, uint64_t calls,
		     uint64_t now);
/* Takes back the last budget_take(): the repetition is not made. */
void budget_give_back(struct retry_budget *b);

/* ---- the next attempt ---- */

/* An attempt of a call has failed. */
struct retry_case {
	const struct retry_rule *rule;
	struct retry_budget *budget;
	uint32_t burst;
	uint64_t calls;	   /* for budget_take() */
	uint32_t retries;  /* so far */
	uint64_t now;	   /* ns */
	uint64_t began;	   /* ns: the first attempt */
	uint64_t deadline; /* ns, of the call; TIME_NEVER */
	uint64_t timeout;  /* ns that an attempt has */
	uint64_t rtt;	   /* ns: nearly all round trips are shorter */
	uint64_t answer;   /* ns: the mean round trip; 0: not known */
	uint64_t least;	   /* ns to wait, as the server wants */
	bool paused;	   /* a pause has been made already */
	uint64_t random;   /* 64 bits */
};

/* How many ns to wait if a server asks for @us: at most 30 s. */
uint64_t retry_after_ns(uint64_t us);
/* b, ns: the range of the first pause of attempts that have @timeout. */
uint64_t retry_base(uint64_t timeout, uint64_t rtt);
/* X(@n), ns: the pause between the end of an attempt that had @timeout and was
 * not answered, and retry @n. */
uint64_t retry_pause(const struct retry_rule *rule, uint32_t n,
		     uint64_t timeout, uint64_t rtt, uint64_t random);
/* BACKOFF_RETRY: another attempt is to be made at *@at_p, ns, and was paid
 * for. */
enum backoff_verdict retry_next(const struct retry_case *c, uint64_t *at_p);

#endif
