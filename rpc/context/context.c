/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/context/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void context_init(struct ulrpc_context *c,
		  void (*fini)(struct ulrpc_context *c))
{
	atomic_init(&c->refs, 1);
	atomic_init(&c->busy, false);
	annex_init(&c->sent);
	c->fini = fini;
}

int ulrpc_context_new(struct ulrpc_context **context_p)
{
	struct ulrpc_context *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	context_init(c, NULL);
	*context_p = c;
	return 0;
}

void context_get(struct ulrpc_context *c)
{
	atomic_fetch_add(&c->refs, 1);
}

void context_put(struct ulrpc_context *c)
{
	if (atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	annex_fini(&c->sent);
	if (c->scope)
		scope_put(c->scope);
	free(c->said);
	if (c->fini)
		c->fini(c);
	free(c);
}

void ulrpc_context_free(struct ulrpc_context *context)
{
	if (context)
		context_put(context);
}

bool context_is_busy(const struct ulrpc_context *c)
{
	return atomic_load_explicit(&c->busy, memory_order_acquire);
}

void context_enter(struct ulrpc_context *c, struct scope *scope)
{
	if (c->scope)
		scope_put(c->scope);
	c->scope = scope;
}

int context_take(struct ulrpc_context *c)
{
	if (atomic_exchange(&c->busy, true))
		return -EBUSY;
	context_get(c);
	free(c->said);
	c->said = NULL;
	c->said_length = 0;
	return 0;
}

int context_say(struct ulrpc_context *c, struct wire_view annex)
{
	size_t length = view_length(annex);

	c->said = malloc(MAX(length, 1));
	if (!c->said)
		return -ENOMEM;
	memcpy(c->said, annex.p, length);
	c->said_length = (uint32_t)length;
	return 0;
}

void context_release(struct ulrpc_context *c)
{
	atomic_store_explicit(&c->busy, false, memory_order_release);
}

int ulrpc_context_add(struct ulrpc_context *context, const char *name,
		      const void *value, size_t length)
{
	if (context_is_busy(context))
		return -EBUSY;
	return annex_add(&context->sent, name, value, length);
}

int ulrpc_context_sent(const struct ulrpc_context *context, unsigned int index,
		       struct ulrpc_metadata *pair)
{
	const struct annex *a = &context->sent;

	if (context_is_busy(context))
		return -EBUSY;
	if (!a->bytes)
		return -ENOENT;
	return annex_pair((struct wire_view){ a->bytes, a->bytes + a->length },
			  index, pair);
}

/* Returns the annex of the last reply; empty: there is none. */
static struct wire_view said(const struct ulrpc_context *c)
{
	return (struct wire_view){ c->said, c->said + c->said_length };
}

int ulrpc_context_metadata(const struct ulrpc_context *context,
			   unsigned int index, struct ulrpc_metadata *pair)
{
	if (context_is_busy(context))
		return -EBUSY;
	return annex_pair(said(context), index, pair);
}

int ulrpc_context_find(const struct ulrpc_context *context, const char *name,
		       struct ulrpc_metadata *pair)
{
	if (context_is_busy(context))
		return -EBUSY;
	return annex_find(said(context), name, pair);
}

int ulrpc_context_details(const struct ulrpc_context *context,
			  struct ulrpc_details *details)
{
	if (context_is_busy(context))
		return -EBUSY;
	return annex_details(said(context), details);
}
