/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "services/lst/list.h"
#include "tests/unit/lnet/golden.h"

static struct ulnet_id id_of(const char *text, uint32_t pid)
{
	struct ulnet_id id = { .pid = pid };

	cr_assert_eq(lnet_nid_parse(text, &id.nid), 0);
	return id;
}

static bool id_eq(const struct ulnet_id *a, const struct ulnet_id *b)
{
	return lnet_nid_eq(&a->nid, &b->nid) && a->pid == b->pid;
}

Test(lst_list, captured)
{
	struct golden g = golden("lst-list");
	struct ulnet_id want = id_of("10.77.0.13@tcp", LNET_PID_LUSTRE), is;
	uint8_t buf[LST_RECORD_SIZE];

	cr_assert_eq(golden_payload_len(&g), LST_RECORD_SIZE);
	cr_assert_eq(lst_list_decode(&is, 1, golden_payload(&g),
				     LST_RECORD_SIZE, false),
		     0);
	cr_assert(id_eq(&is, &want));
	cr_assert_eq(lst_list_encode(&want, 1, buf), 0);
	cr_assert_eq(memcmp(buf, golden_payload(&g), sizeof(buf)), 0);
}

Test(lst_list, of_the_other_byte_order)
{
	static const uint8_t bytes[] = { 0, 2,	0, 0, 10,   77,
					 0, 13, 0, 0, 0x30, 0x39 };
	struct ulnet_id want = id_of("10.77.0.13@tcp", LNET_PID_LUSTRE), is;

	cr_assert_eq(lst_list_decode(&is, 1, bytes, sizeof(bytes), true), 0);
	cr_assert(id_eq(&is, &want));
}

Test(lst_list, several)
{
	struct ulnet_id ids[2] = { id_of("10.0.0.1@tcp", 1),
				   id_of("10.0.0.2@o2ib3", 2) };
	uint8_t buf[2 * LST_RECORD_SIZE];
	struct ulnet_id is[2];

	cr_assert_eq(lst_list_encode(ids, 2, buf), 0);
	cr_assert_eq(lst_list_decode(is, 2, buf, sizeof(buf), false), 0);
	cr_assert(id_eq(&is[0], &ids[0]));
	cr_assert(id_eq(&is[1], &ids[1]));
}

/* A list of @n as a kernel's console has it: 12 bytes for each are moved. */
static uint8_t *kernel_list(size_t n)
{
	uint8_t *buf = calloc(n / LST_LIST_WHOLE + 1, LST_PAGE_SIZE);

	cr_assert(buf);
	for (size_t i = 0; i < n; i++) {
		struct ulnet_id id = id_of("10.0.0.1@tcp", (uint32_t)i + 1);

		cr_assert_eq(
			lst_list_encode(&id, 1,
					buf + i / 341 * 4096 + i % 341 * 12),
			0);
	}
	return buf;
}

/* With one record on the second page, its pid and no more was cut off: it lies
 * 4 bytes later than in an array. */
Test(lst_list, second_page_loses_its_end)
{
	static struct ulnet_id ids[LST_LIST_WHOLE + 2];
	uint8_t *buf = kernel_list(LST_LIST_WHOLE + 2);
	size_t n = LST_LIST_WHOLE + 1;

	cr_assert_eq(lst_list_decode(ids, n, buf, n * 12, false), 0);
	cr_assert_eq(ids[n - 2].pid, LST_LIST_WHOLE);
	cr_assert_eq(ids[n - 1].pid, LNET_PID_LUSTRE);
	cr_assert_eq(lst_list_decode(ids, n, buf, n * 12 - 1, false),
		     -EMSGSIZE);
	cr_assert_eq(lst_list_decode(ids, n + 1, buf, n * 12 + 12, false), 0);
	cr_assert_eq(ids[n - 1].pid, n);
	free(buf);
}

Test(lst_list, short_of_bytes)
{
	struct golden g = golden("lst-list");
	struct ulnet_id is, two[2];

	for (size_t len = 0; len < LST_RECORD_SIZE; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		int want = len < 8 ? -EMSGSIZE : 0;

		cr_assert(copy);
		memcpy(copy, golden_payload(&g), len);
		cr_assert_eq(lst_list_decode(&is, 1, copy, len, false), want);
		cr_assert_eq(lst_list_decode(two, 2, copy, len, false),
			     -EMSGSIZE);
		free(copy);
	}
	cr_assert_eq(is.pid, LNET_PID_LUSTRE);
}

Test(lst_list, no_nodes)
{
	static const uint64_t nids[] = { UINT64_MAX,
					 UINT64_C(9) << 48, /* 0@lo */
					 0, UINT64_C(0x00ff) << 48 };
	struct ulnet_id is;

	for (size_t i = 0; i < sizeof(nids) / sizeof(*nids); i++) {
		uint8_t buf[LST_RECORD_SIZE] = { 0 };

		memcpy(buf, &nids[i], sizeof(nids[i]));
		cr_assert_eq(lst_list_decode(&is, 1, buf, sizeof(buf), false),
			     -EINVAL);
	}
}

Test(lst_list, cannot_be_said)
{
	struct ulnet_id large = id_of("fd77::2@tcp", LNET_PID_LUSTRE);
	static struct ulnet_id ids[LST_LIST_WHOLE + 1];
	static uint8_t buf[sizeof(ids)];

	cr_assert_eq(lst_list_encode(&large, 1, buf), -EAFNOSUPPORT);
	for (size_t i = 0; i < LST_LIST_WHOLE + 1; i++)
		ids[i] = id_of("10.0.0.1@tcp", 1);
	cr_assert_eq(lst_list_encode(ids, LST_LIST_WHOLE + 1, buf), -E2BIG);
	cr_assert_eq(lst_list_encode(ids, LST_LIST_WHOLE, buf), 0);
}
