/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/util.h"
#include "rpc/bulk/bulk.h"
#include "rpc/stub/message.h"
#include "tests/unit/rpc/stub/box.pb-c.h"

static struct message_type type_of(const ProtobufCMessageDescriptor *d)
{
	struct message_type type;

	cr_assert(message_type_init(&type, d) == 0);
	return type;
}

/* ---- arena ---- */

Test(arena, first_then_heap)
{
	uint8_t first[64];
	struct arena a;
	uint8_t *p, *q;

	arena_init(&a, first, sizeof(first), 10000);
	p = arena_alloc(&a, 5);
	q = arena_alloc(&a, 1);
	cr_assert(p >= first && q >= p + 5 && q < first + 64);
	cr_assert(!((uintptr_t)q % _Alignof(max_align_t)));
	p = arena_alloc(&a, 64);
	cr_assert(p && (p < first || p >= first + 64));
	memset(p, 0xff, 64);
	cr_assert(arena_alloc(&a, 5000));
	arena_fini(&a);
}

Test(arena, limit)
{
	struct arena a;

	arena_init(&a, NULL, 0, 1000);
	cr_assert(!arena_alloc(&a, 1001));
	cr_assert(arena_alloc(&a, 900));
	cr_assert(!arena_alloc(&a, 200));
	cr_assert(!arena_alloc(&a, SIZE_MAX));
	cr_assert(!a.no_memory);
	arena_fini(&a);
}

Test(arena, newest_is_reused)
{
	uint8_t first[64];
	struct arena a;
	void *p;

	arena_init(&a, first, sizeof(first), 0);
	for (int i = 0; i < 100; i++) {
		p = a.allocator.alloc(a.allocator.allocator_data, 40);
		cr_assert(p);
		a.allocator.free(a.allocator.allocator_data, p);
	}
	arena_fini(&a);
}

/* ---- types ---- */

Test(message, types)
{
	struct message_type old = type_of(&test__old__descriptor);
	struct message_type new = type_of(&test__new__descriptor);
	struct message_type leaf = type_of(&test__leaf__descriptor);
	struct message_type tree = type_of(&test__tree__descriptor);

	cr_assert(!old.nests && !old.bulks);
	cr_assert(new.nests && !new.bulks);
	cr_assert(leaf.nests && leaf.bulks);
	cr_assert(tree.nests && tree.bulks);
	cr_assert(leaf.largest == MAX(sizeof(Test__Leaf), sizeof(Ulrpc__Bulk)));
	cr_assert(tree.largest == sizeof(Test__Tree));
}

/* ---- unpacking ---- */

/* Unpacks a message with the library's limit of memory. Returns NULL if that
 * fails. */
static ProtobufCMessage *read_into(struct arena *a,
				   const ProtobufCMessageDescriptor *d,
				   const void *body, size_t length)
{
	struct message_type type = type_of(d);

	arena_init(a, NULL, 0, message_heap_max(&type, length));
	return message_unpack(&type, body, length, &a->allocator);
}

/* The same for a message that its user frees. Returns whether it was one. */
static bool read_by_heap(const ProtobufCMessageDescriptor *d, const void *body,
			 size_t length, bool *raised_p)
{
	ProtobufCMessage *message;
	struct heap heap;

	heap_init(&heap, d, length);
	message = heap_unpack(&heap, body);
	cr_assert(!heap.no_memory);
	*raised_p = heap.raised;
	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
	return message;
}

/* Packs @n nested trees, from the innermost outwards. Returns the length. */
static size_t nest(uint8_t *out, size_t size, unsigned int n)
{
	size_t at = size, length;

	while (--n) {
		length = size - at;
		if (length > 127)
			out[--at] = (uint8_t)(length >> 7);
		out[--at] =
			(uint8_t)((length & 127) | (length > 127 ? 128 : 0));
		out[--at] = 1 << 3 | 2;
	}
	memmove(out, out + at, size - at);
	return size - at;
}

Test(message, depth)
{
	uint8_t body[8000];
	struct arena a;
	size_t length;

	length = nest(body, sizeof(body), MESSAGE_DEPTH_MAX);
	cr_assert(read_into(&a, &test__tree__descriptor, body, length));
	arena_fini(&a);
	length = nest(body, sizeof(body), MESSAGE_DEPTH_MAX + 1);
	cr_assert(!read_into(&a, &test__tree__descriptor, body, length));
	arena_fini(&a);
	/* Unknown fields are not unpacked, however deep they are nested. */
	length = nest(body, sizeof(body), 1500);
	cr_assert(length > 4000);
	body[0] = 15 << 3 | 2;
	cr_assert(read_into(&a, &test__tree__descriptor, body, length));
	arena_fini(&a);
}

/* Messages of as many structs as their length allows stay within the limit. */
Test(message, dense)
{
	struct {
		uint8_t tag, each;
	} cases[] = {
		{ 2 << 3 | 2, 2 },  /* empty children */
		{ 4 << 3 | 2, 2 },  /* bulks */
		{ 9 << 3 | 0, 2 },  /* numbers */
		{ 14 << 3 | 2, 2 }, /* unknown fields */
	};
	static uint8_t body[60000];
	struct arena a;
	bool raised;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t k = 0; k < sizeof(body); k += 2) {
			body[k] = cases[i].tag;
			body[k + 1] = 0;
		}
		cr_assert(read_into(&a, &test__tree__descriptor, body,
				    sizeof(body)),
			  "case %zu", i);
		arena_fini(&a);
		cr_assert(read_by_heap(&test__tree__descriptor, body,
				       sizeof(body), &raised),
			  "case %zu", i);
	}
	/* packed numbers of a byte each */
	memset(body, 1, sizeof(body));
	memcpy(body, (uint8_t[]){ 9 << 3 | 2, 0xdc, 0xd4, 0x03 }, 4);
	cr_assert(read_into(&a, &test__tree__descriptor, body, sizeof(body)));
	arena_fini(&a);
	cr_assert(read_by_heap(&test__tree__descriptor, body, sizeof(body),
			       &raised));
}

/* The field "more" is repeated, each time with one element of a list: to merge
 * n of them takes memory that grows with n squared, and must be limited. */
Test(message, merging_is_bounded)
{
	static const uint8_t one[13] = { 3 << 3 | 2, 11, 0xa2, 0x06, 8, 1 };
	static uint8_t body[4600 * sizeof(one)];
	const Test__New *merged;
	struct arena a;
	bool raised;

	for (size_t k = 0; k < sizeof(body); k += sizeof(one))
		memcpy(body + k, one, sizeof(one));
	cr_assert(!read_into(&a, &test__new__descriptor, body, sizeof(body)));
	cr_assert(!a.no_memory);
	arena_fini(&a);
	cr_assert(!read_by_heap(&test__new__descriptor, body, sizeof(body),
				&raised));
	cr_assert(raised);
	cr_assert(read_by_heap(&test__new__descriptor, body, 100 * sizeof(one),
			       &raised));
	merged = (void *)read_into(&a, &test__new__descriptor, body,
				   100 * sizeof(one));
	cr_assert(merged && merged->more->n_list == 100);
	arena_fini(&a);
}

Test(message, garbage)
{
	static const struct {
		size_t length;
		uint8_t bytes[12];
	} cases[] = {
		{ 1, { 0x08 } }, /* a field without a value */
		/* a field that is longer than the message */
		{ 2, { 0x0a, 0x05 } },
		{ 3, { 0x0a, 0x01, 0x0a } }, /* a nested field that is longer */
		{ 2, { 0x0b, 0x0c } },	     /* a group */
		{ 2, { 0x00, 0x01 } },	     /* a field of number 0 */
		{ 6, { 0x0a, 0xff, 0xff, 0xff, 0xff, 0xff } },
		{ 11,
		  { 0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		    0x01 } },
		{ 11,
		  { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		    0xff } },
	};
	struct arena a;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cr_assert(!read_into(&a, &test__tree__descriptor,
				     cases[i].bytes, cases[i].length),
			  "case %zu", i);
		arena_fini(&a);
	}
}

/* Whichever side has the newer version, the fields that both know arrive. */
Test(message, versions)
{
	Test__New more = TEST__NEW__INIT, new = TEST__NEW__INIT;
	Test__Old old = TEST__OLD__INIT;
	uint64_t list[] = { 1, 2, 3 };
	char text[] = "both know";
	struct packed packed;
	const Test__New *as_new;
	const Test__Old *as_old;
	struct arena a;

	new.number = old.number = 7;
	new.text = old.text = text;
	new.more = &more;
	new.n_list = 3;
	new.list = list;
	new.blob = (ProtobufCBinaryData){ strlen(text), (uint8_t *)text };

	cr_assert(!packed_init(&packed, &new.base));
	as_old = (void *)read_into(&a, &test__old__descriptor, packed.bytes,
				   packed.length);
	cr_assert(((void *)as_old));
	cr_assert(as_old->number == 7 && strcmp(as_old->text, text) == 0);
	cr_assert(as_old->base.n_unknown_fields == 3);
	arena_fini(&a);
	packed_fini(&packed);

	cr_assert(!packed_init(&packed, &old.base));
	as_new = (void *)read_into(&a, &test__new__descriptor, packed.bytes,
				   packed.length);
	cr_assert(((void *)as_new));
	cr_assert(as_new->number == 7 && strcmp(as_new->text, text) == 0);
	cr_assert(!((void *)as_new->more) && !as_new->n_list);
	arena_fini(&a);
	packed_fini(&packed);
}

Test(message, packing_small_and_large)
{
	static const size_t sizes[] = { 0, 1, 2000, 2048, 2049, 900000 };
	Test__Tree tree = TEST__TREE__INIT;
	const Test__Tree *copy;
	struct packed packed;
	struct arena a;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		tree.data.len = sizes[i];
		tree.data.data = calloc(1, sizes[i] + 1);
		memset(tree.data.data, 'x', sizes[i]);
		cr_assert(!packed_init(&packed, &tree.base));
		copy = (void *)read_into(&a, &test__tree__descriptor,
					 packed.bytes, packed.length);
		cr_assert(((void *)copy));
		cr_assert(copy->data.len == sizes[i]);
		cr_assert(!sizes[i] ||
			  !memcmp(copy->data.data, tree.data.data, sizes[i]));
		arena_fini(&a);
		packed_fini(&packed);
		free(tree.data.data);
	}
}

/* ---- bulks ---- */

/* Bulks of which only the addresses are used. */
#define BULK(n) ((struct ulrpc_bulk *)((uintptr_t)0x1000 + (n)*0x100))

static Ulrpc__Bulk field_of(unsigned int n)
{
	Ulrpc__Bulk field;

	bulk_field_init(&field, BULK(n), 100 + n, ULRPC_BULK_SINK);
	return field;
}

Test(bulk_field, says_what_it_is)
{
	Ulrpc__Bulk field = field_of(3);

	cr_assert(field.length == 103);
	cr_assert(field.access == ULRPC_BULK_SINK);
	cr_assert(ulrpc__bulk__get_packed_size(&field) > 0);
}

Test(bulk_field, found_everywhere)
{
	Test__Tree tree = TEST__TREE__INIT, left = TEST__TREE__INIT,
		   child = TEST__TREE__INIT;
	Test__Tree *children[2] = { &child, &child };
	Ulrpc__Bulk fields[6], *many[3];
	Test__Leaf leaf = TEST__LEAF__INIT;
	struct bulk_list list = { .n = 0 };

	for (unsigned int i = 0; i < 6; i++)
		fields[i] = field_of(i);
	tree.left = &left;
	left.pick_case = TEST__TREE__PICK_LEAF;
	left.leaf = &leaf;
	leaf.bulk = &fields[0];
	tree.children = children;
	tree.n_children = 2;
	child.pick_case = TEST__TREE__PICK_PICKED;
	child.picked = &fields[1];
	tree.one = &fields[2];
	many[0] = &fields[3];
	many[1] = &fields[4];
	many[2] = &fields[0]; /* the same bulk again */
	tree.many = many;
	tree.n_many = 3;
	tree.pick_case = TEST__TREE__PICK_NUMBER;
	tree.number = 0xffffffff;

	cr_assert(!message_bulks(&tree.base, &list));
	cr_assert(list.n == 5);
	for (unsigned int i = 0; i < 5; i++) {
		cr_assert(list.bulks[i] == BULK(i));
		cr_assert(fields[i].index == i);
	}
}

Test(bulk_field, behind_others)
{
	struct bulk_list list = { .bulks = { BULK(9), BULK(1) }, .n = 2 };
	Ulrpc__Bulk fields[] = { field_of(0), field_of(1) };
	Ulrpc__Bulk *many[] = { &fields[0], &fields[1] };
	Test__Tree tree = TEST__TREE__INIT;

	tree.many = many;
	tree.n_many = 2;
	cr_assert(!message_bulks(&tree.base, &list));
	cr_assert(list.n == 3 && list.bulks[2] == BULK(0));
	cr_assert(fields[0].index == 2 && fields[1].index == 1);
}

Test(bulk_field, not_ours)
{
	Ulrpc__Bulk plain = ULRPC__BULK__INIT;
	struct bulk_list list = { .n = 0 };
	Test__Leaf leaf = TEST__LEAF__INIT;
	struct packed packed;
	Test__Leaf *copy;
	struct arena a;

	leaf.bulk = &plain;
	cr_assert(message_bulks(&leaf.base, &list) == -EINVAL);
	/* A Bulk field that came from the wire is refused, with and without
	 * unknown fields. */
	cr_assert(!packed_init(&packed, &leaf.base));
	copy = (void *)read_into(&a, &test__leaf__descriptor, packed.bytes,
				 packed.length);
	cr_assert(message_bulks(&copy->base, &list) == -EINVAL);
	arena_fini(&a);
	packed_fini(&packed);
	copy = (void *)read_into(&a, &test__leaf__descriptor,
				 "\x12\x02\x78\x01", 4);
	cr_assert(copy->bulk->base.n_unknown_fields == 1);
	cr_assert(message_bulks(&copy->base, &list) == -EINVAL);
	arena_fini(&a);
	cr_assert(!list.n);
}

Test(bulk_field, too_many)
{
	Ulrpc__Bulk fields[ULRPC_BULKS_MAX + 1];
	Ulrpc__Bulk *many[ULRPC_BULKS_MAX + 1];
	Test__Tree tree = TEST__TREE__INIT;
	struct bulk_list list = { .n = 0 };

	for (unsigned int i = 0; i <= ULRPC_BULKS_MAX; i++) {
		fields[i] = field_of(i);
		many[i] = &fields[i];
	}
	tree.many = many;
	tree.n_many = ULRPC_BULKS_MAX;
	cr_assert(!message_bulks(&tree.base, &list));
	list.n = 0;
	tree.n_many++;
	cr_assert(message_bulks(&tree.base, &list) == -E2BIG);
}
