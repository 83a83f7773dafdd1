/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/kept.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/server/session/export.h"
#include "rpc/stats/stat.h"
#include "ulnet/rpc.h"

/* A copy of a message with replies that its service has left. */
struct left {
	struct record_reply kept;
	struct exports *exports;
	struct quota *quota;
	uint32_t size; /* bytes of this structure, with the message */
	uint32_t length;
	uint64_t hdr_data;
	uint8_t bytes[];
};

/* ---- sending again ---- */

/* Copies the checksums of the sinks in @from, decoded, to one piece of memory,
 * which the caller frees by free(). Seals are not copied: they stay in the
 * message. NULL: no memory. */
static struct wire_moved *moved_again(const struct wire_reply *from)
{
	size_t words = 2 * (size_t)ULRPC_SEGMENTS_MAX;
	struct wire_moved *out =
		calloc(from->bulks.n, sizeof(*out) + words * sizeof(uint32_t));
	uint32_t *at = (uint32_t *)(out + from->bulks.n);
	struct wire_view view = from->bulks.view;
	struct wire_moved_in in;

	for (uint32_t i = 0; out && wire_moved_next(&view, &in); i++) {
		out[i] = (struct wire_moved){ .index = in.index,
					      .n = in.n,
					      .seals = in.seals };
		if (!view_length(in.seals)) {
			out[i].checksum = at;
			wire_moved_checksums(&in, at);
			at += in.n;
		}
		if (!in.has_lengths)
			continue;
		out[i].length = at;
		wire_moved_lengths(&in, at);
		at += in.n;
	}
	return out;
}

/* Sets *@r to the reply to @xid. Returns false if there is no memory. */
static bool reply_find(const struct kept_message *m, uint64_t xid,
		       struct wire_reply *r)
{
	struct wire_reply *replies = calloc(WIRE_CALLS_MAX, sizeof(*replies));
	struct wire_replies head;
	bool found = false;

	if (!replies)
		return false;
	BUG_ON(wire_replies_decode(&head, replies, m->hdr_data, m->start,
				   m->length));
	for (uint32_t i = 0; i < head.nreplies && !found; i++) {
		found = replies[i].xid == xid;
		if (found)
			*r = replies[i];
	}
	free(replies);
	return found;
}

bool kept_find(const struct kept_message *m, uint64_t xid, uint32_t attempt,
	       struct kept_again *again)
{
	struct wire_reply *r = &again->reply;

	again->moved = NULL;
	if (!reply_find(m, xid, r))
		return false;
	if (r->bulks.n) {
		again->moved = moved_again(r);
		if (!again->moved)
			return false;
		r->bulks.list = again->moved;
	}
	r->attempt = attempt;
	return true;
}

/* ---- what is left ---- */

struct record_reply *left_new(struct exports *x, const struct export *e,
			      const struct record_reply *kept,
			      const struct kept_message *m)
{
	uint32_t size = (uint32_t)sizeof(struct left) + m->length;
	struct quota *quota = quota_take(&x->left, export_source(e), size,
					 shard_now(x->shard));
	struct left *l;

	if (!quota)
		return NULL;
	l = malloc(size);
	if (!l) {
		quota_put(&x->left, quota, size);
		return NULL;
	}
	*l = (struct left){
		.kept = { .keeps = kept->keeps,
			  .last = kept->last,
			  .until = kept->until,
			  .left = true },
		.exports = x,
		.quota = quota,
		.size = size,
		.length = m->length,
		.hdr_data = m->hdr_data,
	};
	memcpy(l->bytes, m->start, m->length);
	stat_now(x->shard, RPC_STAT_answers_kept_bytes, size);
	return &l->kept;
}

void left_message(const struct record_reply *kept, struct kept_message *m)
{
	const struct left *l = container_of(kept, struct left, kept);

	*m = (struct kept_message){ l->hdr_data, l->bytes, l->length };
}

void left_free(struct record_reply *kept)
{
	struct left *l = container_of(kept, struct left, kept);

	stat_now(l->exports->shard, RPC_STAT_answers_kept_bytes,
		 -(int64_t)l->size);
	quota_put(&l->exports->left, l->quota, l->size);
	free(l);
}
