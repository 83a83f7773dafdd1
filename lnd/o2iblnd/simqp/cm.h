/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How queue pairs are connected: the request, its answer, the active side's
 * confirmation, and the ends. The first two are repeated until there is an
 * answer. Inside simqp only.
 */
#ifndef LND_O2IBLND_SIMQP_CM_H
#define LND_O2IBLND_SIMQP_CM_H

#include "lnd/o2iblnd/simqp/qp.h"

void simqp_cm_init(struct simqp_qp *qp, enum simqp_state state);

/* As verbs.h. */
int simqp_resolve(struct ib_port *ib, unsigned int cpt,
		  const struct ulnet_nid *dst, void *user, struct ib_qp **qp_p);
int simqp_connect(struct ib_qp *ib, const void *private, size_t length);
int simqp_accept(struct ib_qp *ib, const void *private, size_t length);
void simqp_reject(struct ib_qp *ib, const void *private, size_t length);

/* The LND wants no connection, or none any more: the peer is told, and the LND
 * hears no more of it. */
void simqp_cm_leave(struct simqp_qp *qp);
/* Tells the LND that it has failed, unless it has ended. */
void simqp_cm_fail(struct simqp_qp *qp, int status);
/* Drops the requests that the LND does not know of yet. */
void simqp_cm_reject_untold(struct simqp_port *port);

void simqp_cm_on_req(struct simqp_port *port, struct simqp_item *it);
void simqp_cm_on_item(struct simqp_qp *qp, struct simqp_item *it);

#endif
