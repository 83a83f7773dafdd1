/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static uint16_t child_port;

static void tune(struct ulnet_conf *conf, bool hasty)
{
	(void)hasty;
	conf->port = child_port;
}

static const struct ulnet_tunable tunables[] = { FAULT_TUNABLES(TIMEOUT) };

static struct real_net net = { .nids = { CHILD_NID },
			       .run = LNET_RUN_THREADS,
			       .cpts = 1,
			       .tune = tune,
			       .tunables = tunables,
			       .ntunables = ARRAY_SIZE(tunables) };

static void takes(struct fx *fx)
{
	struct box *b = box_new(fx, LNET_MTU, CUT_NONE);

	box_post(b, &(struct post){ .portal = PORTAL,
				    .bits = CHILD_BITS,
				    .threshold = LNET_MD_THRESH_INF,
				    .options = LNET_MD_OP_PUT |
					       LNET_MD_MANAGE_REMOTE });
}

static void sends(struct fx *fx, const struct ulnet_nid *to)
{
	struct box *b = box_new(fx, LNET_MTU, CUT_NONE);

	box_fill(b, CHILD_BITS);
	box_bind(b, 0, LNET_MD_THRESH_INF, fx_patience(fx));
	for (unsigned int n = 1;; n++) {
		box_put_to(b, to, true, PORTAL, CHILD_BITS, HDR(CHILD_BITS, 0));
		fx_wait(fx, &b->terminals, n);
	}
}

int child_main(char **argv)
{
	static struct lnd_rig rig = { .name = "child",
				      .can = RIG_ONE_NODE | RIG_THREADS,
				      .ops = &real_ops,
				      .arg = &net };
	struct fx fx = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct ulnet_nid parent;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child_port = (uint16_t)atoi(argv[0]);
	if (lnet_nid_parse(argv[1], &parent) || fx_up(&fx, &rig))
		return 1;
	if (!strcmp(argv[2], "takes"))
		takes(&fx);
	if (write(STDOUT_FILENO, "!", 1) != 1)
		return 1;
	if (!strcmp(argv[2], "sends"))
		sends(&fx, &parent);
	for (;;)
		pause();
}

/* @out becomes the standard output of the child. */
static pid_t spawn(char **argv, int out)
{
	posix_spawn_file_actions_t files;
	pid_t pid;
	int rc;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	rc = posix_spawn(&pid, "/proc/self/exe", &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return rc ? -rc : pid;
}

pid_t child_start(struct fx *fx, enum child_does does)
{
	char port[16], nid[LNET_NIDSTR_SIZE], ready;
	char *argv[] = { "fault_test",
			 "--child",
			 port,
			 nid,
			 does == CHILD_TAKES ? "takes" : "sends",
			 NULL };
	int out[2];
	pid_t pid;

	snprintf(port, sizeof(port), "%u", fx->rig->port);
	lnet_nid_format(&fx->rig->nid[0], nid, sizeof(nid));
	if (pipe2(out, O_CLOEXEC))
		return -errno;
	pid = spawn(argv, out[1]);
	close(out[1]);
	if (pid > 0 && read(out[0], &ready, 1) != 1) {
		child_kill(pid);
		pid = -ECHILD;
	}
	close(out[0]);
	return pid;
}

void child_stop(pid_t pid)
{
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
}

void child_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
