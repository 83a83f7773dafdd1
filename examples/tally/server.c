/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"

static int64_t total; /* no lock: "inline" calls run on the only CPT */

static void serve_add(Tally_Service *self, const Amount *request,
		      Total_Closure reply, void *call)
{
	Total answer = TOTAL__INIT;

	(void)self;
	answer.total = total += request->amount;
	reply(&answer, call);
}

int main(int argc, char **argv)
{
	const char *own = argc > 1 ? argv[1] : "127.0.0.1@tcp";
	struct ulrpc *rpc = open_node(own, LNET_ACCEPT_ALL);
	Tally_Service tally = TALLY__INIT(serve_);
	struct ulrpc_service *service;

	check(ulrpc_serve(rpc, &tally.base, tally__options, NULL, &service),
	      "service");
	warnx("ready; Enter ends it");
	getchar();
	lnet_close(ulrpc_node(rpc)); /* and the service, and RPC */
	return 0;
}
