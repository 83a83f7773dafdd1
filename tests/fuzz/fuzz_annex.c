/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies with an annex, of hostile peers: metadata and details. What is read
 * can be made and read again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/context/annex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_within(struct wire_view all, const void *p, size_t length)
{
	const uint8_t *bytes = p;

	return bytes >= all.p && bytes <= all.end &&
	       length <= (size_t)(all.end - bytes);
}

/* Both end with a 0 byte in the annex, and can be given to users as they are.
 */
static void check_pair(struct wire_view annex, const struct ulrpc_metadata *m)
{
	size_t name = strnlen(m->name, ULRPC_METADATA_NAME);
	const char *value = m->value;

	BUG_ON(!name || name == ULRPC_METADATA_NAME);
	BUG_ON(!is_within(annex, m->name, name + 1) ||
	       !is_within(annex, m->value, m->length + 1));
	BUG_ON(value[m->length]);
	if (name <= 4 || strcmp(m->name + name - 4, "-bin"))
		BUG_ON(strlen(value) != m->length);
}

/* Adds what @annex has to @to. Returns false if that is more than may be sent:
 * texts of errors take room, too, in what comes. */
static bool read_all(struct wire_view annex, struct annex *to)
{
	struct ulrpc_metadata m, first;
	struct ulrpc_details d;
	unsigned int n = 0;
	int rc = 0;

	for (; !rc && !annex_pair(annex, n, &m); n++) {
		check_pair(annex, &m);
		BUG_ON(annex_find(annex, m.name, &first) ||
		       strcmp(first.name, m.name));
		rc = annex_add(to, m.name, m.value, m.length);
		BUG_ON(rc && rc != -EMSGSIZE);
	}
	BUG_ON(n > ULRPC_METADATA_PAIRS);
	if (!rc && !annex_details(annex, &d)) {
		BUG_ON(!is_within(annex, d.type, strlen(d.type) + 1));
		BUG_ON(d.length && !is_within(annex, d.bytes, d.length));
		rc = annex_add_details(to, &d);
		BUG_ON(rc && rc != -EMSGSIZE);
	}
	return !rc;
}

/* Makes a body of @a and @failure, and reads it. */
static void there_and_back(const struct annex *a,
			   const struct annex_failure *failure,
			   struct wire_view rest)
{
	struct wire_view body, annex;
	struct annex_failure again;
	struct annex b;
	size_t length;
	uint8_t *bytes = annex_body_new(a, failure, rest.p, view_length(rest),
					&length);

	BUG_ON(!bytes);
	body = (struct wire_view){ bytes, bytes + length };
	BUG_ON(!annex_split(&body, &annex));
	BUG_ON(view_length(body) != view_length(rest) ||
	       memcmp(body.p, rest.p, view_length(rest)));
	again = annex_failure(annex);
	BUG_ON(again.error != failure->error ||
	       (again.error &&
		view_length(again.text) != view_length(failure->text)));
	annex_init(&b);
	BUG_ON(!read_all(annex, &b));
	BUG_ON(a->length != b.length || a->pairs != b.pairs ||
	       (a->length && memcmp(a->bytes, b.bytes, a->length)));
	annex_fini(&b);
	free(bytes);
}

/* What is named is the end of an annex that is read as a whole, too. */
static void read_named(struct wire_view body)
{
	struct annex_named named;

	if (!annex_named_read(body, &named) || !named.number)
		return;
	BUG_ON(!is_within(body, named.pairs.p, view_length(named.pairs)));
	BUG_ON(named.refers && view_length(named.pairs));
	BUG_ON(named.refers && annex_split(&body, &named.pairs));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct wire_view body = { copy, copy + size }, annex;
	struct annex_failure failure;
	struct annex a;

	BUG_ON(!copy);
	if (size)
		memcpy(copy, data, size);
	read_named(body);
	if (annex_split(&body, &annex)) {
		BUG_ON(!is_within((struct wire_view){ copy, copy + size },
				  annex.p, view_length(annex)));
		BUG_ON(body.p != annex.end || body.end != copy + size);
		failure = annex_failure(annex);
		annex_init(&a);
		if (read_all(annex, &a) &&
		    view_length(failure.text) < ULRPC_TEXT_MAX)
			there_and_back(&a, &failure, body);
		annex_fini(&a);
	}
	free(copy);
	return 0;
}
