/* SPDX-License-Identifier: BSD-3-Clause */
/* Service "echo": what is sent comes back, if wished after a delay. */
#ifndef SERVICES_ECHO_ECHO_H
#define SERVICES_ECHO_ECHO_H

#include "services/services.h"

extern const struct service_type echo_service;

/* The server's half (echo_server.c), as struct service_type has it. */
int echo_start(struct ulrpc *rpc, const struct service_conf *conf,
	       struct service **service_p);
int echo_stop(struct service *service, uint64_t timeout);

#endif
