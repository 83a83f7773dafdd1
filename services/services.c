/* SPDX-License-Identifier: BSD-3-Clause */
#include "services.h"

#include <string.h>

static const struct service_type *const types[] = {
	&echo_service,
	&brw_service,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct service_type *service_at(unsigned int index)
{
	return index < COUNT(types) ? types[index] : NULL;
}

const struct service_type *service_find(const char *name)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if (strcmp(types[i]->name, name) == 0)
			return types[i];
	return NULL;
}
