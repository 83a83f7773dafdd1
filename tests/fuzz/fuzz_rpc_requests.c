/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of hostile peers. */
#include "rpc.h"

/* What was read of a message, or of its head. */
struct seen {
	struct wire_requests m;
	struct wire_call calls[WIRE_CALLS_MAX];
};

static uint64_t bodies_of_heads(const struct seen *head)
{
	uint64_t bodies = 0;

	BUG_ON(head->m.ncalls > WIRE_CALLS_MAX);
	for (uint32_t i = 0; i < head->m.ncalls; i++) {
		BUG_ON(head->calls[i].body);
		bodies += head->calls[i].length;
	}
	return bodies;
}

static void calls_agree(const struct seen *head, const struct seen *whole)
{
	const struct wire_requests *a = &head->m, *b = &whole->m;

	BUG_ON(a->connection != b->connection || a->client != b->client ||
	       a->acked != b->acked || a->epoch != b->epoch ||
	       a->ncalls != b->ncalls || a->checked != b->checked ||
	       a->flavour != b->flavour);
	for (uint32_t i = 0; i < head->m.ncalls; i++) {
		struct wire_call call = whole->calls[i];

		call.body = NULL;
		/* the structure has no padding, and of its union only decoded
		 * members are set */
		/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		BUG_ON(memcmp(&head->calls[i], &call, sizeof(call)) != 0);
	}
}

static int see_head(struct seen *seen, uint64_t hdr_data, const uint8_t *data,
		    size_t size)
{
	return wire_requests_decode_heads(&seen->m, seen->calls, hdr_data, data,
					  size);
}

/* Whatever was decoded before, the result is the same. */
static void before_is_no_matter(const struct seen *seen, int rc,
				uint64_t hdr_data, const uint8_t *data,
				size_t size)
{
	static struct wire_common common;
	static struct seen again;

	for (unsigned int i = 0; i < 2; i++) {
		BUG_ON(wire_requests_decode(&again.m, again.calls, &common,
					    hdr_data, data, size) != rc);
		if (rc)
			continue;
		BUG_ON(again.m.ncalls != seen->m.ncalls);
		/* as in calls_agree() */
		/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		BUG_ON(memcmp(again.calls, seen->calls,
			      again.m.ncalls * sizeof(again.calls[0])) != 0);
	}
}

/* Portals without a service read only the heads of messages, which may be cut
 * off within their bodies. If the whole message can be read, so can its head,
 * with the same calls. If the head can be read, and all bodies are there, so
 * can the whole message, unless its bodies have another checksum. */
static void heads_agree(const uint8_t *data, size_t size)
{
	static struct seen whole, head;
	size_t length = rpc_head(&data, &size);
	uint64_t hdr_data = wire_hdr_data(WIRE_REQUESTS, data, length), bodies;
	uint8_t *copy = malloc(length ? length : 1);
	int rc = wire_requests_decode(&whole.m, whole.calls,
				      &(struct wire_common){ 0 }, hdr_data,
				      data, size);

	BUG_ON(!copy);
	memcpy(copy, data, length);
	before_is_no_matter(&whole, rc, hdr_data, data, size);
	if (!see_head(&head, hdr_data, data, size)) {
		if (!rc)
			calls_agree(&head, &whole);
		bodies = bodies_of_heads(&head);
		BUG_ON(bodies < size - length);
		BUG_ON((bodies == size - length) !=
		       (!rc || (rc == -EBADMSG && head.m.checked)));
		/* without any body */
		BUG_ON(see_head(&head, hdr_data, copy, length));
		BUG_ON(bodies_of_heads(&head) != bodies);
	} else {
		BUG_ON(!rc);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 2)
		heads_agree(data, size);
	return rpc_try(WIRE_REQUESTS, data, size);
}
