/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nets and NIs as users write them, in "net add" and in files: into steps of a
 * plan.
 */
#ifndef CONFIG_ITEM_H
#define CONFIG_ITEM_H

#include "config/plan.h"

int item_nid(const struct scope *s, const struct tree *t,
	     struct ulnet_nid *nid_p) must_check;

/* The arguments of "net add". */
int item_net_add(struct plan *plan, const struct scope *s,
		 const struct tree *args) must_check;
/* The arguments of "net del". */
int item_net_del(struct plan *plan, const struct scope *s,
		 const struct tree *args) must_check;

/* One item of the "net" section of a file: an NI to be added, or deleted. */
int item_file_net(struct plan *plan, const struct scope *s,
		  const struct tree *item, bool add) must_check;

#endif
