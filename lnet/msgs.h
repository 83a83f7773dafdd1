/* SPDX-License-Identifier: BSD-3-Clause */
/* All operations and messages of a CPT. */
#ifndef LNET_MSGS_H
#define LNET_MSGS_H

struct portal_users;

/* What operations and messages do for portals. */
extern const struct portal_users msgs_users;

#endif
