/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests for sending, and where their bytes are: in the LND's memory for
 * as long as they are posted, unless inlined. Inside simqp only.
 */
#ifndef LND_O2IBLND_SIMQP_WR_H
#define LND_O2IBLND_SIMQP_WR_H

#include "lnd/o2iblnd/simqp/fabric.h"

struct simqp_wr {
	struct list link; /* simqp_qp.sq */
	unsigned int refs;
	uint64_t seq;
	uint64_t sent_at; /* ns: when the last of it has left */
	enum ib_wr_type type;
	void *cookie;
	uint32_t batch; /* SEND: work requests that end with it */
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t length;
	enum ib_wc_status ends;	 /* as is to be; OK: by itself */
	bool local_error;	 /* it cannot be sent */
	struct simqp_port *port; /* whose memory it is; NULL: bytes has what
				  * is left of it */
	uint8_t *bytes;
	unsigned int nsge;
	struct ib_sge sge[];
};

/* Inlined bytes are copied. */
struct simqp_wr *simqp_wr_new(struct simqp_port *port,
			      const struct ib_wr *from);
void simqp_wr_put(struct simqp_wr *wr);
/* May the device read all of it? */
bool simqp_wr_is_readable(const struct simqp_wr *wr);
/* Copies all of it. */
void simqp_wr_read(const struct simqp_wr *wr, void *to);
/* It is not posted any more; what is under way of it keeps its bytes. */
void simqp_wr_detach(struct simqp_wr *wr);

#endif
