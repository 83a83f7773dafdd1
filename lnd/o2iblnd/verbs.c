/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/verbs.h"

const char *ib_wc_status_name(enum ib_wc_status status)
{
	static const char *const names[IB_WC_STATUSES] = {
		[IB_WC_OK] = "OK",
		[IB_WC_FLUSHED] = "flushed",
		[IB_WC_SILENT] = "no acknowledgement",
		[IB_WC_NOT_READY] = "the peer has no receive posted",
		[IB_WC_REMOTE_ACCESS] = "the peer refuses access to memory",
		[IB_WC_REMOTE_ERROR] = "error at the peer",
		[IB_WC_LOCAL_ERROR] = "local error",
	};

	return (unsigned int)status < IB_WC_STATUSES ? names[status]
						     : "unknown";
}

#ifndef WITH_VERBS
const struct ib_verbs *ib_verbs_rdma(void)
{
	return NULL;
}
#endif
