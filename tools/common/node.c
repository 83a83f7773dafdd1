/* SPDX-License-Identifier: BSD-3-Clause */
#include "node.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "program.h"
#include "request.h"

/* ---- the command line ---- */

static const char *const accepts[] = {
	[LNET_ACCEPT_SECURE] = "secure",
	[LNET_ACCEPT_ALL] = "all",
	[LNET_ACCEPT_NONE] = "none",
	NULL,
};

static int take_net(const struct option_at *at)
{
	struct node_options *o = at->object;
	const char **nets;

	if (!*at->text)
		return option_bad(at, "a net is expected, like tcp(eth0)");
	nets = realloc(o->nets, (o->nnets + 1) * sizeof(o->nets[0]));
	if (!nets)
		return option_bad(at, strerror(ENOMEM));
	o->nets = nets;
	o->nets[o->nnets++] = at->text;
	return 0;
}

static int take_group(const struct option_at *at)
{
	struct node_options *o = at->object;
	const char *name = at->text;

	if (!name[strspn(name, "0123456789")] ? !*name : !getgrnam(name))
		return option_bad(at, "there is no such group");
	o->group = name;
	return 0;
}

static int take_level(const struct option_at *at)
{
	struct node_options *o = at->object;
	struct ulnet_conf_error err;

	if (lnet_log_levels_check(at->text, &err))
		return option_bad(at, err.what);
	o->log = at->text;
	return 0;
}

#define AT(field) offsetof(struct node_options, field)

const struct option_row node_net_rows[] = {
	{ "config", 'c', "FILE",
	  "configure the node with this YAML file; - is stdin",
	  .kind = OPTION_FILE, AT(config) },
	{ "net", 'n', "SPEC",
	  "add networks: tcp(eth0,eth1),tcp1(10.1.0.1); can be given several "
	  "times",
	  .kind = OPTION_CALL, .take = take_net },
	{ "ip2nets", 0, "RULES",
	  "add networks by this host's addresses: \"tcp1(eth1) 10.1.*.*; tcp2 "
	  "10.2.*.*\"",
	  .kind = OPTION_TEXT, AT(ip2nets), .min = 1 },
	{ "routes", 0, "ROUTES", "add routes: \"tcp2 10.1.0.9@tcp1\"",
	  .kind = OPTION_TEXT, AT(routes), .min = 1 },
	{ "port", 'p', "N", "TCP port to listen on and to connect to (988)",
	  .kind = OPTION_NUMBER, AT(port), 1, 65535 },
	{ "accept", 'a', "secure|all|none",
	  "accept connections from privileged ports only, from all, or from "
	  "none",
	  .kind = OPTION_WORD, AT(accept), LNET_ACCEPT_SECURE,
	  .words = accepts },
	{ 0 },
};

const struct option_row node_socket_rows[] = {
	{ "socket", 's', "PATH", "control socket for lnetctl; none by default",
	  .kind = OPTION_PATH, AT(socket) },
	{ 0 },
};

const struct option_row node_rows[] = {
	{ "group", 'g', "NAME", "group that may also use the socket",
	  .kind = OPTION_CALL, .take = take_group },
	{ "cpts", 't', "N", "number of threads that serve messages (1)",
	  .kind = OPTION_NUMBER, AT(cpts), 1, LNET_CPTS_MAX },
	{ 0 },
};

const struct option_row node_log_rows[] = {
	{ "log", 'l', "LEVELS",
	  "err, warn (default), info or debug; or of one subsystem: "
	  "info,route=debug",
	  .kind = OPTION_CALL, .take = take_level },
	{ 0 },
};

void node_options_init(struct node_options *o)
{
	*o = (struct node_options){ 0 };
}

void node_options_free(struct node_options *o)
{
	free(o->config);
	free(o->socket);
	free(o->nets);
}

void node_options_log(const struct node_options *o)
{
	if (!o->log)
		return;
	/* A level in the environment must not replace that of the command line
	 * when the node is opened. */
	unsetenv("ULNET_LOG");
	(void)lnet_log_levels_set(o->log, NULL);
}

/* ---- limits ---- */

/* The usual limit, 1024, is so low only for programs that use select(), as this
 * one does not. */
void node_raise_files(const struct say *s)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		if (files.rlim_cur == files.rlim_max)
			return;
		files.rlim_cur = files.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &files) == 0)
			return;
	}
	say(s, LNET_LOG_WARN, "the limit of open files stays as it is: %s",
	    strerror(errno));
}

/* ---- the node and its socket ---- */

int node_begin(struct node *n, const struct node_options *o,
	       const struct say *s, enum ulnet_run run)
{
	struct ulnet_conf conf;
	int rc;

	*n = (struct node){ .options = o, .say = s };
	lnet_conf_init(&conf);
	conf.run = run;
	conf.port = (uint16_t)o->port;
	conf.accept = o->accept;
	conf.keys = o->keys;
	if (o->cpts)
		conf.cpts = o->cpts;
	rc = lnet_open(&conf, &n->lnet);
	if (rc)
		say(n->say, LNET_LOG_ERR, "cannot open a node: %s",
		    strerror(-rc));
	return rc;
}

/* Makes the directory of the default socket; other directories must exist. */
static int make_directory(const struct node *n)
{
	char path[] = LNET_CTL_PATH;
	int rc;

	if (strcmp(n->options->socket, path) != 0)
		return 0;
	*strrchr(path, '/') = 0;
	if (mkdir(path, 0755) == 0 || errno == EEXIST)
		return 0;
	rc = -errno;
	say(n->say, LNET_LOG_ERR,
	    "%s: cannot make the directory: %s. As an ordinary user, say where "
	    "the socket is to be: --socket PATH",
	    path, strerror(-rc));
	return rc;
}

static const char *socket_hint(int rc)
{
	switch (rc) {
	case -EADDRINUSE:
		return ": another node listens on it; use another --socket";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return ": use --socket PATH, where this user may make it";
	case -ENOENT:
	case -ENOTDIR:
		return ": its directory does not exist";
	case -ENAMETOOLONG:
		return ": paths of sockets may have 107 bytes at most";
	}
	return "";
}

int node_control(struct node *n)
{
	struct ulnet_control_conf conf = { .path = n->options->socket,
					   .group = n->options->group };
	int rc = conf.path ? make_directory(n) : 0;

	if (rc)
		return rc;
	rc = lnet_control_start(n->lnet, &conf, &n->control);
	if (rc)
		say(n->say, LNET_LOG_ERR, "socket %s: %s%s",
		    conf.path ? conf.path : "(none)", strerror(-rc),
		    socket_hint(rc));
	return rc;
}

/* ---- configuration ---- */

/* If @rc is the error of listening on a privileged port, logs what a program
 * needs for that. */
static void hint_port(const struct node *n, int rc)
{
	unsigned int port =
		n->options->port ? n->options->port : NODE_DEFAULT_PORT;

	if (port < 1024 && (rc == -EACCES || rc == -EPERM))
		say(n->say, LNET_LOG_ERR,
		    "port %u is below 1024: that takes root or "
		    "CAP_NET_BIND_SERVICE. Among ulnet nodes any port will do, "
		    "if all have the same: --port 1024..65535",
		    port);
}

static int add_interface(const struct node *n, const char *option,
			 const char *spec, const struct ulnet_ni_conf *conf)
{
	struct ulnet_ni_conf with_why = *conf;
	char net[LNET_NIDSTR_SIZE];
	const char *why = NULL;
	int rc;

	with_why.why_p = &why;
	rc = lnet_ni_add(n->lnet, &with_why);
	if (!rc)
		return 0;
	lnet_net_format(lnet_nid_net(&conf->nid), net, sizeof(net));
	say(n->say, LNET_LOG_ERR, "--%s %s: %s(%s): %s%s%s", option, spec, net,
	    conf->interface ? conf->interface : "", why ? why : "",
	    why ? ": " : "", strerror(-rc));
	if (!why)
		hint_port(n, rc);
	return rc;
}

/* Logs that several interfaces of a net are one NI each, where old kernel nodes
 * bonded them to one NI. In @confs, interfaces of one net follow each other. */
static void note_bonding(const struct node *n, const char *option,
			 const char *spec, const struct ulnet_ni_conf *confs,
			 unsigned int count)
{
	char net[LNET_NIDSTR_SIZE];
	unsigned int end;

	for (unsigned int i = 0; i < count; i = end) {
		uint32_t number = lnet_nid_net(&confs[i].nid);

		for (end = i + 1; end < count; end++)
			if (lnet_nid_net(&confs[end].nid) != number)
				break;
		lnet_net_format(number, net, sizeof(net));
		if (end - i > 1)
			say(n->say, LNET_LOG_INFO,
			    "--%s %s: %s: %u interfaces, which are one NI "
			    "each, not bonded to one",
			    option, spec, net, end - i);
	}
}

void node_tell_manager(const struct node *n, const char *state)
{
	int rc = lnet_notify(state);

	if (rc)
		say(n->say, LNET_LOG_WARN,
		    "%s: %s: the service manager is not told",
		    getenv("NOTIFY_SOCKET"), strerror(-rc));
}

bool node_has(const struct node *n, const struct ulnet_nid *nid, uint32_t net)
{
	struct ulnet_ni_info info;

	for (unsigned int i = 0; lnet_ni_info(n->lnet, i, &info) == 0; i++)
		if (nid			  ? lnet_nid_eq(&info.nid, nid)
		    : net == LNET_NET_ANY ? !lnet_nid_is_lo(&info.nid)
					  : lnet_nid_net(&info.nid) == net)
			return true;
	return false;
}

/* Logs what the parser of an option's text has found. */
static void say_wrong(const struct node *n, const char *option,
		      const char *text, int rc,
		      const struct ulnet_text_error *err)
{
	say(n->say, LNET_LOG_ERR, "--%s %s: at character %zu: %s", option, text,
	    err->offset + 1, *err->what ? err->what : strerror(-rc));
}

static int add_networks(
	const struct node *n, const char *option, const char *spec,
	int (*parse)(const char *text, struct ulnet_ni_conf **confs_p,
		     unsigned int *n_p, struct ulnet_text_error *err))
{
	struct ulnet_text_error err = { 0 };
	struct ulnet_ni_conf *confs;
	unsigned int count;
	int rc = parse(spec, &confs, &count, &err);

	if (rc) {
		say_wrong(n, option, spec, rc, &err);
		return rc;
	}
	note_bonding(n, option, spec, confs, count);
	for (unsigned int i = 0; !rc && i < count; i++)
		rc = add_interface(n, option, spec, &confs[i]);
	free(confs);
	return rc;
}

int node_add_networks(const struct node *n, const char *spec)
{
	return add_networks(n, "net", spec, lnet_networks_parse);
}

/* How many routes were passed over; and the first of them, with the reason. */
struct passed {
	const struct say *say;
	unsigned int n;
	char first[2 * LNET_NIDSTR_SIZE + 64];
};

static void route_passed(void *arg, const struct ulnet_route *route,
			 const char *why)
{
	struct passed *passed = arg;
	char net[LNET_NIDSTR_SIZE], gateway[LNET_NIDSTR_SIZE];

	lnet_net_format(route->net, net, sizeof(net));
	lnet_nid_format(&route->gateway, gateway, sizeof(gateway));
	say(passed->say, LNET_LOG_INFO, "--routes: %s by %s is passed over: %s",
	    net, gateway, why);
	if (!passed->n++)
		snprintf(passed->first, sizeof(passed->first), "%s by %s: %s",
			 net, gateway, why);
}

static int add_routes(const struct node *n, const char *text)
{
	struct ulnet_text_error err = { 0 };
	struct passed passed = { .say = n->say };
	struct ulnet_route *routes;
	unsigned int count;
	int rc = lnet_routes_parse(text, &routes, &count, &err);

	if (rc) {
		say_wrong(n, "routes", text, rc, &err);
		return rc;
	}
	rc = lnet_routes_add(n->lnet, routes, count, route_passed, &passed);
	free(routes);
	if (rc)
		say(n->say, LNET_LOG_ERR, "--routes %s: %s", text,
		    strerror(-rc));
	else if (passed.n)
		say(n->say, LNET_LOG_WARN,
		    "--routes: %u of %u routes are not for this node, and are "
		    "passed over (%s)",
		    passed.n, count, passed.first);
	return rc;
}

static int node_import_text(const struct node *n, const char *name,
			    const char *text)
{
	struct request r;
	char *answer;
	int status, rc;

	request_begin(&r, "import");
	request_text(&r, "mode", "add");
	request_text(&r, "text", text);
	rc = request_end(&r);
	if (!rc)
		rc = lnet_control_request(n->control, r.text, &answer);
	request_free(&r);
	if (rc) {
		say(n->say, LNET_LOG_ERR, "%s: %s", name,
		    rc == -EILSEQ ? "not text: not UTF-8" : strerror(-rc));
		return rc;
	}
	rc = lnet_ctl_print(answer, NULL, NULL, &status);
	if (!rc && status) {
		say(n->say, LNET_LOG_ERR,
		    "%s: the configuration is wrong:", name);
		rc = status;
	}
	/* notes as well as errors */
	lnet_ctl_print(answer, NULL, stderr, NULL);
	hint_port(n, rc);
	free(answer);
	return rc;
}

static int import_file(const struct node *n, const char *path)
{
	char *text;
	int rc = file_read(n->say->who, path, &text);

	if (rc)
		return rc;
	rc = node_import_text(n, strcmp(path, "-") == 0 ? "stdin" : path, text);
	free(text);
	return rc;
}

int node_configure(struct node *n)
{
	const struct node_options *o = n->options;
	int rc = 0;

	for (unsigned int i = 0; !rc && i < o->nnets; i++)
		rc = node_add_networks(n, o->nets[i]);
	if (!rc && o->ip2nets)
		rc = add_networks(n, "ip2nets", o->ip2nets, lnet_ip2nets_parse);
	if (!rc && o->config)
		rc = import_file(n, o->config);
	if (!rc && o->routes)
		rc = add_routes(n, o->routes);
	if (rc)
		return rc;
	/* Now "lnetctl lnet configure --all" restores this configuration. */
	rc = lnet_control_remember(n->control, NULL);
	if (rc)
		say(n->say, LNET_LOG_ERR,
		    "cannot remember the configuration: %s", strerror(-rc));
	return rc;
}

void node_close(struct node *n)
{
	lnet_control_stop(n->control);
	if (n->lnet)
		lnet_close(n->lnet);
	n->control = NULL;
	n->lnet = NULL;
}

/* ---- what is there ---- */

char *node_nids(const struct node *n)
{
	struct ulnet_ni_info info;
	char nid[LNET_NIDSTR_SIZE], *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	unsigned int count = 0;

	if (!out)
		return NULL;
	for (unsigned int i = 0; lnet_ni_info(n->lnet, i, &info) == 0; i++)
		if (!lnet_nid_is_lo(&info.nid))
			fprintf(out, "%s%s", count++ ? ", " : "",
				lnet_nid_format(&info.nid, nid, sizeof(nid)));
	if (!count)
		fputs("no network yet", out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

int node_say_ready(const struct node *n)
{
	char *nids = node_nids(n);

	if (!nids)
		return -ENOMEM;
	printf("%s: ready: %s", n->say->who, nids);
	free(nids);
	if (n->options->port && n->options->port != NODE_DEFAULT_PORT)
		printf(", port %u (kernel nodes use %d)", n->options->port,
		       NODE_DEFAULT_PORT);
	return 0;
}

int node_said(const struct node *n, int rc)
{
	if (!rc && n->options->socket)
		printf(", socket %s", n->options->socket);
	if (!rc && (putchar('\n') < 0 || fflush(stdout)))
		rc = -errno;
	if (rc)
		say(n->say, LNET_LOG_ERR, "stdout: %s", strerror(-rc));
	return rc;
}
