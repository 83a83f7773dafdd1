/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of lst(8) on a simulated node, and members that run the
 * self-test service. lst_ask_all() is replaced by one that checks each message
 * before it is sent: kernel nodes hang or crash if they leave a session while
 * requests are under way, or get requests that a kernel's console would not
 * send.
 */
#include "services/lst/message.h"
#include "services/lst/lst_priv.h"
#include "tests/unit/lnet/cluster.h"
#include "tools/lst/lst_command.h"

#define SEC	  UINT64_C(1000000000)
#define NODES_MAX 12
#define PAGE	  4096u
#define WORDS_MAX 24

static struct lnet_sim *sim;
/* of the members: all nodes but the first */
static struct lst *lsts[NODES_MAX];
static unsigned int nnodes;
static struct lst_console console;
static unsigned int pending, removals, tests;

/* ---- requests that make kernel nodes crash or hang ---- */

static bool is_running(const struct lst *lst)
{
	const struct lst_batch *b;

	if (!lst->session)
		return false;
	TAILQ_FOREACH (b, &lst->session->batches, entry)
		if (lst_batch_active(b))
			return true;
	return false;
}

static void check_brw(const struct lst_brw_params *brw)
{
	uint32_t pages = (brw->length + PAGE - 1) / PAGE;

	cr_assert(brw->opcode == LST_READ || brw->opcode == LST_WRITE);
	cr_assert(brw->flags >= LST_CHECK_NONE && brw->flags <= LST_CHECK_FULL);
	cr_assert(brw->length > 0 && brw->length <= LNET_MTU);
	cr_assert_eq(brw->length % 8, 0u, "%u", brw->length);
	cr_assert_lt(brw->offset, PAGE);
	cr_assert_eq(brw->offset % 8, 0u, "%u", brw->offset);
	cr_assert_leq(brw->offset + brw->length, pages * PAGE, "%u at %u",
		      brw->length, brw->offset);
}

static void check_test(const struct lst_ask *ask)
{
	const struct lst_msg *msg = &ask->msg;

	tests++;
	cr_assert_neq(msg->test.loop, 0u);
	cr_assert(msg->test.concurrency >= 1 && msg->test.concurrency <= 1024);
	cr_assert_eq(msg->test.stop_on_error, 1);
	cr_assert(!msg->test.is_client ||
		  (msg->test.targets > 0 && msg->test.targets <= 341 &&
		   ask->bulk.length == msg->test.targets * LST_RECORD_SIZE));
	cr_assert(msg->test.service == LST_SERVICE_PING ||
		  msg->test.service == LST_SERVICE_BRW);
	if (msg->test.service == LST_SERVICE_BRW)
		check_brw(&msg->test.brw);
}

static void check(const struct lst_ask *ask)
{
	cr_assert_eq(ask->msg.features, LST_BYTES);
	switch (ask->msg.type) {
	case LST_REMOVE:
		removals++;
		for (unsigned int i = 1; i < nnodes; i++)
			cr_assert(!is_running(lsts[i]), "%u", i);
		break;
	case LST_MAKE:
		cr_assert(!ask->msg.make.force);
		break;
	case LST_TEST:
		check_test(ask);
		break;
	case LST_BATCH:
		cr_assert(ask->msg.batch.op >= LST_RUN &&
			  ask->msg.batch.op <= LST_QUERY);
		break;
	}
}

/* ---- sending requests, and waiting ---- */

static void on_done(struct lst_call *call)
{
	struct lst_ask *ask = LST_OF(call, struct lst_ask, call);

	ask->status = call->status;
	ask->reply = call->msg;
	pending--;
}

void lst_ask_all(struct lst_calls *calls, struct lst_ask *asks, unsigned int n,
		 uint32_t seconds)
{
	for (unsigned int i = 0; i < n; i++) {
		struct lst_ask *ask = &asks[i];

		check(ask);
		ask->call.done = on_done;
		ask->status = lst_call_begin(
			calls, &ask->call, ask->to, &ask->msg,
			ask->bulk.op ? &ask->bulk : NULL, seconds);
		pending += ask->status == 0;
	}
	while (pending) {
		lnet_sim_run(sim, MSEC);
		lst_calls_tick(calls, lnet_now(calls->node, LST_HOME));
	}
}

void lst_ask_wait(struct lst_calls *calls, uint64_t us)
{
	(void)calls;
	lnet_sim_run(sim, us * 1000);
}

/* ---- running commands ---- */

/* Runs the command of the given words. Returns its exit status. */
static int lst(const char *format, ...)
{
	const struct lst_command *command;
	struct lst_words read;
	char words[256], *argv[WORDS_MAX + 1], *save = NULL;
	int argc = 0, status;
	va_list ap;

	va_start(ap, format);
	vsnprintf(words, sizeof(words), format, ap);
	va_end(ap);
	for (char *w = strtok_r(words, " ", &save); w && argc < WORDS_MAX;
	     w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	argv[argc] = NULL;
	command = lst_command_find(argv[0]);
	cr_assert_not_null(command, "%s", argv[0]);
	status = lst_words_take(&read, command, argc, argv);
	return status ? status : command->run(&console, &read);
}

/* Opens a console, and @members nodes that can be members of a session. */
static void begin(unsigned int members, uint64_t latency)
{
	const struct ulnet_sim_link link = { .latency = latency };

	nnodes = members + 1;
	cr_assert_leq(nnodes, NODES_MAX);
	sim = cluster(nnodes);
	cluster_links(sim, &link);
	for (unsigned int i = 1; i < nnodes; i++)
		cr_assert_eq(lst_open(lnet_sim_node(sim, i), NULL, &lsts[i]),
			     0);
	console.node = lnet_sim_node(sim, 0);
	console.state.file = tmpfile();
	cr_assert(console.state.file);
	lst_calls_init(&console.calls, console.node, LST_HOME);
}

static void end(void)
{
	state_clear(&console.state);
	fclose(console.state.file);
	cr_assert_eq(lnet_sim_check(sim), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
	for (unsigned int i = 1; i < nnodes; i++)
		lst_free(lsts[i]);
}

/* ---- many requests at the same time ---- */

/* Sends 2560 requests to a server that has room for 64: the others wait in
 * LNet, and none may be lost. @test: the test in the words of add_test. */
static void crowd(const char *test, unsigned int loops)
{
	struct lst *server;

	begin(11, MSEC);
	server = lsts[11];
	cr_assert_eq(lst("new_session crowd"), 0);
	cr_assert_eq(lst("add_group clients 10.0.0.[2-11]@tcp"), 0);
	cr_assert_eq(lst("add_group servers 10.0.0.12@tcp"), 0);
	cr_assert_eq(lst("add_batch b"), 0);
	cr_assert_eq(lst("add_test --loop %u --concurrency 256 --from clients "
			 "--to servers %s",
			 loops, test),
		     0);
	cr_assert_eq(lst("run --wait b"), 0);
	for (unsigned int i = 1; i < 11; i++) {
		const struct lst_calls *calls = &lsts[i]->cpts[0].calls;

		cr_assert_eq(calls->sent, 256 * loops, "%u", i);
		cr_assert_eq(calls->dropped + calls->expired + calls->errors,
			     0u, "%u", i);
		cr_assert_eq(lsts[i]->session->ping_errors +
				     lsts[i]->session->brw_errors,
			     0u, "%u", i);
	}
	cr_assert_eq(server->dropped + server->errors, 0u);
	cr_assert_gt(server->received, 2560 * loops);
	cr_assert_eq(lst("end_session"), 0);
	end();
}

Test(lst_console, crowd)
{
	crowd("ping", 4);
}

Test(lst_console, crowd_that_reads)
{
	crowd("brw read check=full size=4k", 2);
}

Test(lst_console, crowd_that_writes)
{
	crowd("brw write check=full size=4k", 2);
}

/* ---- sessions one after the other ---- */

static uint32_t random_of(uint32_t n)
{
	uint32_t value;

	lnet_random(console.node, 0, &value, sizeof(value));
	return value % n;
}

/* Adds a test of bulk data with random settings, which may be refused. */
static void add_brw(void)
{
	static const char *const checks[] = { "none", "simple", "full" };
	uint32_t size =
		random_of(4) ? random_of(3 * PAGE) : random_of(LNET_MTU + 9);

	if (random_of(4))
		size -= size % 8;
	lst("add_test --concurrency %u --from clients --to servers "
	    "brw %s check=%s size=%u off=%u",
	    1 + random_of(4), random_of(2) ? "read" : "write",
	    checks[random_of(3)], size,
	    random_of(2) ? 0 : random_of(PAGE / 8 + 1) * 8);
}

/* Members leave the session after their tests have stopped, and not before. */
Test(lst_console, stop_and_end)
{
	unsigned int sent = 0;

	begin(3, 20 * MSEC);
	for (unsigned int i = 1; i <= 100; i++) {
		cr_assert_eq(lst("new_session s"), 0);
		cr_assert_eq(lst("add_group clients 10.0.0.[2-3]@tcp"), 0);
		cr_assert_eq(lst("add_group servers 10.0.0.[3-4]@tcp"), 0);
		cr_assert_eq(lst("add_batch b"), 0);
		cr_assert_eq(lst("add_test --from clients --to servers ping"),
			     0);
		add_brw();
		add_brw();
		cr_assert_eq(lst("run b"), 0);
		lnet_sim_run(sim, random_of(200) * MSEC);
		cr_assert(is_running(lsts[1]));
		if (i % 3 != 0)
			cr_assert_eq(
				lst(i % 3 == 1 ? "stop b" : "stop --force b"),
				0);
		cr_assert_eq(lst("end_session"), 0);
		cr_assert_eq(removals, 3 * i);
		for (unsigned int k = 1; k < nnodes; k++) {
			cr_assert_null(lsts[k]->session);
			cr_assert(LIST_EMPTY(&lsts[k]->zombies));
		}
		cr_assert_gt(lsts[1]->cpts[0].calls.sent, sent);
		sent = lsts[1]->cpts[0].calls.sent;
	}
	/* the tests of pings, and many of the others */
	cr_assert_gt(tests, 600u);
	end();
}
