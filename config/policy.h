/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection policies in requests and files: "udsp add", "udsp:". */
#ifndef CONFIG_POLICY_H
#define CONFIG_POLICY_H

#include "config/plan.h"
#include "config/request.h"

/* Keys of the command. */
extern const char *const policy_show_keys[];

void policy_add(struct request *r);
void policy_del(struct request *r);
void policy_show(struct request *r);

/* One item of the section "udsp", which adds a step to @plan, or an error to
 * the scope's answer. To be deleted is the one with the same patterns; without
 * any, the one at its index. */
int policy_file_item(struct plan *plan, const struct scope *s,
		     const struct tree *item, bool add);
/* The policy that the item names, if there is one, is shown. */
int policy_show_item(struct lnet *node, const struct scope *s,
		     const struct tree *item);

/* All of them are to go. */
int policies_forget(struct plan *plan, const struct scope *s);

/* What a node has; nothing if it has none. 0, -ENOMEM. */
int show_policies(struct lnet *node, struct tree *out);

#endif
