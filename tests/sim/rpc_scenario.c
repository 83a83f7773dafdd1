/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC among the nodes of a random cluster. What must hold, and who checks it:
 *
 * Memory is not written to once it has been given back to its owner.
 *	bulk_retire(), part_end(), call_start(), by lnet_sim_buf_retire()
 * A call is executed once, unless its caller allows more. A call that is said
 * not to be executed never is, and one that is said to be has been. A service
 * that has forgotten nothing knows each call; a service with a store knows it
 * whatever happens: its transactions are counted.
 *	execute(), check_run(), check_execution(), check_memory()
 * A call ends once, by its deadline, and after the call that began it. Neither
 * an attempt nor its request outlasts the call. The time of a request never
 * gets shorter, whatever copies, queries and Extends do.
 *	on_done(), check_times(), outlasts(), job_audit(), job_deadline()
 * A slow server costs neither connections nor repetitions. A caller is told of
 * an extension as often as the time doubles. Estimates do not learn from calls
 * that only waited.
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

	r->n = 2 + (unsigned int)rnd(r, chance(r, 30) ? NODES - 1 : 3);
	r->left = CALLS;
	r->slow = chance(r, 25);
	r->harsh = chance(r, 25);
	r->tiny = chance(r, 25);
	r->late = chance(r, 35);
	if (!r->late && chance(r, 60))
		r->weather = (enum weather)rnd(r, WEATHERS);
	play_conf(r);
	r->named = chance(r, 30);
	/* Keepalives would tell the server of its clients, too (see
	 * step_pause()). */
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
