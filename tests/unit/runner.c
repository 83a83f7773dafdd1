/* SPDX-License-Identifier: BSD-3-Clause */
/* What libcriterion does in the tests' programs, and need not; and what an
 * assertion does that fails (include/criterion/criterion.h). */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define INSTEAD __attribute__((visibility("default")))

int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int __lsan_is_turned_off(void);

/* It starts libgit2, with which it can compare texts, in the process of each
 * test, where libgit2 reads all certificates of the system. That took half of
 * the time of the unit tests, none of which compares texts by it. */
INSTEAD int git_libgit2_init(void)
{
	return 1;
}

INSTEAD int git_libgit2_shutdown(void)
{
	return 0;
}

/* The process that starts those of the tests loses a few bytes of its own for
 * tests that are passed over; leaks of tests are seen in theirs, which alone
 * have this variable of libboxfort's. */
INSTEAD int __lsan_is_turned_off(void)
{
	return !getenv("BXFI_MAP");
}

void unit_failed(const char *file, unsigned int line, char *said,
		 const char *format, ...)
{
	struct criterion_assert_stats failure = {
		.message = said,
		.line = line,
		.file = file,
	};
	char *own;
	va_list args;

	va_start(args, format);
	if (vasprintf(&own, format, args) < 0)
		abort();
	va_end(args);
	if (own[1])
		failure.message = own + 1;
	criterion_send_assert(&failure);
	free(own);
	cr_asprintf_free(said);
}
