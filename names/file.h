/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that list servers, one in each line: "host:7000 5 # comment", where 5
 * is the weight. When such a file is read, resolver.c decides.
 *
 * A list is taken as a whole or not at all, because a file may be half written
 * when it is read. So the last line must have an end, and there must be at
 * least one server.
 */
#ifndef NAMES_FILE_H
#define NAMES_FILE_H

#include "names/lookup.h"

#define FILE_BYTES 262144 /* bytes of a file, at most */

struct server_list {
	unsigned int n;
	struct lookup_host host[LOOKUP_HOSTS];
	/* if the list is wrong: the line and the item in it, and what is wrong
	 */
	char why[LNET_NAME_WHY];
};

/* Fills in *@list, which need not be initialized. Returns 0; -EBADMSG: the text
 * is no list, and list->why says why. Any thread. */
int server_list_parse(const char *text, size_t len,
		      struct server_list *list) must_check;
/* Does the same with the content of the file @path. Also returns an errno of
 * reading it. May block. */
int server_list_read(const char *path, struct server_list *list) must_check;

#endif
