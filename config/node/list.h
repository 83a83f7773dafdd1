/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node has and knows, in lists, as it was at one moment. Not for threads
 * of CPTs.
 */
#ifndef CONFIG_NODE_LIST_H
#define CONFIG_NODE_LIST_H

#include "base/util.h"
#include "ulnet/lnet.h"
#include "ulnet/policy.h"
#include "ulnet/route.h"

/* ---- peers ---- */

/* The NIs of each peer together, its primary NID first. */
struct peer_list {
	struct ulnet_peer_info *infos;
	unsigned int n;
};

/* All peers but this node itself. 0 or a negative errno; peer_list_free() is
 * due after success. */
int peer_list_read(struct lnet *node, struct peer_list *list) must_check;
void peer_list_free(struct peer_list *list);

/* Only peers that were added remain. */
void peer_list_keep_configured(struct peer_list *list);

/* The NIs of the peer that has @nid: as many as are returned, from *@infos_p
 * on, or none. Borrowed from @list. */
unsigned int peer_list_find(const struct peer_list *list,
			    const struct ulnet_nid *nid,
			    const struct ulnet_peer_info **infos_p);

/* How many of the NIs from number @i on are the same peer's. */
unsigned int peer_list_span(const struct peer_list *list, unsigned int i);

/* ---- routes, policies, counters ---- */

/* These return how many there are, in an array for free(); -ENOMEM. */
int routes_read(struct lnet *node, struct ulnet_route_info **infos_p);
int policies_read(struct lnet *node, struct ulnet_policy **policies_p);
int stats_read(struct lnet *node, struct ulnet_stat **stats_p);

/* The buffers of a router, those of all CPTs together. */
struct buffers_sum {
	const char *kind; /* "tiny", "small", "large" */
	uint32_t count;
	int64_t free;
	int64_t free_min; /* the lowest of each CPT; negative: so many
			   * messages have waited */
	int64_t waiting;  /* messages that wait for one */
};

/* By number of their kind. */
extern const char *const buffer_names[LNET_BUFFER_KINDS];
/* False: @node is no router. */
bool buffers_sum(struct lnet *node, struct buffers_sum sums[LNET_BUFFER_KINDS]);

/* ---- settings ---- */

#define SETTINGS_MAX 64 /* that a node has */

struct setting_list {
	struct ulnet_setting all[SETTINGS_MAX];
	unsigned int n;
};

/* 0; the errors of lnet_settings(), and there are none then. */
int settings_read(struct lnet *node, struct setting_list *s);
/* NULL: there is no such setting. */
const struct ulnet_setting *settings_find(const struct setting_list *s,
					  const char *name);
/* Is it there, and other than 0? */
bool settings_are_on(const struct setting_list *s, const char *name);

#endif
