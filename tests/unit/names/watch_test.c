/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that are files with lists of servers, on a real node: whatever happens
 * to the file, its user is told. */
#include "ulnet/names.h"

#include <fcntl.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "names/resolver.h"
#include "names/inotify.h"
#include "tests/unit/names/told.h"
#include "ulnet/loop.h"

static struct lnet *node;
static struct ulnet_name *name;
static char dir[64];

/* Are there no watches left? Then how often the log says so. */
static bool watches_used_up;
static unsigned int logged;

int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	if (!__atomic_load_n(&watches_used_up, __ATOMIC_RELAXED))
		return __real_inotify_add_watch(fd, path, mask);
	errno = ENOSPC;
	return -1;
}

static void on_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	if (strstr(line, "/list: inotify: no watch is left: "
			 "fs.inotify.max_user_watches: the file is"))
		__atomic_add_fetch(&logged, 1, __ATOMIC_RELAXED);
}

/* Returns "DIR/file"; of two buffers in turn. */
static const char *in_dir(const char *file)
{
	static char path[2][128];
	static unsigned int at;

	at = !at;
	snprintf(path[at], sizeof(path[at]), "%s/%s", dir, file);
	return path[at];
}

static void file_write(const char *file, const char *text)
{
	FILE *f = fopen(in_dir(file), "w");

	cr_assert_not_null(f);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
}

/* Replaces the file as careful programs do. */
static void file_replace(const char *text)
{
	file_write("new", text);
	cr_assert_eq(rename(in_dir("new"), in_dir("list")), 0);
}

static void node_begin(void)
{
	struct ulnet_conf conf;

	strcpy(dir, "/tmp/ulnet-file.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(lnet_names_open(node), 0);
	memset(&told, 0, sizeof(told));
}

static void name_begin(const char *file)
{
	char text[256];

	snprintf(text, sizeof(text), "file://%s", in_dir(file));
	cr_assert_eq(lnet_name_open(node, 0, text, tell, NULL, &name, NULL), 0);
}

static void all_end(void)
{
	char command[128];

	lnet_name_close(name);
	lnet_close(node);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

/* Waits until these servers, and this status, were told. */
static void await(int status, const char *servers)
{
	told_await(node, status, NULL, servers, NULL, NULL);
}

Test(watch, is_written_replaced_removed_and_comes_back)
{
	node_begin();
	file_write("list", "10.0.0.1\n10.0.0.2@tcp\n");
	name_begin("list");
	await(0, "10.0.0.1@tcp 0 0;10.0.0.2@tcp 0 0;");
	file_replace("10.0.0.3 7\n");
	await(0, "10.0.0.3@tcp 0 7;");
	file_write("list", "10.0.0.4\n");
	await(0, "10.0.0.4@tcp 0 0;");
	cr_assert_eq(unlink(in_dir("list")), 0);
	await(-ENOENT, "10.0.0.4@tcp 0 0;");
	cr_assert_str_eq(told.why, strerror(ENOENT));
	file_write("list", "10.0.0.5\n");
	await(0, "10.0.0.5@tcp 0 0;");
	/* And the file that came back is watched like the one before. */
	file_write("list", "10.0.0.6\n");
	await(0, "10.0.0.6@tcp 0 0;");
	all_end();
}

Test(watch, what_is_wrong_leaves_the_last_good_list)
{
	node_begin();
	name_begin("list");
	await(-ENOENT, "");
	file_write("list", "10.0.0.1\n");
	await(0, "10.0.0.1@tcp 0 0;");
	file_replace("10.0.0.2\nno server!\n");
	await(-EBADMSG, "10.0.0.1@tcp 0 0;");
	cr_assert_str_eq(told.why, "line 2: 'server!': no weight: a number was "
				   "expected");
	file_replace("10.0.0.2\n10.0.0.");
	await(-EBADMSG, "10.0.0.1@tcp 0 0;");
	file_replace("10.0.0.2\n");
	await(0, "10.0.0.2@tcp 0 0;");
	file_write("list", "");
	await(-EBADMSG, "10.0.0.2@tcp 0 0;");
	all_end();
}

/* As clusters' managers do it: list -> now/list, and now -> one or two. */
Test(watch, behind_links_and_in_folders_that_change)
{
	node_begin();
	cr_assert_eq(mkdir(in_dir("one"), 0700), 0);
	cr_assert_eq(mkdir(in_dir("two"), 0700), 0);
	file_write("one/list", "10.0.0.1\n");
	file_write("two/list", "10.0.0.2\n");
	cr_assert_eq(symlink("one", in_dir("now")), 0);
	cr_assert_eq(symlink("now/list", in_dir("list")), 0);
	name_begin("list");
	await(0, "10.0.0.1@tcp 0 0;");
	cr_assert_eq(symlink("two", in_dir("next")), 0);
	cr_assert_eq(rename(in_dir("next"), in_dir("now")), 0);
	await(0, "10.0.0.2@tcp 0 0;");
	/* In place, in a folder that is not that of the name. */
	file_write("two/list", "10.0.0.3\n");
	await(0, "10.0.0.3@tcp 0 0;");
	all_end();
}

Test(watch, a_folder_that_comes_later_and_is_replaced)
{
	node_begin();
	name_begin("folder/list");
	await(-ENOENT, "");
	cr_assert_eq(mkdir(in_dir("folder"), 0700), 0);
	file_write("folder/list", "10.0.0.1\n");
	/* Told by nobody: it is found by looking again. */
	await(0, "10.0.0.1@tcp 0 0;");
	cr_assert_eq(rename(in_dir("folder"), in_dir("old")), 0);
	await(-ENOENT, "10.0.0.1@tcp 0 0;");
	cr_assert_eq(mkdir(in_dir("folder"), 0700), 0);
	file_write("folder/list", "10.0.0.2\n");
	await(0, "10.0.0.2@tcp 0 0;");
	file_write("folder/list", "10.0.0.3\n");
	await(0, "10.0.0.3@tcp 0 0;");
	all_end();
}

/* Two users of one folder: the end of one does not end the watch of the
 * other. */
Test(watch, two_in_one_folder)
{
	struct ulnet_name *second;
	char text[256];

	node_begin();
	file_write("list", "10.0.0.1\n");
	file_write("other", "10.0.0.9\n");
	snprintf(text, sizeof(text), "file://%s", in_dir("other"));
	cr_assert_eq(lnet_name_open(node, 0, text, tell, NULL, &second, NULL),
		     0);
	await(0, "10.0.0.9@tcp 0 0;");
	name_begin("list");
	await(0, "10.0.0.1@tcp 0 0;");
	lnet_name_close(second);
	file_replace("10.0.0.2\n");
	await(0, "10.0.0.2@tcp 0 0;");
	all_end();
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* A file that changes all the time is not read all the time: N looks after the
 * first take N pauses, or longer. */
Test(watch, not_as_often_as_it_changes)
{
	uint64_t begun = clock_ns();
	char text[32];

	node_begin();
	file_write("list", "10.0.0.1\n");
	name_begin("list");
	await(0, "10.0.0.1@tcp 0 0;");
	for (int i = 2; i < 6; i++) {
		sprintf(text, "10.0.0.%d\n", i);
		file_replace(text);
		sprintf(text, "10.0.0.%d@tcp 0 0;", i);
		await(0, text);
	}
	cr_assert_geq(clock_ns() - begun, 4 * RESOLVER_EVENT_MIN);
	all_end();
}

/* The log says once that a file cannot be watched, though it is tried again
 * with each look: the first ones are a second apart, as the file is missing. */
Test(watch, without_watches)
{
	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	watches_used_up = true;
	node_begin();
	name_begin("list");
	await(-ENOENT, "");
	file_write("list", "10.0.0.1\n");
	await(0, "10.0.0.1@tcp 0 0;");
	cr_assert_eq(__atomic_load_n(&logged, __ATOMIC_RELAXED), 1);
	all_end();
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
}

/* Others may make events faster than they are read. */
Test(watch, events_without_end)
{
	struct file_watches w;

	file_watches_init(&w);
	cr_assert_geq(w.fd, 0);
	close(w.fd);
	/* Each 16 bytes are an event of watch descriptor 0. */
	w.fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	cr_assert_geq(w.fd, 0);
	file_watches_take(&w);
	file_watches_fini(&w);
}
