/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Very many clients call one server at the same moment, and its replies cannot
 * be sent for a while. The server executes and answers each request, or refuses
 * it before it is executed: no client is left in doubt about its call.
 */
#include <stdlib.h>

#include "tests/unit/lnet/cluster.h"
#include "ulnet/service.h"

#define HERD	 650
#define SERVER	 HERD
#define DEADLINE UINT64_C(20000000) /* us */
#define SILENCE	 (300 * MSEC)
#define LONG	 16384 /* bytes of a request */

struct herd {
	struct lnet_sim *sim;
	struct ulrpc *rpc[HERD + 1];
	struct ulrpc_client *clients[HERD];
	struct ulrpc_service *service;
	size_t size; /* bytes of requests */
	unsigned int executed, answered, refused, unknown;
};

static void echo(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct herd *h = arg;

	h->executed++;
	ulrpc_reply(r, body, length);
}

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct herd *h = arg;

	(void)reply;
	(void)length;
	if (!o->status)
		h->answered++;
	else if (o->execution == ULRPC_NOT_EXECUTED)
		h->refused++;
	else
		h->unknown++;
}

static void herd_service(struct herd *h, uint64_t queue_bytes_max)
{
	struct ulrpc_method_conf method = { .name = "echo",
					    .handler = echo,
					    .arg = h,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.queue_bytes_max = queue_bytes_max;
	cr_assert_eq(ulrpc_service_start(h->rpc[SERVER], &conf, &h->service),
		     0);
}

static void herd_client(struct herd *h, unsigned int i)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf;

	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(h->rpc[i], &conf, &h->clients[i]), 0);
}

static struct herd *herd_open_with(uint64_t queue_bytes_max,
				   const struct ulnet_conf *conf)
{
	struct herd *h = calloc(1, sizeof(*h));

	h->size = 1;
	h->sim = cluster_with(HERD + 1, 1, conf);
	for (unsigned int i = 0; i <= HERD; i++)
		cr_assert_eq(
			ulrpc_open(lnet_sim_node(h->sim, i), NULL, &h->rpc[i]),
			0);
	herd_service(h, queue_bytes_max);
	for (unsigned int i = 0; i < HERD; i++)
		herd_client(h, i);
	return h;
}

static struct herd *herd_open(uint64_t queue_bytes_max)
{
	return herd_open_with(queue_bytes_max, NULL);
}

static void herd_close(struct herd *h)
{
	for (unsigned int i = 0; i < HERD; i++)
		ulrpc_client_close(h->clients[i]);
	cr_assert_eq(ulrpc_service_stop(h->service, 0), 0);
	for (unsigned int i = 0; i <= HERD; i++)
		cr_assert_eq(ulrpc_close(h->rpc[i]), 0);
	cluster_end(h->sim);
	free(h);
}

static void herd_calls(struct herd *h)
{
	static const char body[LONG];
	struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					.reply_max = MAX(h->size, 4096) };

	h->executed = h->answered = h->refused = h->unknown = 0;
	for (unsigned int i = 0; i < HERD; i++)
		cr_assert_eq(ulrpc_call(h->clients[i], ulrpc_method("echo"),
					body, h->size, &conf, on_end, h, NULL),
			     0);
}

/* Sets whether the link refuses the server's messages. */
static void herd_silence(struct herd *h, bool on)
{
	struct ulnet_sim_link link = { .refuse = on ? LNET_SIM_ALWAYS : 0 };
	struct ulnet_nid from = nth_id(SERVER).nid, any = LNET_NID_ANY;

	cr_assert_eq(lnet_sim_link_set(h->sim, &from, &any, &link), 0);
}

static void herd_run(struct herd *h)
{
	herd_calls(h);
	lnet_sim_run(h->sim, (DEADLINE + 1000000) * 1000);
	cr_assert_eq(h->answered + h->refused + h->unknown, HERD);
}

Test(herd, all_at_once)
{
	struct herd *h = herd_open(0);

	herd_run(h);
	cr_assert_eq(h->answered, HERD);
	cr_assert_eq(h->executed, HERD);
	herd_close(h);
}

/* The server has memory for some 560 replies, and for 140 refusals. */
Test(herd, replies_that_cannot_leave)
{
	struct herd *h = herd_open(1 << 16);

	herd_run(h); /* connects all clients */
	herd_silence(h, true);
	herd_calls(h);
	lnet_sim_run(h->sim, SILENCE);
	cr_assert_eq(h->answered, 0);
	cr_assert_gt(h->executed, 0);
	cr_assert_lt(h->executed, HERD);
	herd_silence(h, false);
	lnet_sim_run(h->sim, (DEADLINE + 1000000) * 1000);
	cr_assert_eq(h->answered + h->refused + h->unknown, HERD);
	cr_assert_eq(h->unknown, 0);
	cr_assert_eq(h->answered, h->executed);
	herd_close(h);
}

/* The requests arrive at the same time, and slowly, so that they use up the
 * service's buffers and the memory that LNet has for unexpected messages. The
 * rest waits unread in the connections. */
Test(herd, requests_that_are_long)
{
	struct ulnet_sim_link slow = { .bandwidth = 10000000 };
	struct ulnet_nid to = nth_id(SERVER).nid, any = LNET_NID_ANY;
	struct ulnet_conf conf;
	struct herd *h;

	lnet_conf_init(&conf);
	conf.lazy_max = 64;
	h = herd_open_with(0, &conf);
	h->size = LONG;
	cr_assert_eq(lnet_sim_link_set(h->sim, &any, &to, &slow), 0);
	herd_run(h);
	cr_assert_eq(h->answered, HERD);
	cr_assert_eq(h->unknown, 0);
	herd_close(h);
}
