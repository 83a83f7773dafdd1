/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory is compared with a plain array; with memory that runs out at
 * each place; the cost of a change among many entries. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "lnet/core/directory.h"
#include "tests/unit/base/loop_rig.h"

#define CPTS 3

/* The linker replaces malloc() by this function. */
void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);

/* how many of the next calls succeed; < 0: all */
static int mallocs_left = -1;
static size_t bytes_asked; /* by all calls so far */

void *__wrap_malloc(size_t size)
{
	if (mallocs_left == 0)
		return NULL;
	if (mallocs_left > 0)
		mallocs_left--;
	bytes_asked += size;
	return __real_malloc(size);
}

struct rig {
	struct directory d;
	struct loop *loops[CPTS];
};

static unsigned int idled;

/* what each loop was told last, and how often */
static struct directory_entry told[CPTS];
static unsigned int ntold[CPTS];

static void on_idled(struct directory *d)
{
	cr_assert(directory_is_idle(d));
	idled++;
}

static void on_changed(struct directory *d, unsigned int cpt,
		       const struct directory_entry *to, unsigned int n)
{
	cr_assert_eq(loop_current(), d->loops[cpt]);
	cr_assert_not(directory_is_idle(d));
	told[cpt] = to[n - 1];
	ntold[cpt]++;
}

static const struct directory_users users = { .changed = on_changed,
					      .idled = on_idled };

static void rig_open(struct rig *r, unsigned int cpts)
{
	for (unsigned int i = 0; i < cpts; i++)
		r->loops[i] = make_loop(NULL);
	directory_init(&r->d, cpts, r->loops, 12345, &users);
	idled = 0;
}

/* Runs turns until no replaced part of the directory waits for a loop. */
static void rig_settle(struct rig *r)
{
	for (unsigned int i = 0; !directory_is_idle(&r->d); i++) {
		cr_assert_lt(i, 3 * CPTS);
		loop_run_once(r->loops[i % r->d.cpts], false);
	}
}

static void rig_close(struct rig *r)
{
	rig_settle(r);
	directory_fini(&r->d);
	for (unsigned int i = 0; i < r->d.cpts; i++)
		loop_free(r->loops[i]);
}

static struct ulnet_nid nth(unsigned int n)
{
	return (struct ulnet_nid){ .type = LNET_TYPE_SOCK,
				   .addr = { 10, (uint8_t)(n >> 16),
					     (uint8_t)(n >> 8), (uint8_t)n } };
}

static struct directory_entry entry(unsigned int n, unsigned int primary,
				    unsigned int cpt)
{
	return (struct directory_entry){ nth(n), nth(primary), cpt,
					 n != primary };
}

static void check_says(struct rig *r, const struct directory_entry *want)
{
	struct ulnet_nid primary = directory_primary(&r->d, &want->nid);

	cr_assert(lnet_nid_eq(&primary, &want->primary));
	cr_assert_eq(directory_cpt(&r->d, &want->nid), want->cpt);
}

static struct directory_entry default_of(const struct rig *r, unsigned int n)
{
	struct ulnet_nid nid = nth(n);

	return entry(n, n, directory_default_cpt(&r->d, &nid));
}

static void check_default(struct rig *r, unsigned int n)
{
	struct directory_entry e = default_of(r, n);

	check_says(r, &e);
}

Test(directory, empty_says_what_the_hash_says)
{
	struct rig r;
	unsigned int seen = 0;

	rig_open(&r, CPTS);
	for (unsigned int i = 0; i < 100; i++) {
		struct ulnet_nid nid = nth(i);

		check_default(&r, i);
		seen |= 1u << directory_cpt(&r.d, &nid);
	}
	cr_assert_eq(seen, (1u << CPTS) - 1);
	rig_close(&r);
}

Test(directory, one_cpt_owns_all_and_still_knows_primaries)
{
	struct directory_entry e = entry(7, 1, 0);
	struct rig r;

	rig_open(&r, 1);
	cr_assert_eq(directory_change(&r.d, &e, 1), 0);
	check_says(&r, &e);
	check_default(&r, 1);
	rig_close(&r);
}

Test(directory, entries_come_change_and_go)
{
	struct directory_entry e[3];
	struct rig r;

	rig_open(&r, CPTS);
	for (unsigned int i = 0; i < 3; i++)
		e[i] = entry(i, 0, 1);
	cr_assert_eq(directory_change(&r.d, e, 3), 0);
	for (unsigned int i = 0; i < 3; i++)
		check_says(&r, &e[i]);
	check_default(&r, 3);

	e[1] = entry(1, 2, 0);
	cr_assert_eq(directory_change(&r.d, &e[1], 1), 0);
	for (unsigned int i = 0; i < 3; i++)
		check_says(&r, &e[i]);

	for (unsigned int i = 0; i < 3; i++)
		e[i] = default_of(&r, i);
	cr_assert_eq(directory_change(&r.d, e, 3), 0);
	for (unsigned int i = 0; i < 3; i++)
		check_default(&r, i);
	cr_assert_eq(atomic_load(&r.d.count), 0);
	rig_close(&r);
}

/* Two NIDs are of one peer, also if one of them belongs to the CPT that its
 * hash says. */
Test(directory, same)
{
	struct ulnet_nid a = nth(1), b = nth(2), c = nth(3);
	struct directory_entry e[2];
	struct rig r;

	rig_open(&r, CPTS);
	cr_assert(directory_same(&r.d, &a, &a));
	cr_assert_not(directory_same(&r.d, &a, &b));
	e[0] = default_of(&r, 1);
	e[0].several = true;
	e[1] = entry(2, 1, e[0].cpt);
	cr_assert_eq(directory_change(&r.d, e, 2), 0);
	cr_assert_eq(atomic_load(&r.d.count), 2);
	cr_assert(directory_same(&r.d, &a, &b));
	cr_assert(directory_same(&r.d, &b, &a));
	cr_assert_not(directory_same(&r.d, &a, &c));
	rig_close(&r);
}

/* A part that was replaced is kept until each loop was told. */
Test(directory, every_loop_is_waited_for)
{
	struct directory_entry e = entry(1, 2, 0);
	struct rig r;

	rig_open(&r, CPTS);
	cr_assert_eq(directory_change(&r.d, &e, 1), 0);
	e.primary = nth(3);
	cr_assert_eq(directory_change(&r.d, &e, 1), 0);
	for (unsigned int i = 0; i < CPTS; i++) {
		cr_assert_not(directory_is_idle(&r.d));
		cr_assert_eq(idled, 0);
		cr_assert_eq(ntold[i], 0);
		loop_run_once(r.loops[i], false);
		cr_assert_eq(ntold[i], 2);
		cr_assert(lnet_nid_eq(&told[i].primary, &e.primary));
	}
	cr_assert(directory_is_idle(&r.d));
	cr_assert_eq(idled, 1);
	/* Saying the same again is no change. */
	cr_assert_eq(directory_change(&r.d, &e, 1), 0);
	cr_assert(directory_is_idle(&r.d));
	rig_close(&r);
}

#define MANY 8

/* Fills @e with entries that are in different shards, so that there are many
 * allocations. */
static void fill(struct directory_entry *e, unsigned int primary)
{
	for (unsigned int i = 0; i < MANY; i++)
		e[i] = entry(i, primary, i % CPTS);
}

/* If memory runs out, wherever, then nothing is added, changed or removed. */
Test(directory, no_memory_changes_nothing)
{
	struct directory_entry before[MANY], after[MANY];
	struct rig r;
	int failed;

	rig_open(&r, CPTS);
	for (unsigned int i = 0; i < MANY; i++)
		before[i] = default_of(&r, i);
	for (unsigned int step = 0; step < 3; step++) {
		fill(after, 100 + step);
		for (unsigned int i = 0; step == 2 && i < MANY; i++)
			after[i] = default_of(&r, i);
		failed = 0;
		for (int left = 0;; left++, failed++) {
			int rc;

			mallocs_left = left;
			rc = directory_change(&r.d, after, MANY);
			mallocs_left = -1;
			if (!rc)
				break;
			cr_assert_eq(rc, -ENOMEM);
			for (unsigned int i = 0; i < MANY; i++)
				check_says(&r, &before[i]);
		}
		/* There were several allocations, since the NIDs are in several
		 * shards. */
		cr_assert_gt(failed, 2);
		for (unsigned int i = 0; i < MANY; i++)
			check_says(&r, &after[i]);
		memcpy(before, after, sizeof(before));
		rig_settle(&r);
	}
	rig_close(&r);
}

#define CROWD 100000

static unsigned int random_below(unsigned int n)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned int)(x >> 33) % n;
}

/* The directory agrees with an array that has the same entries. */
Test(directory, a_crowd)
{
	struct directory_entry *is = calloc(CROWD, sizeof(*is));
	struct rig r;

	rig_open(&r, CPTS);
	for (unsigned int i = 0; i < CROWD; i++) {
		is[i] = entry(i, i / 4 * 4, random_below(CPTS));
		cr_assert_eq(directory_change(&r.d, &is[i], 1), 0);
		rig_settle(&r);
	}
	cr_assert_gt(atomic_load(&r.d.count), CROWD / 2);
	bytes_asked = 0;
	for (unsigned int i = 0; i < 10000; i++) {
		unsigned int n = random_below(CROWD);

		is[n] = random_below(2) ? entry(n, random_below(CROWD),
						random_below(CPTS))
					: default_of(&r, n);
		cr_assert_eq(directory_change(&r.d, &is[n], 1), 0);
		rig_settle(&r);
	}
	/* A change copies one of 1,024 shards, whose sizes vary a little. */
	cr_assert_lt(bytes_asked / 10000, 2 * CROWD / DIRECTORY_SHARDS * 64);
	for (unsigned int i = 0; i < CROWD; i++)
		check_says(&r, &is[i]);
	free(is);
	rig_close(&r);
}
