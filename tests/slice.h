/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much is run of a test that could go on for any time: all that the test
 * asks for if $ULNET_LONG is set, as ./check --long does, else a slice.
 */
#ifndef TESTS_SLICE_H
#define TESTS_SLICE_H

#include <stdlib.h>

static inline unsigned int slice_of(unsigned int whole, unsigned int slice)
{
	return getenv("ULNET_LONG") ? whole : slice;
}

#endif
