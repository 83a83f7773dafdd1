/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program gets to read when it breaks a rule and is aborted
 * (base/misuse.h), for unit tests. */
#ifndef TESTS_MISUSE_H
#define TESTS_MISUSE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MISUSE_TEXT 4096

/* s: in a child, which counts as hanging then */
#define MISUSE_LIMIT 300

/* For children: an assertion of the test's would end them without its text. */
#define misuse_must(cond)                                                  \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond);                                    \
			_exit(1);                                          \
		}                                                          \
	} while (0)

static inline void misuse_child(int to, void (*fn)(void *arg), void *arg)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	alarm(MISUSE_LIMIT);
	dup2(to, STDERR_FILENO);
	fn(arg);
	_exit(0);
}

/* Runs @fn(@arg) in a child, which must be aborted, and returns the last line
 * that it has written to stderr, in @text. */
static inline const char *misuse_line(void (*fn)(void *arg), void *arg,
				      char text[MISUSE_TEXT])
{
	size_t n = 0;
	char *line;
	ssize_t got;
	int fd[2], status;
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork();
	if (pid == 0)
		misuse_child(fd[1], fn, arg);
	cr_assert_gt(pid, 0);
	close(fd[1]);
	while ((got = read(fd[0], text + n, MISUSE_TEXT - 1 - n)) > 0)
		n += (size_t)got;
	close(fd[0]);
	text[n] = '\0';
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
		  "ended with 0x%x: %s", (unsigned int)status, text);
	if (n && text[n - 1] == '\n')
		text[n - 1] = '\0';
	line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

/* As misuse_line(), and asserts that the line fits @pattern, in which * stands
 * for anything. */
static inline const char *misuse_is(void (*fn)(void *arg), void *arg,
				    const char *pattern, char text[MISUSE_TEXT])
{
	const char *line = misuse_line(fn, arg, text);

	cr_assert_eq(fnmatch(pattern, line, FNM_NOESCAPE), 0, "%s", line);
	return line;
}

#endif
