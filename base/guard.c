/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/guard.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"

static unsigned long long to_ms(uint64_t ns)
{
	return ns / NSEC_PER_MSEC;
}

void tick_rate_learn(struct tick_rate *r, uint64_t ticks, uint64_t now)
{
	uint64_t ns = now - r->began, took = ticks - r->ticks;

	if (!TICK_FINE) {
		r->due = TIME_NEVER;
	} else if (!r->due) {
		r->ticks = ticks;
		r->began = now;
		r->due = now + TICK_LEARN;
	} else {
		r->ns = took ? (uint64_t)(((unsigned __int128)ns << 32) / took)
			     : 0;
		r->due = now + 9 * ns;
	}
}

/* Returns how many of the last @ns the thread was ready to run but had no
 * processor. Such time between the last sample and the last @ns is counted as
 * well. Without a sample the result is 0. */
static uint64_t idle_of(struct guard *g, uint64_t ns, uint64_t starved)
{
	uint64_t idle = g->sampled ? starved - MIN(g->starved, starved) : 0;

	g->starved = starved;
	return MIN(idle, ns);
}

bool guard_turn_is_long(const struct guard *g, uint64_t now)
{
	return now > g->begun + GUARD_LONG && !g->named &&
	       now >= g->quiet_until;
}

void guard_turn_long(struct guard *g, uint64_t now, uint64_t starved)
{
	uint64_t ns = now - g->begun, idle = idle_of(g, ns, starved);

	if (ns - idle <= GUARD_LONG)
		return;
	g->quiet_until = now + GUARD_PAUSE;
	log_warn("loop",
		 "a turn took %llu ms (%llu of them without a processor), and "
		 "everybody else on its thread waited, though no call in it "
		 "took as long",
		 to_ms(ns), to_ms(idle));
}

uint64_t guard_look(struct guard *g, uint64_t now)
{
	uint64_t ns = now - g->looked;

	g->looked = now;
	/* If the turn is too long already, late = 0 makes sure that its end is
	 * noticed. */
	g->late = now > g->begun + GUARD_LONG ? 0 : tick_now() + TICK_WINDOW;
	return ns;
}

/* If @name is new, and there is room for it, remembers it and returns true. */
static bool remember(struct guard *g, const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name), 0);

	for (unsigned int i = 0; i < g->nsaid; i++)
		if (g->said[i] == hash)
			return false;
	if (g->nsaid == GUARD_NAMES)
		return false;
	g->said[g->nsaid++] = hash;
	return true;
}

void guard_call(struct guard *g, uint64_t ns, uint64_t starved, const char *fmt,
		va_list args)
{
	uint64_t idle = idle_of(g, ns, starved);
	char name[256];

	g->named = true;
	if (ns - idle <= GUARD_LONG)
		return;
	vsnprintf(name, sizeof(name), fmt, args);
	if (remember(g, name))
		log_warn("loop",
			 "%s took %llu ms (%llu of them without a processor), "
			 "in which everybody else on its thread waited: it, or "
			 "who called it, must not block",
			 name, to_ms(ns), to_ms(idle));
}
