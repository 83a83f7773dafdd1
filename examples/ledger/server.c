/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: server NID DIRECTORY PORT
 * Serves accounts, which it keeps in DIRECTORY. Nothing is lost if it is
 * killed, at any moment. */
#include "node.h"
#include "store.h"

static struct store store;

static void answer(const struct balance *b, Ledger__Balance *reply)
{
	reply->total = b->total;
	reply->entries = b->entries;
}

static int add(const Ledger__Entry *entry, Ledger__Balance *reply, void *call)
{
	struct ulrpc_record record;
	struct balance balance;
	MDB_txn *txn;
	int rc = store_begin(&store, &txn);

	if (rc)
		return rc;
	rc = store_add(&store, txn, entry->account, entry->amount, &balance);
	if (!rc) {
		answer(&balance, reply);
		rc = ulrpc_closure_record(call, &reply->base, &record);
	}
	if (!rc)
		rc = store_record(&store, txn, &record);
	return store_end(txn, rc);
}

static void serve_add(Ledger__Ledger_Service *self, const Ledger__Entry *entry,
		      Ledger__Balance_Closure closure, void *call)
{
	Ledger__Balance reply = LEDGER__BALANCE__INIT;
	int rc = add(entry, &reply, call);

	(void)self;
	if (rc)
		ulrpc_closure_fail(call, rc);
	else
		closure(&reply, call);
}

static void serve_read(Ledger__Ledger_Service *self, const Ledger__Entry *entry,
		       Ledger__Balance_Closure closure, void *call)
{
	Ledger__Balance reply = LEDGER__BALANCE__INIT;
	struct balance balance;
	int rc = store_read(&store, entry->account, &balance);

	(void)self;
	answer(&balance, &reply);
	if (rc)
		ulrpc_closure_fail(call, rc);
	else
		closure(&reply, call);
}

int main(int argc, char **argv)
{
	Ledger__Ledger_Service ledger = LEDGER__LEDGER__INIT(serve_);
	struct ulrpc_service_conf conf = { .workers_min = 4 };
	struct ulrpc *rpc;

	if (argc != 4)
		errx(2, "usage: server NID DIRECTORY PORT");
	check(store_open(&store, argv[2]), argv[2]);
	rpc = open_node(argv[1], argv[3], LNET_ACCEPT_ALL);
	conf.durable = &store.durable;
	check(ulrpc_serve(rpc, &ledger.base, ledger__ledger__options, &conf,
			  NULL),
	      "service");
	warnx("ready; Enter ends it");
	getchar();
	lnet_close(ulrpc_node(rpc)); /* and the service, and RPC */
	store_close(&store);
	return 0;
}
