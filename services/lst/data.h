/* SPDX-License-Identifier: BSD-3-Clause */
/* The contents of bulk data in brw tests. Lengths and offsets are multiples of
 * LST_WORD unless nothing is checked. Any thread. */
#ifndef SERVICES_LST_DATA_H
#define SERVICES_LST_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "message.h"

#define LST_WORD 8 /* bytes */

/* May a test or a request move such data? @length: 1 to LNET_MTU bytes. */
bool lst_data_valid(uint32_t opcode, uint32_t check, uint64_t length);
/* The data begin at @offset of a page. */
void lst_data_fill(void *data, uint32_t length, uint32_t offset,
		   enum lst_check check);
/* Makes sure that what does not come is noticed. */
void lst_data_poison(void *data, uint32_t length, uint32_t offset,
		     enum lst_check check);
/* @swapped: who filled in the data has the other byte order. */
bool lst_data_good(const void *data, uint32_t length, uint32_t offset,
		   enum lst_check check, bool swapped);

#endif
