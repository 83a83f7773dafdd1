/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processor's own clock: a few cycles, and no call. Its unit differs from
 * machine to machine, so it only tells whether it is time to look at a real
 * clock. Not under control of virtual time. Any thread.
 */
#ifndef BASE_TICK_H
#define BASE_TICK_H

#include <stdint.h>
#include <time.h>

/* TICK_WINDOW: a few ms to 100 ms, on all processors of the kind. */
#if defined(__x86_64__) || defined(__i386__)
#define TICK_WINDOW (UINT64_C(1) << 26) /* 0.8 to 5 GHz */
static inline uint64_t tick_now(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
#define TICK_WINDOW (UINT64_C(1) << 20) /* 12 MHz to 1 GHz */
static inline uint64_t tick_now(void)
{
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
}
#else
#define TICK_WINDOW (UINT64_C(1) << 25) /* ns */
static inline uint64_t tick_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
#endif

#endif
