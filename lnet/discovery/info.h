/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes and decodes ping information, by which a node describes itself. */
#ifndef LNET_INFO_H
#define LNET_INFO_H

#include "base/util.h"
#include "ulnet/lnet.h"

#define PING_HEADER_SIZE 16
#define PING_ENTRY_SIZE	 16
#define PING_LARGE_SIZE	 24 /* of an entry with an IPv6 NID */

struct lnet_config;

/* Is @pid that of a process that only calls? It is not discovered, since it
 * shares its NIDs with other processes of its host and does not answer. */
static inline bool pid_only_calls(uint32_t pid)
{
	return pid & LNET_PID_USERFLAG;
}

/* Encodes this node's ping information into @buf, if @size bytes are enough.
 * Returns its size. */
size_t ping_info_encode(const struct lnet *node, const struct lnet_config *c,
			void *buf, size_t size);

/*
 * Decodes @len bytes of a peer into @info and @ni, which has room for
 * ping_info_room(@len, @max) entries; info->ni becomes @ni, with the primary
 * NID first. 0; -EPROTO: malformed; -EMSGSIZE: cut off, *@need_p bytes would
 * hold the whole; -E2BIG: more than @max entries.
 */
int ping_info_decode(const void *buf, size_t len, struct ulnet_ping_info *info,
		     struct ulnet_ping_ni *ni, unsigned int max,
		     size_t *need_p);
/* How many entries decoding @len bytes may yield at most; at least 1. */
unsigned int ping_info_room(size_t len, unsigned int max);
/* ping_info_decode(); the caller frees *@ni_p, also on error. -ENOMEM. */
int ping_info_read(const void *buf, size_t len, struct ulnet_ping_info *info,
		   struct ulnet_ping_ni **ni_p, unsigned int max,
		   size_t *need_p);

#endif
