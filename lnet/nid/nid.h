/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks and comparisons of NIDs and pids. */
#ifndef LNET_NID_H
#define LNET_NID_H

#include "base/util.h"
#include "ulnet/lnet.h"

/* Does a NID from the wire have a valid size, and only zeros after a short
 * address? If that were not checked, one peer could have many NIDs, since NIDs
 * are compared and hashed as bytes. True for LNET_NID_ANY. */
bool nid_is_sane(const struct ulnet_nid *nid);

/* Is the IP address of @nid one that reaches nobody but this host: 127.0.0.0/8,
 * ::1? */
bool nid_is_loopback(const struct ulnet_nid *nid);

/*
 * A segment: the NIDs of one net that have addresses of the same family, IPv4
 * or IPv6. Messages go only between NIDs of the same segment. The number of a
 * segment is the size of its addresses (ulnet_nid.size) above the number of the
 * net.
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

/* Do two pids of the same NID belong to the same process? Two different pids
 * without LNET_PID_USERFLAG do, since a NID has at most one process without
 * that flag. */
static inline bool pid_is_same(uint32_t a, uint32_t b)
{
	return a == b || !((a | b) & LNET_PID_USERFLAG);
}

#endif
