/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes and routing in requests and files: "route add", "route:", "set
 * routing", "routing:", "buffers:". */
#ifndef CONFIG_ROUTE_H
#define CONFIG_ROUTE_H

#include "config/plan.h"
#include "config/request.h"

/* Keys of the commands. */
extern const char *const route_show_keys[];

void route_add(struct request *r);
void route_del(struct request *r);
void route_show(struct request *r);
void routing_show(struct request *r);

/* Each of these reads one item of a section in a file, and adds steps to @plan,
 * or an error to the answer of @s. */
int route_file_item(struct plan *plan, const struct scope *s,
		    const struct tree *item, bool add);
/* Shows the route that the item names, if there is one. */
int route_show_item(struct lnet *node, const struct scope *s,
		    const struct tree *item);
int routing_file_item(struct plan *plan, const struct scope *s,
		      const struct tree *item, bool add);
int buffers_file(struct plan *plan, const struct scope *s,
		 const struct tree *map);

/* "set NAME": is the setting @name about routing? If so, routing_set() adds the
 * step for it. */
bool routing_is_setting(const char *name);
int routing_set(struct plan *plan, const struct scope *s, const struct tree *at,
		const char *name, int64_t value);

/* Adds the steps that delete all routes, and turn routing off. */
int routes_forget(struct plan *plan, const struct scope *s);

/* Add to @out the node's routes, and whether it routes, with its buffers;
 * nothing if there is nothing to show. @only: NULL, or what routes are to
 * match. @verbose: as in "route show -v". @backup: as in an export. 0,
 * -ENOMEM. */
int show_routes(struct lnet *node, const struct ulnet_route *only, int verbose,
		bool backup, struct tree *out);
int show_routing(struct lnet *node, bool backup, struct tree *out);

#endif
