/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test service: tests that run. */
#include "tests/unit/services/lst_rig.h"

/* ---- tests that run ---- */

static void run(struct lst_msg test, uint64_t requests)
{
	uint32_t sent = sent_by(1), got = lsts[2]->received;

	cr_assert_eq(add(test), 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	await_idle();
	cr_assert_eq(sent_by(1) - sent, requests);
	cr_assert_eq(lsts[2]->received - got, requests);
}

static void run_all(unsigned int cpts)
{
	static const uint32_t sizes[] = { 8, 1024, 4096, 8192, LNET_MTU };
	struct lst_msg test = test_of(LST_SERVICE_PING, 100, 8);
	struct lst_counters c;
	unsigned int n = 0;

	begin(cpts);
	for (uint32_t op = LST_READ; op <= LST_WRITE; op++) {
		for (uint32_t check = 1; check <= LST_CHECK_FULL; check++) {
			for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
				sessions();
				test = test_of(LST_SERVICE_BRW, 3, 4);
				test.test.brw.opcode = op;
				test.test.brw.flags = check;
				test.test.brw.length = sizes[i];
				run(test, 12);
				n++;
				cr_assert_eq(lsts[1]->session->brw_errors, 0u);
				c = stats(TO_ID);
				cr_assert_eq(c.brw_errors, 0u);
				status_of(
					FROM_ID,
					(struct lst_msg){ .type = LST_REMOVE });
				status_of(TO_ID, (struct lst_msg){
							 .type = LST_REMOVE });
			}
		}
	}
	sessions();
	run(test_of(LST_SERVICE_PING, 100, 8), 800);
	/* Each new test of pings numbers its pings from 0. */
	cr_assert_eq(lsts[1]->sequence, 800u);
	cr_assert_eq(add(test_of(LST_SERVICE_PING, 1, 1)), 0u);
	cr_assert_eq(lsts[1]->sequence, 0u);
	c = stats(FROM_ID);
	cr_assert_eq(c.ping_errors, 0u);
	cr_assert_eq(c.rpcs_sent, n * 12 + 800);
	cr_assert_eq(c.rpcs_dropped + c.rpcs_expired + c.errors, 0u);
	c = stats(TO_ID);
	cr_assert_eq(c.bulk_got, (8 + 1024 + 4096 + 8192 + LNET_MTU) * 36ull);
	cr_assert_eq(c.bulk_put, c.bulk_got);
	cr_assert_gt(c.recv_length, c.bulk_got);
	end();
}

static uint64_t slot_bytes(int node)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < lsts[node]->ncpts; i++)
		for (unsigned int k = 0; k < lsts[node]->cpts[i].nslots; k++)
			n += lsts[node]->cpts[i].slots[k].memory_size;
	return n;
}

/* The memory for bulk data is kept while tests run, and given back afterwards.
 */
Test(lst_run, memory_is_given_back)
{
	struct lst_msg test = test_of(LST_SERVICE_BRW, 5, 32);

	test.test.brw = (struct lst_brw_params){ .opcode = LST_WRITE,
						 .flags = LST_CHECK_FULL,
						 .length = LNET_MTU };
	begin(2);
	sessions();
	run(test, 160);
	cr_assert_geq(slot_bytes(2), (uint64_t)LNET_MTU);
	cr_assert_gt(slot_bytes(1), 0u); /* the list of destinations */
	lnet_sim_run(sim, 3 * SEC);
	cr_assert_eq(slot_bytes(1) + slot_bytes(2), 0u);
	/* and is there again for the next run */
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	await_idle();
	cr_assert_eq(stats(FROM_ID).brw_errors, 0u);
	cr_assert_geq(slot_bytes(2), (uint64_t)LNET_MTU);
	end();
}

Test(lst_run, tests_run)
{
	run_all(1);
}

Test(lst_run, tests_run_on_cpts)
{
	run_all(3);
}

/* A test has several destinations, one of them the sending node itself. */
Test(lst_run, several)
{
	const struct ulnet_id ids[] = { TO_ID, id_of("10.77.0.13@tcp"),
					FROM_ID };
	struct lst_msg test = test_of(LST_SERVICE_BRW, 5, 2);

	begin(2);
	sessions();
	test.test.brw = (struct lst_brw_params){ .opcode = LST_WRITE,
						 .flags = LST_CHECK_FULL,
						 .length = 1024,
						 .offset = 512 };
	cr_assert_eq(add_list(test, ids, 3), 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	await_idle();
	cr_assert_eq(sent_by(1), 30u);
	cr_assert_eq(lsts[0]->bulk_got, 10240u);
	cr_assert_eq(lsts[2]->bulk_got, 10240u);
	cr_assert_eq(stats(FROM_ID).brw_errors, 0u);
	/* The second run sends all requests again. */
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	await_idle();
	cr_assert_eq(sent_by(1), 60u);
	end();
}

/* An endless test runs until it is stopped, or its session ends. */
static void stopped(unsigned int cpts)
{
	const struct ulnet_sim_link slow = { .latency = 50 * MSEC };
	uint32_t sent;

	begin(cpts);
	cluster_links(sim, &slow);
	sessions();
	cr_assert_eq(add(test_of(LST_SERVICE_PING, UINT32_MAX, 4)), 0u);
	for (uint32_t force = 0; force <= 1; force++) {
		cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
		lnet_sim_run(sim, SEC);
		cr_assert_eq(active(), 1u);
		cr_assert_eq(add(test_of(LST_SERVICE_PING, 1, 1)),
			     (uint32_t)EBUSY);
		cr_assert_eq(status_of(FROM_ID, batch_of(LST_STOP, 0, force)),
			     0u);
		await_idle();
	}
	cr_assert_eq(stats(FROM_ID).ping_errors, 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(status_of(FROM_ID, make_of(other, 1)), 0u);
	cr_assert_eq(lsts[1]->session->ping_errors, 0u);
	lnet_sim_run(sim, SEC);
	sent = sent_by(1);
	cr_assert(LIST_EMPTY(&lsts[1]->zombies));
	cr_assert_eq(lsts[1]->units, 0u);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(sent_by(1), sent);
	end();
}

Test(lst_run, stopped)
{
	stopped(1);
}

Test(lst_run, stopped_on_cpts)
{
	stopped(3);
}

/* A request is sent by the CPT that owns the NID of its destination. */
Test(lst_run, cpts)
{
	const struct ulnet_id ids[] = { TO_ID, id_of("10.77.0.13@tcp"),
					FROM_ID };
	uint32_t want[4] = { 0 };

	begin(4);
	sessions();
	cr_assert_eq(add_list(test_of(LST_SERVICE_PING, 5, 2), ids, 3), 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	await_idle();
	for (int i = 0; i < 3; i++)
		want[lnet_cpt_of(nodes[1], &ids[i].nid)] += 10;
	cr_assert_lt(want[LST_HOME], 30u);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(lsts[1]->cpts[i].calls.sent, want[i], "%d", i);
	cr_assert_eq(stats(FROM_ID).ping_errors, 0u);
	cr_assert_eq(stats(FROM_ID).rpcs_sent, 30u);
	end();
}

/* Begins an endless test on links with latency, so that requests take time. */
static void begin_running(void)
{
	const struct ulnet_sim_link slow = { .latency = MSEC };

	begin(2);
	cluster_links(sim, &slow);
	sessions();
	cr_assert_eq(add(test_of(LST_SERVICE_PING, UINT32_MAX, 4)), 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	lnet_sim_run(sim, 20 * MSEC);
	cr_assert_gt(sent_by(1), 4u);
}

/* A node that sends requests to itself, without end and without latency, can be
 * stopped. */
Test(lst_run, to_itself)
{
	struct ulnet_id self = FROM_ID;

	turn = 1000; /* a millisecond would take seconds to simulate */
	begin(1);
	sessions();
	cr_assert_eq(
		add_list(test_of(LST_SERVICE_PING, UINT32_MAX, 2), &self, 1),
		0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	lnet_sim_run(sim, 1000);
	cr_assert_gt(sent_by(1), 100u);
	cr_assert_eq(active(), 1u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_STOP, 0, 0)), 0u);
	cr_assert_eq(active(), 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	end();
}

/* The node is closed while a test runs. */
Test(lst_run, closes_while_running)
{
	begin_running();
	end();
}

/* The node crashes while a test runs. */
Test(lst_run, crashes_while_running)
{
	begin_running();
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
	for (int i = 0; i < 3; i++)
		lst_free(lsts[i]);
}

/* A request that is not answered within @seconds (0: the default) is given up
 * and counted, and its unit stops. */
static void silent_target(uint32_t seconds)
{
	const struct ulnet_nid to = TO_ID.nid, from = FROM_ID.nid;
	struct lst_counters c;

	confs[1].rpc_s = seconds;
	begin(1);
	sessions();
	cr_assert_eq(add(test_of(LST_SERVICE_PING, 3, 1)), 0u);
	cr_assert_eq(lnet_sim_partition(sim, &from, &to, true), 0);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	seconds = seconds ? seconds : LST_RPC_S;
	lnet_sim_run(sim, (seconds - 1) * SEC);
	cr_assert_eq(active(), 1u);
	lnet_sim_run(sim, 5 * SEC);
	cr_assert_eq(active(), 0u);
	c = stats(FROM_ID);
	cr_assert_eq(c.ping_errors, 1u);
	cr_assert_eq(c.rpcs_dropped, 1u);
	cr_assert_eq(c.rpcs_sent, 1u);
	end();
}

Test(lst_run, silent_target)
{
	silent_target(0);
}

Test(lst_run, silent_target_for_less)
{
	silent_target(5);
}

/* A test whose destination cannot be reached at all goes on, but does not spend
 * the processor on it: each unit tries once a second. */
Test(lst_run, unreachable_target)
{
	struct lst_msg test = test_of(LST_SERVICE_PING, UINT32_MAX, 4);
	struct ulnet_id nowhere = id_of("10.9.9.9@tcp9");

	test.test.stop_on_error = 0;
	begin(2);
	sessions();
	cr_assert_eq(add_list(test, &nowhere, 1), 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_geq(sent_by(1), 4u * 9);
	cr_assert_leq(sent_by(1), 4u * 12);
	cr_assert_eq(stats(FROM_ID).ping_errors, sent_by(1));
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_STOP, 0, 1)), 0u);
	await_idle();
	/* A node that is closed meanwhile waits for nothing: end() looks. */
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	lnet_sim_run(sim, SEC / 2);
	end();
}

/* ---- a server that the test plays ---- */

/* The reply arrives before the bulk data, as it may over another connection.
 * @good: the data are right. */
static void reply_comes_first(bool good)
{
	static uint64_t data[1024];
	uint8_t in[LST_MSG_SIZE], out[LST_MSG_SIZE];
	struct lst_msg test = test_of(LST_SERVICE_BRW, 1, 1), msg;
	struct lst_msg reply = { .type = LST_BRW_REPLY, .features = LST_BYTES };
	struct seen seen = { 0 };
	struct ulnet_md umd = md_of(in, sizeof(in), LNET_MD_OP_PUT, &seen);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;

	begin(1);
	sessions();
	test.test.brw = (struct lst_brw_params){ .opcode = LST_READ,
						 .flags = LST_CHECK_FULL,
						 .length = sizeof(data) };
	cr_assert_eq(add(test), 0u);
	/* This entry matches before those of the service. */
	umd.threshold = 1;
	cr_assert_eq(LNetMEAttach(nodes[2], LST_PORTAL_TEST, ANY_ID,
				  LST_SERVICE_BRW, 0, LNET_UNLINK,
				  LNET_INS_BEFORE, &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), 0);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	lnet_sim_run(sim, 10 * MSEC);
	seen_types(&seen, LNET_EVENT_PUT, 0);
	cr_assert_eq(lst_msg_decode(&msg, in, sizeof(in)), 0);
	cr_assert_eq(lst_msg_encode(&reply, out), 0);
	put_bytes(nodes[2], FROM_ID, LST_PORTAL_REPLY, msg.reply_id, out,
		  sizeof(out));
	lnet_sim_run(sim, SEC);
	cr_assert_eq(active(), 1u);
	lst_data_fill(data, sizeof(data), 0, LST_CHECK_FULL);
	data[77] += !good;
	put_bytes(nodes[2], FROM_ID, LST_PORTAL_REPLY, msg.bulk_id, data,
		  sizeof(data));
	await_idle();
	cr_assert_eq(stats(FROM_ID).brw_errors, !good);
	cr_assert_eq(stats(FROM_ID).rpcs_dropped, 0u);
	end();
}

Test(lst_run, reply_before_data)
{
	reply_comes_first(true);
}

Test(lst_run, reply_before_wrong_data)
{
	reply_comes_first(false);
}
