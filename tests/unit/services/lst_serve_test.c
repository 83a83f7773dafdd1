/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test service on simulated nodes: a console that the test plays, a
 * member "from" that sends, and a member "to" that is sent to. */
#include <malloc.h>

#include "services/lst/message.h"
#include "services/lst/lst_priv.h"
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/lnet/golden.h"

#define SEC	UINT64_C(1000000000)
#define CONSOLE UINT64_C(0x000200000a4d000d) /* 10.77.0.13@tcp */
#define FROM_ID id_of("10.77.0.14@tcp")
#define TO_ID	id_of("10.77.0.15@tcp")
#define BATCH	2

static struct lnet_sim *sim;
static struct lnet *nodes[3]; /* console, "from", "to" */
static struct lst *lsts[3];
static struct lst_conf confs[3];
static struct lst_calls calls; /* of the console */
static const struct lst_session_id alpha = { CONSOLE, 0x10b7a };
static const struct lst_session_id other = { CONSOLE, 0x11111 };

static void begin(unsigned int cpts)
{
	static const char *const nids[] = { "10.77.0.13@tcp", "10.77.0.14@tcp",
					    "10.77.0.15@tcp" };

	cr_assert_eq(lnet_sim_new(1, cpts, &sim), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(plain_node(sim, nids[i], NULL, NULL, NULL), i);
		nodes[i] = lnet_sim_node(sim, (unsigned int)i);
		cr_assert_eq(lst_open(nodes[i], &confs[i], &lsts[i]), 0);
	}
	memset(&calls, 0, sizeof(calls));
	lst_calls_init(&calls, nodes[0], LST_HOME);
}

static void end(void)
{
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(lsts[i]->units, 0u);
		lst_free(lsts[i]);
	}
}

static uint32_t sent_by(int i)
{
	uint32_t n = 0;

	for (unsigned int k = 0; k < lsts[i]->ncpts; k++)
		n += lsts[i]->cpts[k].calls.sent;
	return n;
}

/* ---- the console ---- */

static unsigned int answers;
static uint64_t turn = MSEC; /* ns between two looks for a reply */

static void on_answer(struct lst_call *call)
{
	(void)call;
	answers++;
}

struct asking {
	struct lst_call call;
	struct ulnet_id to;
	struct lst_msg msg;
	const struct lst_bulk *bulk;
};

/* Begins the call on the CPT that calls live on; outside of turns LNet would
 * spread the replies over CPTs. */
static int ask_begin(void *arg)
{
	struct asking *a = arg;

	a->call.done = on_answer;
	return lst_call_begin(&calls, &a->call, a->to, &a->msg, a->bulk, 60);
}

static int ask_cancel(void *arg)
{
	struct asking *a = arg;

	lst_call_cancel(&a->call);
	return 0;
}

/* Sends @msg to @to. Returns the reply, or NULL if there is none within 10 s.
 */
static const struct lst_msg *ask_with(struct ulnet_id to, struct lst_msg msg,
				      const struct lst_bulk *bulk)
{
	static struct asking a;
	unsigned int before = answers;

	a = (struct asking){ .to = to, .msg = msg, .bulk = bulk };
	cr_assert_eq(lnet_call(nodes[0], LST_HOME, ask_begin, &a), 0);
	for (uint64_t ns = 0; answers == before && ns < 10 * SEC; ns += turn)
		lnet_sim_run(sim, turn);
	if (answers == before) {
		lnet_call(nodes[0], LST_HOME, ask_cancel, &a);
		lnet_sim_run(sim, 10 * MSEC);
		cr_assert_eq(answers, before + 1);
	}
	return a.call.status ? NULL : &a.call.msg;
}

static const struct lst_msg *ask(struct ulnet_id to, struct lst_msg msg)
{
	if (msg.type != LST_BRW && msg.type != LST_PING && !msg.session.console)
		msg.session = alpha;
	msg.features |= LST_BYTES;
	return ask_with(to, msg, NULL);
}

static uint32_t status_of(struct ulnet_id to, struct lst_msg msg)
{
	const struct lst_msg *reply = ask(to, msg);

	cr_assert(reply);
	return reply->status;
}

static struct lst_msg make_of(struct lst_session_id id, uint32_t force)
{
	return (struct lst_msg){ .type = LST_MAKE,
				 .session = id,
				 .make.force = force,
				 .name = "alpha" };
}

static struct lst_msg batch_of(uint32_t op, uint32_t index, uint32_t arg)
{
	return (struct lst_msg){
		.type = LST_BATCH,
		.batch = { .id = BATCH, .op = op, .index = index, .arg = arg },
	};
}

static struct lst_msg test_of(uint32_t service, uint32_t loop,
			      uint32_t concurrency)
{
	return (struct lst_msg){ .type = LST_TEST,
				 .session = alpha,
				 .features = LST_BYTES,
				 .test = { .batch = BATCH,
					   .service = service,
					   .loop = loop,
					   .concurrency = concurrency,
					   .stop_on_error = 1 } };
}

/* Adds a test with the @n destinations @ids to the node "from". Returns the
 * status. */
static uint32_t add_list(struct lst_msg msg, const struct ulnet_id *ids,
			 uint32_t n)
{
	uint8_t list[64 * LST_RECORD_SIZE];
	struct lst_bulk bulk = { .op = LNET_MD_OP_GET,
				 .memory = list,
				 .length = n * LST_RECORD_SIZE };
	const struct lst_msg *reply;

	cr_assert_eq(lst_list_encode(ids, n, list), 0);
	msg.test.is_client = 1;
	msg.test.targets = n;
	reply = ask_with(FROM_ID, msg, &bulk);
	cr_assert(reply);
	return reply->status;
}

static uint32_t add(struct lst_msg msg)
{
	struct ulnet_id to = TO_ID;

	return add_list(msg, &to, 1);
}

static void sessions(void)
{
	cr_assert_eq(status_of(FROM_ID, make_of(alpha, 0)), 0u);
	cr_assert_eq(status_of(TO_ID, make_of(alpha, 0)), 0u);
}

static uint32_t active(void)
{
	const struct lst_msg *reply = ask(FROM_ID, batch_of(LST_QUERY, 0, 0));

	cr_assert(reply);
	cr_assert_eq(reply->status, 0u);
	return reply->batch.active;
}

static void await_idle(void)
{
	for (int i = 0; active(); i++) {
		cr_assert_lt(i, 1000);
		lnet_sim_run(sim, 10 * MSEC);
	}
}

static struct lst_counters stats(struct ulnet_id of)
{
	const struct lst_msg *reply =
		ask(of, (struct lst_msg){ .type = LST_STAT });

	cr_assert(reply);
	cr_assert_eq(reply->status, 0u);
	return reply->stat;
}

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
Test(lst_serve, memory_is_given_back)
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

Test(lst_serve, tests_run)
{
	run_all(1);
}

Test(lst_serve, tests_run_on_cpts)
{
	run_all(3);
}

/* A test has several destinations, one of them the sending node itself. */
Test(lst_serve, several)
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

Test(lst_serve, stopped)
{
	stopped(1);
}

Test(lst_serve, stopped_on_cpts)
{
	stopped(3);
}

/* A request is sent by the CPT that owns the NID of its destination. */
Test(lst_serve, cpts)
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
Test(lst_serve, to_itself)
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
Test(lst_serve, closes_while_running)
{
	begin_running();
	end();
}

/* The node crashes while a test runs. */
Test(lst_serve, crashes_while_running)
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

Test(lst_serve, silent_target)
{
	silent_target(0);
}

Test(lst_serve, silent_target_for_less)
{
	silent_target(5);
}

/* A test whose destination cannot be reached at all goes on, but does not spend
 * the processor on it: each unit tries once a second. */
Test(lst_serve, unreachable_target)
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

Test(lst_serve, reply_before_data)
{
	reply_comes_first(true);
}

Test(lst_serve, reply_before_wrong_data)
{
	reply_comes_first(false);
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
