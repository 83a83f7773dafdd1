/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that a handler makes for its request. The service calls itself: "relay"
 * calls "relay" again as often as the request says, and at last "hold". */
#include "tests/unit/rpc/serve_rig.h"
#include "ulnet/context.h"

#define DEPTH 4
#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

/* A request that was relayed, and the call that was made for it. */
struct relayed {
	struct ulrpc_request *request; /* NULL: it was answered */
	struct ulrpc_context *context;
	struct called called;
	int rc; /* of the call */
};

static struct serve_rig g;
static struct ulrpc_client *self;
static struct relayed relayed[DEPTH];
static unsigned int nrelayed;
static bool answer_first; /* before the call has ended */

static void on_relayed(void *arg, const struct ulrpc_outcome *o,
		       const void *reply, size_t length)
{
	struct relayed *x = arg;

	on_called(&x->called, o, reply, length);
	ulrpc_context_free(x->context);
	x->context = NULL;
	if (x->request)
		ulrpc_fail(x->request, o->status ? o->status : -EIO);
	x->request = NULL;
}

static void relay(void *arg, struct ulrpc_request *r, const void *body,
		  size_t length)
{
	struct relayed *x = &relayed[nrelayed++];
	struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER };
	uint8_t left;

	(void)arg;
	cr_assert_leq(nrelayed, DEPTH);
	cr_assert_eq(length, 1);
	memcpy(&left, body, 1);
	*x = (struct relayed){ .request = r };
	cr_assert_eq(ulrpc_context_new(&x->context), 0);
	cr_assert_eq(ulrpc_context_pass(x->context, " tenant  x-*"), 0);
	cr_assert_eq(ulrpc_context_under(x->context, r), 0);
	conf.context = x->context;
	left--;
	x->rc = ulrpc_call(self, ulrpc_method(left ? "relay" : "hold"), &left,
			   1, &conf, on_relayed, x, NULL);
	cr_assert_eq(x->rc, 0);
	if (!answer_first)
		return;
	x->request = NULL;
	ulrpc_reply(r, NULL, 0);
}

static void begin(unsigned int cpts, enum ulrpc_run run)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "relay", .handler = relay, .run = run },
		{ .name = "hold",
		  .handler = hold,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
	};

	serve_init(&g, 1, cpts);
	serve_open(&g, NULL);
	serve_methods(&g, methods, 2);
	serve_client(&g);
	self = serve_client_of(g.rpc[SERVER], "test");
	nrelayed = 0;
	answer_first = false;
}

static struct called root;

static struct ulrpc_context *with; /* of the root; NULL: none */

static struct ulrpc_call *call_root(uint8_t depth, uint64_t deadline)
{
	const struct ulrpc_call_conf conf = { .deadline = deadline,
					      .trace = TRACE,
					      .context = with };
	struct ulrpc_call *call;

	root = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("relay"), &depth, 1,
				&conf, on_called, &root, &call),
		     0);
	/* With workers, the window of the service's own client opens slowly. */
	for (int i = 0; i < 50 && !g.served.parked; i++)
		lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(nrelayed, depth, "%u of %u", nrelayed, depth);
	cr_assert_eq(g.served.parked, 1);
	return call;
}

/* All calls but the root have been canceled, and so has the request at the
 * bottom. */
static void all_canceled(unsigned int depth)
{
	cr_expect(ulrpc_request_canceled(g.served.park[0]));
	for (unsigned int i = 0; i < depth; i++) {
		cr_expect_eq(relayed[i].called.ended, 1);
		cr_expect_eq(relayed[i].called.outcome.cause,
			     ULRPC_CAUSE_CANCELED, "%u: %s", i,
			     ulrpc_cause_name(relayed[i].called.outcome.cause));
	}
	serve_release(&g.served);
}

static void end(struct ulrpc_call *call)
{
	ulrpc_call_put(call);
	lnet_sim_run(g.sim, 10 * SEC);
	ulrpc_client_close(self);
	serve_fini(&g);
}

/* Requirement J4: a call whose caller has given up stops the whole tree. */
Test(scope_pair, canceled_down_the_tree)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct ulrpc_call *call;

		begin(1 + i / 2, i % 2 ? ULRPC_RUN_WORKER : ULRPC_RUN_INLINE);
		call = call_root(DEPTH, 3600 * (uint64_t)1000000);
		ulrpc_cancel(call);
		lnet_sim_run(g.sim, SEC);
		cr_expect_eq(root.outcome.cause, ULRPC_CAUSE_CANCELED);
		all_canceled(DEPTH);
		end(call);
	}
}

/* The deadline is the root's, though the calls have none of their own; and so
 * is the trace. */
Test(scope_pair, deadline_and_trace_are_inherited)
{
	struct ulrpc_request_info info;
	struct ulrpc_call *call;

	begin(1, ULRPC_RUN_INLINE);
	call = call_root(3, 1000000);
	ulrpc_request_info(g.served.park[0], &info);
	cr_expect_leq(info.time_left, 900000);
	cr_expect_gt(info.time_left, 800000);
	cr_expect_str_eq(info.trace, TRACE);
	lnet_sim_run(g.sim, 2 * SEC);
	cr_expect_eq(root.outcome.cause, ULRPC_CAUSE_DEADLINE);
	for (unsigned int i = 0; i < 3; i++)
		cr_expect_eq(relayed[i].called.ended, 1);
	cr_expect(ulrpc_request_canceled(g.served.park[0]));
	serve_release(&g.served);
	end(call);
}

/* The request is replied to before the call that was made for it has ended: the
 * call goes on, and nobody cancels it. */
Test(scope_pair, parent_ends_first)
{
	struct ulrpc_call *call;

	begin(1, ULRPC_RUN_INLINE);
	answer_first = true;
	call = call_root(1, 3600 * (uint64_t)1000000);
	cr_expect_eq(root.outcome.cause, ULRPC_CAUSE_OK);
	ulrpc_cancel(call);
	lnet_sim_run(g.sim, SEC);
	cr_expect_not(ulrpc_request_canceled(g.served.park[0]));
	cr_expect_eq(relayed[0].called.ended, 0);
	serve_release(&g.served);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(relayed[0].called.outcome.cause, ULRPC_CAUSE_OK);
	end(call);
}

static void on_released(void *arg)
{
	*(bool *)arg = true;
}

/* A call for a request that is canceled already is not made, and what it would
 * have lent is the caller's. */
Test(scope_pair, too_late)
{
	char memory[16];
	struct iovec iov = { memory, sizeof(memory) };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE };
	struct ulrpc_bulk *bulk;
	struct ulrpc_call_conf conf = { .deadline = 1000000,
					.bulks = &bulk,
					.nbulks = 1 };
	bool released = false;
	struct ulrpc_context *x;
	struct ulrpc_call *call;
	struct called c = { 0 };

	begin(1, ULRPC_RUN_INLINE);
	call = call_root(1, 3600 * (uint64_t)1000000);
	cr_assert_eq(ulrpc_context_new(&x), 0);
	cr_assert_eq(ulrpc_context_under(x, g.served.park[0]), 0);
	cr_assert_eq(ulrpc_bulk_new(g.rpc[SERVER], &lend, &bulk), 0);
	conf.context = x;
	ulrpc_cancel(call);
	lnet_sim_run(g.sim, SEC);
	cr_assert(ulrpc_request_canceled(g.served.park[0]));
	cr_expect_eq(ulrpc_call(self, ulrpc_method("hold"), "", 1, &conf,
				on_called, &c, NULL),
		     -ECANCELED);
	/* also if the context comes under it only then */
	cr_assert_eq(ulrpc_context_under(x, g.served.park[0]), 0);
	cr_expect_eq(ulrpc_call(self, ulrpc_method("hold"), "", 1, &conf,
				on_called, &c, NULL),
		     -ECANCELED);
	ulrpc_bulk_close(bulk, on_released, &released);
	cr_expect(released);
	ulrpc_context_free(x);
	serve_release(&g.served);
	end(call);
}

static void add(struct ulrpc_context *x, const char *name, const char *value)
{
	cr_assert_eq(ulrpc_context_add(x, name, value, strlen(value)), 0);
}

/* The pairs of @x are these. */
static void sends(const struct ulrpc_context *x, const char *pairs)
{
	char text[256] = "";
	struct ulrpc_metadata m;

	for (unsigned int i = 0; !ulrpc_context_sent(x, i, &m); i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s=%s ", m.name, (const char *)m.value);
	cr_expect_str_eq(text, pairs);
}

/* Metadata with the chosen names go down the tree, and no others. */
Test(scope_pair, chosen_metadata_go_on)
{
	struct ulrpc_request *r;
	struct ulrpc_metadata m;
	struct ulrpc_context *x;
	struct ulrpc_call *call;

	begin(1, ULRPC_RUN_INLINE);
	cr_assert_eq(ulrpc_context_new(&with), 0);
	add(with, "tenant", "blue");
	add(with, "secret", "s");
	add(with, "x-a", "1");
	add(with, "tenants", "no");
	add(with, "x-a", "2");
	add(with, "x-b", "3");
	call = call_root(3, 1000000);
	r = g.served.park[0];
	cr_assert_eq(ulrpc_request_metadata(r, 2, &m), 0);
	cr_expect_str_eq(m.value, "2");
	cr_expect_eq(ulrpc_request_metadata(r, 4, &m), -ENOENT);
	cr_assert_eq(ulrpc_request_find(r, "tenant", &m), 0);
	cr_expect_str_eq(m.value, "blue");
	/* What the handler adds itself takes the place of what has come. */
	cr_assert_eq(ulrpc_context_new(&x), 0);
	add(x, "tenant", "red");
	cr_assert_eq(ulrpc_context_pass(x, "*"), 0);
	cr_assert_eq(ulrpc_context_under(x, r), 0);
	sends(x, "tenant=red x-a=1 x-a=2 x-b=3 ");
	add(x, "late", "l");
	sends(x, "tenant=red late=l x-a=1 x-a=2 x-b=3 ");
	/* What was taken over before is taken over instead, or not. */
	cr_assert_eq(ulrpc_context_under(x, r), 0);
	sends(x, "tenant=red late=l x-a=1 x-a=2 x-b=3 ");
	/* also what is added later */
	add(x, "x-a", "3");
	sends(x, "tenant=red late=l x-a=3 x-b=3 ");
	add(x, "x-a", "4");
	cr_expect_eq(ulrpc_context_add(x, "Bad", "", 0), -EINVAL);
	sends(x, "tenant=red late=l x-a=3 x-a=4 x-b=3 ");
	cr_assert_eq(ulrpc_context_pass(x, NULL), 0);
	cr_assert_eq(ulrpc_context_under(x, r), 0);
	sends(x, "tenant=red late=l x-a=3 x-a=4 ");
	/* What cannot be */
	cr_expect_eq(ulrpc_context_pass(x, "a B"), -EINVAL);
	cr_expect_eq(ulrpc_context_pass(x, "a*b"), -EINVAL);
	for (int i = 4; i < ULRPC_METADATA_PAIRS; i++)
		add(x, "n", "v");
	cr_assert_eq(ulrpc_context_pass(x, "*"), 0);
	cr_expect_eq(ulrpc_context_under(x, r), -E2BIG);
	cr_expect_eq(ulrpc_context_sent(x, ULRPC_METADATA_PAIRS - 1, &m), 0);
	ulrpc_context_free(x);
	serve_release(&g.served);
	lnet_sim_run(g.sim, SEC);
	ulrpc_context_free(with);
	with = NULL;
	end(call);
}
