/* SPDX-License-Identifier: BSD-3-Clause */
/* What each program needs: messages, to stderr or syslog(3); signals that end
 * it; the time; reading and writing of whole files. */
#ifndef TOOLS_PROGRAM_H
#define TOOLS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ulnet/lnet.h>

struct say {
	const char *who; /* name of the program */
	bool syslog;
};

/* Logs a message of the program, if its level is logged: lnet_log_on(3). */
__attribute__((format(printf, 3, 4))) void say(const struct say *s,
					       enum ulnet_log_level level,
					       const char *fmt, ...);
/* From now on messages, including the library's, go to syslog(3). */
void say_to_syslog(struct say *s);

/* Makes sure that descriptors 0 to 2 are open, before any other is opened: one
 * of these numbers might otherwise become that of a socket, and messages for
 * stderr would be sent to a peer. Returns 0 or -errno. */
int secure_stdio(void);

/* Blocks SIGINT, SIGTERM and @also (0: no other), and ignores SIGPIPE. To be
 * called before there are threads. Returns a descriptor that becomes readable
 * when one of the blocked signals comes; -1, after a message. */
int signals_open(const char *who, int also);
/* The message about SIGHUP of a program that has no files which could be opened
 * again. */
#define HANGUP_IGNORED \
	"SIGHUP is ignored: use lnetctl set log, lnetctl import, or restart"
/* Takes a signal that has come, without waiting. Returns its number; 0: no
 * signal has come. */
int signals_take(int fd);
/* Waits for a signal until clock_ns() is @at, or, if @at is 0, for ever.
 * Returns as signals_take() does. */
int signals_wait(int fd, uint64_t at);
/* From now on SIGINT and SIGTERM end the program at once, even a signal that
 * came before and was not taken. */
void signals_release(void);

/* Returns the time of CLOCK_MONOTONIC, ns. */
uint64_t clock_ns(void);

/* ---- files ---- */

/* bytes of the longest file: more than any configuration needs */
#define FILE_TEXT_MAX (4u << 20)

/*
 * Reads the file @path, or stdin if it is "-". *@text_p is to be freed. After a
 * message on stderr, which begins with @who: -EFBIG: longer than FILE_TEXT_MAX;
 * -EILSEQ: there are bytes of 0; or another -errno.
 */
int file_read(const char *who, const char *path, char **text_p);
/* Does what file_read() does, for a file of any length. */
int file_read_long(const char *who, const char *path, char **text_p);

/*
 * Writes @text to @path. A regular file is replaced, with the same mode, once
 * all is written: a failure leaves the old file. Returns 0, or -errno after a
 * message on stderr.
 */
int file_write(const char *who, const char *path, const char *text);

#endif
