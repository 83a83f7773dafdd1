/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_SERVER_GAUGES_H
#define RPC_SERVER_GAUGES_H

#include "rpc/stats/stat.h"

/* Of the requests of services, and of the clients that send them. */
extern const struct stat_gauger service_gauger;

#endif
