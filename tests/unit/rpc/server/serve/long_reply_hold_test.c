/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies longer than their callers' buffers, which the server holds; this
 * client never fetches one. */
#include "tests/unit/rpc/server/request_rig.h"

#define LONG  300 /* bytes of requests and replies */
#define ROOM  10
#define CALLS 200

static struct serve_rig g;

static void call_long(uint64_t xid, uint32_t slot, uint32_t attempt,
		      const char *method, uint64_t acked)
{
	static const char body[LONG];
	struct wire_call c = raw_client_call_of(xid, method, LONG);

	c.slot = slot;
	c.attempt = attempt;
	c.reply_max = ROOM;
	if (attempt)
		c.flags = WIRE_CALL_RESENT;
	if (method[0] == 'a')
		c.semantics = ULRPC_IDEMPOTENT;
	raw_client_send(&a, &c, 1, body, acked);
	settle(&g);
}

/* Returns how many bodies are held; checks that what they hold fits. */
static unsigned int bodies(void)
{
	struct list *l;
	unsigned int n = 0;

	for (l = cpt0(&g)->long_replies.next; l != &cpt0(&g)->long_replies;
	     l = l->next)
		n++;
	cr_assert_eq(n ? 1 : 0, serve_holds(cpt0(&g)) ? 1 : 0);
	cr_assert_leq(serve_holds(cpt0(&g)), n * 2048ull);
	return n;
}

/* Each call in a slot releases the body held for the one before. */
Test(long_reply_hold, one_for_each_slot)
{
	rig(&g);
	for (uint64_t xid = 1; xid <= CALLS; xid++) {
		call_long(xid, (uint32_t)(xid % 4), 0,
			  xid % 2 ? "echo" : "again", 0);
		cr_assert_eq(a.reply[a.replies - 1].status, WIRE_HELD);
		cr_assert_eq(bodies(), MIN(xid, 4));
	}
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_replies_held), CALLS);
	/* The client acknowledges, and so releases, the two oldest. */
	call_long(CALLS + 1, 5, 0, "echo", CALLS - 2);
	cr_assert_eq(bodies(), 3);
	serve_fini(&g);
}

Test(long_reply_hold, canceled)
{
	rig(&g);
	for (uint64_t xid = 1; xid <= CALLS; xid++) {
		call_long(xid, (uint32_t)xid, 0, xid % 2 ? "echo" : "again", 0);
		cr_assert_eq(bodies(), 1);
		raw_client_cancel(&a, &xid, 1);
		cr_assert_eq(bodies(), 0);
		cr_assert_eq(atomic_load(&cpt0(&g)->kept_bytes), 0);
		cr_assert_eq(cpt0(&g)->answers, 0);
	}
	serve_fini(&g);
}

/* A later attempt is told of the body that is held already. Even an idempotent
 * method does not run again while its body is held. */
Test(long_reply_hold, asked_again)
{
	static const char *const methods[] = { "echo", "again" };

	for (unsigned int i = 0; i < 2; i++) {
		rig(&g);
		call_long(1, 1, 0, methods[i], 0);
		call_long(1, 1, 1, methods[i], 0);
		cr_assert_eq(a.replies, 2);
		cr_assert_eq(a.reply[1].status, WIRE_HELD);
		cr_assert_eq(a.reply[1].held, a.reply[0].held);
		cr_assert_eq(bodies(), 1);
		cr_assert_eq(g.served.runs, 1);
		/* After the caller's deadline the body is released; the client
		 * asks all the same. */
		lnet_sim_run(g.sim, 11000 * MSEC);
		cr_assert_eq(bodies(), 0);
		cr_assert_eq(atomic_load(&cpt0(&g)->kept_bytes), 0);
		call_long(1, 1, 2, methods[i], 0);
		cr_assert_eq(a.reply[2].status, i ? WIRE_HELD : WIRE_DOUBTFUL);
		cr_assert_eq(g.served.runs, 1 + i);
		serve_fini(&g);
	}
}

/* Without a deadline a body is held as long as the connection lasts. */
Test(long_reply_hold, endless)
{
	struct wire_call c = raw_client_call_of(1, "echo", LONG);
	static const char body[LONG];

	rig(&g);
	c.reply_max = ROOM;
	c.remaining = 0;
	raw_client_send(&a, &c, 1, body, 0);
	settle(&g);
	for (unsigned int i = 0; i < 1000; i++) {
		lnet_sim_run(g.sim, 1000 * MSEC);
		cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
		cr_assert_eq(bodies(), 1);
	}
	c.attempt = 1;
	c.flags = WIRE_CALL_QUERY;
	c.length = 0;
	raw_client_send(&a, &c, 1, "", 0);
	settle(&g);
	cr_assert_eq(a.reply[1].held, a.reply[0].held);
	/* ... which is until the server forgets the silent client. */
	lnet_sim_run(g.sim, 1000000 * MSEC);
	cr_assert_eq(bodies(), 0);
	serve_fini(&g);
}

/* Bodies are released when the connection ends, the service stops, or RPC is
 * closed. */
Test(long_reply_hold, ends)
{
	for (unsigned int i = 0; i < 3; i++) {
		rig(&g);
		for (uint64_t xid = 1; xid <= 5; xid++)
			call_long(xid, (uint32_t)xid, 0, "echo", 0);
		cr_assert_eq(bodies(), 5);
		if (i == 0) {
			raw_client_disconnect(&a);
			settle(&g);
			cr_assert_eq(bodies(), 0);
		} else if (i == 1) {
			cr_assert_eq(ulrpc_service_stop(g.service, 0),
				     -ETIMEDOUT);
			g.service = NULL;
		}
		serve_fini(&g);
	}
}
