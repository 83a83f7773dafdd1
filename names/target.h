/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one parser of the texts of targets: lnet_target_parse(3). Knows nothing
 * of look-ups. Any thread.
 */
#ifndef NAMES_TARGET_H
#define NAMES_TARGET_H

#include "base/util.h"
#include "ulnet/names.h"

#define NAME_SCHEME_SIZE 16
/* A name in DNS has at most 253 characters; a path or a key may be longer. */
#define NAME_HOST_MAX  253
#define NAME_WHAT_SIZE 1024

/* A name, taken apart. */
struct name_text {
	/* what is before "://"; without that "host", or "list" */
	char scheme[NAME_SCHEME_SIZE];
	/* what is behind the scheme; for host, dns and srv, without the port
	 * and net below; of a list, all of it */
	char what[NAME_WHAT_SIZE];
	uint16_t port; /* 0: the text names no port */
	uint32_t net;  /* LNET_NET_ANY: the text names no net */
};

/* As lnet_target_parse(). If the text is a name, also fills in *@name. */
int target_parse(const char *text, struct ulnet_target *target,
		 struct name_text *name,
		 struct ulnet_text_error *err) must_check;
/* Takes the next server off the list *@list_p, "host,host:7000,10.0.0.1@tcp",
 * which becomes NULL behind the last one. 0 or -EINVAL. */
int target_next(const char **list_p, struct name_text *name,
		struct ulnet_text_error *err) must_check;

/* Makes the NID of the address @text, IPv4 or IPv6, on @net. Returns false if
 * @text is no address. */
bool target_address(const char *text, uint32_t net, struct ulnet_nid *nid);

#endif
