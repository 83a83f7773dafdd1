/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed records. The first byte of the input chooses the cipher, and how many
 * genuine records the receiver has opened before. The rest is given to the
 * receiver twice: as a whole record, and written over the beginning of a
 * genuine record. The receiver must open only what was sealed, each record only
 * once; a record that it does not open must not change its state.
 */
#include "secure/record.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LENGTH 32

static const uint8_t secret[SEAL_SECRET] = "of nobody";
static const uint8_t bound[] = { 1, 2, 3, 4 };
static const struct seal_place place = { 0x0102030405060708, bound,
					 sizeof(bound) };

static void genuine(struct seal *s, uint8_t record[SEAL_HEAD + LENGTH])
{
	static uint8_t payload[LENGTH];
	const struct iovec in = { payload, sizeof(payload) };

	BUG_ON(seal_record(s, SEAL_PRIVACY, &place, &in, 1, 0, record,
			   record + SEAL_HEAD) != 0);
}

/* Gives @bytes to the receiver, who must not open them. */
static void refused(struct unseal *u, const uint8_t *bytes, size_t n)
{
	struct unseal was = *u;
	enum seal_protection protection;
	uint8_t *record = malloc(n + 1);
	int rc;

	BUG_ON(!record);
	memcpy(record, bytes, n);
	rc = unseal_record(u, record, n, &place, &protection);
	BUG_ON(rc != -EBADMSG && rc != -EALREADY);
	BUG_ON(memcmp(u, &was, sizeof(was)) != 0);
	BUG_ON(rc == -EALREADY && memcmp(record, bytes, n) != 0);
	(void)unseal_handle(bytes, n);
	free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t record[SEAL_HEAD + LENGTH];
	enum seal_protection protection;
	enum seal_cipher cipher;
	struct unseal u;
	struct seal s;

	if (!size)
		return 0;
	cipher = data[0] & 1 ? SEAL_AES_128_GCM : SEAL_CHACHA20_POLY1305;
	BUG_ON(seal_open(&s, NULL, cipher, secret, 0) != 0);
	BUG_ON(unseal_open(&u, NULL, cipher, secret) != 0);
	s.used_max = 1 + (data[0] >> 1 & 3);
	for (unsigned int i = data[0] >> 3; i > 0; i--) {
		genuine(&s, record);
		BUG_ON(unseal_record(&u, record, sizeof(record), &place,
				     &protection) != 0);
	}
	refused(&u, data + 1, size - 1);
	/* The input is written over a genuine record. */
	genuine(&s, record);
	if (memcmp(record, data + 1, MIN(size - 1, sizeof(record))) != 0) {
		uint8_t bad[sizeof(record)];

		memcpy(bad, record, sizeof(bad));
		memcpy(bad, data + 1, MIN(size - 1, sizeof(bad)));
		refused(&u, bad, sizeof(bad));
	}
	BUG_ON(unseal_record(&u, record, sizeof(record), &place, &protection) !=
	       0);
	seal_close(&s);
	unseal_close(&u);
	return 0;
}
