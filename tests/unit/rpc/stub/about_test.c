/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node tells of its services, to another simulated node. Requirement J5.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rpc/stub/schema.h"
#include "tests/unit/rpc/stub/box.pb-c.h"
#include "tests/unit/rpc/stub/shapes.pb-c.h"
#include "ulnet/loop.h"
#include "ulnet/sim.h"
#include "ulnet/stub.h"

#define SECOND UINT64_C(1000000) /* us */

static struct lnet_sim *sim;
static struct ulrpc *here, *there;
static struct ulrpc_client *client;
static struct ulrpc_service *about, *box_runs, *plain_runs;
static ProtobufCService *stub;
static struct ulrpc_outcome outcome;

/* ---- two services ---- */

static void box_plant(Test__Box_Service *self, const Test__Tree *tree,
		      Test__Old_Closure closure, void *data)
{
	(void)self;
	(void)tree;
	closure(NULL, data);
}

static void box_ask(Test__Box_Service *self, const Test__Old *old,
		    Test__Old_Closure closure, void *data)
{
	(void)self;
	(void)old;
	closure(NULL, data);
}

static Test__Box_Service box = TEST__BOX__INIT(box_);

static void on_plain(void *arg, struct ulrpc_request *request, const void *body,
		     size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void start_plain(void)
{
	static const struct ulrpc_method_conf methods[] = {
		{ .name = "Second", .handler = on_plain },
		{ .name = "First", .handler = on_plain },
	};
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "plain";
	conf.methods = methods;
	conf.nmethods = 2;
	cr_assert(ulrpc_service_start(there, &conf, &plain_runs) == 0);
}

static unsigned int ended;

static void on_ended(void *arg)
{
	cr_assert(arg == &ended);
	ended++;
}

/* ---- the rig ---- */

static void set_up(void)
{
	struct ulrpc_service_conf conf;
	struct ulrpc_client_conf client_conf;
	struct ulnet_nid server;

	cr_assert(lnet_sim_new(7, 1, &sim) == 0);
	cr_assert(lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, NULL, NULL) >=
		  0);
	cr_assert(lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, NULL, NULL) >=
		  0);
	cr_assert(ulrpc_open(lnet_sim_node(sim, 0), NULL, &here) == 0);
	cr_assert(ulrpc_open(lnet_sim_node(sim, 1), NULL, &there) == 0);
	cr_assert(ulrpc_serve(there, &box.base, NULL, NULL, &box_runs) == 0);
	start_plain();
	ulrpc_service_conf_init(&conf);
	conf.ended = on_ended;
	conf.ended_arg = &ended;
	cr_assert(ulrpc_about_start(there, &conf, &about) == 0);
	ulrpc_client_conf_init(&client_conf);
	cr_assert(lnet_nid_parse("10.0.0.2@tcp", &server) == 0);
	client_conf.nids = &server;
	client_conf.nnids = 1;
	client_conf.service = ulrpc__about__descriptor.name;
	cr_assert(ulrpc_client_open(here, &client_conf, &client) == 0);
	cr_assert(ulrpc_stub_new(client, &ulrpc__about__descriptor, NULL,
				 5 * SECOND, &stub) == 0);
}

static void tear_down(void)
{
	ulrpc_stub_free(stub);
	ulrpc_client_close(client);
	cr_assert(ulrpc_close(here) == 0);
	cr_assert(ulrpc_close(there) == 0);
	cr_assert(ended == 1);
	cr_assert(lnet_sim_free(sim) == 0);
}

TestSuite(about, .init = set_up, .fini = tear_down);

static void *ask(const char *method, const ProtobufCMessage *request)
{
	ProtobufCMessage *reply = NULL;

	cr_assert(ulrpc_call_message_wait(stub, method, request, NULL, &reply,
					  &outcome) == 0);
	return reply;
}

static int health(const char *name)
{
	Ulrpc__HealthRequest request = ULRPC__HEALTH_REQUEST__INIT;
	Ulrpc__HealthReply *reply;
	int status;

	request.service = (char *)(uintptr_t)name;
	reply = ask("Health", &request.base);
	cr_assert(reply);
	status = (int)reply->status;
	ulrpc__health_reply__free_unpacked(reply, NULL);
	return status;
}

static Ulrpc__DescribeReply *describe(const char *name)
{
	Ulrpc__DescribeRequest request = ULRPC__DESCRIBE_REQUEST__INIT;

	request.service = (char *)(uintptr_t)name;
	return ask("Describe", &request.base);
}

/* ---- what is told ---- */

Test(about, services_and_methods)
{
	Ulrpc__ServicesRequest request = ULRPC__SERVICES_REQUEST__INIT;
	Ulrpc__ServicesReply *reply = ask("Services", &request.base);

	cr_assert(reply && reply->n_service == 3);
	cr_assert_str_eq(reply->service[0]->name, "test.Box");
	cr_assert(reply->service[0]->described);
	cr_assert(reply->service[0]->portal ==
		  ulrpc_service_portal(box_runs));
	cr_assert_str_eq(reply->service[1]->name, "plain");
	cr_assert(!reply->service[1]->described);
	cr_assert(reply->service[1]->health ==
		  ULRPC__HEALTH_REPLY__STATUS__SERVING);
	cr_assert(reply->service[1]->n_method == 2);
	cr_assert_str_eq(reply->service[1]->method[0]->name, "Second");
	cr_assert_str_eq(reply->service[1]->method[1]->name, "First");
	cr_assert(reply->service[1]->method[1]->number ==
		  ulrpc_method("First"));
	cr_assert_str_eq(reply->service[2]->name, "ulrpc.About");
	ulrpc__services_reply__free_unpacked(reply, NULL);
}

/* More services than portals. */
Test(about, many_services)
{
	enum { MORE = 200 };
	static const struct ulrpc_method_conf method = {
		.name = "First", .handler = on_plain
	};
	Ulrpc__ServicesRequest request = ULRPC__SERVICES_REQUEST__INIT;
	Ulrpc__ServicesReply *reply;
	struct ulrpc_service_conf conf;
	char name[16];

	ulrpc_service_conf_init(&conf);
	conf.name = name;
	conf.methods = &method;
	conf.nmethods = 1;
	for (unsigned int i = 0; i < MORE; i++) {
		snprintf(name, sizeof(name), "more.%u", i);
		cr_assert(ulrpc_service_start(there, &conf, NULL) == 0);
	}
	reply = ask("Services", &request.base);
	cr_assert(reply && reply->n_service == 3 + MORE);
	for (unsigned int i = 0; i < MORE; i++) {
		snprintf(name, sizeof(name), "more.%u", i);
		cr_assert_str_eq(reply->service[3 + i]->name, name);
		cr_assert_eq(reply->service[3 + i]->n_method, 1);
	}
	ulrpc__services_reply__free_unpacked(reply, NULL);
}

Test(about, health_of_services_and_of_the_node)
{
	cr_assert(health("plain") == ULRPC_HEALTH_SERVING);
	cr_assert(health("") == ULRPC_HEALTH_SERVING);
	cr_assert(health("plai") == ULRPC_HEALTH_UNKNOWN);
	ulrpc_service_health(plain_runs, ULRPC_HEALTH_NOT_SERVING);
	cr_assert(health("plain") == ULRPC_HEALTH_NOT_SERVING);
	cr_assert(health("test.Box") == ULRPC_HEALTH_SERVING);
	cr_assert(health("") == ULRPC_HEALTH_NOT_SERVING);
	ulrpc_service_health(plain_runs, ULRPC_HEALTH_SERVING);
	cr_assert(health("") == ULRPC_HEALTH_SERVING);
	cr_assert(ulrpc_service_stop(plain_runs, SECOND) == 0);
	cr_assert(health("plain") == ULRPC_HEALTH_UNKNOWN);
	cr_assert(health("") == ULRPC_HEALTH_SERVING);
}

static void see_plain(void *arg, const struct ulrpc_service_info *info)
{
	if (strcmp(info->name, "plain") == 0)
		*(enum ulrpc_health *)arg = info->health;
}

static struct ulrpc_request *held;

static void on_hold(void *arg, struct ulrpc_request *request, const void *body,
		    size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	held = request;
}

static void on_done(void *arg, const struct ulrpc_outcome *held_outcome,
		    const void *reply, size_t length)
{
	(void)reply;
	(void)length;
	*(struct ulrpc_outcome *)arg = *held_outcome;
}

static enum ulrpc_health seen_while_stopping;

/* In a turn, while ulrpc_service_stop() waits for the request. */
static void on_stopping(struct ulnet_timer *timer)
{
	(void)timer;
	ulrpc_services(there, see_plain, &seen_while_stopping);
	ulrpc_reply(held, NULL, 0);
}

/* Who asks while a service still answers its last requests is told not to come
 * any more. */
Test(about, health_of_one_that_is_being_stopped)
{
	static const struct ulrpc_method_conf method = {
		.name = "Hold", .handler = on_hold, .run = ULRPC_RUN_INLINE
	};
	struct ulrpc_client_conf conf;
	struct ulrpc_service_conf service_conf;
	struct ulrpc_call_conf call = { .deadline = 60 * SECOND };
	struct ulrpc_client *caller;
	struct ulnet_nid server;
	struct ulnet_timer timer;

	cr_assert(ulrpc_service_stop(plain_runs, SECOND) == 0);
	ulrpc_service_conf_init(&service_conf);
	service_conf.name = "plain";
	service_conf.methods = &method;
	service_conf.nmethods = 1;
	cr_assert(ulrpc_service_start(there, &service_conf, &plain_runs) == 0);
	ulrpc_client_conf_init(&conf);
	cr_assert(lnet_nid_parse("10.0.0.2@tcp", &server) == 0);
	conf.nids = &server;
	conf.nnids = 1;
	conf.service = "plain";
	cr_assert(ulrpc_client_open(here, &conf, &caller) == 0);
	cr_assert(ulrpc_call(caller, ulrpc_method("Hold"), NULL, 0, &call,
			     on_done, &outcome, NULL) == 0);
	lnet_sim_run(sim, 1000 * SECOND);
	cr_assert(held);
	lnet_timer_init(&timer, on_stopping);
	lnet_timer_arm(lnet_sim_node(sim, 1), 0, &timer,
		       lnet_now(lnet_sim_node(sim, 1), 0) + 1000 * SECOND);
	cr_assert(ulrpc_service_stop(plain_runs, 10 * SECOND) == 0);
	cr_assert(seen_while_stopping == ULRPC_HEALTH_NOT_SERVING);
	lnet_sim_run(sim, 1000 * SECOND);
	cr_assert(outcome.cause == ULRPC_CAUSE_OK);
	ulrpc_client_close(caller);
}

Test(about, messages_that_are_not_known)
{
	cr_assert(!describe("plain") && outcome.status == -ENODATA);
	cr_assert(strstr(outcome.text, "'plain'"));
	cr_assert(!describe("plan") && outcome.status == -ENOENT);
	cr_assert(strstr(outcome.text, "'plan'"));
}

Test(about, messages_come_over_the_wire)
{
	Ulrpc__DescribeReply *reply = describe("test.Box");

	cr_assert(reply && reply->files);
	cr_assert_str_eq(reply->service, "test.Box");
	/* packages test and ulrpc: of that, there is only Bulk */
	cr_assert(reply->files->n_file == 2);
	cr_assert_str_eq(reply->files->file[0]->package, "test");
	cr_assert_str_eq(reply->files->file[0]->syntax, "proto3");
	cr_assert(reply->files->file[0]->n_dependency == 1);
	cr_assert_str_eq(reply->files->file[0]->dependency[0], "ulrpc.proto");
	cr_assert(reply->files->file[0]->n_service == 1);
	cr_assert(reply->files->file[1]->n_message_type == 1);
	cr_assert_str_eq(reply->files->file[1]->message_type[0]->name, "Bulk");
	ulrpc__describe_reply__free_unpacked(reply, NULL);
}

/* ---- what messages look like ---- */

static struct arena arena;
static Ulrpc__Schema__FileSet set = ULRPC__SCHEMA__FILE_SET__INIT;
static Ulrpc__Schema__Type *shape;

static void make_schema(void)
{
	arena_init(&arena, NULL, 0, 1 << 20);
	cr_assert(schema_add(&set, &arena, &test__shapes__shapes__descriptor,
			     NULL) == 0);
	cr_assert_str_eq(set.file[0]->package, "test.shapes");
	shape = set.file[0]->message_type[0];
	cr_assert_str_eq(shape->name, "Shape");
}

static void free_schema(void)
{
	arena_fini(&arena);
}

TestSuite(schema, .init = make_schema, .fini = free_schema);

static Ulrpc__Schema__Field *field(const char *name)
{
	for (size_t i = 0; i < shape->n_field; i++)
		if (!strcmp(shape->field[i]->name, name))
			return shape->field[i];
	cr_assert_fail("no field %s", name);
	return NULL;
}

static Ulrpc__Schema__Type *nested(const char *name)
{
	for (size_t i = 0; i < shape->n_nested_type; i++)
		if (!strcmp(shape->nested_type[i]->name, name))
			return shape->nested_type[i];
	cr_assert_fail("no message %s", name);
	return NULL;
}

/* The numbers are those of google/protobuf/descriptor.proto. */
Test(schema, types_of_fields)
{
	static const struct {
		const char *name;
		int type, label;
	} wanted[] = {
		{ "yes", 8, 1 },   { "i32", 5, 1 },	  { "i64", 3, 1 },
		{ "u32", 13, 1 },  { "u64", 4, 1 },	  { "s32", 17, 1 },
		{ "s64", 18, 1 },  { "f32", 7, 1 },	  { "f64", 6, 1 },
		{ "sf32", 15, 1 }, { "sf64", 16, 1 },	  { "small", 2, 1 },
		{ "large", 1, 1 }, { "text", 9, 1 },	  { "blob", 12, 1 },
		{ "kind", 14, 1 }, { "part", 11, 1 },	  { "numbers", 4, 3 },
		{ "kinds", 14, 3 }, { "by_name", 11, 3 },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		cr_expect(field(wanted[i].name)->type == wanted[i].type, "%s",
			  wanted[i].name);
		cr_expect(field(wanted[i].name)->label == wanted[i].label, "%s",
			  wanted[i].name);
	}
	cr_assert_str_eq(set.file[0]->syntax, "proto3");
}

Test(schema, types_in_types)
{
	cr_assert_str_eq(field("kind")->type_name, ".test.shapes.Shape.Part.Kind");
	cr_assert_str_eq(nested("Part")->enum_type[0]->name, "Kind");
	cr_assert(nested("Part")->enum_type[0]->n_value == 3);
	/* the default is the first */
	cr_assert_str_eq(nested("Part")->enum_type[0]->value[0]->name, "NONE");
	/* Apart is in no field, but Inner in it is. */
	cr_assert(nested("Apart")->n_field == 0);
	cr_assert_str_eq(nested("Apart")->nested_type[0]->name, "Inner");
	cr_assert_str_eq(field("top")->type_name, ".test.shapes.Top");
	cr_assert_str_eq(set.file[0]->enum_type[0]->name, "Top");
	/* of another package */
	cr_assert_str_eq(field("old")->type_name, ".test.Old");
	cr_assert(set.file[0]->n_dependency == 1);
	cr_assert_str_eq(set.file[0]->dependency[0], "test.proto");
}

Test(schema, maps)
{
	cr_assert(nested("ByNameEntry")->options->map_entry);
	cr_assert(nested("ByNumberEntry")->options->map_entry);
	cr_assert(!nested("NotEntry")->options);
	cr_assert(!nested("Part")->options);
}

Test(schema, oneofs)
{
	cr_assert(shape->n_oneof_decl == 2);
	cr_assert(!field("u32")->has_oneof_index);
	cr_assert(field("picked_number")->has_oneof_index);
	cr_assert(field("picked_number")->oneof_index == 0);
	cr_assert(field("picked_part")->oneof_index == 0);
	cr_assert(field("a")->oneof_index == 1);
	cr_assert(field("b")->oneof_index == 1);
}

/* Without memory it says so, wherever it ends. */
Test(schema, without_memory)
{
	size_t limit = 0;
	int rc;

	do {
		Ulrpc__Schema__FileSet other = ULRPC__SCHEMA__FILE_SET__INIT;
		struct arena small;

		arena_init(&small, NULL, 0, limit);
		rc = schema_add(&other, &small,
				&test__shapes__shapes__descriptor, NULL);
		cr_assert(rc == 0 || rc == -ENOMEM);
		arena_fini(&small);
		limit += 512;
	} while (rc);
	cr_assert(limit > 4096);
}
