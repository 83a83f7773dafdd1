/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a store that has many entries. */
#include <criterion/criterion.h>

#include "rpc/store/table.h"

#define ENTRIES 100000u

static struct entry *of_table(const struct table *t, uint32_t key, bool record)
{
	return table_find(t, record, &key, sizeof(key));
}

static void add(struct table *t, uint32_t key, bool record)
{
	struct entry *e = entry_new(record ? ENTRY_RECORD : ENTRY_USER, &key,
				    sizeof(key), &key, sizeof(key));

	cr_assert(e);
	table_add(t, e);
}

/* How many entries the largest step of growth has moved so far, at most. */
static uint32_t most_moved(const struct table *t)
{
	uint32_t most = 0;

	for (unsigned int i = 0; i < TABLE_PARTS; i++)
		most = MAX(most, t->part[i].count);
	return most;
}

/* However large the table is, an entry that is added moves a small part of the
 * others only, as all wait for that. */
Test(table, grows_in_parts)
{
	struct table t;

	cr_assert_eq(table_init(&t, 1), 0);
	for (uint32_t i = 0; i < ENTRIES; i++)
		add(&t, i, false);
	cr_assert_eq(t.keys, ENTRIES);
	cr_assert_lt(most_moved(&t), ENTRIES / 100);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		struct entry *e = of_table(&t, i, false);

		cr_assert(e);
		cr_assert_arr_eq(entry_value(e), &i, sizeof(i));
		cr_assert_null(of_table(&t, i, true));
		table_remove(&t, e);
		free(e);
		cr_assert_null(of_table(&t, i, false));
	}
	cr_assert_eq(most_moved(&t), 0);
	cr_assert_eq(t.bytes, 0);
	table_fini(&t);
}

/* A record and a user's entry may have the same key. */
Test(table, records_apart)
{
	struct table t;

	cr_assert_eq(table_init(&t, 1), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		add(&t, i, false);
		add(&t, i, true);
	}
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_neq(of_table(&t, i, false), of_table(&t, i, true));
	cr_assert_eq(t.keys, 1000);
	cr_assert_eq(t.records, 1000);
	table_fini(&t);
}
