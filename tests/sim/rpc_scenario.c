/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC among the nodes of a random cluster. What must hold, and who looks:
 *
 * Memory that is its owner's again is not written to.
 *	bulk_retire(), part_end(), call_start(), by lnet_sim_buf_retire()
 * Nothing is executed twice, unless its caller does not mind; what is said not
 * to be executed never is, what is said to be has been; a service that has
 * forgotten nothing knows each call, and so does one with a store, whatever
 * happens: its transactions are counted.
 *	execute(), check_run(), check_execution(), check_memory()
 * A call ends once, by its deadline, after the call that began it; neither an
 * attempt nor its request are to last longer; the time of a request never gets
 * shorter, whatever copies, queries and Extends do.
 *	on_done(), check_times(), outlasts(), job_audit(), job_deadline()
 * A slow server costs neither connections nor repetitions; callers hear of more
 * time as often as that doubles; nobody learns from waiting.
 *	tally_check(), job_audit(), expects_too_much()
 * Replies and bulk have the contents that belong to them: replies longer than
 * their callers had room for, bulk of 0 bytes, of 1 byte, in short segments, in
 * messages that are lost both ways, moved after the reply, or again by another
 * attempt.
 *	check_reply(), is_whole(), bulks_end(), part_end()
 * What waits does so for something that will come; counts are right.
 *	audit_waiting()
 * Who is given up hears of it, and does not begin any more.
 *	audit_given_up(), check_run()
 * RPC, and each service, ends in time, whatever is under way.
 *	wait_check(), caller_closed()
 * When faults end, calls succeed: at once, when LNet has given up what faults
 * have left in it; and nothing is left in the end.
 *	is_success(), audit_rpc(), caller_left()
 *
 * Looked at elsewhere, each with a scenario of its own: how soon the dead are
 * found out (tests/unit/rpc/client/attempt_test.c, import_test.c), what comes
 * after a restart of a server with many clients (herd.c), two processes with
 * one id (tests/unit/rpc/server/session/export_test.c), other processors and
 * pages (tests/unit/rpc/wire, bulk). Wall time is read by nobody: env.h has
 * none.
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
	/* See step_pause(): nor does it hear of them by a keepalive. */
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
