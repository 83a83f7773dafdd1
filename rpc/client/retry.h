/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether and when calls are sent again. Two things decide that. One is a rule,
 * a law of back-offs (base/backoff.h): the caller's, the client's, or one that
 * is forced on all. The other is the budget of a connection, from which each
 * repetition of a call is paid. So repetitions add little to the load of a
 * server that is slow already: a tenth of the calls, and ten in a second.
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

/* 0, or -EINVAL if there is something wrong with it. NULL is fine. */
int retry_check(const struct ulrpc_retry *r) must_check;

/* Sets *@force to the policy that the administrator has put into the
 * environment, if any: it goes before the program's. 0, or -EINVAL if there is
 * no such policy. */
int retry_force(enum ulrpc_backoff *force) must_check;

/* @r: NULL stands for the default. @force: ULRPC_BACKOFF_DEFAULT: nothing. */
void retry_rule_init(struct retry_rule *rule, const struct ulrpc_retry *r,
		     enum ulrpc_backoff force);

/* ---- the budget ---- */

struct retry_budget {
	uint64_t spent; /* and not earned since, in thousandths of a retry */
	uint64_t calls; /* sent, when spent was brought up to date */
	uint64_t at;	/* ns: when that was */
};

/* The connection is new: nothing is spent. @calls: sent so far. */
void budget_begin(struct retry_budget *b, uint64_t calls, uint64_t now);
/* Pays for one repetition, and returns in how many ns from now the budget has
 * earned it. @burst: how many can be paid at once, which is how many calls can
 * be lost at once. @calls: sent so far, without repetitions. */
uint64_t budget_take(struct retry_budget *b, uint32_t burst, uint64_t calls,
		     uint64_t now);
/* Takes back the last budget_take(): the repetition is not made. */
void budget_give_back(struct retry_budget *b);

/* ---- the next attempt ---- */

/* An attempt of a call that has failed. */
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
	uint64_t rtt;	   /* ns: hardly any takes longer */
	uint64_t answer;   /* ns: a usual time to answer; 0: not known */
	uint64_t least;	   /* ns to wait, as the server wants */
	bool paused;	   /* retry_pause() is over */
	uint64_t random;   /* 64 bits */
};

/* How many ns to wait if a server asks for @us. There is a limit, so that no
 * server can stop a client for ever. */
uint64_t retry_after_ns(uint64_t us);
/* b, ns: the range of the first pause of attempts that have @timeout. */
uint64_t retry_base(uint64_t timeout, uint64_t rtt);
/* X(@n), ns: the pause between the end of an attempt that had @timeout and was
 * not heard of, and retry @n. */
uint64_t retry_pause(const struct retry_rule *rule, uint32_t n,
		     uint64_t timeout, uint64_t rtt, uint64_t random);
/* BACKOFF_RETRY: one more attempt is to be made at *@at_p, ns, and has been
 * paid for. */
enum backoff_verdict retry_next(const struct retry_case *c, uint64_t *at_p);

#endif
