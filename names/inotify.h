/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watching files by inotify: they are written, replaced by another one,
 * removed, or come back. Both the file and its directory are watched, since a
 * file that is replaced is no event of its own, and one that is missing, or is
 * named by a link, none at all.
 *
 * What inotify does not tell (a file on another host, a directory above that
 * is renamed) the user of this finds by looking now and then.
 *
 * Owner: the resolver's thread.
 */
#ifndef NAMES_INOTIFY_H
#define NAMES_INOTIFY_H

#include <sys/stat.h>

#include "base/list.h"
#include "base/util.h"

struct file_watches {
	int fd; /* to poll for reading; -1: nothing is watched */
	struct list watched;
};

/* A path that is watched. */
struct file_watched {
	struct list link;
	char *path;
	int dir, file; /* of inotify; -1: not watched */
	/* Something has happened to the file; or near it, so that it perhaps
	 * is another one now. */
	bool changed, doubtful;
	/* what the file was when file_watched_look() looked */
	struct stat seen;
};

void file_watches_init(struct file_watches *w);
/* Nothing is watched any more. */
void file_watches_fini(struct file_watches *w);
/* Begins to watch @path, which is borrowed until file_watched_fini(). */
void file_watched_init(struct file_watches *w, struct file_watched *x,
		       char *path);
void file_watched_fini(struct file_watches *w, struct file_watched *x);
/* To be called before the file is read: what happens to it from now on will
 * be told. */
void file_watched_look(struct file_watches *w, struct file_watched *x);
/* Takes what inotify has to tell. */
void file_watches_take(struct file_watches *w);
/* Has the file changed since file_watched_look()? */
bool file_watched_changed(struct file_watched *x);

#endif
