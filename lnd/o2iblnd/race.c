/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/race.h"

#include "base/buf.h"

uint32_t ib_race_hash(const struct ulnet_nid *nid)
{
	return lnet_nid_net(nid) ^ load_le32(nid->addr);
}

bool ib_race_is_lower(enum ib_race_rule rule, const struct ulnet_nid *a,
		      const struct ulnet_nid *b)
{
	if (rule == IB_RACE_NID)
		return lnet_nid_to_nid4(a) < lnet_nid_to_nid4(b);
	return ib_race_hash(a) < ib_race_hash(b);
}
