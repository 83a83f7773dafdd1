/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a caller lends to a server for a call: cut into segments, each
 * of which is a match entry and an MD on the bulk portal as long as an attempt
 * of the call is on its way. Knows nothing of calls.
 *
 * A bulk has at most one claim at a time: from bulk_prepare() until
 * bulk_release() and the last event of its MDs, whichever comes last. Its
 * memory is the user's while there is none.
 *
 *	prepare -> [ attach -> detach -> (idle) ]* -> check -> release -> (idle)
 *
 * While an attempt is on its way, the server may use each segment any number of
 * times: a message that was lost, or may have been, is repeated by the server
 * alone, at the cost of that message. That is harmless as long as the memory is
 * the call's. So MDs are not used up; they are unlinked when the call ends, or
 * is sent again, and fenced: the memory is not touched after their last event.
 *
 * Match values are new for each attempt, and an attempt begins only when
 * nothing of the last one is linked: what comes late finds no entry.
 */
#ifndef RPC_BULK_H
#define RPC_BULK_H

#include "rpc/wire/wire.h"
#include "ulnet/rpc.h"

struct shard;
struct stat_service;

/* For counting what is moved after the call has ended: @fn is called when the
 * bulk is idle. The rest is for @fn. */
struct bulk_late {
	void (*fn)(struct shard *s, const struct bulk_late *late, uint64_t in,
		   uint64_t out);
	struct stat_service *stats;
	uint64_t import;
	uint32_t method;
};

/* Claims @b for a call of @rpc, and computes the checksums of a source, if it
 * has any: about 0.1 ms for each MiB. 0; -EBUSY: claimed already; -EINVAL: of
 * another node. Any thread. */
int bulk_prepare(struct ulrpc_bulk *b, struct ulrpc *rpc) must_check;

/* Describes @b in *@out as bulk_attach() will, but for the match value. Any
 * thread. */
void bulk_describe(const struct ulrpc_bulk *b, struct wire_segments *out);
/*
 * A new attempt to @peer begins: links all segments, with match values that
 * were never used, and describes them in *@out, whose tables are borrowed until
 * the claim ends. *@heard, borrowed until bulk_detach(), is set to the time,
 * ns, when the peer moves something; or NULL. Must be idle. Owner of @s, which
 * the whole claim belongs to. 0; -ENOMEM, -ESHUTDOWN: as bulk_detach(), and
 * @out is left alone.
 */
int bulk_attach(struct ulrpc_bulk *b, struct shard *s, struct ulnet_id peer,
		uint64_t *heard, struct wire_segments *out) must_check;
/* From now on the peer is known by another NID, of which perhaps only LNet's
 * directory knows that it is the same peer's. Its messages find the segments as
 * before: from any NID that LNet knows to be the peer's, and from this one even
 * if the peer loses the NID that it had before. If there is no memory, messages
 * may find no segment until the next call of this function. No effect when
 * nothing is attached. Owner. */
void bulk_follow(struct ulrpc_bulk *b, struct ulnet_id peer);
/* A message of the peer has come from this NID of it: bulk_follow(), unless
 * messages from there find the segments anyway. Owner. */
void bulk_admit(struct ulrpc_bulk *b, struct ulnet_id peer);
/* From now on no message finds a segment of @b. @b is idle when the messages
 * that have found one before are through. No effect when nothing is attached.
 * Owner. */
void bulk_detach(struct ulrpc_bulk *b);
/* Is nothing of @b linked or in use? Owner. */
bool bulk_idle(const struct ulrpc_bulk *b);
/* Calls @fn(@arg) once, when @b is idle, which it must not be now, and which
 * needs a bulk_detach(). At most one at a time; bulk_release() forgets it.
 * Owner. */
void bulk_on_idle(struct ulrpc_bulk *b, void (*fn)(void *arg), void *arg);
/* Nobody waits for the bulk to become idle any more. Owner. */
void bulk_on_idle_cancel(struct ulrpc_bulk *b);

/* Compares what is in a sink with what the server says that it put there. 0;
 * -EBADMSG: they differ; -EPROTO: no such segments. Sinks without checksums,
 * and sources: always 0. About 0.1 ms for each MiB. Owner. */
int bulk_check(const struct ulrpc_bulk *b,
	       const struct wire_moved_in *m) must_check;
/* Was something put into @b that is to be checked? */
bool bulk_unproven(const struct ulrpc_bulk *b);
/* Adds the bytes that the server has put to it, or got from it, since it was
 * claimed; what was moved twice counts twice. Owner. */
void bulk_bytes(const struct ulrpc_bulk *b, uint64_t *in, uint64_t *out);
/* What is moved from now on, if anything, is for @late, which is copied. Before
 * bulk_release(). Owner. */
void bulk_on_late(struct ulrpc_bulk *b, const struct bulk_late *late);

/* The call is over: detaches, and ends the claim when idle. Returns whether
 * that was at once. After it @b may be gone. Owner, or any thread if never
 * attached. */
bool bulk_release(struct ulrpc_bulk *b);

#endif
