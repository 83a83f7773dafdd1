/* SPDX-License-Identifier: BSD-3-Clause */
/* Canceled requests: those whose caller does not wait for them any more. */
#include <errno.h>

#include "rpc/server/serve/cancel.h"
#include "tests/unit/rpc/server/request_rig.h"

static struct ulrpc_request *active(struct serve_rig *g, uint64_t xid)
{
	struct ulrpc_request *r;

	list_for_each_entry (r, &cpt0(g)->active, link)
		if (r->xid == xid)
			return r;
	cr_assert_fail("%llu is not active", (unsigned long long)xid);
	return NULL;
}

static void nothing_left(struct serve_rig *g)
{
	cr_assert_eq(atomic_load(&cpt0(g)->under_way), 0);
	cr_assert_eq(serve_holds(cpt0(g)), 0);
	cr_assert(list_empty(&cpt0(g)->active));
	cr_assert(list_empty(&cpt0(g)->canceled));
}

/* A queued request that is canceled is neither executed nor answered, and frees
 * its place at once. Other calls of its message are answered. */
Test(cancel, what_is_queued_is_dropped)
{
	struct ulrpc_service_conf conf = { .queue_max = 4 };
	struct wire_call calls[3];
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	raw_client_call(&a, 1, "park", "x");
	for (unsigned int i = 0; i < 3; i++)
		calls[i] = raw_client_call_of(2 + i, "work", 1);
	raw_client_send(&a, calls, 3, "xyz", 0);
	settle(&g);
	raw_client_cancel(&a, (uint64_t[]){ 3 }, 1);
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 3);
	raw_client_call(&a, 5, "work", "x");
	settle(&g);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(a.replies, 4);
	cr_assert_eq(g.served.runs, 4);
	for (unsigned int i = 0; i < a.replies; i++) {
		cr_assert_neq(a.reply[i].xid, 3);
		cr_assert_eq(a.reply[i].status, WIRE_OK);
	}
	cr_assert_eq(serve_ended(cpt0(&g), STAT_CANCELED), 1);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_canceled), 1);
	nothing_left(&g);
	serve_fini(&g);
}

/* A canceled call that has been answered: its reply is not kept any longer. */
Test(cancel, what_was_answered_is_let_go)
{
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "echo", "x");
	settle(&g);
	cr_assert_gt(atomic_load(&cpt0(&g)->kept_bytes), 0);
	for (unsigned int i = 0; i < 2; i++) {
		raw_client_cancel(&a, (uint64_t[]){ 1 }, 1);
		cr_assert_eq(atomic_load(&cpt0(&g)->kept_bytes), 0);
		cr_assert_eq(serve_holds(cpt0(&g)), 0);
	}
	serve_fini(&g);
}

/* A Cancel may come early, late, or repeatedly: the call that it names does not
 * run, and no other call is affected. */
Test(cancel, whenever_it_comes)
{
	static const uint64_t all[] = { 7, 8, 9 };
	struct wire_call c;
	struct serve_rig g;

	rig(&g);
	/* The Cancel comes before two attempts of the call. */
	raw_client_cancel(&a, all, 3);
	raw_client_call(&a, 8, "echo", "x");
	c = raw_client_call_of(8, "echo", 1);
	c.attempt = 1;
	c.flags = WIRE_CALL_RESENT;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(g.served.runs, 0);
	cr_assert_eq(a.replies, 0);
	/* The next call in the same slot runs. */
	c = raw_client_call_of(8 + WIRE_SLOTS_USUAL, "echo", 1);
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, c.xid)->status, WIRE_OK);
	/* Calls 8 and 9 are canceled again, with later calls in their slots,
	 * and so is a call that has been answered already. */
	raw_client_call(&a, 9 + WIRE_SLOTS_USUAL, "hold", "x");
	settle(&g);
	raw_client_cancel(&a, all, 3);
	raw_client_cancel(&a, &c.xid, 1);
	cr_assert_not(ulrpc_request_canceled(g.served.park[0]));
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 9 + WIRE_SLOTS_USUAL)->status,
		     WIRE_OK);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_canceled), 0);
	/* Cancels for slots that do not exist, and of an unknown connection. */
	raw_client_cancel(&a, (uint64_t[]){ 0, UINT64_MAX }, 2);
	raw_client_call(&a, 10, "hold", "x");
	settle(&g);
	a.connection++;
	raw_client_cancel(&a, (uint64_t[]){ 10 }, 1);
	a.connection--;
	cr_assert_not(ulrpc_request_canceled(g.served.park[0]));
	/* A Cancel of an older epoch is valid. */
	a.epoch++;
	raw_client_connect(&a);
	a.epoch--;
	raw_client_cancel(&a, (uint64_t[]){ 10 }, 1);
	cr_assert(ulrpc_request_canceled(g.served.park[0]));
	serve_release(&g.served);
	settle(&g);
	nothing_left(&g);
	serve_fini(&g);
}

/* A client that uses a slot again has given up the call before in that slot. */
Test(cancel, by_the_next_call_in_a_slot)
{
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "hold", "x");
	settle(&g);
	raw_client_call(&a, 1 + WIRE_SLOTS_USUAL, "echo", "x");
	settle(&g);
	cr_assert(ulrpc_request_canceled(g.served.park[0]));
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(a.replies, 1);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_canceled), 1);
	serve_fini(&g);
}

/* Cancels with as many entries as a message may have. For a handle that names
 * another CPT nothing is canceled; that CPT gets the message passed on. */
Test(cancel, many_in_one_message)
{
	uint64_t xids[WIRE_ENTRIES_MAX], connection;
	struct serve_rig g;

	rig_with(&g, NULL, 4);
	for (unsigned int i = 0; i < WIRE_ENTRIES_MAX; i++) {
		xids[i] = 1 + i;
		raw_client_call(&a, xids[i], "hold", "x");
	}
	settle(&g);
	cr_assert_eq(g.served.parked, WIRE_ENTRIES_MAX);
	connection = a.connection;
	for (uint64_t cpt = 0; cpt < 6; cpt++) {
		a.connection = (connection & ~UINT64_C(0xff000000)) | cpt << 24;
		if (a.connection != connection)
			raw_client_cancel(&a, xids, WIRE_ENTRIES_MAX);
	}
	for (unsigned int i = 0; i < WIRE_ENTRIES_MAX; i++)
		cr_assert_not(ulrpc_request_canceled(g.served.park[i]));
	a.connection = connection;
	raw_client_cancel(&a, xids, WIRE_ENTRIES_MAX);
	for (unsigned int i = 0; i < WIRE_ENTRIES_MAX; i++)
		cr_assert(ulrpc_request_canceled(g.served.park[i]));
	serve_release(&g.served);
	serve_fini(&g);
}

/* ---- requests that are being executed ---- */

struct told {
	unsigned int times;
	bool reply;
	const struct ulrpc_request *request;
};

static void on_cancel(void *arg, struct ulrpc_request *r)
{
	struct told *t = arg;

	cr_assert(ulrpc_request_canceled(r));
	cr_assert(lnet_in_turn());
	t->times++;
	t->request = r;
	if (t->reply)
		ulrpc_reply(r, "nobody", 6);
}

Test(cancel, handlers_are_told)
{
	struct told told = { 0 }, other = { 0 };
	struct ulrpc_request *r;
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "park", "x");
	settle(&g);
	r = g.served.park[0];
	cr_assert_not(ulrpc_request_canceled(r));
	cr_assert_eq(ulrpc_request_on_cancel(r, on_cancel, &told), 0);
	cr_assert_eq(ulrpc_request_on_cancel(r, on_cancel, &other), -EALREADY);
	request_cancel(r);
	request_cancel(r);
	cr_assert(ulrpc_request_canceled(r));
	cr_assert_eq(told.times, 0, "not inside of what cancels");
	settle(&g);
	cr_assert_eq(told.times, 1);
	cr_assert_eq(told.request, r);
	cr_assert_eq(other.times, 0);
	cr_assert_eq(ulrpc_request_on_cancel(r, on_cancel, &other), -ECANCELED);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(a.replies, 0);
	cr_assert_eq(serve_ended(cpt0(&g), STAT_CANCELED), 1);
	nothing_left(&g);
	/* The worker is free for other requests. */
	raw_client_call(&a, 2, "work", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_OK);
	cr_assert_eq(told.times, 1);
	serve_fini(&g);
}

Test(cancel, the_callback_may_reply)
{
	struct told told[3] = { { .reply = true }, { 0 }, { .reply = true } };
	struct serve_rig g;

	rig(&g);
	for (unsigned int i = 0; i < 3; i++) {
		raw_client_call(&a, 1 + i, "hold", "x");
		settle(&g);
		cr_assert_eq(ulrpc_request_on_cancel(g.served.park[i],
						     on_cancel, &told[i]),
			     0);
	}
	for (unsigned int i = 0; i < 3; i++)
		request_cancel(g.served.park[i]);
	/* This one is replied to before its callback runs, which then does not
	 * run. */
	ulrpc_reply(g.served.park[1], NULL, 0);
	settle(&g);
	cr_assert_eq(told[0].times, 1);
	cr_assert_eq(told[1].times, 0);
	cr_assert_eq(told[2].times, 1);
	cr_assert_eq(a.replies, 0);
	nothing_left(&g);
	g.served.parked = 0;
	serve_fini(&g);
}

/* A service stops with a request in a handler: its callback is called. */
Test(cancel, handlers_are_told_when_the_service_stops)
{
	struct told told = { 0 };
	struct ulrpc_request *r;
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "park", "x");
	settle(&g);
	r = g.served.park[0];
	cr_assert_eq(ulrpc_request_on_cancel(r, on_cancel, &told), 0);
	serve_dismiss_at(&g, MSEC);
	cr_assert_eq(ulrpc_service_stop(g.service, 0), -ETIMEDOUT);
	cr_assert_eq(told.times, 1);
	cr_assert(ulrpc_request_canceled(r));
	cr_assert_eq(ulrpc_request_on_cancel(r, on_cancel, &told), -ECANCELED);
	serve_release(&g.served);
	serve_fini(&g);
}

/* When a client disconnects all of its requests are canceled. */
Test(cancel, with_its_client)
{
	struct told told[2] = { { 0 }, { .reply = true } };
	struct serve_rig g;

	rig(&g);
	for (unsigned int i = 0; i < 2; i++) {
		raw_client_call(&a, 1 + i, "hold", "x");
		settle(&g);
		cr_assert_eq(ulrpc_request_on_cancel(g.served.park[i],
						     on_cancel, &told[i]),
			     0);
	}
	raw_client_disconnect(&a);
	settle(&g);
	cr_assert_eq(told[0].times, 1);
	cr_assert_eq(told[1].times, 1);
	cr_assert_eq(g.served.park[0], told[0].request);
	ulrpc_reply(g.served.park[0], NULL, 0);
	settle(&g);
	cr_assert_eq(a.replies, 0);
	nothing_left(&g);
	g.served.parked = 0;
	serve_fini(&g);
}

/* Returns how many requests are linked to the connection of @r. All of these,
 * and no others, are canceled when it ends. */
static unsigned int requests_of_the_connection(struct ulrpc_request *r)
{
	const struct export *e = r->batch->export;
	const struct share *share;
	struct ulrpc_request *other;
	unsigned int n = 0;

	list_for_each_entry (share, &e->shares, link)
		list_for_each_entry (other, &share->active, share_link) {
			cr_assert_eq(other->batch->export, e);
			n++;
		}
	return n;
}

Test(cancel, only_of_the_client_that_leaves)
{
	struct ulrpc_request *others;
	static struct raw_client b;
	struct serve_rig g;

	rig(&g);
	raw_client_init(&b, g.sim, serve_node_add(&g, 2), SERVER);
	cr_assert_eq(raw_client_connect(&b)->status, WIRE_OK);
	cr_assert_eq(raw_client_open(&b, "test")->status, WIRE_OK);
	for (uint64_t i = 1; i <= 3; i++) {
		raw_client_call(&a, i, i == 3 ? "park" : "hold", "x");
		settle(&g);
	}
	raw_client_call(&b, 1, "hold", "x");
	raw_client_call(&b, 2, "work", "x"); /* queued */
	settle(&g);
	cr_assert_eq(g.served.parked, 4);
	others = g.served.park[3];
	cr_assert_eq(requests_of_the_connection(g.served.park[0]), 3);
	cr_assert_eq(requests_of_the_connection(others), 2);
	raw_client_disconnect(&a);
	settle(&g);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert(ulrpc_request_canceled(g.served.park[i]));
	cr_assert_not(ulrpc_request_canceled(others));
	cr_assert_eq(requests_of_the_connection(others), 2);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(b.replies, 2);
	cr_assert_eq(raw_client_reply(&b, 2)->status, WIRE_OK);
	nothing_left(&g);
	serve_fini(&g);
}

/* Requests of a silent client are canceled at their callers' deadlines, be they
 * executed by a worker, inline, or answered from the callback. */
Test(cancel, at_the_callers_deadline)
{
	static const char *const methods[] = { "park", "hold", "hold" };
	struct told told[3] = { { 0 }, { 0 }, { .reply = true } };
	struct serve_rig g;

	rig(&g);
	for (unsigned int i = 0; i < 3; i++) {
		struct wire_call c = raw_client_call_of(1 + i, methods[i], 1);

		c.timeout = 500000;
		c.remaining = 2000000;
		raw_client_send(&a, &c, 1, "x", 0);
		settle(&g);
		cr_assert_eq(ulrpc_request_on_cancel(g.served.park[i],
						     on_cancel, &told[i]),
			     0);
	}
	lnet_sim_run(g.sim, 1939 * MSEC);
	cr_assert_eq(told[0].times, 0);
	cr_assert_eq(a.replies, 0);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(told[0].times, 1);
	cr_assert_eq(told[1].times, 0);
	lnet_sim_run(g.sim, 60 * MSEC);
	for (unsigned int i = 0; i < 3; i++)
		cr_assert_eq(told[i].times, 1);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_canceled), 3);
	cr_assert_eq(serve_ended(cpt0(&g), STAT_CANCELED), 1);
	g.served.parked--;
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(a.replies, 0);
	nothing_left(&g);
	serve_fini(&g);
}

/* A handler that does not end after its deadline is reported as stuck. */
Test(cancel, stuck_after_the_deadline)
{
	struct ulrpc_service_conf conf = { .stuck = 5000000 };
	struct wire_call c = raw_client_call_of(1, "park", 1);
	struct serve_rig g;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	rig_with(&g, &conf, 1);
	c.remaining = 1000000;
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 2 * SEC);
	cr_assert(ulrpc_request_canceled(g.served.park[0]));
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_stuck), 0);
	lnet_sim_run(g.sim, 4 * SEC);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_stuck), 1);
	serve_release(&g.served);
	settle(&g);
	nothing_left(&g);
	serve_fini(&g);
}

/* ---- workers that sleep ---- */

struct nap {
	uint64_t us;
	int rc;
	uint64_t slept; /* ns */
	unsigned int times;
};

static void take_nap(void *arg, struct ulrpc_request *r, const void *body,
		     size_t length)
{
	struct nap *nap = arg;
	struct lnet *node = ulrpc_node(ulrpc_request_rpc(r));
	uint64_t from = lnet_now(node, 0);

	(void)body;
	(void)length;
	nap->rc = ulrpc_request_sleep(r, nap->us);
	nap->slept = lnet_now(node, 0) - from;
	nap->times++;
	ulrpc_reply(r, NULL, 0);
}

static void nap_rig(struct serve_rig *g, struct nap *nap)
{
	struct ulrpc_method_conf methods[] = {
		{ .name = "nap", .handler = take_nap, .arg = nap },
		{ .name = "inline",
		  .handler = take_nap,
		  .arg = nap,
		  .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf conf = { .name = "test",
					   .methods = methods,
					   .nmethods = 2,
					   .workers_min = 2 };

	serve_init(g, 1, 1);
	serve_open(g, NULL);
	serve_start(g, &conf);
	raw_client_init(&a, g->sim, CALLER, SERVER);
	raw_client_connect(&a);
	raw_client_open(&a, "test");
}

Test(cancel, wakes_a_worker)
{
	struct nap nap = { .us = 5000000 };
	struct serve_rig g;

	nap_rig(&g, &nap);
	raw_client_call(&a, 1, "nap", "x");
	lnet_sim_run(g.sim, 4999 * MSEC);
	cr_assert_eq(nap.times, 0);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(nap.times, 1);
	cr_assert_eq(nap.rc, 0);
	cr_assert_eq(nap.slept, 5 * SEC);
	raw_client_call(&a, 2, "inline", "x");
	settle(&g);
	cr_assert_eq(nap.rc, -EDEADLK);
	/* Two handlers sleep, and one is woken by a Cancel. */
	for (uint64_t xid = 3; xid <= 4; xid++) {
		struct wire_call c = raw_client_call_of(xid, "nap", 1);

		c.timeout = c.remaining = 0;
		raw_client_send(&a, &c, 1, "x", 0);
	}
	lnet_sim_run(g.sim, 1234 * MSEC);
	raw_client_cancel(&a, (uint64_t[]){ 4 }, 1);
	cr_assert_eq(nap.times, 3);
	cr_assert_eq(nap.rc, -ECANCELED);
	cr_assert_eq(nap.slept, 1234 * MSEC);
	lnet_sim_run(g.sim, 5 * SEC);
	cr_assert_eq(nap.times, 4);
	cr_assert_eq(nap.rc, 0);
	cr_assert_eq(nap.slept, 5 * SEC);
	cr_assert_eq(a.replies, 3);
	serve_fini(&g);
}

/* A handler that sleeps is woken at its caller's deadline, even if no Cancel
 * comes. */
Test(cancel, wakes_a_worker_at_the_deadline)
{
	struct nap nap = { .us = ULRPC_NEVER };
	struct wire_call c = raw_client_call_of(1, "nap", 1);
	struct serve_rig g;

	nap_rig(&g, &nap);
	c.remaining = 3000000;
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 10 * SEC);
	cr_assert_eq(nap.times, 1);
	cr_assert_eq(nap.rc, -ECANCELED);
	cr_assert_eq(nap.slept, 3 * SEC);
	serve_fini(&g);
}

/* A handler that sleeps for ever is woken when the service stops. */
Test(cancel, wakes_a_worker_at_the_end)
{
	struct nap nap = { .us = ULRPC_NEVER };
	struct serve_rig g;

	nap_rig(&g, &nap);
	raw_client_call(&a, 1, "nap", "x");
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(ulrpc_service_stop(g.service, 100000), -ETIMEDOUT);
	cr_assert_eq(nap.times, 1);
	cr_assert_eq(nap.rc, -ECANCELED);
	serve_fini(&g);
}

/* ---- bulk ---- */

static void on_moved(void *arg, int status, uint64_t moved)
{
	(void)moved;
	*(int *)arg = status;
}

static const uint32_t lent_length = 64;
static const struct wire_segments lent = { .match = 0x77000,
					   .access = WIRE_ACCESS_SINK,
					   .n = 1,
					   .length = &lent_length };

/* The caller lends no memory, so a transfer never ends by itself: it ends when
 * the request is canceled, and later ones end at once. */
Test(cancel, bulk_ends)
{
	static char memory[64];
	const struct iovec iov = { memory, sizeof(memory) };
	struct wire_call c = raw_client_call_of(1, "park", 1);
	struct ulrpc_request *r;
	struct serve_rig g;
	int status = 1;

	rig(&g);
	c.timeout = c.remaining = 0;
	c.bulks.n = 1;
	c.bulks.list = &lent;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	r = g.served.park[0];
	cr_assert_eq(ulrpc_bulk_put(r, 0, 0, &iov, 1, on_moved, &status), 0);
	settle(&g);
	cr_assert_eq(status, 1, "it goes on");
	request_cancel(r);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(status, -ECANCELED, "%d", status);
	status = 1;
	cr_assert_eq(ulrpc_bulk_put(r, 0, 0, &iov, 1, on_moved, &status), 0);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(status, -ECANCELED, "%d", status);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(a.replies, 0);
	nothing_left(&g);
	serve_fini(&g);
}

/* A worker waits for a transfer that never ends by itself: it is free at the
 * caller's deadline. */
static void bulk_wait(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	static char memory[64];
	const struct iovec iov = { memory, sizeof(memory) };

	(void)body;
	(void)length;
	*(int *)arg = ulrpc_bulk_put_wait(r, 0, 0, &iov, 1);
	ulrpc_reply(r, NULL, 0);
}

Test(cancel, bulk_ends_at_the_deadline)
{
	int rc = 1;
	const struct ulrpc_method_conf method = { .name = "put",
						  .handler = bulk_wait,
						  .arg = &rc };
	struct ulrpc_service_conf conf = { .name = "test",
					   .methods = &method,
					   .nmethods = 1 };
	struct wire_call c = raw_client_call_of(1, "put", 1);
	struct serve_rig g;

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start(&g, &conf);
	raw_client_init(&a, g.sim, CALLER, SERVER);
	raw_client_connect(&a);
	raw_client_open(&a, "test");
	c.remaining = 2000000;
	c.bulks.n = 1;
	c.bulks.list = &lent;
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 1999 * MSEC);
	cr_assert_eq(rc, 1);
	lnet_sim_run(g.sim, 2 * MSEC);
	cr_assert_eq(rc, -ECANCELED, "%d", rc);
	nothing_left(&g);
	serve_fini(&g);
}

/* The handler has replied, but the reply waits for a transfer of bulk:
 * canceling the request ends the transfer. */
Test(cancel, a_reply_does_not_wait_for_bulk)
{
	static char memory[64];
	const struct iovec iov = { memory, sizeof(memory) };
	struct wire_call c = raw_client_call_of(1, "hold", 1);
	struct serve_rig g;
	int status = 1;

	rig(&g);
	c.bulks.n = 1;
	c.bulks.list = &lent;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(ulrpc_bulk_put(g.served.park[0], 0, 0, &iov, 1, on_moved,
				    &status),
		     0);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(status, 1);
	request_cancel(active(&g, 1));
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(status, -ECANCELED);
	cr_assert_eq(a.replies, 0);
	nothing_left(&g);
	serve_fini(&g);
}

/* To make room for a reply that is longer than its caller accepts, the server
 * drops what is not needed any more: that includes the record of the very call,
 * which has been acknowledged. */
Test(cancel, acknowledged_while_it_is_answered)
{
	static const char *const methods[] = { "hold_again", "hold" };
	static char big[500000];

	for (unsigned int i = 0; i < ARRAY_SIZE(methods); i++) {
		struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 17 };
		struct wire_call c = raw_client_call_of(1, methods[i], 1);
		struct serve_rig g;

		rig_with(&g, &conf, 1);
		c.semantics = ULRPC_IDEMPOTENT;
		raw_client_send(&a, &c, 1, "x", 0);
		settle(&g);
		/* The next call is in another chunk of records, so that the
		 * first chunk can be freed. */
		c = raw_client_call_of(1 + RECORD_CHUNK, "echo", 1);
		raw_client_send(&a, &c, 1, "x", RECORD_CHUNK);
		settle(&g);
		cr_assert_eq(raw_client_reply(&a, c.xid)->status, WIRE_OK);
		ulrpc_reply(unpark(&g.served), big, sizeof(big));
		settle(&g);
		raw_client_call(&a, 2 + RECORD_CHUNK, "echo", "x");
		settle(&g);
		cr_assert_eq(raw_client_reply(&a, 2 + RECORD_CHUNK)->status,
			     WIRE_OK);
		cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 0);
		serve_fini(&g);
	}
}
