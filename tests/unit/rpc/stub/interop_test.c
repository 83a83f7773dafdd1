/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stubs as protoc-gen-ulrpc makes them, of calls and of streams, in the cases
 * with which gRPC's implementations are tried against each other; and what
 * those do not try: messages that are none. The test's thread waits, and drives
 * both nodes meanwhile.
 */
#include "tests/unit/rpc/stub/interop.ulrpc.h"

#include "tests/unit/rpc/serve_rig.h"
#include "ulnet/context.h"

#define MINUTE UINT64_C(60000000) /* us */

static struct serve_rig g;
static struct ulrpc_stream_service *service;
static struct ulrpc_client *client;
static struct ulrpc_streams *streams;
static ProtobufCService *stub;
static unsigned int handled; /* streams that handlers have ended */
static struct ulrpc_stream_outcome served; /* the last one's outcome there */

/* ---- the service ---- */

#define LONGEST (UINT32_C(16) << 20) /* bytes of a message, either way */

static uint8_t zeros[LONGEST];

static Interop__Parcel parcel_of(uint32_t size)
{
	Interop__Parcel parcel = INTEROP__PARCEL__INIT;

	cr_assert_leq(size, sizeof(zeros));
	parcel.payload = (ProtobufCBinaryData){ size, zeros };
	return parcel;
}

static void serve_rest(Interop__Trial_Service *self,
		       const Interop__Nothing *request,
		       Interop__Nothing_Closure closure, void *data)
{
	const Interop__Nothing reply = INTEROP__NOTHING__INIT;

	(void)self;
	(void)request;
	closure(&reply, data);
}

#define ECHO	 "x-interop-echo"
#define ECHO_BIN "x-interop-echo-bin"

static void send_back(struct ulrpc_request *request, const char *name)
{
	struct ulrpc_metadata pair;

	if (!ulrpc_request_find(request, name, &pair))
		cr_assert_eq(
			ulrpc_reply_add(request, name, pair.value, pair.length),
			0);
}

static void serve_swap(Interop__Trial_Service *self,
		       const Interop__Order *request,
		       Interop__Parcel_Closure closure, void *data)
{
	const Interop__Parcel reply = parcel_of(request->size);

	(void)self;
	send_back(ulrpc_request_of(data), ECHO);
	send_back(ulrpc_request_of(data), ECHO_BIN);
	if (request->status)
		ulrpc_closure_fail_text(data, -(int)request->status,
					request->text);
	else
		closure(&reply, data);
}

static void stream_back(struct ulrpc_stream *stream, const char *name)
{
	struct ulrpc_metadata pair;

	if (!ulrpc_stream_find(stream, name, &pair))
		cr_assert_eq(
			ulrpc_stream_add(stream, name, pair.value, pair.length),
			0);
}

static void stream_echo(struct ulrpc_stream *stream)
{
	stream_back(stream, ECHO);
	stream_back(stream, ECHO_BIN);
}

static void done_with(struct ulrpc_stream *stream, int status, const char *text)
{
	ulrpc_stream_end(stream, status, text);
	cr_assert_eq(ulrpc_stream_outcome_wait(stream, &served), 0);
	ulrpc_stream_put(stream);
	handled++;
}

static void serve_cut(void *arg, struct ulrpc_stream *stream,
		      const Interop__Sizes *request)
{
	int rc = 0;

	cr_assert_eq(arg, &g);
	stream_echo(stream);
	for (size_t i = 0; !rc && i < request->n_size; i++) {
		const Interop__Parcel reply = parcel_of(request->size[i]);

		rc = interop__trial__cut_reply_wait(stream, &reply);
	}
	done_with(stream, rc, NULL);
}

static void serve_add(void *arg, struct ulrpc_stream *stream)
{
	Interop__Sum sum = INTEROP__SUM__INIT;
	Interop__Parcel *parcel;
	int rc;

	(void)arg;
	stream_echo(stream);
	while ((rc = interop__trial__add_request_wait(stream, &parcel)) == 1) {
		sum.bytes += parcel->payload.len;
		interop__parcel__free_unpacked(parcel, NULL);
	}
	if (!rc)
		rc = interop__trial__add_reply(stream, &sum);
	done_with(stream, rc, NULL);
}

/* Answers an order of @stream. Returns whether there may be more. */
static bool talk_one(struct ulrpc_stream *stream, const Interop__Order *order)
{
	const Interop__Parcel reply = parcel_of(order->size);
	const struct ulrpc_stream_outcome o = {
		.status = -(int)order->status,
		.cause = ULRPC_CAUSE_HANDLER,
	};

	if (!order->status)
		return !interop__trial__talk_reply_wait(stream, &reply);
	ulrpc_stream_end_message(stream, ulrpc_stream_status_of(&o),
				 order->text, &order->base);
	return false;
}

static void serve_talk(void *arg, struct ulrpc_stream *stream)
{
	Interop__Order *order;
	bool more = true;

	(void)arg;
	stream_echo(stream);
	while (more &&
	       interop__trial__talk_request_wait(stream, &order) == 1) {
		more = talk_one(stream, order);
		interop__order__free_unpacked(order, NULL);
	}
	done_with(stream, 0, NULL);
}

static Interop__Trial_Service trial = {
	.base = INTEROP__TRIAL__BASE_INIT,
	.rest = serve_rest,
	.swap = serve_swap,
};

static const struct interop__trial__streams handlers = {
	.arg = &g,
	.cut = serve_cut,
	.add = serve_add,
	.talk = serve_talk,
};

/* ---- the rig ---- */

static void set_up(void)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_stream_service_conf more;
	struct ulrpc_streams_conf conf;

	handled = 0;
	memset(&served, 0, sizeof(served));
	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	cr_assert_eq(ulrpc_open(g.node[CALLER], NULL, &g.rpc[CALLER]), 0);
	ulrpc_stream_service_conf_init(&more);
	more.service.request_max = ULRPC_BODY_MAX;
	more.service.request_limit = LONGEST;
	cr_assert_eq(interop__trial__serve_streams(g.rpc[SERVER], &trial,
						   &handlers, &more, &service),
		     0);
	client = serve_client_of(g.rpc[CALLER],
				 interop__trial__descriptor.name);
	cr_assert_eq(ulrpc_stub_new(client, &interop__trial__descriptor,
				    interop__trial__options, MINUTE, &stub),
		     0);
	ulrpc_streams_conf_init(&conf);
	conf.client.nids = &nid;
	conf.client.nnids = 1;
	conf.client.service = interop__trial__descriptor.name;
	cr_assert_eq(ulrpc_streams_open(g.rpc[CALLER], &conf, &streams), 0);
}

static void tear_down(void)
{
	ulrpc_stub_free(stub);
	ulrpc_client_close(client);
	ulrpc_streams_close(streams);
	serve_fini(&g);
}

TestSuite(interop, .init = set_up, .fini = tear_down);

static const struct ulrpc_stream_conf limits = { .deadline = MINUTE };

static void went_well(const struct ulrpc_outcome *end)
{
	cr_assert_eq(end->cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(end->cause), end->text);
}

/* Gives @stream back; it has to end so. */
static struct ulrpc_stream_outcome ends(struct ulrpc_stream *stream,
					enum ulrpc_cause cause, int status)
{
	struct ulrpc_stream_outcome end;

	cr_assert_eq(ulrpc_stream_outcome_wait(stream, &end), 0);
	cr_assert_eq(end.cause, cause, "%s: %s", ulrpc_cause_name(end.cause),
		     end.text);
	cr_assert_eq(end.status, status);
	ulrpc_stream_put(stream);
	return end;
}

/* The handlers' streams have ended, too. */
static void handlers_ended(unsigned int n)
{
	while (handled < n)
		lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(handled, n);
}

static void parcel_came(struct ulrpc_stream *stream, uint32_t size)
{
	Interop__Parcel *parcel;

	cr_assert_eq(interop__trial__talk_next_wait(stream, &parcel), 1);
	cr_assert_eq(parcel->payload.len, size);
	interop__parcel__free_unpacked(parcel, NULL);
}

static int order(struct ulrpc_stream *stream, uint32_t bytes, uint32_t size)
{
	Interop__Order message = INTEROP__ORDER__INIT;

	message.payload = (ProtobufCBinaryData){ bytes, zeros };
	message.size = size;
	return interop__trial__talk_send_wait(stream, &message);
}

static struct ulrpc_replicas *set_open(void)
{
	const struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_replicas_conf conf;
	struct ulrpc_replicas *set;

	ulrpc_replicas_conf_init(&conf);
	conf.client.nids = &nid;
	conf.client.nnids = 1;
	conf.client.service = interop__trial__descriptor.name;
	cr_assert_eq(ulrpc_replicas_open(g.rpc[CALLER], &conf, &set), 0);
	return set;
}

/* ---- calls ---- */

Test(interop, empty_unary)
{
	const Interop__Nothing request = INTEROP__NOTHING__INIT;
	struct ulrpc_outcome end;
	Interop__Nothing *reply;

	cr_assert_eq(interop__trial__rest_wait(stub, &request, &reply, &end),
		     0);
	went_well(&end);
	cr_assert_not_null(reply);
	interop__nothing__free_unpacked(reply, NULL);
}

Test(interop, large_unary)
{
	Interop__Order request = INTEROP__ORDER__INIT;
	struct ulrpc_outcome end;
	Interop__Parcel *reply;

	request.payload = (ProtobufCBinaryData){ 271828, zeros };
	request.size = 314159;
	cr_assert_eq(interop__trial__swap_wait(stub, &request, &reply, &end),
		     0);
	went_well(&end);
	cr_assert_eq(reply->payload.len, 314159);
	interop__parcel__free_unpacked(reply, NULL);
}

static void swap_of(uint32_t bytes, uint32_t size, uint32_t reply_limit)
{
	Interop__Order request = INTEROP__ORDER__INIT;
	struct ulrpc_call_conf conf;
	struct ulrpc_outcome end;
	ProtobufCMessage *reply;

	request.payload = (ProtobufCBinaryData){ bytes, zeros };
	request.size = size;
	cr_assert_eq(ulrpc_stub_conf(stub, "Swap", &conf), 0);
	conf.reply_limit = reply_limit;
	cr_assert_eq(ulrpc_call_message_wait(stub, "Swap",
					     (ProtobufCMessage *)&request,
					     &conf, &reply, &end),
		     0);
	went_well(&end);
	cr_assert_eq(((Interop__Parcel *)reply)->payload.len, size);
	protobuf_c_message_free_unpacked(reply, NULL);
}

/* Neither is in one message: the request is lent, and the reply is fetched. */
Test(interop, largest_unary)
{
	uint32_t most = LONGEST - 16; /* and what the fields' heads take */

	swap_of(ULRPC_BODY_MAX + 1, 0, 0);
	swap_of(most, most, LONGEST);
}

/* ---- metadata ---- */

static char echo_text[] = "test_initial_metadata_value";
static uint8_t echo_bytes[] = { 0xab, 0xab, 0xab };

static struct ulrpc_context *echo_context(void)
{
	struct ulrpc_context *context;

	cr_assert_eq(ulrpc_context_new(&context), 0);
	cr_assert_eq(
		ulrpc_context_add(context, ECHO, echo_text, strlen(echo_text)),
		0);
	cr_assert_eq(ulrpc_context_add(context, ECHO_BIN, echo_bytes,
				       sizeof(echo_bytes)),
		     0);
	return context;
}

static void are_echoes(const struct ulrpc_metadata *text,
		       const struct ulrpc_metadata *bytes)
{
	cr_assert_eq(text->length, strlen(echo_text));
	cr_assert_str_eq(text->value, echo_text);
	cr_assert_eq(bytes->length, sizeof(echo_bytes));
	cr_assert_arr_eq(bytes->value, echo_bytes, sizeof(echo_bytes));
}

Test(interop, custom_metadata)
{
	Interop__Order request = INTEROP__ORDER__INIT;
	struct ulrpc_metadata text, bytes;
	struct ulrpc_call_conf conf;
	struct ulrpc_outcome end;
	ProtobufCMessage *reply;

	request.payload = (ProtobufCBinaryData){ 271828, zeros };
	request.size = 314159;
	cr_assert_eq(ulrpc_stub_conf(stub, "Swap", &conf), 0);
	conf.context = echo_context();
	cr_assert_eq(ulrpc_call_message_wait(stub, "Swap",
					     (ProtobufCMessage *)&request,
					     &conf, &reply, &end),
		     0);
	went_well(&end);
	cr_assert_eq(((Interop__Parcel *)reply)->payload.len, 314159);
	protobuf_c_message_free_unpacked(reply, NULL);
	cr_assert_eq(ulrpc_context_find(conf.context, ECHO, &text), 0);
	cr_assert_eq(ulrpc_context_find(conf.context, ECHO_BIN, &bytes), 0);
	are_echoes(&text, &bytes);
	ulrpc_context_free(conf.context);
}

/* @stream has ended so, with what it was opened with. Gives it back. */
static void ends_with_echoes(struct ulrpc_stream *stream,
			     enum ulrpc_cause cause, int status)
{
	struct ulrpc_metadata text, bytes;
	struct ulrpc_stream_outcome end;

	cr_assert_eq(ulrpc_stream_outcome_wait(stream, &end), 0);
	cr_assert_eq(ulrpc_stream_find(stream, ECHO, &text), 0);
	cr_assert_eq(ulrpc_stream_find(stream, ECHO_BIN, &bytes), 0);
	are_echoes(&text, &bytes);
	(void)ends(stream, cause, status);
}

Test(interop, custom_metadata_from_the_client)
{
	const struct ulrpc_stream_conf with = { .deadline = MINUTE,
						.context = echo_context() };
	struct ulrpc_stream_outcome end;
	struct ulrpc_stream *stream;
	Interop__Sum *sum;

	cr_assert_eq(interop__trial__add_open(streams, &with, &stream), 0);
	cr_assert_eq(interop__trial__add_finish_wait(stream, &sum, &end), 0);
	cr_assert_not_null(sum);
	interop__sum__free_unpacked(sum, NULL);
	ends_with_echoes(stream, ULRPC_CAUSE_OK, 0);
	ulrpc_context_free(with.context);
}

Test(interop, custom_metadata_from_the_service)
{
	const struct ulrpc_stream_conf with = { .deadline = MINUTE,
						.context = echo_context() };
	const Interop__Sizes request = INTEROP__SIZES__INIT;
	struct ulrpc_stream *stream;
	Interop__Parcel *parcel;

	cr_assert_eq(
		interop__trial__cut_open(streams, &request, &with, &stream), 0);
	cr_assert_eq(interop__trial__cut_next_wait(stream, &parcel), 0);
	ends_with_echoes(stream, ULRPC_CAUSE_OK, 0);
	ulrpc_context_free(with.context);
}

/* The second one ends with a status, and metadata all the same. */
Test(interop, custom_metadata_both_ways)
{
	const struct ulrpc_stream_conf with = { .deadline = MINUTE,
						.context = echo_context() };
	int status = ulrpc_status_errno(ULRPC_STATUS_NOT_FOUND);
	Interop__Order bad = INTEROP__ORDER__INIT;
	struct ulrpc_stream *stream;

	cr_assert_eq(interop__trial__talk_open(streams, &with, &stream), 0);
	cr_assert_eq(order(stream, 271828 / 8, 9), 0);
	parcel_came(stream, 9);
	cr_assert_eq(ulrpc_stream_close_send(stream), 0);
	ends_with_echoes(stream, ULRPC_CAUSE_OK, 0);

	bad.status = (uint32_t)-status;
	cr_assert_eq(interop__trial__talk_open(streams, &with, &stream), 0);
	cr_assert_eq(interop__trial__talk_send_wait(stream, &bad), 0);
	ends_with_echoes(stream, ULRPC_CAUSE_HANDLER, status);
	ulrpc_context_free(with.context);
}

Test(interop, custom_metadata_to_a_set)
{
	const struct ulrpc_replicas_stream_conf with = {
		.deadline = MINUTE, .context = echo_context()
	};
	const Interop__Sizes request = INTEROP__SIZES__INIT;
	struct ulrpc_replicas *set = set_open();
	struct ulrpc_replicas_outcome o;
	struct ulrpc_stream *stream;
	Interop__Parcel *parcel;

	cr_assert_eq(interop__trial__cut_replicas_open_wait(set, &request,
							    &with, &stream, &o),
		     0);
	cr_assert_eq(o.call.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(interop__trial__cut_next_wait(stream, &parcel), 0);
	ends_with_echoes(stream, ULRPC_CAUSE_OK, 0);
	ulrpc_replicas_close(set);
	ulrpc_context_free(with.context);
}

/* ---- statuses ---- */

/* The details of the end of @stream are the order with this text. */
static void has_details(struct ulrpc_stream *stream, const char *text)
{
	ProtobufCMessage *m;

	cr_assert_eq(ulrpc_stream_details_message(
			     stream, &interop__parcel__descriptor, &m),
		     -ENOENT);
	cr_assert_eq(ulrpc_stream_details_message(
			     stream, &interop__order__descriptor, &m),
		     0);
	cr_assert_str_eq(((Interop__Order *)m)->text, text);
	protobuf_c_message_free_unpacked(m, NULL);
}

/* A call, and a stream, that end with the status UNKNOWN, and a text; the
 * stream with details, too. */
static void status_and_text(char *text)
{
	int status = ulrpc_status_errno(ULRPC_STATUS_UNKNOWN);
	Interop__Order request = INTEROP__ORDER__INIT;
	struct ulrpc_stream_outcome over;
	struct ulrpc_stream *stream;
	struct ulrpc_outcome end;
	Interop__Parcel *reply;

	request.status = (uint32_t)-status;
	request.text = text;
	cr_assert_eq(interop__trial__swap_wait(stub, &request, &reply, &end),
		     0);
	cr_assert_null(reply);
	cr_assert_eq(end.cause, ULRPC_CAUSE_HANDLER);
	cr_assert_eq(end.status, status);
	cr_assert_eq(ulrpc_status_of(&end), ULRPC_STATUS_UNKNOWN);
	cr_assert_str_eq(end.text, text);

	cr_assert_eq(interop__trial__talk_open(streams, &limits, &stream), 0);
	cr_assert_eq(interop__trial__talk_send_wait(stream, &request), 0);
	cr_assert_eq(interop__trial__talk_next_wait(stream, &reply), 0);
	cr_assert_eq(ulrpc_stream_outcome_wait(stream, &over), 0);
	has_details(stream, text);
	over = ends(stream, ULRPC_CAUSE_HANDLER, status);
	cr_assert_str_eq(over.text, text);
	cr_assert_eq(ulrpc_stream_status_of(&over), ULRPC_STATUS_UNKNOWN);
	cr_assert_eq(over.delivered, 1);
	handlers_ended(1);
}

Test(interop, status_code_and_message)
{
	status_and_text((char[]){ "test status message" });
}

Test(interop, special_status_message)
{
	char text[] = "\t\ntest with whitespace\r\nand Unicode BMP "
		      "\xe2\x98\xba and non-BMP \xf0\x9f\x98\x88\t\n";

	status_and_text(text);
}

/* ---- streams ---- */

Test(interop, client_streaming)
{
	static const uint32_t sizes[] = { 27182, 8, 1828, 45904 };
	struct ulrpc_stream_outcome end;
	struct ulrpc_stream *stream;
	Interop__Sum *sum;

	cr_assert_eq(interop__trial__add_open(streams, &limits, &stream), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const Interop__Parcel parcel = parcel_of(sizes[i]);

		cr_assert_eq(interop__trial__add_send_wait(stream, &parcel), 0);
	}
	cr_assert_eq(interop__trial__add_finish_wait(stream, &sum, &end), 0);
	cr_assert_eq(end.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(end.delivered, 4);
	cr_assert_eq(sum->bytes, 74922);
	interop__sum__free_unpacked(sum, NULL);
	ulrpc_stream_put(stream);
	handlers_ended(1);
	cr_assert_eq(served.delivered, 1);
}

Test(interop, server_streaming)
{
	uint32_t sizes[] = { 31415, 9, 2653, 58979 };
	Interop__Sizes request = INTEROP__SIZES__INIT;
	struct ulrpc_stream *stream;
	Interop__Parcel *parcel;

	request.n_size = ARRAY_SIZE(sizes);
	request.size = sizes;
	cr_assert_eq(interop__trial__cut_open(streams, &request, &limits,
					      &stream),
		     0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		cr_assert_eq(interop__trial__cut_next_wait(stream, &parcel), 1);
		cr_assert_eq(parcel->payload.len, sizes[i]);
		interop__parcel__free_unpacked(parcel, NULL);
	}
	cr_assert_eq(interop__trial__cut_next_wait(stream, &parcel), 0);
	cr_assert_eq(ends(stream, ULRPC_CAUSE_OK, 0).received, 4);
	handlers_ended(1);
}

/* ---- at one of several servers ---- */

/* Reads what Cut sends for a request of one size. */
static void one_parcel(struct ulrpc_stream *stream, size_t size)
{
	Interop__Parcel *parcel;

	cr_assert_not_null(stream);
	cr_assert_eq(interop__trial__cut_next_wait(stream, &parcel), 1);
	cr_assert_eq(parcel->payload.len, size);
	interop__parcel__free_unpacked(parcel, NULL);
	cr_assert_eq(interop__trial__cut_next_wait(stream, &parcel), 0);
	(void)ends(stream, ULRPC_CAUSE_OK, 0);
}

Test(interop, streams_of_a_set)
{
	struct ulrpc_replicas_stream_conf how = { .deadline = MINUTE };
	struct ulrpc_replicas *set = set_open();
	uint32_t size = 2653;
	Interop__Sizes request = INTEROP__SIZES__INIT;
	struct ulrpc_replicas_outcome o;
	struct ulrpc_stream *stream;

	request.n_size = 1;
	request.size = &size;
	cr_assert_eq(interop__trial__cut_replicas_open_wait(set, &request, &how,
							    &stream, &o),
		     0);
	cr_assert_eq(o.call.cause, ULRPC_CAUSE_OK);
	one_parcel(stream, size);
	cr_assert_eq(
		interop__trial__talk_replicas_open_wait(set, &how, &stream, &o),
		0);
	cr_assert_eq(order(stream, 1, 9), 0);
	parcel_came(stream, 9);
	cr_assert_eq(ulrpc_stream_close_send(stream), 0);
	(void)ends(stream, ULRPC_CAUSE_OK, 0);
	ulrpc_replicas_close(set);
	handlers_ended(2);
}

static void on_set_opened(void *arg, const struct ulrpc_replicas_outcome *o,
			  struct ulrpc_stream *stream)
{
	cr_assert_eq(o->call.cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(o->call.cause), o->call.text);
	*(struct ulrpc_stream **)arg = stream;
}

Test(interop, streams_of_a_set_without_waiting)
{
	struct ulrpc_replicas_stream_conf how = { .deadline = MINUTE };
	struct ulrpc_replicas *set = set_open();
	uint32_t size = 9;
	Interop__Sizes request = INTEROP__SIZES__INIT;
	Interop__Parcel parcel = parcel_of(ULRPC_STREAM_MESSAGE_MAX);
	struct ulrpc_stream *stream = NULL, *other = NULL;
	struct ulrpc_stream_outcome end;
	Interop__Sum *sum;

	request.n_size = 1;
	request.size = &size;
	cr_assert_eq(interop__trial__cut_replicas_open(
			     set, &request, &how, on_set_opened, &stream, NULL),
		     0);
	cr_assert_eq(ulrpc_replicas_stream_open_message(
			     set, "Cut", &parcel.base, &how, on_set_opened,
			     NULL, NULL),
		     -EMSGSIZE);
	lnet_sim_run(g.sim, SEC);
	one_parcel(stream, size);
	cr_assert_eq(interop__trial__add_replicas_open(set, &how, on_set_opened,
						       &other, NULL),
		     0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_not_null(other);
	cr_assert_eq(interop__trial__add_finish_wait(other, &sum, &end), 0);
	cr_assert_eq(sum->bytes, 0);
	interop__sum__free_unpacked(sum, NULL);
	ulrpc_stream_put(other);
	ulrpc_replicas_close(set);
	handlers_ended(2);
}

Test(interop, ping_pong)
{
	static const uint32_t sizes[][2] = {
		{ 27182, 31415 }, { 8, 9 }, { 1828, 2653 }, { 45904, 58979 }
	};
	struct ulrpc_stream *stream;
	Interop__Parcel *parcel;

	cr_assert_eq(interop__trial__talk_open(streams, &limits, &stream), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		cr_assert_eq(order(stream, sizes[i][0], sizes[i][1]), 0);
		parcel_came(stream, sizes[i][1]);
	}
	cr_assert_eq(ulrpc_stream_close_send(stream), 0);
	cr_assert_eq(interop__trial__talk_next_wait(stream, &parcel), 0);
	(void)ends(stream, ULRPC_CAUSE_OK, 0);
	handlers_ended(1);
}

Test(interop, empty_stream)
{
	struct ulrpc_stream *stream;
	Interop__Parcel *parcel;

	cr_assert_eq(interop__trial__talk_open(streams, &limits, &stream), 0);
	cr_assert_eq(ulrpc_stream_close_send(stream), 0);
	cr_assert_eq(interop__trial__talk_next_wait(stream, &parcel), 0);
	(void)ends(stream, ULRPC_CAUSE_OK, 0);
	handlers_ended(1);
}

Test(interop, cancel_after_begin)
{
	struct ulrpc_stream_outcome end;
	struct ulrpc_stream *stream;
	Interop__Sum *sum;

	cr_assert_eq(interop__trial__add_open(streams, &limits, &stream), 0);
	ulrpc_stream_cancel(stream);
	cr_assert_eq(interop__trial__add_finish_wait(stream, &sum, &end), 0);
	cr_assert_null(sum);
	cr_assert_eq(end.cause, ULRPC_CAUSE_CANCELED, "%s",
		     ulrpc_cause_name(end.cause));
	ulrpc_stream_put(stream);
	handlers_ended(1);
	cr_assert_eq(served.cause, ULRPC_CAUSE_CANCELED);
}

Test(interop, cancel_after_first_response)
{
	struct ulrpc_stream *stream;
	Interop__Parcel *parcel;

	cr_assert_eq(interop__trial__talk_open(streams, &limits, &stream), 0);
	cr_assert_eq(order(stream, 27182, 31415), 0);
	parcel_came(stream, 31415);
	ulrpc_stream_cancel(stream);
	cr_assert_eq(interop__trial__talk_next_wait(stream, &parcel), 0);
	(void)ends(stream, ULRPC_CAUSE_CANCELED, -ECANCELED);
	handlers_ended(1);
	cr_assert_eq(served.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(served.delivered, 1);
}

/* The service waits for more, and so does the client. */
Test(interop, timeout_on_sleeping_server)
{
	const struct ulrpc_stream_conf brief = { .deadline = 100000 };
	uint64_t began = lnet_sim_now(g.sim);
	struct ulrpc_stream *stream;
	Interop__Parcel *parcel;

	cr_assert_eq(interop__trial__talk_open(streams, &brief, &stream), 0);
	cr_assert_eq(order(stream, 27182, 8), 0);
	parcel_came(stream, 8);
	cr_assert_eq(interop__trial__talk_next_wait(stream, &parcel), 0);
	(void)ends(stream, ULRPC_CAUSE_DEADLINE, -ETIMEDOUT);
	cr_assert_leq(lnet_sim_now(g.sim), began + 101 * MSEC);
	handlers_ended(1);
	cr_assert_eq(served.cause, ULRPC_CAUSE_DEADLINE);
}

/* ---- what is not there ---- */

Test(interop, unimplemented_method)
{
	const Interop__Nothing request = INTEROP__NOTHING__INIT;
	struct ulrpc_stream *stream;
	struct ulrpc_outcome end;
	ProtobufCService *later;
	Interop__Nothing *reply;
	Interop__Parcel *parcel;

	cr_assert_eq(ulrpc_stub_new(client, &interop__later__descriptor,
				    interop__later__options, MINUTE, &later),
		     0);
	cr_assert_eq(interop__later__dance_wait(later, &request, &reply, &end),
		     0);
	cr_assert_null(reply);
	cr_assert_eq(end.cause, ULRPC_CAUSE_NO_METHOD);
	cr_assert_eq(ulrpc_status_of(&end), ULRPC_STATUS_UNIMPLEMENTED);
	cr_assert_eq(end.status, -ENOSYS);
	cr_assert_eq(end.execution, ULRPC_NOT_EXECUTED);
	ulrpc_stub_free(later);

	cr_assert_eq(interop__later__sing_open(streams, &limits, &stream), 0);
	cr_assert_eq(interop__later__sing_next_wait(stream, &parcel), 0);
	cr_assert_eq(ends(stream, ULRPC_CAUSE_NO_METHOD, -ENOSYS).execution,
		     ULRPC_NOT_EXECUTED);
}

Test(interop, unimplemented_service)
{
	static const struct ulrpc_retry none = { .max = 0 };
	const Interop__Nothing request = INTEROP__NOTHING__INIT;
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_streams_conf conf;
	struct ulrpc_streams *absent;
	struct ulrpc_stream *stream;
	struct ulrpc_outcome end;
	ProtobufCService *later;
	Interop__Nothing *reply;

	ulrpc_streams_conf_init(&conf);
	conf.client.nids = &nid;
	conf.client.nnids = 1;
	conf.client.service = interop__later__descriptor.name;
	conf.client.retry = &none;
	cr_assert_eq(ulrpc_streams_open(g.rpc[CALLER], &conf, &absent), 0);
	ulrpc_client_close(client);
	cr_assert_eq(ulrpc_client_open(g.rpc[CALLER], &conf.client, &client),
		     0);
	cr_assert_eq(ulrpc_stub_new(client, &interop__later__descriptor,
				    interop__later__options, MINUTE, &later),
		     0);
	cr_assert_eq(interop__later__dance_wait(later, &request, &reply, &end),
		     0);
	cr_assert_eq(end.cause, ULRPC_CAUSE_NO_SERVICE);
	cr_assert_eq(ulrpc_status_of(&end), ULRPC_STATUS_UNIMPLEMENTED);
	cr_assert_eq(end.execution, ULRPC_NOT_EXECUTED);
	ulrpc_stub_free(later);

	cr_assert_eq(interop__later__sing_open(absent, &limits, &stream), 0);
	cr_assert_eq(ends(stream, ULRPC_CAUSE_NO_SERVICE, end.status).execution,
		     ULRPC_NOT_EXECUTED);
	ulrpc_streams_close(absent);
}

/* ---- what is wrong ---- */

static const uint8_t garbage[] = { 0x0a, 0xff, 0xff };

/* The service cannot read what a client that knows no messages has sent. */
Test(interop, requests_that_are_no_messages)
{
	struct ulrpc_stream_outcome end;
	struct ulrpc_stream *stream;

	cr_assert_eq(ulrpc_stream_open(streams, "Cut", garbage, sizeof(garbage),
				       &limits, &stream),
		     0);
	end = ends(stream, ULRPC_CAUSE_HANDLER, -EBADMSG);
	cr_assert_str_eq(end.text, "a message of 3 bytes is no interop.Sizes");
	handlers_ended(0);

	cr_assert_eq(interop__trial__talk_open(streams, &limits, &stream), 0);
	cr_assert_eq(ulrpc_stream_send_wait(stream, garbage, sizeof(garbage)),
		     0);
	end = ends(stream, ULRPC_CAUSE_HANDLER, -EBADMSG);
	cr_assert_str_eq(end.text, "a message of 3 bytes is no interop.Order");
	handlers_ended(1);
}

/* Nor can a client whose .proto is another one. */
Test(interop, replies_that_are_no_messages)
{
	struct ulrpc_stream *stream;
	ProtobufCMessage *message;

	cr_assert_eq(interop__trial__talk_open(streams, &limits, &stream), 0);
	cr_assert_eq(order(stream, 1, 100), 0);
	/* Packed numbers are no zeros without end. */
	cr_assert_eq(ulrpc_stream_next_message_wait(
			     stream, &interop__odd__descriptor, &message),
		     -EBADMSG);
	(void)ends(stream, ULRPC_CAUSE_CANCELED, -ECANCELED);
	handlers_ended(1);
}

/* Nor one that merges the same part again and again, each time by a copy of all
 * that came before. */
Test(interop, replies_that_cost_much)
{
	static const uint8_t one[] = { 0x0a, 2, 0x08, 1 }; /* a size of 1 */
	struct ulrpc_stream *stream;
	ProtobufCMessage *message;

	for (unsigned int i = 0; i < 40000; i++)
		zeros[i] = one[i % sizeof(one)];
	cr_assert_eq(interop__trial__talk_open(streams, &limits, &stream), 0);
	cr_assert_eq(order(stream, 1, 400), 0);
	cr_assert_eq(ulrpc_stream_next_message_wait(
			     stream, &interop__costly__descriptor, &message),
		     1);
	protobuf_c_message_free_unpacked(message, NULL);
	cr_assert_eq(order(stream, 1, 40000), 0);
	cr_assert_eq(ulrpc_stream_next_message_wait(
			     stream, &interop__costly__descriptor, &message),
		     -EBADMSG);
	memset(zeros, 0, 40000);
	(void)ends(stream, ULRPC_CAUSE_CANCELED, -ECANCELED);
	handlers_ended(1);
}

/* A method whose requests stream has one reply. */
static void replies(unsigned int n)
{
	struct ulrpc_stream_outcome end;
	struct ulrpc_stream *stream;
	Interop__Sum *sum;

	/* Talk's replies are as many as its requests. */
	cr_assert_eq(interop__trial__talk_open(streams, &limits, &stream), 0);
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(order(stream, 1, 0), 0);
	cr_assert_eq(interop__trial__add_finish_wait(stream, &sum, &end), 0);
	cr_assert_eq(!sum, n != 1);
	cr_assert_eq(end.cause,
		     n == 1 ? ULRPC_CAUSE_OK : ULRPC_CAUSE_BAD_REPLY);
	cr_assert_eq(end.status, n == 1 ? 0 : -EBADMSG);
	cr_assert_str_eq(end.text,
			 n == 1 ? "" : "the reply is not one interop.Sum");
	if (sum)
		interop__sum__free_unpacked(sum, NULL);
	ulrpc_stream_put(stream);
	handlers_ended(1);
}

Test(interop, no_reply)
{
	replies(0);
}

Test(interop, one_reply)
{
	replies(1);
}

Test(interop, two_replies)
{
	replies(2);
}

Test(interop, messages_that_are_too_long)
{
	Interop__Parcel parcel = parcel_of(ULRPC_STREAM_MESSAGE_MAX - 4);
	struct ulrpc_stream *stream;

	cr_assert_eq(interop__trial__add_open(streams, &limits, &stream), 0);
	cr_assert_eq(interop__trial__add_send_wait(stream, &parcel), 0);
	parcel.payload.len++;
	cr_assert_eq(interop__trial__add_send_wait(stream, &parcel), -EMSGSIZE);
	cr_assert_eq(ulrpc_stream_open_message(
			     streams, "Cut", (ProtobufCMessage *)&parcel,
			     &limits, &(struct ulrpc_stream *){ NULL }),
		     -EMSGSIZE);
	ulrpc_stream_put(stream);
	handlers_ended(1);
}

/* A method that streams is not called. */
Test(interop, a_call_of_a_stream)
{
	const Interop__Sizes request = INTEROP__SIZES__INIT;
	struct ulrpc_outcome end;
	ProtobufCMessage *reply;

	cr_assert_eq(ulrpc_call_message_wait(
			     stub, "Cut", (const ProtobufCMessage *)&request,
			     NULL, &reply, &end),
		     -EOPNOTSUPP);
	ulrpc_stub_free(stub);
	cr_assert_eq(ulrpc_stub_new(client, &interop__trial__descriptor, NULL,
				    MINUTE, &stub),
		     0);
	/* Without options the stub does not know that it streams. */
	cr_assert_eq(ulrpc_call_message_wait(
			     stub, "Cut", (const ProtobufCMessage *)&request,
			     NULL, &reply, &end),
		     0);
	cr_assert_eq(end.cause, ULRPC_CAUSE_BAD_REQUEST);
	handlers_ended(0);
}
