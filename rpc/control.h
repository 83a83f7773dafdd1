/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages: small messages about connections, on a portal of their own.
 * Each may be lost or repeated. The CPT where one arrives handles it at once.
 * The number of control messages on their way out is limited, and each NID has
 * its share of it (quota.h): a NID that does not take its messages gets no more
 * of them, and can ask again.
 */
#ifndef RPC_CONTROL_H
#define RPC_CONTROL_H

#include "rpc/rpc.h"

struct wire_control;

#define CONTROL_MESSAGE_MAX 4096 /* bytes */

extern const struct rpc_part control_part;

/* Sends @m from @self (or LNET_NID_ANY), without telling the caller what
 * becomes of it. -errno: nothing was sent, for want of a path or of memory
 * (rpc_is_short()); -ENOMEM also if @to has used up its share. Owner. */
int control_send(struct shard *s, struct ulnet_nid self, struct ulnet_id to,
		 const struct wire_control *m);

/* As control_send(), and calls @done with the SEND event, never before this
 * returns. @id and @tag are passed to @done, which finds the sender by them:
 * the sender may be gone by then. */
typedef void (*control_sent_fn)(struct shard *s, uint64_t id, uint64_t tag,
				const struct ulnet_event *ev);
int control_send_tracked(struct shard *s, struct ulnet_nid self,
			 struct ulnet_id to, const struct wire_control *m,
			 control_sent_fn done, uint64_t id, uint64_t tag);

/* inbox.fn: a control message has come. */
void control_on_message(void *shard, const struct ulnet_event *ev,
			const void *payload, size_t length);

#endif
