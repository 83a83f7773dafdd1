/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one parser of the texts of targets: lnet_target_parse(3). It looks
 * nothing up. Any thread.
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
	/* what is in front of "://"; without a scheme "host" or "list" */
	char scheme[NAME_SCHEME_SIZE];
	/* what is behind the scheme. Of a host, dns and srv: without port and
	 * net, which are below. Of a list: all of it */
	char what[NAME_WHAT_SIZE];
	uint16_t port; /* 0: the text has no port */
	uint32_t net;  /* LNET_NET_ANY: the text has no net */
};

/* Does what lnet_target_parse() does. If @text is a name, also fills in *@name.
 */
int target_parse(const char *text, struct ulnet_target *target,
		 struct name_text *name,
		 struct ulnet_text_error *err) must_check;
/* Takes the next server from the list *@list_p, such as
 * "host,host:7000,10.0.0.1@tcp", and moves *@list_p behind it; to NULL if it
 * was the last one. Returns 0 or -EINVAL. */
int target_next(const char **list_p, struct name_text *name,
		struct ulnet_text_error *err) must_check;

/* Makes the NID of the address @text, IPv4 or IPv6, on @net. Returns false if
 * @text is no address. */
bool target_address(const char *text, uint32_t net, struct ulnet_nid *nid);

#endif
