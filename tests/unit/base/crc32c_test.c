/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "base/crc32c.h"
#include "base/util.h"

/* CRC32C bit by bit, by its definition. */
static uint32_t slow_crc32c(const uint8_t *p, size_t len)
{
	uint32_t crc = ~UINT32_C(0);

	while (len--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	return ~crc;
}

static uint8_t bytes[5000];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + (i >> 8));
}

Test(crc32c, known_values)
{
	uint8_t b[32];

	cr_assert_eq(crc32c(0, "", 0), 0);
	cr_assert_eq(crc32c(0, "123456789", 9), 0xe3069283);
	/* RFC 3720, B.4 */
	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = 0;
	cr_assert_eq(crc32c(0, b, sizeof(b)), 0x8a9136aa);
	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = 0xff;
	cr_assert_eq(crc32c(0, b, sizeof(b)), 0x62a8ab43);
	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)i;
	cr_assert_eq(crc32c(0, b, sizeof(b)), 0x46dd794e);
}

Test(crc32c, any_length_and_alignment)
{
	fill();
	for (size_t at = 0; at < 17; at++)
		for (size_t len = 0; len < 300; len++)
			cr_assert_eq(crc32c(0, bytes + at, len),
				     slow_crc32c(bytes + at, len));
	cr_assert_eq(crc32c(0, bytes, sizeof(bytes)),
		     slow_crc32c(bytes, sizeof(bytes)));
}

Test(crc32c, chains)
{
	uint32_t whole;

	fill();
	whole = crc32c(0, bytes, sizeof(bytes));
	for (size_t at = 0; at <= sizeof(bytes); at += 97)
		cr_assert_eq(crc32c(crc32c(0, bytes, at), bytes + at,
				    sizeof(bytes) - at),
			     whole);
}

Test(crc32c, joins)
{
	uint32_t whole;

	fill();
	whole = crc32c(0, bytes, sizeof(bytes));
	for (size_t at = 0; at <= sizeof(bytes); at += 97)
		cr_assert_eq(
			crc32c_join(crc32c(0, bytes, at),
				    crc32c(0, bytes + at, sizeof(bytes) - at),
				    sizeof(bytes) - at),
			whole);
	cr_assert_eq(crc32c_join(whole, 0, 0), whole);
}
