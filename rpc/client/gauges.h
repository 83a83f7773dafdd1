/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the imports of a CPT know that is not counted: how long calls may take,
 * and how many may be under way. Looked at when somebody wants to see it.
 *
 * Owner: the CPT.
 */
#ifndef RPC_CLIENT_GAUGES_H
#define RPC_CLIENT_GAUGES_H

#include "rpc/stats/stat.h"

extern const struct stat_gauger import_gauger;

#endif
