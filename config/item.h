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

/* The tunables that are in @map (NULL: none), but for the keys in @others
 * (NULL: none), which ends with NULL. */
int item_tunables(struct lnet *node, const struct scope *s,
		  const struct tree *map, const char *const *others,
		  struct ni_wish *wish) must_check;
/* @t NULL: all of them. A list of some is an error, and so is a CPT that the
 * node does not have; in a lenient scope, since a file may come from a node
 * with more of them or fewer, the former is a note, and the latter nothing. */
int item_cpts(struct lnet *node, const struct scope *s,
	      const struct tree *t) must_check;
/* An LND serves @net, which @t says. */
int item_served(struct lnet *node, const struct scope *s, const struct tree *t,
		uint32_t net) must_check;
/* The NIs of @net with that interface, or its address. */
int item_del_nis(struct plan *plan, const struct scope *s,
		 const struct tree *at, uint32_t net,
		 const char *interface) must_check;

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
