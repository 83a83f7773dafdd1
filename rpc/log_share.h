/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often the log says what others can cause, such as refusals: of each NID
 * once a minute, and of LOG_SHARE_NIDS of them. So nobody fills the log, and
 * who fills his share hides few others.
 *
 * Thread: owner.
 */
#ifndef RPC_LOG_SHARE_H
#define RPC_LOG_SHARE_H

#include "ulnet/lnet.h"

#define LOG_SHARE_NIDS 16

/* All 0 at first. */
struct log_share {
	struct {
		struct ulnet_nid nid;
		uint64_t until; /* ns: when it may be in the log again */
	} last[LOG_SHARE_NIDS];
};

/* May a line about @nid be logged now? If so, it counts as logged. */
bool log_share_may(struct log_share *l, const struct ulnet_nid *nid,
		   uint64_t now);

#endif
