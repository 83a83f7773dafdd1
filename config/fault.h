/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault rules as users write and read them: the request "fault".
 */
#ifndef CONFIG_FAULT_H
#define CONFIG_FAULT_H

#include "config/plan.h"
#include "ulnet/fault.h"

struct request;

/* The keys of its arguments; ends with NULL. */
extern const char *const fault_keys[];

/* Carries the request out. */
void fault_request(struct request *r);

/* All rules, in their order, as the section "fault" of a file; @backup: without
 * what they have counted. 0 or a negative errno. */
int fault_show_all(struct lnet *node, bool backup, struct tree *out) must_check;
/* An item of that section: the rule is to be added, or those of its kind,
 * source and destination are to be deleted. */
int fault_file_item(struct plan *plan, const struct scope *s,
		    const struct tree *item, bool add) must_check;

/* Deletes all rules. 0 or a negative errno. */
int fault_forget(struct lnet *node) must_check;

#endif
