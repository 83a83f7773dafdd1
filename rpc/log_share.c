/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/log_share.h"

#include "base/util.h"

#define EACH (60 * NSEC_PER_SEC)

bool log_share_may(struct log_share *l, const struct ulnet_nid *nid,
		   uint64_t now)
{
	unsigned int oldest = 0;

	for (unsigned int i = 0; i < LOG_SHARE_NIDS; i++) {
		if (now < l->last[i].until &&
		    lnet_nid_eq(&l->last[i].nid, nid))
			return false;
		if (l->last[i].until < l->last[oldest].until)
			oldest = i;
	}
	if (now < l->last[oldest].until)
		return false;
	l->last[oldest].nid = *nid;
	l->last[oldest].until = now + EACH;
	return true;
}
