/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks and comparisons of NIDs and pids. */
#ifndef LNET_NID_H
#define LNET_NID_H

#include "base/util.h"
#include "ulnet/lnet.h"

/* Has a NID from the wire a valid size, and only zeros after a short address?
 * NIDs are compared and hashed as bytes, so that otherwise one peer could have
 * many NIDs. True for LNET_NID_ANY. */
bool nid_is_sane(const struct ulnet_nid *nid);

/*
 * A segment: the NIDs of a net that have addresses of one family, IPv4 or IPv6.
 * Messages go only between NIDs of the same segment. Its number is the size of
 * the addresses (ulnet_nid.size) above the number of the net.
 */
static inline uint32_t nid_segment(const struct ulnet_nid *nid)
{
	return (uint32_t)nid->size << 24 | (uint32_t)nid->type << 16 |
	       (uint32_t)nid->num[0] << 8 | nid->num[1];
}
static inline uint32_t segment_net(uint32_t segment)
{
	return segment & 0xffffff;
}

/* Do both pids, of the same NID, belong to one process? Pids without
 * LNET_PID_USERFLAG do: a NID has at most one such process. */
static inline bool pid_is_same(uint32_t a, uint32_t b)
{
	return a == b || !((a | b) & LNET_PID_USERFLAG);
}

#endif
