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

void guard_turn_end(struct guard *g, uint64_t now)
{
	if (now <= g->begun + GUARD_LONG || g->named || now < g->quiet_until)
		return;
	g->quiet_until = now + GUARD_PAUSE;
	log_warn("loop",
		 "a turn took %llu ms, and everybody else on its thread "
		 "waited, though no call in it took as long",
		 to_ms(now - g->begun));
}

void guard_look(struct guard *g, uint64_t now)
{
	g->looked = now;
	/* If the turn is too long already, late = 0 makes sure that its end is
	 * noticed. */
	g->late = now > g->begun + GUARD_LONG ? 0 : tick_now() + TICK_WINDOW;
}

/* Is @name new, and not one too many? If so, remembers it. */
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

void guard_call(struct guard *g, uint64_t now, const char *fmt, va_list args)
{
	uint64_t ns = now - g->looked;
	char name[256];

	/* Time until now is counted only once: a call that encloses this one is
	 * not blamed for it. */
	guard_look(g, now);
	if (ns <= GUARD_LONG)
		return;
	g->named = true;
	vsnprintf(name, sizeof(name), fmt, args);
	if (remember(g, name))
		log_warn("loop",
			 "%s took %llu ms, in which everybody else on its "
			 "thread waited: it, or who called it, must not block",
			 name, to_ms(ns));
}
