/* SPDX-License-Identifier: BSD-3-Clause */
/* Rejects in private data of the CM, and data that is none. */
#include "lnd/o2iblnd/verbs.h"
#include "lnd/o2iblnd/wire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "tests/unit/o2iblnd/examples.h"

static const uint8_t reject_frags[IB_REJECT_SIZE] = {
	0x91, 0x1b, 0xe9, 0x0b,				/* magic */
	0x12, 0x00, 0x06, 0x00,				/* version, reason */
	0x6d, 0x7c, 0x8b, 0x9a, 0x0d, 0x25, 0x06, 0x00, /* incarnation */
	0x08, 0x00, 0x00, 0x01, 0x00, 0x10, 0x00, 0x00, /* parameters */
};

static const struct number reject_numbers[] = { { 0, 4 },  { 4, 2 },  { 8, 8 },
						{ 16, 2 }, { 18, 2 }, { 20, 4 },
						{ 0, 0 } };

static void assert_reject_frags(const struct ib_reject *rej)
{
	cr_expect_eq(rej->version, IB_VERSION_2);
	cr_expect_eq(rej->reason, IB_REJECT_FRAGS);
	cr_expect(rej->full);
	cr_expect_eq(rej->stamp, LIFE_B);
	cr_expect_eq(rej->params.queue_depth, 8);
	cr_expect_eq(rej->params.max_frags, 256);
	cr_expect_eq(rej->params.max_msg_size, 4096);
}

Test(reject, both_ways)
{
	uint8_t buf[IB_REJECT_SIZE];
	const char *why = NULL;
	struct ib_reject rej;

	cr_assert_eq(ib_reject_decode(reject_frags, sizeof(reject_frags), &rej,
				      &why),
		     0);
	assert_reject_frags(&rej);
	memset(buf, 0xee, sizeof(buf));
	cr_assert_eq(ib_reject_encode(&rej, buf), sizeof(buf));
	cr_assert_arr_eq(buf, reject_frags, sizeof(buf));
}

/* As received: in either byte order, padded with zeros. */
Test(reject, as_private_data)
{
	for (unsigned int i = 0; i < 4; i++) {
		uint8_t buf[IB_PRIVATE_REJECT_SIZE] = { 0 };
		const char *why = NULL;
		struct ib_reject rej;

		memcpy(buf, reject_frags, sizeof(reject_frags));
		if (i & 1)
			put_le(buf, 0x45726963, 4);
		if (i & 2)
			swap_numbers(buf, sizeof(buf), reject_numbers);
		cr_assert_eq(ib_reject_decode(buf, sizeof(buf), &rej, &why), 0,
			     "%u: %s", i, why);
		assert_reject_frags(&rej);
	}
}

Test(reject, cut_short)
{
	for (size_t len = 0; len < sizeof(reject_frags); len++) {
		uint8_t *copy = malloc(len ? len : 1);
		struct ib_reject rej = { .reason = 77 };
		const char *why = NULL;
		int rc;

		cr_assert_not_null(copy);
		memcpy(copy, reject_frags, len);
		rc = ib_reject_decode(copy, len, &rej, &why);
		free(copy);
		if (len < IB_REJECT_SHORT_SIZE) {
			cr_expect_eq(rc, -EPROTO);
			cr_assert_str_eq(why, "too short for a reject");
			cr_expect_eq(rej.reason, 77, "left alone on error");
			continue;
		}
		cr_assert_eq(rc, 0, "%zu: %s", len, why);
		cr_expect_eq(rej.reason, IB_REJECT_FRAGS);
		cr_expect(!rej.full);
		cr_expect_eq(rej.stamp, 0);
		cr_expect_eq(rej.params.max_frags, 0);
	}
}

/* Version 1 has no more fields, however long it is. */
Test(reject, of_version_1)
{
	uint8_t buf[IB_PRIVATE_REJECT_SIZE] = { 0 };
	const char *why = NULL;
	struct ib_reject rej;

	memcpy(buf, reject_frags, sizeof(reject_frags));
	buf[4] = IB_VERSION_1;
	for (size_t len = IB_REJECT_SHORT_SIZE; len <= sizeof(buf); len++) {
		cr_assert_eq(ib_reject_decode(buf, len, &rej, &why), 0);
		cr_expect_eq(rej.version, IB_VERSION_1);
		cr_expect_eq(rej.reason, IB_REJECT_FRAGS);
		cr_expect(!rej.full);
		cr_expect_eq(rej.stamp, 0);
	}
}

Test(reject, no_rejects)
{
	static const struct {
		uint32_t magic;
		uint16_t version;
		const char *why;
	} tries[] = {
		{ 0, 0x12, "wrong magic" },
		{ 0x0be91b92, 0x12, "wrong magic" },
		{ 0xacce7100, 0x12, "wrong magic" },
		{ 0x0be91b91, 0, "unknown version" },
		{ 0x0be91b91, 0x10, "unknown version" },
		{ 0x0be91b91, 0x13, "unknown version" },
		{ 0x0be91b91, 0x1200, "unknown version" },
		{ 0x45726963, 3, "unknown version" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(tries); i++) {
		uint8_t buf[IB_PRIVATE_REJECT_SIZE] = { 0 };
		struct ib_reject rej = { .reason = 77 };

		memcpy(buf, reject_frags, sizeof(reject_frags));
		put_le(buf, tries[i].magic, 4);
		put_le(buf + 4, tries[i].version, 2);
		for (unsigned int order = 0; order < 2; order++) {
			const char *why = NULL;

			cr_expect_eq(
				ib_reject_decode(buf, sizeof(buf), &rej, &why),
				-EPROTO, "%u", i);
			cr_assert_str_eq(why, tries[i].why);
			swap_numbers(buf, sizeof(buf), reject_numbers);
		}
		cr_expect_eq(rej.reason, 77, "left alone on error");
	}
}

/* No private data, as without a listener: zeros. */
Test(reject, of_zeros)
{
	uint8_t buf[IB_PRIVATE_REJECT_SIZE] = { 0 };
	const char *why = NULL;
	struct ib_reject rej;

	cr_assert_eq(ib_reject_decode(buf, sizeof(buf), &rej, &why), -EPROTO);
	cr_assert_eq(ib_reject_decode(buf, 0, &rej, &why), -EPROTO);
}

Test(reject, reasons)
{
	uint8_t buf[IB_REJECT_SIZE];
	const char *why = NULL;
	struct ib_reject rej;

	for (unsigned int reason = 0; reason < 256; reason++) {
		bool known = reason >= 1 && reason <= 9;

		memcpy(buf, reject_frags, sizeof(buf));
		buf[6] = (uint8_t)reason;
		cr_assert_eq(ib_reject_decode(buf, sizeof(buf), &rej, &why), 0);
		cr_expect_eq(rej.reason, reason);
		cr_expect_eq(strcmp(ib_reject_name(reason), "unknown") != 0,
			     known, "%u", reason);
	}
	cr_assert_eq(IB_REJECT_EARLY, 9);
	cr_assert_eq(IB_REJECT_STALE, 5);
	cr_assert_str_eq(ib_reject_name(IB_REJECT_FRAGS), "too many fragments");
	cr_assert_str_eq(ib_reject_name(UINT32_MAX), "unknown");
}
