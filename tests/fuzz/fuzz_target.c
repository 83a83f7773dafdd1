/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of targets. */
#include <stdlib.h>
#include <string.h>

#include "names/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was parsed once can be parsed again. */
static void take_list(const char *next)
{
	struct name_text name;

	while (next)
		BUG_ON(target_next(&next, &name, NULL) || !*name.what);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ulnet_text_error err;
	struct ulnet_target target;
	struct name_text name;
	char *text = malloc(size + 1);

	BUG_ON(!text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (target_parse(text, &target, &name, &err)) {
		BUG_ON(err.offset > strlen(text) || !*err.what);
	} else if (target.is_name) {
		BUG_ON(target.nnids || !*name.what);
		BUG_ON(strlen(name.what) > strlen(text));
		if (!strcmp(name.scheme, "list"))
			take_list(name.what);
	} else {
		BUG_ON(!target.nnids || target.nnids > LNET_TARGET_NIDS);
	}
	free(text);
	return 0;
}
