/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up the texts by which users name other nodes: ulnet_names(7). */
#ifndef TOOLS_TARGET_H
#define TOOLS_TARGET_H

#include <ulnet/names.h>

/* Room for the reason why a target is not found. */
#define TARGET_WHY (LNET_NAME_WHY + sizeof(struct ulnet_text_error))

/* Waits for what @text stands for, at least one address: *@answer_p, to be
 * freed. Otherwise -errno, and @why, which has TARGET_WHY bytes, says why not,
 * without @text. @node may be one without NIs, and in any mode. */
int target_lookup(struct lnet *node, const char *text,
		  struct ulnet_name_answer **answer_p, char *why);
/* The same for a program that has only NIDs to name a node by: the first
 * address. Those of which the text or the look-up says the port are refused. */
int target_lookup_nid(struct lnet *node, const char *text,
		      struct ulnet_nid *nid, char *why);
/* Is @text a name of one node, and neither a NID nor several? */
bool target_is_name(const char *text);

#endif
