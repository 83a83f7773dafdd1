/* SPDX-License-Identifier: BSD-3-Clause */
/* Stubs and services of Protocol Buffers on two simulated nodes. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include "tests/unit/rpc/stub/box.pb-c.h"
#include "ulnet/sim.h"
#include "ulnet/stub.h"

#define SECOND UINT64_C(1000000000) /* ns */

static struct lnet_sim *sim;
static struct ulrpc *here, *there;
static struct ulrpc_client *client;
static struct ulrpc_service *service;
static ProtobufCService *stub;
static unsigned int ended; /* how often the service has ended */

/* ---- the service ---- */

static char shelf[100000]; /* where the service keeps bulk data */
static size_t shelf_length;

/* A request with two bulks: the service copies the first one to the second, in
 * capitals. */
struct job {
	const Test__Tree *tree;
	Test__Old_Closure closure;
	void *data;
};

static struct job job;

static void on_put(void *arg, int status, uint64_t moved)
{
	Test__Old reply = TEST__OLD__INIT;
	char text[] = "copied";

	(void)arg;
	reply.number = (uint32_t)moved;
	reply.text = text;
	if (status)
		ulrpc_closure_fail(job.data, status);
	else
		job.closure(&reply, job.data);
}

static void on_got(void *arg, int status, uint64_t moved)
{
	struct iovec iov = { shelf, moved };
	int rc = status;

	(void)arg;
	for (size_t i = 0; i < moved; i++)
		shelf[i] = (char)toupper((unsigned char)shelf[i]);
	if (!rc)
		rc = ulrpc_bulk_put(ulrpc_request_of(job.data),
				    job.tree->left->one->index, 0, &iov, 1,
				    on_put, NULL);
	if (rc)
		ulrpc_closure_fail(job.data, rc);
}

static void serve_plant(Test__Box_Service *self, const Test__Tree *tree,
			Test__Old_Closure closure, void *data)
{
	struct ulrpc_request *request = ulrpc_request_of(data);
	struct ulrpc_bulk_info info;
	struct iovec iov;
	int rc;

	(void)self;
	if (!tree->n_many) {
		ulrpc_closure_fail_text(data, -EDOM, "no m\xc3\xb6re");
		return;
	}
	job = (struct job){ tree, closure, data };
	rc = ulrpc_request_bulk(request, tree->many[0]->index, &info);
	cr_assert(rc == 0 && info.length == tree->many[0]->length);
	shelf_length = info.length;
	iov = (struct iovec){ shelf, info.length };
	rc = ulrpc_bulk_get(request, tree->many[0]->index, 0, &iov, 1, on_got,
			    NULL);
	cr_assert(rc == 0);
}

static struct {
	unsigned int n;
	char text[8][ULRPC_TRACE_SIZE];
} traces; /* traces of the requests to Ask */

/* Replies with a text of as many letters as the request asks for. */
static void serve_ask(Test__Box_Service *self, const Test__Old *request,
		      Test__Old_Closure closure, void *data)
{
	Test__Old reply = TEST__OLD__INIT;
	static char text[200000];
	struct ulrpc_request_info info;

	(void)self;
	ulrpc_request_info(ulrpc_request_of(data), &info);
	cr_assert(strcmp(info.service, "test.Box") == 0);
	cr_assert(strcmp(info.method_name, "Ask") == 0);
	strcpy(traces.text[traces.n++ % 8], info.trace);
	memset(text, 'x', request->number);
	text[request->number] = '\0';
	reply.text = text;
	reply.number = request->number + 1;
	closure(&reply, data);
}

static Test__Box_Service box = TEST__BOX__INIT(serve_);

static const struct ulrpc_method_options options[] = {
	{ .method = "Ask", .run = ULRPC_RUN_INLINE, .reply_max = 100000 },
	{ .method = NULL },
};

static void on_ended(void *arg)
{
	++*(unsigned int *)arg;
}

/* ---- the rig ---- */

static void serve(const struct ulrpc_method_options *table)
{
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.ended = on_ended;
	conf.ended_arg = &ended;
	cr_assert(ulrpc_serve(there, &box.base, table, &conf, &service) == 0);
}

static void set_up(void)
{
	struct ulrpc_client_conf conf;
	struct ulnet_nid server;

	cr_assert(lnet_sim_new(7, 1, &sim) == 0);
	cr_assert(lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, NULL, NULL) >=
		  0);
	cr_assert(lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, NULL, NULL) >=
		  0);
	cr_assert(ulrpc_open(lnet_sim_node(sim, 0), NULL, &here) == 0);
	cr_assert(ulrpc_open(lnet_sim_node(sim, 1), NULL, &there) == 0);
	ulrpc_client_conf_init(&conf);
	cr_assert(lnet_nid_parse("10.0.0.2@tcp", &server) == 0);
	conf.nids = &server;
	conf.nnids = 1;
	conf.service = test__box__descriptor.name;
	cr_assert(ulrpc_client_open(here, &conf, &client) == 0);
	cr_assert(ulrpc_client_rpc(client) == here);
	cr_assert(ulrpc_client_cpt(client) == 0);
	cr_assert(ulrpc_stub_new(client, &test__box__descriptor, options,
				 5000000, &stub) == 0);
}

static void tear_down(void)
{
	ulrpc_stub_free(stub);
	ulrpc_client_close(client);
	cr_assert(ulrpc_close(here) == 0);
	cr_assert(ulrpc_close(there) == 0);
	cr_assert(lnet_sim_free(sim) == 0);
}

TestSuite(stub_sim, .init = set_up, .fini = tear_down);

static struct {
	unsigned int times;
	bool null;
	uint32_t number;
	size_t length;
	struct ulrpc_outcome outcome;
} heard;

static void on_old(const Test__Old *old, void *data)
{
	(void)data;
	heard.times++;
	heard.null = !old;
	heard.outcome = *ulrpc_stub_outcome();
	heard.number = old ? old->number : 0;
	heard.length = old ? strlen(old->text) : 0;
}

/* ---- what is seen ---- */

static void ask(uint32_t number)
{
	Test__Old old = TEST__OLD__INIT;

	old.number = number;
	heard.times = 0;
	test__box__ask(stub, &old, on_old, NULL);
	cr_assert(heard.times == 0);
	lnet_sim_run(sim, SECOND);
	cr_assert(heard.times == 1);
}

static void call_and_stop(const struct ulrpc_method_options *table)
{
	serve(table);
	ask(7);
	cr_assert(!heard.null && heard.number == 8);
	cr_assert(heard.length == 7);
	cr_assert(heard.outcome.cause == ULRPC_CAUSE_OK);
	cr_assert(heard.outcome.execution == ULRPC_EXECUTED);
	cr_assert(ulrpc_service_stop(service, 1000000) == 0);
	cr_assert(ended == 1);
}

Test(stub_sim, by_workers)
{
	call_and_stop(NULL);
}

Test(stub_sim, inline)
{
	call_and_stop(options);
}

Test(stub_sim, ended_by_closing)
{
	serve(NULL);
	ask(1);
	cr_assert(ended == 0);
	cr_assert(ulrpc_close(there) == 0);
	cr_assert(ended == 1);
	cr_assert(ulrpc_open(lnet_sim_node(sim, 1), NULL, &there) == 0);
}

Test(stub_sim, reply_max)
{
	serve(NULL);
	ask(99000);
	cr_assert(!heard.null && heard.length == 99000);
	/* The client fetches longer replies. */
	ask(100001);
	cr_assert(!heard.null && heard.length == 100001);
}

Test(stub_sim, failure)
{
	Test__Tree tree = TEST__TREE__INIT;

	serve(NULL);
	test__box__plant(stub, &tree, on_old, NULL);
	lnet_sim_run(sim, SECOND);
	cr_assert(heard.times == 1 && heard.null);
	cr_assert(heard.outcome.cause == ULRPC_CAUSE_HANDLER);
	cr_assert(heard.outcome.status == -EDOM);
	cr_assert(strcmp(heard.outcome.text, "no m\xc3\xb6re") == 0);
	ask(1);
	cr_assert(!heard.null && !*heard.outcome.text);
}

/* The text of a failure is cut to the room that the caller has for a reply,
 * also in a call that waits. */
Test(stub_sim, failure_in_a_few_words)
{
	struct ulrpc_call_conf conf = { .deadline = 1000000, .reply_max = 5 };
	Test__Tree tree = TEST__TREE__INIT;
	struct ulrpc_outcome outcome;
	ProtobufCMessage *reply;

	serve(NULL);
	cr_assert(ulrpc_call_message_wait(stub, "Plant", &tree.base, &conf,
					  &reply, &outcome) == 0);
	cr_assert(!reply && outcome.status == -EDOM);
	cr_assert(strcmp(outcome.text, "no m") == 0);
}

Test(stub_sim, no_service)
{
	ulrpc_stub_deadline(stub, 500000);
	ask(1);
	cr_assert(heard.null);
	cr_assert(heard.outcome.cause == ULRPC_CAUSE_NO_SERVICE);
}

static void on_raw(void *arg, const struct ulrpc_outcome *outcome,
		   const void *reply, size_t length)
{
	(void)arg;
	(void)reply;
	(void)length;
	heard.times++;
	heard.outcome = *outcome;
}

/* A malformed request reaches no handler, and the next call succeeds. @table:
 * options of the methods, or NULL. */
static void send_garbage(const struct ulrpc_method_options *table)
{
	struct ulrpc_call_conf conf = { .deadline = 1000000 };

	serve(table);
	cr_assert(ulrpc_call(client, ulrpc_method("Ask"), "\x0a\xff", 2, &conf,
			     on_raw, NULL, NULL) == 0);
	lnet_sim_run(sim, SECOND);
	cr_assert(heard.times == 1);
	cr_assert(heard.outcome.cause == ULRPC_CAUSE_BAD_REQUEST);
	cr_assert(heard.outcome.execution == ULRPC_NOT_EXECUTED);
	ask(3);
	cr_assert(!heard.null);
}

Test(stub_sim, garbage_for_workers)
{
	send_garbage(NULL);
}

Test(stub_sim, garbage_inline)
{
	send_garbage(options);
}

static void on_new(const Test__New *new, void *data)
{
	cr_assert(!new && !data);
	heard.times++;
	heard.outcome = *ulrpc_stub_outcome();
}

/* The server has an earlier version of the service, without the method. */
Test(stub_sim, no_method)
{
	Test__Tree tree = TEST__TREE__INIT;
	ProtobufCService *later;

	serve(NULL);
	cr_assert(ulrpc_stub_new(client, &test__later__descriptor, NULL,
				 1000000, &later) == 0);
	test__later__brew(later, &tree, on_new, NULL);
	lnet_sim_run(sim, SECOND);
	cr_assert(heard.times == 1);
	cr_assert(heard.outcome.cause == ULRPC_CAUSE_NO_METHOD);
	cr_assert(heard.outcome.execution == ULRPC_NOT_EXECUTED);
	ulrpc_stub_free(later);
}

/* ---- traces ---- */

static void on_message(void *arg, const struct ulrpc_outcome *outcome,
		       const ProtobufCMessage *reply)
{
	cr_assert(outcome == ulrpc_stub_outcome());
	on_old((const Test__Old *)reply, arg);
}

#define TRACE_A "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define TRACE_B "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-00"

/* Calls with and without traces travel in the same message; each must keep its
 * own trace and body. */
Test(stub_sim, traces)
{
	static const char *const said[] = { NULL,    TRACE_A, TRACE_A, NULL,
					    TRACE_B, NULL,    NULL };
	struct ulrpc_call_conf conf;
	Test__Old old = TEST__OLD__INIT;

	serve(options);
	cr_assert(ulrpc_stub_conf(stub, "Ask", &conf) == 0);
	for (unsigned int i = 0; i < 7; i++) {
		conf.trace = said[i];
		old.number = 100 + i;
		cr_assert(ulrpc_call_message(stub, "Ask", &old.base, &conf,
					     on_message, NULL, NULL) == 0);
	}
	lnet_sim_run(sim, SECOND);
	cr_assert(heard.times == 7 && heard.number == 107);
	cr_assert(heard.length == 106 && traces.n == 7);
	for (unsigned int i = 0; i < 7; i++)
		cr_assert(strcmp(traces.text[i], said[i] ? said[i] : "") == 0);
	conf.trace = "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	cr_assert(ulrpc_call_message(stub, "Ask", &old.base, &conf, on_message,
				     NULL, NULL) == -EINVAL);
}

/* ---- sets ---- */

static struct ulrpc_set *new_set(void)
{
	struct ulrpc_set *set;

	cr_assert(ulrpc_set_new(here, &set) == 0);
	return set;
}

/* Returns the next result as a reply of Ask; NULL: the call has failed. */
static Test__Old *next_old(struct ulrpc_set *set, struct ulrpc_result *result)
{
	ProtobufCMessage *reply = (ProtobufCMessage *)result; /* not NULL */

	cr_assert(ulrpc_set_next(set, result) == 0);
	cr_assert(ulrpc_result_message(result, &test__box__descriptor, "Ask",
				       &reply) == 0);
	cr_assert(!result->reply && !result->length);
	cr_assert(!reply || reply->descriptor == &test__old__descriptor);
	return (Test__Old *)reply;
}

Test(stub_sim, set_of_messages)
{
	struct ulrpc_set *set = new_set();
	Test__Old old = TEST__OLD__INIT, *reply;
	struct ulrpc_result result;
	uint32_t n[3] = { 5, 6, 3000 };

	serve(NULL);
	for (unsigned int i = 0; i < 3; i++) {
		old.number = n[i];
		cr_assert(ulrpc_set_message(set, stub, "Ask", &old.base, NULL,
					    &n[i], NULL) == 0);
	}
	cr_assert(ulrpc_set_wait(set, ULRPC_SET_ALL, 1000000) == 3);
	for (unsigned int i = 0; i < 3; i++) {
		reply = next_old(set, &result);
		cr_assert(reply && result.outcome.cause == ULRPC_CAUSE_OK);
		cr_assert(result.method == ulrpc_method("Ask"));
		cr_assert(strlen(reply->text) == *(uint32_t *)result.arg);
		test__old__free_unpacked(reply, NULL);
	}
	ulrpc_set_free(set);
}

/* The caller's reference to the call stays valid after its result was taken and
 * the set freed. */
Test(stub_sim, call_of_a_set_is_canceled)
{
	struct ulrpc_set *set = new_set();
	Test__Old old = TEST__OLD__INIT;
	struct ulrpc_result result;
	struct ulrpc_call *call = NULL;

	serve(NULL);
	cr_assert(ulrpc_set_message(set, stub, "Ask", &old.base, NULL, NULL,
				    &call) == 0);
	ulrpc_cancel(call);
	cr_assert(ulrpc_set_wait(set, 1, 1000000) == 1);
	cr_assert(!next_old(set, &result));
	cr_assert(result.outcome.cause == ULRPC_CAUSE_CANCELED);
	ulrpc_set_free(set);
	ulrpc_cancel(call);
	ulrpc_call_put(call);
}

Test(stub_sim, set_of_messages_what_is_wrong)
{
	struct ulrpc_set *set = new_set();
	Test__Old old = TEST__OLD__INIT;
	Test__Tree tree = TEST__TREE__INIT;
	struct ulrpc_result result;
	ProtobufCMessage *reply = &old.base;
	struct ulrpc_call *call = NULL;
	char said[] = "\xff";

	serve(NULL);
	cr_assert(ulrpc_set_message(set, stub, "ask", &old.base, NULL, NULL,
				    &call) == -ENOENT);
	cr_assert(ulrpc_set_message(set, stub, "Ask", &tree.base, NULL, NULL,
				    &call) == -EINVAL);
	cr_assert(!call && ulrpc_set_wait(set, ULRPC_SET_ALL, 1) == 0);
	/* The service fails. */
	cr_assert(ulrpc_set_message(set, stub, "Plant", &tree.base, NULL, NULL,
				    NULL) == 0);
	cr_assert(ulrpc_set_wait(set, 1, 1000000) == 1);
	cr_assert(ulrpc_set_next(set, &result) == 0);
	cr_assert(ulrpc_result_message(&result, &test__box__descriptor, "Ask",
				       &reply) == -EINVAL);
	cr_assert(ulrpc_result_message(&result, &test__box__descriptor, "ask",
				       &reply) == -ENOENT);
	cr_assert(reply == &old.base);
	cr_assert(ulrpc_result_message(&result, &test__box__descriptor, "Plant",
				       &reply) == 0);
	cr_assert(!reply && result.outcome.status == -EDOM);
	cr_assert(strcmp(result.outcome.text, "no m\xc3\xb6re") == 0);
	/* The reply is malformed. */
	result = (struct ulrpc_result){ .method = ulrpc_method("Ask"),
					.reply = strdup(said),
					.length = 1 };
	cr_assert(ulrpc_result_message(&result, &test__box__descriptor, "Ask",
				       &reply) == 0);
	cr_assert(!reply && !result.reply);
	cr_assert(result.outcome.cause == ULRPC_CAUSE_BAD_REPLY);
	ulrpc_set_free(set);
}

/* ---- bulks ---- */

static char from[70000], to[70000];

static struct ulrpc_bulk *bulk_of(char *memory, size_t length,
				  enum ulrpc_bulk_access access)
{
	struct iovec iov = { memory, length };
	struct ulrpc_bulk_conf conf = {
		.iov = &iov, .niov = 1, .access = access, .segment = 16384
	};
	struct ulrpc_bulk *bulk;

	cr_assert(ulrpc_bulk_new(here, &conf, &bulk) == 0);
	return bulk;
}

Test(stub_sim, bulks_in_fields)
{
	Test__Tree tree = TEST__TREE__INIT, left = TEST__TREE__INIT;
	struct ulrpc_bulk *source, *sink;
	Ulrpc__Bulk *many[1];

	serve(NULL);
	memset(from, 'a', sizeof(from));
	source = bulk_of(from, sizeof(from), ULRPC_BULK_SOURCE);
	sink = bulk_of(to, sizeof(to), ULRPC_BULK_SINK);
	left.one = ulrpc_bulk_field(sink);
	many[0] = ulrpc_bulk_field(source);
	tree.left = &left;
	tree.many = many;
	tree.n_many = 1;
	for (unsigned int i = 1; i <= 3; i++) {
		memset(to, 0, sizeof(to));
		test__box__plant(stub, &tree, on_old, NULL);
		lnet_sim_run(sim, SECOND);
		cr_assert(heard.times == i && !heard.null);
		cr_assert(heard.number == sizeof(from));
		cr_assert(to[0] == 'A' && !memchr(to, 0, sizeof(to)));
		cr_assert(memcmp(to, to + 1, sizeof(to) - 1) == 0);
	}
	ulrpc_bulk_close(source, NULL, NULL);
	ulrpc_bulk_close(sink, NULL, NULL);
}

/* A bulk can be part of one call at a time; a second call ends with an error.
 */
Test(stub_sim, bulk_is_busy)
{
	Test__Tree tree = TEST__TREE__INIT, left = TEST__TREE__INIT;
	struct ulrpc_bulk *source, *sink;
	Ulrpc__Bulk *many[1];

	serve(NULL);
	source = bulk_of(from, 100, ULRPC_BULK_SOURCE);
	sink = bulk_of(to, 100, ULRPC_BULK_SINK);
	left.one = ulrpc_bulk_field(sink);
	many[0] = ulrpc_bulk_field(source);
	tree.left = &left;
	tree.many = many;
	tree.n_many = 1;
	test__box__plant(stub, &tree, NULL, NULL);
	test__box__plant(stub, &tree, on_old, NULL);
	cr_assert(heard.times == 0);
	lnet_sim_run(sim, SECOND);
	cr_assert(heard.times == 1 && heard.null);
	cr_assert(heard.outcome.status == -EBUSY);
	cr_assert(!heard.outcome.bulk_free);
	ulrpc_bulk_close(source, NULL, NULL);
	ulrpc_bulk_close(sink, NULL, NULL);
}

/* A stub may be freed, and a service stopped, while calls are under way. */
Test(stub_sim, ends_in_the_middle)
{
	Test__Old old = TEST__OLD__INIT;

	serve(NULL);
	test__box__ask(stub, &old, on_old, NULL);
	ulrpc_stub_free(stub);
	stub = NULL;
	cr_assert(ulrpc_service_stop(service, 0) == 0);
	cr_assert(ended == 1);
	lnet_sim_run(sim, 10 * SECOND);
	cr_assert(heard.times == 1 && heard.null);
	cr_assert(heard.outcome.execution == ULRPC_NOT_EXECUTED);
}
