/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of a simulation: a table, in the place of name servers and files,
 * that all nodes look names up in. It is the scheme "" of each node.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_priv.h"

/* A name that is in the table. */
struct sim_name {
	struct list link; /* lnet_sim.names */
	char *text;
	uint64_t delay;
	bool silent;		    /* nobody answers */
	struct ulnet_name_answer a; /* a.addresses is owned */
};

/* A name that a node looks up. */
struct sim_feed {
	struct list link; /* lnet_sim.feeds */
	struct sim_node *n;
	uint64_t feed;
	char *text;
	unsigned int due; /* answers that lnet_sim_at() will bring */
	bool closed;
};

static struct sim_name *name_find(struct lnet_sim *sim, const char *text)
{
	struct sim_name *name;

	list_for_each_entry (name, &sim->names, link)
		if (!strcmp(name->text, text))
			return name;
	return NULL;
}

static void feed_free(struct sim_feed *f)
{
	list_del(&f->link);
	free(f->text);
	free(f);
}

static void feed_answer(struct sim_feed *f)
{
	static const struct ulnet_name_answer none = {
		.status = -ENOENT,
		.why = "there is no such name",
	};
	const struct sim_name *name = name_find(f->n->sim, f->text);

	if (!f->n->node || (name && name->silent))
		return;
	BUG_ON(lnet_name_answer(f->n->node, f->feed, name ? &name->a : &none,
				UINT64_C(3600000000)));
}

static void on_due(void *arg)
{
	struct sim_feed *f = arg;

	f->due--;
	if (!f->closed)
		feed_answer(f);
	else if (!f->due)
		feed_free(f);
}

/* Answers, when the delay of the name is over. */
static int feed_answer_later(struct sim_feed *f)
{
	const struct sim_name *name = name_find(f->n->sim, f->text);
	int rc;

	if (!name || !name->delay) {
		feed_answer(f);
		return 0;
	}
	rc = lnet_sim_at(f->n->sim, name->delay, on_due, f);
	f->due += !rc;
	return rc;
}

static int names_on_open(void *arg, struct lnet *node, uint64_t feed,
			 const char *rest, void **priv_p)
{
	struct sim_node *n = arg;
	struct sim_feed *f = calloc(1, sizeof(*f));
	int rc;

	(void)node;
	if (!f)
		return -ENOMEM;
	f->n = n;
	f->feed = feed;
	f->text = strdup(rest);
	list_add_tail(&n->sim->feeds, &f->link);
	rc = f->text ? feed_answer_later(f) : -ENOMEM;
	if (rc)
		feed_free(f);
	else
		*priv_p = f;
	return rc;
}

static void names_on_close(void *arg, void *priv)
{
	struct sim_feed *f = priv;

	(void)arg;
	f->closed = true;
	if (!f->due)
		feed_free(f);
}

int sim_names_start(struct sim_node *n)
{
	int rc = lnet_names_open(n->node);

	n->scheme = (struct ulnet_name_scheme){
		.scheme = "",
		.open = names_on_open,
		.close = names_on_close,
		.arg = n,
	};
	return rc ? rc : lnet_name_scheme_add(n->node, &n->scheme);
}

static void name_clear(struct sim_name *name)
{
	free((void *)(uintptr_t)name->a.addresses);
	name->a = (struct ulnet_name_answer){ 0 };
}

void sim_names_free(struct lnet_sim *sim)
{
	struct sim_name *name;

	while (!list_empty(&sim->feeds))
		feed_free(list_first(&sim->feeds, struct sim_feed, link));
	while ((name = list_pop(&sim->names, struct sim_name, link))) {
		name_clear(name);
		free(name->text);
		free(name);
	}
}

static struct sim_name *name_get(struct lnet_sim *sim, const char *text)
{
	struct sim_name *name = name_find(sim, text);

	if (name)
		return name;
	name = calloc(1, sizeof(*name));
	if (!name)
		return NULL;
	name->text = strdup(text);
	if (!name->text) {
		free(name);
		return NULL;
	}
	list_add_tail(&sim->names, &name->link);
	return name;
}

int lnet_sim_name_set(struct lnet_sim *sim, const char *text,
		      const struct ulnet_name_answer *answer, uint64_t delay)
{
	size_t bytes = answer ? answer->n * sizeof(*answer->addresses) : 0;
	struct ulnet_address *copy = malloc(bytes ? bytes : 1);
	struct sim_name *name = name_get(sim, text);
	struct sim_feed *f, *next;
	int rc = 0;

	if (!copy || !name) {
		free(copy);
		return -ENOMEM;
	}
	name_clear(name);
	name->delay = delay;
	name->silent = !answer;
	if (answer) {
		if (bytes)
			memcpy(copy, answer->addresses, bytes);
		name->a = *answer;
	}
	name->a.addresses = copy;
	list_for_each_entry_safe (f, next, &sim->feeds, link)
		if (!rc && !f->closed && !strcmp(f->text, text))
			rc = feed_answer_later(f);
	return rc;
}
