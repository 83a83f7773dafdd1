/* SPDX-License-Identifier: BSD-3-Clause */
/* What was calculated of a node, as a list of values with names. */
#ifndef TOOLS_O2IBCALC_VALUE_H
#define TOOLS_O2IBCALC_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ulnet/o2ib.h>

enum value_group {
	VALUE_LIMITS, /* of a node, before it is connected */
	VALUE_CONN,   /* of its side of a connection */
	VALUE_PEER,   /* of all connections to the peer */
	VALUE_NODE,   /* of the node */
	VALUE_GROUPS
};

struct value {
	const char *name;
	enum value_group group;
	const char *words;
	bool what_if; /* is shown there */
	int place;
	size_t offset, size;
};

#define VALUE_TEXT_SIZE 32

const struct value *value_at(unsigned int number); /* NULL: no more */
int64_t value_of(const struct value *v, const struct ulnet_o2ib_result *r,
		 enum ulnet_o2ib_side side);
bool value_is_bool(const struct value *v);

/* The value of a note: numbers stand for some. Returns @buf. */
char *note_text(const struct ulnet_o2ib_note *note, int64_t value,
		char buf[VALUE_TEXT_SIZE]);
const char *side_name(enum ulnet_o2ib_side side); /* A, B, "A and B" */

#endif
