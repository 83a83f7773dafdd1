/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/list.h"

#include <criterion/criterion.h>

struct entry {
	struct list link;
	unsigned int number;
};

Test(list, pop)
{
	struct entry e[3], *first;
	struct list all;

	list_init(&all);
	cr_expect_null(list_pop(&all, struct entry, link));
	for (unsigned int i = 0; i < ARRAY_SIZE(e); i++) {
		e[i].number = i;
		list_add_tail(&all, &e[i].link);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(e); i++) {
		first = list_pop(&all, struct entry, link);
		cr_assert_eq(first, &e[i]);
		cr_expect(list_empty(&first->link));
	}
	cr_expect_null(list_pop(&all, struct entry, link));
}
