/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "config/bonding.h"
#include "config/debug.h"
#include "config/dot.h"
#include "config/fault.h"
#include "config/health.h"
#include "config/import.h"
#include "config/item.h"
#include "config/metrics.h"
#include "config/path.h"
#include "config/peer.h"
#include "config/program.h"
#include "config/policy.h"
#include "config/route.h"
#include "config/setting.h"
#include "config/show.h"
#include "config/top.h"

int request_down(struct request *r)
{
	answer_error(r->answer, &r->scope.subject, -ENETDOWN,
		     "LNet is not configured: %s", strerror(ENETDOWN));
	return -ENETDOWN;
}

/* The state of the node could not be read. */
static void cannot_get(struct request *r, int rc, const char *what)
{
	if (rc == -EMSGSIZE)
		scope_fail(&r->scope, NULL, rc,
			   "%s: too many to show them all; ask for one (nid)",
			   what);
	else if (rc)
		scope_fail(&r->scope, NULL, rc, "cannot get %s: %s", what,
			   strerror(-rc));
}

/* ---- show ---- */

static int read_verbose(struct request *r, int *verbose_p)
{
	const struct tree *t = tree_get(r->args, "verbose");
	int64_t v = 0;
	int rc = t ? scope_number(&r->scope, t, 0, INT32_MAX, &v) : 0;

	*verbose_p = (int)v;
	return rc;
}

static void net_show(struct request *r)
{
	struct show show = { .net = LNET_NET_ANY, .nid = LNET_NID_ANY };
	const struct tree *net = tree_get(r->args, "net");
	const char *text;

	if (read_verbose(r, &show.verbose))
		return;
	if (net && scope_text(&r->scope, net, &text))
		return;
	if (net && lnet_net_parse(text, &show.net)) {
		scope_fail(&r->scope, net, -ENOENT, "cannot parse net '%s'",
			   text);
		return;
	}
	cannot_get(r,
		   show_nets(r->control->node, &show, answer_output(r->answer)),
		   "networks");
}

static void peer_show(struct request *r)
{
	struct show show = { .net = LNET_NET_ANY, .nid = LNET_NID_ANY };
	const struct tree *nid = tree_get(r->args, "nid");
	int rc;

	if (read_verbose(r, &show.verbose))
		return;
	if (nid && item_nid(&r->scope, nid, &show.nid))
		return;
	rc = show_peers(r->control->node, &show, answer_output(r->answer));
	if (nid && rc == -ENOENT)
		scope_fail(&r->scope, nid, rc,
			   "cannot get peer information of %s: no such peer",
			   nid->text);
	else
		cannot_get(r, rc, "peer information");
}

static void peer_list(struct request *r)
{
	cannot_get(r,
		   show_peer_list(r->control->node, answer_output(r->answer)),
		   "peer information");
}

static void stats_show(struct request *r)
{
	cannot_get(r, show_stats(r->control->node, answer_output(r->answer)),
		   "statistics");
}

static void global_show(struct request *r)
{
	cannot_get(r, show_settings(r->control->node, answer_output(r->answer)),
		   "settings");
}

/* The drawing becomes the answer's text. */
static int draw(struct request *r)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int rc, failed;

	if (!out)
		return -ENOMEM;
	rc = dot_print(r->control->node, out);
	failed = ferror(out);
	failed |= fclose(out);
	if (!rc && failed)
		rc = -ENOMEM;
	if (!rc)
		tree_text(answer_output(r->answer), "text", TREE_DOUBLE, text);
	free(text);
	return rc;
}

static void export(struct request *r)
{
	const struct tree *t = tree_get(r->args, "backup");
	const struct tree *d = tree_get(r->args, "dot");
	bool backup = false, dot = false;

	if (t && scope_bool(&r->scope, t, &backup))
		return;
	if (d && scope_bool(&r->scope, d, &dot))
		return;
	if (dot && backup) {
		scope_fail(&r->scope, d, -EINVAL,
			   "dot: a drawing is no backup: give one of them");
		return;
	}
	if (dot)
		cannot_get(r, draw(r), "configuration");
	else
		cannot_get(r,
		   show_all(r->control->node, backup, answer_output(r->answer)),
		   "configuration");
}

/* ---- changes ---- */

static void net_add(struct request *r)
{
	struct plan plan;

	plan_init(&plan, r->control->node);
	if (!item_net_add(&plan, &r->scope, r->args))
		(void)plan_run(&plan);
	plan_fini(&plan);
}

static void net_del(struct request *r)
{
	struct plan plan;

	plan_init(&plan, r->control->node);
	if (!item_net_del(&plan, &r->scope, r->args))
		(void)plan_run(&plan);
	plan_fini(&plan);
}

static void peer_change(struct request *r, bool add)
{
	struct plan plan;

	plan_init(&plan, r->control->node);
	if (!peer_args(&plan, &r->scope, r->args, add))
		(void)plan_run(&plan);
	plan_fini(&plan);
}

static void peer_add(struct request *r)
{
	peer_change(r, true);
}

static void peer_del(struct request *r)
{
	peer_change(r, false);
}

static void stats_reset(struct request *r)
{
	int rc = lnet_stats_reset(r->control->node);

	if (rc)
		scope_fail(&r->scope, NULL, rc, "cannot reset statistics: %s",
			   strerror(-rc));
}

static int set_bonding(struct request *r, const struct tree *t, int64_t v)
{
	int rc = bonding_set(r->answer, v);

	if (rc)
		scope_set_fail(&r->scope, t->key, rc, "not in 0..1");
	return rc;
}

static int set_one(struct request *r, struct plan *plan,
		   const struct settings *settings, const struct tree *t)
{
	const struct ulnet_setting *s = settings_find(settings, t->key);
	char why[128];
	int64_t v;
	int rc;

	if (!tree_number(t, &v)) {
		snprintf(why, sizeof(why), "cannot parse %.64s value", t->key);
		answer_setting_error(r->answer, "parser", "set", -1, why);
		return -1;
	}
	if (routing_is_setting(t->key))
		return routing_set(plan, &r->scope, t, t->key, v);
	if (bonding_is_setting(t->key))
		return set_bonding(r, t, v);
	rc = setting_check(s, v);
	switch (rc) {
	case 0:
		return plan_set(plan, &r->scope, t, s, v);
	case -ENOENT:
		snprintf(why, sizeof(why), "no such setting");
		break;
	case -EPERM:
		snprintf(why, sizeof(why), "it follows from others");
		break;
	case -EOPNOTSUPP:
		snprintf(why, sizeof(why), SETTING_FIXED);
		break;
	default:
		snprintf(why, sizeof(why), "%s (%" PRId64 "..%" PRId64 ")",
			 strerror(-rc), s->min, s->max);
	}
	scope_set_fail(&r->scope, t->key, rc, why);
	return rc;
}

static void set(struct request *r)
{
	struct settings settings;
	const struct tree *t;
	struct plan plan;
	int rc = settings_read(r->control->node, &settings);

	cannot_get(r, rc, "settings");
	r->scope.set = true;
	plan_init(&plan, r->control->node);
	tree_for_each (t, r->args)
		if (!rc)
			rc = set_one(r, &plan, &settings, t);
	if (!rc && !r->args->count)
		scope_fail(&r->scope, r->args, -EINVAL, "no setting is given");
	else if (!rc)
		(void)plan_run(&plan);
	plan_fini(&plan);
}

/* ---- the node as a whole ---- */

static void lnet_configure(struct request *r)
{
	struct lnet_control *c = r->control;
	const struct tree *t = tree_get(r->args, "all");
	bool all = false, large = false;

	if (t && scope_bool(&r->scope, t, &all))
		return;
	t = tree_get(r->args, "large");
	if (t && scope_bool(&r->scope, t, &large))
		return;
	if (!c->down) {
		scope_fail(&r->scope, NULL, -EBUSY,
			   "LNet configure error: Object busy");
		return;
	}
	if (large && lnet_setting_set(c->node, "large_nids", 1))
		return;
	if (!all || !import_text(r, c->start, IMPORT_ADD, IMPORT_LOCKED))
		c->down = false;
}

static int plan_nothing(struct plan *plan, const struct scope *s)
{
	struct settings settings;
	struct ulnet_ni_info info;
	int rc = settings_read(plan->node, &settings);

	if (rc)
		return scope_fail(s, NULL, rc, "cannot get settings: %s",
				  strerror(-rc));
	rc = routes_forget(plan, s);
	if (!rc)
		rc = policies_forget(plan, s);
	for (unsigned int i = 1; !rc && !lnet_ni_info(plan->node, i, &info);
	     i++)
		rc = plan_ni_del(plan, s, NULL, &info);
	for (unsigned int i = 0; !rc && i < settings.n; i++)
		if (!settings.all[i].derived)
			rc = plan_set(plan, s, NULL, &settings.all[i],
				      settings.all[i].def);
	return rc;
}

/* What is no step: there may be more of it than a plan has room for. */
static void forget_rest(struct request *r)
{
	int rc = peer_unconfigure_all(r->control->node);

	if (rc)
		scope_fail(&r->scope, NULL, rc, "cannot delete peers: %s",
			   strerror(-rc));
	rc = fault_forget(r->control->node);
	if (rc)
		scope_fail(&r->scope, NULL, rc, "cannot delete fault rules: %s",
			   strerror(-rc));
}

static void lnet_unconfigure(struct request *r)
{
	struct plan plan;

	plan_init(&plan, r->control->node);
	if (!plan_nothing(&plan, &r->scope) && !plan_run(&plan)) {
		r->control->down = true;
		forget_rest(r);
	}
	plan_fini(&plan);
}

/* ---- without the lock ---- */

static bool is_down(struct request *r)
{
	bool down;

	pthread_mutex_lock(&r->control->lock);
	down = r->control->down;
	pthread_mutex_unlock(&r->control->lock);
	if (down)
		request_down(r);
	return down;
}

static void inquire_of(struct request *r, enum inquiry_kind kind)
{
	struct inquiry q;

	if (!is_down(r) && !inquiry_read(&r->scope, r->args, kind, &q))
		inquire(r->control->node, &r->scope, &q, r->cancel);
}

static void ping(struct request *r)
{
	inquire_of(r, INQUIRY_PING);
}

static void discover(struct request *r)
{
	inquire_of(r, INQUIRY_DISCOVER);
}

static void import(struct request *r)
{
	static const char *const modes[] = { "add", "del", "show", "exec" };
	const struct tree *t = tree_get(r->args, "mode");
	const struct tree *file = tree_get(r->args, "text");
	const struct tree *ignore = tree_get(r->args, "ignore_errors");
	const char *text = "", *mode = "add";
	bool goes_on = false;
	unsigned int i;

	if (is_down(r))
		return;
	if (!file) {
		scope_misread(&r->scope, r->args, "import: text is missing");
		return;
	}
	if (file->kind == TREE_SCALAR)
		text = file->text; /* of an empty file, too */
	else if (scope_text(&r->scope, file, &text))
		return;
	if (t && scope_text(&r->scope, t, &mode))
		return;
	if (ignore && scope_bool(&r->scope, ignore, &goes_on))
		return;
	for (i = 0; i < ARRAY_SIZE(modes) && strcmp(mode, modes[i]) != 0; i++)
		;
	if (i == ARRAY_SIZE(modes))
		scope_misread(&r->scope, t,
			      "mode: add, del, show or exec is expected");
	else
		import_text(r, text, (enum import_mode)i,
			    goes_on ? IMPORT_IGNORE_ERRORS : 0);
}

/* ---- commands that programs may have ---- */

static void rpc_absent(struct request *r)
{
	scope_fail(&r->scope, NULL, -EOPNOTSUPP, "this node runs no RPC");
}

/* ---- the table ---- */

#define KEYS(...) ((const char *const[]){ __VA_ARGS__, NULL })

enum {
	CMD_UNLOCKED = 1,  /* takes the lock itself, and looks whether LNet is
			    * down */
	CMD_WHEN_DOWN = 2, /* makes sense then, too */
	CMD_PROGRAM = 4,   /* the program may add it; fn is for when it has
			    * not */
};

static const struct command {
	const char *name;
	struct subject subject;
	void (*fn)(struct request *r);
	const char *const *keys; /* NULL: fn looks itself */
	unsigned int flags;
} commands[] = {
	{ "net add", { "add", "net", NULL }, net_add, NULL, 0 },
	{ "net del", { "del", "net", NULL }, net_del, NULL, 0 },
	{ "net show",
	  { "show", "net", NULL },
	  net_show,
	  KEYS("net", "verbose"),
	  0 },
	{ "net set", { "set", "net", NULL }, health_net_set, net_set_keys, 0 },
	{ "peer show",
	  { "show", "peer", NULL },
	  peer_show,
	  KEYS("nid", "verbose"),
	  0 },
	{ "peer list", { "show", "peer", NULL }, peer_list, KEYS(NULL), 0 },
	{ "peer add", { "add", "peer", NULL }, peer_add, NULL, 0 },
	{ "peer del", { "del", "peer", NULL }, peer_del, NULL, 0 },
	{ "peer set",
	  { "set", "peer", NULL },
	  health_peer_set,
	  peer_set_keys,
	  0 },
	{ "path show", { "show", "path", NULL }, path_show, path_keys, 0 },
	{ "stats show",
	  { "show", "statistics", NULL },
	  stats_show,
	  KEYS(NULL),
	  0 },
	{ "stats reset",
	  { "reset", "statistics", NULL },
	  stats_reset,
	  KEYS(NULL),
	  0 },
	{ "global show",
	  { "show", "global", NULL },
	  global_show,
	  KEYS(NULL),
	  0 },
	{ "set", { "add", "set", NULL }, set, NULL, 0 },
	{ "ping", { "manage", "ping", NULL }, ping, NULL, CMD_UNLOCKED },
	{ "discover",
	  { "manage", "discover", NULL },
	  discover,
	  NULL,
	  CMD_UNLOCKED },
	{ "import",
	  { "import", "import", NULL },
	  import,
	  KEYS("mode", "text", "ignore_errors"),
	  CMD_UNLOCKED },
	{ "export",
	  { "export", "export", NULL },
	  export,
	  KEYS("backup", "dot"),
	  0 },
	{ "lnet configure",
	  { "configure", "lnet", NULL },
	  lnet_configure,
	  KEYS("all", "large"),
	  CMD_WHEN_DOWN },
	{ "lnet unconfigure",
	  { "unconfigure", "lnet", NULL },
	  lnet_unconfigure,
	  KEYS(NULL),
	  0 },
	{ "route add", { "add", "route", NULL }, route_add, NULL, 0 },
	{ "route del", { "del", "route", NULL }, route_del, NULL, 0 },
	{ "route show",
	  { "show", "route", NULL },
	  route_show,
	  route_show_keys,
	  0 },
	{ "routing show",
	  { "show", "routing", NULL },
	  routing_show,
	  KEYS(NULL),
	  0 },
	{ "top", { "show", "top", NULL }, top_request, top_keys, 0 },
	{ "metrics",
	  { "show", "metrics", NULL },
	  metrics_request,
	  metrics_keys,
	  CMD_WHEN_DOWN },
	{ "udsp add", { "add", "udsp", NULL }, policy_add, NULL, 0 },
	{ "udsp del", { "del", "udsp", NULL }, policy_del, NULL, 0 },
	{ "udsp show",
	  { "show", "udsp", NULL },
	  policy_show,
	  policy_show_keys,
	  0 },
	{ "debug recovery",
	  { "show", "recovery", NULL },
	  debug_recovery,
	  debug_recovery_keys,
	  0 },
	{ "debug peer",
	  { "show", "peer", NULL },
	  debug_peer,
	  debug_peer_keys,
	  0 },
	{ "fault", { "manage", "fault", NULL }, fault_request, fault_keys, 0 },
	{ "cpt-of-nid",
	  { "manage", "cpt-of-nid", NULL },
	  debug_cpt_of_nid,
	  debug_cpt_of_nid_keys,
	  0 },
	{ "rpc show",
	  { "show", "rpc", NULL },
	  rpc_absent,
	  NULL,
	  CMD_PROGRAM | CMD_UNLOCKED },
	{ "rpc metrics",
	  { "show", "rpc", NULL },
	  rpc_absent,
	  NULL,
	  CMD_PROGRAM | CMD_UNLOCKED },
	{ "rpc reset",
	  { "reset", "rpc", NULL },
	  rpc_absent,
	  NULL,
	  CMD_PROGRAM | CMD_UNLOCKED },
};

static const struct command *command_of(const char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

bool request_is_ours(const char *name)
{
	const struct command *cmd = command_of(name);

	return cmd && !(cmd->flags & CMD_PROGRAM);
}

static void command_run(const struct command *cmd, struct request *r)
{
	if (cmd->flags & CMD_UNLOCKED) {
		cmd->fn(r);
		return;
	}
	pthread_mutex_lock(&r->control->lock);
	if (r->control->down && !(cmd->flags & CMD_WHEN_DOWN))
		request_down(r);
	else
		cmd->fn(r);
	pthread_mutex_unlock(&r->control->lock);
}

void request_carry_out(struct lnet_control *control, const struct tree *root,
		       struct cancel *cancel, struct answer *answer)
{
	struct request r = {
		.control = control,
		.answer = answer,
		.cancel = cancel,
		.scope = { .answer = answer,
			   .subject = { "parser", "request", NULL } },
	};
	const struct command *cmd;
	int rc;

	if (root->kind != TREE_MAP || root->count != 1) {
		scope_misread(&r.scope, root,
			      "a mapping with one key, the command, is "
			      "expected");
		return;
	}
	r.args = list_next(root, NULL);
	cmd = command_of(r.args->key);
	r.scope.subject = cmd ? cmd->subject
			      : (struct subject){ "manage", r.args->key, NULL };
	if ((!cmd || cmd->flags & CMD_PROGRAM) && program_run(&r, r.args->key))
		return;
	if (!cmd) {
		r.scope.subject = (struct subject){ "parser", "request", NULL };
		scope_misread(&r.scope, r.args, "unknown command '%s'",
			      r.args->key);
		return;
	}
	rc = cmd->keys ? scope_keys(&r.scope, r.args, cmd->keys)
		       : scope_map(&r.scope, r.args);
	if (!rc)
		command_run(cmd, &r);
}
