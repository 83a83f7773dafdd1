/* SPDX-License-Identifier: BSD-3-Clause */
/* Service "brw": bulk data from and to the service's memory. */
#ifndef SERVICES_BRW_BRW_H
#define SERVICES_BRW_BRW_H

#include "services/services.h"

extern const struct service_type brw_service;

/* The server's half (brw_server.c), as struct service_type has it. */
int brw_start(struct ulrpc *rpc, const struct service_conf *conf,
	      struct service **service_p);
int brw_stop(struct service *service, uint64_t timeout);

#endif
