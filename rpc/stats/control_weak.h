/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of RPC are added to a control, which only a program with libulnetctl
 * has. libulrpc is not linked with that library, so that a program that makes
 * calls, and nothing else, loads neither it nor the YAML parser. Nothing here
 * is called without a control.
 */
#ifndef RPC_STATS_CONTROL_WEAK_H
#define RPC_STATS_CONTROL_WEAK_H

#include "ulnet/control.h"

#pragma weak lnet_control_add
#pragma weak lnet_control_del
#pragma weak lnet_control_number
#pragma weak lnet_ctl_quote

#endif
