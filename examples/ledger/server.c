/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: server NID DIRECTORY PORT
 * Serves accounts, which it keeps in a store in DIRECTORY. Nothing is lost if
 * it is killed, at any moment. */
#include <errno.h>
#include <ulnet/store.h>
#include "node.h"

static struct ulrpc_store *store;

/* What the store has under the name of an account. */
struct balance {
	int64_t total;
	uint64_t entries; /* ever added */
};

/* Adds the entry to its account, which is all 0 if it is new. */
static int balance_add(struct ulrpc_txn *txn, const Ledger__Entry *entry,
		       Ledger__Balance *reply)
{
	struct balance b = { 0 };
	size_t length = sizeof(b), n = strlen(entry->account);
	int rc = ulrpc_txn_get(txn, entry->account, n, &b, &length);

	if (rc && rc != -ENOENT)
		return rc;
	if (__builtin_add_overflow(b.total, entry->amount, &b.total))
		return -ERANGE;
	b.entries++;
	reply->total = b.total;
	reply->entries = b.entries;
	return ulrpc_txn_put(txn, entry->account, n, &b, sizeof(b));
}

/* One transaction: the entry is added, and the call is known. */
static int add(const Ledger__Entry *entry, Ledger__Balance *reply, void *call)
{
	struct ulrpc_record record;
	struct ulrpc_txn *txn;
	int rc = ulrpc_txn_begin(store, &txn);

	if (rc)
		return rc;
	rc = balance_add(txn, entry, reply);
	if (!rc)
		rc = ulrpc_closure_record(call, &reply->base, &record);
	if (!rc)
		rc = ulrpc_txn_record(txn, &record);
	if (!rc)
		return ulrpc_txn_commit(txn);
	ulrpc_txn_abort(txn);
	return rc;
}

static void serve_add(Ledger__Ledger_Service *self, const Ledger__Entry *entry,
		      Ledger__Balance_Closure closure, void *call)
{
	Ledger__Balance reply = LEDGER__BALANCE__INIT;
	int rc = add(entry, &reply, call);

	(void)self;
	/* Whether the disk has it, nobody knows: the next start of this
	 * program will, and then the client asks again. */
	if (rc == -ENOTRECOVERABLE)
		errx(1, "the disk fails");
	if (rc)
		ulrpc_closure_fail(call, rc);
	else
		closure(&reply, call);
}

static void serve_read(Ledger__Ledger_Service *self, const Ledger__Entry *entry,
		       Ledger__Balance_Closure closure, void *call)
{
	Ledger__Balance reply = LEDGER__BALANCE__INIT;
	struct balance b = { 0 };
	size_t length = sizeof(b);
	int rc = ulrpc_store_read(store, entry->account, strlen(entry->account),
				  &b, &length);

	(void)self;
	reply.total = b.total;
	reply.entries = b.entries;
	if (rc && rc != -ENOENT)
		ulrpc_closure_fail(call, rc);
	else
		closure(&reply, call);
}

int main(int argc, char **argv)
{
	Ledger__Ledger_Service ledger = LEDGER__LEDGER__INIT(serve_);
	struct ulrpc_service_conf conf = { .workers_min = 4 };
	char why[ULRPC_STORE_TEXT];
	struct ulrpc *rpc;

	if (argc != 4)
		errx(2, "usage: server NID DIRECTORY PORT");
	if (ulrpc_store_open(argv[2], NULL, &store, why))
		errx(1, "%s: %s", argv[2], why);
	rpc = open_node(argv[1], argv[3], LNET_ACCEPT_ALL);
	conf.durable = ulrpc_store_durable(store);
	check(ulrpc_serve(rpc, &ledger.base, ledger__ledger__options, &conf,
			  NULL),
	      "service");
	warnx("ready; Enter ends it");
	getchar();
	lnet_close(ulrpc_node(rpc)); /* and the service, and RPC */
	ulrpc_store_close(store);
	return 0;
}
