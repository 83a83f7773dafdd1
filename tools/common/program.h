/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program has while it runs: what it says, on stderr or to syslog(3);
 * the signals that end it; the time; whole files. */
#ifndef TOOLS_PROGRAM_H
#define TOOLS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ulnet/lnet.h>

struct say {
	const char *who;	    /* the program's name */
	enum ulnet_log_level level; /* what is less urgent is not said */
	bool syslog;
};

__attribute__((format(printf, 3, 4))) void say(const struct say *s,
					       enum ulnet_log_level level,
					       const char *fmt, ...);
/* From now on messages, the library's too, go to syslog(3). */
void say_to_syslog(struct say *s);

/* Makes sure that descriptors 0 to 2 are open, before anything else is opened:
 * a program that was started without them would otherwise write its messages to
 * a socket that got such a number. 0 or -errno. */
int secure_stdio(void);

/* SIGINT, SIGTERM and @also (0: no other) as something to be asked for, which
 * needs no handler. Before there are threads: blocks them, and ignores SIGPIPE.
 * Returns a descriptor that is readable when there is one; -1, after a
 * message. */
int signals_open(const char *who, int also);
/* The number of a signal that has come, which is taken; 0: none. Does not
 * wait. */
int signals_take(int fd);
/* The same, but that it waits until @at, of clock_ns(), or, if that is 0, for
 * ever. */
int signals_wait(int fd, uint64_t at);
/* From now on a signal ends the program at once, also one that has come and was
 * not taken. */
void signals_release(void);

/* Of CLOCK_MONOTONIC. */
uint64_t clock_ns(void);

/* ---- files, written so that a failure leaves the old one ---- */

#define FILE_TEXT_MAX (4u << 20) /* bytes; much more than any configuration */

/*
 * Reads @path, "-" is stdin, as text. *@text_p, ended by a 0, is to be freed.
 * Says on stderr, after @who and with the file's name, what is wrong: not to be
 * read, above FILE_TEXT_MAX (-EFBIG), no text (-EILSEQ: bytes of 0).
 */
int file_read(const char *who, const char *path, char **text_p);

/*
 * Puts @text into @path. A file is replaced when all is written, keeping its
 * mode; what is no file (a device, a pipe) is written to. Says on stderr what
 * is wrong.
 */
int file_write(const char *who, const char *path, const char *text);

#endif
