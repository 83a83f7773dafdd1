/* SPDX-License-Identifier: BSD-3-Clause */
/* Inboxes: receive buffers for the messages of anybody. */
#include "rpc/inbox.h"
#include "rpc/rpc.h"
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/rpc/server/raw_client.h"

#define PORTAL 40
#define SIZE   1000 /* bytes of a buffer */
#define MAX_   100

static struct raw_client a;
static struct lnet_sim *sim;
static struct shard *shard;
static struct ulrpc *rpc;
static struct inbox in;
static unsigned int got, wrong, closed;
static bool pin_all;
static struct inbox_buffer *pins[4096];
static unsigned int npins, refused;

static void on_message(void *arg, const struct ulnet_event *ev,
		       const void *payload, size_t length)
{
	uint32_t n;

	cr_assert_eq(arg, &in);
	cr_assert_eq(ev->mlength, length);
	cr_assert_geq(length, sizeof(n));
	memcpy(&n, payload, sizeof(n));
	wrong += n != ev->match_bits;
	got++;
	if (!pin_all)
		return;
	pins[npins] = inbox_pin(&in);
	if (pins[npins])
		npins++;
	else
		refused++;
}

static int open_in(unsigned int portal, unsigned int buffers,
		   uint32_t message_max)
{
	in = (struct inbox){ .shard = shard,
			     .portal = portal,
			     .buffers = buffers,
			     .buffer_size = SIZE,
			     .message_max = message_max,
			     .fn = on_message,
			     .arg = &in };
	return inbox_open(&in);
}

static void begin(unsigned int buffers)
{
	struct lnet *node;

	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	for (unsigned int i = 0; i < 2; i++) {
		char text[LNET_NIDSTR_SIZE];
		struct ulnet_id id = nth_id(i);

		lnet_nid_format(&id.nid, text, sizeof(text));
		cr_assert_eq(lnet_sim_node_add(sim, text, NULL, NULL, NULL),
			     (int)i);
	}
	node = lnet_sim_node(sim, 1);
	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	shard = &rpc->shards[0];
	cr_assert_eq(open_in(PORTAL, buffers, MAX_), 0);
	raw_client_init(&a, sim, 0, 1);
}

static void send_many(unsigned int n)
{
	static uint32_t number;
	uint8_t bytes[MAX_] = { 0 };

	while (n--) {
		number++;
		memcpy(bytes, &number, sizeof(number));
		raw_client_put(&a, PORTAL, number, 0, bytes,
			       sizeof(number) + number % (MAX_ - 3));
	}
}

static void on_closed(void *arg)
{
	cr_assert_eq(arg, &in);
	closed++;
}

static void end(void)
{
	cr_assert_eq(ulrpc_close(rpc), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
}

Test(inbox, bad_values)
{
	begin(2);
	cr_assert_eq(open_in(41, 1, MAX_), -EINVAL);
	cr_assert_eq(open_in(41, 2, 0), -EINVAL);
	cr_assert_eq(open_in(41, 2, SIZE + 1), -EINVAL);
	cr_assert_eq(open_in(64, 2, MAX_), -EINVAL);
}

/* The messages are a thousand times as long as the buffers. */
Test(inbox, all_come_and_are_intact)
{
	begin(2);
	send_many(20000);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(got, 20000);
	cr_assert_eq(wrong, 0);
	cr_assert_eq(in.linked, 2);
	inbox_close(&in, on_closed, &in);
	cr_assert_eq(closed, 0, "never inside");
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(closed, 1);
	end();
}

/* Pins keep at most a quarter of the buffers from being used again; further
 * ones are refused. */
Test(inbox, pins)
{
	begin(8);
	pin_all = true;
	send_many(4000);
	lnet_sim_run(sim, 1000 * MSEC);
	cr_assert_eq(got, 4000);
	cr_assert_eq(wrong, 0);
	cr_assert_eq(in.pinned, 2);
	cr_assert_gt(refused, 3900);
	cr_assert_eq(in.linked, 6);
	inbox_close(&in, on_closed, &in);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(closed, 0);
	while (npins)
		inbox_unpin(pins[--npins]);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(closed, 1);
	end();
}

/* A pin that is kept outlives its inbox, together with the bytes. */
Test(inbox, kept)
{
	begin(8);
	pin_all = true;
	send_many(1);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(npins, 1);
	inbox_pin_keep(pins[0]);
	inbox_close(&in, on_closed, &in);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(closed, 1);
	end();
	inbox_kept_put(pins[0]);
}
