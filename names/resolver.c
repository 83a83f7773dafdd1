/* SPDX-License-Identifier: BSD-3-Clause */
#include "names/resolver.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/log.h"
#include "names/file.h"
#include "names/lookup.h"
#include "names/inotify.h"
#include "ulnet/thread.h"

/* A name that is looked up again and again. Until it is closed, it is in
 * resolver.by_feed. For the thread it is, once taken, in resolver.waiting or
 * busy; when it was closed, the thread frees it as soon as it is not busy. */
struct source {
	struct resolver *r;
	struct hash_node by_feed;
	/* node in resolver.fresh, closed or ended, or in none of them */
	struct list link;
	uint64_t feed;
	struct name_text name;
	uint64_t due; /* ns: when the next look-up begins */
	/* for the thread only: */
	struct heap_node waiting; /* node in resolver.waiting, if @waits */
	bool waits;
	bool busy;	/* is a look-up under way? */
	bool ending;	/* it was closed when it was busy */
	uint64_t begun; /* ns: when the last look-up has begun */
	/* how many look-ups in a row have failed, also in part */
	unsigned int failed;
	struct lookup_known known;
	/* why the last look-up that found something has failed in part; "": it
	 * has not */
	char why[LNET_NAME_WHY];
	/* the watch on a file; its path is NULL if the source is no file, or
	 * not watched yet */
	struct file_watched watched;
};

struct resolver {
	struct lnet *node;
	struct ulnet_thread *thread;
	int wake; /* an eventfd: wakes the thread */
	pthread_mutex_t lock;
	struct hash by_feed; /* of source.by_feed: all that were not closed */
	/* of source.link: sources that the thread has not seen yet, and those
	 * that were closed since it has looked */
	struct list fresh, closed;
	bool stopping;
	/* for the thread only: */
	struct heap waiting; /* of source.waiting: by source.due */
	struct list ended;   /* of source.link: to be freed */
	struct lookups lookups;
	/* ns: when the period has begun; and the least queries that have been
	 * under way since then */
	uint64_t period;
	unsigned int under_way;
	/* is @watches initialized? The first list in a file does that */
	bool watching;
	struct file_watches watches;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static void resolver_wake(struct resolver *r)
{
	const uint64_t one = 1;

	if (write(r->wake, &one, sizeof(one)) < 0)
		abort(); /* a write to an eventfd does not fail */
}

/* ---- one look-up ---- */

static const struct lookup_result no_memory = { .status = -ENOMEM,
						.why = "no memory" };

static bool source_is_file(const struct source *s)
{
	return !strcmp(s->name.scheme, "file");
}

/* Returns after how many s the next look-up begins. */
static uint64_t source_pause(struct source *s, const struct lookup_result *r)
{
	uint64_t most =
		source_is_file(s) ? RESOLVER_LIST_MAX : RESOLVER_TTL_MAX;
	uint64_t good = MIN(MAX(r->ttl, RESOLVER_TTL_MIN), most);
	uint64_t pause = 1;

	if (!r->status && !r->partial) {
		s->failed = 0;
		return good;
	}
	for (unsigned int i = 0; i < s->failed && pause < RESOLVER_RETRY_MAX;
	     i++)
		pause *= 2;
	s->failed++;
	pause = MIN(pause, RESOLVER_RETRY_MAX);
	return r->status ? pause : MIN(pause, good);
}

/* Logs why some servers were not found though others were. A look-up that has
 * found none is logged with the answer. */
static void log_partly(struct source *s, const struct lookup_result *r)
{
	if (r->status)
		return;
	if (*r->why && strcmp(r->why, s->why) != 0)
		log_warn("names", "%s: %s; the other servers are used",
			 s->name.what, r->why);
	memcpy(s->why, r->why, sizeof(s->why));
}

static void source_wait(struct source *s)
{
	heap_add(&s->r->waiting, &s->waiting, s->due);
	s->waits = true;
}

static void source_unwait(struct source *s)
{
	if (s->waits)
		heap_del(&s->r->waiting, &s->waiting);
	s->waits = false;
}

/* Makes a source whose file has changed due earlier. */
static void source_heed(struct source *s)
{
	if (s->watched.path && file_watched_changed(&s->watched))
		s->due = MIN(s->due, s->begun + RESOLVER_EVENT_MIN);
}

/* The source, which was busy, waits for its next turn, or is at its end. */
static void source_over(struct source *s)
{
	s->busy = false;
	if (s->ending) {
		list_add_tail(&s->r->ended, &s->link);
		return;
	}
	source_heed(s);
	source_wait(s);
}

static void on_found(void *arg, const struct lookup_result *r)
{
	struct source *s = arg;
	struct ulnet_name_answer a = {
		.status = r->status,
		.n = r->found.n,
		.addresses = r->found.address,
	};
	uint64_t pause = source_pause(s, r);

	if (r->status)
		memcpy(a.why, r->why, sizeof(a.why));
	log_partly(s, r);
	s->due = now_ns() + pause * NSEC_PER_SEC;
	/* If there is no memory for the answer, the next look-up may have some.
	 */
	(void)lnet_name_answer(s->r->node, s->feed, &a, pause * 1000000);
	source_over(s);
}

static void look_list(struct source *s)
{
	struct lookup_host *hosts = calloc(LOOKUP_HOSTS, sizeof(*hosts));
	const char *next = s->name.what;
	struct name_text name;
	unsigned int n = 0;

	/* names.c has parsed the text, so there is nothing wrong with it. */
	while (hosts && next && n < LOOKUP_HOSTS &&
	       !target_next(&next, &name, NULL))
		lookup_host_of(&name, &hosts[n++]);
	if (hosts)
		lookup_hosts(&s->r->lookups, hosts, n, &s->known, on_found, s);
	else
		on_found(s, &no_memory);
	free(hosts);
}

static void source_watch(struct source *s)
{
	struct resolver *r = s->r;

	if (!r->watching)
		file_watches_init(&r->watches);
	r->watching = true;
	if (!s->watched.path)
		file_watched_init(&r->watches, &s->watched, s->name.what);
	file_watched_look(&r->watches, &s->watched);
}

static void look_file(struct source *s)
{
	struct server_list *list = malloc(sizeof(*list));
	struct lookup_result none = { 0 };

	source_watch(s);
	if (!list) {
		on_found(s, &no_memory);
		return;
	}
	none.status = server_list_read(s->name.what, list);
	memcpy(none.why, list->why, sizeof(none.why));
	if (none.status)
		on_found(s, &none);
	else
		lookup_hosts(&s->r->lookups, list->host, list->n, &s->known,
			     on_found, s);
	free(list);
}

static void source_look(struct source *s)
{
	struct lookups *x = &s->r->lookups;
	struct lookup_host host;

	s->busy = true;
	if (!strcmp(s->name.scheme, "srv")) {
		lookup_srv(x, s->name.what, s->name.net, &s->known, on_found,
			   s);
		return;
	}
	if (!strcmp(s->name.scheme, "list")) {
		look_list(s);
		return;
	}
	if (source_is_file(s)) {
		look_file(s);
		return;
	}
	lookup_host_of(&s->name, &host);
	lookup_hosts(x, &host, 1, &s->known, on_found, s);
}

/* ---- the thread ---- */

static void source_free(struct source *s)
{
	if (s->watched.path)
		file_watched_fini(&s->r->watches, &s->watched);
	lookup_known_fini(&s->known);
	free(s);
}

static void sources_free(struct list *sources)
{
	struct source *s;

	while ((s = list_pop(sources, struct source, link)))
		source_free(s);
}

/* Takes new sources, and frees those that were closed. Returns false if the
 * thread has to end. */
static bool take_changes(struct resolver *r)
{
	struct source *s;
	bool go_on;

	pthread_mutex_lock(&r->lock);
	while ((s = list_pop(&r->closed, struct source, link))) {
		source_unwait(s);
		s->ending = true;
		if (!s->busy)
			list_add_tail(&r->ended, &s->link);
	}
	while ((s = list_pop(&r->fresh, struct source, link)))
		source_wait(s);
	go_on = !r->stopping;
	pthread_mutex_unlock(&r->lock);
	sources_free(&r->ended);
	return go_on;
}

/* May a further look-up begin in this period? */
static bool resolver_has_room(struct resolver *r, uint64_t now)
{
	if (now >= r->period + RESOLVER_PERIOD) {
		r->period = now;
		r->under_way = r->lookups.under_way;
	}
	r->under_way = MIN(r->under_way, r->lookups.under_way);
	return r->lookups.under_way < r->under_way + RESOLVER_QUERIES;
}

/* Begins the look-ups that are due. Returns ms until the next one is; -1: none
 * will be. */
static int look_at_sources(struct resolver *r)
{
	uint64_t now = now_ns(), next;
	struct heap_node *first;

	while ((first = heap_first(&r->waiting)) && first->key <= now &&
	       resolver_has_room(r, now)) {
		struct source *s = container_of(first, struct source, waiting);

		source_unwait(s);
		s->begun = now;
		source_look(s);
	}
	if (!first)
		return -1;
	next = MAX(first->key,
		   first->key <= now ? r->period + RESOLVER_PERIOD : 0);
	return next <= now ? 0 : (int)((next - now) / NSEC_PER_MSEC) + 1;
}

/* Reads what inotify tells. */
static void look_at_files(struct resolver *r)
{
	struct file_watched *x;

	file_watches_take(&r->watches);
	list_for_each_entry (x, &r->watches.watched, link) {
		struct source *s = container_of(x, struct source, watched);

		if (!s->waits)
			continue; /* it will look when it is not busy */
		source_unwait(s);
		source_heed(s);
		source_wait(s);
	}
}

static void resolver_main(void *arg)
{
	struct resolver *r = arg;
	struct pollfd fds[2 + LOOKUP_FDS];
	uint64_t woken;

	while (take_changes(r)) {
		int timeout = look_at_sources(r);
		unsigned int n = lookups_fds(&r->lookups, fds + 2, &timeout);

		fds[0] = (struct pollfd){ .fd = r->wake, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (r->watching)
			fds[1].fd = r->watches.fd;
		if (poll(fds, n + 2, timeout) < 0)
			continue; /* a signal has come */
		if (fds[0].revents && read(r->wake, &woken, sizeof(woken)) < 0)
			abort();
		if (fds[1].revents)
			look_at_files(r);
		lookups_run(&r->lookups, fds + 2, n);
	}
	lookups_fini(&r->lookups);
}

/* ---- for others ---- */

bool resolver_knows(const struct name_text *name)
{
	static const char *const known[] = { "host", "dns", "srv", "list",
					     "file" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(name->scheme, known[i]))
			return true;
	return false;
}

int resolver_start(struct lnet *node, struct resolver **r_p)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->node = node;
	hash_init(&r->by_feed);
	list_init(&r->fresh);
	list_init(&r->closed);
	list_init(&r->ended);
	heap_init(&r->waiting);
	lookups_init(&r->lookups, node);
	r->wake = eventfd(0, EFD_CLOEXEC);
	if (r->wake < 0) {
		rc = -errno;
		goto err_free;
	}
	pthread_mutex_init(&r->lock, NULL);
	rc = lnet_thread_start(node, resolver_main, r, &r->thread);
	if (rc)
		goto err_close;
	*r_p = r;
	return 0;

err_close:
	pthread_mutex_destroy(&r->lock);
	close(r->wake);
err_free:
	free(r);
	return rc;
}

/* The thread is gone, and so are all look-ups. */
static void resolver_free_sources(struct resolver *r)
{
	struct hash_node *n;

	while ((n = hash_pop(&r->by_feed)))
		source_free(container_of(n, struct source, by_feed));
	hash_fini(&r->by_feed);
	sources_free(&r->closed);
	sources_free(&r->ended);
}

void resolver_stop(struct resolver *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_mutex_unlock(&r->lock);
	resolver_wake(r);
	lnet_thread_join(r->thread);
	resolver_free_sources(r);
	if (r->watching)
		file_watches_fini(&r->watches);
	pthread_mutex_destroy(&r->lock);
	close(r->wake);
	free(r);
}

int resolver_open(struct resolver *r, uint64_t feed,
		  const struct name_text *name, uint64_t wait)
{
	struct source *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->r = r;
	s->feed = feed;
	s->name = *name;
	/* A file is read at once even if its list is known: only then it is
	 * watched. */
	s->due = source_is_file(s) ? 0 : now_ns() + wait;
	pthread_mutex_lock(&r->lock);
	rc = hash_add(&r->by_feed, &s->by_feed, hash_u64(feed, 0));
	if (!rc)
		list_add_tail(&r->fresh, &s->link);
	pthread_mutex_unlock(&r->lock);
	if (rc) {
		free(s);
		return rc;
	}
	resolver_wake(r);
	return 0;
}

static struct source *source_find(struct resolver *r, uint64_t feed)
{
	struct source *s;

	hash_for_each_equal (s, &r->by_feed, hash_u64(feed, 0), by_feed)
		if (s->feed == feed)
			return s;
	return NULL;
}

void resolver_close(struct resolver *r, uint64_t feed)
{
	struct source *s;

	pthread_mutex_lock(&r->lock);
	s = source_find(r, feed);
	if (s) {
		hash_del(&r->by_feed, &s->by_feed);
		/* It may be in the list of fresh ones. */
		list_del(&s->link);
		list_add_tail(&r->closed, &s->link);
	}
	pthread_mutex_unlock(&r->lock);
	resolver_wake(r);
}
