/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control messages: small messages about connections, on a portal of their own.
 * Each may be lost or repeated. The CPT where one arrives handles it at once.
 * The number of control messages that a CPT has sent and LNet has not finished
 * is limited, and each NID has its share of it (quota.h): a NID that has used
 * up its share, because it does not receive, is sent no more, and can ask
 * again.
 */
#ifndef RPC_CONTROL_H
#define RPC_CONTROL_H

#include "rpc/rpc.h"

struct sealed;
struct wire_control;

#define CONTROL_MESSAGE_MAX 4096 /* bytes of a control message, at most */

extern const struct rpc_part control_part;

/* Sends @m, sealed by @sd (NULL: not sealed), from @self (LNET_NID_ANY: from
 * any NID of this node) to @to. The caller does not learn whether it is
 * delivered. Returns 0; or -errno: nothing was sent, because there is no path
 * or no memory (rpc_is_short()), or because @to has used up its share
 * (-ENOMEM). Owner. */
int control_send(struct shard *s, struct sealed *sd, struct ulnet_nid self,
		 struct ulnet_id to, const struct wire_control *m);

/* control_send_tracked() does what control_send() does, and calls @done once
 * with the SEND event, never before it returns. @id and @tag are passed to
 * @done, which can look up the sender by them: the sender may be gone by then.
 */
typedef void (*control_sent_fn)(struct shard *s, uint64_t id, uint64_t tag,
				const struct ulnet_event *ev);
int control_send_tracked(struct shard *s, struct sealed *sd,
			 struct ulnet_nid self, struct ulnet_id to,
			 const struct wire_control *m, control_sent_fn done,
			 uint64_t id, uint64_t tag);

/* What inbox.fn calls, with the shard as argument: handles a control message
 * that has come. */
void control_on_message(void *shard, const struct ulnet_event *ev,
			const void *payload, size_t length);

#endif
