/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault rules as users write and read them: the request "fault".
 */
#ifndef CONFIG_FAULT_H
#define CONFIG_FAULT_H

#include "config/scope.h"
#include "ulnet/fault.h"

struct request;

/* The keys of its arguments; ends with NULL. */
extern const char *const fault_keys[];

/* Carries the request out. */
void fault_request(struct request *r);

/* Deletes all rules. 0 or a negative errno. */
int fault_forget(struct lnet *node) must_check;

#endif
