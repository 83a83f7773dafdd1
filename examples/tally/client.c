/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include "node.h"

int main(int argc, char **argv)
{
	struct ulrpc *rpc = open_node(NULL, LNET_ACCEPT_NONE);
	struct ulrpc_client_conf conf = { .service = tally__descriptor.name };
	Amount request = AMOUNT__INIT;
	struct ulrpc_outcome end;
	struct ulrpc_client *client;
	ProtobufCService *tally;
	Total *reply;

	conf.target = argc > 1 ? argv[1] : "127.0.0.1@tcp";
	check(ulrpc_client_open(rpc, &conf, &client), "client");
	check(ulrpc_stub_new(client, &tally__descriptor, tally__options,
			     5000000 /* us for each call */, &tally),
	      "stub");
	request.amount = argc > 2 ? atoll(argv[2]) : 1;
	check(tally__add_wait(tally, &request, &reply, &end), "call");
	lnet_text_clean(end.text); /* it is the service's */
	if (*end.text)
		warnx("%s", end.text);
	check(end.status, ulrpc_execution_name(end.execution));
	printf("%lld\n", (long long)reply->total);
	total__free_unpacked(reply, NULL);
	ulrpc_stub_free(tally);
	lnet_close(ulrpc_node(rpc)); /* and the client, and RPC */
	return 0;
}
