/* SPDX-License-Identifier: BSD-3-Clause */
/* What bulk.c (memory that is lent) and cover.c (its seals) share. */
#ifndef RPC_BULK_PRIV_H
#define RPC_BULK_PRIV_H

#include <stdatomic.h>
#include "rpc/bulk/bulk.h"
#include "rpc/rpc.h"

/* A segment: memory for one message. */
struct segment {
	struct iovec *iov;
	unsigned int niov;
	struct ulnet_md_handle md; /* while attached */
};

struct ulrpc_bulk {
	/* immutable after ulrpc_bulk_new() */
	struct ulrpc *rpc; /* only compared, as it may be closed */
	enum ulrpc_bulk_access access;
	bool checked;
	uint64_t length;
	unsigned int n;
	struct segment *segments;
	uint32_t *lengths;
	struct iovec *iov; /* the fragments of all segments */

	Ulrpc__Bulk field; /* ulrpc_bulk_field() */

	struct cover *cover; /* owner, while claimed; NULL: not sealed */

	/* If the bulk has checksums, crc[i] is the checksum of the first
	 * summed[i] bytes of segment i; else both are NULL. Source: bulk_sum()
	 * sums whole segments, from the first on. Sink: of the bytes that have
	 * come with a checksum that was right. Written by the owner of the
	 * claim. */
	uint32_t *crc;
	uint32_t *summed;
	unsigned int nsummed; /* a source: segments that were summed */

	/* References: the user's, and one of a claim. Any thread. */
	atomic_uint refs;
	/* Called when the last reference is dropped. Written before the user's
	 * is. */
	void (*released)(void *arg);
	void *released_arg;

	/* owner CPT, while claimed */
	struct shard *shard; /* held while @linked is not 0 */
	/* MDs whose last event has not come, and jobs of sealers */
	unsigned int linked;
	bool attached; /* the segments' MDs are linked, for this attempt */
	/* attached: the peer that messages may come from */
	struct ulnet_id peer;
	/* attached: match value of segment 0; others follow */
	uint64_t match;
	/* the server has put something during this attempt */
	bool touched;
	uint64_t moved;	       /* bytes moved, in all attempts */
	uint64_t *heard;       /* attached: as in bulk_attach() */
	struct bulk_late late; /* fn is NULL: no report */
	bool over;	       /* the claim ends when the bulk is idle */
	void (*idle_fn)(void *arg);
	void *idle_arg;
};

/* Something uses the memory of @b: a linked MD, or a sealer. Then @b is not
 * idle. Owner. */
void bulk_use(struct ulrpc_bulk *b);
/* It does not any more. May free @b. Owner. */
void bulk_unuse(struct ulrpc_bulk *b);

/* Gives up the seals of @b, and what was encrypted, of which nothing is linked
 * any more. Owner; any thread if there are none. */
void bulk_uncover(struct ulrpc_bulk *b);
/* The memory that is linked for segment @i: its encrypted bytes. NULL: its own.
 */
void *cover_of(const struct ulrpc_bulk *b, unsigned int i);
/* Is the PUT that has come not what the server has put there, or not all of it?
 * Only accidents are recognized so. */
bool cover_is_damaged(const struct ulnet_event *ev);
/* Tells what seals there are in @out. */
void cover_describe(const struct ulrpc_bulk *b, struct wire_segments *out);
/* As bulk_check(). */
int cover_take(struct ulrpc_bulk *b, const struct wire_moved_in *m);

/* The CRC32C of the payload of a PUT that has come, behind bytes whose CRC is
 * @crc. */
uint32_t bulk_crc_of_put(const struct ulnet_event *ev, uint32_t crc);

#endif
