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
/* The same for a program that takes one address: the first one or, if that is
 * of IPv6, the first one of IPv4 that is not worse, because not all nodes that
 * have both have NIDs of both. */
int target_lookup_first(struct lnet *node, const char *text,
			struct ulnet_address *address, char *why);
/* Says on stderr what @text was found to be: "WHO: TEXT is 10.0.0.1@tcp, port
 * 7000". */
void target_say(const char *who, const char *text,
		const struct ulnet_address *address);
/* Is @text a name of one node, and neither a NID nor several? */
bool target_is_name(const char *text);

#endif
