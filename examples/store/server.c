/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: server NID PORT DIRECTORY QUOTA
 * Keeps objects, of at most QUOTA bytes in all, as files in DIRECTORY; the time
 * of a file is the version of its object. On SIGTERM it takes no new calls, and
 * ends when those that are under way have ended. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include "node.h"

#define NEW	  ".new"   /* the file that is being written */
#define DRAIN_MAX 30000000 /* us */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the files */
static uint64_t limit;

/* Is it the name of an object, which no other file in the directory has? */
static bool name_is_good(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/');
}

/* Without a file, version and size are 0. */
static void file_stat(Store__Object *o)
{
	struct stat st = { 0 };

	if (name_is_good(o->name))
		(void)stat(o->name, &st);
	o->size = (uint64_t)st.st_size;
	o->version = (uint64_t)st.st_mtim.tv_sec * 1000000 +
		     (uint64_t)st.st_mtim.tv_nsec / 1000;
}

/* Returns all objects with the prefix, by name, to be freed. */
static Store__Objects *files_list(const char *prefix)
{
	Store__Objects *all = malloc(sizeof(*all));
	struct dirent **files;
	int n = scandir(".", &files, NULL, alphasort);

	if (!all || n < 0)
		err(1, "the directory");
	store__objects__init(all);
	all->objects = calloc((size_t)n, sizeof(*all->objects));
	for (int i = 0; i < n; i++) {
		const char *name = files[i]->d_name;

		if (name_is_good(name) &&
		    !strncmp(name, prefix, strlen(prefix))) {
			Store__Object *o = malloc(sizeof(*o));

			store__object__init(o);
			o->name = strdup(name);
			file_stat(o);
			all->objects[all->n_objects++] = o;
		}
		free(files[i]);
	}
	free(files);
	return all;
}

/* Takes the object that @t names, and the length of the caller's memory as its
 * size. If there is no such thing, fails the call. */
static bool transfer_take(const Store__Transfer *t, void *call,
			  Store__Object *o)
{
	struct ulrpc_bulk_info info;

	if (!t->object || !t->data || !name_is_good(t->object->name) ||
	    ulrpc_request_bulk(ulrpc_request_of(call), t->data->index, &info)) {
		ulrpc_closure_fail_text(call, -EINVAL, "no object, or no data");
		return false;
	}
	*o = *t->object;
	o->size = info.length;
	return true;
}

/* ---- Put ---- */

/* If there is no room, fails the call, with a text for people and the numbers
 * for programs. */
static bool quota_check(uint64_t size, void *call)
{
	Store__Quota quota = STORE__QUOTA__INIT;
	Store__Objects *all = files_list("");
	char text[ULRPC_TEXT_MAX];

	quota.limit = limit;
	for (size_t i = 0; i < all->n_objects; i++)
		quota.used += all->objects[i]->size;
	store__objects__free_unpacked(all, NULL);
	if (quota.used <= limit && size <= limit - quota.used)
		return true;
	snprintf(text, sizeof(text),
		 "%" PRIu64 " bytes do not fit: %" PRIu64 " of %" PRIu64
		 " are used",
		 size, quota.used, limit);
	ulrpc_closure_fail_status(call, ULRPC_STATUS_RESOURCE_EXHAUSTED, text,
				  &quota.base);
	return false;
}

/* Writes an object, unless there is a newer version. */
static int file_write(const Store__Object *o, const void *data)
{
	struct timespec when = { (time_t)(o->version / 1000000),
				 (long)(o->version % 1000000 * 1000) };
	const struct timespec times[] = { when, when };
	Store__Object old = *o;
	int fd, rc = 0;

	file_stat(&old);
	if (old.version > o->version)
		return 0;
	fd = open(NEW, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	errno = EIO; /* not all of it was written */
	if (fd < 0 || write(fd, data, o->size) != (ssize_t)o->size ||
	    futimens(fd, times) || fsync(fd) || rename(NEW, o->name))
		rc = -errno;
	close(fd);
	return rc;
}

static void serve_put(Store__Store_Service *self, const Store__Transfer *t,
		      Store__Object_Closure reply, void *call)
{
	Store__Object o;
	struct iovec data;
	int rc = -ENOMEM;

	(void)self;
	if (!transfer_take(t, call, &o) || !quota_check(o.size, call))
		return;
	data = (struct iovec){ malloc(o.size + 1), o.size };
	if (data.iov_base)
		rc = ulrpc_bulk_get_wait(ulrpc_request_of(call), t->data->index,
					 0, &data, 1);
	pthread_mutex_lock(&lock);
	if (rc) {
		ulrpc_closure_fail(call, rc);
	} else if (quota_check(o.size, call)) {
		rc = file_write(&o, data.iov_base);
		if (rc)
			ulrpc_closure_fail(call, rc);
		else
			reply(&o, call);
	}
	pthread_mutex_unlock(&lock);
	free(data.iov_base);
}

/* ---- Get, Stat, List ---- */

static void serve_get(Store__Store_Service *self, const Store__Transfer *t,
		      Store__Object_Closure reply, void *call)
{
	Store__Object o;
	struct iovec data;
	uint64_t room;
	int fd, rc;

	(void)self;
	if (!transfer_take(t, call, &o))
		return;
	room = o.size;
	pthread_mutex_lock(&lock);
	fd = open(o.name, O_RDONLY);
	file_stat(&o);
	pthread_mutex_unlock(&lock);
	data = (struct iovec){ malloc(o.size + 1), o.size };
	if (fd < 0 || o.version != t->object->version)
		rc = -ENOENT;
	else if (o.size > room)
		rc = -EFBIG;
	else if (read(fd, data.iov_base, o.size) != (ssize_t)o.size)
		rc = -EIO;
	else
		rc = ulrpc_bulk_put_wait(ulrpc_request_of(call), t->data->index,
					 0, &data, 1);
	close(fd);
	free(data.iov_base);
	if (rc)
		ulrpc_closure_fail(call, rc);
	else
		reply(&o, call);
}

static void serve_stat(Store__Store_Service *self, const Store__Object *which,
		       Store__Object_Closure reply, void *call)
{
	Store__Object o = *which;

	(void)self;
	file_stat(&o);
	if (o.version)
		reply(&o, call);
	else
		ulrpc_closure_fail_status(call, ULRPC_STATUS_NOT_FOUND,
					  "there is no such object", NULL);
}

static void serve_list(Store__Store_Service *self, const Store__Object *prefix,
		       Store__Objects_Closure reply, void *call)
{
	Store__Objects *objects = files_list(prefix->name);

	(void)self;
	reply(objects, call);
	store__objects__free_unpacked(objects, NULL);
}

int main(int argc, char **argv)
{
	Store__Store_Service service = STORE__STORE__INIT(serve_);
	struct ulrpc_service_conf conf = { .workers_min = 4 };
	struct ulrpc *rpc;
	sigset_t signals;
	int rc;

	if (argc != 5)
		errx(2, "usage: server NID PORT DIRECTORY QUOTA");
	if (chdir(argv[3]))
		err(1, "%s", argv[3]);
	limit = strtoull(argv[4], NULL, 10);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL); /* in the node's threads */
	rpc = open_node(argv[1], argv[2]);
	check(ulrpc_serve(rpc, &service.base, store__store__options, &conf,
			  NULL),
	      "service");
	warnx("ready; SIGTERM ends it");
	sigwait(&signals, &rc);
	rc = ulrpc_shutdown_wait(rpc, DRAIN_MAX);
	warnx(rc ? "some calls were not answered" : "all calls were answered");
	lnet_close(ulrpc_node(rpc)); /* and the service, and RPC */
	return rc ? 1 : 0;
}
