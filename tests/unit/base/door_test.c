/* SPDX-License-Identifier: BSD-3-Clause */
/* The door: how much time handshakes may take, of known hosts and of strangers,
 * and whose turn it is. */
#include "base/door.h"

#include <criterion/criterion.h>

#define MSEC UINT64_C(1000000)
#define SEC  (1000 * MSEC)
#define STEP (MSEC / 2)

/* Host @i begins, and takes STEP, if it may. */
static bool enters(struct door *d, unsigned int i, bool busy, uint64_t now,
		   enum door_class is)
{
	enum door_class class;

	if (!door_begin(d, &i, busy, false, now, &class))
		return false;
	cr_assert_eq(class, is);
	door_take(d, &i, class, STEP, now);
	return true;
}

/* Host @i tries all the time, from @from on for a second. Returns what it
 * took. */
static uint64_t takes(struct door *d, unsigned int i, uint64_t from,
		      enum door_class is)
{
	uint64_t n = 0;

	for (uint64_t at = 0; at < SEC; at += MSEC / 10)
		n += enters(d, i, false, from + at, is);
	return n * STEP;
}

Test(door, shares)
{
	unsigned int known = 1;
	uint64_t t = 100 * SEC, took;
	struct door d;

	door_init(&d, sizeof(unsigned int), 1, t);
	/* It has just begun, and knows nobody. */
	took = takes(&d, 7, t, DOOR_KNOWN);
	cr_assert_geq(took, SEC / 2 - STEP);
	cr_assert_leq(took, (SEC + DOOR_SPARE) / 2 + STEP);
	t += DOOR_START;
	took = takes(&d, 7, t, DOOR_STRANGER);
	cr_assert_geq(took, SEC / 8 - STEP);
	cr_assert_leq(took, (SEC + DOOR_SPARE) / 8 + STEP);
	/* Strangers who have taken all leave known hosts theirs. */
	door_proved(&d, &known);
	took = takes(&d, 1, t, DOOR_KNOWN);
	cr_assert_geq(took, SEC / 2 - STEP);
	cr_assert_leq(took, (SEC + DOOR_SPARE) / 2 + STEP);
	door_fini(&d);
}

/* A long silence saves up no more than a short one. */
Test(door, spare)
{
	uint64_t t = 1000 * SEC;
	unsigned int n = 0;
	struct door d;

	door_init(&d, sizeof(unsigned int), 1, 0);
	while (enters(&d, n, false, t, DOOR_STRANGER))
		n++;
	cr_assert_eq(n, DOOR_SPARE / DOOR_STRANGER_OF / STEP + 1);
	door_fini(&d);
}

/* What is under way goes on for a while when nothing begins any more. */
Test(door, under_way)
{
	uint64_t t = 1000 * SEC, n = 0;
	unsigned int host = 1;
	struct door d;

	door_init(&d, sizeof(unsigned int), 1, 0);
	while (enters(&d, 1, false, t, DOOR_STRANGER)) {
	}
	for (; door_go_on(&d, DOOR_STRANGER, t); n++)
		door_take(&d, &host, DOOR_STRANGER, STEP, t);
	cr_assert_geq(n, DOOR_SPARE / DOOR_STRANGER_OF / STEP);
	cr_assert_leq(n, DOOR_SPARE / DOOR_STRANGER_OF / STEP + 1);
	cr_assert(door_go_on(&d, DOOR_KNOWN, t));
	cr_assert(door_go_on(&d, DOOR_STRANGER, t + STEP * DOOR_STRANGER_OF));
	door_fini(&d);
}

/* Half of what strangers have is for hosts with no handshake under way. */
Test(door, one_for_each_host)
{
	uint64_t t = 1000 * SEC, n = 0;
	unsigned int known = 2;
	struct door d;

	door_init(&d, sizeof(unsigned int), 1, 0);
	while (enters(&d, 1, true, t, DOOR_STRANGER))
		n++;
	cr_assert_leq(n, DOOR_SPARE / DOOR_STRANGER_OF / STEP / 2 + 1);
	cr_assert(enters(&d, 3, false, t, DOOR_STRANGER));
	door_proved(&d, &known);
	for (n = 0; enters(&d, 2, true, t, DOOR_KNOWN); n++) {
	}
	cr_assert_geq(n, DOOR_SPARE / DOOR_KNOWN_OF / STEP / 2);
	door_fini(&d);
}

/* It remembers the hosts that have proved who they are last. */
Test(door, known_hosts)
{
	struct door d;

	door_init(&d, sizeof(unsigned int), 1, 0);
	for (unsigned int i = 0; i <= DOOR_HOSTS; i++) {
		unsigned int first = 0;

		door_proved(&d, &i);
		if (i == DOOR_HOSTS / 2)
			door_proved(&d, &first);
	}
	cr_assert_eq(d.by_name.count, DOOR_HOSTS);
	cr_assert(enters(&d, 0, false, 1000 * SEC, DOOR_KNOWN));
	cr_assert(enters(&d, 1, false, 1000 * SEC, DOOR_STRANGER));
	cr_assert(enters(&d, 2, false, 1000 * SEC, DOOR_KNOWN));
	door_fini(&d);
}

/* Known hosts are always answered, others so many times in a second. */
Test(door, answers)
{
	unsigned int known = 1, stranger = 2;
	uint64_t t = 1000 * SEC, n = 0;
	struct door d;

	door_init(&d, sizeof(unsigned int), 1, 0);
	door_proved(&d, &known);
	for (uint64_t at = 0; at < SEC; at += SEC / 10000) {
		n += door_answer(&d, &stranger, t + at);
		cr_assert(door_answer(&d, &known, t + at));
	}
	cr_assert_geq(n, SEC / DOOR_ANSWER);
	cr_assert_leq(n, (SEC + DOOR_SPARE) / DOOR_ANSWER + 1);
	door_fini(&d);
}

/* A known host begins handshakes without end, and is always the first to try;
 * others begin @others of them in a second, and all get in when they come.
 * Returns what the first one takes, in ns. */
static uint64_t greedy_takes(unsigned int others)
{
	uint64_t t = 1000 * SEC, taken = 0, come = 0;
	struct door d;

	door_init(&d, sizeof(unsigned int), 1, 0);
	for (unsigned int i = 0; i <= 100; i++)
		door_proved(&d, &i);
	for (uint64_t at = 0; at < SEC; at += MSEC / 10) {
		taken += STEP * enters(&d, 0, true, t + at, DOOR_KNOWN);
		if (at * others < come * SEC)
			continue;
		cr_assert(enters(&d, 1 + come % 100, true, t + at, DOOR_KNOWN));
		come++;
	}
	door_fini(&d);
	return taken;
}

/* Alone it may take all that known hosts have; while others come, not more than
 * they leave. */
Test(door, a_greedy_host)
{
	cr_assert_geq(greedy_takes(0), SEC / 2 - STEP);
	cr_assert_geq(greedy_takes(500), SEC / 4 - DOOR_SPARE);
	cr_assert_leq(greedy_takes(800),
		      SEC / 2 - 800 * STEP + (DOOR_SPARE + STEP) / 2);
}
