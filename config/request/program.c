/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that the program of the node has added: lnet_control_add(3). */
#include <errno.h>

#include "config/request/request.h"
#include "ulnet/loop.h"

#define POLL_MAX UINT64_C(3600000000) /* us that one lnet_poll() may wait */

struct program {
	struct lnet_control *control;
	struct list link; /* in lnet_control.programs */
	lnet_control_fn fn;
	void (*gone)(void *arg);
	void *arg;

	/* Under programs_lock: */
	unsigned int running;	/* number of requests that run the command */
	bool deleted;		/* the command is not in the list any more */
	bool idle;		/* it is deleted, and no request runs it */
	struct ulnet_work work; /* sets idle, in a turn of the node */

	char **keys; /* keys of its arguments; ends with NULL */
	char name[LNET_CONTROL_NAME_MAX + 1];
};

struct lnet_control_call {
	struct request *request;
};

static void program_free(struct program *p)
{
	free(p->keys);
	free(p);
}

/* Copies the keys, with their texts in the same block. */
static int keys_copy(struct program *p, const char *const *keys)
{
	size_t n = 0, size = sizeof(*p->keys);
	char *text;

	for (; keys && keys[n]; n++)
		size += sizeof(*p->keys) + strlen(keys[n]) + 1;
	p->keys = malloc(size);
	if (!p->keys)
		return -ENOMEM;
	text = (char *)&p->keys[n + 1];
	for (size_t i = 0; i < n; i++) {
		p->keys[i] = text;
		text = stpcpy(text, keys[i]) + 1;
	}
	p->keys[n] = NULL;
	return 0;
}

/* Finds the command @name; NULL: there is none. Called with programs_lock held.
 */
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

static void program_on_idle(struct ulnet_work *work)
{
	struct program *p = container_of(work, struct program, work);
	struct lnet_control *control = p->control;

	pthread_mutex_lock(&control->programs_lock);
	p->idle = true;
	pthread_cond_broadcast(&control->program_idle);
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
	p->work.fn = program_on_idle;
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
	if (control_is_forked(control))
		return -ESHUTDOWN;
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

static bool program_is_idle(struct program *p)
{
	bool idle;

	pthread_mutex_lock(&p->control->programs_lock);
	idle = p->idle;
	pthread_mutex_unlock(&p->control->programs_lock);
	return idle;
}

/* Waits until no request runs @p. If the calling thread runs the node, it makes
 * the node's turns meanwhile: a request may need them. */
static void program_wait(struct program *p)
{
	struct lnet_control *control = p->control;

	while (!program_is_idle(p)) {
		int rc = lnet_poll(control->node, POLL_MAX);

		if (rc != -EBUSY && rc != -EXDEV)
			continue;
		pthread_mutex_lock(&control->programs_lock);
		while (!p->idle)
			pthread_cond_wait(&control->program_idle,
					  &control->programs_lock);
		pthread_mutex_unlock(&control->programs_lock);
	}
}

int lnet_control_del(struct lnet_control *control, const char *name)
{
	struct program *p;

	if (lnet_in_turn())
		return -EDEADLK;
	if (control_is_forked(control))
		return -ESHUTDOWN;
	pthread_mutex_lock(&control->programs_lock);
	p = program_find(control, name);
	if (p) {
		list_del(&p->link);
		p->deleted = true;
		p->idle = !p->running;
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
	last = --p->running == 0 && p->deleted;
	pthread_mutex_unlock(&control->programs_lock);
	if (last)
		lnet_post(control->node, 0, &p->work);
}

/* Adds the YAML @text, which the program has made, to the output. */
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

	return scope_number(&r->scope, tree_get(r->args, key), min, max,
			    value_p);
}

int lnet_control_text(struct lnet_control_call *call, const char *key,
		      const char **text_p)
{
	struct request *r = call->request;

	return scope_text(&r->scope, tree_get(r->args, key), text_p);
}

int lnet_control_fail(struct lnet_control_call *call, int rc, const char *text)
{
	return scope_fail(&call->request->scope, NULL, rc, "%s", text);
}
