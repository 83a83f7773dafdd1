/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service interop.Trial, whose methods stream, and ulrpc.About:
 *
 *	trial NID PORT [TEXT]
 *
 * It says "ready", and then how each stream of Talk has ended. With TEXT the
 * method Rest fails, and says it.
 */
#include "tests/unit/rpc/stub/interop.ulrpc.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *fails; /* NULL: it does not */

static void serve_rest(Interop__Trial_Service *self,
		       const Interop__Nothing *request,
		       Interop__Nothing_Closure closure, void *data)
{
	const Interop__Nothing reply = INTEROP__NOTHING__INIT;

	(void)self;
	(void)request;
	if (fails)
		ulrpc_closure_fail_text(data, -EIO, fails);
	else
		closure(&reply, data);
}

static Interop__Parcel parcel_of(uint32_t size)
{
	static uint8_t zeros[1000];
	Interop__Parcel parcel = INTEROP__PARCEL__INIT;

	parcel.payload.len = size < sizeof(zeros) ? size : sizeof(zeros);
	parcel.payload.data = zeros;
	return parcel;
}

static void serve_swap(Interop__Trial_Service *self,
		       const Interop__Order *request,
		       Interop__Parcel_Closure closure, void *data)
{
	const Interop__Parcel reply = parcel_of(request->size);

	(void)self;
	if (request->status)
		ulrpc_closure_fail_text(data, -(int)request->status,
					request->text);
	else
		closure(&reply, data);
}

static void serve_cut(void *arg, struct ulrpc_stream *stream,
		      const Interop__Sizes *request)
{
	int rc = 0;

	(void)arg;
	for (size_t i = 0; !rc && i < request->n_size; i++) {
		const Interop__Parcel reply = parcel_of(request->size[i]);

		rc = interop__trial__cut_reply_wait(stream, &reply);
	}
	ulrpc_stream_end(stream, rc, NULL);
	ulrpc_stream_put(stream);
}

static void serve_add(void *arg, struct ulrpc_stream *stream)
{
	Interop__Sum sum = INTEROP__SUM__INIT;
	Interop__Parcel *parcel;
	int rc;

	(void)arg;
	while ((rc = interop__trial__add_request_wait(stream, &parcel)) == 1) {
		sum.bytes += parcel->payload.len;
		interop__parcel__free_unpacked(parcel, NULL);
	}
	if (!rc)
		rc = interop__trial__add_reply(stream, &sum);
	ulrpc_stream_end(stream, rc, NULL);
	ulrpc_stream_put(stream);
}

static bool talk_one(struct ulrpc_stream *stream, const Interop__Order *order)
{
	const Interop__Parcel reply = parcel_of(order->size);

	if (!order->status)
		return !interop__trial__talk_reply_wait(stream, &reply);
	ulrpc_stream_end(stream, -(int)order->status, order->text);
	return false;
}

static void serve_talk(void *arg, struct ulrpc_stream *stream)
{
	struct ulrpc_stream_outcome outcome;
	Interop__Order *order;
	bool more = true;

	(void)arg;
	while (more &&
	       interop__trial__talk_request_wait(stream, &order) == 1) {
		more = talk_one(stream, order);
		interop__order__free_unpacked(order, NULL);
	}
	ulrpc_stream_end(stream, 0, NULL);
	if (!ulrpc_stream_outcome_wait(stream, &outcome))
		warnx("talk: %s", ulrpc_cause_name(outcome.cause));
	ulrpc_stream_put(stream);
}

static Interop__Trial_Service trial = {
	.base = INTEROP__TRIAL__BASE_INIT,
	.rest = serve_rest,
	.swap = serve_swap,
};

static const struct interop__trial__streams handlers = {
	.cut = serve_cut,
	.add = serve_add,
	.talk = serve_talk,
};

static void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

int main(int argc, char *argv[])
{
	struct ulrpc_stream_service *service;
	struct ulrpc_service *about;
	struct ulnet_conf conf;
	struct lnet *node;
	struct ulrpc *rpc;

	if (argc != 3 && argc != 4)
		errx(2, "usage: trial NID PORT [TEXT]");
	fails = argv[3];
	lnet_conf_init(&conf);
	conf.nids = argv[1];
	conf.port = (uint16_t)atoi(argv[2]);
	conf.accept = LNET_ACCEPT_ALL;
	check(lnet_open(&conf, &node), argv[1]);
	check(ulrpc_open(node, NULL, &rpc), "RPC");
	check(interop__trial__serve_streams(rpc, &trial, &handlers, NULL,
					    &service),
	      "service");
	check(ulrpc_about_start(rpc, NULL, &about), "ulrpc.About");
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}
