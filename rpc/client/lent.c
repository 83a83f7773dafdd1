/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/lent.h"

#include <errno.h>
#include <string.h>

#include "rpc/bulk/bulk.h"
#include "rpc/client/client.h"
#include "rpc/wire/wire.h"

uint32_t lent_from(const struct wire_opened *m)
{
	return m->request_limit > m->request_max
		       ? MIN(m->request_max, ULRPC_BODY_MAX)
		       : ULRPC_BODY_MAX;
}

struct lent *lent_new(uint32_t length)
{
	struct lent *lent = malloc(sizeof(*lent) + length);

	if (!lent)
		return NULL;
	atomic_init(&lent->refs, 1);
	lent->length = length;
	lent->trace = 0;
	return lent;
}

void lent_put(struct lent *lent)
{
	if (atomic_fetch_sub(&lent->refs, 1) == 1)
		free(lent);
}

uint8_t *lent_trace(struct ulrpc_call *call)
{
	return (uint8_t *)call + call->lent->trace;
}

static void on_released(void *lent)
{
	lent_put(lent);
}

/* Makes the bulk of @length bytes at @at of the body, and claims it. */
static int part_claim(struct ulrpc_call *call, uint64_t at, uint64_t length,
		      struct ulrpc_bulk **bulk_p)
{
	struct lent *lent = call->lent;
	struct ulrpc *rpc = call->client->rpc;
	const struct iovec iov = { lent->body + at, length };
	const struct ulrpc_bulk_conf conf = { .iov = &iov,
					      .niov = 1,
					      .access = ULRPC_BULK_SOURCE,
					      .flags = ULRPC_BULK_CHECKSUM };
	int rc = ulrpc_bulk_new(rpc, &conf, bulk_p);

	if (rc)
		return rc;
	bulk_is_body(*bulk_p);
	BUG_ON(bulk_prepare(*bulk_p, rpc));
	/* The end of the claim frees the bulk. */
	atomic_fetch_add(&lent->refs, 1);
	ulrpc_bulk_close(*bulk_p, on_released, lent);
	return 0;
}

int lent_claim(struct ulrpc_call *call)
{
	unsigned int before = call->nbulks;
	uint64_t left = call->lent->length;
	int rc = 0;

	for (uint64_t at = 0; left && !rc;) {
		uint64_t part = MIN(left, call->client->rpc->lent_part);

		rc = part_claim(call, at, part, &call->bulks[call->nbulks]);
		if (!rc)
			call->nbulks++;
		at += part;
		left -= part;
	}
	if (rc) {
		while (call->nbulks > before)
			(void)bulk_release(call->bulks[--call->nbulks]);
		return rc;
	}
	call->length = 0;
	call->flags |= CALL_LENT | CALL_BULKS;
	return 0;
}

/* The body makes room for the pointer to its bulk, so its first bytes are
 * overwritten. A message has had room for it, so there is one bulk. */
int lent_instead(struct ulrpc_call *call)
{
	const struct ulrpc_client *c = call->client;
	struct lent *lent;
	int rc;

	if (call->length > c->request_limit ||
	    call->nbulks == ULRPC_BULKS_MAX ||
	    call->length < sizeof(call->bulks[0]))
		return -EMSGSIZE;
	if (!call->retry) {
		call->retry = malloc(sizeof(*call->retry));
		if (!call->retry)
			return -ENOMEM;
		*call->retry = c->retry;
	}
	lent = lent_new(call->length);
	if (!lent)
		return -ENOMEM;
	memcpy(lent->body, call_body(call), call->length);
	lent->trace = (size_t)(call_trace(call) - (uint8_t *)call);
	call->lent = lent;
	rc = lent_claim(call);
	if (rc) {
		memcpy(call_body(call), lent->body, sizeof(call->bulks[0]));
		lent_put(lent);
		return rc;
	}
	return -EINPROGRESS;
}
