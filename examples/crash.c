/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: crash [SEED [durable|volatile|forgetful]]
 *
 * A test of a durable service, in the simulator: a bank, whose node is killed
 * again and again while a client deposits 1 each millisecond, over a network
 * that loses messages. The service and its client are written as for a real
 * network; only main() and what it calls knows of the simulation.
 *
 * durable: each call ends as executed, and the account has one for each call.
 * volatile: the same service without its store's records. Of calls under way
 * when the node is killed nobody can tell whether they were executed, and the
 * client is told so. forgetful: a mistake, which the test must find: the
 * handler stores the deposit without the record, and calls are executed twice.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/sim.h>
#include <ulnet/store.h>

#define CALLS	 500
#define DEADLINE 60000000	   /* us for each call */
#define MS	 UINT64_C(1000000) /* ns, the unit of the simulator */

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "crash: %s: %s\n", what, strerror(-rc));
	exit(1);
}

/* ---- the store, on a real disk, where the account is ---- */

#define ACCOUNT "account"

static struct ulrpc_store *store; /* NULL while the node is dead */
static char dir[] = "/tmp/crash.XXXXXX";

static void store_open(void)
{
	/* What is to outlive a killed process need not be on the disk itself,
	 * and the test is faster. A real service leaves that out. */
	const struct ulrpc_store_conf conf = { .no_sync = true };
	char why[ULRPC_STORE_TEXT];

	if (ulrpc_store_open(dir, &conf, &store, why)) {
		fprintf(stderr, "crash: %s: %s\n", dir, why);
		exit(1);
	}
}

static void store_close(void)
{
	ulrpc_store_close(store);
	store = NULL;
}

static void dir_remove(void)
{
	char command[40];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	if (system(command))
		fprintf(stderr, "crash: %s stays\n", dir);
}

static int64_t store_total(void)
{
	int64_t total = 0;
	size_t length = sizeof(total);
	int rc = ulrpc_store_read(store, ACCOUNT, strlen(ACCOUNT), &total,
				  &length);

	check(rc == -ENOENT ? 0 : rc, "account");
	return total;
}

static int account_add(struct ulrpc_txn *txn, int64_t amount)
{
	int64_t total = 0;
	size_t length = sizeof(total);
	int rc = ulrpc_txn_get(txn, ACCOUNT, strlen(ACCOUNT), &total, &length);

	if (rc && rc != -ENOENT)
		return rc;
	total += amount;
	return ulrpc_txn_put(txn, ACCOUNT, strlen(ACCOUNT), &total,
			     sizeof(total));
}

/* The transaction: the deposit and the record of its call, or neither. */
static int store_commit(int64_t amount, const struct ulrpc_record *record)
{
	struct ulrpc_txn *txn;
	int rc = ulrpc_txn_begin(store, &txn);

	if (rc)
		return rc;
	rc = account_add(txn, amount);
	if (!rc && record)
		rc = ulrpc_txn_record(txn, record);
	if (!rc)
		return ulrpc_txn_commit(txn);
	ulrpc_txn_abort(txn);
	return rc;
}

/* ---- the service ---- */

static enum { DURABLE, VOLATILE, FORGETFUL } mode;

/* On a worker. The sleeps stand for the time that a disk takes; what kills the
 * node may do so in both. After that nothing may reach the store, and nobody
 * gets the reply: the sleep fails, as everything does that waits. */
static void on_deposit(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	struct ulrpc_record record;
	int64_t amount;
	int rc;

	(void)arg;
	if (length != sizeof(amount)) {
		ulrpc_refuse(request);
		return;
	}
	memcpy(&amount, body, sizeof(amount));
	rc = ulrpc_request_sleep(request, 300);
	if (!rc && mode == DURABLE)
		rc = ulrpc_request_record(request, 0, "", 0, &record);
	if (!rc)
		rc = store_commit(amount, mode == DURABLE ? &record : NULL);
	if (rc) {
		ulrpc_fail(request, rc);
		return;
	}
	ulrpc_request_sleep(request, 300);
	ulrpc_reply(request, "", 0);
}

/* Sets the server's node up, at first and whenever it starts again. */
static int server_start(void *arg, unsigned int index, struct lnet *node)
{
	const struct ulrpc_method_conf deposit = {
		.name = "deposit",
		.handler = on_deposit,
		.semantics = ULRPC_EXACTLY_ONCE,
	};
	struct ulrpc_service_conf conf = {
		.name = "bank",
		.methods = &deposit,
		.nmethods = 1,
		.workers_min = 4,
	};
	struct ulrpc *rpc;
	int rc = ulrpc_open(node, NULL, &rpc);

	(void)arg;
	(void)index;
	store_open();
	if (mode != VOLATILE)
		conf.durable = ulrpc_store_durable(store);
	return rc ? rc : ulrpc_service_start(rpc, &conf, NULL);
}

/* ---- its client ---- */

static struct {
	struct ulrpc_client *bank;
	unsigned int begun, ended, executed, not_executed, unknown;
} client;

static int client_start(void *arg, unsigned int index, struct lnet *node)
{
	struct ulnet_nid server;
	struct ulrpc_client_conf conf = { .nids = &server,
					  .nnids = 1,
					  .service = "bank" };
	struct ulrpc *rpc;
	int rc = lnet_nid_parse("10.0.0.1@tcp", &server);

	(void)arg;
	(void)index;
	if (!rc)
		rc = ulrpc_open(node, NULL, &rpc);
	return rc ? rc : ulrpc_client_open(rpc, &conf, &client.bank);
}

static void on_end(void *arg, const struct ulrpc_outcome *end,
		   const void *reply, size_t length)
{
	(void)arg;
	(void)reply;
	(void)length;
	client.ended++;
	if (end->execution == ULRPC_EXECUTED && !end->status)
		client.executed++;
	else if (end->execution == ULRPC_EXECUTION_UNKNOWN)
		client.unknown++;
	else
		client.not_executed++; /* or failed, which is the same here */
}

static int deposit_one(void)
{
	const struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					      .semantics = ULRPC_EXACTLY_ONCE };
	const int64_t one = 1;

	return ulrpc_call(client.bank, ulrpc_method("deposit"), &one,
			  sizeof(one), &conf, on_end, NULL, NULL);
}

/* ---- the scenario ---- */

static struct lnet_sim *sim;
static unsigned int crashes;

static void call_each_ms(void *arg)
{
	check(deposit_one(), "call");
	if (++client.begun < CALLS)
		check(lnet_sim_at(sim, MS, call_each_ms, arg), "timer");
}

static void server_crash(void *arg);

static void server_restart(void *arg)
{
	check(lnet_sim_restart(sim, 0), "restart");
	check(lnet_sim_at(sim, lnet_sim_random(sim, 100 * MS), server_crash,
			  arg),
	      "timer");
}

static void server_crash(void *arg)
{
	if (client.ended == CALLS)
		return;
	check(lnet_sim_crash(sim, 0), "crash");
	crashes++;
	store_close(); /* with what was committed, as if it had been killed */
	check(lnet_sim_at(sim, lnet_sim_random(sim, 50 * MS), server_restart,
			  arg),
	      "timer");
}

static void build(uint64_t seed)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct ulnet_sim_link link = { .latency = MS / 20,
					     .jitter = MS / 20,
					     .loss = LNET_SIM_ALWAYS / 50 };

	check(lnet_sim_new(seed, 1, &sim), "simulation");
	check(lnet_sim_link_set(sim, &any, &any, &link), "link");
	check(lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, server_start, NULL),
	      "server");
	check(lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, client_start, NULL),
	      "client");
	check(lnet_sim_at(sim, 0, call_each_ms, NULL), "timer");
	check(lnet_sim_at(sim, 20 * MS, server_crash, NULL), "timer");
}

/* What the service promises to its users, whatever happens. */
static void audit(void)
{
	int64_t most = (int64_t)client.executed + client.unknown;

	if (client.ended != CALLS)
		lnet_sim_fail(sim, "%u of %u calls have ended", client.ended,
			      CALLS);
	if (mode != VOLATILE && client.executed != CALLS)
		lnet_sim_fail(sim, "%u calls were not executed, %u may be",
			      client.not_executed, client.unknown);
	if (store_total() < client.executed || store_total() > most)
		lnet_sim_fail(sim, "the account has %" PRId64 " after %u calls",
			      store_total(), CALLS);
}

static void usage(void)
{
	fprintf(stderr, "usage: crash [SEED [durable|volatile|forgetful]]\n");
	exit(2);
}

static unsigned int mode_of(const char *name)
{
	static const char *const names[] = { "durable", "volatile",
					     "forgetful" };

	for (unsigned int i = 0; i < 3; i++)
		if (!strcmp(name, names[i]))
			return i;
	usage();
	return 0;
}

static uint64_t seed_of(const char *text)
{
	char *end;
	uint64_t seed = strtoull(text, &end, 0);

	if (end == text || *end)
		usage();
	return seed;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? seed_of(argv[1]) : 1;
	const char *name = argc > 2 ? argv[2] : "durable";
	char command[80];
	unsigned int bad;

	if (argc > 3)
		usage();
	mode = mode_of(name);
	/* A node that is killed warns of what it leaves behind. */
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	if (!mkdtemp(dir))
		check(-errno, dir);
	build(seed);
	snprintf(command, sizeof(command), "%s %" PRIu64 " %s", argv[0], seed,
		 name);
	lnet_sim_set_command(sim, command);
	/* A call ends by its deadline, so this ends. */
	while (client.ended < CALLS && lnet_sim_now(sim) < 120000 * MS)
		lnet_sim_run(sim, 10 * MS);
	lnet_sim_run(sim, 150 * MS); /* the server is back, for good */
	lnet_sim_check(sim);
	audit();
	printf("seed %" PRIu64 ", %s: %u crashes in %" PRIu64 " ms; of %u "
	       "calls %u were executed, %u not, %u perhaps; the account has "
	       "%" PRId64 "; digest %016" PRIx64 "\n",
	       seed, name, crashes, lnet_sim_now(sim) / MS, CALLS,
	       client.executed, client.not_executed, client.unknown,
	       store_total(), lnet_sim_digest(sim));
	bad = lnet_sim_free(sim);
	store_close();
	dir_remove();
	return bad ? 1 : 0;
}
