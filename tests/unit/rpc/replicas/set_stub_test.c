/* SPDX-License-Identifier: BSD-3-Clause */
/* Stubs whose calls go to one of several servers; a failure with details, as
 * messages; and the end of a bulk that is waited for. */
#include "tests/unit/rpc/replicas/servers.h"
#include "tests/unit/rpc/stub/box.pb-c.h"
#include "ulnet/stub.h"

enum {
	FULL = 98, /* fails with details */
	NONE,	   /* fails without */
};

static char memory[1 << 20], shelf[sizeof(memory)];
static bool hangs; /* server 1 does not answer Plant */
static void *kept; /* what it would answer with */

static void on_moved(void *arg, int status, uint64_t moved)
{
	(void)arg;
	(void)status;
	(void)moved;
}

static void serve_plant(Test__Box_Service *self, const Test__Tree *tree,
			Test__Old_Closure closure, void *data)
{
	Test__Old reply = TEST__OLD__INIT;
	struct ulrpc_bulk_info info;

	(void)self;
	cr_assert_eq(ulrpc_request_bulk(ulrpc_request_of(data),
					tree->one->index, &info),
		     0);
	if (hangs &&
	    ulrpc_request_rpc(ulrpc_request_of(data)) == servers[1].rpc) {
		const struct iovec iov = { shelf, sizeof(shelf) };

		kept = data;
		cr_assert_eq(ulrpc_bulk_get(ulrpc_request_of(data),
					    tree->one->index, 0, &iov, 1,
					    on_moved, NULL),
			     0);
		return;
	}
	reply.number = (uint32_t)info.length;
	closure(&reply, data);
}

static void serve_ask(Test__Box_Service *self, const Test__Old *request,
		      Test__Old_Closure closure, void *data)
{
	Test__Old reply = TEST__OLD__INIT;

	(void)self;
	reply.number = request->number + 1;
	if (request->number == FULL)
		ulrpc_closure_fail_status(data, ULRPC_STATUS_RESOURCE_EXHAUSTED,
					  "it is full", &reply.base);
	else if (request->number == NONE)
		ulrpc_closure_fail_status(data, ULRPC_STATUS_NOT_FOUND, NULL,
					  NULL);
	else
		closure(&reply, data);
}

static Test__Box_Service box = TEST__BOX__INIT(serve_);

static const struct ulrpc_method_options options[] = {
	{ .method = "Ask",
	  .run = ULRPC_RUN_INLINE,
	  .semantics = ULRPC_IDEMPOTENT },
	{ .method = "Plant",
	  .run = ULRPC_RUN_INLINE,
	  .semantics = ULRPC_IDEMPOTENT },
	{ .method = NULL },
};

static ProtobufCService *stub;

static void open_stub(void)
{
	sim_open(1);
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(ulrpc_serve(servers[i].rpc, &box.base, options,
					 NULL, NULL),
			     0);
	conf.client.service = test__box__descriptor.name;
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(SERVERS);
	cr_assert_eq(ulrpc_replicas_stub_new(rs, &test__box__descriptor,
					     options, 10000000, &stub),
		     0);
}

static void close_stub(void)
{
	ulrpc_stub_free(stub);
	sim_close();
}

static struct {
	unsigned int n;
	uint32_t number;
	struct ulrpc_outcome end;
} heard;

static void on_old(const Test__Old *old, void *data)
{
	cr_assert_eq(data, &heard);
	heard.n++;
	heard.end = *ulrpc_stub_outcome();
	heard.number = old ? old->number : 0;
}

/* Makes a call that ends with server @index. */
static void ask_both_ways(uint32_t number, unsigned int index)
{
	Test__Old request = TEST__OLD__INIT;
	struct ulnet_nid nid = server_nid(index);
	struct ulrpc_outcome end;
	ProtobufCMessage *reply;

	request.number = number;
	cr_assert_eq(ulrpc_call_message_wait(stub, "Ask", &request.base, NULL,
					     &reply, &end),
		     0);
	cr_assert_eq(end.cause, ULRPC_CAUSE_OK);
	cr_assert(lnet_nid_eq(&end.target, &nid));
	cr_assert_eq(((Test__Old *)reply)->number, number + 1);
	protobuf_c_message_free_unpacked(reply, NULL);
	heard.n = 0;
	test__box__ask(stub, &request, on_old, &heard);
	cr_assert_eq(heard.n, 0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(heard.n, 1);
	cr_assert_eq(heard.number, number + 1);
	cr_assert(lnet_nid_eq(&heard.end.target, &nid));
}

Test(replicas, a_stub_calls_one_of_several)
{
	open_stub();
	ask_both_ways(1, 1);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	ask_both_ways(2, 2);
	close_stub();
}

static struct ulrpc_bulk *lend(void *base, size_t length)
{
	struct iovec iov = { base, length };
	struct ulrpc_bulk_conf bulk_conf = { .iov = &iov,
					     .niov = 1,
					     .access = ULRPC_BULK_SOURCE };
	struct ulrpc_bulk *bulk;

	cr_assert_eq(ulrpc_bulk_new(rpc, &bulk_conf, &bulk), 0);
	return bulk;
}

static struct {
	unsigned int n;
	uint32_t number;
	struct ulrpc_replicas_outcome o;
} told;

static void on_told(void *arg, const struct ulrpc_replicas_outcome *o,
		    const ProtobufCMessage *reply)
{
	cr_assert_eq(arg, &told);
	told.n++;
	told.o = *o;
	told.number = reply ? ((const Test__Old *)reply)->number : 0;
}

/* Makes a call with @key in both ways. Returns the server that has answered. */
static unsigned int ask_for_key(unsigned int key)
{
	Test__Old request = TEST__OLD__INIT;
	struct ulrpc_replicas_call_conf how;
	struct ulrpc_replicas_outcome o;
	ProtobufCMessage *reply;
	unsigned int at;

	ulrpc_replicas_call_conf_init(&how);
	cr_assert_eq(ulrpc_stub_conf(stub, "Ask", &how.call), 0);
	how.key = &key;
	how.key_length = sizeof(key);
	request.number = key;
	cr_assert_eq(ulrpc_replicas_call_message_wait(
			     stub, "Ask", &request.base, &how, &reply, &o),
		     0);
	cr_assert_eq(o.call.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(((Test__Old *)reply)->number, key + 1);
	protobuf_c_message_free_unpacked(reply, NULL);
	told.n = 0;
	cr_assert_eq(ulrpc_replicas_call_message(stub, "Ask", &request.base,
						 &how, on_told, &told, NULL),
		     0);
	cr_assert_eq(told.n, 0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(told.n, 1);
	cr_assert_eq(told.o.call.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(told.number, key + 1);
	cr_assert(lnet_nid_eq(&told.o.server, &o.server));
	for (at = 1; at < SERVERS; at++) {
		const struct ulnet_nid nid = server_nid(at);

		if (lnet_nid_eq(&o.server, &nid))
			break;
	}
	return at;
}

Test(replicas, a_stub_calls_with_a_key)
{
	unsigned int first[12], used = 0;

	open_stub(); /* without a key all calls go to the first server */
	for (unsigned int key = 0; key < ARRAY_SIZE(first); key++) {
		first[key] = ask_for_key(key);
		used |= 1u << first[key];
	}
	cr_assert_eq(used, 0xe, "the keys are spread over three servers");
	cr_assert_eq(lnet_sim_crash(sim, 3), 0);
	for (unsigned int key = 0; key < ARRAY_SIZE(first); key++)
		if (first[key] == 3)
			cr_assert_neq(ask_for_key(key), 3);
		else
			cr_assert_eq(ask_for_key(key), first[key]);
	close_stub();
}

Test(replicas, a_call_of_a_stub_is_canceled)
{
	Test__Tree tree = TEST__TREE__INIT;
	struct ulrpc_replicas_call *call;
	struct ulrpc_bulk *bulk;

	open_stub();
	hangs = true;
	bulk = lend(memory, sizeof(memory));
	tree.one = ulrpc_bulk_field(bulk);
	told.n = 0;
	cr_assert_eq(ulrpc_replicas_call_message(stub, "Plant", &tree.base,
						 NULL, on_told, &told, &call),
		     0);
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_not_null(kept);
	cr_assert_eq(told.n, 0);
	ulrpc_replicas_cancel(call);
	ulrpc_replicas_call_put(call);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(told.n, 1);
	cr_assert_eq(told.o.call.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(ulrpc_bulk_close_wait(bulk), 0);
	close_stub();
}

static void what_a_stub_of_one_cannot(void)
{
	const struct ulnet_nid nid = server_nid(1);
	Test__Old request = TEST__OLD__INIT;
	struct ulrpc_client_conf one = conf.client;
	struct ulrpc_replicas_call *call = NULL;
	struct ulrpc_replicas_outcome o;
	struct ulrpc_client *client;
	ProtobufCMessage *reply;
	ProtobufCService *own;

	one.nids = &nid;
	one.nnids = 1;
	cr_assert_eq(ulrpc_client_open(rpc, &one, &client), 0);
	cr_assert_eq(ulrpc_stub_new(client, &test__box__descriptor, options,
				    1000000, &own),
		     0);
	cr_assert_eq(ulrpc_replicas_call_message(own, "Ask", &request.base,
						 NULL, on_told, &told, &call),
		     -EOPNOTSUPP);
	cr_assert_null(call);
	cr_assert_eq(ulrpc_replicas_call_message_wait(own, "Ask", &request.base,
						      NULL, &reply, &o),
		     -EOPNOTSUPP);
	ulrpc_stub_free(own);
	ulrpc_client_close(client);
}

Test(replicas, what_a_stub_of_several_cannot)
{
	Test__Old request = TEST__OLD__INIT;
	ProtobufCService *none = NULL;
	struct ulrpc_call *call;
	struct ulrpc_set *set;

	open_stub();
	cr_assert_eq(ulrpc_set_new(rpc, &set), 0);
	cr_assert_eq(ulrpc_set_message(set, stub, "Ask", &request.base, NULL,
				       NULL, NULL),
		     -EOPNOTSUPP);
	ulrpc_set_free(set);
	cr_assert_eq(ulrpc_call_message(stub, "Ask", &request.base, NULL, NULL,
					NULL, &call),
		     -EOPNOTSUPP);
	cr_assert_eq(ulrpc_call_message(stub, "Ask", &request.base, NULL, NULL,
					NULL, NULL),
		     0);
	cr_assert_eq(ulrpc_replicas_stub_new(NULL, &test__box__descriptor,
					     options, 1, &none),
		     -EINVAL);
	cr_assert_null(none);
	cr_assert_eq(ulrpc_replicas_call_message(stub, "Nothing", &request.base,
						 NULL, on_told, &told, NULL),
		     -ENOENT);
	cr_assert_eq(ulrpc_replicas_call_message(stub, "Ask", &request.base,
						 NULL, NULL, NULL, NULL),
		     0);
	what_a_stub_of_one_cannot();
	lnet_sim_run(sim, SEC);
	close_stub();
}

/* ---- details ---- */

/* What ulrpc_context_details_message() says after Ask has failed. */
static int details_of(uint32_t number, enum ulrpc_status status,
		      const ProtobufCMessageDescriptor *type,
		      ProtobufCMessage **details_p)
{
	Test__Old request = TEST__OLD__INIT;
	struct ulrpc_call_conf how;
	struct ulrpc_context *context;
	ProtobufCMessage *reply;
	struct ulrpc_outcome end;
	int rc;

	request.number = number;
	cr_assert_eq(ulrpc_context_new(&context), 0);
	cr_assert_eq(ulrpc_stub_conf(stub, "Ask", &how), 0);
	how.context = context;
	cr_assert_eq(ulrpc_call_message_wait(stub, "Ask", &request.base, &how,
					     &reply, &end),
		     0);
	cr_assert_null(reply);
	cr_assert_eq(ulrpc_status_of(&end), status);
	cr_assert_str_eq(end.text, number == FULL ? "it is full" : "");
	rc = ulrpc_context_details_message(context, type, details_p);
	ulrpc_context_free(context);
	return rc;
}

Test(replicas, a_failure_has_details)
{
	ProtobufCMessage *details = NULL;

	open_stub();
	cr_assert_eq(details_of(NONE, ULRPC_STATUS_NOT_FOUND,
				&test__old__descriptor, &details),
		     -ENOENT);
	cr_assert_eq(details_of(FULL, ULRPC_STATUS_RESOURCE_EXHAUSTED,
				&test__leaf__descriptor, &details),
		     -ENOENT, "they are of another type");
	cr_assert_null(details);
	cr_assert_eq(details_of(FULL, ULRPC_STATUS_RESOURCE_EXHAUSTED,
				&test__old__descriptor, &details),
		     0);
	cr_assert_eq(((Test__Old *)details)->number, FULL + 1);
	protobuf_c_message_free_unpacked(details, NULL);
	close_stub();
}

/* ---- bulk ---- */

Test(replicas, the_end_of_a_bulk_is_waited_for)
{
	Test__Tree tree = TEST__TREE__INIT;
	struct ulrpc_bulk *bulk;

	open_stub();
	bulk = lend(memory, sizeof(memory));
	tree.one = ulrpc_bulk_field(bulk);
	heard.n = 0;
	test__box__plant(stub, &tree, on_old, &heard);
	/* It is lent to a call, which has not begun. */
	cr_assert_eq(ulrpc_bulk_close_wait(bulk), 0);
	cr_assert_eq(heard.n, 1);
	cr_assert_eq(heard.number, sizeof(memory));
	/* Nothing uses it. */
	cr_assert_eq(ulrpc_bulk_close_wait(lend(memory, 1)), 0);
	cr_assert_eq(ulrpc_bulk_close_wait(NULL), 0);
	close_stub();
}

/* Server 1 dies while it reads the memory that the call lends. @busy: some of
 * the memory is on its way for 10 s, and LNet does not know that in vain. */
static void dies_with_bulk(bool busy)
{
	const struct ulnet_sim_link link = { .latency = 50000,
					     .connect = 100000,
					     .bandwidth = busy ? 100000 : 0 };
	const struct ulnet_nid from = server_nid(0), to = server_nid(1);
	Test__Tree tree = TEST__TREE__INIT;
	struct ulrpc_bulk *bulk;

	open_stub();
	cr_assert_eq(lnet_sim_link_set(sim, &from, &to, &link), 0);
	hangs = true;
	bulk = lend(memory, sizeof(memory));
	tree.one = ulrpc_bulk_field(bulk);
	heard.n = 0;
	test__box__plant(stub, &tree, on_old, &heard);
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_eq(heard.n, 0);
	cr_assert_not_null(kept);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	lnet_sim_run(sim, 3 * SEC);
	cr_assert_eq(heard.n, 1);
	cr_assert_eq(heard.end.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(heard.end.bulk_free, !busy);
	cr_assert_eq(heard.number, sizeof(memory));
	cr_assert_eq(ulrpc_bulk_close_wait(bulk), 0);
	close_stub();
}

Test(replicas, a_call_with_bulk_leaves_a_server_that_dies)
{
	dies_with_bulk(false);
}

Test(replicas, a_call_lends_its_source_again_while_it_is_still_sent)
{
	dies_with_bulk(true);
}
