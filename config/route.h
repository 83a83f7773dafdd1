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

/* One item of a file's section, each of which adds steps to @plan, or an error
 * to the scope's answer. */
int route_file_item(struct plan *plan, const struct scope *s,
		    const struct tree *item, bool add);
/* The route that the item names, if there is one, is shown. */
int route_show_item(struct lnet *node, const struct scope *s,
		    const struct tree *item);
int routing_file_item(struct plan *plan, const struct scope *s,
		      const struct tree *item, bool add);
int buffers_file(struct plan *plan, const struct scope *s,
		 const struct tree *map);

/* "set NAME": is @name about routing? Then the step for it. */
bool routing_is_setting(const char *name);
int routing_set(struct plan *plan, const struct scope *s, const struct tree *at,
		const char *name, int64_t value);

/* All of them are to go, and routing is turned off. */
int routes_forget(struct plan *plan, const struct scope *s);

/* What a node has, in an export or alone; nothing if it has none. @verbose: as
 * "route show -v". 0, -ENOMEM. */
int show_routes(struct lnet *node, const struct ulnet_route *only, int verbose,
		bool backup, struct tree *out);
int show_routing(struct lnet *node, bool backup, struct tree *out);

#endif
