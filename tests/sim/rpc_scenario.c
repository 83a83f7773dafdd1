/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC among the nodes of a random cluster. What must hold, and who checks it:
 *
 * Memory is not written to once it has been given back to its owner.
 *	bulk_retire(), part_end(), call_start(), by lnet_sim_buf_retire()
 * A call is executed once, unless its caller allows more. A call whose outcome
 * is "not executed" is never executed; one whose outcome is "executed" has
 * been. While a service has lost no records, no call ends with its execution
 * unknown, unless time ran out or the caller gave up; with a store, not even
 * after a crash. The store counts its transactions.
 *	execute(), check_run(), check_execution(), check_memory()
 * A call ends once, by its deadline, and never inside of ulrpc_call(). Neither
 * an attempt nor its request outlasts the call. The time at which a request
 * expires at the server never moves forward, whatever attempts, queries and
 * extensions arrive.
 *	on_done(), check_times(), outlasts(), job_audit(), job_deadline()
 * No connection is lost, and no call sent again, because a server is slow. A
 * request is extended about once each time that the time it has taken doubles.
 * Estimates do not learn from calls that only waited.
 *	tally_check(), job_audit(), expects_too_much()
 * Replies and bulk have the contents that belong to them: also replies that are
 * longer than their callers had room for, and bulk of 0 bytes, of 1 byte, in
 * short segments, in messages that are lost in both directions, moved after the
 * reply, or again by another attempt.
 *	check_reply(), is_whole(), bulks_end(), part_end()
 * Whatever waits, waits for something that will happen; counts are right.
 *	audit_waiting()
 * A handler hears that its call was given up, and does not begin after that.
 *	audit_given_up(), check_run()
 * RPC, and each service, ends in time, whatever is under way.
 *	wait_check(), caller_closed()
 * Each call that ended has exactly one span, each execution one of its server.
 * They say the same as outcomes, and who is whose parent, nested ones, too.
 *	spans_wrong()
 * Once faults have ended, and LNet has given up what they have left in it,
 * calls succeed at once; and nothing is left in the end.
 *	is_success(), audit_rpc(), caller_left()
 *
 * Checked elsewhere, each with a scenario of its own: how soon dead nodes are
 * noticed (tests/unit/rpc/client/attempt_test.c, import_test.c), the restart of
 * a server with many clients (herd.c), two processes with one id
 * (tests/unit/rpc/server/session/export_test.c), other processors and page
 * sizes (tests/unit/rpc/wire, bulk). Nothing reads wall time: env.h has none.
 */
#include "tests/sim/rpc_run.h"
#include "tests/sim/scenario.h"

#define NODES 8 /* at most */
#define RAILS 3 /* of a node */

const unsigned int scenario_seeds_long = 2000;
const uint64_t scenario_kept[] = { 0 };

bool scenario_repeats(const struct run *r)
{
	(void)r;
	return true;
}

int scenario_set_up(struct run *r)
{
	unsigned int rails = 1 + (unsigned int)rnd(r, RAILS);
	int rc = 0;

	play_size(r, NODES);
	r->late = chance(r, 35);
	if (!r->late && chance(r, 60))
		r->weather = (enum weather)rnd(r, WEATHERS);
	play_conf(r);
	r->named = chance(r, 30);
	/* without a random number, so that other seeds stay as they are */
	r->crowded = r->named && r->n < NODES_MANY;
	r->pauses = has_pauses(r->sim);
	if (r->pauses)
		lnet_sim_apart(r->sim);
	if (r->pauses && !r->late && chance(r, 40))
		r->weather = WEATHER_FAIR;
	/* In runs with late copies, a copy must be the first that a server
	 * hears of clients which it has forgotten (step_pause()): so keepalives
	 * are rare. */
	if (r->late) {
		r->n = 2;
		r->conf.keepalive = 2000000;
	}
	for (unsigned int i = 0; i < r->n && rc >= 0; i++) {
		r->members[i].nnids = rails;
		cluster_nids(r->members[i].nids, rails, i);
		rc = play_node(r, i);
	}
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		member_clients(&r->members[i]);
	fault_link(r, LNET_NID_ANY, LNET_NID_ANY);
	return rc < 0 ? rc : 0;
}
