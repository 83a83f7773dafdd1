/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the program's own: lnet_control_add(3). */
#include <errno.h>

#include "config/request/request.h"
#include "ulnet/loop.h"

/* us of one lnet_poll(); it is called again. */
#define POLL_MAX UINT64_C(3600000000)

struct program {
	struct lnet_control *control;
	struct list link; /* lnet_control.programs */
	lnet_control_fn fn;
	void (*gone)(void *arg);
	void *arg;

	/* under programs_lock */
	unsigned int running;	/* requests */
	bool leaving;		/* is not in the list any more */
	bool left;		/* the same, and nobody runs it */
	struct ulnet_work work; /* tells of it, in a turn of the node */

	char **keys; /* up to NULL */
	char name[LNET_CONTROL_NAME_MAX + 1];
};

struct lnet_control_call {
	struct request *request;
};

static void program_free(struct program *p)
{
	for (char **key = p->keys; key && *key; key++)
		free(*key);
	free(p->keys);
	free(p);
}

static int keys_copy(struct program *p, const char *const *keys)
{
	unsigned int n = 0;

	while (keys && keys[n])
		n++;
	p->keys = calloc(n + 1, sizeof(*p->keys));
	if (!p->keys)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++) {
		p->keys[i] = strdup(keys[i]);
		if (!p->keys[i])
			return -ENOMEM;
	}
	return 0;
}

/* The lock is held. */
static struct program *program_find(struct lnet_control *control,
				    const char *name)
{
	struct program *p;

	list_for_each_entry (p, &control->programs, link)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

/* ---- adding and deleting ---- */

static void program_on_left(struct ulnet_work *work)
{
	struct program *p = container_of(work, struct program, work);
	struct lnet_control *control = p->control;

	pthread_mutex_lock(&control->programs_lock);
	p->left = true;
	pthread_cond_broadcast(&control->left);
	pthread_mutex_unlock(&control->programs_lock);
}

static int program_new(struct lnet_control *control,
		       const struct ulnet_control_command *command,
		       struct program **program_p)
{
	struct program *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->control = control;
	p->fn = command->fn;
	p->gone = command->gone;
	p->arg = command->arg;
	p->work.fn = program_on_left;
	text_copy(p->name, sizeof(p->name), command->name);
	if (keys_copy(p, command->keys)) {
		program_free(p);
		return -ENOMEM;
	}
	*program_p = p;
	return 0;
}

int lnet_control_add(struct lnet_control *control,
		     const struct ulnet_control_command *command)
{
	struct program *p;
	int rc;

	if (!command->fn || !command->name || !*command->name ||
	    strlen(command->name) > LNET_CONTROL_NAME_MAX)
		return -EINVAL;
	if (request_is_ours(command->name))
		return -EEXIST;
	rc = program_new(control, command, &p);
	if (rc)
		return rc;
	pthread_mutex_lock(&control->programs_lock);
	if (program_find(control, p->name))
		rc = -EEXIST;
	else
		list_add_tail(&control->programs, &p->link);
	pthread_mutex_unlock(&control->programs_lock);
	if (rc)
		program_free(p);
	return rc;
}

static bool program_has_left(struct program *p)
{
	bool left;

	pthread_mutex_lock(&p->control->programs_lock);
	left = p->left;
	pthread_mutex_unlock(&p->control->programs_lock);
	return left;
}

/* A request may wait for turns of the node that only this thread makes. */
static void program_wait(struct program *p)
{
	struct lnet_control *control = p->control;

	while (!program_has_left(p)) {
		int rc = lnet_poll(control->node, POLL_MAX);

		if (rc != -EBUSY && rc != -EXDEV)
			continue;
		pthread_mutex_lock(&control->programs_lock);
		while (!p->left)
			pthread_cond_wait(&control->left,
					  &control->programs_lock);
		pthread_mutex_unlock(&control->programs_lock);
	}
}

int lnet_control_del(struct lnet_control *control, const char *name)
{
	struct program *p;

	if (lnet_in_turn())
		return -EDEADLK;
	pthread_mutex_lock(&control->programs_lock);
	p = program_find(control, name);
	if (p) {
		list_del(&p->link);
		p->leaving = true;
		p->left = !p->running;
	}
	pthread_mutex_unlock(&control->programs_lock);
	if (!p)
		return -ENOENT;
	program_wait(p);
	program_free(p);
	return 0;
}

void programs_free(struct lnet_control *control)
{
	while (!list_empty(&control->programs)) {
		struct program *p =
			list_first(&control->programs, struct program, link);

		list_del(&p->link);
		if (p->gone)
			p->gone(p->arg);
		program_free(p);
	}
}

/* ---- requests ---- */

static struct program *program_get(struct lnet_control *control,
				   const char *name)
{
	struct program *p;

	pthread_mutex_lock(&control->programs_lock);
	p = program_find(control, name);
	if (p)
		p->running++;
	pthread_mutex_unlock(&control->programs_lock);
	return p;
}

static void program_put(struct program *p)
{
	struct lnet_control *control = p->control;
	bool last;

	pthread_mutex_lock(&control->programs_lock);
	last = --p->running == 0 && p->leaving;
	pthread_mutex_unlock(&control->programs_lock);
	if (last)
		lnet_post(control->node, 0, &p->work);
}

/* What the program has printed becomes the output of the answer. */
static void take_output(struct request *r, const char *text)
{
	struct tree *out = answer_output(r->answer);
	const struct tree *root, *t = NULL;
	struct tree_error err;
	struct doc *doc;
	int rc = tree_parse(text, strlen(text), &answer_limits, &doc, &err);

	if (rc) {
		scope_fail(&r->scope, NULL, rc,
			   "the program's answer: line %u, column %u: %s",
			   err.line, err.column, err.what);
		return;
	}
	root = doc_root(doc);
	if (root->kind == TREE_MAP)
		while ((t = list_next(root, t)))
			tree_copy(out, t->key, t);
	else if (!tree_is_null(root))
		scope_fail(&r->scope, NULL, -EINVAL,
			   "the program's answer is not a mapping");
	doc_free(doc);
}

static void program_call(struct program *p, struct request *r)
{
	struct lnet_control_call call = { r };
	char *output = NULL;
	int rc = scope_keys(&r->scope, r->args, (const char *const *)p->keys);

	if (rc)
		return;
	rc = p->fn(p->arg, &call, &output);
	if (rc && !r->answer->status)
		scope_fail(&r->scope, NULL, rc, "%s: %s", p->name,
			   strerror(-rc));
	else if (!rc && output)
		take_output(r, output);
	free(output);
}

bool program_run(struct request *r, const char *name)
{
	struct program *p = program_get(r->control, name);

	if (!p)
		return false;
	program_call(p, r);
	program_put(p);
	return true;
}

int lnet_control_number(struct lnet_control_call *call, const char *key,
			int64_t min, int64_t max, int64_t *value_p)
{
	struct request *r = call->request;

	return scope_get_number(&r->scope, r->args, key, min, max, value_p);
}

int lnet_control_text(struct lnet_control_call *call, const char *key,
		      const char **text_p)
{
	struct request *r = call->request;

	return scope_get_text(&r->scope, r->args, key, text_p);
}
