/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/control.h"

#include <errno.h>

#include "ulnet/loop.h"

/* Sets *@text_p, to be freed, to the node's configuration in the form of a
 * file. */
static int current_config(struct lnet *node, char **text_p)
{
	struct doc *doc = doc_new();
	FILE *f = NULL;
	size_t size;
	int rc = -ENOMEM;

	if (doc && doc_set_root(doc, TREE_MAP, TREE_PLAIN, NULL))
		rc = show_all(node, true, false, doc_root(doc));
	if (!rc && !doc_failed(doc))
		f = open_memstream(text_p, &size);
	if (f) {
		tree_emit(doc_root(doc), &tree_narrow, f);
		rc = text_end(f, 0, text_p);
	} else if (!rc) {
		rc = -ENOMEM;
	}
	doc_free(doc);
	return rc;
}

int lnet_control_remember(struct lnet_control *control, const char *config)
{
	char *text;
	int rc = 0;

	if (control_is_forked(control))
		return -ESHUTDOWN;
	BUG_ON(!control_take(control, NULL));
	if (!config)
		rc = current_config(control->node, &text);
	else if (!(text = strdup(config)))
		rc = -ENOMEM;
	if (!rc) {
		free(control->start);
		control->start = text;
	}
	control_give(control);
	return rc;
}

static void control_free(struct lnet_control *control)
{
	programs_free(control);
	pthread_cond_destroy(&control->program_idle);
	pthread_mutex_destroy(&control->programs_lock);
	pthread_cond_destroy(&control->turn);
	pthread_mutex_destroy(&control->lock);
	free(control->start);
	free(control);
}

int lnet_control_start(struct lnet *node, const struct ulnet_control_conf *conf,
		       struct lnet_control **control_p)
{
	struct lnet_control *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	if (lnet_is_forked(node)) {
		free(c);
		return -ESHUTDOWN;
	}
	c->node = node;
	c->generation = fork_generation();
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->turn, NULL);
	pthread_mutex_init(&c->programs_lock, NULL);
	pthread_cond_init(&c->program_idle, NULL);
	list_init(&c->programs);
	rc = lnet_control_remember(c, NULL);
	if (!rc && conf && conf->path)
		rc = server_start(c, conf, &c->server);
	if (rc) {
		control_free(c);
		return rc;
	}
	*control_p = c;
	return 0;
}

void lnet_control_stop(struct lnet_control *control)
{
	if (!control)
		return;
	/* In a child of fork() the socket's threads do not exist, and its file
	 * is the parent's. */
	if (control_is_forked(control)) {
		free(control);
		return;
	}
	if (control->server)
		server_stop(control->server);
	control_free(control);
}

static const struct subject of_request = { "parser", "request", NULL };

/* Makes the answer that replaces one that is too long. */
static int answer_too_long(char **answer_p)
{
	struct answer answer;
	int rc = answer_init(&answer);

	if (!rc) {
		answer_error(&answer, &of_request, -EMSGSIZE,
			     "the answer is longer than %zu bytes", ANSWER_MAX);
		rc = answer_text(&answer, ANSWER_MAX, answer_p);
	}
	answer_fini(&answer);
	return rc;
}

int control_request(struct lnet_control *control, const char *request,
		    size_t len, struct cancel *cancel, char **answer_p)
{
	struct tree_error err;
	struct answer answer;
	struct doc *doc;
	int rc = answer_init(&answer);

	if (rc)
		goto out;
	rc = tree_parse(request, len, &request_limits, &doc, &err);
	if (rc) {
		answer_error(&answer, &of_request, rc, "line %u, column %u: %s",
			     err.line, err.column, err.what);
	} else {
		request_carry_out(control, doc_root(doc), cancel, &answer);
		doc_free(doc);
	}
	rc = answer_text(&answer, ANSWER_MAX, answer_p);
out:
	answer_fini(&answer);
	return rc == -EMSGSIZE ? answer_too_long(answer_p) : rc;
}

int lnet_control_request(struct lnet_control *control, const char *request,
			 char **answer_p)
{
	if (lnet_in_turn())
		return -EDEADLK;
	if (control_is_forked(control))
		return -ESHUTDOWN;
	return control_request(control, request, strlen(request), NULL,
			       answer_p);
}
