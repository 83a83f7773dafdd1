/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations of users' memory, kept for the next time. A user registers
 * whole ranges, which mean the same memory until he takes them back
 * (lnd_msg.mem). A range is cut into blocks of IB_REG_BLOCK bytes, by address.
 * A block is registered when something in it is first used, together with what
 * follows it, up to the length of the longest payload. So every payload that
 * begins in a block lies in the registration of the block as a whole, and finds
 * it when it is used again. Registrations of neighbours overlap by that length.
 *
 * Bounded by bytes: what nobody uses gives way, that which was used longest ago
 * first; also to what else needs locked memory (ib_regcache_reg()).
 *
 * Owner: a CPT, for one port. Thread: its CPT's.
 */
#ifndef LND_O2IBLND_REGCACHE_H
#define LND_O2IBLND_REGCACHE_H

#include "base/list.h"
#include "lnd/o2iblnd/verbs.h"
#include "lnd/o2iblnd/wire.h"

#define IB_REG_BLOCK (UINT64_C(4) << 20)

/* A registration. The cache's. */
struct ib_reg {
	struct list link; /* cache->idle, while nobody uses it */
	struct ib_mr *mr; /* NULL: forgotten; goes with its last user */
	uintptr_t start, end;
	unsigned int users;
};

struct ib_regcache {
	/* immutable after init */
	struct ib_port *port;
	uint64_t max; /* bytes */

	uint64_t bytes;			/* registered */
	uint64_t hits, misses, evicted; /* times */
	uint64_t pause;	      /* ns: until then nothing new is registered */
	bool complained;      /* since something could be registered */
	struct ib_reg **regs; /* by the address at which they begin */
	unsigned int nregs, room;
	unsigned int forgotten; /* registrations that only have users */
	struct list idle;	/* used last: at the end */
};

void ib_regcache_init(struct ib_regcache *c, struct ib_port *port,
		      uint64_t max);
/* Nobody uses any of it. */
void ib_regcache_fini(struct ib_regcache *c);

/* The registration, for peers to write to as well, that has @v, a part of @mem,
 * in it, for use until ib_regcache_put(). -ENOBUFS: too many bytes are in use;
 * -EMSGSIZE: no registration has all of it, as it is too long; -EAGAIN: one has
 * failed less than a second before @now (ns); others: as reg() says, which is
 * logged once. */
int ib_regcache_get(struct ib_regcache *c, const struct span *mem,
		    struct iovec v, uint64_t now,
		    struct ib_reg **reg_p) must_check;
void ib_regcache_put(struct ib_regcache *c, struct ib_reg *reg);

/* The user takes [@addr, @addr + @length) back: nothing of it is registered on
 * return. What has a registration still uses it no more. */
void ib_regcache_forget(struct ib_regcache *c, void *addr, size_t length);

/* Memory of the LND's own: as reg() of @port. When no more can be locked, what
 * @c has and nobody uses gives way. @c may be NULL. */
int ib_regcache_reg(struct ib_regcache *c, struct ib_port *port, void *addr,
		    size_t length, bool remote, struct ib_mr **mr_p) must_check;
/* What was used longest ago gives way. False: all is in use, or @c is NULL. */
bool ib_regcache_evict(struct ib_regcache *c);

/* ---- payloads that are not copied ---- */

/*
 * Payloads that are not copied: those in memory that the user has registered
 * with LNet (lnd_msg.mem). It is registered with the device when it is used.
 * All other payloads are copied, through memory.h.
 *
 * A device or a peer uses such memory until the transmit is done. Who gives it
 * up earlier has to end the connection (ib_tx_abandon()).
 *
 * Thread: the CPT's.
 */

struct ib_cpt;

/* The pieces of a payload, in its order. Those next to each other are one. What
 * is only read has a registration for each; what a peer writes to has one for
 * all, as the peer gets one key. */
struct ib_direct {
	unsigned int nregs; /* 0: this is none */
	unsigned int nsges;
	struct ib_sge *sges;
	struct ib_reg **regs;
	struct ib_sge own_sge;	/* if there is no more than one ... */
	struct ib_reg *own_reg; /* ... of either */
};

/* Where a payload is, or goes. */
struct ib_payload {
	const struct iovec *iov;
	unsigned int niov;
	uint32_t offset, length; /* bytes */
	const struct span *mem;
};

/* @frags: the peer is to write to it, over a connection that carries so many
 * pieces; 0: it is only read. False: it has to be copied. */
bool ib_direct_get(struct ib_cpt *cpt, const struct ib_payload *payload,
		   unsigned int frags, struct ib_direct *d);
/* Fine if it is none. */
void ib_direct_put(struct ib_cpt *cpt, struct ib_direct *d);

static inline bool ib_is_direct(const struct ib_direct *d)
{
	return d->nregs != 0;
}

/* As what a peer is told, with @frags: LNET_MAX_IOV of them are enough. */
struct ib_sink ib_direct_sink(const struct ib_direct *d, struct ib_frag *frags);

#endif
