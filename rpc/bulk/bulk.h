/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bulk: memory that a caller lends to a server for the time of a call. The
 * memory is cut into segments. While an attempt of the call is under way, each
 * segment is linked on the bulk portal, as a match entry with an MD. This file
 * knows nothing of calls.
 *
 * One call at a time has a claim on a bulk. The claim begins with
 * bulk_prepare(), and ends when bulk_release() was called and the MDs have had
 * their last events. Without a claim the memory is the user's.
 *
 *	prepare -> [ attach -> detach -> (idle) ]* -> check -> release -> (idle)
 *
 * The server may use a segment any number of times, and repeats what was
 * perhaps lost. So messages do not use up MDs, which are unlinked when the
 * attempt ends. Their last event is a fence: nothing touches the memory after
 * it.
 *
 * Each attempt has new match values, so late messages of the attempt before
 * find no entry. It begins only when the bulk is idle, unless LNet only reads
 * the memory still: bulk_is_fenced().
 */
#ifndef RPC_BULK_H
#define RPC_BULK_H

#include "rpc/wire/wire.h"
#include "ulnet/rpc.h"
#include "ulnet/rpc.pb-c.h"

struct shard;
struct stat_service;

/*
 * In the header data of a PUT to a sink with checksums, this bit says that the
 * lower 32 bits are the checksum of the payload. The receiver compares it, and
 * sends no ACK if the payload has changed on its way, so that the PUT is
 * repeated as if it were lost. Older peers have 0 in the header data, or do not
 * look at them: then a change is found when the reply comes. ulrpc_protocol(7)
 */
#define BULK_PROOF (UINT64_C(1) << 32)
static inline uint64_t bulk_proof(uint32_t crc)
{
	return BULK_PROOF | crc;
}

/* What is called when bytes are moved after the call has ended: @fn, once the
 * bulk is idle, with the bytes that were put, @in, and got, @out. The other
 * fields are for @fn. */
struct bulk_late {
	void (*fn)(struct shard *s, const struct bulk_late *late, uint64_t in,
		   uint64_t out);
	struct stat_service *stats;
	uint64_t import;
	uint32_t method;
};

/* Sets *@length_p to the sum of the lengths of @iov. Returns 0; -EINVAL: a
 * pointer is NULL; @too_long: the sum is more than ULRPC_BULK_MAX bytes. */
int iov_total(const struct iovec *iov, unsigned int niov, int too_long,
	      uint64_t *length_p) must_check;

/* Claims @b for a call of @rpc. If @b is a source with checksums, bulk_sum()
 * has to compute them. Returns 0; -EBUSY: it is claimed already; -EINVAL: it is
 * of another node. Any thread. */
int bulk_prepare(struct ulrpc_bulk *b, struct ulrpc *rpc) must_check;
/* Sets *@twin_p to a twin of @b, which is claimed: another bulk of the same
 * memory, which ulrpc_call() takes. A call that is made at one server after
 * another lends twins, since LNet may be busy with one long after the call has
 * left its server. @b is in use as long as it has twins. The caller drops the
 * twin with ulrpc_bulk_close(). Returns 0, -ENOMEM, or -EBUSY: the caller has
 * to wait for other twins; a sink, to which a late message could be written,
 * has one at a time, and a source a few. Any thread. */
int bulk_twin(struct ulrpc_bulk *b, struct ulrpc_bulk **twin_p) must_check;
/* Is @b memory that the server writes to? Any thread. */
bool bulk_is_sink(const struct ulrpc_bulk *b);
/* Has @b twins? Any thread. */
bool bulk_has_twins(const struct ulrpc_bulk *b);
/* Computes checksums of a source that has them, which takes about 0.1 ms for
 * each MiB. Goes on, by whole segments, until *@left bytes are summed, and
 * subtracts the summed bytes from *@left. Returns true when all segments are
 * summed, as they must be before bulk_attach(). Any thread. */
bool bulk_sum(struct ulrpc_bulk *b, uint64_t *left);

/* @b, a source, which no call has claimed, is the body of a request, or a part
 * of it: bulk_describe() says so. */
void bulk_is_body(struct ulrpc_bulk *b);
/* Returns how many segments @b has. Any thread. */
unsigned int bulk_segments(const struct ulrpc_bulk *b);
/* Describes @b in *@out, without a match value; *@out borrows from @b. Any
 * thread. */
void bulk_describe(const struct ulrpc_bulk *b, struct wire_segments *out);
/*
 * Begins an attempt to @peer; @b must not be fenced. Links all segments, with
 * match values that were never used, and describes them in *@out, which borrows
 * from @b until the claim ends. @heard: NULL, or where the time, ns, is stored
 * whenever the peer moves something; borrowed until bulk_detach(). Thread: the
 * owner of @s, which must be the same for the whole claim. Returns 0, or
 * -ENOMEM or -ESHUTDOWN; after an error @b is as after bulk_detach(), and *@out
 * is untouched.
 */
int bulk_attach(struct ulrpc_bulk *b, struct shard *s, struct ulnet_id peer,
		uint64_t *heard, struct wire_segments *out) must_check;
/* Called when the peer is reached by another NID: links the segments for that
 * NID instead. Messages from other NIDs that LNet knows to be the peer's find
 * the segments as before. If there is no memory for new entries, the old ones
 * stay until the next call of this. No effect unless attached. Owner. */
void bulk_follow(struct ulrpc_bulk *b, struct ulnet_id peer);
/* Called when a message of the peer has come from the NID in @peer: does what
 * bulk_follow() does, unless LNet knows that NID as one of the peer's. Owner.
 */
void bulk_admit(struct ulrpc_bulk *b, struct ulnet_id peer);
/* From now on no message finds a segment of @b. @b becomes idle when the
 * messages that have found one before have ended. No effect unless attached.
 * Owner. */
void bulk_detach(struct ulrpc_bulk *b);
/* Is nothing of @b linked, or in use by LNet? Owner. */
bool bulk_idle(const struct ulrpc_bulk *b);
/* Does @b have to be idle before its next attempt? A source that is sent as it
 * is has not: what LNet still sends for attempts before, perhaps until it gives
 * up a dead peer, harms nobody, as long as it is for few of them. Owner. */
bool bulk_is_fenced(const struct ulrpc_bulk *b);
/* Calls @fn(@arg) once, when @b becomes idle after a bulk_detach(). @b must not
 * be idle now, and must have no such function yet. bulk_release() drops the
 * function. Owner. */
void bulk_on_idle(struct ulrpc_bulk *b, void (*fn)(void *arg), void *arg);
/* Drops the function of bulk_on_idle(). Owner. */
void bulk_on_idle_cancel(struct ulrpc_bulk *b);

/* ---- seals: ulnet_security(7) ---- */

struct piece_key;

/* The keys that open what the server has put. */
struct bulk_keys {
	/* returns the key of the connection with @epoch, borrowed; NULL: there
	 * is none any more */
	struct piece_key *(*of_epoch)(const void *arg, uint32_t epoch);
	const void *arg;
};

/* How a bulk is to be sealed. */
struct bulk_cover {
	/* the key for what this side seals; borrowed */
	struct piece_key *key;
	/* enum seal_protection: whether the bytes are encrypted, too */
	unsigned int protection;
	/* the place of the bulk among those of its call */
	uint32_t index;
};

/* Seals @b as @how says. From then on bulk_attach() offers it with seals. A
 * source is sealed in slices: one call seals about *@left bytes, which it
 * subtracts from *@left, and the next call continues there. Large segments are
 * given to sealers (sealers.h), and @b is not idle until they are done. @b must
 * be idle at the first call. Returns 1: all is sealed, and bulk_attach() may be
 * called; 0: not all is sealed yet; -ENOMEM or -EIO. Owner. */
int bulk_cover(struct ulrpc_bulk *b, struct shard *s,
	       const struct bulk_cover *how, uint64_t *left) must_check;
/* Returns whether bulk_check() has taken seals that bulk_open() has not used
 * yet. */
bool bulk_owes_open(const struct ulrpc_bulk *b);
/* Opens a sink with the seals that bulk_check() has taken, in slices and by
 * sealers like bulk_cover(). The sink must be idle at the first call. Returns
 * 1: all is opened, and is what the server has put; 0: not all is opened yet,
 * or @b is not idle; -EBADMSG: something is not what the server has put, and
 * the contents of @b must not be used; -ENOMEM. Owner. */
int bulk_open(struct ulrpc_bulk *b, uint64_t *left) must_check;

/* Compares the contents of a sink with the checksums that the server has sent
 * for it. That takes about 0.1 ms for each MiB that came in PUTs without a
 * checksum. Of a sink with seals, only takes the seals, with those of @keys
 * that they need, for bulk_open(). Returns 0: they are equal, or there is
 * nothing to compare; -EBADMSG: they differ, or there is no such key; -EPROTO:
 * @b has no such segments. Owner. */
int bulk_check(struct ulrpc_bulk *b, const struct wire_moved_in *m,
	       const struct bulk_keys *keys) must_check;
/* Was something put into @b for which the server owes a checksum? */
bool bulk_unproven(const struct ulrpc_bulk *b);
/* Adds the bytes moved since the claim began: those put by the server to *@in,
 * those got by it to *@out. Bytes that were moved twice count twice. Owner. */
void bulk_bytes(const struct ulrpc_bulk *b, uint64_t *in, uint64_t *out);
/* To be called before bulk_release(). Bytes that are moved from now on are
 * reported to @late, which is copied. Owner. */
void bulk_on_late(struct ulrpc_bulk *b, const struct bulk_late *late);

/* Called when the call is over: detaches @b, and ends the claim as soon as @b
 * is idle; then @b may be freed. Returns true if @b is idle now. Owner; any
 * thread if @b was never attached. */
bool bulk_release(struct ulrpc_bulk *b);

/* ---- a bulk in a message of protobuf ---- */

/* Makes @field, which stands for @bulk in a message. @bulk is kept in the
 * pointer to unknown fields, which has no other use when there are none, so
 * copies of @field have it, too. Fields that others made, or that were
 * unpacked, have NULL there. */
static inline void bulk_field_init(Ulrpc__Bulk *field, struct ulrpc_bulk *bulk,
				   uint64_t length,
				   enum ulrpc_bulk_access access)
{
	ulrpc__bulk__init(field);
	field->base.unknown_fields = (ProtobufCMessageUnknownField *)bulk;
	field->length = length;
	field->access = access;
}

/* Returns the bulk of @field; NULL: @field was not made by bulk_field_init().
 */
static inline struct ulrpc_bulk *bulk_of_field(const Ulrpc__Bulk *field)
{
	return field->base.n_unknown_fields
		       ? NULL
		       : (struct ulrpc_bulk *)field->base.unknown_fields;
}

#endif
