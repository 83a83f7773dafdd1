/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bodies of hostile peers, as protobuf messages. What can be unpacked is
 * packed; unless that is beyond protobuf-c itself, it unpacks again, within the
 * memory that message_heap_max() says, and packs to the same.
 */
#include "rpc/stub/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "tests/unit/rpc/stub/box.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ProtobufCMessage *read_into(struct arena *a, const void *body,
				   size_t length)
{
	struct message_type type;

	BUG_ON(message_type_init(&type, &test__tree__descriptor));
	arena_init(a, NULL, 0, message_heap_max(&type, length));
	return message_unpack(&type, body, length, &a->allocator);
}

static void read_again(const struct packed *first)
{
	ProtobufCMessage *message, *unbound;
	struct packed second;
	struct arena a;

	message = read_into(&a, first->bytes, first->length);
	/* What was packed cannot always be unpacked: protobuf-c may have kept a
	 * field whose number no field can have. */
	unbound = protobuf_c_message_unpack(&test__tree__descriptor, NULL,
					    first->length, first->bytes);
	BUG_ON(!message != !unbound);
	if (message) {
		BUG_ON(packed_init(&second, message));
		BUG_ON(second.length != first->length);
		BUG_ON(memcmp(second.bytes, first->bytes, first->length) != 0);
		packed_fini(&second);
		protobuf_c_message_free_unpacked(unbound, NULL);
	}
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bulk_list list = { .n = 0 };
	ProtobufCMessage *message;
	struct packed packed;
	struct arena a;
	int rc;

	message = read_into(&a, data, size);
	if (message) {
		BUG_ON(packed_init(&packed, message));
		read_again(&packed);
		packed_fini(&packed);
		/* nothing that was unpacked comes from ulrpc_bulk_field() */
		rc = message_bulks(message, &list);
		BUG_ON((rc && rc != -EINVAL) || list.n);
	}
	arena_fini(&a);
	return 0;
}
