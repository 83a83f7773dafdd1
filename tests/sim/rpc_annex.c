/* SPDX-License-Identifier: BSD-3-Clause */
/* Metadata of the RPC scenario: each third call takes some with it, and what
 * comes back has to be of this call and this execution, however often the call
 * was sent, and wherever its reply was kept meanwhile. Half of those have
 * metadata of their own; the others have one of some sets, a few of them more
 * often than the rest, so that they are sent once, and forgotten. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/sim/rpc_run.h"

#define PADDING 200 /* bytes, of some requests and replies */
#define TYPE	"ulrpc.test.Failure"

/* The pairs of a call, both ways: its number, as text and as bytes. */
struct pairs {
	char text[24];
	size_t text_length;
	uint64_t number;
};

static struct pairs pairs_of(uint64_t id)
{
	struct pairs p = { .number = ~id };

	p.text_length = (size_t)snprintf(p.text, sizeof(p.text), "%lu",
					 (unsigned long)id);
	return p;
}

/* What the call @id takes with it. */
static struct pairs sent_pairs(uint64_t id)
{
	uint64_t n = id / 6;

	if (id % 2)
		return pairs_of(id);
	return pairs_of(UINT64_C(1) << 40 | (n % 2 ? n % 3 : n % 24));
}

void annex_begin(struct test_call *c)
{
	const struct pairs p = sent_pairs(c->id);
	char padding[PADDING];
	int rc;

	if (c->id % 3)
		return;
	memset(padding, 'p', sizeof(padding));
	rc = ulrpc_context_new(&c->context);
	if (!rc)
		rc = ulrpc_context_add(c->context, "call", p.text,
				       p.text_length);
	if (!rc)
		rc = ulrpc_context_add(c->context, "call-bin", &p.number,
				       sizeof(p.number));
	if (!rc && c->id % 2)
		rc = ulrpc_context_add(c->context, "padding", padding,
				       sizeof(padding));
	if (rc)
		abort();
}

static bool is_pair(const struct ulrpc_metadata *m, const void *value,
		    size_t length)
{
	return m->length == length && !memcmp(m->value, value, length) &&
	       !((const char *)m->value)[length];
}

static bool has_pairs(const struct ulrpc_request *request,
		      const struct test_body *b)
{
	const struct pairs p = sent_pairs(b->id);
	struct ulrpc_metadata m;

	if (ulrpc_request_find(request, "call", &m))
		return !b->annexed;
	return b->annexed && is_pair(&m, p.text, p.text_length) &&
	       !ulrpc_request_metadata(request, 1, &m) &&
	       is_pair(&m, &p.number, sizeof(p.number));
}

void annex_serve(const struct member *m, struct ulrpc_request *request,
		 const struct test_body *b)
{
	const struct pairs p = pairs_of(b->id);
	const struct ulrpc_details details = { TYPE, &p.number,
					       sizeof(p.number) };
	int rc;

	if (!has_pairs(request, b))
		lnet_sim_fail(m->run->sim,
			      "node %u: call %lu came with wrong metadata",
			      m->index, (unsigned long)b->id);
	if (!b->annexed)
		return;
	rc = ulrpc_reply_add(request, "reply", p.text, p.text_length);
	if (!rc && b->status)
		rc = ulrpc_reply_details(request, &details);
	if (rc)
		abort();
}

/* Checks the details of a failure that the plan of the call wanted. */
static void check_details(const struct test_call *c, const struct pairs *p)
{
	struct ulrpc_details d;

	if (ulrpc_context_details(c->context, &d))
		return; /* it failed for another reason than the plan */
	if (c->outcome.cause != ULRPC_CAUSE_HANDLER || strcmp(d.type, TYPE) ||
	    d.length != sizeof(p->number) ||
	    memcmp(d.bytes, &p->number, sizeof(p->number)))
		outcome_wrong(c, "has wrong details");
}

void annex_check(const struct test_call *c)
{
	const struct pairs p = pairs_of(c->id);
	struct ulrpc_metadata m;

	if (!c->context)
		return;
	if (ulrpc_context_find(c->context, "reply", &m)) {
		if (c->outcome.cause == ULRPC_CAUSE_OK)
			outcome_wrong(c, "has lost its metadata");
		return;
	}
	if (c->outcome.execution != ULRPC_EXECUTED)
		outcome_wrong(c, "has metadata of nobody");
	if (!is_pair(&m, p.text, p.text_length))
		outcome_wrong(c, "has wrong metadata");
	check_details(c, &p);
}
