/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodes and decodes ping information, with which a node describes itself.
 *
 * NIDs on nets of one host (lnd_ni.host), which are others' elsewhere, are not
 * among those that all nodes read. They are in a section behind them, to which
 * the lengths in the information do not count: so nodes of other makes do not
 * look at it, as they do not look at what follows the entries that they know.
 *
 *	4 bytes	magic number, "host"
 *	4	number of entries
 *	8	the host
 *	16 each	entries: NID, status, 0
 *
 * Nodes of other hosts leave it out. It is sent if the whole has at most
 * PING_USUAL_SIZE bytes, so that nobody takes it for cut off.
 */
#ifndef LNET_INFO_H
#define LNET_INFO_H

#include "base/util.h"
#include "ulnet/lnet.h"

#define PING_HEADER_SIZE 16
#define PING_ENTRY_SIZE	 16
#define PING_LARGE_SIZE	 24 /* bytes of an entry with an IPv6 NID */
/* Bytes that all nodes have room for, those of the kernel, too: 16 entries. */
#define PING_USUAL_SIZE 272

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
/* To be called when ping_info_decode() has returned 0, with the same arguments:
 * if the peer is a node of @host (0: none), adds to @info and @ni, behind the
 * others, the NIDs that it tells its own host only, up to @max in all. Returns
 * whether it is. */
bool ping_info_add_here(const void *buf, size_t len, uint64_t host,
			struct ulnet_ping_info *info, struct ulnet_ping_ni *ni,
			unsigned int max);
/* Returns how many entries can result from decoding @len bytes, at most; always
 * at least 1. */
unsigned int ping_info_room(size_t len, unsigned int max);
/* As ping_info_decode(), but allocates *@ni_p, which the caller must free, also
 * on error. Returns -ENOMEM, too. */
int ping_info_read(const void *buf, size_t len, struct ulnet_ping_info *info,
		   struct ulnet_ping_ni **ni_p, unsigned int max,
		   size_t *need_p);

#endif
