/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/secure/clock.h"

#include <time.h>

int64_t clock_shift;

/* In the place of libc's, also for libraries, which therefore see it. */
__attribute__((visibility("default"))) time_t time(time_t *p);

time_t time(time_t *p)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += (time_t)clock_shift;
	if (p)
		*p = now.tv_sec;
	return now.tv_sec;
}
