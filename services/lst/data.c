/* SPDX-License-Identifier: BSD-3-Clause */
#include "data.h"

#include <byteswap.h>
#include <string.h>
#include <ulnet/lnet.h>

#define FILLED	 UINT64_C(0xeeb0eeb1eeb2eeb3)
#define POISONED UINT64_C(0xbeefbeefbeefbeef)

bool lst_data_valid(uint32_t opcode, uint32_t check, uint64_t length)
{
	if (opcode != LST_READ && opcode != LST_WRITE)
		return false;
	if (check < LST_CHECK_NONE || check > LST_CHECK_FULL)
		return false;
	if (!length || length > LNET_MTU)
		return false;
	return check == LST_CHECK_NONE || length % LST_WORD == 0;
}

/* The next word that counts after the one at @at: the simple check looks at the
 * first and the last one of what lies in each page. */
static uint32_t data_next_word(uint32_t at, uint32_t length, uint32_t offset,
			       enum lst_check check)
{
	uint32_t in_page = (offset + at) % LST_PAGE_SIZE;
	uint32_t page_end = at - in_page + LST_PAGE_SIZE;
	uint32_t last = (page_end < length ? page_end : length) - LST_WORD;

	if (check == LST_CHECK_SIMPLE && at < last)
		return last;
	return at + LST_WORD;
}

static void words_set(uint8_t *data, uint32_t length, uint32_t offset,
		      enum lst_check check, uint64_t word)
{
	if (check == LST_CHECK_NONE)
		return;
	for (uint32_t at = 0; at < length;
	     at = data_next_word(at, length, offset, check))
		memcpy(data + at, &word, LST_WORD);
}

void lst_data_fill(void *data, uint32_t length, uint32_t offset,
		   enum lst_check check)
{
	words_set(data, length, offset, check, FILLED);
}

void lst_data_poison(void *data, uint32_t length, uint32_t offset,
		     enum lst_check check)
{
	words_set(data, length, offset, check, POISONED);
}

bool lst_data_good(const void *data, uint32_t length, uint32_t offset,
		   enum lst_check check, bool swapped)
{
	uint64_t wanted = swapped ? bswap_64(FILLED) : FILLED;

	if (check == LST_CHECK_NONE)
		return true;
	for (uint32_t at = 0; at < length;
	     at = data_next_word(at, length, offset, check))
		if (memcmp((const uint8_t *)data + at, &wanted, LST_WORD) != 0)
			return false;
	return true;
}
