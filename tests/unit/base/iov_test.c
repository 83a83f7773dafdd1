/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>
#include "base/iov.h"

static char text[] = "abcdefghij";
static const struct iovec pieces[] = {
	{ text, 3 }, { text + 3, 0 }, { text + 3, 1 }, { text + 4, 6 }
};
#define N ARRAY_SIZE(pieces)

/* Compares every range with the text. */
Test(iov, slice)
{
	for (size_t from = 0; from <= 10; from++)
		for (size_t len = 0; from + len <= 10; len++) {
			struct iovec out[N];
			char seen[11];
			size_t n = 0;
			unsigned int k = iov_slice(out, pieces, N, from, len);

			cr_assert_leq(k, N);
			for (unsigned int i = 0; i < k; i++) {
				cr_assert_gt(out[i].iov_len, 0);
				memcpy(seen + n, out[i].iov_base,
				       out[i].iov_len);
				n += out[i].iov_len;
			}
			cr_assert_eq(n, len);
			cr_assert_arr_eq(seen, text + from, len);
		}
}

Test(iov, slice_of_nothing)
{
	struct iovec out[1];

	cr_assert_eq(iov_slice(out, NULL, 0, 0, 0), 0);
	cr_assert_eq(iov_slice(out, pieces, N, 10, 0), 0);
}

Test(iov, gather_and_scatter)
{
	char there[10] = { 0 }, back[10] = { 0 };
	struct iovec to[] = { { there + 5, 5 }, { there, 5 } };

	iov_gather(back, pieces, N, 2, 7);
	cr_assert_arr_eq(back, "cdefghi", 7);
	iov_scatter(to, 2, 3, back, 7);
	cr_assert_arr_eq(there, "efghi\0\0\0cd", 10);
	iov_copy(to, 2, 0, pieces, N, 0, 10);
	cr_assert_arr_eq(there, "fghijabcde", 10);
}
