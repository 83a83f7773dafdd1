/* SPDX-License-Identifier: BSD-3-Clause */
/* ulrpc_serve_streams(): does what ulrpc_serve() does, also for methods that
 * stream: their handlers get streams. Uses only the public interface of
 * libulrpc. */
#include <errno.h>
#include <stdlib.h>

#include "rpc/stub/serve.h"
#include "rpc/stub/streaming.h"

#define refuse(conf, ...) conf_refuse(serving_owner(conf), -EINVAL, __VA_ARGS__)

static void serve_on_stream(void *arg, struct ulrpc_stream *stream,
			    const void *body, size_t length)
{
	const struct serving_entry *entry = arg;
	struct serving *serving = entry->serving;
	const struct stub_method *m = &serving->methods[entry->index];
	_Alignas(max_align_t) uint8_t first[1024];
	ProtobufCMessage *request;
	struct arena arena;

	if (m->options.streaming != ULRPC_STREAMING_REPLIES) {
		entry->handler(serving->arg, stream, NULL);
		return;
	}
	arena_init(&arena, first, sizeof(first),
		   message_heap_max(&m->input, length));
	request = message_unpack(&m->input, body, length, &arena.allocator);
	if (request) {
		entry->handler(serving->arg, stream, request);
	} else {
		(void)stream_end_unread(stream, m->input.descriptor, length,
					arena.no_memory);
		ulrpc_stream_put(stream);
	}
	arena_fini(&arena);
}

static struct serving_entry *entry_find(struct serving *s, const char *method)
{
	const ProtobufCServiceDescriptor *d = s->implementation->descriptor;
	const ProtobufCMethodDescriptor *m =
		protobuf_c_service_descriptor_get_method_by_name(d, method);

	return m ? &s->entries[m - d->methods] : NULL;
}

static int handlers_take(struct serving *s,
			 const struct ulrpc_stream_handler *handlers,
			 const struct ulrpc_service_conf *conf)
{
	for (; handlers && handlers->method; handlers++) {
		struct serving_entry *e = entry_find(s, handlers->method);

		if (!e)
			return conf_refuse(
				serving_owner(conf), -ENOENT,
				"handlers: %.64s has no method '%.64s'",
				s->implementation->descriptor->name,
				handlers->method);
		if (!s->methods[e->index].options.streaming)
			return refuse(conf,
				      "handlers: '%.64s' does not stream, as "
				      "options say",
				      handlers->method);
		e->handler = handlers->handler;
	}
	return 0;
}

static int stream_check(const struct serving *s, unsigned int index,
			const struct ulrpc_service_conf *conf)
{
	const struct stub_method *m = &s->methods[index];

	if (!s->entries[index].handler)
		return refuse(conf, "handlers: '%.64s' streams, and has none",
			      m->name);
	if (m->input.bulks || m->output.bulks)
		return refuse(conf,
			      "options: '%.64s' streams, and its messages may "
			      "have an ulrpc.Bulk, which streams do not carry",
			      m->name);
	return 0;
}

/* Makes the array of the methods that stream, which the caller frees. Returns
 * 0; -EINVAL: one of them has no handler, or has messages that streams do not
 * carry; -ENOMEM. */
static int streams_make(struct serving *s,
			const struct ulrpc_service_conf *conf,
			struct ulrpc_stream_method **streams_p)
{
	struct ulrpc_stream_method *streams =
		calloc(s->nstreams + 1, sizeof(*streams));
	unsigned int n = s->implementation->descriptor->n_methods, k = 0;
	int rc = streams ? 0 : -ENOMEM;

	for (unsigned int i = 0; !rc && i < n; i++) {
		if (!s->methods[i].options.streaming)
			continue;
		rc = stream_check(s, i, conf);
		streams[k++] = (struct ulrpc_stream_method){
			.name = s->methods[i].name,
			.handler = serve_on_stream,
			.arg = &s->entries[i],
			.run = s->methods[i].options.run,
		};
	}
	if (rc)
		free(streams);
	else
		*streams_p = streams;
	return rc;
}

int ulrpc_serve_streams(struct ulrpc *rpc, ProtobufCService *implementation,
			const struct ulrpc_method_options *options,
			const struct ulrpc_stream_handler *handlers, void *arg,
			const struct ulrpc_stream_service_conf *conf,
			struct ulrpc_stream_service **service_p)
{
	struct ulrpc_stream_method *streams = NULL;
	struct ulrpc_stream_service_conf mine;
	struct serving *serving;
	int rc;

	if (conf)
		mine = *conf;
	else
		ulrpc_stream_service_conf_init(&mine);
	if (mine.nmethods)
		return refuse(&mine.service, "methods: they are those of the "
					     "implementation");
	rc = serving_new(implementation, options, &mine.service, &serving);
	if (rc)
		return rc;
	serving->arg = arg;
	rc = handlers_take(serving, handlers, &mine.service);
	if (!rc)
		rc = streams_make(serving, &mine.service, &streams);
	if (!rc) {
		serving_complete(serving, &mine.service);
		mine.methods = streams;
		mine.nmethods = serving->nstreams;
		rc = ulrpc_stream_serve(rpc, &mine, service_p);
		free(streams);
	}
	if (rc)
		serving_free(serving);
	return rc;
}
