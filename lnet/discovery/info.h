/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes and decodes ping information, with which a node describes itself. */
#ifndef LNET_INFO_H
#define LNET_INFO_H

#include "base/util.h"
#include "ulnet/lnet.h"

#define PING_HEADER_SIZE 16
#define PING_ENTRY_SIZE	 16
#define PING_LARGE_SIZE	 24 /* bytes of an entry with an IPv6 NID */

struct lnet_config;

/* Is @pid the pid of a process that only calls? Such a process is not
 * discovered, since it shares its NIDs with other processes of its host, and
 * does not answer. */
static inline bool pid_only_calls(uint32_t pid)
{
	return pid & LNET_PID_USERFLAG;
}

/* Encodes the ping information of this node into @buf, if its @size bytes are
 * enough. Returns the size of the whole information. */
size_t ping_info_encode(const struct lnet *node, const struct lnet_config *c,
			void *buf, size_t size);

/*
 * Decodes the ping information of a peer, @len bytes at @buf, into @info and
 * @ni, which must have room for ping_info_room(@len, @max) entries. info->ni
 * becomes @ni, with the primary NID first. Returns 0; -EPROTO: malformed;
 * -EMSGSIZE: cut off, and the whole would need *@need_p bytes; -E2BIG: there
 * are more than @max entries.
 */
int ping_info_decode(const void *buf, size_t len, struct ulnet_ping_info *info,
		     struct ulnet_ping_ni *ni, unsigned int max,
		     size_t *need_p);
/* Returns how many entries can result from decoding @len bytes, at most; always
 * at least 1. */
unsigned int ping_info_room(size_t len, unsigned int max);
/* As ping_info_decode(), but allocates *@ni_p, which the caller must free, also
 * on error. Returns -ENOMEM, too. */
int ping_info_read(const void *buf, size_t len, struct ulnet_ping_info *info,
		   struct ulnet_ping_ni **ni_p, unsigned int max,
		   size_t *need_p);

#endif
