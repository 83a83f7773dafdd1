/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <signal.h>
#include "base/util.h"

Test(util, text_fits)
{
	char to[8] = "xxxxxxx";

	text_copy(to, 4, "abc");
	cr_assert(memcmp(to, "abc\0xxx", sizeof(to)) == 0);
	text_copy(to, 1, "");
	cr_assert(memcmp(to, "\0bc\0xxx", sizeof(to)) == 0);
}

Test(util, text_too_long, .signal = SIGABRT)
{
	char to[8];

	text_copy(to, 4, "abcd");
}
