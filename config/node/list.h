/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of a node's peers, routes, policies, counters and settings, as
 * lists. Not for threads of CPTs. */
#ifndef CONFIG_NODE_LIST_H
#define CONFIG_NODE_LIST_H

#include "base/util.h"
#include "ulnet/lnet.h"
#include "ulnet/policy.h"
#include "ulnet/route.h"

/* ---- peers ---- */

/* NIs of peers; those of one peer follow each other, its primary NID first. */
struct peer_list {
	struct ulnet_peer_info *infos;
	unsigned int n;
};

/* Reads all peers but this node itself. 0 or a negative errno; after success
 * peer_list_free() is due. */
int peer_list_read(struct lnet *node, struct peer_list *list) must_check;
void peer_list_free(struct peer_list *list);

/* Removes peers that were not added by configuration. */
void peer_list_keep_configured(struct peer_list *list);

/* Finds the peer that has @nid. Returns how many NIs the peer has; *@infos_p is
 * then its first NI, in @list. Returns 0: there is no such peer. */
unsigned int peer_list_find(const struct peer_list *list,
			    const struct ulnet_nid *nid,
			    const struct ulnet_peer_info **infos_p);

/* Returns the index of the first NI whose peer's primary NID is not below
 * @primary. */
unsigned int peer_list_seek(const struct peer_list *list,
			    const struct ulnet_nid *primary);
/* Returns how many NIs, from number @i on, are of the same peer. */
unsigned int peer_list_span(const struct peer_list *list, unsigned int i);

/* Is @nid a NID of this node? */
bool nid_is_ours(struct lnet *node, const struct ulnet_nid *nid);

/* ---- routes, policies, counters ---- */

/* Each sets its last argument to an array, which is to be freed, and returns
 * how many items that has, or a negative errno. */
int routes_read(struct lnet *node, struct ulnet_route_info **infos_p);
int policies_read(struct lnet *node, struct ulnet_policy **policies_p);
int tls_rules_read(struct lnet *node, struct ulnet_tls_rule **rules_p);
int stats_read(struct lnet *node, struct ulnet_stat **stats_p);
int objects_read(struct lnet *node, struct ulnet_object **objects_p);

/* The buffers of one kind that a router has, summed over its CPTs. */
struct buffers_sum {
	const char *kind; /* "tiny", "small", "large" */
	uint32_t count;
	int64_t free;
	/* sum over the CPTs of the lowest number of free buffers so far;
	 * negative: that many messages have waited */
	int64_t free_min;
	int64_t waiting; /* messages that wait for a buffer */
};

extern const char *const buffer_names[LNET_BUFFER_KINDS];
/* Fills @sums; false: @node is no router. */
bool buffers_sum(struct lnet *node, struct buffers_sum sums[LNET_BUFFER_KINDS]);

/* ---- settings ---- */

#define SETTINGS_MAX 64 /* how many settings a node can have */

struct setting_list {
	struct ulnet_setting all[SETTINGS_MAX];
	unsigned int n;
};

/* Returns 0, or an error of lnet_settings(), after which the list is empty. */
int settings_read(struct lnet *node, struct setting_list *s);
/* Finds the setting @name. NULL: there is no such setting. */
const struct ulnet_setting *settings_find(const struct setting_list *s,
					  const char *name);
/* Is there a setting @name, with a value other than 0? */
bool settings_are_on(const struct setting_list *s, const char *name);

#endif
