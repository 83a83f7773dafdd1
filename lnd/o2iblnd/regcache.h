/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations of memory that is the user's, kept for the next time, by the
 * range of its addresses. Nobody tells this cache when memory is given back to
 * the system: whoever lends memory says so (ib_regcache_forget()), or it must
 * not be registered here.
 *
 * Bounded by bytes: what nobody uses gives way, that which was used longest ago
 * first. No more is registered than what was asked for, as peers may write to
 * all of it; ranges that overlap become one.
 *
 * Owner: a CPT, for one port. Thread: its CPT's.
 */
#ifndef LND_O2IBLND_REGCACHE_H
#define LND_O2IBLND_REGCACHE_H

#include "base/list.h"
#include "lnd/o2iblnd/verbs.h"

/* A registration. The cache's. */
struct ib_reg {
	struct list link; /* cache->idle, while nobody uses it */
	struct ib_mr *mr;
	uintptr_t start, end;
	unsigned int users;
	bool remote; /* peers may write to it */
	bool known;  /* is found; if not, it goes with its last user */
};

struct ib_regcache {
	/* immutable after init */
	struct ib_port *port;
	uint64_t max; /* bytes */

	uint64_t bytes; /* registered */
	uint64_t hits, misses, evicted, failed;
	struct ib_reg **regs; /* known, by address; none overlaps another */
	unsigned int nregs, room;
	unsigned int unknown; /* registrations that only have users */
	struct list idle;     /* used last: at the end */
};

void ib_regcache_init(struct ib_regcache *c, struct ib_port *port,
		      uint64_t max);
/* Nobody uses any of it. */
void ib_regcache_fini(struct ib_regcache *c);

/* A registration that has all of these bytes in it, for use until
 * ib_regcache_put(). -ENOBUFS: too many bytes are in use; -ENOMEM, -EFAULT: as
 * reg() says. */
int ib_regcache_get(struct ib_regcache *c, void *addr, size_t length,
		    bool remote, struct ib_reg **reg_p) must_check;
void ib_regcache_put(struct ib_regcache *c, struct ib_reg *reg);

/* These addresses will mean other memory from now on: nothing of them is found
 * again. False: something is in use still, and is registered until its last
 * user puts it. */
bool ib_regcache_forget(struct ib_regcache *c, void *addr, size_t length);

#endif
