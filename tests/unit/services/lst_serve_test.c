/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test service: messages of real nodes, sessions, consoles, bulk
 * requests, and what is refused. (Tests that run: lst_run_test.c.) */
#include <malloc.h>

#include "tests/unit/lnet/golden.h"
#include "tests/unit/services/lst_rig.h"

/* ---- messages of real nodes ---- */

/* Sends the request of a capture. The first @compared bytes of the reply must
 * be those of the capture. */
static void golden_ask(const char *request, const char *reply, size_t compared)
{
	struct golden q = golden(request), a = golden(reply);
	const uint8_t *out = golden_payload(&q);
	struct lst_msg msg;
	uint8_t in[LST_MSG_SIZE];
	struct seen seen = { 0 };
	struct ulnet_md umd = md_of(in, sizeof(in), LNET_MD_OP_PUT, &seen);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;

	cr_assert_eq(lst_msg_decode(&msg, out, LST_MSG_SIZE), 0);
	umd.threshold = 1;
	cr_assert_eq(LNetMEAttach(nodes[0], LST_PORTAL_REPLY, FROM_ID,
				  msg.reply_id, 0, LNET_UNLINK, LNET_INS_LOCAL,
				  &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), 0);
	put_bytes(nodes[0], FROM_ID, lst_request_portal(msg.type),
		  lst_request_bits(msg.type), out, LST_MSG_SIZE);
	lnet_sim_run(sim, SEC);
	seen_types(&seen, LNET_EVENT_PUT, 0);
	cr_assert_eq(memcmp(in, golden_payload(&a), compared), 0, "%s", reply);
}

static void golden_list(void)
{
	static uint8_t bytes[LST_RECORD_SIZE];
	struct golden list = golden("lst-list"),
		      q = golden("lst-test-ping-request");
	struct ulnet_md umd = md_of(bytes, sizeof(bytes), LNET_MD_OP_GET, NULL);
	struct ulnet_me_handle me;
	struct ulnet_md_handle md;
	struct lst_msg msg;

	memcpy(bytes, golden_payload(&list), sizeof(bytes));
	cr_assert_eq(lst_msg_decode(&msg, golden_payload(&q), LST_MSG_SIZE), 0);
	cr_assert_eq(LNetMEAttach(nodes[0], LST_PORTAL_REPLY, FROM_ID,
				  msg.bulk_id, 0, LNET_UNLINK, LNET_INS_LOCAL,
				  &me),
		     0);
	cr_assert_eq(LNetMDAttach(me, &umd, LNET_UNLINK, &md), 0);
}

/* The session of a kernel's console: the replies are those of a kernel, without
 * the bytes that kernels leave uninitialized at the end; the test's 6 pings are
 * sent. */
Test(lst_serve, capture)
{
	begin(1);
	golden_ask("lst-make-request", "lst-make-reply", LST_MSG_SIZE);
	golden_list();
	golden_ask("lst-test-ping-request", "lst-test-reply", 44);
	golden_ask("lst-run-request", "lst-batch-reply", 44);
	cr_assert_eq(sent_by(1), 6u);
	cr_assert_eq(lsts[0]->received, 6u);
	golden_ask("lst-query-request", "lst-batch-reply", 48);
	golden_ask("lst-stop-request", "lst-batch-reply", 44);
	golden_ask("lst-ping-request", "lst-ping-reply", 36);
	cr_assert_eq(lsts[1]->session->ping_errors, 0u);
	end();
}

/* ---- sessions ---- */

Test(lst_serve, session)
{
	const struct lst_session_id none = LST_SESSION_NONE;
	const struct lst_msg *reply;

	begin(1);
	cr_assert_eq(status_of(FROM_ID, (struct lst_msg){ .type = LST_DEBUG }),
		     (uint32_t)ESRCH);
	cr_assert_eq(status_of(FROM_ID, make_of(none, 0)), (uint32_t)EINVAL);
	cr_assert_eq(status_of(FROM_ID, make_of(alpha, 0)), 0u);
	cr_assert_eq(status_of(FROM_ID, make_of(alpha, 0)), 0u);
	reply = ask(FROM_ID, make_of(other, 0));
	cr_assert_eq(reply->status, (uint32_t)EBUSY);
	cr_assert_str_eq(reply->name, "alpha");
	cr_assert(lst_session_eq(&reply->session, &alpha));
	reply = ask(FROM_ID,
		    (struct lst_msg){ .type = LST_DEBUG, .session = other });
	cr_assert_eq(reply->status, 0u);
	cr_assert_str_eq(reply->name, "alpha");
	cr_assert_eq(reply->timeout, (uint32_t)LST_SESSION_S);
	cr_assert_eq(status_of(FROM_ID, (struct lst_msg){ .type = LST_REMOVE,
							  .session = other }),
		     (uint32_t)EBUSY);
	/* The session was made twice, and is removed at once. */
	reply = ask(FROM_ID, (struct lst_msg){ .type = LST_REMOVE });
	cr_assert_eq(reply->status, 0u);
	cr_assert(lst_session_eq(&reply->session, &alpha));
	reply = ask(FROM_ID, (struct lst_msg){ .type = LST_REMOVE });
	cr_assert_eq(reply->status, 0u);
	cr_assert(lst_session_eq(&reply->session, &none));
	cr_assert_eq(status_of(FROM_ID, (struct lst_msg){ .type = LST_REMOVE }),
		     (uint32_t)ESRCH);
	end();
}

/* ---- who may be a console ---- */

/* Opens the nodes; "to" permits the consoles of @text only. */
static struct ulnet_nidlist *begin_permitting(const char *text)
{
	struct ulnet_nidlist *list;

	cr_assert_eq(lnet_nidlist_parse(text, &list, NULL), 0);
	confs[2].consoles = list;
	begin(2);
	return list;
}

Test(lst_serve, no_console)
{
	const struct lst_session_id none = LST_SESSION_NONE;
	struct ulnet_nidlist *list = begin_permitting("10.77.0.[1-9]@tcp");
	static const uint32_t types[] = { LST_MAKE, LST_REMOVE, LST_BATCH,
					  LST_STAT, LST_TEST,	LST_DEBUG };
	const struct lst_msg *reply;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		reply = ask(TO_ID, (struct lst_msg){ .type = types[i],
						     .session = alpha });
		cr_assert_eq(reply->status, (uint32_t)EACCES, "%zu", i);
		cr_assert(lst_session_eq(&reply->session, &none));
	}
	cr_assert_null(lsts[2]->session);
	cr_assert_eq(status_of(FROM_ID, make_of(alpha, 0)), 0u);
	end();
	lnet_nidlist_free(list);
}

/* With a list of consoles, tests are served in a session only. */
Test(lst_serve, by_the_word_of_a_console)
{
	struct ulnet_nidlist *list = begin_permitting("10.77.0.13@tcp *@o2ib");
	struct lst_msg ping = { .type = LST_PING,
				.ping.magic = LST_PING_MAGIC };
	struct lst_msg read = { .type = LST_BRW,
				.brw = { .opcode = LST_READ,
					 .flags = LST_CHECK_NONE,
					 .length = 8 } };

	cr_assert_eq(status_of(TO_ID, ping), (uint32_t)ESRCH);
	cr_assert_eq(status_of(TO_ID, read), (uint32_t)ESRCH);
	sessions();
	cr_assert_eq(status_of(TO_ID, ping), 0u);
	cr_assert_eq(add(test_of(LST_SERVICE_PING, 10, 2)), 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)), 0u);
	await_idle();
	cr_assert_eq(stats(FROM_ID).ping_errors, 0u);
	cr_assert_eq(lsts[2]->received, 24u);
	cr_assert_eq(status_of(TO_ID, (struct lst_msg){ .type = LST_REMOVE }),
		     0u);
	cr_assert_eq(status_of(TO_ID, ping), (uint32_t)ESRCH);
	end();
	lnet_nidlist_free(list);
}

/* Groups exist at consoles only: a request to join a group of this node is
 * answered with ESRCH, and does not keep a slot. */
Test(lst_serve, join)
{
	const struct lst_session_id none = LST_SESSION_NONE;
	const struct lst_msg *reply;

	begin(2);
	sessions();
	for (int i = 0; i < 2 * LST_SLOTS; i++) {
		reply = ask(TO_ID, (struct lst_msg){ .type = LST_JOIN,
						     .name = "clients" });
		cr_assert(reply);
		cr_assert_eq(reply->status, (uint32_t)ESRCH);
		cr_assert(lst_session_eq(&reply->session, &none));
	}
	end();
}

/* ---- how long sessions last ---- */

/* A session ends after some time without requests of its console. Neither what
 * other consoles ask, nor what is refused, prolongs it. */
Test(lst_serve, session_expires)
{
	begin(1);
	sessions();
	lnet_sim_run(sim, 60 * SEC);
	cr_assert_eq(status_of(FROM_ID, (struct lst_msg){ .type = LST_DEBUG }),
		     0u);
	lnet_sim_run(sim, 60 * SEC);
	cr_assert(lsts[1]->session);
	cr_assert_null(lsts[2]->session);
	cr_assert_eq(status_of(FROM_ID, (struct lst_msg){ .type = LST_DEBUG,
							  .session = other }),
		     0u);
	cr_assert_eq(status_of(FROM_ID, make_of(other, 0)), (uint32_t)EBUSY);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)),
		     (uint32_t)ENOENT);
	lnet_sim_run(sim, 50 * SEC);
	cr_assert_null(lsts[1]->session);
	end();
}

Test(lst_serve, session_time)
{
	confs[1].session_s = 20;
	begin(1);
	sessions();
	cr_assert_eq(ask(FROM_ID, make_of(alpha, 0))->timeout, 20u);
	lnet_sim_run(sim, 15 * SEC);
	cr_assert_eq(
		ask(FROM_ID, (struct lst_msg){ .type = LST_DEBUG })->timeout,
		20u);
	lnet_sim_run(sim, 15 * SEC);
	cr_assert(lsts[1]->session);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_null(lsts[1]->session);
	cr_assert(lsts[2]->session);
	end();
}

Test(lst_serve, refused)
{
	struct lst_msg test = test_of(LST_SERVICE_PING, 1, 1);

	begin(1);
	cr_assert_eq(add(test), (uint32_t)ENOENT);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)),
		     (uint32_t)ESRCH);
	sessions();
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_RUN, 0, 0)),
		     (uint32_t)ENOENT);
	test.test.loop = 0;
	cr_assert_eq(add(test), (uint32_t)EINVAL);
	test = test_of(LST_SERVICE_PING, 1, 1025);
	cr_assert_eq(add(test), (uint32_t)EINVAL);
	test = test_of(7, 1, 1);
	cr_assert_eq(add(test), (uint32_t)EINVAL);
	test = test_of(LST_SERVICE_PING, 1, 1);
	test.features = 3;
	cr_assert_eq(add(test), (uint32_t)EPROTO);
	test.features = 0;
	cr_assert_eq(add(test), (uint32_t)EPROTO);
	/* A list of more destinations than allowed is not fetched. */
	test = test_of(LST_SERVICE_PING, 1, 1024);
	test.test.is_client = 1;
	test.test.targets = 17;
	cr_assert_eq(status_of(FROM_ID, test), (uint32_t)ENOMEM);
	test = test_of(LST_SERVICE_BRW, 1, 257);
	test.test.brw = (struct lst_brw_params){ .opcode = LST_READ,
						 .flags = LST_CHECK_NONE,
						 .length = LNET_MTU };
	cr_assert_eq(add(test), (uint32_t)ENOMEM);
	test.test.concurrency = 1;
	test.test.brw.length = LNET_MTU + 1;
	cr_assert_eq(add(test), (uint32_t)EINVAL);
	test.test.brw.length = 12;
	test.test.brw.flags = LST_CHECK_FULL;
	cr_assert_eq(add(test), (uint32_t)EINVAL);
	cr_assert_eq(add(test_of(LST_SERVICE_PING, 1, 1)), 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_QUERY, 1, 0)), 0u);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_QUERY, 2, 0)),
		     (uint32_t)ENOENT);
	cr_assert_eq(status_of(FROM_ID, batch_of(LST_QUERY, UINT32_MAX, 0)),
		     (uint32_t)EINVAL);
	cr_assert_null(ask(FROM_ID, batch_of(4, 0, 0)));
	end();
}

/* ---- bulk requests that the test sends ---- */

static const struct lst_msg *brw(uint32_t op, uint32_t check, void *data,
				 uint32_t length, uint32_t features)
{
	struct lst_bulk bulk = { op == LST_WRITE ? LNET_MD_OP_GET
						 : LNET_MD_OP_PUT,
				 data, length };

	return ask_with(TO_ID,
			(struct lst_msg){ .type = LST_BRW,
					  .features = features,
					  .brw = { .opcode = op,
						   .flags = check,
						   .length = length } },
			&bulk);
}

/* One word of the data is wrong; the weaker checks cover the first and the last
 * word of a page only. */
Test(lst_serve, wrong_word)
{
	static uint64_t data[1024];

	begin(1);
	for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
		bool edge = i % 512 == 0 || i % 512 == 511;

		if (!edge && i % 100)
			continue;
		lst_data_fill(data, sizeof(data), 0, LST_CHECK_FULL);
		data[i]++;
		for (uint32_t check = 1; check <= LST_CHECK_FULL; check++) {
			bool seen = check == LST_CHECK_FULL ||
				    (check == LST_CHECK_SIMPLE && edge);

			cr_assert_eq(brw(LST_WRITE, check, data, sizeof(data),
					 LST_BYTES)
					     ->status,
				     seen ? (uint32_t)EBADMSG : 0u, "%zu", i);
		}
	}
	cr_assert_eq(
		brw(LST_READ, LST_CHECK_FULL, data, sizeof(data), LST_BYTES)
			->status,
		0u);
	cr_assert(lst_data_good(data, sizeof(data), 0, LST_CHECK_FULL, false));
	end();
}

/* Without a check, too, the data must not contain other memory of the node. */
Test(lst_serve, unchecked)
{
	static uint64_t data[1024];

	mallopt(M_PERTURB, 0x5a);
	begin(1);
	memset(data, 1, sizeof(data));
	cr_assert_eq(
		brw(LST_READ, LST_CHECK_SIMPLE, data, sizeof(data), LST_BYTES)
			->status,
		0u);
	for (size_t i = 0; i < ARRAY_SIZE(data); i++)
		cr_assert(i % 512 == 0 || i % 512 == 511 || data[i] == 0, "%zu",
			  i);
	end();
}

Test(lst_serve, brw_refused)
{
	static uint64_t data[1024];
	static const struct {
		uint32_t op, check, length, features, status;
	} cases[] = {
		{ 0, 1, 8, 1, EINVAL },	   { 3, 1, 8, 1, EINVAL },
		{ 1, 0, 8, 1, EINVAL },	   { 1, 4, 8, 1, EINVAL },
		{ 2, 2, 12, 1, EINVAL },   { 1, 1, 8, 2, EPROTO },
		{ 2, 2, 1024, 0, EINVAL }, { 1, 1, 4096, 0, 0 },
		{ 1, 1, 12, 1, 0 },
	};

	begin(1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_eq(brw(cases[i].op, cases[i].check, data,
				 cases[i].length, cases[i].features)
				     ->status,
			     cases[i].status, "%zu", i);
	end();
}

/* ---- messages that must be refused ---- */

static void throw_bytes(uint64_t service, const uint8_t *bytes, size_t n)
{
	put_bytes(nodes[0], TO_ID,
		  service < 10 ? LST_PORTAL_FRAME : LST_PORTAL_TEST, service,
		  bytes, n);
	lnet_sim_run(sim, MSEC);
}

Test(lst_serve, nonsense)
{
	struct golden ping = golden("lst-ping-request");
	uint8_t bytes[LST_MSG_SIZE];

	begin(1);
	memcpy(bytes, golden_payload(&ping), sizeof(bytes));
	for (int i = 0; i < 2 * LST_SLOTS; i++) {
		bytes[0] ^= 1; /* magic */
		throw_bytes(LST_SERVICE_PING, bytes, sizeof(bytes));
		bytes[0] ^= 1;
		throw_bytes(LST_SERVICE_PING, bytes, 100);
		throw_bytes(LST_SERVICE_BRW, bytes, sizeof(bytes));
		throw_bytes(LST_SERVICE_MAKE, bytes, sizeof(bytes));
		bytes[32] ^= 1; /* magic of ping */
		throw_bytes(LST_SERVICE_PING, bytes, sizeof(bytes));
		bytes[32] ^= 1;
	}
	cr_assert_eq(lsts[2]->received, 10u * LST_SLOTS);
	cr_assert_eq(lsts[2]->dropped, 10u * LST_SLOTS);
	cr_assert_eq(
		status_of(TO_ID,
			  (struct lst_msg){ .type = LST_PING,
					    .ping.magic = LST_PING_MAGIC }),
		0u);
	end();
}

/* A client whose data cannot be fetched loses its slot after some time. */
Test(lst_serve, no_data)
{
	struct golden write = golden("lst-write-request");
	static uint64_t data[128];

	begin(1);
	for (int i = 0; i < LST_SLOTS; i++)
		throw_bytes(LST_SERVICE_BRW, golden_payload(&write),
			    LST_MSG_SIZE);
	lst_data_fill(data, sizeof(data), 0, LST_CHECK_FULL);
	cr_assert_null(brw(LST_WRITE, LST_CHECK_FULL, data, sizeof(data), 1));
	/* The last request waited for a slot, and its sender has given it up.
	 */
	lnet_sim_run(sim, 70 * SEC);
	cr_assert_eq(lsts[2]->dropped, (uint32_t)LST_SLOTS + 1);
	cr_assert_eq(
		brw(LST_WRITE, LST_CHECK_FULL, data, sizeof(data), 1)->status,
		0u);
	end();
}
