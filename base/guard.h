/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds turns of a loop that take too long, and which call is to blame. A call
 * that blocks in a turn delays everything else on that loop, and would
 * otherwise go unnoticed.
 *
 * Measuring each call would cost too much. Instead, once a turn has lasted for
 * some ms by the processor's tick counter, the guard reads the clock when the
 * next call ends, and then again every few ms. If too much time has passed
 * since it last looked, the log names the call that has just ended. Each name
 * is logged once. A turn that is too long without such a call is logged, too.
 *
 * Nobody is to blame for the time in which the thread was ready, but had no
 * processor. The system counts that time; asking for it takes long, so the
 * guard does so at the beginning of a turn, if the last time was GUARD_SAMPLE
 * ago, and when a call or a turn seems to be too long. So up to GUARD_SAMPLE of
 * such time before the turn may be taken for time in it.
 *
 * Thread: the loop's owner; tick_now(): any.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdarg.h>
#include <time.h>
#include "base/util.h"

/*
 * The processor's tick counter: reading it takes a few cycles and no system
 * call. Its unit differs from machine to machine: struct tick_rate learns it.
 * The counter ignores virtual time. TICK_WINDOW ticks take 1 to 100 ms on every
 * processor of the architecture. TICK_FINE: a tick takes less than 100 ns.
 */
#if defined(__x86_64__) || defined(__i386__)
#define TICK_FINE   1
#define TICK_WINDOW (UINT64_C(1) << 26) /* 0.8 to 5 GHz */
static inline uint64_t tick_now(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
#define TICK_FINE   1
#define TICK_WINDOW (UINT64_C(1) << 20) /* 12 MHz to 1 GHz */
static inline uint64_t tick_now(void)
{
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
}
#else
#define TICK_FINE   0
#define TICK_WINDOW (UINT64_C(1) << 25) /* ns, which are the ticks here */
static inline uint64_t tick_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
#endif

/* ns: a turn, or a call, that takes longer is too long */
#define GUARD_LONG (500 * NSEC_PER_MSEC)
/* ns between two log lines about turns */
#define GUARD_PAUSE  (60 * NSEC_PER_SEC)
#define GUARD_SAMPLE (100 * NSEC_PER_MSEC)
#define GUARD_NAMES  16 /* most names that are logged */

/*
 * How long a tick takes, which is learned by comparing the counter with the
 * clock at the beginnings of turns: first after TICK_LEARN, then each time that
 * ten times as much has passed since the first comparison, as longer times give
 * more exact rates.
 */
struct tick_rate {
	/* ns that 2^32 ticks take; 0: not known yet, or not to be used, as
	 * TICK_FINE is 0 or time is virtual */
	uint64_t ns;
	uint64_t ticks, began; /* the counter, and ns, at the first comparison
				*/
	uint64_t due;	       /* ns: when to compare again */
};

#define TICK_LEARN NSEC_PER_MSEC

/* ticks: if the thread is interrupted for so long while the counter and the
 * clock are read, they are not compared. At least 0.3 us */
#define TICK_INTERRUPTED (TICK_WINDOW >> 12)

/* Compares the counter, which was @ticks, with the time at that moment, @now
 * (ns). To be called when r->due has come. */
void tick_rate_learn(struct tick_rate *r, uint64_t ticks, uint64_t now);

/* All zero at first. */
struct guard {
	/* value of the tick counter: once it is passed, the clock is read when
	 * the next call ends */
	uint64_t late;
	struct tick_rate rate;
	uint64_t begun;	 /* ns: start of this turn */
	uint64_t looked; /* ns: when the clock was last read */
	/* a call of this turn was too long, and was named */
	bool named;
	uint64_t quiet_until; /* ns: until then no turn is logged */
	uint64_t sampled;     /* ns: the turn in which @starved was last set */
	uint64_t starved;     /* env_ops.starved() at that time */
	unsigned int nsaid;
	uint64_t said[GUARD_NAMES]; /* hashes of the names that were logged */
};

/* A turn begins at @now (ns). */
static inline void guard_turn_begin(struct guard *g, uint64_t now)
{
	g->begun = now;
	g->looked = now;
	g->named = false;
	g->late = tick_now() + TICK_WINDOW;
}
/* A turn has ended at @now (ns). Is it too long, so that guard_turn_long() must
 * be called? To be asked only if guard_is_late(). */
bool guard_turn_is_long(const struct guard *g, uint64_t now);
/* Logs that the turn was too long. @starved: env_ops.starved(). */
void guard_turn_long(struct guard *g, uint64_t now, uint64_t starved);
/* At the beginning of a turn: is it time for a new sample of env_ops.starved(),
 * for guard_sample()? */
static inline bool guard_sample_is_due(const struct guard *g)
{
	return g->begun - g->sampled >= GUARD_SAMPLE;
}
static inline void guard_sample(struct guard *g, uint64_t starved)
{
	g->sampled = g->begun;
	g->starved = starved;
}
/* Notes that the clock was read, and showed @now (ns). Returns the ns since it
 * was read before. */
uint64_t guard_look(struct guard *g, uint64_t now);
/* To be asked when a call, or the turn, ends: is it time to read the clock? */
static inline bool guard_is_late(const struct guard *g)
{
	return tick_now() > g->late;
}
/* A call has ended that has taken @ns, more than GUARD_LONG: logs its name,
 * made from @fmt and @args as by printf(): "the handler of ...". @starved:
 * env_ops.starved(). */
void guard_call(struct guard *g, uint64_t ns, uint64_t starved, const char *fmt,
		va_list args) __attribute__((format(printf, 4, 0)));

#endif
