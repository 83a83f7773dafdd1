/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers as users write them, in "peer add", "peer del" and in files: into steps
 * of a plan.
 */
#ifndef CONFIG_PEER_H
#define CONFIG_PEER_H

#include "config/plan.h"

/* The arguments of "peer add" and of "peer del". */
int peer_args(struct plan *plan, const struct scope *s, const struct tree *args,
	      bool add) must_check;

/* One item of the "peer" section of a file: to be added, or deleted. */
int peer_file_item(struct plan *plan, const struct scope *s,
		   const struct tree *item, bool add) must_check;

#endif
