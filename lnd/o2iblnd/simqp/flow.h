/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How data gets from a queue pair to its peer: packets, one for each work
 * request, and acknowledgements. What is lost, and what follows it, is sent
 * again. Inside simqp only.
 */
#ifndef LND_O2IBLND_SIMQP_FLOW_H
#define LND_O2IBLND_SIMQP_FLOW_H

#include "lnd/o2iblnd/simqp/qp.h"

void simqp_flow_init(struct simqp_qp *qp);
/* Takes @wr, which is posted. */
void simqp_flow_send(struct simqp_qp *qp, struct simqp_wr *wr);
/* All that is posted with it has been sent. */
void simqp_flow_posted(struct simqp_qp *qp);
void simqp_flow_on_item(struct simqp_qp *qp, struct simqp_item *it);

#endif
