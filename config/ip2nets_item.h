/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks by the addresses of this host, in requests and files: "net add" with
 * ip2net, and the section "ip2nets". */
#ifndef CONFIG_IP2NETS_ITEM_H
#define CONFIG_IP2NETS_ITEM_H

#include "config/plan.h"

/* The arguments of "net add" that have @rules: no net, interface or NID is
 * among them. The rules must match. */
int ip2nets_add(struct plan *plan, const struct scope *s,
		const struct tree *args, const struct tree *rules) must_check;

/* One item of the section, which may be about other hosts: then *@applied_p is
 * left alone, else it is set. */
int ip2nets_file_item(struct plan *plan, const struct scope *s,
		      const struct tree *item, bool add,
		      bool *applied_p) must_check;

#endif
