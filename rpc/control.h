/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control portal: small messages about connections, each of which may be
 * lost, and may be repeated. Handled at once, where they arrive. Of those that
 * may be on their way out each NID has its share (party.h): what is for one
 * that takes none is not sent, and it asks again.
 */
#ifndef RPC_CONTROL_H
#define RPC_CONTROL_H

#include "rpc/rpc.h"

struct wire_control;

#define CONTROL_MESSAGE_MAX 4096 /* bytes */

extern const struct rpc_part control_part;

/* Sends @m from @self (or LNET_NID_ANY). -errno: it was not even begun to be
 * sent, for want of a way there, or of something here (rpc_is_short(); -ENOMEM:
 * also, too many are on their way there); what happens later nobody hears of.
 * Owner. */
int control_send(struct shard *s, struct ulnet_nid self, struct ulnet_id to,
		 const struct wire_control *m);

/* As control_send(), and calls @done with the SEND event, never inside of the
 * call. By @id @done finds the sender, who may be gone by then; @tag is the
 * sender's own. */
typedef void (*control_sent_fn)(struct shard *s, uint64_t id, uint64_t tag,
				const struct ulnet_event *ev);
int control_send_tracked(struct shard *s, struct ulnet_nid self,
			 struct ulnet_id to, const struct wire_control *m,
			 control_sent_fn done, uint64_t id, uint64_t tag);

#endif
