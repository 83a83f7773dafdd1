/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of strangers. */
#include "rpc.h"

/* Tells how many bytes the bodies of @head's calls have in all, and that each of
 * them is the same as read with its body, if @whole is not NULL. */
static uint64_t calls_agree(struct wire_cursor *head, uint32_t ncalls,
			    struct wire_cursor *whole)
{
	struct wire_call a, b;
	uint64_t bodies = 0;
	uint32_t n = 0;

	for (; wire_requests_next_head(head, &a); n++) {
		BUG_ON(a.body);
		bodies += a.length;
		if (!whole)
			continue;
		BUG_ON(!wire_requests_next(whole, &b));
		b.body = NULL;
		/* No padding; of the union, what is decoded is all of it. */
		/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		BUG_ON(memcmp(&a, &b, sizeof(a)) != 0);
	}
	BUG_ON(n != ncalls || n > WIRE_CALLS_MAX);
	return bodies;
}

/* Portals without a service read heads only, with as much of the bodies as there
 * is: that is possible if (and with all the bodies, only if) the message can be
 * read as a whole, and they see the same calls. */
static void heads_agree(const uint8_t *data, size_t size)
{
	size_t length = rpc_head(&data, &size);
	uint64_t hdr_data = wire_hdr_data(WIRE_REQUESTS, data, length), bodies;
	uint8_t *copy = malloc(length ? length : 1);
	struct wire_requests m, part;
	struct wire_cursor whole, head;
	int rc = wire_requests_open(&whole, hdr_data, data, size, &m);

	BUG_ON(!copy);
	memcpy(copy, data, length);
	if (!wire_requests_open_head(&head, hdr_data, data, size, &part)) {
		BUG_ON(!rc && memcmp(&m, &part, sizeof(m)) != 0);
		bodies = calls_agree(&head, part.ncalls, rc ? NULL : &whole);
		BUG_ON(bodies < size - length);
		BUG_ON((bodies == size - length) != !rc);
		/* Without any of the bodies. */
		BUG_ON(wire_requests_open_head(&head, hdr_data, copy, length,
					       &part));
		BUG_ON(calls_agree(&head, part.ncalls, NULL) != bodies);
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
