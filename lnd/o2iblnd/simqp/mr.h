/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory of a port, by its keys. Inside simqp only. */
#ifndef LND_O2IBLND_SIMQP_MR_H
#define LND_O2IBLND_SIMQP_MR_H

#include "lnd/o2iblnd/simqp/fabric.h"

/* As verbs.h. */
int simqp_reg(struct ib_port *ib, void *addr, size_t length, bool remote,
	      struct ib_mr **mr_p);
void simqp_dereg(struct ib_port *ib, struct ib_mr *ib_mr);

/* Is all of it memory that has this lkey? What is empty, is. */
bool simqp_mr_is_local(const struct simqp_port *port, const struct ib_sge *sge);
/* May peers write there? */
bool simqp_mr_is_remote(const struct simqp_port *port, uint64_t addr,
			uint64_t length, uint32_t rkey);

#endif
