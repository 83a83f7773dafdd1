/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment: the only source of time, timers' wake-ups, readiness of file
 * descriptors and randomness for everything above base/. Two kinds:
 *
 *	env_ev.c	libev, CLOCK_MONOTONIC, getrandom()
 *	env_sim.c	virtual time and one seeded generator, many loops in one
 *			thread, the same run for the same seed
 *
 * An env serves exactly one loop (loop.h), which is what others use.
 */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include "base/util.h"

struct env;
struct ev_loop;
struct lockstep;
struct loop;

#define ENV_READ  1
#define ENV_WRITE 2
#define ENV_ERROR 4

/* How a turn begins. */
enum env_wait {
	ENV_TRY,  /* at once; descriptors may be tried, see env_io.eager */
	ENV_LOOK, /* at once; the system is asked which descriptors are ready */
	ENV_WAIT, /* when there is something to do */
};

/* Interest in a file descriptor. Owned by the user, who must not free it while
 * it is watched. */
struct env_io {
	int fd;
	int events; /* ENV_READ | ENV_WRITE, as asked for */
	/* What is ready, of what was asked for. ENV_ERROR alone: the system
	 * does not let it be watched any longer (too many are, or there is no
	 * memory): fn is not called again unless it is watched anew. */
	void (*fn)(struct env_io *io, int revents);
	/* fn may be called for an event that was asked for and has not come:
	 * while a loop is polled, the descriptors that were active last are
	 * tried without asking the system first. */
	bool eager;
	void *impl; /* the env's own; NULL before the first watch */
};

struct env_ops {
	bool is_virtual; /* time, and one thread runs at a time */
	/* Monotonic time, ns. Owner. */
	uint64_t (*clock)(struct env *e);
	/* Fills @buf; cannot fail. Owner. */
	void (*random)(struct env *e, void *buf, size_t len);
	/* The loop must get a turn at @at (ns), or never (TIME_NEVER).
	 * Replaces the time said before. Owner. */
	void (*alarm)(struct env *e, uint64_t at);
	/* The loop must get a turn soon. Any thread. */
	void (*wake)(struct env *e);
	/* Starts watching, or changes what is watched (io->events; 0 pauses).
	 * 0, -ENOMEM, -errno of the system, or -ENOTSUP (virtual time knows no
	 * file descriptors). A descriptor in error is reported as all that was
	 * asked for. Owner. */
	int (*watch)(struct env *e, struct env_io *io);
	/* To be called before the descriptor is closed. No effect on one that
	 * is not watched; io->fn is not called afterwards. Owner. */
	void (*unwatch)(struct env *e, struct env_io *io);
	/* Gives the loop one turn, loop_turn_begin() to _end(), if there is
	 * something to do or the env does not know. Owner. */
	void (*run_once)(struct env *e, enum env_wait wait);
	/* For those who have their own way of waiting, instead of run_once()'s:
	 * a descriptor, the same each time, that is readable when the loop
	 * should get a turn because of a descriptor or of wake(). It does not
	 * show the alarm. -ENOTSUP; -errno. Owner. */
	int (*fd)(struct env *e);
	void (*free)(struct env *e);
};

struct env {
	const struct env_ops *ops;
	struct loop *loop;	   /* set by the loop */
	struct lockstep *lockstep; /* for threads that may block; NULL: time is
				    * real, and so are threads */
};

/* An env on @ev, the application's libev loop (borrowed until free), or on one
 * of its own when NULL. On a borrowed loop turns happen whenever the
 * application runs it; nothing of ours is a reason for ev_run() to go on. 0,
 * -ENOMEM, -EMFILE and the like: too few file descriptors are left; -errno of
 * libev's backend. */
int env_ev_new(struct ev_loop *ev, struct env **env_p) must_check;

/* ---- virtual time ---- */

struct env_sim;

/* One world: a clock that starts at 0, one generator, and threads in lockstep
 * (lockstep.h). All of it belongs to one thread, which calls env_sim_step(),
 * and to those in lockstep with it; wake, too. */
int env_sim_new(uint64_t seed, struct env_sim **sim_p) must_check;
/* All its envs must have been freed, and all its threads joined. */
void env_sim_free(struct env_sim *s);
/* One more loop's env in that world. */
int env_sim_env(struct env_sim *s, struct env **env_p) must_check;
uint64_t env_sim_now(const struct env_sim *s);
uint64_t env_sim_random(struct env_sim *s);
/* Does the next thing: a thread in lockstep runs on that is ready to, or else a
 * loop gets a turn that has something to do now, or else the clock moves to the
 * next alarm. At each instant loops are served in rounds, in the order in which
 * they were made. Returns false, and does nothing, when there is nothing left
 * to do, or only after @until (ns): then the clock is at @until unless that is
 * TIME_NEVER. */
bool env_sim_step(struct env_sim *s, uint64_t until);

/* A small seeded generator (xoshiro256**), for those who need their own. */
struct rng {
	uint64_t s[4];
};
void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
/* Uniform in [0, @n); 0 for @n = 0. */
uint64_t rng_below(struct rng *r, uint64_t n);

#endif
