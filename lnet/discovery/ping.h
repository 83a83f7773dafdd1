/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping and push: the answers every node owes (portal 0), the ping information's
 * form on the wire, and lnet_ping().
 */
#ifndef LNET_PING_H
#define LNET_PING_H

#include "base/util.h"
#include "lnet/message/msgs.h"
#include "ulnet/lnet.h"

#define PING_HEADER_SIZE 16
#define PING_ENTRY_SIZE	 16
/* Sink of a first ping: what kernel nodes use. */
#define PING_SINK_SIZE	 3960
#define PUSH_TARGET_SIZE 272

struct lnet_config;
struct ping_target;

struct discovery_cpt {
	struct msg_cpt msg;
	struct ping_target *ping;
};

static inline struct discovery_cpt *discovery_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct discovery_cpt,
			    msg.path.peer.portal.cpt);
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

/* CPT: posts the ping and push targets; takes them away. */
int ping_start(struct lnet_cpt *cpt) must_check;
void ping_stop(struct lnet_cpt *cpt);
void ping_fini(struct lnet_cpt *cpt);

/* CPT: its configuration has changed: answers pings with the new one. -ENOMEM:
 * goes on answering with the old one. */
int ping_refresh(struct lnet_cpt *cpt) must_check;

#endif
