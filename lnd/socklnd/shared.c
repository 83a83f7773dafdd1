/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/shared.h"

#include <stdlib.h>

struct sock_shared *sock_shared_get(void **slot)
{
	struct sock_shared *s = *slot;

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (s)
		list_init(&s->listeners);
	*slot = s;
	return s;
}

void sock_shared_put(void **slot)
{
	struct sock_shared *s = *slot;

	if (!s || s->links || !list_empty(&s->listeners))
		return;
	free(s);
	*slot = NULL;
}
