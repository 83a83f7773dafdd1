/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * criterion's own header, with assertions that are faster to compile: one that
 * holds is a condition and nothing else, one that does not calls unit_failed()
 * in runner.c. criterion's own put their message together in place: that was
 * most of what the compiler did for the 16,000 of them. What is printed is the
 * same.
 */
#ifndef TESTS_UNIT_CRITERION_H
#define TESTS_UNIT_CRITERION_H

#include_next <criterion/criterion.h>

/* @said is what criterion says of the assertion, and is freed. @format begins
 * with a character that is not printed, because what criterion passes may be
 * empty; if there is more, that is printed instead of @said. */
void unit_failed(const char *file, unsigned int line, char *said,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Where criterion's assertions end up. Its dummy is followed by the number of a
 * text, the arguments of that in parentheses, and what the test says itself. */
#undef cr_assert_impl
#define cr_assert_impl(Fail, Condition, dummy, ...)                           \
	do {                                                                  \
		if (!(Condition)) {                                           \
			unit_failed(__FILE__, __LINE__,                       \
				    CR_TRANSLATE_DEF_MSG_(__VA_ARGS__),       \
				    "x" CR_VA_TAIL(CR_VA_TAIL(__VA_ARGS__))); \
			Fail();                                               \
		}                                                             \
	} while (0)

#endif
