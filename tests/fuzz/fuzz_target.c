/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of targets, and files that list servers. */
#include <stdlib.h>
#include <string.h>

#include "names/file.h"
#include "names/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was parsed once can be parsed again. */
static void take_list(const char *next)
{
	struct name_text name;

	while (next)
		BUG_ON(target_next(&next, &name, NULL) || !*name.what);
}

/* The same bytes as a file that lists servers. */
static void parse_file(const uint8_t *data, size_t size)
{
	struct server_list *list = malloc(sizeof(*list));
	char *text = malloc(size);

	BUG_ON(!list || (size && !text));
	if (size)
		memcpy(text, data, size);
	if (server_list_parse(text, size, list))
		BUG_ON(!*list->why);
	else
		BUG_ON(!list->n || list->n > LOOKUP_HOSTS);
	free(text);
	free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ulnet_text_error err;
	struct ulnet_target target;
	struct name_text name;
	char *text = malloc(size + 1);

	BUG_ON(!text);
	parse_file(data, size);
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
