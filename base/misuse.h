/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program that uses ulnet has broken a rule of a manual page, in a way that
 * no return value can tell. Real nodes and those of the simulator end alike:
 * with a sentence that names the call, what it was about, and the mistake, and
 * with abort(). The table of these mistakes is in ulnet(7).
 *
 * For our own mistakes there is BUG_ON() (util.h). Neither is for what a peer,
 * a file or a command line says.
 */
#ifndef BASE_MISUSE_H
#define BASE_MISUSE_H

#include "base/util.h"

/* Prints "ulnet: ", the sentence (@fmt and so on, as for printf()) and the end
 * of a line to stderr, and aborts. Any thread. */
_Noreturn void misuse(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), cold));

/* The arguments of the sentence are computed only if @cond is true. */
#define MISUSE_IF(cond, ...)                 \
	do {                                 \
		if (unlikely(cond))          \
			misuse(__VA_ARGS__); \
	} while (0)

#endif
