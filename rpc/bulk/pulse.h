/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a caller answers when its bulk is moved. Written by the owner of the
 * transfers, read by any thread.
 */
#ifndef RPC_PULSE_H
#define RPC_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

struct pulse {
	_Atomic uint64_t last;	  /* ns: when a piece was moved; 0: none was */
	_Atomic uint64_t slowest; /* ns: that one took, of those moved */
};

#endif
