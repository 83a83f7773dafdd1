/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads that are not copied: those in memory that the user has registered
 * with LNet (lnd_msg.mem). It is registered with the device when it is used
 * (regcache.h). All other payloads are copied, through memory.h.
 *
 * A device or a peer uses such memory until the transmit is done. Who gives it
 * up earlier has to end the connection (ib_tx_abandon()).
 *
 * Thread: the CPT's.
 */
#ifndef LND_O2IBLND_DIRECT_H
#define LND_O2IBLND_DIRECT_H

#include "lnd/o2iblnd/o2iblnd.h"

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
