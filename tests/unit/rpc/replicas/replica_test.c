/* SPDX-License-Identifier: BSD-3-Clause */
/* Which server a call goes to, and which ones are left: without calls. */
#include "rpc/replicas/replica.h"

#include "tests/unit/lnet/cluster.h"

#define MAX_SERVERS 10

static struct replica servers[MAX_SERVERS], *all[MAX_SERVERS];
static struct replica_set tried;
static struct choice how;

static void servers_are(unsigned int n)
{
	tried = (struct replica_set){ 0 };
	how = (struct choice){ .tried = &tried, .now = 1 };
	for (unsigned int i = 0; i < n; i++) {
		struct replica *r = all[i] = &servers[i];

		*r = (struct replica){ .number = i };
		r->address.nid = lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
					       0x0a000001 + i);
		r->hash = replica_hash(&r->address.nid);
	}
}

static int chosen_of(unsigned int n)
{
	struct replica *r = replica_choose(all, n, &how);

	return r ? (int)(r - servers) : -1;
}

static void leave(unsigned int i, bool outlier)
{
	replica_leave(&servers[i], outlier, how.now, 0);
}

Test(replica, the_first_that_is_in_use)
{
	servers_are(3);
	how.choice = ULRPC_CHOOSE_FIRST;
	cr_assert_eq(chosen_of(3), 0);
	leave(0, false);
	cr_assert_eq(chosen_of(3), 1);
	replica_set_add(&tried, 1);
	cr_assert_eq(chosen_of(3), 2);
	replica_set_add(&tried, 2);
	cr_assert_eq(chosen_of(3), -1);
	how.left = true;
	cr_assert_eq(chosen_of(3), 0, "only those that are left");
	how.left = false;
	tried = (struct replica_set){ 0 };
	leave(2, false);
	how.now = servers[2].until;
	cr_assert_eq(chosen_of(3), 0, "it is due as well, and is the first");
	replica_try(&servers[0], how.now);
	cr_assert_eq(chosen_of(3), 1, "no call tries one behind that");
}

Test(replica, turns_are_as_many_as_weights_say)
{
	static const uint16_t weights[] = { 1, 0, 5, 2 };
	unsigned int n[4] = { 0 }, row = 0;
	int last = -1;

	servers_are(4);
	how.choice = ULRPC_CHOOSE_TURNS;
	for (int i = 0; i < 4; i++)
		servers[i].address.weight = weights[i];
	for (int i = 0; i < 9 * 20; i++) {
		int k = chosen_of(4);

		n[k]++;
		row = k == last ? row + 1 : 1;
		last = k;
		cr_assert_leq(row, 2, "turns of one are spread");
	}
	cr_assert_eq(n[0], 20);
	cr_assert_eq(n[1], 20, "no weight is 1");
	cr_assert_eq(n[2], 100);
	cr_assert_eq(n[3], 40);
}

Test(replica, the_better_of_two_and_each_pair_comes)
{
	unsigned int n[3] = { 0 };

	servers_are(3);
	servers[0].under_way = 7;
	servers[1].under_way = 3;
	servers[2].under_way = 5;
	for (uint64_t i = 0; i < 6; i++) {
		how.random = i / 2 << 32 | i % 2;
		n[chosen_of(3)]++;
	}
	cr_assert_eq(n[0], 0, "the worst never");
	cr_assert_eq(n[1], 4, "the best in each pair that has it");
	cr_assert_eq(n[2], 2);
	servers[0].address.weight = 4;
	how.random = 1; /* the first and the third */
	cr_assert_eq(chosen_of(3), 0, "7 of 4 is less than 5 of 1");
}

Test(replica, a_better_priority_comes_first)
{
	servers_are(4);
	how.choice = ULRPC_CHOOSE_TURNS;
	servers[0].address.priority = servers[1].address.priority = 10;
	cr_assert_eq(chosen_of(4), 2);
	cr_assert_eq(chosen_of(4), 3);
	leave(2, false);
	cr_assert_eq(chosen_of(4), 3);
	leave(3, false);
	cr_assert_eq(chosen_of(4), 0);
	cr_assert_eq(chosen_of(4), 1);
}

#define KEYS 3000

static void choose_keys(unsigned int n, int chosen[KEYS])
{
	for (int i = 0; i < KEYS; i++) {
		how.keyed = true;
		how.key = replica_key(&(uint32_t){ (uint32_t)i }, 4);
		chosen[i] = chosen_of(n);
	}
}

Test(replica, keys_move_only_to_who_comes_and_from_who_goes)
{
	int ten[KEYS], nine[KEYS], without[KEYS];
	unsigned int moved = 0, n[MAX_SERVERS] = { 0 };

	servers_are(10);
	choose_keys(10, ten);
	choose_keys(9, nine);
	leave(4, true);
	choose_keys(10, without);
	for (int i = 0; i < KEYS; i++) {
		n[ten[i]]++;
		moved += ten[i] != nine[i];
		cr_assert(ten[i] == nine[i] || ten[i] == 9);
		cr_assert(without[i] == ten[i] || ten[i] == 4);
		cr_assert_neq(without[i], 4);
	}
	cr_assert_eq(moved, n[9]);
	for (int i = 0; i < 10; i++)
		cr_assert(n[i] > KEYS / 15 && n[i] < KEYS / 7,
			  "server %d has %u of %d keys", i, n[i], KEYS);
	/* These are the choices of all releases. */
	cr_assert_eq(replica_key("key", 3), UINT64_C(0x8e380a3aef94d660));
}

Test(replica, who_is_left_is_tried_by_one)
{
	servers_are(2);
	how.choice = ULRPC_CHOOSE_TURNS;
	leave(1, false);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(chosen_of(2), 0);
	how.now = servers[1].until;
	cr_assert_eq(chosen_of(2), 1, "it is due, and comes first");
	replica_try(&servers[1], how.now);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(chosen_of(2), 0, "only one tries it");
	how.now = servers[1].until;
	cr_assert_eq(chosen_of(2), 1, "that takes long, and one more does");
	replica_try(&servers[1], how.now);
	cr_assert_eq(chosen_of(2), 0);
	replica_on_answer(&servers[1], true);
	cr_assert_eq(chosen_of(2) + chosen_of(2), 1, "each has a turn");
}

Test(replica, who_is_full_comes_last)
{
	servers_are(2);
	how.choice = ULRPC_CHOOSE_LEAST;
	servers[1].under_way = 5;
	cr_assert_eq(chosen_of(2), 0);
	replica_on_full(&servers[0], how.now + 10);
	cr_assert_eq(chosen_of(2), 1);
	replica_on_full(&servers[1], how.now + 20);
	cr_assert_eq(chosen_of(2), 0, "if all are full, it is the other way");
	how.now += 10;
	servers[0].under_way = 9;
	cr_assert_eq(chosen_of(2), 0);
	how.now += 10;
	cr_assert_eq(chosen_of(2), 1);
}

Test(replica, of_two_trials_one_passes)
{
	servers_are(2);
	leave(1, true);
	how.now = servers[1].until;
	replica_try(&servers[1], how.now);
	leave(1, true);
	replica_on_answer(&servers[1], false);
	cr_assert_eq(servers[1].fsm.state, REPLICA_LEFT,
		     "a call from before it was left");
	replica_on_answer(&servers[1], true);
	cr_assert(replica_is_used(&servers[1]));
	leave(1, false);
	replica_on_answer(&servers[1], true);
	cr_assert_eq(servers[1].fsm.state, REPLICA_LEFT,
		     "it cannot be connected to");
}

Test(replica, pauses_double)
{
	uint64_t before = 0;

	servers_are(1);
	for (int i = 0; i < 12; i++) {
		uint64_t pause;

		replica_leave(&servers[0], true, 0, 0);
		pause = servers[0].until;
		cr_assert(pause >= before && pause <= REPLICA_PAUSE_MAX);
		cr_assert(i > 5 || pause >= 2 * before);
		before = pause;
		replica_try(&servers[0], pause);
		cr_assert(replica_on_failure(&servers[0]),
			  "one failure of a trial is enough");
	}
	cr_assert_geq(before, REPLICA_PAUSE_MAX / 2);
	replica_leave(&servers[0], true, 0, 0);
	replica_try(&servers[0], UINT64_MAX);
	replica_on_answer(&servers[0], false);
	replica_leave(&servers[0], true, 0, 0);
	cr_assert_leq(servers[0].until, REPLICA_PAUSE_MIN,
		      "an answer forgets how often it was left");
}

Test(replica, an_outlier_that_is_connected_is_still_one)
{
	servers_are(2);
	leave(0, true);
	replica_is_back(&servers[0]);
	cr_assert_eq(servers[0].fsm.state, REPLICA_LEFT);
	leave(1, false);
	replica_is_back(&servers[1]);
	cr_assert(replica_is_used(&servers[1]));
}

Test(replica, failures_in_a_row)
{
	servers_are(1);
	for (int i = 1; i < REPLICA_FAILURES; i++)
		cr_assert_not(replica_on_failure(&servers[0]));
	replica_on_answer(&servers[0], false);
	for (int i = 1; i < REPLICA_FAILURES; i++)
		cr_assert_not(replica_on_failure(&servers[0]));
	cr_assert(replica_on_failure(&servers[0]));
}

static void answers(unsigned int i, uint64_t ns, unsigned int n)
{
	while (n--)
		replica_on_time(&servers[i], ns, 100000);
}

Test(replica, slow_is_far_above_half_of_the_others)
{
	servers_are(4);
	answers(0, 100000, 20);
	answers(1, 120000, 20);
	answers(2, 2000000, 20);
	answers(3, 2000000, 15);
	cr_assert_not(replica_is_slow(&servers[0], all, 4));
	cr_assert(replica_is_slow(&servers[2], all, 4));
	cr_assert(replica_is_slower(&servers[2], all, 4));
	cr_assert_not(replica_is_slower(&servers[1], all, 4));
	cr_assert_not(replica_is_slow(&servers[3], all, 4),
		      "too few answers to tell");
	answers(1, 1800000, 100);
	cr_assert_not(replica_is_slow(&servers[2], all, 4),
		      "one fast one of two is no reason to leave the slow one");
	answers(1, 300000, 100);
	cr_assert(replica_is_slow(&servers[2], all, 4),
		  "the middle of 100 and 300 us");
	answers(1, 1800000, 100);
	answers(3, 0, 1);
	cr_assert_not(replica_is_slow(&servers[2], all, 4), "one of three");
	cr_assert_not(replica_is_slow(&servers[2], all + 2, 1),
		      "there are no others");
}

Test(replica, nobody_is_slow_below_a_millisecond)
{
	servers_are(3);
	answers(0, 20000, 20);
	answers(1, 20000, 20);
	answers(2, 990000, 20);
	cr_assert_not(replica_is_slow(&servers[2], all, 3));
	answers(2, 1100000, 100);
	cr_assert(replica_is_slow(&servers[2], all, 3));
	answers(2, 60000, 100);
	cr_assert_not(replica_is_slow(&servers[2], all, 3));
	cr_assert(replica_is_slower(&servers[2], all, 3), "whatever it takes");
}

Test(replica, half_of_them_may_be_outliers)
{
	servers_are(5);
	cr_assert(replica_may_leave(all, 5));
	leave(0, true);
	leave(1, false);
	cr_assert(replica_may_leave(all, 5));
	leave(2, true);
	cr_assert_not(replica_may_leave(all, 5));
	cr_assert_not(replica_may_leave(all, 1), "never the only one");
}
