/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mutation.h"

#ifdef ULNET_MUTATIONS
enum mutation mutation_now;
#endif
