/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/apart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct apart apart_begin(int argc, char **argv, const char *needs)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	return (struct apart){ argc, argv, .needs = needs };
}

static bool wanted(const struct apart *a, const char *name)
{
	for (int i = 1; i < a->argc; i++)
		if (strstr(name, a->argv[i]))
			return true;
	return a->argc < 2;
}

int apart_status(int (*fn)(const void *arg), const void *arg)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(fn(arg));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

void apart_run(struct apart *a, const char *name, int (*fn)(const void *arg),
	       const void *arg)
{
	int rc;

	if (!wanted(a, name))
		return;
	rc = apart_status(fn, arg);
	a->passed += rc == 0;
	a->skipped += rc == SKIPPED;
	a->failed += rc != 0 && rc != SKIPPED;
	printf("%s %s\n",
	       rc == 0	       ? "PASS"
	       : rc == SKIPPED ? "SKIP"
			       : "FAIL",
	       name);
}

int apart_end(const struct apart *a)
{
	/* in the words of criterion, which ./check counts */
	printf("Tested: %u | Passing: %u\n", a->passed + a->failed, a->passed);
	printf("%u passed, %u failed, %u skipped\n", a->passed, a->failed,
	       a->skipped);
	if (a->failed || a->passed + a->skipped == 0)
		return 1;
	if (a->passed)
		return 0;
	if (a->needs)
		printf("not permitted here: %s\n", a->needs);
	return SKIPPED;
}

static int run(const void *arg)
{
	const struct apart_test *t = arg;

	return t->fn();
}

int apart_all(struct apart *a, const struct apart_test *tests, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		apart_run(a, tests[i].name, run, &tests[i]);
	return apart_end(a);
}
