/* SPDX-License-Identifier: BSD-3-Clause */
/* NIDs and pids that come from others. */
#ifndef LNET_NID_H
#define LNET_NID_H

#include "base/util.h"
#include "ulnet/lnet.h"

/* Has the NID the one form that its address has: a size that there is, and
 * nothing behind a short address? NIDs are compared and hashed as bytes, so one
 * peer would have many names otherwise. LNET_NID_ANY passes. */
bool nid_is_sane(const struct ulnet_nid *nid);

/*
 * A segment: those NIDs of a net whose interfaces can send to each other. They
 * have addresses of one family, since nothing goes between IPv4 and IPv6. It is
 * said by a number: the size of the addresses above the number of the net.
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

/* Are they pids of one process, both being on one NID? Of those without
 * LNET_PID_USERFLAG a NID has one process at most, whatever its number. */
static inline bool pid_is_same(uint32_t a, uint32_t b)
{
	return a == b || !((a | b) & LNET_PID_USERFLAG);
}

#endif
