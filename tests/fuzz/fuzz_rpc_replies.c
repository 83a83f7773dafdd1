/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies of hostile peers. */
#include "rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return rpc_try(WIRE_REPLIES, data, size);
}
