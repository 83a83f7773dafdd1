/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the measurements between two processes share: the two processes, each on
 * a core of its own, a clock, and round trips with their median. The server is
 * the child, on core 0 and on DUO_SERVER; the client is the parent, on the last
 * core and on DUO_CLIENT. Whatever fails ends the process with a message.
 */
#ifndef BENCH_DUO_H
#define BENCH_DUO_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DUO_SERVER   "127.0.0.2"
#define DUO_CLIENT   "127.0.0.1"
#define DUO_WARM_NS  UINT64_C(100000000)
#define DUO_BUFFERS  4 /* of a message's size each: large ones are reused */
#define DUO_MESSAGES (1u << 20)

/* Says that @what failed, with a negative errno, and ends the process. */
void give_up(long rc, const char *what) __attribute__((noreturn));
/* That if @rc, 0 or more or a negative errno, is an error. */
static inline void must(long rc, const char *what)
{
	if (rc < 0)
		give_up(rc, what);
}
/* As must(), for what returns -1 and sets errno. */
long must_sys(long rc, const char *what);

uint64_t duo_now(void); /* ns */

/* Two processes. The child calls server(@arg, @ready), which writes a byte to
 * the pipe @ready once clients may come, and exits with 0 after it has
 * returned. Returns in the parent when the child is ready. */
pid_t duo_fork(void (*server)(void *arg, int ready), void *arg);
/* Waits for the child's end, which must be an exit with 0. */
void duo_wait(pid_t child);
void duo_ready(int ready);

struct sockaddr_in duo_address(const char *text, uint16_t port);
/* A port that nobody uses now, on any address. */
uint16_t duo_free_port(void);

/* What is sent: @size bytes, the same for both ends; and whether @p is that,
 * from byte @from on. */
void duo_fill(unsigned char *p, size_t size);
void duo_verify(const unsigned char *p, size_t from, size_t size);
/*
 * Page-aligned, zeroed, touched; to be freed. Large malloc'ed memory begins 16
 * bytes into a page, and with some processors the kernel's copying from the
 * beginning of a page to there goes at a third of its speed.
 */
void *duo_buffer(size_t size);

/* Zeroed, for this process and those that it forks. */
void *duo_shared(size_t size);

/* What this process has: bytes that were asked of malloc(), and that are in the
 * machine's memory; and open files. */
struct duo_memory {
	size_t allocated, resident;
};

struct duo_memory duo_memory(void);
/* What it has now, less that. */
struct duo_memory duo_memory_since(const struct duo_memory *before);
size_t duo_files(void);
/* As many files as this process may have. */
void duo_more_files(void);

/* Round trips. */
struct duo_times {
	uint64_t n;
	uint32_t ns[DUO_MESSAGES]; /* the first ones */
};

static inline void duo_times_add(struct duo_times *t, uint64_t ns)
{
	if (t->n < DUO_MESSAGES)
		t->ns[t->n++] = (uint32_t)(ns < UINT32_MAX ? ns : UINT32_MAX);
}

/* us; @percent of them were shorter. */
double duo_times_percent(struct duo_times *t, unsigned int percent);
double duo_times_median(struct duo_times *t);

#ifdef __cplusplus
}
#endif

#endif
