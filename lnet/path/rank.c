/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/rank.h"

enum ulnet_path_why rank_decides(const struct path_rank *a,
				 const struct path_rank *b)
{
	for (unsigned int i = LNET_PATH_CHOSEN + 1; i < LNET_PATH_CRITERIA; i++)
		if (a->key[i] != b->key[i])
			return (enum ulnet_path_why)i;
	return LNET_PATH_CHOSEN;
}
