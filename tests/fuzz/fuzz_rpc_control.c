/* SPDX-License-Identifier: BSD-3-Clause */
/* Control messages of hostile peers. */
#include "rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return rpc_try(WIRE_CONTROL, data, size);
}
