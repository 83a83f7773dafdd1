/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are made at two servers. */
#include "tests/unit/rpc/replicas/servers.h"

Test(replicas, a_slow_call_is_made_at_a_second_server)
{
	unsigned int hedged = 0;
	uint64_t longest = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	conf.hedge = 100;
	open_nids(3);
	for (int i = 1; i <= SERVERS; i++)
		servers[i].delay = MSEC;
	for (unsigned int i = 0; i < 60; i++) {
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 10 * MSEC);
		went_well(i);
		cr_assert_not(calls[i].o.hedged, "it was not slow");
	}
	servers[2].delay = SEC;
	for (unsigned int i = 0; i < 6; i++) {
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 20 * MSEC);
		went_well(i);
		hedged += calls[i].o.hedged;
		longest = MAX(longest, calls[i].took);
	}
	cr_assert_eq(hedged, 2, "one call of three is slow: %u", hedged);
	cr_assert_leq(longest, 10 * MSEC);
	/* Others are not, although they are slow, too. */
	for (unsigned int i = 0; i < 3; i++)
		call(i, 10000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 3 * SEC);
	for (unsigned int i = 0; i < 3; i++) {
		went_well(i);
		cr_assert_not(calls[i].o.hedged);
		cr_assert_eq(calls[i].executed, 1);
	}
	sim_close();
}

Test(replicas, only_a_share_is_hedged)
{
	unsigned int hedged = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	conf.hedge = 50;
	open_nids(3);
	for (unsigned int i = 0; i < 20; i++) {
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 10 * MSEC);
	}
	/* From now on all are slow, and each call is slower than most. */
	for (unsigned int i = 0; i < 20; i++) {
		for (int k = 1; k <= SERVERS; k++)
			servers[k].delay += 20 * MSEC;
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, SEC);
		went_well(i);
		hedged += calls[i].o.hedged;
	}
	cr_assert_eq(hedged, 2, "one of 20 calls, and there were 40: %u",
		     hedged);
	sim_close();
}

Test(replicas, a_call_that_moves_earns_one_share)
{
	unsigned int hedged = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	conf.hedge = 50;
	open_nids(3);
	for (unsigned int i = 0; i < 19; i++) {
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 10 * MSEC);
		went_well(i);
	}
	/* Nobody is there: the 20th call is at each server again and again. */
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_crash(sim, i), 0);
	call(0, 40000000, ULRPC_IDEMPOTENT);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_eq(calls[0].n, 0);
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_restart(sim, i), 0);
	lnet_sim_run(sim, 20 * SEC);
	went_well(0);
	for (unsigned int i = 0; i < 8; i++) {
		for (int k = 1; k <= SERVERS; k++)
			servers[k].delay += 100 * MSEC;
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 2 * SEC);
		went_well(i);
		hedged += calls[i].o.hedged;
	}
	cr_assert_eq(hedged, 1, "there were less than 40 calls: %u", hedged);
	sim_close();
}

/* Calls of two servers, of which the first is chosen, are hedged from now on.
 */
static void hedge_all(void)
{
	conf.choice = ULRPC_CHOOSE_FIRST;
	conf.hedge = 1000;
	open_nids(2);
	for (int i = 1; i <= SERVERS; i++)
		servers[i].delay = MSEC;
	for (unsigned int i = 0; i < 40; i++) {
		call(0, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 10 * MSEC);
		went_well(0);
	}
}

Test(replicas, no_second_server_is_asked_behind_the_deadline)
{
	sim_open_as(1, true);
	hedge_all();
	servers[1].delay = 50 * SEC;
	servers[2].delay = 40 * SEC;
	call(1, 20000, ULRPC_IDEMPOTENT);
	lnet_sim_run(sim, MSEC / 2);
	/* It is late, and finds both to be over, hedge and deadline. */
	cr_assert_eq(lnet_sim_pause(sim, 0, 100 * MSEC), 0);
	lnet_sim_run(sim, 20 * SEC);
	cr_assert_eq(calls[1].n, 1);
	cr_assert_eq(calls[1].o.call.cause, ULRPC_CAUSE_DEADLINE);
	cr_assert_leq(calls[1].took, 200 * MSEC);
	cr_assert_eq(servers[2].executed, 0);
	lnet_sim_run(sim, 100 * SEC);
	sim_close();
}

struct told {
	const struct one *one;
	unsigned int before, after; /* the end of the call */
};

static void on_progress(void *arg, const struct ulrpc_call_progress *p)
{
	struct told *told = arg;

	(void)p;
	if (told->one->n)
		told->after++;
	else
		told->before++;
}

Test(replicas, progress_is_told_until_the_end)
{
	struct told told = { .one = &calls[1] };
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 20000000,
			  .semantics = ULRPC_IDEMPOTENT,
			  .progress = on_progress,
			  .progress_arg = &told },
	};

	/* In some of these, the answer of one server and the report of the
	 * other one are found in the same turn. */
	for (unsigned int k = 0; k < 12; k++) {
		sim_open_as(1, true);
		hedge_all();
		servers[1].delay = 8 * SEC;
		servers[2].delay = (5 + k * 4) * MSEC;
		ulrpc_replicas_call_put(call_with(1, &how));
		lnet_sim_run(sim, 4 * MSEC);
		cr_assert_eq(lnet_sim_pause(sim, 0, 60 * MSEC), 0);
		lnet_sim_run(sim, 12 * SEC);
		went_well(1);
		cr_assert(calls[1].o.hedged);
		sim_close();
	}
	cr_assert_eq(told.after, 0, "%u times after the end", told.after);
	/* It is told at all. */
	sim_open(1);
	open_nids(2);
	servers[1].delay = servers[2].delay = 8 * SEC;
	told.before = 0;
	ulrpc_replicas_call_put(call_with(1, &how));
	lnet_sim_run(sim, 12 * SEC);
	went_well(1);
	cr_assert_gt(told.before, 0);
	sim_close();
}

/* Makes call 1, which takes its time at server 1, with @context. Server 2 has
 * to answer. */
static void hedge_with(struct ulrpc_context *context)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 10000000,
			  .semantics = ULRPC_IDEMPOTENT,
			  .context = context },
	};
	struct ulrpc_metadata pair;

	said[0] = '\0';
	ulrpc_replicas_call_put(call_with(1, &how));
	lnet_sim_run(sim, 20 * MSEC);
	went_well(1);
	cr_assert(calls[1].o.hedged);
	cr_assert_eq(calls[1].executed, 2);
	cr_assert_eq(calls[1].answer, 2);
	cr_assert_str_eq(said, "anna");
	cr_assert_eq(ulrpc_context_find(context, "server", &pair), 0);
	cr_assert_eq(pair.length, 1);
	cr_assert_eq(*(const char *)pair.value, '2');
}

Test(replicas, a_call_with_a_context_is_hedged)
{
	struct ulrpc_context *context;

	sim_open(1);
	hedge_all();
	servers[1].delay = 100 * MSEC;
	cr_assert_eq(ulrpc_context_new(&context), 0);
	cr_assert_eq(ulrpc_context_add(context, "user", "anna", 4), 0);
	hedge_with(context);
	/* It is free again while server 1 still works for the first call. */
	hedge_with(context);
	ulrpc_context_free(context);
	lnet_sim_run(sim, SEC);
	sim_close();
}

/* ---- calls that lend memory ---- */

#define LENT 100000

/* Makes the idempotent call 1 with a bulk of @access. */
static struct ulrpc_bulk *lend(uint8_t *memory, enum ulrpc_bulk_access access)
{
	struct iovec iov = { memory, LENT };
	const struct ulrpc_bulk_conf lent = { .iov = &iov,
					      .niov = 1,
					      .access = access };
	struct ulrpc_bulk *bulk;
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 10000000,
			  .semantics = ULRPC_IDEMPOTENT,
			  .bulks = &bulk,
			  .nbulks = 1 },
	};

	cr_assert_eq(ulrpc_bulk_new(rpc, &lent, &bulk), 0);
	ulrpc_replicas_call_put(call_with(1, &how));
	return bulk;
}

static void on_released(void *arg)
{
	++*(unsigned int *)arg;
}

Test(replicas, two_servers_read_one_source)
{
	unsigned int released = 0;
	struct ulrpc_bulk *bulk;

	sim_open(1);
	hedge_all();
	for (size_t i = 0; i < LENT; i++)
		long_body[i] = (uint8_t)(i ^ i >> 8);
	servers[1].delay = 100 * MSEC;
	bulk = lend(long_body, ULRPC_BULK_SOURCE);
	lnet_sim_run(sim, 20 * MSEC);
	went_well(1);
	cr_assert(calls[1].o.hedged);
	cr_assert_eq(calls[1].executed, 2);
	cr_assert_eq(calls[1].answer, 2);
	cr_assert_eq(servers[1].taken, 1);
	cr_assert_eq(servers[2].taken, 1);
	ulrpc_bulk_close(bulk, on_released, &released);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(released, 1);
	sim_close();
}

/* The call has ended at server 2 when its memory is still on the way to server
 * 1, whose link is slow: the caller is told so, and when that is over. */
Test(replicas, a_source_is_in_use_until_the_slower_server_leaves_it)
{
	const struct ulnet_sim_link slow = { .latency = 50000,
					     .bandwidth = 200000 };
	struct ulnet_nid from = server_nid(0), to = server_nid(1);
	unsigned int released = 0;
	struct ulrpc_bulk *bulk;

	sim_open(1);
	hedge_all();
	bulk = lend(long_body, ULRPC_BULK_SOURCE);
	lnet_sim_link_set(sim, &from, &to, &slow);
	lnet_sim_run(sim, 40 * MSEC);
	went_well(1);
	cr_assert(calls[1].o.hedged);
	cr_assert_eq(calls[1].answer, 2);
	cr_assert_not(calls[1].o.call.bulk_free);
	ulrpc_bulk_close(bulk, on_released, &released);
	cr_assert_eq(released, 0);
	lnet_sim_run(sim, 60 * SEC);
	cr_assert_eq(released, 1);
	sim_close();
}

Test(replicas, two_servers_never_write_to_one_sink)
{
	uint8_t *memory;
	struct ulrpc_bulk *bulk;

	sim_open(1);
	hedge_all();
	memory = calloc(1, LENT);
	servers[1].delay = 100 * MSEC;
	bulk = lend(memory, ULRPC_BULK_SINK);
	lnet_sim_run(sim, SEC);
	went_well(1);
	cr_assert_not(calls[1].o.hedged);
	cr_assert_eq(calls[1].executed, 1);
	cr_assert(calls[1].o.call.bulk_free);
	ulrpc_bulk_close(bulk, NULL, NULL);
	free(memory);
	sim_close();
}
