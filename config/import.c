/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/import.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "config/bonding.h"
#include "config/fault.h"
#include "config/ip2nets_item.h"
#include "config/item.h"
#include "config/peer.h"
#include "config/policy.h"
#include "config/route.h"
#include "config/setting.h"
#include "config/show.h"

static const char *const mode_names[] = { "add", "del", "show", "exec" };

struct import {
	struct request *request;
	enum import_mode mode;
	bool ignore_errors;
	bool has_rules, rule_applied; /* of "ip2nets" */
	struct plan plan;
	struct settings settings;
};

/* ---- one item of each section ---- */

static int show_net_item(struct import *im, const struct scope *s,
			 const struct tree *item)
{
	const struct tree *type = tree_get(item, "net type");
	struct show show = { .verbose = 2, .nid = LNET_NID_ANY };
	const char *text;
	int rc;

	if (!type)
		return scope_misread(s, item, "net type is missing");
	rc = scope_text(s, type, &text);
	if (rc)
		return rc;
	if (lnet_net_parse(text, &show.net))
		return scope_fail(s, type, -ENOENT, "cannot parse net '%s'",
				  text);
	rc = show_nets(im->plan.node, &show, answer_output(s->answer));
	return rc ? scope_fail(s, item, rc, "cannot get networks: %s",
			       strerror(-rc))
		  : 0;
}

static int net_item(struct import *im, const struct scope *s,
		    const struct tree *item)
{
	if (im->mode == IMPORT_SHOW)
		return show_net_item(im, s, item);
	return item_file_net(&im->plan, s, item, im->mode == IMPORT_ADD);
}

static int route_item(struct import *im, const struct scope *s,
		      const struct tree *item)
{
	if (im->mode != IMPORT_SHOW)
		return route_file_item(&im->plan, s, item,
				       im->mode == IMPORT_ADD);
	return route_show_item(im->plan.node, s, item);
}

static int show_peer_item(struct import *im, const struct scope *s,
			  const struct tree *primary)
{
	struct show show = { .verbose = 3, .net = LNET_NET_ANY };
	int rc = item_nid(s, primary, &show.nid);

	if (rc)
		return rc;
	rc = show_peers(im->plan.node, &show, answer_output(s->answer));
	return rc ? scope_fail(s, primary, rc,
			       "cannot get peer information of %s: %s",
			       primary->text,
			       rc == -ENOENT ? "no such peer" : strerror(-rc))
		  : 0;
}

static int peer_item(struct import *im, const struct scope *s,
		     const struct tree *item)
{
	const struct tree *primary = tree_get(item, "primary nid");

	if (im->mode != IMPORT_SHOW)
		return peer_file_item(&im->plan, s, item,
				      im->mode == IMPORT_ADD);
	return primary ? show_peer_item(im, s, primary)
		       : scope_misread(s, item, "primary nid is missing");
}

static int routing_item(struct import *im, const struct scope *s,
			const struct tree *item)
{
	if (im->mode == IMPORT_SHOW)
		return 0;
	return routing_file_item(&im->plan, s, item, im->mode == IMPORT_ADD);
}

static int udsp_item(struct import *im, const struct scope *s,
		     const struct tree *item)
{
	if (im->mode == IMPORT_SHOW)
		return policy_show_item(im->plan.node, s, item);
	return policy_file_item(&im->plan, s, item, im->mode == IMPORT_ADD);
}

static int ip2nets_item(struct import *im, const struct scope *s,
			const struct tree *item)
{
	im->has_rules = true;
	return ip2nets_file_item(&im->plan, s, item, im->mode == IMPORT_ADD,
				 &im->rule_applied);
}

static int fault_item(struct import *im, const struct scope *s,
		      const struct tree *item)
{
	return fault_file_item(&im->plan, s, item, im->mode == IMPORT_ADD);
}

static int inquire_item(struct import *im, const struct scope *s,
			const struct tree *item, enum inquiry_kind kind)
{
	struct scope ps = *s;
	struct inquiry q;
	int rc;

	ps.subject.top = "manage";
	ps.lenient = false;
	rc = inquiry_read(&ps, item, kind, &q);
	return rc ? rc : inquire(im->plan.node, &ps, &q, im->request->cancel);
}

/* "ping: [ {nids: [...], timeout: 5} ]", or what ping prints. */
static int ping_item(struct import *im, const struct scope *s,
		     const struct tree *item)
{
	return inquire_item(im, s, item, INQUIRY_PING);
}

static int discover_item(struct import *im, const struct scope *s,
			 const struct tree *item)
{
	return inquire_item(im, s, item, INQUIRY_DISCOVER);
}

/* ---- sections that are mappings ---- */

static int set_bonding(const struct scope *s, const struct tree *t,
		       const char *name)
{
	int64_t v;
	int rc = scope_number(s, t, INT64_MIN, INT64_MAX, &v);

	if (rc || !bonding_set(s->answer, v))
		return rc;
	return scope_fail(s, t, -EINVAL, "%s: %" PRId64 " is not in 0..1", name,
			  v);
}

static int set_setting(struct import *im, const struct scope *s,
		       const struct tree *t, const char *name)
{
	const struct ulnet_setting *setting =
		settings_find(&im->settings, name);
	int64_t v;
	int rc;

	if (bonding_is_setting(name))
		return set_bonding(s, t, name);
	if (!setting)
		return scope_unknown(s, t, "setting",
				     settings_near(&im->settings, name));
	rc = scope_number(s, t, INT64_MIN, INT64_MAX, &v);
	if (rc)
		return rc;
	rc = setting_check(setting, v);
	switch (rc) {
	case 0:
		return plan_set(&im->plan, s, t, setting, v);
	case -EPERM: /* printed, and of no meaning as configuration */
		return 0;
	case -EOPNOTSUPP: /* in files of kernel nodes, which have no use for
			   * it either */
		answer_note(s->answer, "%s: %" PRId64 " is " SETTING_FIXED,
			    name, v);
		return 0;
	default:
		return scope_fail(s, t, rc,
				  "%s: %" PRId64 " is not in %" PRId64
				  "..%" PRId64,
				  name, v, setting->min, setting->max);
	}
}

static int global(struct import *im, const struct scope *s,
		  const struct tree *map)
{
	const struct tree *t;
	int rc = scope_map(s, map);

	if (im->mode == IMPORT_SHOW)
		return show_settings(im->plan.node, answer_output(s->answer));
	tree_for_each (t, map) {
		if (rc)
			break;
		if (strcmp(t->key, "seq_no") != 0)
			rc = set_setting(im, s, t, t->key);
	}
	return rc;
}

static int numa(struct import *im, const struct scope *s,
		const struct tree *map)
{
	static const char *const keys[] = { "range", "seq_no", NULL };
	const struct tree *range = tree_get(map, "range");
	int rc = scope_keys(s, map, keys);

	if (rc || !range || im->mode == IMPORT_SHOW)
		return rc;
	return set_setting(im, s, range, "numa_range");
}

static int buffers(struct import *im, const struct scope *s,
		   const struct tree *map)
{
	return buffers_file(&im->plan, s, map);
}

static int statistics(struct import *im, const struct scope *s,
		      const struct tree *map)
{
	(void)map;
	if (im->mode != IMPORT_SHOW)
		return 0;
	return show_stats(im->plan.node, answer_output(s->answer));
}

/* ---- the file ---- */

#define M(mode)	   (1u << IMPORT_##mode)
#define M_ADD_DEL  (M(ADD) | M(DEL))
#define M_NOT_EXEC (M(ADD) | M(DEL) | M(SHOW))

static const struct section {
	const char *name;
	unsigned int modes; /* in which it means something */
	bool sequence;	    /* of items; else fn is called once */
	int (*fn)(struct import *im, const struct scope *s,
		  const struct tree *t);
} sections[] = {
	{ "net", M_NOT_EXEC, true, net_item },
	{ "routing", M_NOT_EXEC, true, routing_item },
	{ "route", M_NOT_EXEC, true, route_item },
	{ "peer", M_NOT_EXEC, true, peer_item },
	{ "ip2nets", M_ADD_DEL, true, ip2nets_item },
	{ "buffers", M(ADD), false, buffers },
	{ "statistics", M_NOT_EXEC, false, statistics },
	{ "global", M(ADD) | M(SHOW), false, global },
	{ "numa", M(ADD) | M(SHOW), false, numa },
	{ "ping", M(EXEC), true, ping_item },
	{ "discover", M(EXEC), true, discover_item },
	{ "udsp", M_NOT_EXEC, true, udsp_item },
	{ "fault", M_ADD_DEL, true, fault_item },
};

/* The one that a top-level key begins with. */
static const struct section *section_of(const char *key)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(sections); i++)
		if (!strncmp(key, sections[i].name, strlen(sections[i].name)))
			return &sections[i];
	return NULL;
}

/* An item that was read, with @rc, is carried out by itself if errors of others
 * are none of its business. Returns what the next item is to be begun with. */
static int item_end(struct import *im, struct scope *s, int rc)
{
	if (!im->ignore_errors)
		return rc;
	if (!rc)
		(void)plan_run(&im->plan);
	plan_fini(&im->plan);
	plan_init(&im->plan, im->request->control->node);
	im->plan.keep_notes = true;
	/* Which values make a step depends on those that there are now. */
	rc = settings_read(im->plan.node, &im->settings);
	return rc ? scope_fail(s, NULL, rc, "cannot get settings: %s",
			       strerror(-rc))
		  : 0;
}

/* Rules of which none is about this host are as wrong as a network without
 * interfaces. */
static int check_rules(struct import *im, const struct scope *s,
		       const struct tree *t)
{
	bool idle = im->has_rules && !im->rule_applied;

	im->has_rules = im->rule_applied = false;
	return idle ? scope_fail(s, t, -ENOENT,
				 "no rule matches an address of this host")
		    : 0;
}

static int section_run(struct import *im, const struct section *sec,
		       struct scope *s, const struct tree *t)
{
	const struct tree *item = NULL;
	int rc;

	s->subject.item = sec->name;
	if (!(sec->modes & 1u << im->mode))
		return 0;
	if (!sec->sequence) {
		s->subject.seq_no = tree_get(t, "seq_no");
		return item_end(im, s, sec->fn(im, s, t));
	}
	rc = t->kind == TREE_SCALAR && im->mode == IMPORT_EXEC
		     ? 0
		     : scope_seq(s, t);
	while (!rc && (item = list_next(t, item))) {
		s->index++;
		s->subject.seq_no = tree_get(item, "seq_no");
		rc = item_end(im, s, sec->fn(im, s, item));
	}
	return rc ? rc : check_rules(im, s, t);
}

/* Settings come first, wherever they stand in the file: what interfaces stand
 * for, and what is said on the first connection, goes by them. */
static bool is_early(const struct import *im, const struct section *sec)
{
	return sec && sec->fn == global && im->mode == IMPORT_ADD;
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

static int import_tree(struct import *im, const struct tree *root)
{
	struct scope s = {
		.answer = im->request->answer,
		.subject = { mode_names[im->mode], "import", NULL },
		.places = true,
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
	return im->mode == IMPORT_EXEC || im->ignore_errors
		       ? im->request->answer->status
		       : plan_run(&im->plan);
}

static int import_parsed(struct request *r, const struct tree *root,
			 enum import_mode mode, unsigned int flags)
{
	bool lock = !(flags & IMPORT_LOCKED) && mode != IMPORT_EXEC;
	struct import im = {
		.request = r,
		.mode = mode,
		.ignore_errors =
			flags & IMPORT_IGNORE_ERRORS && mode != IMPORT_EXEC,
	};
	int rc;

	plan_init(&im.plan, r->control->node);
	im.plan.keep_notes = im.ignore_errors;
	if (lock)
		pthread_mutex_lock(&r->control->lock);
	rc = settings_read(im.plan.node, &im.settings);
	if (lock && r->control->down)
		rc = request_down(r);
	else if (rc)
		scope_fail(&r->scope, NULL, rc, "cannot get settings: %s",
			   strerror(-rc));
	else
		rc = import_tree(&im, root);
	if (lock)
		pthread_mutex_unlock(&r->control->lock);
	plan_fini(&im.plan);
	return rc;
}

int import_text(struct request *r, const char *text, enum import_mode mode,
		unsigned int flags)
{
	const struct subject subject = { mode_names[mode], "import", NULL };
	struct tree_error err;
	struct doc *doc;
	int rc = tree_parse(text, strlen(text), &request_limits, &doc, &err);

	if (rc) {
		answer_error(r->answer, &subject, rc, "line %u, column %u: %s",
			     err.line, err.column, err.what);
		return rc;
	}
	rc = import_parsed(r, doc_root(doc), mode, flags);
	doc_free(doc);
	return rc;
}
