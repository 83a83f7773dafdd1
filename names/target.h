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
/* A name of DNS has at most 253 characters, a path or key more. */
#define NAME_HOST_MAX  253
#define NAME_WHAT_SIZE 1024

/* A name, taken apart. */
struct name_text {
	/* "host": what stands without a scheme; else what is before "://" */
	char scheme[NAME_SCHEME_SIZE];
	/* The rest. host, dns, srv: without what the fields below have. */
	char what[NAME_WHAT_SIZE];
	uint16_t port; /* 0: none is given */
	uint32_t net;  /* LNET_NET_ANY: none is given */
};

/* As lnet_target_parse(); *@name is filled if the text is a name. */
int target_parse(const char *text, struct ulnet_target *target,
		 struct name_text *name,
		 struct ulnet_text_error *err) must_check;
/* Parses one host with what may stand behind it, "host:7000@tcp1": what
 * "dns:///" has behind it, and a line of a list. 0 or -EINVAL. */
int target_parse_host(const char *text, struct name_text *name,
		      struct ulnet_text_error *err) must_check;

/* Makes the NID of the address @text, IPv4 or IPv6, on @net. False: it is no
 * address. */
bool target_address(const char *text, uint32_t net, struct ulnet_nid *nid);

#endif
