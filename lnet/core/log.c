/* SPDX-License-Identifier: BSD-3-Clause */
/* The public side of the library's log: lnet_log_set(3). */
#include "base/log.h"

#include <errno.h>
#include <string.h>

#include "ulnet/lnet.h"

_Static_assert(LNET_LOG_ERR == (int)LOG_ERR && LNET_LOG_DEBUG == (int)LOG_DEBUG,
	       "levels are the same, inside and outside");

void lnet_log_set(enum ulnet_log_level level, ulnet_log_fn fn, void *arg)
{
	log_setup((enum log_level)level, fn, arg);
}

enum ulnet_log_level lnet_log_level(void)
{
	return (enum ulnet_log_level)__atomic_load_n(&log_level_now,
						     __ATOMIC_RELAXED);
}

void lnet_log_level_set(enum ulnet_log_level level)
{
	log_level_set((enum log_level)level);
}

const char *lnet_log_level_name(enum ulnet_log_level level)
{
	return log_level_name((int)level);
}

int lnet_log_level_parse(const char *name, enum ulnet_log_level *level_p)
{
	const char *one;

	for (int i = 0; (one = log_level_name(i)); i++) {
		if (strcmp(one, name) != 0)
			continue;
		*level_p = (enum ulnet_log_level)i;
		return 0;
	}
	return -EINVAL;
}

_Static_assert(LNET_LOG_STAMP == LOG_STAMP, "the same, inside and outside");

const char *lnet_log_stamp(char *text, size_t size)
{
	return log_stamp(text, size);
}

bool lnet_log_on(enum ulnet_log_level level)
{
	return log_on((enum log_level)level);
}

void lnet_log(enum ulnet_log_level level, const char *subsystem,
	      const char *fmt, ...)
{
	va_list args;

	if (!lnet_log_on(level))
		return;
	va_start(args, fmt);
	log_vwrite((enum log_level)level, subsystem, fmt, args);
	va_end(args);
}
