/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the source tree that tests read. */
#ifndef TESTS_SOURCE_H
#define TESTS_SOURCE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the path of @name, a file of the source tree, to @path, and returns
 * @path. "make check" gives the directory of the tree in $srcdir; a program run
 * by hand uses the path that it was compiled from. */
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

/* Opens file @name of the source tree for reading. Returns NULL if it cannot be
 * opened. */
static inline FILE *source_open(const char *name)
{
	char path[4096];

	return fopen(source_path(name, path, sizeof(path)), "r");
}

#endif
