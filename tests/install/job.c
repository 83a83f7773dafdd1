/* SPDX-License-Identifier: BSD-3-Clause */
/* Built by ./check with what is installed: packs and unpacks a message, with a
 * symbol of libulrpc. */
#include <stdio.h>
#include <string.h>
#include "job.pb-c.h"

int main(void)
{
	Job__Job job = JOB__JOB__INIT, *copy;
	const ProtobufCEnumValue *word;
	uint8_t bytes[64];
	char name[] = "sweep";
	size_t len;
	int ok;

	job.name = name;
	job.semantics = ULRPC__SEMANTICS__IDEMPOTENT;
	len = job__job__pack(&job, bytes);
	copy = job__job__unpack(NULL, len, bytes);
	if (!copy)
		return 1;
	word = protobuf_c_enum_descriptor_get_value(
		&ulrpc__semantics__descriptor, (int)copy->semantics);
	ok = word && !strcmp(word->name, "IDEMPOTENT") &&
	     !strcmp(copy->name, name);
	printf("%s: %s\n", copy->name, word ? word->name : "?");
	job__job__free_unpacked(copy, NULL);
	return ok ? 0 : 1;
}
