/* SPDX-License-Identifier: BSD-3-Clause */
/* Services with methods that stream that are put together wrongly, and what
 * they hear. */
#include "tests/unit/rpc/stub/interop.ulrpc.h"

#include "tests/unit/rpc/serve_rig.h"

static struct serve_rig g;

/* @said: what is wrong with a service. */
static void refused(ProtobufCService *implementation,
		    const struct ulrpc_method_options *options,
		    const struct ulrpc_stream_handler *table, int status,
		    const char *said)
{
	struct ulnet_conf_error err;
	struct ulrpc_stream_service_conf conf;

	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "wrong";
	conf.service.err = &err;
	cr_assert_eq(ulrpc_serve_streams(g.rpc[SERVER], implementation, options,
					 table, NULL, &conf, NULL),
		     status);
	cr_assert_str_eq(err.what, said);
}

static void never(void *arg, struct ulrpc_stream *stream,
		  const ProtobufCMessage *request)
{
	(void)arg;
	(void)stream;
	(void)request;
	cr_assert(false);
}

static void never_rest(Interop__Trial_Service *self,
		       const Interop__Nothing *request,
		       Interop__Nothing_Closure closure, void *data)
{
	(void)self;
	(void)request;
	(void)closure;
	(void)data;
	cr_assert(false);
}

static void never_swap(Interop__Trial_Service *self,
		       const Interop__Order *request,
		       Interop__Parcel_Closure closure, void *data)
{
	(void)self;
	(void)request;
	(void)closure;
	(void)data;
	cr_assert(false);
}

Test(serve_streams, refused)
{
	static Interop__Trial_Service bare = {
		.base = INTEROP__TRIAL__BASE_INIT, .rest = never_rest
	};
	static Interop__Trial_Service trial = {
		.base = INTEROP__TRIAL__BASE_INIT,
		.rest = never_rest,
		.swap = never_swap,
	};
	const struct ulrpc_stream_handler none[] = { { NULL, NULL } };
	const struct ulrpc_stream_handler few[] = { { "Cut", never },
						    { "Talk", never },
						    { NULL, NULL } };
	const struct ulrpc_stream_handler more[] = { { "Jump", never },
						     { NULL, NULL } };
	const struct ulrpc_stream_handler wrong[] = { { "Swap", never },
						      { NULL, NULL } };
	const struct ulrpc_method_options odd[] = {
		{ .method = "Talk", .streaming = ULRPC_STREAMING_BOTH + 1 },
		{ .method = NULL },
	};
	const struct ulrpc_method_options lasting[] = {
		{ .method = "Talk",
		  .streaming = ULRPC_STREAMING_BOTH,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .method = NULL },
	};
	const struct ulrpc_stream_service_conf listed = { .nmethods = 1 };
	const struct ulrpc_service_conf plain = { .name = "wrong" };

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	refused(&bare.base, interop__trial__options, few, -EINVAL,
		"implementation: method 'Swap' has no function");
	refused(&trial.base, interop__trial__options, none, -EINVAL,
		"handlers: 'Cut' streams, and has none");
	refused(&trial.base, interop__trial__options, few, -EINVAL,
		"handlers: 'Add' streams, and has none");
	refused(&trial.base, interop__trial__options, more, -ENOENT,
		"handlers: interop.Trial has no method 'Jump'");
	refused(&trial.base, interop__trial__options, wrong, -EINVAL,
		"handlers: 'Swap' does not stream, as options say");
	refused(&trial.base, odd, none, -EINVAL,
		"options: 'Talk': 4 is out of the range of streaming");
	refused(&trial.base, lasting, none, -EINVAL,
		"options: 'Talk': a stream has no semantics, priority and "
		"reply_max");
	cr_assert_eq(ulrpc_serve_streams(g.rpc[SERVER], &trial.base,
					 interop__trial__options, few, NULL,
					 &listed, NULL),
		     -EINVAL);
	/* ulrpc_serve() is for services without streams. */
	cr_assert_eq(ulrpc_serve(g.rpc[SERVER], &trial.base,
				 interop__trial__options, &plain, NULL),
		     -EINVAL);
	serve_fini(&g);
}
