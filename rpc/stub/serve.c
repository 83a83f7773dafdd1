/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ulrpc_serve(): the functions of a generated ProtobufCService answer requests.
 * Uses only the public interface of libulrpc.
 */
#include "rpc/stub/serve.h"

#include <errno.h>
#include <stdlib.h>

/* The closure data of a function of the service while it serves a request. Most
 * messages fit into first[]. */
struct served {
	struct ulrpc_request *request;
	struct arena arena;
	_Alignas(max_align_t) uint8_t first[880];
};

_Static_assert(sizeof(struct served) <= 1024, "malloc() has thread caches");

static void served_free(struct served *served)
{
	arena_fini(&served->arena);
	free(served);
}

/* ---- answers: any thread ---- */

static void on_answer(const ProtobufCMessage *reply, void *closure_data)
{
	struct served *served = closure_data;
	struct packed packed;
	int rc = reply ? packed_init(&packed, reply) : -EIO;

	if (rc) {
		ulrpc_fail(served->request, rc);
	} else {
		ulrpc_reply(served->request, packed.bytes, packed.length);
		packed_fini(&packed);
	}
	served_free(served);
}

void ulrpc_closure_fail(void *closure_data, int status)
{
	struct served *served = closure_data;

	ulrpc_fail(served->request, status);
	served_free(served);
}

void ulrpc_closure_fail_text(void *closure_data, int status, const char *text)
{
	struct served *served = closure_data;

	ulrpc_fail_text(served->request, status, text);
	served_free(served);
}

void ulrpc_closure_fail_status(void *closure_data, enum ulrpc_status status,
			       const char *text,
			       const ProtobufCMessage *details)
{
	struct served *served = closure_data;
	struct packed packed;

	if (details && !packed_init(&packed, details)) {
		struct ulrpc_details d = { details->descriptor->name,
					   packed.bytes, packed.length };

		/* What is too long is left out. */
		(void)ulrpc_reply_details(served->request, &d);
		packed_fini(&packed);
	}
	ulrpc_fail_status(served->request, status, text);
	served_free(served);
}

int ulrpc_closure_record(void *closure_data, const ProtobufCMessage *reply,
			 struct ulrpc_record *record)
{
	struct served *served = closure_data;
	struct packed packed;
	int rc = packed_init(&packed, reply);

	if (rc)
		return rc;
	rc = ulrpc_request_record(served->request, 0, packed.bytes,
				  packed.length, record);
	packed_fini(&packed);
	return rc;
}

struct ulrpc_request *ulrpc_request_of(void *closure_data)
{
	return ((struct served *)closure_data)->request;
}

/* ---- requests ---- */

static void serve_on_request(void *arg, struct ulrpc_request *request,
			     const void *body, size_t length)
{
	const struct serving_entry *entry = arg;
	struct serving *serving = entry->serving;
	const struct message_type *type = &serving->methods[entry->index].input;
	ProtobufCService *implementation = serving->implementation;
	struct served *served = malloc(sizeof(*served));
	ProtobufCMessage *message;

	if (!served) {
		ulrpc_fail(request, -ENOMEM);
		return;
	}
	served->request = request;
	arena_init(&served->arena, served->first, sizeof(served->first),
		   message_heap_max(type, length));
	message = message_unpack(type, body, length, &served->arena.allocator);
	if (likely(message)) {
		implementation->invoke(implementation, entry->index, message,
				       on_answer, served);
		return;
	}
	if (served->arena.no_memory)
		ulrpc_fail(request, -ENOMEM);
	else
		ulrpc_refuse(request);
	served_free(served);
}

/* ---- starting ---- */

void serving_free(struct serving *serving)
{
	free(serving->streaming);
	free(serving->methods);
	free(serving->confs);
	free(serving);
}

static void serve_on_ended(void *arg)
{
	struct serving *serving = arg;

	if (serving->ended)
		serving->ended(serving->ended_arg);
	serving_free(serving);
}

struct conf_owner serving_owner(const struct ulrpc_service_conf *conf)
{
	return (struct conf_owner){ "service", conf->name, conf->err };
}

#define refuse(conf, ...) conf_refuse(serving_owner(conf), -EINVAL, __VA_ARGS__)

/* Checks that there is a function for each method that does not stream. In
 * generated services the functions are behind the ProtobufCService in memory.
 * Returns 0 or -EINVAL. */
static int functions_check(const struct serving *s,
			   const struct ulrpc_service_conf *conf)
{
	const ProtobufCService *implementation = s->implementation;
	const ProtobufCServiceDescriptor *d = implementation->descriptor;
	void (*const *functions)(void) =
		(void (*const *)(void))(implementation + 1);

	if (!implementation->invoke)
		return refuse(conf, "implementation: it has no invoke()");
	if (implementation->invoke != protobuf_c_service_invoke_internal)
		return 0;
	for (unsigned int i = 0; i < d->n_methods; i++)
		if (!functions[i] && !s->methods[i].options.streaming)
			return refuse(conf,
				      "implementation: method '%.64s' has no "
				      "function",
				      d->methods[i].name);
	return 0;
}

static int serve_conf_check(const ProtobufCService *implementation,
			    const struct ulrpc_service_conf *conf)
{
	if (!implementation || !implementation->descriptor)
		return refuse(conf, "implementation: there is no %s",
			      implementation ? "descriptor" : "service");
	if (conf->nmethods)
		return refuse(conf, "methods: they are those of the "
				    "implementation");
	return 0;
}

/* Makes a serving for @conf, with no methods yet. Returns 0 or -errno. */
static int serving_alloc(ProtobufCService *implementation,
			 const struct ulrpc_method_options *options,
			 const struct ulrpc_service_conf *conf,
			 struct serving **serving_p)
{
	unsigned int n = implementation->descriptor->n_methods;
	struct serving *s = calloc(1, sizeof(*s) + n * sizeof(s->entries[0]));
	int rc;

	if (!s)
		return -ENOMEM;
	s->implementation = implementation;
	rc = stub_methods_new(implementation->descriptor, options,
			      serving_owner(conf), &s->methods);
	s->confs = calloc(n + 1, sizeof(s->confs[0]));
	s->streaming = calloc(n + 1, 1);
	if (!rc && (!s->confs || !s->streaming))
		rc = -ENOMEM;
	if (!rc)
		rc = functions_check(s, conf);
	if (rc)
		serving_free(s);
	else
		*serving_p = s;
	return rc;
}

static void serving_fill(struct serving *s)
{
	for (unsigned int i = 0; i < s->implementation->descriptor->n_methods;
	     i++) {
		const struct stub_method *m = &s->methods[i];

		s->entries[i].serving = s;
		s->entries[i].index = i;
		s->streaming[i] = (uint8_t)m->options.streaming;
		if (m->options.streaming)
			s->nstreams++;
		else
			s->confs[s->nconfs++] = (struct ulrpc_method_conf){
				.name = m->name,
				.handler = serve_on_request,
				.arg = &s->entries[i],
				.run = m->options.run,
				.priority = m->options.priority,
				.semantics = m->options.semantics,
			};
	}
}

int serving_new(ProtobufCService *implementation,
		const struct ulrpc_method_options *options,
		struct ulrpc_service_conf *conf, struct serving **serving_p)
{
	int rc = serve_conf_check(implementation, conf);

	if (rc)
		return rc;
	if (!conf->name)
		conf->name = implementation->descriptor->name;
	rc = serving_alloc(implementation, options, conf, serving_p);
	if (!rc)
		serving_fill(*serving_p);
	return rc;
}

void serving_complete(struct serving *serving, struct ulrpc_service_conf *conf)
{
	conf->descriptor = serving->implementation->descriptor;
	if (serving->nstreams)
		conf->streaming = serving->streaming;
	conf->methods = serving->confs;
	conf->nmethods = serving->nconfs;
	serving->ended = conf->ended;
	serving->ended_arg = conf->ended_arg;
	conf->ended = serve_on_ended;
	conf->ended_arg = serving;
}

int ulrpc_serve(struct ulrpc *rpc, ProtobufCService *implementation,
		const struct ulrpc_method_options *options,
		const struct ulrpc_service_conf *conf,
		struct ulrpc_service **service_p)
{
	struct ulrpc_service_conf mine;
	struct serving *serving;
	int rc;

	if (conf)
		mine = *conf;
	else
		ulrpc_service_conf_init(&mine);
	rc = serving_new(implementation, options, &mine, &serving);
	if (rc)
		return rc;
	if (serving->nstreams)
		rc = refuse(&mine, "options: a method streams, so that "
				   "ulrpc_serve_streams() has to start the "
				   "service");
	if (!rc) {
		serving_complete(serving, &mine);
		rc = ulrpc_service_start(rpc, &mine, service_p);
	}
	if (rc)
		serving_free(serving);
	return rc;
}
