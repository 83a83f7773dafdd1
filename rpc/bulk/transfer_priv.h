/* SPDX-License-Identifier: BSD-3-Clause */
/* What three files share: remote.c knows the caller's memory and its checksums,
 * chunk.c moves bytes, and transfer.c has transfers as their users see them. */
#ifndef RPC_TRANSFER_PRIV_H
#define RPC_TRANSFER_PRIV_H

#include <stdatomic.h>
#include <sys/uio.h>
#include "base/fsm.h"
#include "base/list.h"
#include "rpc/bulk/loss.h"
#include "rpc/bulk/seal.h"
#include "rpc/rpc.h"
#include "rpc/bulk/transfer.h"

/* ---- positions in memory: any thread ---- */

/* The same bytes in two memories: in segments of a caller, of which only the
 * lengths are known here, and in fragments of this process's memory. */
struct span {
	uint64_t length;
	/* lengths of the segments, in bytes; none is 0 */
	const uint32_t *lengths;
	unsigned int nsegments;
	/* the segment in which the span begins, */
	unsigned int segment;
	uint32_t in_segment; /* and the offset in that segment */
	unsigned int niov;
	struct iovec *iov; /* the span's @length bytes; no fragment is empty */
};

struct cursor {
	/* bytes between the beginning of the span and this position */
	uint64_t offset;
	unsigned int segment;
	uint32_t in_segment;
	unsigned int fragment;
	size_t in_fragment;
};

static inline struct cursor cursor_begin(const struct span *s)
{
	return (struct cursor){ .segment = s->segment,
				.in_segment = s->in_segment };
}

/* Returns the bytes of the span from @at to the end of the segment that @at is
 * in. */
static inline uint32_t cursor_room(const struct span *s,
				   const struct cursor *at)
{
	return (uint32_t)MIN(s->lengths[at->segment] - at->in_segment,
			     s->length - at->offset);
}

/* Moves @at on by @length bytes, which must not be beyond the end. */
void cursor_move(const struct span *s, struct cursor *at, uint64_t length);
/* Fills @out with up to @max fragments, of the @length bytes at @at. Returns
 * the number of fragments, and sets *@length_p to the bytes in them. */
unsigned int cursor_slice(const struct span *s, const struct cursor *at,
			  uint64_t length, struct iovec *out, unsigned int max,
			  uint32_t *length_p);

/* ---- what a request has lent, and its transfers ---- */

/* A bulk of the caller. */
struct remote {
	/* match value in the latest attempt that has come. Owner */
	uint64_t match;
	/* used by any thread: */
	/* us: the time-out of transfers that begin from now on; 0: none */
	_Atomic uint64_t timeout;
	atomic_uint cancels; /* how often transfer_cancel() was called */
	/* immutable: */
	uint64_t length;
	enum ulrpc_bulk_access access;
	bool checked;
	bool body; /* a part of the request's body */
	unsigned int n;
	uint32_t *lengths; /* bytes of each segment */
	/* Checksums of the segments, if the bulk is checked. Of a source: as
	 * the caller has sent them, immutable. Of a sink: crc[i] is the
	 * checksum of the first put[i] bytes of segment i; the owner writes
	 * both. Of a segment without a chunk so far, only put[i] is valid. */
	uint32_t *crc;
	uint32_t *put;
	/* of a sink: bytes were put to it, perhaps without success */
	bool tried;
	/* How the bulk is sealed, if it is; index: its place among the bulk of
	 * the call. Immutable. */
	enum seal_protection protection;
	uint32_t index;
	/* A seal for each segment. Of a source: as the caller has sent it. Of a
	 * sink: seal i covers the first put[i] bytes of segment i, and has no
	 * tag while open[i] is set. Owner. */
	uint8_t *seals;
	struct piece **open;
};

struct transfers {
	struct transfers_conf conf;
	/* used by any thread: */
	/* transfers whose done function was not called yet */
	atomic_uint pending;
	/* how many threads are between transfers_use() and transfers_unuse() */
	atomic_uint users;
	/* references: one of the owner, one of each transfer until its done
	 * function has returned, and one of a cancellation on its way */
	atomic_uint refs;
	/* the work @cancel is posted, and has not run yet */
	atomic_bool canceling;
	struct ulnet_work cancel;
	struct bulk_progress progress;
	/* for the owner: */
	struct list active;
	struct list link; /* node in conf.busy, while a transfer is active */
	/* chunks of all transfers that are not free */
	unsigned int busy;
	/* connections that were lost since a chunk was last moved */
	unsigned int conn_losses;
	/* The tries of all chunks have numbers, from 0, in the order in which
	 * they begin. tries: how many have begun. passed: a try with this
	 * number or a later one has moved its chunk. oldest: no try with a
	 * lower number is under way. */
	uint64_t tries, passed, oldest;
	/* the value of retry_schedule.lossy for chunks that begin */
	bool lossy;
	/* 0, or the status with which all transfers end */
	int aborted;
	int failed; /* 0, or the status of the first failure */
	/* bytes got (in) and put (out) by chunks that succeeded */
	uint64_t in, out;
	uint64_t segments; /* how many chunks were moved with success */
	/* ns: when the first of the transfers that are active now began */
	uint64_t since;
	/* ns for which a transfer was active, before @since */
	uint64_t time;
	/* ns: @time, when the body had come */
	uint64_t body_time;
	void (*on_done)(void *arg);
	void *on_done_arg;
	/* All bulks, and those that are parts of the body, which are the last
	 * ones. */
	unsigned int n, nbody;
	struct remote remotes[];
};

enum chunk_state {
	CHUNK_FREE,
	/* LNet has the MD of a try, whose last event has not come */
	CHUNK_FLYING,
	/* like CHUNK_FLYING, but the try was given up, since it is probably
	 * lost */
	CHUNK_LATE,
	CHUNK_WAITING, /* the chunk is to be sent, or sent again */
	CHUNK_AWAY,    /* a sealer seals the chunk, or opens its segment */
	CHUNK_STATES
};

struct chunk {
	struct transfer *x;
	struct fsm fsm;
	bool answered; /* an answer has come, and has set @status */
	/* the last try has failed in such a way that another one would, too */
	bool final;
	/* this try takes another way than the usual one, if there is one */
	bool elsewhere;
	/* how often the chunk's segment has arrived changed. After the first
	 * time, all of the segment is got again, chunk by chunk */
	uint8_t damages;
	int status;	/* result of this try: 0 or -errno */
	uint64_t match; /* remote.match when this try began */
	/* how this try went: the NID of the peer that it was sent to, the NID
	 * of this node that it was sent from, and the next hop; ANY: not known
	 * yet */
	struct ulnet_nid rail, local, hop;
	struct ulnet_md_handle md;
	struct cursor at;
	uint32_t length;
	/* of a checked or sealed sink: CRC32C of the chunk's bytes, as they are
	 * put */
	uint32_t crc;
	/* of a sink with privacy: the encrypted bytes */
	struct bulk_room sealed;
	struct retry_schedule schedule;
	/* ns: when the chunk's first try began, and when its last one did */
	uint64_t first, began;
	/* ns: when the next try begins; valid in CHUNK_WAITING */
	uint64_t again;
	/* ns: how long the last try that timed out has waited */
	uint64_t waited;
	uint64_t order; /* the number of this try, from transfers.tries */
};

struct transfer {
	struct transfers *t;
	struct remote *r;
	struct list link;	/* node in transfers.active */
	struct ulnet_work work; /* begins the transfer; later, ends it */
	/* calls transfer_on_timer() at the time that transfer_arm() has set */
	struct ulnet_timer timer;
	ulrpc_bulk_fn done;
	void *arg;
	struct span span;
	/* Of a sealed source, if the service wants only a part of a segment.
	 * All of the segment is got; what is not wanted goes to @rest: first
	 * the @skip bytes in front, then the @after bytes behind. See
	 * transfer_seal_pause(). */
	struct bulk_room rest;
	uint32_t skip, after;
	uint64_t wanted; /* bytes that the service wants */
	/* ns that the transfer may take; TIME_NEVER: no limit */
	uint64_t timeout;
	uint64_t deadline;	    /* ns: when @timeout ends */
	struct conn_loss conn_loss; /* the last connection that was lost */
	/* ns: when the chunks that were lost with @conn_loss are given up;
	 * TIME_NEVER: there was no loss */
	uint64_t sweep;
	/* the value of remote.cancels when this transfer was made */
	unsigned int cancels;
	/* where the next chunk begins */
	struct cursor next;
	/* ns: when chunks can be made again, after memory was short;
	 * TIME_NEVER: memory is not short */
	uint64_t starved;
	struct list slice; /* node in bulk_pool.waiting */
	/* One number for each segment, if the remote is checked or sealed; else
	 * NULL. Of a source: bytes that are still missing. Of a sink, if
	 * @summed: the checksum of what is put, from the segment's beginning.
	 */
	uint32_t *left;
	uint32_t *crc;
	bool summed;
	int status;
	bool ending;
	unsigned int busy; /* chunks that are not free */
	uint64_t moved;
	/* bytes of the transfer up to the first chunk that was not certainly
	 * moved */
	uint64_t low;
	unsigned int nchunks;
	struct chunk chunks[];
};

/* Has the service canceled @x? If so, the end of @x is no failure. Any thread.
 */
static inline bool transfer_is_canceled(const struct transfer *x)
{
	return x->cancels != atomic_load(&x->r->cancels);
}

/* ---- chunks: chunk.c ---- */

/* Makes chunks of the bytes of @x that are next, and sends them, as many as the
 * window allows. Schedules the end of @x if nothing of it is left. */
void transfer_go(struct transfer *x);
/* Arms the timer of @x for what is to be done next about its chunks. */
void transfer_arm(struct transfer *x);
/* What x->timer calls. */
void transfer_on_timer(struct ulnet_timer *timer);
/* Ends @x with @status, in a later work, unless all of it was moved. Sends no
 * more chunks, and gives up those that are under way. */
void transfer_fail(struct transfer *x, int status);
/* Gives up the try of @p, which is CHUNK_FLYING, and takes its MD from LNet.
 * LNet then reports a last event, without an answer unless one had come before.
 */
void chunk_give_up(const struct chunk *p);

/* Called when a sealer has done its work for @p: what transfer_seal_chunk() or
 * transfer_seal_check() gave it. @rc: the result; @at: when the work was given
 * to the sealer (ns). */
void chunk_on_away(struct chunk *p, int rc, uint64_t at);

/* Returns the CRC32C of the @length bytes at @at, continued from @crc, that of
 * the bytes in front of them. */
uint32_t cursor_crc(const struct span *s, struct cursor at, uint32_t length,
		    uint32_t crc);

/* ---- seals: transfer_seal.c ---- */

/* Reads what the request says of the seals of @r. Returns 0, -EPROTO or
 * -ENOMEM. */
int remote_seal_init(struct remote *r, const struct wire_segments_in *s,
		     unsigned int index) must_check;
void remote_seal_fini(struct remote *r);
/* Takes the seals in @s, which came with a later attempt of the call. If the
 * caller has sealed a source anew, a segment of which a part was got before
 * will look damaged when it is complete, and is then got again. */
void remote_seal_refresh(struct remote *r, const struct wire_segments_in *s);
/* Completes the seals of the first @n segments of a sink. Returns false if that
 * fails. */
bool remote_seal_end(struct remote *r, unsigned int n) must_check;
/* Forgets the seal of a segment whose content is not known, because a transfer
 * failed. */
void remote_seal_forget(struct remote *r, unsigned int segment);

/* Called when all of a segment of a source has come. The segment begins at @at;
 * @p is the chunk that came last. Checks the segment's seal, and decrypts the
 * segment. Returns 0; -EBADMSG; -ENOMEM; or 1: a sealer does this, and
 * chunk_on_away() is called later. */
int transfer_seal_check(struct transfer *x, struct chunk *p,
			struct cursor at) must_check;
/* Prepares what the next chunk needs for its seal. Returns 0: the chunk can be
 * made; SEAL_NEXT_TURN: there is no time for it in this turn; SEAL_PAUSE: the
 * caller has used up its share of memory. */
uint64_t transfer_seal_pause(struct transfer *x);
/* Seals @p, a new chunk of a sink. Chunks must be made in the order of their
 * bytes, even if several transfers put to one sink. Returns 0; 1: a sealer does
 * this, and chunk_on_away() is called later; -ENOBUFS: the caller has used up
 * its share of the memory; other errors: @p cannot be sealed. */
int transfer_seal_chunk(struct transfer *x, struct chunk *p) must_check;
/* Returns the header data of a PUT of @p to @match: a CRC32C, as in
 * bulk_proof(). */
uint64_t transfer_seal_proof(const struct chunk *p, uint64_t match);

/* ---- checksums: remote.c ---- */

/* Are there checksums or seals by which the bytes of @r are checked? */
static inline bool remote_is_proved(const struct remote *r)
{
	return r->checked || r->protection;
}

/* Can the checksums of @x be verified, if there are any? Those of a source
 * cannot if the transfer wants only a part of a segment. Any thread. */
bool transfer_checkable(const struct transfer *x);
/* Fills x->left. Called by the thread that starts the transfer. If that is not
 * the @owner, also computes x->crc, to spare the owner the work. The owner
 * itself computes the checksum of each chunk when the chunk is first sent,
 * because all checksums of a large transfer would take too long for one turn.
 */
void transfer_sum(struct transfer *x, bool owner);
/* Notes in the sink where this transfer will end in each segment. Returns 0;
 * -EINVAL: the span begins inside a segment, but not where the last put to that
 * segment ended. */
int transfer_sum_begin(struct transfer *x) must_check;
/* If the sink of @p, a new chunk, has checksums, sets the checksum of @p, and
 * adds it to that of the bytes in front of it in the segment. Chunks must be
 * made in the order of their bytes, even if several transfers put to one sink.
 */
void transfer_sum_chunk(struct transfer *x, struct chunk *p);
/* Forgets the checksums of the segments of @x, which has failed: their contents
 * are not known. */
void transfer_sum_forget(struct transfer *x);
/* Called when chunk @p of a source has come. Returns 0; -EBADMSG: the chunk
 * completes a segment, whose checksum is wrong; or what transfer_seal_check()
 * returns. */
int transfer_sum_check(struct transfer *x, struct chunk *p) must_check;
/* Called after -EBADMSG: turns @p into the first chunk of its segment, and
 * counts all of the segment as missing. */
void transfer_sum_again(struct transfer *x, struct chunk *p);
/* Turns @p, which has come, into the next missing chunk of its segment. Returns
 * false if nothing of the segment is missing. */
bool transfer_sum_next(struct transfer *x, struct chunk *p);
#endif
