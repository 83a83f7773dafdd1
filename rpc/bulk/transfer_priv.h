/* SPDX-License-Identifier: BSD-3-Clause */
/* What remote.c (the caller's memory, and its checksums), chunk.c (how bytes
 * are moved) and transfer.c (transfers, as their users see them) share. */
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
 * lengths are known here, and in fragments of this process. */
struct span {
	uint64_t length;
	const uint32_t *lengths; /* of the segments; none is 0 */
	unsigned int nsegments;
	unsigned int segment; /* index: where the span begins, */
	uint32_t in_segment;  /* this offset in that segment */
	unsigned int niov;
	struct iovec *iov; /* @length bytes; no fragment is empty */
};

struct cursor {
	uint64_t offset; /* bytes from the beginning of the span */
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

/* Bytes of the span from @at to the end of the segment that @at is in. */
static inline uint32_t cursor_room(const struct span *s,
				   const struct cursor *at)
{
	return (uint32_t)MIN(s->lengths[at->segment] - at->in_segment,
			     s->length - at->offset);
}

/* Moves @at on by @length bytes, which must not be beyond the end. */
void cursor_move(const struct span *s, struct cursor *at, uint64_t length);
/* Fills @out with up to @max fragments of the @length bytes at @at. Returns the
 * number of fragments, and in *@length_p their bytes. */
unsigned int cursor_slice(const struct span *s, const struct cursor *at,
			  uint64_t length, struct iovec *out, unsigned int max,
			  uint32_t *length_p);

/* ---- what a request has lent, and its transfers ---- */

/* A bulk of the caller. */
struct remote {
	uint64_t match; /* owner: match value in the last attempt that came */
	/* any thread */
	/* us that transfers have that begin from now on; 0: no limit */
	_Atomic uint64_t timeout;
	atomic_uint cancels; /* calls of transfer_cancel() */
	/* immutable */
	uint64_t length;
	enum ulrpc_bulk_access access;
	bool checked;
	unsigned int n;
	uint32_t *lengths; /* of its segments */
	/* Checksums of the segments, if checked. Of a source: as the caller has
	 * sent them, immutable. Of a sink: for each segment, the checksum of
	 * its first @put bytes, written by the owner; of those of which no
	 * chunk was made yet, only @put is known. */
	uint32_t *crc;
	uint32_t *put;
	bool tried; /* a sink: something may have been put to it */
	/* immutable: is it sealed, and how; which bulk of the call it is */
	enum seal_protection protection;
	uint32_t index;
	/* Seals of the segments. Of a source: as the caller has sent them. Of a
	 * sink: of the first @put bytes, without the tag while the segment is
	 * in @open. Owner. */
	uint8_t *seals;
	struct piece **open;
};

struct transfers {
	struct transfers_conf conf;
	/* any thread */
	atomic_uint pending; /* transfers whose done was not called */
	atomic_uint users;   /* between transfers_use() and transfers_unuse() */
	/* references: of the owner, of each transfer until its done has
	 * returned, and of a cancellation on its way */
	atomic_uint refs;
	atomic_bool canceling; /* the work @cancel has been given */
	struct ulnet_work cancel;
	struct bulk_progress progress;
	/* owner */
	struct list active;
	struct list link; /* conf.busy, while a transfer is active */
	/* chunks that are not free, of all transfers */
	unsigned int busy;
	unsigned int conn_losses; /* since a chunk was moved */
	/* Tries of chunks are numbered as they begin, from 0: @tries so far. A
	 * try that began after those before @passed has moved its chunk. No
	 * try before @oldest is under way. */
	uint64_t tries, passed, oldest;
	bool lossy; /* retry_schedule.lossy of chunks that begin */
	/* 0, or the status with which all transfers end */
	int aborted;
	int failed;	   /* 0, or the status of the first failure */
	uint64_t in, out;  /* bytes moved with success */
	uint64_t segments; /* chunks moved */
	/* ns: since when a transfer has been active */
	uint64_t since;
	/* ns for which transfers were active, before @since */
	uint64_t time;
	void (*on_done)(void *arg);
	void *on_done_arg;
	unsigned int n;
	struct remote remotes[];
};

enum chunk_state {
	CHUNK_FREE,
	/* LNet has the MD of a try, whose last event has not come */
	CHUNK_FLYING,
	CHUNK_LATE,    /* as FLYING, but given up: probably lost */
	CHUNK_WAITING, /* is to be sent, or sent again */
	CHUNK_AWAY,    /* a sealer seals it, or opens its segment */
	CHUNK_STATES
};

struct chunk {
	struct transfer *x;
	struct fsm fsm;
	bool answered;	       /* an answer has come, and set status */
	bool final;	       /* a retry would fail, too */
	bool elsewhere; /* the next try takes another rail, if there is one */
	/* how often its segment has arrived changed; since the first time it is
	 * all of the segment, part by part */
	uint8_t damages;
	int status;	       /* of this try: 0 or -errno */
	uint64_t match;	       /* remote.match when this try began */
	/* the way of this try: the peer's NID that it went to, this node's that
	 * it was sent from, and the next hop; ANY: not known yet */
	struct ulnet_nid rail, local, hop;
	struct ulnet_md_handle md;
	struct cursor at;
	uint32_t length;
	/* of a checked or sealed sink: of the chunk's bytes, as they are put */
	uint32_t crc;
	/* of a sink with privacy: the encrypted bytes */
	struct bulk_room sealed;
	struct retry_schedule schedule;
	/* ns: when the first try began; when this one did */
	uint64_t first, began;
	uint64_t again; /* WAITING: ns, when the next try begins */
	uint64_t waited; /* ns: how long the last try waited that timed out */
	uint64_t order;	 /* of this try among those of transfers.tries */
};

struct transfer {
	struct transfers *t;
	struct remote *r;
	struct list link;	  /* t->active */
	struct ulnet_work work;	  /* begins the transfer; later, ends it */
	struct ulnet_timer timer; /* transfer_arm() */
	ulrpc_bulk_fn done;
	void *arg;
	struct span span;
	/* A sealed source, of which the service wants a part of a segment: all
	 * of the segment is got, and the rest of it goes to @rest, @skip bytes
	 * before what is wanted and @after behind it. transfer_seal_pause() */
	struct bulk_room rest;
	uint32_t skip, after;
	uint64_t wanted; /* bytes of the service's memory */
	/* ns that the transfer has; TIME_NEVER: no limit */
	uint64_t timeout;
	uint64_t deadline;	    /* ns: its end by @timeout */
	struct conn_loss conn_loss; /* the last one */
	/* ns: when chunks that @conn_loss covers are given up; TIME_NEVER: no
	 * loss */
	uint64_t sweep;
	unsigned int cancels; /* remote.cancels, when this transfer was made */
	/* the beginning of what no chunk was made of yet */
	struct cursor next;
	/* ns: when more chunks can be made, for which there was no memory;
	 * TIME_NEVER: there was */
	uint64_t starved;
	struct list slice; /* bulk_pool.waiting */
	/* For each segment, if the remote is checked or sealed; else NULL. Of a
	 * source: bytes that are still missing. Of a sink, if @summed: the
	 * checksum of what is put there from the segment's beginning. */
	uint32_t *left;
	uint32_t *crc;
	bool summed;
	int status;
	bool ending;
	unsigned int busy; /* chunks that are not free */
	uint64_t moved;
	/* bytes before the first chunk that was not moved, or perhaps not */
	uint64_t low;
	unsigned int nchunks;
	struct chunk chunks[];
};

/* Has the service canceled @x? Then the end of @x is no failure. Any thread. */
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
/* The function of x->timer. */
void transfer_on_timer(struct ulnet_timer *timer);
/* Ends @x with @status, by work, unless all of it was moved. Sends no more
 * chunks, and gives up those that are under way. */
void transfer_fail(struct transfer *x, int status);
/* Takes the try of @p, which is FLYING, from LNet. Its last event comes by
 * itself, and says that nothing was heard, unless an answer has come. */
void chunk_give_up(const struct chunk *p);

/* A sealer has done what transfer_seal_chunk() or transfer_seal_check() has
 * given it of @p, which was at @at, ns, with the status @rc. */
void chunk_on_away(struct chunk *p, int rc, uint64_t at);

/* CRC32C of the @length bytes at @at, behind bytes whose CRC is @crc. */
uint32_t cursor_crc(const struct span *s, struct cursor at, uint32_t length,
		    uint32_t crc);

/* ---- seals: transfer_seal.c ---- */

/* Takes what the request says of seals. 0; -EPROTO; -ENOMEM. */
int remote_seal_init(struct remote *r, const struct wire_segments_in *s,
		     unsigned int index) must_check;
void remote_seal_fini(struct remote *r);
/* A later attempt of the call says @s. A source may have been sealed anew: then
 * a segment that was got in part before is damaged when the rest has come, and
 * got again. */
void remote_seal_refresh(struct remote *r, const struct wire_segments_in *s);
/* Ends the seals of the first @n segments of a sink. False: that failed. */
bool remote_seal_end(struct remote *r, unsigned int n) must_check;
/* What is in this segment is not known. */
void remote_seal_forget(struct remote *r, unsigned int segment);

/* All of a segment of a source has come, from @at on, the last of it by @p:
 * checks its seal, and decrypts it. 0; -EBADMSG; -ENOMEM; 1: a sealer does so,
 * and chunk_on_away() is called later. */
int transfer_seal_check(struct transfer *x, struct chunk *p,
			struct cursor at) must_check;
/* Makes ready for another chunk. 0: it can be made; SEAL_NEXT_TURN: there is no
 * time for it in this turn; SEAL_PAUSE: no memory in the caller's share. */
uint64_t transfer_seal_pause(struct transfer *x);
/* Seals @p, which is new, of a sink. Chunks are made in the order of their
 * bytes, also those of several transfers to one sink. 0; 1: a sealer does so,
 * and chunk_on_away() is called later; -ENOBUFS: the caller has its share of
 * the memory already; else @p cannot be sealed. */
int transfer_seal_chunk(struct transfer *x, struct chunk *p) must_check;
/* The CRC32C for the header data of a PUT of @p to @match. */
uint64_t transfer_seal_proof(const struct chunk *p, uint64_t match);

/* ---- checksums: remote.c ---- */

/* Is it known what the bytes of @r have to be? */
static inline bool remote_is_proved(const struct remote *r)
{
	return r->checked || r->protection;
}

/* Can the checksums be verified, if there are any? Those of a source cannot if
 * the transfer has only a part of a segment. Any thread. */
bool transfer_checkable(const struct transfer *x);
/* Fills x->left. On a thread that is not the @owner, which starts the transfer,
 * also x->crc, to spare the owner the work. The owner itself computes the
 * checksum of each chunk when that is sent for the first time: those of all of
 * a large transfer in one turn would keep others waiting. */
void transfer_sum(struct transfer *x, bool owner);
/* Notes in the sink what the transfer will have put there. -EINVAL: the span
 * begins inside of a segment, and not where the last bytes put to the segment
 * ended. */
int transfer_sum_begin(struct transfer *x) must_check;
/* Sets the checksum of @p, which is new, and combines it with that of what was
 * put to the segment before. Chunks are made in the order of their bytes, also
 * those of several transfers to one sink. Does nothing for others. */
void transfer_sum_chunk(struct transfer *x, struct chunk *p);
/* The transfer has failed: forgets the checksums of its segments, whose
 * contents are not known. */
void transfer_sum_forget(struct transfer *x);
/* Chunk @p of a source has come. 0; -EBADMSG: it completes a segment whose
 * checksum is wrong; or as transfer_seal_check(). */
int transfer_sum_check(struct transfer *x, struct chunk *p) must_check;
/* After -EBADMSG: makes @p the first chunk of its segment, all of which is
 * missing again. */
void transfer_sum_again(struct transfer *x, struct chunk *p);
/* Makes @p, which has come, the next chunk of its segment. False: nothing of
 * the segment is missing. */
bool transfer_sum_next(struct transfer *x, struct chunk *p);
#endif
