/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits what others can make this node log, such as refusals: one line a
 * minute about each NID, and about LOG_SHARE_NIDS NIDs a minute. So nobody can
 * fill the log, and a NID with many refusals hides few others.
 *
 * Thread: owner.
 */
#ifndef RPC_LOG_SHARE_H
#define RPC_LOG_SHARE_H

#include "ulnet/lnet.h"

#define LOG_SHARE_NIDS 16

/* The NIDs in the log lately. All 0 at first. */
struct log_share {
	struct {
		struct ulnet_nid nid;
		/* ns: when a line about the NID may be logged again */
		uint64_t until;
	} last[LOG_SHARE_NIDS];
};

/* May a line about @nid be logged now? If so, it counts as logged. */
bool log_share_may(struct log_share *l, const struct ulnet_nid *nid,
		   uint64_t now);

#endif
