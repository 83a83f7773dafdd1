/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/guard.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"

void guard_init(struct guard *g)
{
	*g = (struct guard){ .watching = false };
}

void guard_turn_slow(struct guard *g, uint64_t begun, uint64_t now)
{
	bool is_long = now > begun + GUARD_LONG;

	if (is_long && !g->watching) {
		log_warn("loop",
			 "a turn took %llu ms, and everybody else on its "
			 "thread waited: something blocks. If it does so "
			 "again within %llu s, it will be named",
			 (unsigned long long)((now - begun) / NSEC_PER_MSEC),
			 (unsigned long long)(GUARD_WATCH / NSEC_PER_SEC));
		g->watching = true;
	}
	if (is_long)
		g->until = now + GUARD_WATCH;
	else if (now > g->until)
		g->watching = false;
	g->named = false;
}

/* Is @name new? If so, remembers it. */
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

void guard_call(struct guard *g, uint64_t ns, const char *fmt, va_list args)
{
	char name[256];

	/* Calls around this one took as long: the first one that returns is to
	 * blame. */
	if (ns < GUARD_LONG || g->named)
		return;
	g->named = true;
	vsnprintf(name, sizeof(name), fmt, args);
	if (remember(g, name))
		log_warn("loop",
			 "%s took %llu ms, in which everybody else on its "
			 "thread waited: it must not block",
			 name, (unsigned long long)(ns / NSEC_PER_MSEC));
}
