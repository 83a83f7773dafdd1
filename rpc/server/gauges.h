/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gauges of the services and exports of a CPT, read when somebody wants to see
 * them: how long requests may take, and how many a client may have under way.
 *
 * Owner: the CPT.
 */
#ifndef RPC_SERVER_GAUGES_H
#define RPC_SERVER_GAUGES_H

#include "rpc/stats/stat.h"

extern const struct stat_gauger export_gauger;

#endif
