/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ulrpc(1): asks a node what services it has and how they are, and calls their
 * methods with JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "message.h"
#include "stream.h"
#include "tools/common/keys.h"
#include "tools/common/node.h"
#include "tools/common/program.h"
#include "tools/common/target.h"
#include "ulnet/context.h"
#include "ulnet/keys.h"
#include "ulnet/stub.h"

#define WHO	     "ulrpc"
#define INCLUDES_MAX 16
#define REPLY_MAX    4096 /* longer replies are fetched */
#define REPLY_LIMIT  (UINT64_C(16) << 20) /* bytes of the longest reply */
#define DEADLINE     5000000 /* us: of calls, and to reach the server */

struct ulrpc_tool {
	struct node_options options;
	struct keys_options keys;
	uint64_t deadline; /* us; 0: not given */
	bool wait;
	const char *server; /* pattern of the name that it has to prove */
	const char *proto;  /* NULL: the server says what messages look like */
	const char *includes[INCLUDES_MAX + 1];
	unsigned int nincludes;
	const char *type; /* the service's name in @proto; NULL: its name */
	unsigned int semantics;
	uint64_t reply_limit; /* bytes */
	bool defaults;
	const char *target;
	const struct command *command;
	const char *args[3]; /* of the command; NULL: there is none */
	int signals;	     /* signals_open(); -1: signals end the program */
	struct say say;
	struct node node;
	struct ulrpc *rpc;
	struct schema schema;
	/* What schema.h and message.h complain of, line by line: printed at the
	 * end, with the program's name in front. */
	FILE *notes;
	char *notes_text;
	size_t notes_length;
};

/* ---- the command line ---- */

static const char *const semantics[] = {
	[ULRPC_AT_MOST_ONCE] = "at-most-once",
	[ULRPC_IDEMPOTENT] = "idempotent",
	[ULRPC_EXACTLY_ONCE] = "exactly-once",
	NULL,
};

static int take_include(const struct option_at *at)
{
	struct ulrpc_tool *t = at->object;

	if (t->nincludes == INCLUDES_MAX)
		return option_bad(at, "there are too many of them");
	t->includes[t->nincludes++] = at->text;
	return 0;
}

#define AT(field) offsetof(struct ulrpc_tool, field)

static const struct option_row rows[] = {
	{ "proto", 0, "FILE",
	  "what messages look like: a .proto, or a descriptor set of protoc's "
	  "(the server is asked)",
	  .kind = OPTION_TEXT, AT(proto), 1 },
	{ "include", 0, "DIR",
	  "where protoc finds what the .proto imports; can be given several "
	  "times",
	  .kind = OPTION_CALL, .take = take_include },
	{ "type", 0, "NAME",
	  "with --proto: what the file calls the service (as the server does)",
	  .kind = OPTION_TEXT, AT(type), 1 },
	{ "deadline", 0, "T", "deadline of each call (5 s; of a stream: none)",
	  .kind = OPTION_TIME, AT(deadline), 1 },
	{ "wait", 0, NULL,
	  "wait for a node or service that is not there (the first answer "
	  "decides)",
	  .kind = OPTION_FLAG, AT(wait) },
	{ "semantics", 0, "S",
	  "at-most-once (default), idempotent or exactly-once",
	  .kind = OPTION_WORD, AT(semantics), .words = semantics },
	{ "reply-limit", 0, "SIZE",
	  "the longest reply that is taken, encoded (16M)", .kind = OPTION_SIZE,
	  AT(reply_limit), 1, ULRPC_REPLY_MAX },
	{ "server", 0, "NAME",
	  "with --keys: call only who proves this name, or one of this pattern",
	  .kind = OPTION_TEXT, AT(server), 1 },
	{ "defaults", 0, NULL, "print fields that have no value, too",
	  .kind = OPTION_FLAG, AT(defaults) },
	{ 0 },
};

/* ---- calls ---- */

static uint64_t deadline_of(const struct ulrpc_tool *t)
{
	return t->deadline ? t->deadline : DEADLINE;
}

/* Why a call has no reply, for people. */
static int call_failed(const struct ulrpc_tool *t, const char *what,
		       const struct ulrpc_outcome *o)
{
	fprintf(stderr, WHO ": %s: %s: ", t->target, what);
	if (o->cause == ULRPC_CAUSE_HANDLER)
		fprintf(stderr, "the service says %s (%s)",
			ulrpc_status_name(ulrpc_status_of(o)),
			strerror(-o->status));
	else
		fprintf(stderr, "%s; %s", ulrpc_cause_name(o->cause),
			o->execution == ULRPC_EXECUTION_UNKNOWN
				? "perhaps executed"
				: ulrpc_execution_name(o->execution));
	fprintf(stderr, "%s%s\n", *o->text ? ": " : "", o->text);
	return -ECONNABORTED;
}

static void client_conf(const struct ulrpc_tool *t, const char *service,
			struct ulrpc_client_conf *conf,
			struct ulnet_conf_error *why)
{
	ulrpc_client_conf_init(conf);
	conf->target = t->target;
	conf->service = service;
	conf->flavour = (enum ulrpc_flavour)t->keys.flavour;
	conf->server = t->server;
	conf->wait_for_ready = t->wait ? ULRPC_WAIT_READY : ULRPC_WAIT_NOT;
	conf->err = why;
	why->what[0] = '\0';
}

static void say_why(const struct ulrpc_tool *t, int rc,
		    const struct ulnet_conf_error *why)
{
	fprintf(stderr, WHO ": %s: %s\n", t->target,
		*why->what ? why->what : strerror(-rc));
}

static int open_client(const struct ulrpc_tool *t, const char *service,
		       struct ulrpc_client **client_p)
{
	struct ulrpc_client_conf conf;
	struct ulnet_conf_error why;
	int rc;

	client_conf(t, service, &conf, &why);
	rc = ulrpc_client_open(t->rpc, &conf, client_p);
	if (rc)
		say_why(t, rc, &why);
	return rc;
}

/* Calls @method of ulrpc.About. *@reply_p is NULL if it has failed, of which
 * *@outcome tells. 0, or -errno after a message. */
static int ask_about(const struct ulrpc_tool *t, const char *method,
		     const ProtobufCMessage *request, void *reply_p,
		     struct ulrpc_outcome *outcome)
{
	struct ulrpc_call_conf conf = { .deadline = deadline_of(t),
					.semantics = ULRPC_IDEMPOTENT,
					.reply_max = REPLY_MAX };
	ProtobufCService *stub;
	struct ulrpc_client *client;
	ProtobufCMessage *reply = NULL;
	int rc = open_client(t, ulrpc__about__descriptor.name, &client);

	if (rc)
		return rc;
	rc = ulrpc_stub_new(client, &ulrpc__about__descriptor, NULL,
			    deadline_of(t), &stub);
	if (!rc) {
		rc = ulrpc_call_message_wait(stub, method, request, &conf,
					     &reply, outcome);
		if (!rc)
			lnet_text_clean(outcome->text);
		ulrpc_stub_free(stub);
	}
	ulrpc_client_close(client);
	if (rc)
		fprintf(stderr, WHO ": %s: %s\n", t->target, strerror(-rc));
	*(ProtobufCMessage **)reply_p = reply;
	return rc;
}

static int about_failed(const struct ulrpc_tool *t,
			const struct ulrpc_outcome *outcome)
{
	if (outcome->cause == ULRPC_CAUSE_NO_SERVICE) {
		fprintf(stderr,
			WHO ": %s: it does not tell what services it has: see "
			    "ulrpc_about_start(3), --about of rpcserve(1), and "
			    "--proto\n",
			t->target);
		return -ENOENT;
	}
	return call_failed(t, "ulrpc.About", outcome);
}

static void clean_names(Ulrpc__ServicesReply *reply)
{
	for (size_t i = 0; i < reply->n_service; i++) {
		Ulrpc__ServicesReply__Service *s = reply->service[i];

		lnet_text_clean(s->name);
		for (size_t k = 0; k < s->n_method; k++)
			lnet_text_clean(s->method[k]->name);
	}
}

/* *@reply_p is to be freed. Its names can be printed. */
static int ask_services(const struct ulrpc_tool *t,
			Ulrpc__ServicesReply **reply_p)
{
	Ulrpc__ServicesRequest request = ULRPC__SERVICES_REQUEST__INIT;
	struct ulrpc_outcome outcome;
	int rc = ask_about(t, "Services", &request.base, reply_p, &outcome);

	if (rc)
		return rc;
	if (!*reply_p)
		return about_failed(t, &outcome);
	clean_names(*reply_p);
	return 0;
}

/* ---- services ---- */

/* Says that there is no service @name, and which one was probably meant. */
static int no_service(const struct ulrpc_tool *t, const char *name)
{
	Ulrpc__ServicesReply *reply;
	struct nearest near;
	int rc = ask_services(t, &reply);

	if (rc)
		return rc;
	nearest_init(&near, name);
	for (size_t i = 0; i < reply->n_service; i++)
		nearest_try(&near, reply->service[i]->name);
	fprintf(stderr, WHO ": %s: there is no service '%s'", t->target, name);
	schema_say_nearest(&near, stderr);
	ulrpc__services_reply__free_unpacked(reply, NULL);
	return -ENOENT;
}

static const Ulrpc__ServicesReply__Service *find_service(
	const Ulrpc__ServicesReply *reply, const char *name)
{
	for (size_t i = 0; i < reply->n_service; i++)
		if (!strcmp(reply->service[i]->name, name))
			return reply->service[i];
	return NULL;
}

/* What the server says of its service. *@name_p, to be freed, is the name in
 * the schema. */
static int ask_schema(struct ulrpc_tool *t, const char *service, char **name_p)
{
	Ulrpc__DescribeRequest request = ULRPC__DESCRIBE_REQUEST__INIT;
	Ulrpc__DescribeReply *reply;
	struct ulrpc_outcome outcome;
	int rc;

	request.service = (char *)(uintptr_t)service;
	rc = ask_about(t, "Describe", &request.base, &reply, &outcome);
	if (rc)
		return rc;
	if (!reply && outcome.cause == ULRPC_CAUSE_HANDLER &&
	    outcome.status == -ENOENT)
		return no_service(t, service);
	if (!reply && outcome.cause == ULRPC_CAUSE_HANDLER &&
	    outcome.status == -ENODATA) {
		fprintf(stderr, WHO ": %s: %s: name a .proto by --proto\n",
			t->target, outcome.text);
		return -ENODATA;
	}
	if (!reply)
		return about_failed(t, &outcome);
	lnet_text_clean(reply->service);
	*name_p = strdup(reply->service);
	rc = *name_p && reply->files
		     ? schema_open(&t->schema, reply->files, t->notes)
		     : -EPROTO;
	reply->files = NULL;
	ulrpc__describe_reply__free_unpacked(reply, NULL);
	return rc;
}

/* Finds out what the messages of @service look like. */
static int find_schema(struct ulrpc_tool *t, const char *service,
		       const struct schema_service **found_p)
{
	char *name = NULL;
	int rc;

	if (t->proto) {
		rc = schema_read(&t->schema, t->proto, t->includes, t->notes);
		name = strdup(t->type ? t->type : service);
		if (!name)
			rc = -ENOMEM;
	} else {
		rc = ask_schema(t, service, &name);
	}
	if (!rc) {
		*found_p = schema_service(&t->schema, name, t->notes);
		rc = *found_p ? 0 : -ENOENT;
	}
	free(name);
	return rc;
}

/* ---- commands ---- */

static int list(struct ulrpc_tool *t)
{
	const char *only = t->args[0];
	Ulrpc__ServicesReply *reply;
	int rc = ask_services(t, &reply);

	if (rc)
		return rc;
	if (only && !find_service(reply, only))
		rc = no_service(t, only);
	for (size_t i = 0; !rc && i < reply->n_service; i++) {
		const Ulrpc__ServicesReply__Service *s = reply->service[i];

		if (only && strcmp(s->name, only) != 0)
			continue;
		printf("%s\n", s->name);
		for (size_t k = 0; k < s->n_method; k++)
			printf("  %s\n", s->method[k]->name);
	}
	ulrpc__services_reply__free_unpacked(reply, NULL);
	return rc;
}

static const char *health_name(Ulrpc__HealthReply__Status status)
{
	const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(
		&ulrpc__health_reply__status__descriptor, (int)status);

	return value ? value->name : "?";
}

static int health_of(const struct ulrpc_tool *t, const char *service)
{
	Ulrpc__HealthRequest request = ULRPC__HEALTH_REQUEST__INIT;
	Ulrpc__HealthReply *reply;
	struct ulrpc_outcome outcome;
	bool serves, exists;
	int rc;

	request.service = (char *)(uintptr_t)service;
	rc = ask_about(t, "Health", &request.base, &reply, &outcome);
	if (rc)
		return rc;
	if (!reply)
		return about_failed(t, &outcome);
	printf("%s\n", health_name(reply->status));
	serves = reply->status == ULRPC__HEALTH_REPLY__STATUS__SERVING;
	exists = reply->status != ULRPC__HEALTH_REPLY__STATUS__UNKNOWN;
	ulrpc__health_reply__free_unpacked(reply, NULL);
	if (!exists)
		(void)no_service(t, service);
	return serves ? 0 : -EAGAIN;
}

static int health(struct ulrpc_tool *t)
{
	Ulrpc__ServicesReply *reply;
	int rc;

	if (t->args[0])
		return health_of(t, t->args[0]);
	rc = ask_services(t, &reply);
	if (rc)
		return rc;
	if (!reply->n_service) {
		fprintf(stderr, WHO ": %s: it has no services\n", t->target);
		rc = -ENOENT;
	}
	for (size_t i = 0; i < reply->n_service; i++) {
		const Ulrpc__ServicesReply__Service *s = reply->service[i];

		printf("%s: %s\n", s->name, health_name(s->health));
		if (s->health != ULRPC__HEALTH_REPLY__STATUS__SERVING)
			rc = -EAGAIN;
	}
	ulrpc__services_reply__free_unpacked(reply, NULL);
	return rc;
}

/* Cuts "SERVICE.METHOD", or "SERVICE/METHOD" as gRPC has it, at its last dot.
 * Returns the method; NULL: there is no dot. */
static char *cut_method(char *text)
{
	char *at = strrchr(text, '/');

	if (!at)
		at = strrchr(text, '.');
	if (!at)
		return NULL;
	*at = '\0';
	return at + 1;
}

/* Is there a service with the first @length characters of @name as its name? */
static bool is_known(const struct ulrpc_tool *t,
		     const Ulrpc__ServicesReply *reply, const char *name,
		     size_t length)
{
	size_t n = reply ? reply->n_service : t->schema.nservices;

	for (size_t i = 0; i < n; i++) {
		const char *known = reply ? reply->service[i]->name
					  : t->schema.services[i].name;

		if (strlen(known) == length && !strncmp(known, name, length))
			return true;
	}
	return false;
}

/* Is all of @name that of a service, and not the last part that of a method?
 * Also if there is no such service, but one with less of the name neither. */
static int is_service(struct ulrpc_tool *t, const char *name, bool *is_p)
{
	Ulrpc__ServicesReply *reply = NULL;
	const char *end = strrchr(name, '.');
	int rc;

	*is_p = !strpbrk(name, "./");
	if (*is_p || strchr(name, '/'))
		return 0;
	rc = t->proto ? schema_read(&t->schema, t->proto, t->includes, t->notes)
		      : ask_services(t, &reply);
	if (!rc)
		*is_p = is_known(t, reply, name, strlen(name)) ||
			!is_known(t, reply, name, (size_t)(end - name));
	if (reply)
		ulrpc__services_reply__free_unpacked(reply, NULL);
	schema_free(&t->schema);
	return rc;
}

static int describe(struct ulrpc_tool *t)
{
	const struct schema_service *service;
	const Ulrpc__Schema__Method *method = NULL;
	char *name = strdup(t->args[0]), *method_name = NULL;
	bool whole;
	int rc = name ? is_service(t, name, &whole) : -ENOMEM;

	if (!rc && !whole)
		method_name = cut_method(name);
	if (!rc)
		rc = find_schema(t, name, &service);
	if (!rc && method_name) {
		method = schema_method(service, method_name, t->notes);
		rc = method ? 0 : -ENOENT;
	}
	if (!rc)
		schema_print(&t->schema, service, method, stdout);
	free(name);
	return rc;
}

/* The JSON that the user gives: the argument, or a file, or stdin. */
static int read_argument(const char *arg, char **text_p)
{
	if (arg && (arg[0] == '@' || !strcmp(arg, "-")))
		return file_read_long(WHO, arg[0] == '@' ? arg + 1 : arg,
				      text_p);
	*text_p = strdup(arg ? arg : "{}");
	return *text_p ? 0 : -ENOMEM;
}

static int call_unary(const struct ulrpc_tool *t, const char *service,
		      const Ulrpc__Schema__Method *method,
		      const struct message_bytes *body)
{
	const struct schema_type *type =
		schema_type(&t->schema, method->output_type);
	struct ulrpc_call_conf conf = {
		.deadline = deadline_of(t),
		.semantics = (enum ulrpc_semantics)t->semantics,
		.reply_max = REPLY_MAX,
		.reply_limit = (uint32_t)t->reply_limit,
	};
	struct ulrpc_outcome outcome;
	struct ulrpc_client *client;
	void *reply = NULL;
	size_t length = 0;
	int rc = open_client(t, service, &client);

	if (rc)
		return rc;
	rc = ulrpc_call_wait_alloc(client, ulrpc_method(method->name),
				   body->data, body->n, &conf, &reply, &length,
				   &outcome);
	ulrpc_client_close(client);
	if (rc) {
		fprintf(stderr, WHO ": %s: %s\n", t->target, strerror(-rc));
	} else if (outcome.cause != ULRPC_CAUSE_OK) {
		lnet_text_clean(outcome.text);
		rc = call_failed(t, t->args[0], &outcome);
	} else if (!message_print(type, reply, length, t->defaults, stdout,
				  t->notes)) {
		rc = -EPROTO;
	}
	free(reply);
	return rc;
}

static int call_body(const struct ulrpc_tool *t, const char *service,
		     const Ulrpc__Schema__Method *method, const char *arg)
{
	struct message_bytes body = { .n = 0 };
	char *json = NULL;
	int rc = read_argument(arg, &json);

	if (!rc && !message_read(schema_type(&t->schema, method->input_type),
				 json, strlen(json), &body, t->notes))
		rc = -EINVAL;
	if (!rc)
		rc = call_unary(t, service, method, &body);
	free(body.data);
	free(json);
	return rc;
}

/* ---- streams ---- */

/* Where the messages of a stream come from. Without an argument a client that
 * streams sends none, and one that does not sends an empty one. */
static int open_argument(const char *arg, struct stream_call *call,
			 char **text_p)
{
	bool is_file = arg && arg[0] == '@' && strcmp(arg, "@-") != 0;

	if (!call->client_streaming)
		return read_argument(arg, text_p);
	if (is_file) {
		call->fd = open(arg + 1, O_RDONLY | O_CLOEXEC);
		if (call->fd < 0) {
			fprintf(stderr, WHO ": %s: %s\n", arg + 1,
				strerror(errno));
			return -errno;
		}
	} else if (arg && (arg[0] == '@' || !strcmp(arg, "-"))) {
		call->fd = STDIN_FILENO;
	}
	*text_p = strdup(arg ? arg : "");
	return *text_p ? 0 : -ENOMEM;
}

/* What a stream has come to, for people. */
static int stream_over(const struct ulrpc_tool *t,
		       const struct ulrpc_stream_outcome *o)
{
	struct ulrpc_outcome outcome = { .status = o->status,
					 .cause = o->cause,
					 .execution = o->execution };

	if (o->cause == ULRPC_CAUSE_OK)
		return 0;
	memcpy(outcome.text, o->text, sizeof(outcome.text));
	lnet_text_clean(outcome.text);
	return call_failed(t, t->args[0], &outcome);
}

static int call_stream(const struct ulrpc_tool *t, const char *service,
		       const Ulrpc__Schema__Method *method, const char *arg)
{
	struct stream_call call = {
		.rpc = t->rpc,
		.method = method->name,
		.input = schema_type(&t->schema, method->input_type),
		.output = schema_type(&t->schema, method->output_type),
		.client_streaming = method->client_streaming,
		.fd = -1,
		.signals = t->signals,
		.deadline = t->deadline ? t->deadline : ULRPC_NEVER,
		.patience = deadline_of(t),
		.defaults = t->defaults,
		.err = t->notes,
	};
	struct ulrpc_stream_outcome outcome;
	struct ulnet_conf_error why;
	char *text = NULL;
	int rc = open_argument(arg, &call, &text);

	call.text = text;
	client_conf(t, service, &call.client, &why);
	if (!rc) {
		rc = stream_call(&call, &outcome);
		if (!rc)
			rc = stream_over(t, &outcome);
		else if (rc != -EINVAL && rc != -EPROTO)
			say_why(t, rc, &why);
		else if (*why.what)
			say_why(t, rc, &why);
	}
	if (call.fd > STDIN_FILENO)
		close(call.fd);
	free(text);
	return rc;
}

/* ---- methods of both kinds ---- */

/* Has the schema both messages of @method? */
static int check_method(const struct ulrpc_tool *t,
			const Ulrpc__Schema__Method *method)
{
	const char *names[] = { method->input_type, method->output_type };

	for (unsigned int i = 0; i < 2; i++)
		if (!schema_type(&t->schema, names[i])) {
			fprintf(stderr, WHO ": there is no message %s\n",
				names[i] ? names[i] : "");
			return -ENOENT;
		}
	return 0;
}

static int call_in(struct ulrpc_tool *t, const char *service,
		   const char *method_name, const char *arg)
{
	const struct schema_service *found;
	const Ulrpc__Schema__Method *method = NULL;
	int rc = find_schema(t, service, &found);

	if (!rc) {
		method = schema_method(found, method_name, t->notes);
		rc = method ? check_method(t, method) : -ENOENT;
	}
	if (rc)
		return rc;
	if (method->client_streaming || method->server_streaming)
		return call_stream(t, service, method, arg);
	signals_release();
	return call_body(t, service, method, arg);
}

static int call(struct ulrpc_tool *t)
{
	char *service = strdup(t->args[0]), *method;
	int rc = service ? 0 : -ENOMEM;

	method = service ? cut_method(service) : NULL;
	if (!rc)
		rc = call_in(t, service, method, t->args[1]);
	free(service);
	return rc;
}

struct command {
	const char *name;
	int min, max; /* number of its arguments */
	int (*run)(struct ulrpc_tool *t);
};

static const struct command commands[] = {
	{ "list", 0, 1, list },
	{ "describe", 1, 1, describe },
	{ "health", 0, 1, health },
	{ "call", 1, 2, call },
};

/* ---- all of it ---- */

static int take_command(struct ulrpc_tool *t, int nargs, char **args)
{
	struct nearest near;

	t->target = args[0];
	nearest_init(&near, args[1]);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (!strcmp(commands[i].name, args[1]))
			t->command = &commands[i];
		nearest_try(&near, commands[i].name);
	}
	if (!t->command) {
		fprintf(stderr,
			WHO ": '%s': list, describe, health or call is "
			    "expected",
			args[1]);
		schema_say_nearest(&near, stderr);
		return OPTION_USAGE;
	}
	if (nargs - 2 < t->command->min || nargs - 2 > t->command->max)
		return option_wrong(
			WHO, "%s: too %s words: see ulrpc --help", args[1],
			nargs - 2 < t->command->min ? "few" : "many");
	for (int i = 2; i < nargs; i++)
		t->args[i - 2] = args[i];
	if (t->command->run == call && !strpbrk(t->args[0], "./"))
		return option_wrong(WHO, "call %s: SERVICE.METHOD is expected",
				    t->args[0]);
	return 0;
}

static int check_options(const struct ulrpc_tool *t)
{
	int status = keys_check(&t->keys, WHO);

	if (!status && t->server && !t->keys.folder)
		status = option_wrong(WHO, "--server %s: --keys is missing",
				      t->server);
	if (!status && !t->proto && (t->type || t->nincludes))
		status = option_wrong(WHO, "--%s: --proto is missing",
				      t->type ? "type" : "include");
	return status;
}

static int parse(struct ulrpc_tool *t, int argc, char **argv)
{
	struct option_set set = {
		.who = WHO,
		.see = WHO " --help",
		.head = "usage: ulrpc [OPTION]... TARGET list [SERVICE]\n"
			"       ulrpc [OPTION]... TARGET describe "
			"SERVICE[.METHOD]\n"
			"       ulrpc [OPTION]... TARGET health [SERVICE]\n"
			"       ulrpc [OPTION]... TARGET call SERVICE.METHOD "
			"[JSON | @FILE | -]\n"
			"Asks a node what services it has and how they are, "
			"and calls their methods.\n"
			"TARGET is NIDs, or a name. Without --proto the server "
			"has to tell what its\nmessages look like.\n\n",
		.tail = "\nExit status: 0: done, and what was asked for "
			"serves; 1: not so; 2: the command\nline is wrong.\n",
		.parts = { { rows, t },
			   { keys_rows, &t->keys },
			   { munge_show_rows, &t->keys },
			   { flavour_rows, &t->keys },
			   { node_net_rows, &t->options },
			   { node_log_rows, &t->options },
			   { option_rows, NULL } },
		.words = "TARGET COMMAND [ARGUMENT]...",
		.min = 2,
		.max = 4,
	};
	int status;

	node_options_init(&t->options);
	/* It only calls, so any number of them can share an address. */
	t->options.accept = LNET_ACCEPT_NONE;
	status = options_parse(&set, argc, argv);
	if (!status)
		status = check_options(t);
	return status ? status : take_command(t, set.nargs, set.args);
}

/* A name that is not known need not wait for the deadline of a call. */
static int find_target(struct ulrpc_tool *t)
{
	struct ulnet_name_answer *answer;
	char why[TARGET_WHY];
	int rc = target_lookup(t->node.lnet, t->target, &answer, why);

	if (rc)
		fprintf(stderr, WHO ": %s: %s\n", t->target, why);
	else
		free(answer);
	return rc;
}

static int open_node(struct ulrpc_tool *t)
{
	struct ulrpc_conf conf;
	int rc = keys_read(&t->keys, &t->say, &t->options.keys);

	if (!rc)
		rc = node_begin(&t->node, &t->options, &t->say,
				LNET_RUN_THREADS);
	if (!rc)
		rc = node_control(&t->node);
	if (!rc)
		rc = node_configure(&t->node);
	if (!rc && !t->wait)
		rc = find_target(t);
	if (rc)
		return rc;
	ulrpc_conf_init(&conf);
	conf.keys = t->options.keys;
	rc = ulrpc_open(t->node.lnet, &conf, &t->rpc);
	if (rc)
		say(&t->say, LNET_LOG_ERR, "cannot open RPC: %s",
		    strerror(-rc));
	return rc;
}

static void print_notes(struct ulrpc_tool *t)
{
	char *line, *rest;

	fclose(t->notes);
	for (line = strtok_r(t->notes_text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		fprintf(stderr, WHO ": %s\n", line);
	free(t->notes_text);
}

static int run(struct ulrpc_tool *t)
{
	int rc;

	t->notes = open_memstream(&t->notes_text, &t->notes_length);
	if (!t->notes)
		return option_wrong(WHO, "%s", strerror(errno));
	/* Only streams end in an orderly way: see call_in(). Threads of the
	 * node inherit what is blocked here. */
	if (t->command->run == call)
		t->signals = signals_open(WHO, 0);
	rc = open_node(t);
	if (!rc)
		rc = t->command->run(t);
	print_notes(t);
	schema_free(&t->schema);
	if (t->rpc)
		ulrpc_close(t->rpc);
	node_close(&t->node);
	ulrpc_keys_put(t->options.keys);
	if (option_printed(WHO) != OPTION_DONE)
		return 1;
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct ulrpc_tool t = { .signals = -1,
				.reply_limit = REPLY_LIMIT,
				.say = { .who = WHO } };
	int status;

	if (secure_stdio())
		return 1;
	status = parse(&t, argc, argv);
	if (!status) {
		node_options_log(&t.options);
		status = run(&t);
	}
	node_options_free(&t.options);
	keys_options_free(&t.keys);
	return status == OPTION_DONE ? 0 : status;
}
