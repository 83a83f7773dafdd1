/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Has this process processors of its own? Only the system's administrator can
 * say so, by isolating them (isolcpus=) and binding the process to them: on any
 * other processor somebody else may want to run, be it seldom.
 */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

#include <stdbool.h>

/* Is each number of the list @inner, as the system writes them ("2-5,8\n"), in
 * the list @outer, and are there at least @n? False for what is no list. */
bool cpus_list_has(const char *outer, const char *inner, unsigned int n);

/* Are all processors that the calling thread may run on isolated, and at least
 * @n? */
bool cpus_are_own(unsigned int n);

#endif
