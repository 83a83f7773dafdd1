/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include "rpc/crc32c.h"
#include "ulnet/rpc.h"

uint32_t ulrpc_method(const char *name)
{
	return rpc_crc32c(0, name, strlen(name));
}
