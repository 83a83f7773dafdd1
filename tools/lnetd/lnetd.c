/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lnetd(8): a program that is nothing but a node. Opens and configures it, and
 * waits for a signal.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon.h"
#include "tools/common/keys.h"
#include "tools/common/node.h"
#include "tools/common/program.h"
#include "tools/common/reload.h"
#include "tools/common/serve.h"
#include "ulnet/keys.h"
#include "waiting.h"

#define WHO "lnetd"

/* ms: a node that was told to end, and has not ended by then, ends by force. A
 * service manager would do that, too, but only after minutes. The time for
 * which the node's threads were ready to run, and had no processor, does not
 * count: a node on a busy machine may take longer to end in good order. But it
 * never may take longer than END_AT_LAST. */
#define END_WITHIN  1700
#define END_AT_LAST 60000
#define END_LOOK    50 /* ms from one look at the clock to the next */

struct lnetd {
	struct node_options options; /* socket is never NULL once parsed */
	struct keys_options keys;
	bool foreground;
	/* s to wait for interfaces that are not there yet */
	unsigned int wait_s;
	char *pidpath; /* path of the pid file; NULL: none */
	struct say say;
	struct node node;
	struct serve serve;
	struct reload reload;
	int pidfile; /* descriptor of the pid file; < 0: none */
	/* descriptor of daemon_begin(), for the parent that waits for the
	 * result; < 0: no parent waits */
	int report;
	/* An eventfd that tells lnetd_warden() that the node is ending; < 0:
	 * there is no such thread. */
	int ending;
};

/* ---- the command line ---- */

#define AT(field) offsetof(struct lnetd, field)

static const struct option_row rows[] = {
	{ "socket", 's', "PATH",
	  "control socket for lnetctl; default $ULNET_SOCKET, "
	  "else " LNET_CTL_PATH,
	  .kind = OPTION_PATH, AT(options.socket) },
	{ "foreground", 'f', NULL, "stay in the foreground, log to stderr",
	  .kind = OPTION_FLAG, AT(foreground) },
	{ "pidfile", 'P', "FILE", "write the process id to FILE",
	  .kind = OPTION_PATH, AT(pidpath) },
	{ "wait", 'w', "SECONDS",
	  "to wait for interfaces and addresses that are not there yet (0)",
	  .kind = OPTION_NUMBER, AT(wait_s), 0, 86400 },
	{ 0 },
};

static int default_socket(struct lnetd *d)
{
	const char *path = getenv("ULNET_SOCKET");

	return options_take(rows, d, WHO, "socket",
			    path && *path ? path : LNET_CTL_PATH);
}

static int lnetd_parse(struct lnetd *d, int argc, char **argv)
{
	struct option_set set = {
		.who = WHO,
		.see = WHO " --help",
		.head = "usage: lnetd [OPTION]...\n"
			"Runs an LNet node in user space.\n\n",
		.parts = { { node_net_rows, &d->options },
			   { node_rows, &d->options },
			   { rows, d },
			   { serve_rows, &d->serve },
			   { keys_rows, &d->keys },
			   { node_log_rows, &d->options },
			   { option_rows, NULL } },
	};
	int status = options_parse(&set, argc, argv);

	if (!status)
		status = serve_check(&d->serve, WHO);
	if (!status)
		status = keys_check(&d->keys, WHO);
	if (!status && !d->options.socket)
		status = default_socket(d);
	return status;
}

/* ---- running ---- */

/* Tells whoever started lnetd that it is ready, and, unless lnetd stays in the
 * foreground, detaches from the terminal. */
static int lnetd_announce(struct lnetd *d)
{
	int rc = node_said(&d->node, node_say_ready(&d->node));

	if (rc)
		return rc;
	node_tell_manager(&d->node, "READY=1\n");
	if (d->report < 0)
		return 0;
	say_to_syslog(&d->say);
	daemon_detach();
	daemon_report(d->report, 0);
	d->report = -1;
	return 0;
}

static void lnetd_is_ending(const struct lnetd *d)
{
	uint64_t one = 1;

	if (d->ending >= 0 && write(d->ending, &one, sizeof(one)) < 0)
		say(&d->say, LNET_LOG_WARN, "the end is not watched: %s",
		    strerror(errno));
}

/* Returns for how many ns this process's thread @tid was ready to run, but had
 * no processor. */
static unsigned long long thread_delay(const char *tid)
{
	unsigned long long ran, delay = 0;
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &ran, &delay) != 2)
		delay = 0;
	fclose(f);
	return delay;
}

/* Returns the sum of thread_delay() over all threads, in ms. 0 if the system
 * does not tell. */
static uint64_t end_delay(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	uint64_t ns = 0;

	while (tasks && (entry = readdir(tasks)))
		if (*entry->d_name != '.')
			ns += thread_delay(entry->d_name);
	if (tasks)
		closedir(tasks);
	return ns / 1000000;
}

/* Waits until END_WITHIN is over. The sum over all threads becomes less when a
 * thread ends, so only its increases count. */
static void end_wait(void)
{
	uint64_t began = clock_ns(), was = end_delay(), delayed = 0, is, past;

	do {
		poll(NULL, 0, END_LOOK);
		is = end_delay();
		delayed += is > was ? is - was : 0;
		was = is;
		past = (clock_ns() - began) / 1000000;
	} while (past < END_WITHIN + delayed && past < END_AT_LAST);
}

/*
 * A thread that makes lnetd end soon after it is told to, whatever lnetd is
 * doing: perhaps it reads its configuration, or waits for something that does
 * not close. The thread sees the signal while it is pending; if the main thread
 * has taken it before, the main thread tells this one by d->ending.
 */
static void *lnetd_warden(void *arg)
{
	struct lnetd *d = arg;
	struct pollfd p[2] = { { d->ending, POLLIN, 0 }, { -1, POLLIN, 0 } };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	p[1].fd = signalfd(-1, &set, SFD_CLOEXEC);
	while (poll(p, 2, -1) <= 0)
		;
	end_wait();
	say(&d->say, LNET_LOG_ERR, "has not ended within %d ms: ends by force",
	    END_WITHIN);
	pidfile_drop(d->pidpath, d->pidfile);
	_exit(1);
}

/* Starts lnetd_warden(). To be called when signals are blocked. If there are no
 * resources for the thread, there is only a warning. */
static void lnetd_watch_end(struct lnetd *d)
{
	pthread_t thread;
	int rc;

	d->ending = eventfd(0, EFD_CLOEXEC);
	rc = d->ending < 0 ? errno
			   : pthread_create(&thread, NULL, lnetd_warden, d);
	if (!rc)
		rc = pthread_detach(thread);
	if (rc)
		say(&d->say, LNET_LOG_WARN, "the end is not watched: %s",
		    strerror(rc));
}

static void lnetd_wait_for_end(const struct lnetd *d, int signals)
{
	int number;

	while ((number = signals_wait(signals, 0)) == SIGHUP)
		reload_on_hangup(&d->reload);
	lnetd_is_ending(d);
	say(&d->say, LNET_LOG_INFO, "%s: ending", strsignal(number));
	node_tell_manager(&d->node, "STOPPING=1\n");
}

static int take_pidfile(struct lnetd *d)
{
	const char *path = d->pidpath;
	int rc = path ? pidfile_take(path, &d->pidfile) : 0;

	if (rc)
		say(&d->say, LNET_LOG_ERR, "--pidfile %s: %s", path,
		    rc == -EEXIST	 ? "a running process has it"
		    : rc == -EMEDIUMTYPE ? "the file there has no process id "
					   "in it, and is left alone"
					 : strerror(-rc));
	return rc;
}

/* ---- configuring ---- */

/* Does node_configure() return @rc because an interface or an address is not
 * there, or because no rule matches those that are? */
static bool lnetd_is_absent(int rc)
{
	return rc == -ENODEV || rc == -EADDRNOTAVAIL || rc == -ENETDOWN ||
	       rc == -ENOENT;
}

/* Takes back what node_configure() did before it failed. */
static int unconfigure(const struct lnetd *d)
{
	static const char *const requests[] = { "lnet unconfigure:",
						"lnet configure:" };
	char *answer;
	int rc = 0, status;

	for (unsigned int i = 0; i < 2 && !rc; i++) {
		rc = lnet_control_request(d->node.control, requests[i],
					  &answer);
		if (rc)
			break;
		rc = lnet_ctl_print(answer, NULL, NULL, &status);
		rc = rc ? rc : status;
		free(answer);
	}
	return rc;
}

/* Configures the node; if something is not there yet, waits for it. Sets
 * *@number_p to the signal that has ended the waiting, or to 0. */
static int lnetd_configure(struct lnetd *d, int signals, int *number_p)
{
	uint64_t until = clock_ns() + d->wait_s * UINT64_C(1000000000);
	/* Opened before the first attempt, so that no change is missed. */
	int fd = d->wait_s ? waiting_open() : -1;
	int rc = node_configure(&d->node), number = 0;

	if (lnetd_is_absent(rc) && d->wait_s)
		say(&d->say, LNET_LOG_WARN,
		    "waiting for interfaces and addresses, for %u s at most",
		    d->wait_s);
	while (lnetd_is_absent(rc) && clock_ns() < until) {
		number = waiting_wait(fd, signals, until);
		if (number == SIGHUP) {
			reload_on_hangup(&d->reload);
			continue;
		}
		if (number)
			break;
		rc = unconfigure(d);
		if (!rc)
			rc = node_configure(&d->node);
	}
	if (fd >= 0)
		close(fd);
	*number_p = number == SIGHUP ? 0 : number;
	return rc;
}

static int lnetd_start_reload(struct lnetd *d)
{
	d->reload = (struct reload){ .keys = &d->keys,
				     .say = &d->say,
				     .lnet = d->node.lnet };
	return reload_start(&d->reload, d->node.control);
}

/* Runs the node from its beginning to its end. */
static int lnetd_serve(struct lnetd *d, int signals)
{
	int rc = take_pidfile(d), number = 0;

	if (!rc)
		rc = keys_read(&d->keys, &d->say, &d->options.keys);
	if (!rc)
		rc = node_begin(&d->node, &d->options, &d->say,
				LNET_RUN_THREADS);
	if (!rc)
		rc = node_control(&d->node);
	if (!rc)
		rc = lnetd_start_reload(d);
	if (!rc)
		rc = serve_selftest(&d->serve, &d->say, d->node.lnet);
	if (!rc)
		rc = lnetd_configure(d, signals, &number);
	if (!rc)
		rc = serve_metrics(&d->serve, &d->say, d->node.control);
	if (!rc)
		rc = lnetd_announce(d);
	if (!rc)
		lnetd_wait_for_end(d, signals);
	/* A signal that came while lnetd waited: it was told to end, and ends.
	 */
	if (number)
		rc = 0;
	reload_stop(&d->reload);
	serve_stop(&d->serve);
	node_close(&d->node);
	ulrpc_keys_put(d->options.keys);
	pidfile_drop(d->pidpath, d->pidfile);
	return rc;
}

int main(int argc, char **argv)
{
	struct lnetd d = { .pidfile = -1, .report = -1, .ending = -1 };
	int status, signals;

	if (secure_stdio())
		return 1;
	node_options_init(&d.options);
	serve_init(&d.serve);
	status = lnetd_parse(&d, argc, argv);
	if (status)
		goto out;
	d.say = (struct say){ .who = WHO };
	node_options_log(&d.options);
	if (!d.foreground && !notify_has_manager()) {
		d.report = daemon_begin();
		if (d.report < 0) {
			say(&d.say, LNET_LOG_ERR,
			    "cannot go to the background: %s",
			    strerror(-d.report));
			status = 1;
			goto out;
		}
	}
	signals = signals_open(WHO, SIGHUP);
	lnetd_watch_end(&d);
	node_raise_files(&d.say);
	status = signals < 0 || lnetd_serve(&d, signals) ? 1 : 0;
	daemon_report(d.report, status);
out:
	node_options_free(&d.options);
	keys_options_free(&d.keys);
	serve_free(&d.serve);
	free(d.pidpath);
	return status == OPTION_DONE ? 0 : status;
}
