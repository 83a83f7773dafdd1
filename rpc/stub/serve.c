/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ulrpc_serve(): the functions of a generated ProtobufCService answer requests.
 * Uses only the public interface of libulrpc.
 */
#include "ulnet/stub.h"

#include <errno.h>
#include <stdlib.h>
#include "base/util.h"
#include "rpc/stub/message.h"

/* A service, from start to end. */
struct serving {
	ProtobufCService *implementation;
	struct stub_method *methods;
	/* used by ulrpc_service_start() only */
	struct ulrpc_method_conf *confs;
	/* what the user has set as conf.ended; NULL: nothing */
	void (*ended)(void *arg);
	void *ended_arg;
	struct entry {
		struct serving *serving;
		unsigned int index;
	} entries[]; /* one for each method */
};

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
	const struct entry *entry = arg;
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

static void serving_free(struct serving *serving)
{
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

static struct conf_owner serve_owner(const struct ulrpc_service_conf *conf)
{
	return (struct conf_owner){ "service", conf->name, conf->err };
}

#define refuse(conf, ...) conf_refuse(serve_owner(conf), -EINVAL, __VA_ARGS__)

/* Has the service a function for each method? In generated services the
 * functions are behind the ProtobufCService in memory. */
static int functions_check(const ProtobufCService *implementation,
			   const struct ulrpc_service_conf *conf)
{
	const ProtobufCServiceDescriptor *d = implementation->descriptor;
	void (*const *functions)(void) =
		(void (*const *)(void))(implementation + 1);

	if (!implementation->invoke)
		return refuse(conf, "implementation: it has no invoke()");
	if (implementation->invoke != protobuf_c_service_invoke_internal)
		return 0;
	for (unsigned int i = 0; i < d->n_methods; i++)
		if (!functions[i])
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
	return functions_check(implementation, conf);
}

static int serving_new(ProtobufCService *implementation,
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
			      serve_owner(conf), &s->methods);
	if (!rc && !(s->confs = calloc(n + 1, sizeof(s->confs[0]))))
		rc = -ENOMEM;
	if (rc) {
		serving_free(s);
		return rc;
	}
	for (unsigned int i = 0; i < n; i++) {
		s->entries[i] = (struct entry){ s, i };
		s->confs[i] = (struct ulrpc_method_conf){
			.name = s->methods[i].name,
			.handler = serve_on_request,
			.arg = &s->entries[i],
			.run = s->methods[i].options.run,
			.priority = s->methods[i].options.priority,
			.semantics = s->methods[i].options.semantics,
		};
	}
	*serving_p = s;
	return 0;
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
	rc = serve_conf_check(implementation, &mine);
	if (rc)
		return rc;
	if (!mine.name)
		mine.name = implementation->descriptor->name;
	rc = serving_new(implementation, options, &mine, &serving);
	if (rc)
		return rc;
	mine.descriptor = implementation->descriptor;
	mine.methods = serving->confs;
	mine.nmethods = implementation->descriptor->n_methods;
	serving->ended = mine.ended;
	serving->ended_arg = mine.ended_arg;
	mine.ended = serve_on_ended;
	mine.ended_arg = serving;
	rc = ulrpc_service_start(rpc, &mine, service_p);
	if (rc)
		serving_free(serving);
	return rc;
}
