/* SPDX-License-Identifier: BSD-3-Clause */
#include "list.h"

#include <byteswap.h>
#include <errno.h>
#include <string.h>

#define PID_AT sizeof(uint64_t)

static size_t record_at(size_t i)
{
	return i / LST_LIST_WHOLE * LST_PAGE_SIZE +
	       i % LST_LIST_WHOLE * LST_RECORD_SIZE;
}

int lst_list_encode(const struct ulnet_id *ids, size_t n, void *buf)
{
	uint8_t *record = buf;

	if (n > LST_LIST_WHOLE)
		return -E2BIG;
	for (size_t i = 0; i < n; i++, record += LST_RECORD_SIZE) {
		uint64_t nid4 = lnet_nid_to_nid4(&ids[i].nid);

		if (!lnet_nid_is_nid4(&ids[i].nid))
			return -EAFNOSUPPORT;
		memcpy(record, &nid4, sizeof(nid4));
		memcpy(record + PID_AT, &ids[i].pid, sizeof(ids[i].pid));
	}
	return 0;
}

static int nid_decode(struct ulnet_nid *nid, const uint8_t *p, bool swapped)
{
	uint64_t nid4;

	memcpy(&nid4, p, sizeof(nid4));
	*nid = lnet_nid_from_nid4(swapped ? bswap_64(nid4) : nid4);
	if (lnet_nid_is_any(nid) || lnet_nid_is_lo(nid) || nid->type == 0)
		return -EINVAL;
	return 0;
}

static uint32_t pid_decode(const uint8_t *p, bool swapped)
{
	uint32_t pid;

	memcpy(&pid, p, sizeof(pid));
	return swapped ? bswap_32(pid) : pid;
}

int lst_list_decode(struct ulnet_id *ids, size_t n, const void *buf, size_t len,
		    bool swapped)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = record_at(i);
		const uint8_t *record = (const uint8_t *)buf + at;
		int rc;

		if (at > len || len - at < PID_AT)
			return -EMSGSIZE;
		rc = nid_decode(&ids[i].nid, record, swapped);
		if (rc)
			return rc;
		ids[i].pid = len - at < LST_RECORD_SIZE
				     ? LNET_PID_LUSTRE
				     : pid_decode(record + PID_AT, swapped);
	}
	return 0;
}
