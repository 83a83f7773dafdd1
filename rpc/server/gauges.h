/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What services and exports of a CPT know that is not counted: how long
 * requests may take, and how many a client may have under way. Looked at when
 * somebody wants to see it.
 *
 * Owner: the CPT.
 */
#ifndef RPC_SERVER_GAUGES_H
#define RPC_SERVER_GAUGES_H

#include "rpc/stats/stat.h"

extern const struct stat_gauger export_gauger;

#endif
