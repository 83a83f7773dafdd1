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
	free(c->pass);
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

/* ---- what goes on to nested calls ---- */

/* Calls @fn for each of @names, until it returns false. Returns whether it
 * never did. */
static bool each_name(const char *names,
		      bool (*fn)(void *arg, const char *name, size_t length),
		      void *arg)
{
	while (*(names += strspn(names, " "))) {
		size_t length = strcspn(names, " ");

		if (!fn(arg, names, length))
			return false;
		names += length;
	}
	return true;
}

/* A name of a list is a name of metadata, or the beginning of some and '*'. */
static bool is_name(void *arg, const char *name, size_t length)
{
	(void)arg;
	if (name[length - 1] == '*' && !--length)
		return true;
	return annex_name_is_good(name, length);
}

/* Is @arg, the name of a pair, another one than @name means? */
static bool is_other(void *arg, const char *name, size_t length)
{
	const char *own = arg;

	if (name[length - 1] == '*')
		return strncmp(own, name, length - 1);
	return strlen(own) != length || memcmp(own, name, length);
}

int ulrpc_context_pass(struct ulrpc_context *context, const char *names)
{
	char *copy = NULL;

	if (context_is_busy(context))
		return -EBUSY;
	if (names && !each_name(names, is_name, NULL))
		return -EINVAL;
	if (names && !(copy = strdup(names)))
		return -ENOMEM;
	free(context->pass);
	context->pass = copy;
	return 0;
}

static struct wire_view annex_view(const struct annex *a)
{
	return (struct wire_view){ a->bytes, a->bytes + a->length };
}

/* Adds the pairs of @annex to @sent that @names name, unless @own, which is the
 * beginning of it, has some of that name. */
static int pairs_pass(struct annex *sent, const char *names,
		      struct wire_view own, struct wire_view annex)
{
	struct ulrpc_metadata pair, other;
	int rc = 0;

	for (unsigned int i = 0; !rc && !annex_pair(annex, i, &pair); i++)
		if (!each_name(names, is_other, (void *)pair.name) &&
		    annex_find(own, pair.name, &other))
			rc = annex_add(sent, pair.name, pair.value,
				       pair.length);
	return rc;
}

/* Adds @more to what is @c's own, and takes over what @names names of @annex,
 * instead of what it has taken over before. @more, @names: NULL for nothing. */
static int context_inherit(struct ulrpc_context *c,
			   const struct ulrpc_metadata *more, const char *names,
			   struct wire_view annex)
{
	struct annex own, sent;
	int rc;

	annex_init(&own);
	annex_init(&sent);
	rc = annex_copy(&own, &c->sent);
	if (!rc && c->passed_length)
		annex_cut(&own, c->passed_at, c->passed_length,
			  c->passed_pairs);
	if (!rc && more)
		rc = annex_add(&own, more->name, more->value, more->length);
	if (!rc)
		rc = annex_copy(&sent, &own);
	if (!rc && names)
		rc = pairs_pass(&sent, names, annex_view(&own), annex);
	if (!rc) {
		annex_fini(&c->sent);
		c->sent = sent;
		c->passed_at = own.length;
		c->passed_length = sent.length - own.length;
		c->passed_pairs = sent.pairs - own.pairs;
	} else {
		annex_fini(&sent);
	}
	annex_fini(&own);
	return rc;
}

int context_enter(struct ulrpc_context *c, struct scope *scope,
		  struct wire_view annex)
{
	int rc = 0;

	if (c->pass || c->passed_length)
		rc = context_inherit(c, NULL, c->pass, annex);
	if (rc)
		return rc;
	if (c->scope)
		scope_put(c->scope);
	c->scope = scope;
	return 0;
}

/* ---- calls ---- */

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
	const struct ulrpc_metadata more = { name, value, length };
	const uint8_t *passed = context->sent.bytes + context->passed_at;

	if (context_is_busy(context))
		return -EBUSY;
	if (!context->passed_length)
		return annex_add(&context->sent, name, value, length);
	/* It takes the place of what was taken over with this name. */
	return context_inherit(
		context, &more, "*",
		(struct wire_view){ passed, passed + context->passed_length });
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
