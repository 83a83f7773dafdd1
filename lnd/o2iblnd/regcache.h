/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cache of registrations of users' memory. Users register ranges with LNet, and
 * a range stays the same memory until they take it back (lnd_msg.mem). A range
 * is divided at multiples of IB_REG_BLOCK. A block is registered with the
 * device when first used, together with the bytes that follow it, up to the
 * longest payload: so a payload lies entirely in the registration of the block
 * in which it begins. Neighbouring registrations overlap.
 *
 * Bounded by bytes: registrations not in use are evicted, least recently used
 * first, also when other memory must be locked (ib_regcache_reg()).
 *
 * Owner: a CPT, for one port. Thread: its CPT's.
 */
#ifndef LND_O2IBLND_REGCACHE_H
#define LND_O2IBLND_REGCACHE_H

#include "base/list.h"
#include "lnd/o2iblnd/verbs.h"
#include "lnd/o2iblnd/wire.h"

#define IB_REG_BLOCK (UINT64_C(4) << 20)

/* A registration; owned by the cache. */
struct ib_reg {
	struct list link; /* in cache->idle, while no user has it */
	struct ib_mr *mr; /* NULL: forgotten, and freed with its last user */
	uintptr_t start, end;
	unsigned int users;
};

struct ib_regcache {
	/* immutable after init */
	struct ib_port *port;
	uint64_t max; /* the most bytes registered */

	uint64_t bytes; /* number of bytes registered */
	/* how often: a registration was there; it was not; one was evicted */
	uint64_t hits, misses, evicted;
	/* ns: until this time nothing is registered */
	uint64_t pause;
	bool complained;      /* a failure was logged, and no success since */
	struct ib_reg **regs; /* sorted by start */
	unsigned int nregs, room;
	/* number of forgotten registrations that are still in use */
	unsigned int forgotten;
	/* registrations that are not in use, the least recently used first */
	struct list idle;
};

void ib_regcache_init(struct ib_regcache *c, struct ib_port *port,
		      uint64_t max);
/* No registration may be in use. */
void ib_regcache_fini(struct ib_regcache *c);

/* Returns the registration, for remote access as well, that covers @v, a part
 * of @mem; it is in use until ib_regcache_put(). -ENOBUFS: too many bytes are
 * in use; -EMSGSIZE: @v is too long for one registration; -EAGAIN: the last
 * failure was less than a second before @now (ns); others: as ib_verbs.reg(),
 * logged once. */
int ib_regcache_get(struct ib_regcache *c, const struct span *mem,
		    struct iovec v, uint64_t now,
		    struct ib_reg **reg_p) must_check;
void ib_regcache_put(struct ib_regcache *c, struct ib_reg *reg);

/* The user takes [@addr, @addr + @length) back: drops all registrations that
 * touch it. Holders of such a registration must not use it any more. */
void ib_regcache_forget(struct ib_regcache *c, void *addr, size_t length);

/* Registers memory of the LND itself, as ib_verbs.reg(). Evicts from @c, which
 * may be NULL, when no more memory can be locked. */
int ib_regcache_reg(struct ib_regcache *c, struct ib_port *port, void *addr,
		    size_t length, bool remote, struct ib_mr **mr_p) must_check;
/* Evicts the least recently used registration. Returns false if all are in use,
 * or @c is NULL. */
bool ib_regcache_evict(struct ib_regcache *c);

/* ---- zero-copy payloads ---- */

/*
 * Zero-copy payloads: those in memory that the user has registered with LNet
 * (lnd_msg.mem). It is registered with the device when used. Other payloads are
 * copied (memory.h).
 *
 * Device and peer may access such memory until the transmit is done. To give it
 * up earlier, the connection must be ended (ib_tx_abandon()).
 *
 * Thread: the CPT's.
 */

struct ib_cpt;

/* A payload as scatter/gather entries, adjacent parts joined. A source has a
 * registration for each entry; a sink has one for all, as the peer gets one
 * key. */
struct ib_direct {
	/* number of registrations; 0: it is not prepared, and the payload is
	 * copied */
	unsigned int nregs;
	unsigned int nsges;
	struct ib_sge *sges;
	struct ib_reg **regs;
	struct ib_sge own_sge;	/* the entry, if there is only one */
	struct ib_reg *own_reg; /* the registration, if there is only one */
};

/* Where a payload is. */
struct ib_payload {
	const struct iovec *iov;
	unsigned int niov;
	/* bytes; the payload begins at @offset in the fragments */
	uint32_t offset, length;
	const struct span *mem;
};

/* Prepares @d for a zero-copy transfer of @payload. @frags: 0 for a source; for
 * a sink, the number of fragments that the connection carries. Returns false if
 * the payload must be copied. */
bool ib_direct_get(struct ib_cpt *cpt, const struct ib_payload *payload,
		   unsigned int frags, struct ib_direct *d);
/* Returns the registrations of @d, if it has any. */
void ib_direct_put(struct ib_cpt *cpt, struct ib_direct *d);

static inline bool ib_is_direct(const struct ib_direct *d)
{
	return d->nregs != 0;
}

/* Returns the sink that the peer is told. Its fragments are written to @frags,
 * which has room for LNET_MAX_IOV. */
struct ib_sink ib_direct_sink(const struct ib_direct *d, struct ib_frag *frags);

#endif
