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
	struct ulnet_md_handle md; /* the segment's MD; valid while attached */
};

struct ulrpc_bulk {
	/* immutable after ulrpc_bulk_new(): */
	struct ulrpc *rpc; /* only compared, as it may be closed */
	enum ulrpc_bulk_access access;
	bool checked;
	bool body;	  /* was bulk_is_body() called? */
	uint32_t segment; /* bytes of a segment, at most */
	uint64_t length;
	struct ulrpc_bulk
		*twin_of; /* borrows its memory; NULL: a user's bulk */
	unsigned int n;
	struct segment *segments;
	uint32_t *lengths;
	struct iovec *iov; /* the fragments of all segments */

	Ulrpc__Bulk field; /* what ulrpc_bulk_field() returns */

	/* the seals; NULL: the bulk is not sealed. Owner, while claimed */
	struct cover *cover;

	/* If the bulk has checksums, crc[i] is the checksum of the first
	 * summed[i] bytes of segment i; else both are NULL. In a source,
	 * segments are summed whole, one after another, by bulk_sum(). In a
	 * sink, the bytes that have come with a right checksum are summed.
	 * Written by the owner of the claim. */
	uint32_t *crc;
	uint32_t *summed;
	unsigned int nsummed; /* of a source: how many segments were summed */

	/* references: one of the user, one of a claim, and one of each twin.
	 * Any thread */
	atomic_uint refs;
	atomic_uint twins; /* how many there are. Any thread */
	/* Called when the last reference is dropped. Set before the user drops
	 * its own. */
	void (*released)(void *arg);
	void *released_arg;

	/* for the owner CPT, while claimed: */
	struct shard *shard; /* held while @linked is not 0 */
	/* MDs that have not had their last event, and jobs of sealers */
	unsigned int linked;
	bool attached; /* the segments' MDs are linked for this attempt */
	/* the peer from which messages may come; valid while attached */
	struct ulnet_id peer;
	/* match value of segment 0, valid while attached; those of the other
	 * segments follow */
	uint64_t match;
	/* the server has put something during this attempt */
	bool touched;
	uint64_t moved; /* bytes moved, in all attempts */
	/* NULL, or where the time is stored, as in bulk_attach(); valid while
	 * attached */
	uint64_t *heard;
	struct bulk_late late; /* late.fn is NULL: nobody wants a report */
	bool over;	       /* the claim ends when the bulk is idle */
	void (*idle_fn)(void *arg);
	void *idle_arg;
};

/* Counts one more user of the memory of @b: a linked MD, or a sealer. @b is not
 * idle then. Owner. */
void bulk_use(struct ulrpc_bulk *b);
/* Counts one user less. May free @b. Owner. */
void bulk_unuse(struct ulrpc_bulk *b);

/* Frees the seals of @b, and the encrypted bytes, of which nothing may be
 * linked any more. Owner; any thread if there are no seals. */
void bulk_uncover(struct ulrpc_bulk *b);
/* Returns the encrypted bytes that are linked instead of segment @i; NULL: its
 * own memory is linked. */
void *cover_of(const struct ulrpc_bulk *b, unsigned int i);
/* Is the PUT that has come damaged, or not all of what the server has put? This
 * finds accidents only. */
bool cover_is_damaged(const struct ulnet_event *ev);
/* Fills in the seals in @out, if there are any. */
void cover_describe(const struct ulrpc_bulk *b, struct wire_segments *out);
/* Does what bulk_check() does, for a sink with seals. */
int cover_take(struct ulrpc_bulk *b, const struct wire_moved_in *m,
	       const struct bulk_keys *keys);

/* Returns the CRC32C of the payload of a PUT that has come, continued from
 * @crc, that of the bytes in front of it. */
uint32_t bulk_crc_of_put(const struct ulnet_event *ev, uint32_t crc);

#endif
