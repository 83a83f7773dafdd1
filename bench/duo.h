/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the measurements between two processes share: the two processes, each on
 * a core of its own, a clock, and round trips with their median. The server is
 * the child, on DUO_SERVER and on the first core that the program may use; the
 * client is the parent, on DUO_CLIENT and on the last one. Whatever fails ends
 * the process with a message.
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

#define DUO_SERVER  "127.0.0.2"
#define DUO_CLIENT  "127.0.0.1"
#define DUO_WARM_NS UINT64_C(100000000)
/* buffers of one message each, which large messages use in turn */
#define DUO_BUFFERS  4
#define DUO_MESSAGES (1u << 20)

/* Says that @what failed, with a negative errno, and ends the process. */
void give_up(long rc, const char *what) __attribute__((noreturn));
/* Calls give_up() if @rc is a negative errno; otherwise @rc is a result. */
static inline void must(long rc, const char *what)
{
	if (rc < 0)
		give_up(rc, what);
}
/* As must(), for functions that return -1 and set errno. */
long must_sys(long rc, const char *what);

uint64_t duo_now(void); /* Returns a monotonic time, ns. */

/* Forks. The child calls server(@arg, @ready), which writes a byte to the pipe
 * @ready once clients may come, and exits with 0 after it has returned. Returns
 * in the parent when the child is ready. */
pid_t duo_fork(void (*server)(void *arg, int ready), void *arg);
/* Waits for the end of the child, which must exit with 0. */
void duo_wait(pid_t child);
void duo_ready(int ready);

struct sockaddr_in duo_address(const char *text, uint16_t port);
/* Returns a port that is free now on all addresses. */
uint16_t duo_free_port(void);

/* duo_fill() fills @p with @size bytes that both ends know. duo_verify() ends
 * the process unless @p has those bytes, from byte @from on. */
void duo_fill(unsigned char *p, size_t size);
void duo_verify(const unsigned char *p, size_t from, size_t size);
/*
 * Returns memory that is page-aligned, zeroed and present, to be freed with
 * free(). Large malloc'ed memory begins 16 bytes into a page, and some
 * processors copy from a page's beginning to there at a third of their speed.
 */
void *duo_buffer(size_t size);

/* Returns zeroed memory that this process shares with those it forks. */
void *duo_shared(size_t size);

/* What this process uses: bytes from malloc(), and bytes that are present in
 * the machine's memory. duo_files() returns the number of its open files. */
struct duo_memory {
	size_t allocated, resident;
};

struct duo_memory duo_memory(void);
/* Returns what the process uses now, less *@before. */
struct duo_memory duo_memory_since(const struct duo_memory *before);
size_t duo_files(void);
/* Raises the limit of open files as far as the process may. */
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

/* Returns the time in us below which @percent of the round trips were. */
double duo_times_percent(struct duo_times *t, unsigned int percent);
double duo_times_median(struct duo_times *t);

#ifdef __cplusplus
}
#endif

#endif
