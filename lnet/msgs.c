/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/msgs.h"

#include "lnet/hold.h"
#include "lnet/match.h"
#include "lnet/op.h"

const struct portal_users msgs_users = {
	.abandon = op_abandon_link,
	.buffer_came = hold_buffer_came,
};
