/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files: lnet.conf(5). */
#include <errno.h>

#include "config/request/request.h"

enum import_mode { IMPORT_ADD, IMPORT_DEL, IMPORT_SHOW, IMPORT_EXEC };
static const char *const mode_names[] = { "add", "del", "show", "exec" };

struct import {
	struct request *request;
	enum import_mode mode;
	bool ignore_errors;
	const char *text; /* the text of the file */
	bool has_rpc;	  /* there is a section "rpc" */
	struct rules rules;
	struct plan plan;
};

/* ---- sections that need functions of their own ---- */

static int import_take_rule(struct import *im, const struct scope *s,
			    const struct tree *item)
{
	im->rules.any = true;
	return ip2nets_item(&im->plan, s, item, im->mode == IMPORT_ADD,
			    &im->rules);
}

static int inquire_item(struct import *im, const struct scope *s,
			const struct tree *item, enum inquiry_kind kind)
{
	struct scope strict = *s;

	strict.subject.top = "manage";
	strict.lenient = false;
	return inquire(im->plan.node, &strict, item, kind, im->request->cancel);
}

/* An item is either arguments, "{nids: [...], timeout: 5}", or what ping has
 * printed. */
static int take_ping(struct import *im, const struct scope *s,
		     const struct tree *item)
{
	return inquire_item(im, s, item, INQUIRY_PING);
}

static int take_discover(struct import *im, const struct scope *s,
			 const struct tree *item)
{
	return inquire_item(im, s, item, INQUIRY_DISCOVER);
}

/* Gives the section "rpc" of the file to the program, which runs RPC. @check:
 * only looks for mistakes. */
static int rpc_rules(struct import *im, const struct scope *s, bool check)
{
	struct doc *doc = doc_new();
	struct tree *args =
		doc ? doc_set_root(doc, TREE_MAP, TREE_PLAIN, NULL) : NULL;
	struct request r = *im->request;
	int rc = -ENOMEM, before = r.answer->status;

	tree_text(args, "text", TREE_DOUBLE, im->text);
	if (check)
		tree_text(args, "check", TREE_PLAIN, "true");
	r.args = args;
	r.scope = *s;
	r.scope.subject = (struct subject){ "add", "rpc", NULL };
	r.answer->status = 0;
	if (!args || doc_failed(doc)) {
		rc = scope_fail(&r.scope, NULL, rc, "no memory");
	} else {
		if (!program_run(&r, "rpc rules"))
			answer_note_once(r.answer,
					 "rpc is passed over: this node runs "
					 "no RPC");
		rc = r.answer->status;
	}
	if (before)
		r.answer->status = before;
	doc_free(doc);
	return rc;
}

static int import_take_rpc(struct import *im, const struct scope *s,
			   const struct tree *map)
{
	int rc = rpc_rules(im, s, true);

	(void)map;
	im->has_rpc = !rc;
	return rc;
}

static int show_global(struct lnet *node, const struct scope *s,
		       const struct tree *map)
{
	(void)map;
	return show_settings(node, answer_output(s->answer));
}

static int show_own(struct lnet *node, const struct scope *s,
		    const struct tree *map)
{
	(void)map;
	return show_own_settings(node, false, answer_output(s->answer));
}

static int import_show_statistics(struct lnet *node, const struct scope *s,
				  const struct tree *map)
{
	(void)map;
	return show_stats(node, answer_output(s->answer));
}

/* ---- the file ---- */

#define M(mode)	   (1u << IMPORT_##mode)
#define M_ADD_DEL  (M(ADD) | M(DEL))
#define M_NOT_EXEC (M(ADD) | M(DEL) | M(SHOW))

/* A section of a file. One function is called for it: all(), if it is set;
 * otherwise plan() when the file adds or deletes, or show() when the file only
 * asks. If the section is a list, that function is called for each item. */
static const struct section {
	const char *name;
	/* the modes in which the section is read; in others it is ignored */
	unsigned int modes;
	/* true: the section is a list of items; a single item may stand without
	 * the list. false: it is a mapping; a sequence of such mappings counts,
	 * too */
	bool list;
	plan_fn *plan;
	show_item_fn *show;
	int (*all)(struct import *im, const struct scope *s,
		   const struct tree *t);
} sections[] = {
	{ "net", M_NOT_EXEC, true, net_item, net_show_item, NULL },
	{ "routing", M_NOT_EXEC, true, routing_item, NULL, NULL },
	{ "route", M_NOT_EXEC, true, route_item, route_show_item, NULL },
	{ "peer", M_NOT_EXEC, true, peer_item, peer_show_item, NULL },
	{ "ip2nets", M_ADD_DEL, true, NULL, NULL, import_take_rule },
	{ "buffers", M(ADD), false, buffers_section, NULL, NULL },
	{ "statistics", M(SHOW), false, NULL, import_show_statistics, NULL },
	{ "global", M(ADD) | M(SHOW), false, global_section, show_global,
	  NULL },
	{ "ulnet", M(ADD) | M(SHOW), false, global_section, show_own, NULL },
	{ "numa", M(ADD), false, numa_section, NULL, NULL },
	{ "ping", M(EXEC), true, NULL, NULL, take_ping },
	{ "discover", M(EXEC), true, NULL, NULL, take_discover },
	{ "udsp", M_NOT_EXEC, true, policy_item, policy_show_item, NULL },
	{ "tls", M_NOT_EXEC, true, tls_item, tls_show_item, NULL },
	{ "fault", M_ADD_DEL, true, fault_item, NULL, NULL },
	{ "rpc", M(ADD), false, NULL, NULL, import_take_rpc },
};

/* Finds the section for @key. As in kernel nodes, a key only has to begin with
 * the section's name; old files have "buffer". NULL: there is no such section.
 */
static const struct section *section_of(const char *key)
{
	if (!strcmp(key, "buffer"))
		key = "buffers";
	for (unsigned int i = 0; i < ARRAY_SIZE(sections); i++)
		if (!strncmp(key, sections[i].name, strlen(sections[i].name)))
			return &sections[i];
	return NULL;
}

/* Called after an item was read, with the result @rc. With ignore_errors,
 * carries the item out by itself, and returns 0, so that an error does not stop
 * the import. */
static int import_item_end(struct import *im, int rc)
{
	if (!im->ignore_errors)
		return rc;
	if (!rc)
		(void)plan_run(&im->plan);
	if (cancel_is_due(im->request->cancel))
		return -ECANCELED;
	plan_fini(&im->plan);
	plan_init(&im->plan, im->request->control->node, im->request->cancel);
	im->plan.keep_notes = true;
	return 0;
}

/* Reports an error if "ip2nets" has rules, but none of them is about this host.
 */
static int check_rules(struct import *im, const struct scope *s,
		       const struct tree *t)
{
	bool idle = im->rules.any && !im->rules.applied;

	im->rules = (struct rules){ 0 };
	return idle ? scope_fail(s, t, -ENOENT,
				 "no rule matches an address of this host")
		    : 0;
}

static int section_call(struct import *im, const struct section *sec,
			const struct scope *s, const struct tree *t)
{
	if (sec->all)
		return sec->all(im, s, t);
	if (im->mode == IMPORT_SHOW)
		return sec->show ? sec->show(im->plan.node, s, t) : 0;
	return sec->plan(&im->plan, s, t, im->mode == IMPORT_ADD);
}

/* Returns what the section's function is called with next, after @prev (first:
 * NULL): an item of a list, a mapping of a sequence, or all of the section.
 * NULL: nothing more. */
static const struct tree *section_next(const struct import *im,
				       const struct section *sec,
				       const struct tree *t,
				       const struct tree *prev)
{
	if (sec->list)
		return items_next(t, prev);
	if (t->kind == TREE_SEQ && im->mode != IMPORT_SHOW)
		return list_next(t, prev);
	return prev ? NULL : t;
}

static int section_run(struct import *im, const struct section *sec,
		       struct scope *s, const struct tree *t)
{
	const struct tree *item = NULL;
	int rc = 0;

	s->subject.item = sec->name;
	if (!(sec->modes & 1u << im->mode))
		return 0;
	while (!rc && (item = section_next(im, sec, t, item))) {
		s->index += sec->list || item != t;
		s->subject.seq_no = tree_get(item, "seq_no");
		rc = import_item_end(im, section_call(im, sec, s, item));
	}
	return rc ? rc : check_rules(im, s, t);
}

/* Settings, and rules for nets with TLS, are set first, wherever they are in
 * the file: NIDs of interfaces and connections depend on them. */
static bool is_early(const struct import *im, const struct section *sec)
{
	return sec && im->mode == IMPORT_ADD &&
	       (sec->plan == global_section || sec->plan == tls_item);
}

static int import_key(struct import *im, struct scope *s, const struct tree *t)
{
	const struct section *sec = section_of(t->key);
	int rc;

	s->subject.item = "import";
	s->subject.seq_no = NULL;
	s->index = 0;
	rc = sec ? section_run(im, sec, s, t)
		 : scope_misread(s, t, "unknown key '%s'", t->key);
	if (!sec && im->mode == IMPORT_EXEC)
		return rc;
	return im->mode == IMPORT_EXEC || im->ignore_errors ? 0 : rc;
}

static int import_keys(struct import *im, struct scope *s,
		       const struct tree *root, bool early)
{
	const struct tree *t;
	int rc = 0;

	tree_for_each (t, root) {
		if (is_early(im, section_of(t->key)) == early)
			rc = import_key(im, s, t);
		if (rc)
			break;
	}
	return rc;
}

/* Carries out what was planned, and gives the section "rpc" to the program. A
 * node without a network gets these rules first, so that nobody calls it
 * without them; any other node gets them last, if all else could be done. */
static int import_end(struct import *im, const struct scope *s)
{
	bool done = im->mode == IMPORT_EXEC || im->ignore_errors;
	struct ulnet_ni_info info;
	bool first = lnet_ni_info(im->plan.node, 1, &info) != 0;
	int rc = 0;

	if (im->has_rpc && first)
		rc = rpc_rules(im, s, false);
	if (!rc)
		rc = done ? im->request->answer->status : plan_run(&im->plan);
	if (im->has_rpc && !first && (!rc || done))
		rc = rpc_rules(im, s, false);
	return rc;
}

static int import_tree(struct import *im, const struct tree *root)
{
	struct scope s = {
		.answer = im->request->answer,
		.subject = { mode_names[im->mode], "import", NULL },
		.show_lines = true,
		.lenient = true,
	};
	int rc;

	if (root->kind != TREE_MAP && !tree_is_null(root))
		return scope_misread(&s, root, "not a mapping");
	rc = import_keys(im, &s, root, true);
	if (!rc)
		rc = import_keys(im, &s, root, false);
	if (rc)
		return rc;
	return import_end(im, &s);
}

/* Adds, deletes, shows or executes the file @text, as @mode says. An error
 * leaves the node as it was; with @ignore_errors, each item is done or not done
 * by itself, and the answer has an error for each that fails. Called in a turn
 * of the control, unless @mode is IMPORT_EXEC. */
static int import_text(struct request *r, const char *text,
		       enum import_mode mode, bool ignore_errors)
{
	const struct subject subject = { mode_names[mode], "import", NULL };
	struct import im = {
		.request = r,
		.mode = mode,
		.ignore_errors = ignore_errors && mode != IMPORT_EXEC,
		.text = text,
	};
	struct tree_error err;
	struct doc *doc;
	int rc = tree_parse(text, strlen(text), &request_limits, &doc, &err);

	if (rc) {
		answer_error(r->answer, &subject, rc, "line %u, column %u: %s",
			     err.line, err.column, err.what);
		return rc;
	}
	plan_init(&im.plan, r->control->node, r->cancel);
	im.plan.keep_notes = im.ignore_errors;
	rc = import_tree(&im, doc_root(doc));
	plan_fini(&im.plan);
	doc_free(doc);
	return rc;
}

int import_config(struct request *r, const char *text)
{
	return import_text(r, text, IMPORT_ADD, false);
}

void import_request(struct request *r)
{
	const struct tree *file = tree_get(r->args, "text");
	const struct tree *at = tree_get(r->args, "mode");
	const char *text = "", *mode = "add";
	bool ignore_errors = false;
	unsigned int i = 0;

	if (!file) {
		scope_misread(&r->scope, r->args, "import: text is missing");
		return;
	}
	if (file->kind == TREE_SCALAR)
		text = file->text; /* the file may be empty */
	else if (scope_text(&r->scope, file, &text))
		return;
	if (scope_text(&r->scope, at, &mode) ||
	    scope_bool(&r->scope, tree_get(r->args, "ignore_errors"),
		       &ignore_errors))
		return;
	while (i < ARRAY_SIZE(mode_names) && strcmp(mode, mode_names[i]) != 0)
		i++;
	if (i == ARRAY_SIZE(mode_names)) {
		scope_misread(&r->scope, at,
			      "mode: add, del, show or exec is expected");
		return;
	}
	/* This mode does not take the turn to change the node, because pings
	 * and discoveries take long. */
	if (i == IMPORT_EXEC) {
		(void)import_text(r, text, IMPORT_EXEC, ignore_errors);
		return;
	}
	if (!request_take(r))
		return;
	if (atomic_load(&r->control->down))
		request_down(r);
	else
		(void)import_text(r, text, (enum import_mode)i, ignore_errors);
	control_give(r->control);
}
