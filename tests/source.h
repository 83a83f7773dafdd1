/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the source tree that tests read. */
#ifndef TESTS_SOURCE_H
#define TESTS_SOURCE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The path of @name, a file of the tree, in @path. make check says where the
 * tree is; a program run by hand was told by its compiler. Returns @path. */
static inline const char *source_path(const char *name, char *path, size_t size)
{
	const char *srcdir = getenv("srcdir");
	const char *slash = strrchr(__FILE__, '/');

	snprintf(path, size, "%s/%s", srcdir ? srcdir : ".", name);
	if (access(path, R_OK) && slash)
		snprintf(path, size, "%.*s/../%s", (int)(slash - __FILE__),
			 __FILE__, name);
	return path;
}

/* NULL: there is no such file. */
static inline FILE *source_open(const char *name)
{
	char path[4096];

	return fopen(source_path(name, path, sizeof(path)), "r");
}

#endif
