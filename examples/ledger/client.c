/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: client NID SERVER PORT COUNT
 * Makes COUNT calls, several at a time, each of which adds 1 to an account. The
 * server may crash meanwhile. Then prints how the calls ended, and how many
 * entries were added. Fails unless each call was executed once. */
#include "node.h"

#define ACCOUNT	 "demo"
#define INFLIGHT 16
#define DEADLINE 60000000 /* us for each call */

static struct {
	long ok, failed, unknown;
	long attempts;
} calls;

static void count(const struct ulrpc_outcome *o)
{
	calls.attempts += o->attempts;
	if (!o->status)
		calls.ok++;
	else if (o->execution == ULRPC_EXECUTION_UNKNOWN)
		calls.unknown++;
	else
		calls.failed++;
	if (o->status)
		warnx("a call: %s, %s", ulrpc_cause_name(o->cause),
		      ulrpc_execution_name(o->execution));
}

static void take_one(struct ulrpc_set *set)
{
	struct ulrpc_result result;
	Ledger__Balance *balance;

	if (ulrpc_set_wait(set, 1, 2 * DEADLINE) < 1)
		errx(1, "no call ends");
	check(ulrpc_set_next(set, &result), "set");
	check(ledger__ledger__add_result(&result, &balance), "reply");
	count(&result.outcome);
	if (balance)
		ledger__balance__free_unpacked(balance, NULL);
}

static void add_all(struct ulrpc *rpc, ProtobufCService *ledger, long n)
{
	Ledger__Entry one = LEDGER__ENTRY__INIT;
	struct ulrpc_set *set;

	one.account = ACCOUNT;
	one.amount = 1;
	check(ulrpc_set_new(rpc, &set), "set");
	for (long begun = 0, ended = 0; ended < n; ended++) {
		for (; begun < n && begun - ended < INFLIGHT; begun++)
			check(ledger__ledger__add_set(set, ledger, &one, NULL,
						      NULL),
			      "call");
		take_one(set);
	}
	ulrpc_set_free(set);
}

static Ledger__Balance *read_balance(ProtobufCService *ledger)
{
	Ledger__Entry which = LEDGER__ENTRY__INIT;
	Ledger__Balance *balance;
	struct ulrpc_outcome end;

	which.account = ACCOUNT;
	check(ledger__ledger__read_wait(ledger, &which, &balance, &end),
	      "call");
	check(end.status, ulrpc_cause_name(end.cause));
	return balance;
}

int main(int argc, char **argv)
{
	struct ulnet_nid server;
	struct ulrpc_client_conf conf = { .nids = &server, .nnids = 1 };
	struct ulrpc_client *client;
	ProtobufCService *ledger;
	Ledger__Balance *before, *after;
	struct ulrpc *rpc;
	long n, added;

	if (argc != 5 || (n = atol(argv[4])) < 1)
		errx(2, "usage: client NID SERVER PORT COUNT");
	check(lnet_nid_parse(argv[2], &server), argv[2]);
	rpc = open_node(argv[1], argv[3], LNET_ACCEPT_NONE);
	conf.service = ledger__ledger__descriptor.name;
	check(ulrpc_client_open(rpc, &conf, &client), "client");
	check(ulrpc_stub_new(client, &ledger__ledger__descriptor,
			     ledger__ledger__options, DEADLINE, &ledger),
	      "stub");
	before = read_balance(ledger);
	add_all(rpc, ledger, n);
	after = read_balance(ledger);
	added = (long)(after->entries - before->entries);
	printf("%ld calls: %ld ok, %ld failed, %ld unknown; %ld entries were "
	       "added\n",
	       n, calls.ok, calls.failed, calls.unknown, added);
	printf("%ld messages carried them\n", calls.attempts);
	ledger__balance__free_unpacked(before, NULL);
	ledger__balance__free_unpacked(after, NULL);
	ulrpc_stub_free(ledger);
	lnet_close(ulrpc_node(rpc)); /* and the client, and RPC */
	return calls.ok == n && added == n ? 0 : 1;
}
