/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/misuse.h"

#include <stdarg.h>

void misuse(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("ulnet: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}
