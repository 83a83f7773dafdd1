/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program says while it runs: on stderr, or to syslog(3). */
#ifndef TOOLS_SAY_H
#define TOOLS_SAY_H

#include <stdbool.h>

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

#endif
