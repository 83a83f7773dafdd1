/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides whether and when calls are sent again, by a rule and a budget.
 *
 * The rule is that of the call, or else of its client, or one that the
 * administrator forces on all calls. It has a law of back-offs
 * (base/backoff.h).
 *
 * The budget belongs to the connection. Repetitions that add to the load of a
 * server are paid from it. The budget earns a tenth of a repetition with each
 * call, and ten repetitions in a second, so that repetitions add little to the
 * load of a slow server. If a server does not know a call, it has had no work
 * with it: the repetition only replaces what was lost, and is not paid.
 *
 * A call that was certainly not delivered is sent again regardless of both.
 *
 * Owner: the CPT of the client.
 */
#ifndef RPC_CLIENT_RETRY_H
#define RPC_CLIENT_RETRY_H

#include "base/backoff.h"
#include "ulnet/rpc.h"

struct conf_owner;

struct retry_rule {
	/* law of the pauses; if its base is 0: retry_base() of the attempt */
	struct backoff_law law;
	uint64_t least; /* ns: M of the pauses, if the server asks for less */
	/* the policy is the administrator's, not the caller's */
	bool forced;
	/* a call that is refused as "overloaded" is not sent again */
	bool tell_overloaded;
	/* set by the user of the rule, after retry_rule_init() */
	enum ulrpc_wait wait;
};

/* Do calls with the rule wait for a server that is not there? */
static inline bool retry_rule_waits(const struct retry_rule *rule)
{
	return rule->wait == ULRPC_WAIT_DEFAULT
		       ? rule->law.max != 0
		       : rule->wait == ULRPC_WAIT_READY;
}

/* Returns 0, or -EINVAL if the policy of @r does not exist. @r may be NULL. */
int retry_check(const struct ulrpc_retry *r) must_check;

/* Sets *@force to the policy that the administrator has put into the
 * environment, if any. Returns 0; or -EINVAL: there is no such policy, which is
 * written for @owner. */
int retry_force(enum ulrpc_backoff *force, struct conf_owner owner) must_check;

/* Makes @rule of @r; NULL: the default rule. @force: a policy that replaces
 * that of @r; ULRPC_BACKOFF_DEFAULT: none does. */
void retry_rule_init(struct retry_rule *rule, const struct ulrpc_retry *r,
		     enum ulrpc_backoff force);

/* ---- the budget ---- */

struct retry_budget {
	/* thousandths of a retry that were spent and not earned back yet */
	uint64_t spent;
	/* how many calls had been sent when @spent was last computed */
	uint64_t calls;
	uint64_t at; /* ns: when @spent was last computed */
};

/* Begins with nothing spent, for a new connection. @calls: number of calls sent
 * so far. */
void budget_begin(struct retry_budget *b, uint64_t calls, uint64_t now);
/* Pays for one repetition. Returns in how many ns it can be made: when the
 * budget has earned it. @burst: how many repetitions may be paid in advance,
 * which is how many calls can be refused at once. @calls: number of calls sent
 * so far, without repetitions. */
uint64_t budget_take(struct retry_budget *b, uint32_t burst, uint64_t calls,
		     uint64_t now);
/* Takes back the last budget_take(): the repetition is not made. */
void budget_give_back(struct retry_budget *b);

/* ---- the next attempt ---- */

/* An attempt of a call that has failed, and what decides about the next one. */
struct retry_case {
	const struct retry_rule *rule;
	struct retry_budget *budget;
	uint32_t burst;
	uint64_t calls;	   /* burst, calls: arguments of budget_take() */
	uint32_t retries;  /* retries of the call so far */
	uint64_t now;	   /* ns: the time now */
	uint64_t began;	   /* ns: when the first attempt began */
	uint64_t deadline; /* ns: deadline of the call; TIME_NEVER: none */
	uint64_t timeout;  /* ns: T of the attempt that has failed */
	uint64_t rtt;	   /* ns: nearly all round trips are shorter */
	uint64_t answer;   /* ns: the mean round trip; 0: not known */
	uint64_t least;	   /* ns: the least pause, as the server wants it */
	/* the server does not know the attempt, which was lost. No pause is
	 * needed, since a query was made meanwhile; and nothing is paid, since
	 * this does not show that the server is busy */
	bool lost;
	uint64_t random; /* 64 random bits */
};

/* Returns for how long (ns) to wait if a server asks for @us: at most 30 s. */
uint64_t retry_after_ns(uint64_t us);
/* Returns the range, in ns, of the first pause after an attempt that had
 * @timeout ns. @rtt: ns. */
uint64_t retry_base(uint64_t timeout, uint64_t rtt);
/* Returns the pause, in ns, between the end of an attempt that had @timeout ns
 * and was not answered, and retry number @n. */
uint64_t retry_pause(const struct retry_rule *rule, uint32_t n,
		     uint64_t timeout, uint64_t rtt, uint64_t random);
/* Decides whether there is another attempt. BACKOFF_RETRY: it begins at *@at_p
 * (ns), and was paid for unless the attempt was lost. With any other verdict
 * *@at_p is untouched. */
enum backoff_verdict retry_next(const struct retry_case *c, uint64_t *at_p);

#endif
