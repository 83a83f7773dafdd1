/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control portal: small messages about connections, each of which may be
 * lost, and may be repeated. They are handled at once, where they arrive. The
 * number of messages on their way out is limited, and each NID has its share of
 * that number (quota.h): a NID that does not take its messages gets no more of
 * them, and can ask again.
 */
#ifndef RPC_CONTROL_H
#define RPC_CONTROL_H

#include "rpc/rpc.h"

struct wire_control;

#define CONTROL_MESSAGE_MAX 4096 /* bytes */

extern const struct rpc_part control_part;

/* Sends @m from @self (or LNET_NID_ANY). -errno: sending has not begun, for
 * want of a way there, or of something here (rpc_is_short(); -ENOMEM may also
 * mean that too many are on their way there). Nobody is told what becomes of
 * the message. Owner. */
int control_send(struct shard *s, struct ulnet_nid self, struct ulnet_id to,
		 const struct wire_control *m);

/* As control_send(), and calls @done with the SEND event, never before this
 * returns. @id is for @done to find the sender, who may be gone by then; @tag
 * is the sender's own. */
typedef void (*control_sent_fn)(struct shard *s, uint64_t id, uint64_t tag,
				const struct ulnet_event *ev);
int control_send_tracked(struct shard *s, struct ulnet_nid self,
			 struct ulnet_id to, const struct wire_control *m,
			 control_sent_fn done, uint64_t id, uint64_t tag);

#endif
