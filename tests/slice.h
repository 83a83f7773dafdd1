/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a test is run that goes on until it has seen enough: all of it
 * where $ULNET_LONG is set, as ./check --long does; else a slice.
 */
#ifndef TESTS_SLICE_H
#define TESTS_SLICE_H

#include <stdlib.h>

static inline unsigned int slice_of(unsigned int whole, unsigned int slice)
{
	return getenv("ULNET_LONG") ? whole : slice;
}

#endif
