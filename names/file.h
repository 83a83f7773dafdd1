/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that list servers, one a line: "host:7000 5 # comment", where 5 is the
 * weight. Knows nothing of when such a file is read: resolver.c.
 *
 * A list is taken as a whole or not at all, because half of one may have been
 * written only. So its last line has to end, and it has one server at least.
 */
#ifndef NAMES_FILE_H
#define NAMES_FILE_H

#include "names/lookup.h"

#define FILE_BYTES 262144 /* of a file, at most */

struct server_list {
	unsigned int n;
	struct lookup_host host[LOOKUP_HOSTS];
	/* if there is no list: its number and item, and what is wrong */
	char why[LNET_NAME_WHY];
};

/* Fills in list->host; *@list need not be initialized. 0; -EBADMSG: what is in
 * it is no list; list->why says why. Any thread. */
int server_list_parse(const char *text, size_t len,
		      struct server_list *list) must_check;
/* The same with the file @path; also -errno of reading it. May block. */
int server_list_read(const char *path, struct server_list *list) must_check;

#endif
