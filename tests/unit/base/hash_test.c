/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/hash.h"

struct entry {
	struct hash_node node;
	unsigned int key;
};

static struct entry *entry_of(struct hash_node *n)
{
	return container_of(n, struct entry, node);
}

static struct entry *find(const struct hash *h, unsigned int key)
{
	struct entry *e;

	hash_for_each_equal (e, h, hash_u64(key, 1), node)
		if (e->key == key)
			return e;
	return NULL;
}

Test(hash, empty)
{
	struct hash h;
	uint32_t bucket = 0;

	hash_init(&h);
	cr_assert_null(hash_first(&h, 0));
	cr_assert_null(hash_walk(&h, &bucket, NULL));
	hash_fini(&h);
}

Test(hash, grows_and_finds)
{
	enum { N = 10000 };
	struct entry *e = calloc(N, sizeof(*e));
	struct hash h;

	hash_init(&h);
	for (unsigned int i = 0; i < N; i++) {
		e[i].key = i;
		cr_assert_eq(hash_add(&h, &e[i].node, hash_u64(i, 1)), 0);
		cr_assert_eq(find(&h, i / 2), &e[i / 2]);
	}
	cr_assert_eq(h.count, N);
	cr_assert_geq(h.mask + 1, N / 2);
	for (unsigned int i = 0; i < N; i += 2)
		hash_del(&h, &e[i].node);
	for (unsigned int i = 0; i < N; i++)
		cr_assert_eq(find(&h, i), i % 2 ? &e[i] : NULL);
	for (unsigned int i = 1; i < N; i += 2)
		hash_del(&h, &e[i].node);
	hash_fini(&h);
	free(e);
}

/* Many entries have the same hash; with others between them, the table grows
 * many times. */
Test(hash, equal_hashes_keep_their_order)
{
	enum { EQUAL = 20, OTHERS = 5000 };
	static struct entry eq[EQUAL], other[OTHERS];
	struct hash_node *n;
	unsigned int i = 0;
	struct hash h;

	hash_init(&h);
	/* the expected order: 19 17 .. 1 0 2 .. 18 */
	for (unsigned int k = 0; k < EQUAL; k++) {
		eq[k].key = k;
		cr_assert_eq(k % 2 ? hash_add(&h, &eq[k].node, 77)
				   : hash_add_tail(&h, &eq[k].node, 77),
			     0);
	}
	for (unsigned int k = 0; k < OTHERS; k++)
		cr_assert_eq(hash_add(&h, &other[k].node, 100 + k), 0);
	for (n = hash_first(&h, 77); n; n = hash_next(n), i++) {
		unsigned int want =
			i < EQUAL / 2 ? EQUAL - 1 - 2 * i : 2 * i - EQUAL;
		cr_assert_eq(entry_of(n)->key, want);
	}
	cr_assert_eq(i, EQUAL);
	for (unsigned int k = 0; k < EQUAL; k++)
		hash_del(&h, &eq[k].node);
	for (unsigned int k = 0; k < OTHERS; k++)
		hash_del(&h, &other[k].node);
	hash_fini(&h);
}

/* Adding and removing an entry touches only its neighbours in the bucket,
 * however many have the same hash: all other entries are made inaccessible
 * here. */
Test(hash, equal_hashes_are_not_searched)
{
	enum { N = 10 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, N * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hash_node *n[N], in_front, behind;
	struct hash h;

	cr_assert_neq(pages, MAP_FAILED);
	hash_init(&h);
	for (unsigned int i = 0; i < N; i++) {
		n[i] = (struct hash_node *)(void *)(pages + i * page);
		cr_assert_eq(hash_add_tail(&h, n[i], 77), 0);
	}
	cr_assert_eq(mprotect(pages + 2 * page, (N - 4) * page, PROT_NONE), 0);
	cr_assert_eq(hash_add_tail(&h, &behind, 77), 0);
	cr_assert_eq(hash_add(&h, &in_front, 77), 0);
	hash_del(&h, n[0]);
	hash_del(&h, n[N - 1]);
	hash_del(&h, &behind);
	hash_del(&h, &in_front);
	cr_assert_eq(mprotect(pages, N * page, PROT_READ | PROT_WRITE), 0);
	cr_assert_eq(mprotect(pages, page, PROT_NONE), 0);
	cr_assert_eq(mprotect(pages + 6 * page, 2 * page, PROT_NONE), 0);
	hash_del(&h, n[4]);
	cr_assert_eq(mprotect(pages, N * page, PROT_READ | PROT_WRITE), 0);
	for (unsigned int i = 1; i < N - 1; i++)
		if (i != 4)
			hash_del(&h, n[i]);
	hash_fini(&h);
	munmap(pages, N * page);
}

Test(hash, walk_sees_each_once_and_may_remove)
{
	enum { N = 1000 };
	static struct entry e[N];
	struct hash_node *n, *next;
	uint32_t bucket = 0;
	struct hash h;

	hash_init(&h);
	for (unsigned int i = 0; i < N; i++)
		cr_assert_eq(hash_add(&h, &e[i].node, i * 7), 0);
	for (n = hash_walk(&h, &bucket, NULL); n; n = next) {
		next = hash_walk(&h, &bucket, n);
		entry_of(n)->key++;
		hash_del(&h, n);
	}
	for (unsigned int i = 0; i < N; i++)
		cr_assert_eq(e[i].key, 1);
	hash_fini(&h);
}

/* As many entries again are added during the walk, which would make the table
 * grow. */
Test(hash, walk_while_the_size_is_held_sees_each_once)
{
	enum { N = 16 };
	static struct entry e[N], added[4 * N];
	struct hash_node *n = NULL;
	uint32_t bucket = 0, last = 0;
	struct hash h;

	hash_init(&h);
	for (unsigned int i = 0; i < N; i++)
		cr_assert_eq(hash_add(&h, &e[i].node, i | N), 0);
	hash_hold_size(&h, true);
	while ((n = hash_walk(&h, &bucket, n))) {
		entry_of(n)->key++;
		if (last < 4 * N) {
			cr_assert_eq(hash_add(&h, &added[last].node, 0), 0);
			last++;
		}
	}
	hash_hold_size(&h, false);
	cr_assert_eq(h.mask, N - 1);
	for (unsigned int i = 0; i < N; i++) {
		cr_assert_eq(e[i].key, 1, "entry %u: %u times", i,
			     (unsigned int)e[i].key);
		hash_del(&h, &e[i].node);
	}
	cr_assert_eq(hash_add(&h, &e[0].node, 1), 0);
	cr_assert_gt(h.mask, N - 1);
	hash_del(&h, &e[0].node);
	while (last--)
		hash_del(&h, &added[last].node);
	hash_fini(&h);
}

Test(hash, functions_are_keyed)
{
	cr_assert_neq(hash_u64(1, 1), hash_u64(1, 2));
	cr_assert_neq(hash_u64(1, 1), hash_u64(2, 1));
	cr_assert_eq(hash_u64(5, 9), hash_u64(5, 9));
	cr_assert_eq(hash_bytes("abc", 3, 4), hash_bytes("abcd", 3, 4));
	cr_assert_neq(hash_bytes("abc", 3, 4), hash_bytes("abc", 3, 5));
}

Test(hash, for_each)
{
	enum { N = 100 };
	static struct entry entries[N];
	unsigned int seen = 0, sum = 0;
	struct entry *e;
	struct hash h;

	hash_init(&h);
	hash_for_each (e, &h, node)
		seen++;
	cr_expect_eq(seen, 0);
	for (unsigned int i = 0; i < N; i++) {
		entries[i].key = i;
		cr_assert_eq(hash_add(&h, &entries[i].node, hash_u64(i, 1)), 0);
	}
	hash_for_each (e, &h, node) {
		seen++;
		sum += e->key;
	}
	cr_expect_eq(seen, N);
	cr_expect_eq(sum, N * (N - 1) / 2);
	for (unsigned int i = 0; i < N; i++)
		hash_del(&h, &entries[i].node);
	hash_fini(&h);
}
