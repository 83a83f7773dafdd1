/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that OpenSSL asks whether certificates and tickets are valid: tests
 * of secure/ set it forward, and back. */
#ifndef TESTS_UNIT_SECURE_CLOCK_H
#define TESTS_UNIT_SECURE_CLOCK_H

#include <stdint.h>

#define DAY 86400

extern int64_t clock_shift; /* s, that time(2) is ahead */

#endif
