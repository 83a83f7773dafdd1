/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses, from the first one to the one behind the last. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdint.h>

struct span {
	uintptr_t start, end;
};

#endif
