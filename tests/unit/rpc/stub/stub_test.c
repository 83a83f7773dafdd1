/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stubs and services with stand-ins for the layers below: calls, whose bodies
 * the test carries to the other side, and a simulated node.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rpc/bulk/bulk.h"
#include "rpc/stub/message.h"
#include "tests/unit/rpc/stub/box.pb-c.h"
#include "ulnet/sim.h"
#include "ulnet/stub.h"

/* ---- stand-ins for RPC ---- */

struct ulrpc_client {
	int refuse; /* -errno for calls, or 0 */
};

/* The one call that is under way, and the request that the service sees. */
struct ulrpc_request {
	uint32_t method;
	struct ulrpc_call_conf conf;
	struct ulrpc_bulk *bulks[ULRPC_BULKS_MAX];
	uint8_t *body;
	size_t length;
	ulrpc_done_fn done;
	void *arg;
	unsigned int answers;
	int status; /* of ulrpc_fail(); 1: ulrpc_refuse() */
	uint8_t *reply;
	size_t reply_length;
};

static struct ulrpc_client client;
static struct ulrpc_request line;
static struct ulrpc_service_conf started;
static char started_name[ULRPC_SERVICE_NAME];
static struct lnet_sim *sim;
static uint8_t recorded[256];
static size_t recorded_length;
static int refuse_record;

struct ulrpc *ulrpc_client_rpc(struct ulrpc_client *c)
{
	(void)c;
	return NULL;
}

unsigned int ulrpc_client_cpt(const struct ulrpc_client *c)
{
	(void)c;
	return 0;
}

int ulrpc_method_declare(struct ulrpc *rpc, const char *name)
{
	(void)rpc;
	(void)name;
	return 0;
}

struct lnet *ulrpc_node(struct ulrpc *rpc)
{
	(void)rpc;
	return lnet_sim_node(sim, 0);
}

uint32_t ulrpc_method(const char *name)
{
	return (uint32_t)strlen(name) << 8 | (uint8_t)*name;
}

static void *copy_of(const void *bytes, size_t length)
{
	void *copy = malloc(length + 1);

	return length ? memcpy(copy, bytes, length) : copy;
}

static void line_clear(void)
{
	free(line.body);
	free(line.reply);
	memset(&line, 0, sizeof(line));
}

int ulrpc_call(struct ulrpc_client *c, uint32_t method, const void *body,
	       size_t length, const struct ulrpc_call_conf *conf,
	       ulrpc_done_fn done, void *arg, struct ulrpc_call **call_p)
{
	(void)call_p;
	if (c->refuse)
		return c->refuse;
	line_clear();
	line.method = method;
	line.conf = *conf;
	for (unsigned int i = 0; i < conf->nbulks; i++)
		line.bulks[i] = conf->bulks[i];
	line.body = copy_of(body, length);
	line.length = length;
	line.done = done;
	line.arg = arg;
	return 0;
}

void ulrpc_reply(struct ulrpc_request *request, const void *body, size_t length)
{
	request->answers++;
	request->reply = copy_of(body, length);
	request->reply_length = length;
}

void ulrpc_fail(struct ulrpc_request *request, int status)
{
	request->answers++;
	request->status = status;
}

void ulrpc_fail_text(struct ulrpc_request *request, int status,
		     const char *text)
{
	cr_assert(strcmp(text, "why") == 0);
	ulrpc_fail(request, status);
}

/* Makes a record that consists of the reply. */
int ulrpc_request_record(struct ulrpc_request *request, int status,
			 const void *body, size_t length,
			 struct ulrpc_record *record)
{
	cr_assert(request == &line && status == 0);
	if (refuse_record)
		return refuse_record;
	recorded_length = length;
	memcpy(recorded, body, length);
	record->value = recorded;
	record->length = length;
	return 0;
}

int ulrpc_reply_details(struct ulrpc_request *request,
			const struct ulrpc_details *details)
{
	(void)request;
	(void)details;
	return -ENOMEM;
}

void ulrpc_fail_status(struct ulrpc_request *request, enum ulrpc_status status,
		       const char *text)
{
	(void)status;
	ulrpc_fail_text(request, -ENOSPC, text);
}

void ulrpc_refuse(struct ulrpc_request *request)
{
	request->answers++;
	request->status = 1;
}

void ulrpc_service_conf_init(struct ulrpc_service_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
}

int ulrpc_service_start(struct ulrpc *rpc,
			const struct ulrpc_service_conf *conf,
			struct ulrpc_service **service_p)
{
	(void)rpc;
	(void)service_p;
	if (conf->portal == 99)
		return -EEXIST;
	started = *conf;
	snprintf(started_name, sizeof(started_name), "%s", conf->name);
	return 0;
}

/* Passes the request to the method's handler. */
static void arrive(void)
{
	for (unsigned int i = 0; i < started.nmethods; i++) {
		const struct ulrpc_method_conf *m = &started.methods[i];

		if (ulrpc_method(m->name) == line.method)
			m->handler(m->arg, &line, line.body, line.length);
	}
}

/* Passes the answer to the caller. */
static void come_back(void)
{
	struct ulrpc_outcome outcome = {
		.status = line.status,
		.cause = line.reply	    ? ULRPC_CAUSE_OK
			 : line.status == 1 ? ULRPC_CAUSE_BAD_REQUEST
					    : ULRPC_CAUSE_HANDLER,
		.attempts = 1,
	};

	line.done(line.arg, &outcome, line.reply, line.reply_length);
}

int ulrpc_call_wait_alloc(struct ulrpc_client *c, uint32_t method,
			  const void *body, size_t length,
			  const struct ulrpc_call_conf *conf, void **reply_p,
			  size_t *length_p, struct ulrpc_outcome *outcome)
{
	int rc = ulrpc_call(c, method, body, length, conf, NULL, NULL, NULL);

	if (rc)
		return rc;
	arrive();
	memset(outcome, 0, sizeof(*outcome));
	outcome->status = line.status;
	outcome->cause = line.reply ? ULRPC_CAUSE_OK : ULRPC_CAUSE_HANDLER;
	*length_p = line.reply_length;
	*reply_p = line.reply_length ? malloc(line.reply_length) : NULL;
	if (line.reply_length)
		memcpy(*reply_p, line.reply, line.reply_length);
	return 0;
}

/* Sets are tested in stub_sim_test.c. */
int ulrpc_set_call(struct ulrpc_set *set, struct ulrpc_client *c,
		   uint32_t method, const void *body, size_t length,
		   const struct ulrpc_call_conf *conf, void *arg,
		   struct ulrpc_call **call_p)
{
	(void)set;
	cr_assert_fail("no set here");
	return ulrpc_call(c, method, body, length, conf, NULL, arg, call_p);
}

/* ---- the stub and its closures ---- */

static struct {
	unsigned int times;
	bool null;
	uint32_t number;
	char text[64];
	struct ulrpc_outcome outcome;
} heard;

static void hear(const ProtobufCMessage *message, void *data)
{
	const Test__Old *old = (const Test__Old *)message;

	cr_assert(data == &heard);
	heard.times++;
	heard.null = !old;
	heard.outcome = *ulrpc_stub_outcome();
	if (old) {
		heard.number = old->number;
		snprintf(heard.text, sizeof(heard.text), "%s", old->text);
	}
}

static void on_old(const Test__Old *old, void *data)
{
	hear(old ? &old->base : NULL, data);
}

static void on_message(void *arg, const struct ulrpc_outcome *outcome,
		       const ProtobufCMessage *reply)
{
	cr_assert(outcome == ulrpc_stub_outcome());
	hear(reply, arg);
}

static ProtobufCService *stub;

static void set_up(void)
{
	cr_assert(lnet_sim_new(1, 1, &sim) == 0);
	cr_assert(lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, NULL, NULL) ==
		  0);
	cr_assert(ulrpc_stub_new(&client, &test__box__descriptor, NULL, 1000,
				 &stub) == 0);
}

static void tear_down(void)
{
	ulrpc_stub_free(stub);
	if (started.ended)
		started.ended(started.ended_arg);
	line_clear();
	cr_assert(lnet_sim_free(sim) == 0);
}

TestSuite(stub, .init = set_up, .fini = tear_down);

/* ---- the service ---- */

static void *kept; /* closure data of a request that is not answered yet */
static const Test__Old *kept_request;
static Test__Old_Closure kept_closure;

static void box__plant(Test__Box_Service *service, const Test__Tree *tree,
		       Test__Old_Closure closure, void *data)
{
	Test__Old reply = TEST__OLD__INIT;
	char text[] = "planted";

	cr_assert(service->base.descriptor == &test__box__descriptor);
	cr_assert(ulrpc_request_of(data) == &line);
	reply.number = (uint32_t)tree->n_numbers;
	reply.text = text;
	if (tree->data.len)
		ulrpc_closure_fail_text(data, -EFBIG, "why");
	else
		closure(&reply, data);
}

static void box__ask(Test__Box_Service *service, const Test__Old *request,
		     Test__Old_Closure closure, void *data)
{
	(void)service;
	kept = data;
	kept_request = request;
	kept_closure = closure;
}

static Test__Box_Service box = TEST__BOX__INIT(box__);

static void serve(void)
{
	struct ulrpc_service *service;

	cr_assert(ulrpc_serve(NULL, &box.base, NULL, NULL, &service) == 0);
}

/* ---- calls ---- */

Test(stub, call_and_reply)
{
	Test__Tree tree = TEST__TREE__INIT;
	uint32_t numbers[] = { 1, 2, 3 };

	serve();
	cr_assert(strcmp(started_name, "test.Box") == 0);
	tree.numbers = numbers;
	tree.n_numbers = 3;
	test__box__plant(stub, &tree, on_old, &heard);
	cr_assert(heard.times == 0);
	cr_assert(line.conf.deadline == 1000);
	arrive();
	cr_assert(line.answers == 1);
	come_back();
	cr_assert(heard.times == 1 && !heard.null);
	cr_assert(heard.number == 3 && strcmp(heard.text, "planted") == 0);
	cr_assert(heard.outcome.cause == ULRPC_CAUSE_OK);
	cr_assert(!ulrpc_stub_outcome());
}

Test(stub, record_of_a_reply)
{
	Test__Old old = TEST__OLD__INIT;
	struct ulrpc_record record;
	char text[] = "recorded";

	serve();
	old.text = text;
	test__box__ask(stub, &old, on_old, &heard);
	arrive();
	refuse_record = -EOPNOTSUPP;
	cr_assert(ulrpc_closure_record(kept, &kept_request->base, &record) ==
		  -EOPNOTSUPP);
	refuse_record = 0;
	cr_assert(ulrpc_closure_record(kept, &kept_request->base, &record) ==
		  0);
	cr_assert(line.answers == 0);
	kept_closure(kept_request, kept);
	cr_assert(line.answers == 1);
	cr_assert(recorded_length == line.reply_length);
	cr_assert(memcmp(recorded, line.reply, recorded_length) == 0);
	come_back();
	cr_assert(strcmp(heard.text, text) == 0);
}

Test(stub, reply_later)
{
	Test__Old old = TEST__OLD__INIT;
	char text[3000];

	serve();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	old.text = text;
	test__box__ask(stub, &old, on_old, &heard);
	arrive();
	cr_assert(line.answers == 0);
	/* The request stays valid until it is answered, although the bytes in
	 * which it came are gone. */
	memset(line.body, 0xff, line.length);
	cr_assert(strcmp(kept_request->text, text) == 0);
	kept_closure(kept_request, kept);
	cr_assert(line.answers == 1);
	come_back();
	cr_assert(heard.times == 1 && strncmp(heard.text, text, 63) == 0);
}

Test(stub, failures_of_the_service)
{
	Test__Tree tree = TEST__TREE__INIT;
	Test__Old old = TEST__OLD__INIT;
	uint8_t byte = 0;

	serve();
	tree.data = (ProtobufCBinaryData){ 1, &byte };
	test__box__plant(stub, &tree, on_old, &heard);
	arrive();
	come_back();
	cr_assert(heard.times == 1 && heard.null);
	cr_assert(heard.outcome.status == -EFBIG);

	test__box__ask(stub, &old, on_old, &heard);
	arrive();
	kept_closure(NULL, kept);
	come_back();
	cr_assert(heard.times == 2 && heard.null);
	cr_assert(heard.outcome.status == -EIO);
}

Test(stub, request_that_cannot_be_read)
{
	Test__Old old = TEST__OLD__INIT;

	serve();
	old.number = 300;
	test__box__ask(stub, &old, on_old, &heard);
	line.length--;
	arrive();
	cr_assert(line.answers == 1 && line.status == 1 && !kept);
	come_back();
	cr_assert(heard.times == 1 && heard.null);
	cr_assert(heard.outcome.cause == ULRPC_CAUSE_BAD_REQUEST);
}

Test(stub, reply_that_cannot_be_read)
{
	Test__Old old = TEST__OLD__INIT;

	test__box__ask(stub, &old, on_old, &heard);
	ulrpc_reply(&line, "\x08", 1);
	come_back();
	cr_assert(heard.times == 1 && heard.null);
	cr_assert(heard.outcome.cause == ULRPC_CAUSE_BAD_REPLY);
	cr_assert(heard.outcome.status == -EBADMSG);
	cr_assert(heard.outcome.attempts == 1);
}

/* The closure is called with the error, but only after the call has returned.
 */
Test(stub, call_that_cannot_be_made)
{
	static const struct {
		int rc;
		enum ulrpc_cause cause;
		bool bulk_free;
	} cases[] = {
		{ -ENOMEM, ULRPC_CAUSE_NO_MEMORY, true },
		{ -ESHUTDOWN, ULRPC_CAUSE_SHUTDOWN, true },
		{ -EMSGSIZE, ULRPC_CAUSE_BAD_REQUEST, true },
		{ -EBUSY, ULRPC_CAUSE_BAD_REQUEST, false },
	};
	Test__Old old = TEST__OLD__INIT;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		client.refuse = cases[i].rc;
		test__box__ask(stub, &old, on_old, &heard);
		cr_assert(heard.times == i);
		lnet_sim_run_all(sim);
		cr_assert(heard.times == i + 1 && heard.null);
		cr_assert(heard.outcome.status == cases[i].rc);
		cr_assert(heard.outcome.cause == cases[i].cause);
		cr_assert(heard.outcome.execution == ULRPC_NOT_EXECUTED);
		cr_assert(heard.outcome.bulk_free == cases[i].bulk_free);
	}
}

Test(stub, nobody_listens)
{
	Test__Old old = TEST__OLD__INIT;

	test__box__ask(stub, &old, NULL, NULL);
	ulrpc_reply(&line, "", 0);
	come_back();
	client.refuse = -ENOMEM;
	test__box__ask(stub, &old, NULL, NULL);
	lnet_sim_run_all(sim);
}

/* A stub may be freed before its calls have ended. */
Test(stub, stub_goes_first)
{
	Test__Old old = TEST__OLD__INIT;

	test__box__ask(stub, &old, on_old, &heard);
	protobuf_c_service_destroy(stub);
	stub = NULL;
	ulrpc_reply(&line, "\x08\x07", 2);
	come_back();
	cr_assert(heard.times == 1 && heard.number == 7);
}

/* ---- calls with settings of their own ---- */

Test(stub, deadlines)
{
	struct ulrpc_call_conf conf = { .deadline = 5, .reply_max = 77 };
	Test__Old old = TEST__OLD__INIT;

	ulrpc_stub_deadline(stub, 2000);
	test__box__ask(stub, &old, NULL, NULL);
	cr_assert(line.conf.deadline == 2000);
	line.done(line.arg, &(struct ulrpc_outcome){ .cause = 1 }, NULL, 0);
	cr_assert(ulrpc_call_message(stub, "Ask", &old.base, &conf, on_message,
				     &heard, NULL) == 0);
	cr_assert(line.conf.deadline == 5 && line.conf.reply_max == 77);
	ulrpc_reply(&line, "\x08\x09", 2);
	come_back();
	cr_assert(heard.times == 1 && heard.number == 9);
}

Test(stub, by_name_what_is_wrong)
{
	Test__Old old = TEST__OLD__INIT;
	Test__New other = TEST__NEW__INIT;
	struct ulrpc_outcome outcome;
	struct ulrpc_call_conf conf;
	ProtobufCMessage *reply;

	cr_assert(ulrpc_call_message(stub, "Ask", &other.base, NULL, on_message,
				     &heard, NULL) == -EINVAL);
	cr_assert(ulrpc_call_message(stub, "ask", &old.base, NULL, on_message,
				     &heard, NULL) == -ENOENT);
	cr_assert(ulrpc_call_message_wait(stub, "", &old.base, NULL, &reply,
					  &outcome) == -ENOENT);
	cr_assert(ulrpc_call_message_wait(stub, "Ask", &other.base, NULL,
					  &reply, &outcome) == -EINVAL);
	cr_assert(ulrpc_stub_conf(stub, "Nothing", &conf) == -ENOENT);
	client.refuse = -ESHUTDOWN;
	cr_assert(ulrpc_call_message(stub, "Ask", &old.base, NULL, on_message,
				     &heard, NULL) == -ESHUTDOWN);
	cr_assert(ulrpc_call_message_wait(stub, "Ask", &old.base, NULL, &reply,
					  &outcome) == -ESHUTDOWN);
	lnet_sim_run_all(sim);
	cr_assert(heard.times == 0);
}

Test(stub, waiting)
{
	Test__Tree tree = TEST__TREE__INIT;
	struct ulrpc_outcome outcome;
	ProtobufCMessage *reply;
	uint8_t byte = 0;

	serve();
	cr_assert(ulrpc_call_message_wait(stub, "Plant", &tree.base, NULL,
					  &reply, &outcome) == 0);
	cr_assert(outcome.cause == ULRPC_CAUSE_OK);
	cr_assert(reply->descriptor == &test__old__descriptor);
	cr_assert(strcmp(((Test__Old *)reply)->text, "planted") == 0);
	protobuf_c_message_free_unpacked(reply, NULL);

	tree.data = (ProtobufCBinaryData){ 1, &byte };
	cr_assert(ulrpc_call_message_wait(stub, "Plant", &tree.base, NULL,
					  &reply, &outcome) == 0);
	cr_assert(outcome.status == -EFBIG && !reply);
}

/* The same part comes again and again, and to merge it copies all that came
 * before. What is freed meanwhile counts, too. */
Test(stub, reply_that_costs_much)
{
	static const uint8_t one[13] = { 3 << 3 | 2, 11, 0xa2, 0x06, 8, 1 };
	size_t length = 4600 * sizeof(one);
	struct ulrpc_result result = { .method = ulrpc_method("Brew"),
				       .reply = malloc(length),
				       .length = length };
	ProtobufCMessage *reply;

	for (size_t k = 0; k < length; k += sizeof(one))
		memcpy((uint8_t *)result.reply + k, one, sizeof(one));
	result.outcome.cause = ULRPC_CAUSE_OK;
	cr_assert(ulrpc_result_message(&result, &test__later__descriptor,
				       "Brew", &reply) == 0);
	cr_assert(!reply);
	cr_assert(result.outcome.status == -EBADMSG);
	cr_assert(result.outcome.cause == ULRPC_CAUSE_BAD_REPLY);
}

/* ---- bulks ---- */

Test(stub, bulks)
{
	struct ulrpc_bulk *extra = (void *)0x100, *mine = (void *)0x200;
	struct ulrpc_call_conf conf = { .deadline = 1,
					.bulks = &extra,
					.nbulks = 1 };
	Test__Tree tree = TEST__TREE__INIT;
	Ulrpc__Bulk field, plain = ULRPC__BULK__INIT;
	Test__Tree *copy;

	bulk_field_init(&field, mine, 10, ULRPC_BULK_SOURCE);
	tree.one = &field;
	test__box__plant(stub, &tree, NULL, NULL);
	cr_assert(line.conf.nbulks == 1 && line.bulks[0] == mine);
	line.done(line.arg, &(struct ulrpc_outcome){ .cause = 1 }, NULL, 0);

	cr_assert(ulrpc_call_message(stub, "Plant", &tree.base, &conf, NULL,
				     NULL, NULL) == 0);
	cr_assert(line.conf.nbulks == 2 && line.bulks[0] == extra &&
		  line.bulks[1] == mine);
	copy = test__tree__unpack(NULL, line.length, line.body);
	cr_assert(copy->one->index == 1 && copy->one->length == 10);
	test__tree__free_unpacked(copy, NULL);
	line.done(line.arg, &(struct ulrpc_outcome){ .cause = 1 }, NULL, 0);

	tree.one = &plain;
	cr_assert(ulrpc_call_message(stub, "Plant", &tree.base, NULL, NULL,
				     NULL, NULL) == -EINVAL);
	conf.nbulks = ULRPC_BULKS_MAX + 1;
	cr_assert(ulrpc_call_message(stub, "Plant", &tree.base, &conf, NULL,
				     NULL, NULL) == -E2BIG);
}

/* ---- options ---- */

static const struct ulrpc_method_options options[] = {
	{ .method = "Ask",
	  .semantics = ULRPC_IDEMPOTENT,
	  .priority = ULRPC_PRIORITY_HIGH,
	  .run = ULRPC_RUN_INLINE,
	  .reply_max = 100000 },
	{ .method = NULL },
};

Test(stub, options)
{
	ProtobufCService *other;
	Test__Old old = TEST__OLD__INIT;
	struct ulrpc_service *service;
	struct ulrpc_call_conf conf;

	cr_assert(ulrpc_stub_new(&client, &test__box__descriptor, options, 9,
				 &other) == 0);
	test__box__ask(other, &old, NULL, NULL);
	conf = line.conf;
	line.done(line.arg, &(struct ulrpc_outcome){ .cause = 1 }, NULL, 0);
	for (int i = 0; i < 2; i++) {
		cr_assert(conf.semantics == ULRPC_IDEMPOTENT);
		cr_assert(conf.priority == ULRPC_PRIORITY_HIGH);
		cr_assert(conf.reply_max == 100000 && conf.deadline == 9);
		cr_assert(ulrpc_stub_conf(other, "Ask", &conf) == 0);
	}
	cr_assert(ulrpc_stub_conf(other, "Plant", &conf) == 0);
	cr_assert(conf.semantics == ULRPC_AT_MOST_ONCE && !conf.reply_max);
	ulrpc_stub_free(other);

	cr_assert(ulrpc_serve(NULL, &box.base, options, NULL, &service) == 0);
	cr_assert(started.nmethods == 2);
	cr_assert(strcmp(started.methods[0].name, "Plant") == 0);
	cr_assert(started.methods[0].run == ULRPC_RUN_WORKER);
	cr_assert(strcmp(started.methods[1].name, "Ask") == 0);
	cr_assert(started.methods[1].run == ULRPC_RUN_INLINE);
	cr_assert(started.methods[1].priority == ULRPC_PRIORITY_HIGH);
	cr_assert(started.methods[1].semantics == ULRPC_IDEMPOTENT);
}

Test(stub, options_that_make_no_sense)
{
	static const struct {
		struct ulrpc_method_options options;
		int rc;
		const char *what;
	} cases[] = {
		{ { .method = "Asks" },
		  -ENOENT,
		  "options: test.Box has no method 'Asks'" },
		{ { .method = "" },
		  -ENOENT,
		  "options: test.Box has no method ''" },
		{ { .method = "Ask", .semantics = 3 },
		  -EINVAL,
		  "options: 'Ask': 3 is out of the range of semantics" },
		{ { .method = "Ask", .priority = 4 },
		  -EINVAL,
		  "options: 'Ask': 4 is out of the range of priority" },
		{ { .method = "Ask", .run = 2 },
		  -EINVAL,
		  "options: 'Ask': 2 is out of the range of run" },
		{ { .method = "Ask", .reply_max = ULRPC_BODY_MAX + 1 },
		  -EINVAL,
		  "options: 'Ask': 983041 is out of the range of reply_max" },
	};
	ProtobufCService *other = NULL;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ulrpc_method_options table[] = { cases[i].options,
							{ .method = NULL } };
		struct ulnet_conf_error err = { "" };
		struct ulrpc_service_conf conf = { .err = &err };

		cr_assert(ulrpc_stub_new(&client, &test__box__descriptor, table,
					 1, &other) == cases[i].rc,
			  "case %u", i);
		cr_assert(ulrpc_serve(NULL, &box.base, table, NULL, NULL) ==
				  cases[i].rc,
			  "case %u", i);
		cr_assert(ulrpc_serve(NULL, &box.base, table, &conf, NULL) ==
				  cases[i].rc,
			  "case %u", i);
		cr_assert(strcmp(err.what, cases[i].what) == 0, "%s", err.what);
	}
	cr_assert(ulrpc_stub_new(&client, &test__box__descriptor, NULL, 0,
				 &other) == -EINVAL);
	cr_assert(!other);
}

/* ---- starting services ---- */

static void count(void *arg)
{
	++*(int *)arg;
}

Test(stub, service_conf)
{
	struct ulnet_conf_error err = { "" };
	struct ulrpc_service_conf conf = { .name = "mine",
					   .window = 7,
					   .err = &err };
	struct ulrpc_method_conf method = { .name = "Extra" };
	Test__Box_Service half = TEST__BOX__INIT(box__);
	struct ulrpc_service *service;
	int ended = 0;

	conf.ended = count;
	conf.ended_arg = &ended;
	cr_assert(ulrpc_serve(NULL, &box.base, NULL, &conf, &service) == 0);
	cr_assert(strcmp(started_name, "mine") == 0 && started.window == 7);
	started.ended(started.ended_arg);
	cr_assert(ended == 1);

	started.ended = NULL;
	conf.portal = 99;
	cr_assert(ulrpc_serve(NULL, &box.base, NULL, &conf, &service) ==
		  -EEXIST);
	cr_assert(ended == 1);
	conf.portal = 0;
	conf.methods = &method;
	conf.nmethods = 1;
	cr_assert(ulrpc_serve(NULL, &box.base, NULL, &conf, &service) ==
		  -EINVAL);
	cr_assert(strcmp(err.what, "methods: they are those of the "
				   "implementation") == 0,
		  "%s", err.what);
	conf.nmethods = 0;
	cr_assert(ulrpc_serve(NULL, NULL, NULL, &conf, &service) == -EINVAL);
	cr_assert(strcmp(err.what, "implementation: there is no service") == 0,
		  "%s", err.what);
	half.ask = NULL;
	cr_assert(ulrpc_serve(NULL, &half.base, NULL, NULL, &service) ==
		  -EINVAL);
	cr_assert(ulrpc_serve(NULL, &half.base, NULL, &conf, &service) ==
		  -EINVAL);
	cr_assert(strcmp(err.what, "implementation: method 'Ask' has no "
				   "function") == 0,
		  "%s", err.what);
	cr_assert(!started.ended);
}

/* ---- versions: fields that both sides know arrive ---- */

static uint32_t later_seen;

static void later__brew(Test__Later_Service *service, const Test__Tree *tree,
			Test__New_Closure closure, void *data)
{
	(void)service;
	(void)tree;
	closure(NULL, data);
}

static void later__ask(Test__Later_Service *service, const Test__New *request,
		       Test__New_Closure closure, void *data)
{
	Test__New more = TEST__NEW__INIT, reply = TEST__NEW__INIT;
	uint64_t list[] = { 4, 5 };
	char text[] = "later";

	(void)service;
	later_seen = request->number;
	cr_assert(!request->more && !request->n_list);
	reply.number = 43;
	reply.text = text;
	reply.more = &more;
	reply.list = list;
	reply.n_list = 2;
	closure(&reply, data);
}

Test(stub, old_client_new_service)
{
	Test__Later_Service later = TEST__LATER__INIT(later__);
	Test__Old old = TEST__OLD__INIT;
	struct ulrpc_service *service;

	cr_assert(ulrpc_serve(NULL, &later.base, NULL, NULL, &service) == 0);
	old.number = 42;
	test__box__ask(stub, &old, on_old, &heard);
	arrive();
	come_back();
	cr_assert(later_seen == 42);
	cr_assert(heard.number == 43 && strcmp(heard.text, "later") == 0);
}

static void on_new(const Test__New *new, void *data)
{
	*(uint32_t *)data = new->number;
	/* The service replies with the fields that it does not know, too. */
	cr_assert(strcmp(new->text, "old") == 0 && new->more);
}

Test(stub, new_client_old_service)
{
	Test__New more = TEST__NEW__INIT, new = TEST__NEW__INIT;
	uint32_t number = 0;
	ProtobufCService *later;
	char text[] = "old";

	serve();
	cr_assert(ulrpc_stub_new(&client, &test__later__descriptor, NULL, 1,
				 &later) == 0);
	new.number = 7;
	new.text = text;
	new.more = &more;
	test__later__ask(later, &new, on_new, &number);
	arrive();
	kept_closure(kept_request, kept);
	come_back();
	cr_assert(number == 7);
	ulrpc_stub_free(later);
}
