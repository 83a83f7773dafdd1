/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares what callers of the RPC scenario are told of their calls with what
 * really happened. */
#include "rpc/rpc.h"
#include "rpc/stats/stat.h"
#include "tests/sim/rpc_run.h"

void outcome_wrong(const struct test_call *c, const char *what)
{
	const struct ulrpc_outcome *o = &c->outcome;

	lnet_sim_fail(c->run->sim,
		      "node %u: call %lu to node %u, %s: %s (%s, %s, status "
		      "%d, %u attempts, %u executions)",
		      c->from->index, (unsigned long)c->id, c->target,
		      method_names[c->method], what, ulrpc_cause_name(o->cause),
		      ulrpc_execution_name(o->execution), o->status,
		      o->attempts, c->executed);
}

static void check_execution(const struct test_call *c)
{
	const struct ulrpc_outcome *o = &c->outcome;

	switch (o->execution) {
	case ULRPC_EXECUTED:
		if (!c->executed && (o->cause == ULRPC_CAUSE_OK || !c->vain))
			outcome_wrong(c, "was not executed");
		break;
	case ULRPC_NOT_EXECUTED:
		if (c->executed)
			outcome_wrong(c, "has been executed");
		break;
	default:
		if (o->cause == ULRPC_CAUSE_OK ||
		    o->cause == ULRPC_CAUSE_HANDLER)
			outcome_wrong(c, "an answer is known");
		break;
	}
}

/* Has the service remembered the call since it was made, whatever happened? */
static bool is_remembered(const struct test_call *c)
{
	const struct member *m = &c->run->members[c->target];

	return c->store && c->store == m->stores[c->service].number &&
	       c->semantics == ULRPC_EXACTLY_ONCE &&
	       method_semantics(c->method) == ULRPC_EXACTLY_ONCE;
}

/* May the call end without knowledge of its execution? It may if the caller or
 * its node did not wait for the end, or if there was no time for another
 * attempt. */
static bool may_be_unknown(const struct test_call *c)
{
	const struct member *m = c->from;

	if (lnet_sim_now(c->run->sim) >= c->deadline || m->shutting || !m->rpc)
		return true;
	switch (c->outcome.cause) {
	case ULRPC_CAUSE_CANCELED:
	case ULRPC_CAUSE_OVERLOADED:
	case ULRPC_CAUSE_EXPIRED:
	case ULRPC_CAUSE_LOST:
		return true;
	default:
		return false;
	}
}

/* Without faults, has the caller stood still lately, so that its server may
 * have forgotten it? Whoever stood still himself forgets nobody for that. */
static bool has_slept(const struct test_call *c)
{
	return c->from->paused && c->from->paused + 10 * SEC >= c->began;
}

static void check_memory(const struct test_call *c)
{
	const struct ulrpc_outcome *o = &c->outcome;

	if (c->run->over)
		return;
	if ((o->cause == ULRPC_CAUSE_RESTARTED ||
	     o->cause == ULRPC_CAUSE_FORGOTTEN) &&
	    c->lapses == audit_lapses(&c->run->members[c->target], c->service))
		outcome_wrong(c, "its server has forgotten nothing");
	if (c->lapses && o->cause == ULRPC_CAUSE_RESTARTED &&
	    c->restarts ==
		    audit_restarts(&c->run->members[c->target], c->service))
		outcome_wrong(c, "its server has not restarted");
	if (c->run->weather == WEATHER_FAIR && !has_slept(c) &&
	    o->cause == ULRPC_CAUSE_FORGOTTEN)
		outcome_wrong(c, "it was forgotten although it was awake");
	/* If the service does not wait for a handler, nobody knows how the
	 * handler will end. */
	if (is_remembered(c) && o->execution == ULRPC_EXECUTION_UNKNOWN &&
	    o->cause != ULRPC_CAUSE_STALLED && !may_be_unknown(c))
		outcome_wrong(c, "its service forgets nothing");
}

static void check_times(const struct test_call *c)
{
	const struct ulrpc_outcome *o = &c->outcome;
	uint64_t now = lnet_sim_now(c->run->sim);

	if (now > member_late(c->from, c->deadline))
		outcome_wrong(c, "ended after its deadline");
	if (o->cause == ULRPC_CAUSE_DEADLINE && now < c->deadline)
		outcome_wrong(c, "ended before its deadline");
	/* that there is no server, or no such service */
	if (now < c->deadline && (o->cause == ULRPC_CAUSE_UNREACHABLE ||
				  o->cause == ULRPC_CAUSE_NAME)) {
		if (!c->hasty)
			outcome_wrong(c, "it was to wait for a server");
		if (o->execution != ULRPC_NOT_EXECUTED)
			outcome_wrong(c, "it was to go on asking");
	}
	if (o->total != o->connecting + o->window + o->wire +
				o->server_throttled + o->server_queue +
				o->service + o->fetch)
		outcome_wrong(c, "times do not add up");
}

/* Returns how often the process that serves the call now has counted @stat. */
static uint64_t server_count(const struct test_call *c, enum rpc_stat stat)
{
	const struct member *m = &c->run->members[c->target];
	uint64_t n = 0;

	for (unsigned int i = 0; m->rpc && i < m->rpc->ncpts; i++)
		n += m->rpc->shards[i].stats->counts[stat];
	return n;
}

static void check_reply(const struct test_call *c, const char *reply,
			size_t length)
{
	const struct ulrpc_outcome *o = &c->outcome;
	uint32_t room =
		c->context || intercept_adds(c->target) ? ANNEX_ROOM : 0;

	if ((o->status == 0) != (o->cause == ULRPC_CAUSE_OK))
		outcome_wrong(c, "status and cause contradict");
	if (o->cause == ULRPC_CAUSE_TOO_LONG &&
	    c->reply_length + room <= c->reply_max)
		outcome_wrong(c, "the reply is not too long");
	if (o->cause == ULRPC_CAUSE_OK && c->reply_limit &&
	    length > c->reply_limit && length > c->reply_max)
		outcome_wrong(c, "the reply is longer than its caller takes");
	if (o->cause == ULRPC_CAUSE_TOO_LONG && o->reply_needed &&
	    c->reply_limit && c->reply_length + room <= c->reply_limit &&
	    c->restarts ==
		    audit_restarts(&c->run->members[c->target], c->service) &&
	    !server_count(c, RPC_STAT_held_refused))
		outcome_wrong(c, "the caller takes as much");
	if (o->cause == ULRPC_CAUSE_BAD_REPLY ||
	    o->cause == ULRPC_CAUSE_CHECKSUM)
		outcome_wrong(c, "nobody has damaged anything");
	if (o->cause != ULRPC_CAUSE_OK) {
		if (length)
			outcome_wrong(c, "a reply in spite of the status");
		return;
	}
	/* a reply that is longer than reply_max is fetched */
	if (length != c->reply_length ||
	    !pattern_holds(reply, (uint32_t)length, reply_pattern(c->id)))
		outcome_wrong(c, "the reply has wrong contents");
}

/* Did the call have enough time without faults? */
static bool has_had_time(const struct test_call *c)
{
	uint64_t calm = c->run->calm;

	return calm && c->deadline >= calm + c->probe * US;
}

/* May the server still know the previous process of this node, which came from
 * another address? */
static bool is_too_early(const struct test_call *c)
{
	const struct run *r = c->run;

	return r->named && lnet_sim_now(r->sim) <
				   c->from->opened + 3 * r->conf.keepalive * US;
}

/* Did the server drop the call because it had too much to do? */
static bool is_crowded_out(const struct test_call *c)
{
	return c->outcome.execution == ULRPC_NOT_EXECUTED &&
	       server_count(c, RPC_STAT_requests_unroomed) +
		       server_count(c, RPC_STAT_requests_hopeless) +
		       server_count(c, RPC_STAT_requests_overdue);
}

/* Returns whether a probe has succeeded, or had a reason to fail: no room for
 * its request or for its client; the service is missing, or does not wait for
 * handlers; nothing was heard of its bulk while others needed the handler's
 * thread; the server has forgotten the client, and the call must not be
 * executed twice; its own node ends; faults have lasted too long. */
static bool is_success(const struct test_call *c)
{
	const struct ulrpc_outcome *o = &c->outcome;
	bool crowded = c->run->conf.exports_max;

	switch (o->cause) {
	case ULRPC_CAUSE_OK:
	case ULRPC_CAUSE_OVERLOADED:
	case ULRPC_CAUSE_NO_SERVICE:
	case ULRPC_CAUSE_SHUTDOWN:
	case ULRPC_CAUSE_STALLED:
		return true;
	case ULRPC_CAUSE_BULK:
		return c->run->over ||
		       server_count(c, RPC_STAT_transfers_given_up);
	case ULRPC_CAUSE_RESTARTED:
	case ULRPC_CAUSE_FORGOTTEN:
		return !call_is_idempotent(c) && !is_remembered(c);
	case ULRPC_CAUSE_UNREACHABLE:
		return crowded;
	case ULRPC_CAUSE_DEADLINE:
		return crowded || is_crowded_out(c) || !has_had_time(c);
	case ULRPC_CAUSE_CANCELED:
		return !c->from->rpc || c->canceled || c->run->over;
	case ULRPC_CAUSE_REFUSED:
		return is_too_early(c);
	default:
		return false;
	}
}

void outcome_check(const struct test_call *c, const char *reply, size_t length)
{
	check_execution(c);
	check_memory(c);
	check_times(c);
	check_reply(c, reply, length);
	annex_check(c);
	if (c->probe && !is_success(c))
		outcome_wrong(c, "there is time enough, and no fault any more");
}
