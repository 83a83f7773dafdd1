/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds out whether this process has processors of its own. It has if the
 * administrator has isolated them (isolcpus=) and bound the process to them: on
 * any other processor the system may run something else.
 */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <stdbool.h>

/* Does @inner have at least @n processors, all of which are in @outer? Lists
 * are as the system writes them: "2-5,8\n". False if either is malformed. */
bool cpus_list_has(const char *outer, const char *inner, unsigned int n);

/* May the calling thread run on at least @n processors, all of which are
 * isolated? */
bool cpus_are_own(unsigned int n);

#endif
