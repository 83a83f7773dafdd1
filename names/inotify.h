/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches files by inotify: a file may be written, replaced by another one,
 * removed, or come back. Both the file and its directory are watched: when a
 * file is replaced, the watch on the old file tells nothing, and a file that is
 * missing, or that a link names, has no events of its own path.
 *
 * Some changes inotify does not tell, such as writing on another host, or
 * renaming a directory further up. The user of this file finds them by looking
 * now and then.
 *
 * Owner: the resolver's thread.
 */
#ifndef NAMES_INOTIFY_H
#define NAMES_INOTIFY_H

#include <sys/stat.h>

#include "base/list.h"
#include "base/util.h"

struct file_watches {
	/* descriptor of inotify, to poll for reading; -1: nothing is watched */
	int fd;
	struct list watched;
};

/* A path that is watched. */
struct file_watched {
	struct list link;
	char *path;
	/* watch descriptors of inotify for the directory and the file; -1: not
	 * watched */
	int dir, file;
	/* changed: something has happened to the file. doubtful: something has
	 * happened near it, so that it may be another file now */
	bool changed, doubtful;
	/* it could not be watched the last time, which was logged */
	bool failed;
	/* the file's state when file_watched_look() was called */
	struct stat seen;
};

void file_watches_init(struct file_watches *w);
/* Ends all watching. */
void file_watches_fini(struct file_watches *w);
/* Begins to watch @path, which is borrowed until file_watched_fini(). */
void file_watched_init(struct file_watches *w, struct file_watched *x,
		       char *path);
void file_watched_fini(struct file_watches *w, struct file_watched *x);
/* To be called before the file is read: whatever happens to the file from then
 * on will be noticed. */
void file_watched_look(struct file_watches *w, struct file_watched *x);
/* Reads events of inotify; not all of them if there are very many. */
void file_watches_take(struct file_watches *w);
/* Has the file changed since file_watched_look()? */
bool file_watched_changed(struct file_watched *x);

#endif
