/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions, and the batches in them. */
#include <stdlib.h>
#include <string.h>

#include "lst_priv.h"

struct lst_session *lst_session_make(struct lst *lst,
				     const struct lst_msg *request)
{
	struct lst_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->lst = lst;
	s->id = request->session;
	memcpy(s->name, request->name, sizeof(s->name));
	s->features = request->features;
	s->refs = 1;
	s->made = lnet_now(lst->node, LST_HOME);
	s->deadline = s->made + lst->conf.session_s * NS_PER_S;
	TAILQ_INIT(&s->batches);
	lst->session = s;
	lst->member = true;
	lst_watch(&lst->cpts[LST_HOME]);
	return s;
}

static void session_batch_free(struct lst_batch *b)
{
	struct lst_test *t;

	while ((t = TAILQ_FIRST(&b->tests))) {
		TAILQ_REMOVE(&b->tests, t, entry);
		lst_test_free(t);
	}
	free(b);
}

static void session_free(struct lst_session *s)
{
	struct lst_batch *b;

	while ((b = TAILQ_FIRST(&s->batches))) {
		TAILQ_REMOVE(&s->batches, b, entry);
		session_batch_free(b);
	}
	free(s);
}

void lst_session_end(struct lst_session *s)
{
	struct lst_batch *b;
	struct lst_test *t;

	s->lst->session = NULL;
	s->lst->member = false;
	if (!s->busy) {
		session_free(s);
		return;
	}
	s->ended = true;
	LIST_INSERT_HEAD(&s->lst->zombies, s, zombie);
	TAILQ_FOREACH (b, &s->batches, entry)
		TAILQ_FOREACH (t, &b->tests, entry)
			lst_test_stop(t, true);
}

void lst_session_test_ended(struct lst_session *s)
{
	if (--s->busy || !s->ended)
		return;
	LIST_REMOVE(s, zombie);
	session_free(s);
}

struct lst_batch *lst_session_batch(struct lst_session *s, uint64_t id)
{
	struct lst_batch *b;

	TAILQ_FOREACH (b, &s->batches, entry)
		if (b->id == id)
			return b;
	return NULL;
}

struct lst_batch *lst_session_need_batch(struct lst_session *s, uint64_t id)
{
	struct lst_batch *b = lst_session_batch(s, id);

	if (b || s->nbatches == LST_TESTS_MAX)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->id = id;
	TAILQ_INIT(&b->tests);
	TAILQ_INSERT_TAIL(&s->batches, b, entry);
	s->nbatches++;
	return b;
}

unsigned int lst_batch_active(const struct lst_batch *b)
{
	const struct lst_test *t;
	unsigned int n = 0;

	TAILQ_FOREACH (t, &b->tests, entry)
		n += t->busy > 0;
	return n;
}
