/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test service on simulated nodes: a console that the test plays, a
 * member "from" that sends, and a member "to" that is sent to. */
#ifndef TESTS_LST_RIG_H
#define TESTS_LST_RIG_H

#include "services/lst/message.h"
#include "services/lst/lst_priv.h"
#include "tests/unit/lnet/cluster.h"

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

static inline void begin(unsigned int cpts)
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

static inline void end(void)
{
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(lsts[i]->units, 0u);
		lst_free(lsts[i]);
	}
}

static inline uint32_t sent_by(int i)
{
	uint32_t n = 0;

	for (unsigned int k = 0; k < lsts[i]->ncpts; k++)
		n += lsts[i]->cpts[k].calls.sent;
	return n;
}

/* ---- the console ---- */

static unsigned int answers;
static uint64_t turn = MSEC; /* ns between two looks for a reply */

static inline void on_answer(struct lst_call *call)
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
static inline int ask_begin(void *arg)
{
	struct asking *a = arg;

	a->call.done = on_answer;
	return lst_call_begin(&calls, &a->call, a->to, &a->msg, a->bulk, 60);
}

static inline int ask_cancel(void *arg)
{
	struct asking *a = arg;

	lst_call_cancel(&a->call);
	return 0;
}

/* Sends @msg to @to. Returns the reply, or NULL if there is none within 10 s.
 */
static inline const struct lst_msg *ask_with(struct ulnet_id to,
					     struct lst_msg msg,
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

static inline const struct lst_msg *ask(struct ulnet_id to, struct lst_msg msg)
{
	if (msg.type != LST_BRW && msg.type != LST_PING && !msg.session.console)
		msg.session = alpha;
	msg.features |= LST_BYTES;
	return ask_with(to, msg, NULL);
}

static inline uint32_t status_of(struct ulnet_id to, struct lst_msg msg)
{
	const struct lst_msg *reply = ask(to, msg);

	cr_assert(reply);
	return reply->status;
}

static inline struct lst_msg make_of(struct lst_session_id id, uint32_t force)
{
	return (struct lst_msg){ .type = LST_MAKE,
				 .session = id,
				 .make.force = force,
				 .name = "alpha" };
}

static inline struct lst_msg batch_of(uint32_t op, uint32_t index, uint32_t arg)
{
	return (struct lst_msg){
		.type = LST_BATCH,
		.batch = { .id = BATCH, .op = op, .index = index, .arg = arg },
	};
}

static inline struct lst_msg test_of(uint32_t service, uint32_t loop,
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
static inline uint32_t add_list(struct lst_msg msg, const struct ulnet_id *ids,
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

static inline uint32_t add(struct lst_msg msg)
{
	struct ulnet_id to = TO_ID;

	return add_list(msg, &to, 1);
}

static inline void sessions(void)
{
	cr_assert_eq(status_of(FROM_ID, make_of(alpha, 0)), 0u);
	cr_assert_eq(status_of(TO_ID, make_of(alpha, 0)), 0u);
}

static inline uint32_t active(void)
{
	const struct lst_msg *reply = ask(FROM_ID, batch_of(LST_QUERY, 0, 0));

	cr_assert(reply);
	cr_assert_eq(reply->status, 0u);
	return reply->batch.active;
}

static inline void await_idle(void)
{
	for (int i = 0; active(); i++) {
		cr_assert_lt(i, 1000);
		lnet_sim_run(sim, 10 * MSEC);
	}
}

static inline struct lst_counters stats(struct ulnet_id of)
{
	const struct lst_msg *reply =
		ask(of, (struct lst_msg){ .type = LST_STAT });

	cr_assert(reply);
	cr_assert_eq(reply->status, 0u);
	return reply->stat;
}

#endif
