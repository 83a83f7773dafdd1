/* SPDX-License-Identifier: BSD-3-Clause */
/* The public side of the library's log: lnet_log_set(3). */
#include "base/log.h"

#include "ulnet/lnet.h"

_Static_assert(LNET_LOG_ERR == (int)LOG_ERR && LNET_LOG_DEBUG == (int)LOG_DEBUG,
	       "levels are the same, inside and outside");

void lnet_log_set(enum ulnet_log_level level, ulnet_log_fn fn, void *arg)
{
	log_setup((enum log_level)level, fn, arg);
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
