/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lnetd(8): a node of its own. Opens it, puts it under control, configures it,
 * and waits for a signal. What the configuration means is the library's affair.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <ulnet/control.h>

#include "daemon.h"
#include "file.h"
#include "lnetd_options.h"
#include "notify.h"
#include "pidfile.h"
#include "request.h"

#define DEFAULT_PORT 988

struct lnetd {
	struct lnetd_options options;
	struct lnet *node;
	struct lnet_control *control;
	int pidfile;	 /* < 0: none */
	int report;	 /* of daemon_begin(); < 0: nobody waits */
	bool background; /* and detached: messages go to syslog */
};

/* ---- what it says ---- */

static const int priorities[] = {
	[LNET_LOG_ERR] = LOG_ERR,
	[LNET_LOG_WARN] = LOG_WARNING,
	[LNET_LOG_INFO] = LOG_INFO,
	[LNET_LOG_DEBUG] = LOG_DEBUG,
};

static void log_to_syslog(int level, const char *line, void *arg)
{
	(void)arg;
	syslog(priorities[level], "%s", line);
}

__attribute__((format(printf, 3, 4))) static void say(
	const struct lnetd *d, enum ulnet_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (level > d->options.log)
		return;
	va_start(ap, fmt);
	if (d->background) {
		vsyslog(priorities[level], fmt, ap);
	} else {
		fputs("lnetd: ", stderr);
		vfprintf(stderr, fmt, ap);
		fputc('\n', stderr);
	}
	va_end(ap);
}

/* ---- the process ---- */

/* Each connection takes a file descriptor, and the usual limit is 1024. It is
 * that low for select(), which nobody uses here. */
static void raise_files(const struct lnetd *d)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		if (files.rlim_cur == files.rlim_max)
			return;
		files.rlim_cur = files.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &files) == 0)
			return;
	}
	say(d, LNET_LOG_WARN, "the limit of open files stays as it is: %s",
	    strerror(errno));
}

/* ---- the node and its socket ---- */

static int node_open(struct lnetd *d)
{
	const struct lnetd_options *o = &d->options;
	struct ulnet_conf conf;
	int rc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.port = o->port;
	conf.accept = o->accept;
	if (o->cpts)
		conf.cpts = o->cpts;
	rc = lnet_open(&conf, &d->node);
	if (rc)
		say(d, LNET_LOG_ERR, "cannot open a node: %s", strerror(-rc));
	return rc;
}

/* Only the usual one is made: where else is not ours to know. */
static int make_directory(const struct lnetd *d)
{
	char path[] = LNET_CTL_PATH;
	int rc;

	if (strcmp(d->options.socket, path) != 0)
		return 0;
	*strrchr(path, '/') = 0;
	if (mkdir(path, 0755) == 0 || errno == EEXIST)
		return 0;
	rc = -errno;
	say(d, LNET_LOG_ERR,
	    "%s: cannot make it: %s. As an ordinary user, say where the socket "
	    "is to be: --socket PATH",
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

static int control_start(struct lnetd *d)
{
	struct ulnet_control_conf conf = { .path = d->options.socket,
					   .group = d->options.group };
	int rc = make_directory(d);

	if (rc)
		return rc;
	rc = lnet_control_start(d->node, &conf, &d->control);
	if (rc)
		say(d, LNET_LOG_ERR, "socket %s: %s%s", d->options.socket,
		    strerror(-rc), socket_hint(rc));
	return rc;
}

/* ---- configuration ---- */

static void hint_port(const struct lnetd *d, int rc)
{
	unsigned int port = d->options.port ? d->options.port : DEFAULT_PORT;

	if (port < 1024 && (rc == -EACCES || rc == -EPERM))
		say(d, LNET_LOG_ERR,
		    "port %u is below 1024: that takes root or "
		    "CAP_NET_BIND_SERVICE. Among ulnet nodes any port will do, "
		    "if all have the same: --port 1024..65535",
		    port);
}

static int add_interface(const struct lnetd *d, const char *spec,
			 const struct ulnet_ni_conf *conf)
{
	char net[LNET_NIDSTR_SIZE];
	int rc = lnet_ni_add(d->node, conf);

	if (!rc)
		return 0;
	lnet_net_format(lnet_nid_net(&conf->nid), net, sizeof(net));
	say(d, LNET_LOG_ERR, "--net %s: %s(%s): %s", spec, net,
	    conf->interface ? conf->interface : "", strerror(-rc));
	hint_port(d, rc);
	return rc;
}

static int add_networks(const struct lnetd *d, const char *spec)
{
	struct ulnet_text_error err = { 0 };
	struct ulnet_ni_conf *confs;
	unsigned int n;
	int rc = lnet_networks_parse(spec, &confs, &n, &err);

	if (rc) {
		say(d, LNET_LOG_ERR, "--net %s: at character %zu: %s", spec,
		    err.offset + 1, *err.what ? err.what : strerror(-rc));
		return rc;
	}
	for (unsigned int i = 0; !rc && i < n; i++)
		rc = add_interface(d, spec, &confs[i]);
	free(confs);
	return rc;
}

static int import_text(const struct lnetd *d, const char *name,
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
		rc = lnet_control_request(d->control, r.text, &answer);
	request_free(&r);
	if (rc) {
		say(d, LNET_LOG_ERR, "%s: %s", name,
		    rc == -EILSEQ ? "not text: not UTF-8" : strerror(-rc));
		return rc;
	}
	rc = lnet_ctl_print(answer, NULL, NULL, &status);
	if (!rc && status) {
		say(d, LNET_LOG_ERR, "%s: the configuration is wrong:", name);
		rc = status;
	}
	lnet_ctl_print(answer, NULL, stderr, NULL); /* notes, too */
	hint_port(d, rc);
	free(answer);
	return rc;
}

static int import_file(const struct lnetd *d, const char *path)
{
	char *text;
	int rc = file_read("lnetd", path, &text);

	if (rc)
		return rc;
	rc = import_text(d, strcmp(path, "-") == 0 ? "stdin" : path, text);
	free(text);
	return rc;
}

static int configure(const struct lnetd *d)
{
	const struct lnetd_options *o = &d->options;
	int rc = 0;

	for (unsigned int i = 0; !rc && i < o->nnets; i++)
		rc = add_networks(d, o->nets[i]);
	if (!rc && o->config)
		rc = import_file(d, o->config);
	if (rc)
		return rc;
	/* What "lnetctl lnet configure --all" brings back. */
	rc = lnet_control_remember(d->control, NULL);
	if (rc)
		say(d, LNET_LOG_ERR, "cannot remember the configuration: %s",
		    strerror(-rc));
	return rc;
}

/* ---- ready, and the end ---- */

/* "10.0.0.1@tcp, 10.0.0.1@tcp1", to be freed; NULL: no memory. */
static char *list_nids(const struct lnetd *d)
{
	struct ulnet_ni_info info;
	char nid[LNET_NIDSTR_SIZE], *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	unsigned int n = 0;

	if (!out)
		return NULL;
	for (unsigned int i = 0; lnet_ni_info(d->node, i, &info) == 0; i++)
		if (!lnet_nid_is_lo(&info.nid))
			fprintf(out, "%s%s", n++ ? ", " : "",
				lnet_nid_format(&info.nid, nid, sizeof(nid)));
	if (!n)
		fputs("no network yet", out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static void tell_manager(const struct lnetd *d, const char *state)
{
	int rc = notify_send(state);

	if (rc)
		say(d, LNET_LOG_WARN, "%s: %s: the service manager is not told",
		    getenv("NOTIFY_SOCKET"), strerror(-rc));
}

/* Nodes with another port are not reached, and nothing else would say why. */
static int print_ready(const struct lnetd_options *o, const char *nids)
{
	char port[64] = "";

	if (o->port && o->port != DEFAULT_PORT)
		snprintf(port, sizeof(port), ", port %u (kernel nodes use %d)",
			 o->port, DEFAULT_PORT);
	if (printf("lnetd: ready: %s%s, socket %s\n", nids, port, o->socket) <
		    0 ||
	    fflush(stdout))
		return -errno;
	return 0;
}

/* Whoever started it learns now that it is ready. */
static int announce(struct lnetd *d)
{
	const struct lnetd_options *o = &d->options;
	char *nids = list_nids(d);

	if (!nids || print_ready(o, nids)) {
		say(d, LNET_LOG_ERR, "stdout: %s",
		    strerror(nids ? errno : ENOMEM));
		free(nids);
		return -EIO;
	}
	free(nids);
	tell_manager(d, "READY=1\n");
	if (d->report < 0)
		return 0;
	openlog("lnetd", LOG_PID, LOG_DAEMON);
	d->background = true;
	lnet_log_set(o->log, log_to_syslog, NULL);
	daemon_detach();
	daemon_report(d->report, 0);
	d->report = -1;
	return 0;
}

static void wait_for_end(const struct lnetd *d, const sigset_t *signals)
{
	int number;

	for (;;) {
		if (sigwait(signals, &number))
			continue;
		if (number != SIGHUP)
			break;
		say(d, LNET_LOG_WARN,
		    "SIGHUP is ignored: use lnetctl import, or restart");
	}
	say(d, LNET_LOG_INFO, "%s: ending", strsignal(number));
	tell_manager(d, "STOPPING=1\n");
}

static int take_pidfile(struct lnetd *d)
{
	const char *path = d->options.pidfile;
	int rc = path ? pidfile_take(path, &d->pidfile) : 0;

	if (rc)
		say(d, LNET_LOG_ERR, "--pidfile %s: %s", path,
		    rc == -EEXIST ? "a running process has it" : strerror(-rc));
	return rc;
}

/* From the beginning to the end. */
static int serve(struct lnetd *d, const sigset_t *signals)
{
	int rc = take_pidfile(d);

	if (!rc)
		rc = node_open(d);
	if (!rc)
		rc = control_start(d);
	if (!rc)
		rc = configure(d);
	if (!rc)
		rc = announce(d);
	if (!rc)
		wait_for_end(d, signals);
	lnet_control_stop(d->control);
	if (d->node)
		lnet_close(d->node);
	pidfile_drop(d->options.pidfile, d->pidfile);
	return rc;
}

/* Threads that are started later leave these signals to us. */
static void block_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGHUP);
	sigprocmask(SIG_BLOCK, signals, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	struct lnetd d = { .pidfile = -1, .report = -1 };
	sigset_t signals;
	int status;

	if (daemon_secure_stdio())
		return 1;
	status = lnetd_options_parse(&d.options, argc, argv);
	if (status >= 0)
		goto out;
	lnet_log_set(d.options.log, NULL, NULL);
	if (!d.options.foreground && !notify_wanted()) {
		d.report = daemon_begin();
		if (d.report < 0) {
			say(&d, LNET_LOG_ERR, "cannot go to the background: %s",
			    strerror(-d.report));
			status = 1;
			goto out;
		}
	}
	block_signals(&signals);
	raise_files(&d);
	status = serve(&d, &signals) ? 1 : 0;
	daemon_report(d.report, status);
out:
	lnetd_options_free(&d.options);
	return status;
}
