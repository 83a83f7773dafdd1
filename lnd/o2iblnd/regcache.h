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

#endif
