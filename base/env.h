/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment: the only source of time, wake-ups, readiness of file
 * descriptors and randomness for everything above base/. There are two kinds:
 *
 *	env_ev.c	libev, CLOCK_MONOTONIC, getrandom()
 *	env_sim.c	virtual time and one seeded generator, many loops in one
 *			thread, the same run for the same seed
 *
 * An env serves exactly one loop (loop.h), through which others use it. Where
 * not said otherwise, a function is for that loop's owner.
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
/* With others: the system was not asked (env_io.eager). */
#define ENV_POLLED 8

/* How a turn begins. */
enum env_wait {
	ENV_TRY,  /* at once; eager descriptors may be served without asking
		   * the system which ones are ready (env_io.eager) */
	ENV_LOOK, /* at once; asks the system which descriptors are ready */
	ENV_PEEK, /* at once, for a loop that asks again and again before it
		   * sleeps: there is no turn unless there is something to do.
		   * Where that may be in an eager descriptor's memory
		   * (env_io.news), the system is asked now and then only */
	ENV_WAIT, /* sleeps until there is something to do */
};

/* A file descriptor that is watched. The memory is the user's, who must not
 * free it before unwatch(). */
struct env_io {
	int fd;
	int events; /* asked for: ENV_READ, ENV_WRITE or both */
	/* Called with those of the events asked for that have come. ENV_ERROR
	 * alone: the system cannot watch the descriptor any longer (too many
	 * are watched, or there is no memory), and fn is not called again until
	 * the next watch(). */
	void (*fn)(struct env_io *io, int revents);
	/* fn may be called for events that have not come: while a loop is
	 * polled, the descriptors that were active last are served without
	 * asking the system first. */
	bool eager;
	/* Optional, of an eager descriptor whose fn also serves what the system
	 * knows nothing of, such as shared memory. While a loop polls, it calls
	 * fn for that (ENV_POLLED). Before it stops doing so, and may sleep, it
	 * calls rest(), after which the descriptor itself must become ready as
	 * soon as there is something. Returns false: there is something
	 * already, and fn is to be called soon. Also called after each fn, by
	 * loops that are never polled. */
	bool (*rest)(struct env_io *io);
	/* With rest: is there something now, of what the system knows nothing
	 * of, that fn would do? Changes nothing. */
	bool (*news)(const struct env_io *io);
	void *impl; /* the env's own; NULL before the first watch() */
};

struct env_ops {
	bool is_virtual; /* time is virtual, and one thread runs at a time */
	/* Returns the monotonic time, ns. */
	uint64_t (*clock)(struct env *e);
	/* Returns for how many ns, since it began, the calling thread was ready
	 * to run and had no processor. Returns 0: the system does not say.
	 * NULL: time stands still meanwhile. Takes some 10 us. */
	uint64_t (*starved)(struct env *e);
	/* Returns on how many processors the calling thread may run. NULL:
	 * there are enough. */
	unsigned int (*processors)(struct env *e);
	/* Fills @buf; cannot fail. */
	void (*random)(struct env *e, void *buf, size_t len);
	/* Sets when the loop needs its next turn, ns; TIME_NEVER: it needs
	 * none. Replaces the time set before. */
	void (*alarm)(struct env *e, uint64_t at);
	/* Makes the loop have a turn soon. Any thread. */
	void (*wake)(struct env *e);
	/* Starts watching, or changes what is watched (io->events; 0 pauses). A
	 * descriptor in error is reported as all events asked for. Returns 0;
	 * -ENOMEM; -errno of the system. In virtual time the descriptors must
	 * be such that only the simulation makes them ready, as pipes and
	 * sockets between its own nodes. */
	int (*watch)(struct env *e, struct env_io *io);
	/* Stops watching; must be called before the descriptor is closed.
	 * io->fn is not called afterwards. No effect on a descriptor that is
	 * not watched. */
	void (*unwatch)(struct env *e, struct env_io *io);
	/* Gives the loop one turn, loop_turn_begin() to _end(), unless the env
	 * knows that there is nothing to do. */
	void (*run_once)(struct env *e, enum env_wait wait);
	/* For callers with their own way of waiting. Returns a descriptor, the
	 * same each time, that is readable when the loop needs a turn because
	 * of a watched descriptor or of wake(); but not because of the alarm.
	 * -ENOTSUP; -errno. */
	int (*fd)(struct env *e);
	void (*free)(struct env *e);
};

struct env {
	const struct env_ops *ops;
	struct loop *loop; /* the loop that the env serves; set by that loop */
	/* the threads of the simulation that may block; NULL: time is real */
	struct lockstep *lockstep;
	/* with @lockstep: until this time, ns, the threads of whoever uses this
	 * env get no turn: env_sim_freeze() */
	const uint64_t *held;
	/* a random number that all envs of a simulation have, which the run
	 * must not depend on: for names that other processes see; 0: time is
	 * real */
	uint64_t world;
};

/* Makes an env on @ev, the application's libev loop (borrowed until free);
 * NULL: on a libev loop of its own. A borrowed loop gets its turns whenever the
 * application runs it, and our watchers do not keep ev_run() from returning.
 * Returns 0; -ENOMEM; -EMFILE and the like: too few file descriptors are left;
 * -errno of libev's backend. */
int env_ev_new(struct ev_loop *ev, struct env **env_p) must_check;

/* ---- virtual time ---- */

struct env_sim;

/* Makes a simulation: a clock that starts at 0, one random generator, and
 * threads in lockstep (lockstep.h). All of it, including env_ops.wake(), is for
 * the thread that calls env_sim_step() and for those in lockstep with it.
 * Returns 0 or -ENOMEM. */
int env_sim_new(uint64_t seed, struct env_sim **sim_p) must_check;
/* Frees a simulation whose envs were all freed and whose threads were all
 * joined. */
void env_sim_free(struct env_sim *s);
/* Makes an env for one more loop of the simulation. Returns 0 or -ENOMEM. */
int env_sim_env(struct env_sim *s, struct env **env_p) must_check;
/* Makes the loop of @env have no turn until @until, ns. */
void env_sim_freeze(struct env *env, uint64_t until);
/* From now on a loop hears of what has come to a descriptor within @most ns,
 * drawn for each. 0, at first: at once. */
void env_sim_delay(struct env_sim *s, uint64_t most);
/* Ends each connected socket that the loop of @env watches, for the other end
 * only, as if this process had died. */
void env_sim_hang_up(struct env *env);
uint64_t env_sim_now(const struct env_sim *s);
uint64_t env_sim_random(struct env_sim *s);
/* Makes one step: if a thread in lockstep is ready, lets it run; else, if a
 * loop has something to do now, gives it a turn; else moves the clock to the
 * next alarm. At each instant loops are served in rounds, in the order in which
 * they were made. Returns false if there is nothing to do up to @until (ns):
 * then only the clock has moved, to @until, unless that is TIME_NEVER. */
bool env_sim_step(struct env_sim *s, uint64_t until);

/* A small seeded generator (xoshiro256**). */
struct rng {
	uint64_t s[4];
};
void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
/* Returns a number that is uniform in [0, @n); 0 for @n = 0. */
uint64_t rng_below(struct rng *r, uint64_t n);

#endif
