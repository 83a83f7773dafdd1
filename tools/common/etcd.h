/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libulnetetcd, loaded when a name or an option needs it, so that programs
 * that do not use etcd do not load libcurl.
 */
#ifndef TOOLS_ETCD_H
#define TOOLS_ETCD_H

#include <ulnet/etcd.h>

struct etcd_library {
	int (*open)(struct lnet *node);
	int (*settings)(struct lnet *node, const char *path,
			struct ulnet_text_error *err);
	int (*reg)(struct lnet *node, const char *text,
		   const struct ulnet_address *address, unsigned int ttl,
		   struct ulnet_etcd_entry **entry_p,
		   struct ulnet_text_error *err);
	void (*withdraw)(struct ulnet_etcd_entry *entry);
};

/* Loads the library, for the rest of the process. 0; or -errno, and @why, which
 * has @size bytes, says why. */
int etcd_load(struct etcd_library *library, char *why, size_t size);
/* Opens etcd on @node, with the settings in the file that the environment's
 * ULNET_ETCD names, if it is set. As etcd_load(). */
int etcd_open(const struct etcd_library *library, struct lnet *node, char *why,
	      size_t size);
/* Both for a name, if it is one of etcd, on @node. */
int etcd_load_for(struct lnet *node, const char *text, char *why, size_t size);

#endif
