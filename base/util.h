/* SPDX-License-Identifier: BSD-3-Clause */
/* Small things that every file uses. */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)
/* For the rare part of a hot function, so that the common part need not save
 * registers for it. */
#define out_of_line __attribute__((noinline))
/* For small functions that several hot functions share. */
#define in_line inline __attribute__((always_inline))
/* Both may evaluate an argument twice. */
#define MIN(a, b)  ((a) < (b) ? (a) : (b))
#define MAX(a, b)  ((a) > (b) ? (a) : (b))
#define must_check __attribute__((warn_unused_result))

#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC  UINT64_C(1000000000)
/* A time that never comes. */
#define TIME_NEVER UINT64_MAX

/* Bytes that processors write by turns. */
#define CACHE_LINE 64

/* As calloc(), for structures with fields that have a cache line of their own:
 * to be freed by free(). */
static inline void *lines_calloc(size_t size)
{
	void *p;

	size = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
	p = aligned_alloc(CACHE_LINE, size);
	return p ? memset(p, 0, size) : NULL;
}

/* Aborts, in release builds too, if our own code or a caller has broken a
 * promise. Never used on what a peer, a file or a command line said. */
#define BUG_ON(cond)                                                           \
	do {                                                                   \
		if (unlikely(cond)) {                                          \
			fprintf(stderr, "BUG %s:%d: %s\n", __FILE__, __LINE__, \
				#cond);                                        \
			abort();                                               \
		}                                                              \
	} while (0)

/* Copies @text to @to, an array of @size bytes. The caller has checked that it
 * fits. */
static inline void text_copy(char *to, size_t size, const char *text)
{
	size_t n = strlen(text) + 1;

	BUG_ON(n > size);
	memcpy(to, text, n);
}

#endif
