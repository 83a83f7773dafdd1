/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/context/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/text.h"

_Static_assert(SCOPE_TRACE == TRACE_LENGTH, "of the same length");

struct scope *scope_new(uint64_t deadline, const uint8_t *trace)
{
	struct scope *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (pthread_mutex_init(&s->lock, NULL)) {
		free(s);
		return NULL;
	}
	atomic_init(&s->refs, 1);
	s->deadline = deadline;
	s->traced = trace;
	if (trace)
		memcpy(s->trace, trace, TRACE_LENGTH);
	list_init(&s->links);
	return s;
}

void scope_get(struct scope *s)
{
	atomic_fetch_add(&s->refs, 1);
}

void scope_put(struct scope *s)
{
	if (atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void scope_cancel(struct scope *s)
{
	struct scope_link *l;

	pthread_mutex_lock(&s->lock);
	s->canceled = true;
	list_for_each_entry (l, &s->links, link)
		l->cancel(l);
	pthread_mutex_unlock(&s->lock);
}

int scope_enter(struct scope *s, struct scope_link *l)
{
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	if (s->canceled)
		rc = -ECANCELED;
	else
		list_add_tail(&s->links, &l->link);
	pthread_mutex_unlock(&s->lock);
	if (rc)
		return rc;
	scope_get(s);
	l->scope = s;
	return 0;
}

void scope_leave(struct scope_link *l)
{
	struct scope *s = l->scope;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	list_del(&l->link);
	pthread_mutex_unlock(&s->lock);
	l->scope = NULL;
	scope_put(s);
}
