/* SPDX-License-Identifier: BSD-3-Clause */
/* Ping information, what nodes tell each other of themselves: its form on the
 * wire. */
#ifndef LNET_INFO_H
#define LNET_INFO_H

#include "base/util.h"
#include "ulnet/lnet.h"

#define PING_HEADER_SIZE 16
#define PING_ENTRY_SIZE	 16
#define PING_LARGE_SIZE	 24 /* of an entry with an IPv6 NID */

struct lnet_config;

/* A process that only calls. Nobody discovers it: others of its host have the
 * same NIDs, and there is nobody to answer. */
static inline bool pid_only_calls(uint32_t pid)
{
	return pid & LNET_PID_USERFLAG;
}

/* The node's own ping information. Returns its size; writes it if that is not
 * above @size. */
size_t ping_info_encode(const struct lnet *node, const struct lnet_config *c,
			void *buf, size_t size);

/*
 * What came in @len bytes of a peer's. At most @max entries are put into @ni,
 * the primary NID first; info->ni is set to it. 0; -EPROTO: not a ping
 * information, or one that a node must not send; -EMSGSIZE: it is longer than
 * @len, by what it says of itself, and *@need_p bytes would hold it; -E2BIG:
 * more than @max entries. @ni has room for ping_info_room(@len, @max) entries.
 */
int ping_info_decode(const void *buf, size_t len, struct ulnet_ping_info *info,
		     struct ulnet_ping_ni *ni, unsigned int max,
		     size_t *need_p);
/* How many entries of @len bytes are put anywhere at most; never 0. */
unsigned int ping_info_room(size_t len, unsigned int max);
/* The same; *@ni_p is the memory of the entries, to be freed also on error.
 * -ENOMEM. */
int ping_info_read(const void *buf, size_t len, struct ulnet_ping_info *info,
		   struct ulnet_ping_ni **ni_p, unsigned int max,
		   size_t *need_p);

#endif
