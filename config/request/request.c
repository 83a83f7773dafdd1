/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/request/request.h"

#include <errno.h>
#include <inttypes.h>

#include "config/metrics/metrics.h"

/* ---- the node as one text ---- */

/* A request that prints the node as one text: the function; the text's name,
 * for errors; how many peers are in it by default, and at most. */
struct print {
	int (*fn)(FILE *out, struct lnet *node, unsigned int peers);
	const char *what;
	int64_t peers, peers_max;
};

static void request_print(struct request *r, const struct print *print)
{
	struct lnet *node = r->control->node;
	int64_t peers = print->peers;
	size_t size;
	char *text;
	FILE *out;
	int rc = -ENOMEM;

	if (scope_number(&r->scope, tree_get(r->args, "peers"), 0,
			 print->peers_max, &peers))
		return;
	out = open_memstream(&text, &size);
	if (out)
		rc = text_end(out, print->fn(out, node, (unsigned int)peers),
			      &text);
	if (cannot_get(&r->scope, rc, print->what))
		return;
	tree_text(answer_output(r->answer), "text", TREE_DOUBLE, text);
	free(text);
}

/* Metrics have lower limits of peers than counters, because the size of an
 * answer is limited and each peer NI has some forty time series. */
static const struct print metrics = { metrics_print, "metrics", 256, 10000 };
static const struct print top = { top_print, "counters", 1000, 100000 };
static const struct print drawing = { dot_print, "configuration", 0, 0 };

/* ---- show ---- */

static int routing_show(struct lnet *node, struct tree *out)
{
	return show_routing(node, false, out);
}

static void export(struct request *r)
{
	bool backup = false, kernel = false, dot = false;

	if (scope_bool(&r->scope, tree_get(r->args, "backup"), &backup) ||
	    scope_bool(&r->scope, tree_get(r->args, "kernel"), &kernel) ||
	    scope_bool(&r->scope, tree_get(r->args, "dot"), &dot))
		return;
	if (dot && (backup || kernel))
		scope_fail(&r->scope, tree_get(r->args, "dot"), -EINVAL,
			   "dot: a drawing is no backup: give one of them");
	else if (dot)
		request_print(r, &drawing);
	else
		cannot_get(&r->scope,
			   show_all(r->control->node, backup, kernel,
				    answer_output(r->answer)),
			   "configuration");
}

/* ---- the node as a whole ---- */

static void stats_reset(struct request *r)
{
	int rc = lnet_stats_reset(r->control->node);

	if (rc)
		scope_fail(&r->scope, NULL, rc, "cannot reset statistics: %s",
			   strerror(-rc));
}

static void lnet_configure(struct request *r)
{
	struct lnet_control *c = r->control;
	bool all = false, large = false;
	int rc;

	if (scope_bool(&r->scope, tree_get(r->args, "all"), &all) ||
	    scope_bool(&r->scope, tree_get(r->args, "large"), &large))
		return;
	if (!c->down) {
		scope_fail(&r->scope, NULL, -EBUSY,
			   "LNet configure error: Object busy");
		return;
	}
	rc = large ? lnet_setting_set(c->node, "large_nids", 1) : 0;
	if (rc) {
		scope_fail(&r->scope, NULL, rc, "cannot set large_nids: %s",
			   strerror(-rc));
		return;
	}
	if (!all || !import_config(r, c->start))
		c->down = false;
	/* Without the configuration, this setting is not changed either. */
	else if (large)
		(void)lnet_setting_set(c->node, "large_nids", 0);
}

static int request_plan_nothing(struct plan *plan, const struct scope *s)
{
	struct ulnet_ni_info info;
	int rc = plan_need_settings(plan, s);

	if (!rc)
		rc = routes_forget(plan, s);
	if (!rc)
		rc = policies_forget(plan, s);
	for (unsigned int i = 1; !rc && !lnet_ni_info(plan->node, i, &info);
	     i++)
		rc = plan_ni_del(plan, s, NULL, &info);
	if (!rc)
		rc = tls_forget(plan, s);
	for (unsigned int i = 0; !rc && i < plan->settings.n; i++)
		if (!plan->settings.all[i].derived)
			rc = plan_set(plan, s, NULL, &plan->settings.all[i],
				      plan->settings.all[i].def);
	return rc;
}

/* Deletes all peers that were added by configuration. */
static int forget_peers(struct lnet *node)
{
	struct peer_list list;
	int rc = peer_list_read(node, &list);

	if (rc)
		return rc;
	peer_list_keep_configured(&list);
	for (unsigned int i = 0; !rc && i < list.n;
	     i += peer_list_span(&list, i)) {
		rc = lnet_peer_del(node, &list.infos[i].primary, NULL, 0);
		if (rc == -ENOENT) /* the peer has gone meanwhile */
			rc = 0;
	}
	peer_list_free(&list);
	return rc;
}

/* Deletes peers and fault rules, of which there may be more than a plan has
 * room for. */
static void forget_rest(struct request *r)
{
	int rc = forget_peers(r->control->node);

	if (rc)
		scope_fail(&r->scope, NULL, rc, "cannot delete peers: %s",
			   strerror(-rc));
	rc = lnet_fault_del(r->control->node, LNET_FAULT_KINDS, NULL, NULL);
	if (rc < 0)
		scope_fail(&r->scope, NULL, rc, "cannot delete fault rules: %s",
			   strerror(-rc));
}

static void lnet_unconfigure(struct request *r)
{
	struct plan plan;

	plan_init(&plan, r->control->node, r->cancel);
	if (!request_plan_nothing(&plan, &r->scope) && !plan_run(&plan)) {
		r->control->down = true;
		forget_rest(r);
	}
	plan_fini(&plan);
}

/* ---- asking peers ---- */

static void ping(struct request *r)
{
	inquire(r->control->node, &r->scope, r->args, INQUIRY_PING, r->cancel);
}

static void discover(struct request *r)
{
	inquire(r->control->node, &r->scope, r->args, INQUIRY_DISCOVER,
		r->cancel);
}

/* ---- commands that programs may have ---- */

static void no_rpc(struct request *r)
{
	scope_fail(&r->scope, NULL, -EOPNOTSUPP, "this node runs no RPC");
}

static void no_reload(struct request *r)
{
	scope_fail(&r->scope, NULL, -EOPNOTSUPP,
		   "this program does not read keys again");
}

/* ---- the table ---- */

enum {
	/* is carried out outside of the turns to change the node: it reads
	 * only, or waits, or takes a turn itself */
	CMD_UNLOCKED = 1,
	CMD_WHEN_DOWN = 2, /* is also carried out while LNet is down */
	CMD_PROGRAM = 4,   /* a command of the program's own; fn is called if
			    * the program has not added it */
};

static const struct command {
	const char *name;
	const char *top, *item; /* subject of errors: struct subject */
	/* keys of arguments; NULL: the function that carries it out checks them
	 */
	const char *const *keys;
	unsigned int flags;
	/* One of fn, show, print and plan carries it out. */
	request_fn *fn;
	int (*show)(struct lnet *node, struct tree *out);
	const char *what; /* for the error "cannot get WHAT"; NULL: .item */
	const struct print *print;
	plan_fn *plan;
} commands[] = {
#define KEYS(...)                     \
	.keys = (const char *const[]) \
	{                             \
		__VA_ARGS__, NULL     \
	}
#define PROGRAM \
	.flags = CMD_PROGRAM | CMD_UNLOCKED | CMD_WHEN_DOWN, .fn = no_rpc
	/* clang-format off */
	{ "net add", "add", "net", .plan = net_args },
	{ "net del", "del", "net", .plan = net_args },
	{ "net show", "show", "net", KEYS("net", "verbose"),
	  .flags = CMD_UNLOCKED, .fn = net_show },
	{ "net set", "set", "net",
	  KEYS("nid", "all", "health", "net", "conns_per_peer", "lnd_timeout"),
	  .fn = health_net_set },
	{ "peer show", "show", "peer", KEYS("nid", "verbose"),
	  .flags = CMD_UNLOCKED, .fn = peer_show },
	{ "peer list", "show", "peer", KEYS(NULL), .flags = CMD_UNLOCKED,
	  .show = show_peer_list, .what = "peer information" },
	{ "peer add", "add", "peer", .plan = peer_args },
	{ "peer del", "del", "peer", .plan = peer_args },
	{ "peer set", "set", "peer", KEYS("nid", "all", "health", "state"),
	  .fn = health_peer_set },
	{ "path show", "show", "path", KEYS("nid", "source"),
	  .flags = CMD_UNLOCKED, .fn = path_show },
	{ "stats show", "show", "statistics", KEYS(NULL),
	  .flags = CMD_UNLOCKED, .show = show_stats },
	{ "stats reset", "reset", "statistics", KEYS(NULL),
	  .fn = stats_reset },
	{ "global show", "show", "global", KEYS(NULL), .flags = CMD_UNLOCKED,
	  .show = show_settings, .what = "settings" },
	{ "set", "add", "set", .plan = setting_args },
	{ "ping", "manage", "ping", .flags = CMD_UNLOCKED, .fn = ping },
	{ "discover", "manage", "discover", .flags = CMD_UNLOCKED,
	  .fn = discover },
	{ "import", "import", "import", KEYS("mode", "text", "ignore_errors"),
	  .flags = CMD_UNLOCKED, .fn = import_request },
	{ "export", "export", "export", KEYS("backup", "kernel", "dot"),
	  .fn = export },
	{ "lnet configure", "configure", "lnet", KEYS("all", "large"),
	  .flags = CMD_WHEN_DOWN, .fn = lnet_configure },
	{ "lnet unconfigure", "unconfigure", "lnet", KEYS(NULL),
	  .fn = lnet_unconfigure },
	{ "route add", "add", "route", .plan = route_args },
	{ "route del", "del", "route", .plan = route_args },
	{ "route show", "show", "route",
	  KEYS("net", "gateway", "hop", "priority", "verbose"),
	  .flags = CMD_UNLOCKED, .fn = route_show },
	{ "routing show", "show", "routing", KEYS(NULL),
	  .flags = CMD_UNLOCKED, .show = routing_show },
	{ "top", "show", "top", KEYS("peers"), .flags = CMD_UNLOCKED,
	  .print = &top },
	{ "metrics", "show", "metrics", KEYS("peers"),
	  .flags = CMD_WHEN_DOWN | CMD_UNLOCKED, .print = &metrics },
	{ "udsp add", "add", "udsp", .plan = policy_args },
	{ "udsp del", "del", "udsp", .plan = policy_args },
	{ "udsp show", "show", "udsp", KEYS("idx"), .flags = CMD_UNLOCKED,
	  .fn = policy_show },
	{ "tls set", "add", "tls", .plan = tls_args },
	{ "tls del", "del", "tls", .plan = tls_args },
	{ "tls show", "show", "tls", KEYS("name"), .flags = CMD_UNLOCKED,
	  .fn = tls_show },
	{ "debug recovery", "show", "recovery", KEYS("local", "peer"),
	  .flags = CMD_UNLOCKED, .fn = debug_recovery },
	{ "debug peer", "show", "peer", KEYS("nid"), .flags = CMD_UNLOCKED,
	  .fn = debug_peer },
	{ "debug objects", "show", "objects", KEYS(NULL), .flags = CMD_UNLOCKED,
	  .show = show_objects },
	{ "fault", "manage", "fault",
	  KEYS("rule_type", "action", "source", "dest", "local_nid", "portal",
	       "message", "rate", "interval", "random", "drop_all", "latency",
	       "health_error", "all"),
	  .fn = fault_request },
	{ "cpt-of-nid", "manage", "cpt-of-nid", KEYS("nids"),
	  .flags = CMD_UNLOCKED, .fn = debug_cpt_of_nid },
	{ "rpc show", "show", "rpc", PROGRAM },
	{ "rpc slow", "show", "rpc", PROGRAM },
	{ "rpc top", "show", "rpc", PROGRAM },
	{ "rpc set", "set", "rpc", PROGRAM },
	{ "rpc metrics", "show", "rpc", PROGRAM },
	{ "rpc reset", "reset", "rpc", PROGRAM },
	{ "rpc rules", "set", "rpc", PROGRAM },
	{ "reload", "reload", "keys",
	  .flags = CMD_PROGRAM | CMD_UNLOCKED | CMD_WHEN_DOWN,
	  .fn = no_reload },
	/* clang-format on */
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

static void command_carry_out(const struct command *cmd, struct request *r)
{
	struct plan plan;

	if (cmd->fn) {
		cmd->fn(r);
	} else if (cmd->print) {
		request_print(r, cmd->print);
	} else if (cmd->show) {
		cannot_get(
			&r->scope,
			cmd->show(r->control->node, answer_output(r->answer)),
			cmd->what ? cmd->what : cmd->item);
	} else {
		plan_init(&plan, r->control->node, r->cancel);
		if (!cmd->plan(&plan, &r->scope, r->args,
			       !strcmp(cmd->top, "add")))
			(void)plan_run(&plan);
		plan_fini(&plan);
	}
}

/* ---- one change at a time ---- */

static void turn_wake(void *arg)
{
	struct lnet_control *c = arg;

	pthread_mutex_lock(&c->lock);
	pthread_cond_broadcast(&c->turn);
	pthread_mutex_unlock(&c->lock);
}

bool control_take(struct lnet_control *c, struct cancel *cancel)
{
	bool taken;

	cancel_watch(cancel, turn_wake, c);
	pthread_mutex_lock(&c->lock);
	while (c->busy && !cancel_is_due(cancel))
		pthread_cond_wait(&c->turn, &c->lock);
	taken = !c->busy;
	c->busy = true;
	pthread_mutex_unlock(&c->lock);
	cancel_watch(cancel, NULL, NULL);
	return taken;
}

void control_give(struct lnet_control *c)
{
	pthread_mutex_lock(&c->lock);
	c->busy = false;
	pthread_cond_broadcast(&c->turn);
	pthread_mutex_unlock(&c->lock);
}

bool request_take(struct request *r)
{
	if (control_take(r->control, r->cancel))
		return true;
	scope_fail(&r->scope, NULL, -ECANCELED, "nobody waits for the answer");
	return false;
}

static void command_run(const struct command *cmd, struct request *r)
{
	bool locked = !(cmd->flags & CMD_UNLOCKED);

	if (locked && !request_take(r))
		return;
	if (atomic_load(&r->control->down) && !(cmd->flags & CMD_WHEN_DOWN))
		request_down(r);
	else
		command_carry_out(cmd, r);
	if (locked)
		control_give(r->control);
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
	r.scope.subject = cmd ? (struct subject){ cmd->top, cmd->item, NULL }
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
