/* SPDX-License-Identifier: BSD-3-Clause */
#include "names/inotify.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/log.h"

/* The same events for files and directories, because one inode may be watched
 * under two names, as either. */
#define EVENTS                                                      \
	(IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | \
	 IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB)

/* most reads in a turn: others may make events without end in a directory where
 * a list is, faster than they are read */
#define READS 8

void file_watches_init(struct file_watches *w)
{
	list_init(&w->watched);
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0)
		log_warn("names",
			 "inotify: %s: lists in files are looked at now and "
			 "then only",
			 strerror(errno));
}

void file_watches_fini(struct file_watches *w)
{
	if (w->fd >= 0)
		close(w->fd);
}

/* ---- one path ---- */

void file_watched_init(struct file_watches *w, struct file_watched *x,
		       char *path)
{
	*x = (struct file_watched){ .path = path, .dir = -1, .file = -1 };
	list_add_tail(&w->watched, &x->link);
}

static bool is_used(struct file_watches *w, int wd)
{
	const struct file_watched *x;

	list_for_each_entry (x, &w->watched, link)
		if (x->dir == wd || x->file == wd)
			return true;
	return false;
}

/* Replaces the watch *@wd_p by @wd; -1: none. A watch that nobody uses any more
 * is removed. */
static void wd_set(struct file_watches *w, int *wd_p, int wd)
{
	int before = *wd_p;

	*wd_p = wd;
	if (before >= 0 && before != wd && !is_used(w, before))
		(void)inotify_rm_watch(w->fd, before);
}

void file_watched_fini(struct file_watches *w, struct file_watched *x)
{
	wd_set(w, &x->dir, -1);
	wd_set(w, &x->file, -1);
	list_del(&x->link);
}

/* Returns the state of the file; all 0: there is no such file. */
static struct stat path_stat(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		memset(&st, 0, sizeof(st));
	return st;
}

/* Watches @path. Returns the watch descriptor; -1: it is not watched, and
 * unless it is only missing, *@why_p says why. */
static int path_watch(struct file_watches *w, const char *path,
		      const char **why_p)
{
	int wd = inotify_add_watch(w->fd, path, EVENTS);

	if (wd >= 0 || errno == ENOENT || errno == ENOTDIR)
		return wd;
	*why_p = errno == ENOSPC ? "no watch is left: "
				   "fs.inotify.max_user_watches"
				 : strerror(errno);
	return wd;
}

void file_watched_look(struct file_watches *w, struct file_watched *x)
{
	const char *why = NULL;
	char dir[PATH_MAX];

	x->changed = x->doubtful = false;
	x->seen = path_stat(x->path);
	if (w->fd < 0)
		return;
	snprintf(dir, sizeof(dir), "%.*s",
		 (int)(strrchr(x->path, '/') - x->path + 1), x->path);
	wd_set(w, &x->dir, path_watch(w, dir, &why));
	wd_set(w, &x->file, path_watch(w, x->path, &why));
	if (why && !x->failed)
		log_warn("names",
			 "%s: inotify: %s: the file is looked at now and "
			 "then only",
			 x->path, why);
	x->failed = why;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file_watched_changed(struct file_watched *x)
{
	struct stat now;

	if (x->changed || !x->doubtful)
		return x->changed;
	x->doubtful = false;
	now = path_stat(x->path);
	return now.st_dev != x->seen.st_dev || now.st_ino != x->seen.st_ino ||
	       now.st_size != x->seen.st_size ||
	       !same_time(&now.st_mtim, &x->seen.st_mtim) ||
	       !same_time(&now.st_ctim, &x->seen.st_ctim);
}

/* ---- events ---- */

static void event_tell(struct file_watched *x, const struct inotify_event *e)
{
	bool its = e->len && !strcmp(e->name, strrchr(x->path, '/') + 1);

	if (e->wd == x->file || (e->wd == x->dir && its))
		x->changed = true;
	if (e->wd == x->dir || e->wd < 0) /* wd is -1 if events were lost */
		x->doubtful = true;
	if (!(e->mask & IN_IGNORED))
		return;
	if (x->dir == e->wd)
		x->dir = -1;
	if (x->file == e->wd)
		x->file = -1;
}

static void events_tell(struct file_watches *w, const char *p, size_t n)
{
	const struct inotify_event *e;
	struct file_watched *x;

	for (const char *end = p + n; p < end; p += sizeof(*e) + e->len) {
		e = (const struct inotify_event *)(const void *)p;
		list_for_each_entry (x, &w->watched, link)
			event_tell(x, e);
	}
}

void file_watches_take(struct file_watches *w)
{
	char events[16384]
		__attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = 1;

	for (unsigned int i = 0; i < READS && n > 0; i++) {
		n = read(w->fd, events, sizeof(events));
		if (n > 0)
			events_tell(w, events, (size_t)n);
	}
}
