/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc32c.h"

#include <isa-l/crc.h>

#include "base/buf.h"

/* The polynomial. In all polynomials here, bit 31 is the coefficient of x^0. */
#define POLYNOMIAL UINT32_C(0x82f63b78)
#define X_POWER_0  UINT32_C(0x80000000)
#define X_POWER_8  UINT32_C(0x00800000)

/* ISA-L takes the length as an int. */
#define CHUNK ((size_t)1 << 30)

/* ISA-L inverts neither the initial value nor the result. It only reads from
 * @p, though its prototype lacks the const. */
static uint32_t crc32c_chunk(uint32_t crc, const uint8_t *p, size_t len)
{
	return ~crc32_iscsi((unsigned char *)(uintptr_t)p, (int)len, ~crc);
}

/* Not inlined, so that crc32c() need not save registers for it. */
static out_of_line uint32_t crc32c_long(uint32_t crc, const uint8_t *p,
					size_t len)
{
	for (; len > CHUNK; p += CHUNK, len -= CHUNK)
		crc = crc32c_chunk(crc, p, CHUNK);
	return crc32c_chunk(crc, p, len);
}

/* Data of up to this number of bytes, such as the head of a message with one
 * call, are summed here: ISA-L takes more time to choose a way than they need.
 */
#define SHORT 64

#ifdef __x86_64__
static bool crc32c_is_short(size_t len)
{
	return len <= SHORT && __builtin_cpu_supports("sse4.2");
}

static __attribute__((target("sse4.2"))) uint32_t crc32c_short(uint32_t crc,
							       const uint8_t *p,
							       size_t len)
{
	uint64_t sum = ~crc;

	for (; len >= 16; p += 16, len -= 16) {
		sum = __builtin_ia32_crc32di(sum, load_le64(p));
		sum = __builtin_ia32_crc32di(sum, load_le64(p + 8));
	}
	/* The bits of @len are what is left. */
	if (len & 8) {
		sum = __builtin_ia32_crc32di(sum, load_le64(p));
		p += 8;
	}
	crc = (uint32_t)sum;
	if (len & 4) {
		crc = __builtin_ia32_crc32si(crc, load_le32(p));
		p += 4;
	}
	if (len & 2) {
		crc = __builtin_ia32_crc32hi(crc, load_le16(p));
		p += 2;
	}
	if (len & 1)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return ~crc;
}
#else
static bool crc32c_is_short(size_t len)
{
	(void)len;
	return false;
}

static uint32_t crc32c_short(uint32_t crc, const uint8_t *p, size_t len)
{
	return crc32c_chunk(crc, p, len);
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	if (crc32c_is_short(len))
		return crc32c_short(crc, data, len);
	return unlikely(len > CHUNK) ? crc32c_long(crc, data, len)
				     : crc32c_chunk(crc, data, len);
}

/* Returns @a * @b modulo the polynomial. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		if (a & X_POWER_0)
			product ^= b;
		b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0); /* times x */
	}
	return product;
}

/* Each byte that follows multiplies the checksum of what was before it by x^8.
 * The inversions of initial values and results cancel out. */
uint32_t crc32c_join(uint32_t crc, uint32_t next, size_t len)
{
	uint32_t power = X_POWER_8;

	for (; len; len >>= 1) {
		if (len & 1)
			crc = multiply(power, crc);
		power = multiply(power, power);
	}
	return crc ^ next;
}
