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

#include "base/list.h"
#include "names/lookup.h"
#include "ulnet/thread.h"

/* One name that is looked up. */
struct source {
	struct resolver *r;
	struct list link; /* resolver.sources */
	uint64_t feed;
	struct name_text name;
	bool closed;	     /* under the lock */
	bool busy;	     /* a look-up is under way */
	uint64_t due;	     /* ns: the next one begins */
	unsigned int failed; /* look-ups in a row */
};

struct resolver {
	struct lnet *node;
	struct ulnet_thread *thread;
	int wake; /* eventfd */
	pthread_mutex_t lock;
	struct list fresh; /* source.link: not seen by the thread yet */
	bool stopping;
	/* the thread's */
	struct list sources;
	struct lookups lookups;
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

/* s until the next look-up. */
static uint64_t source_pause(struct source *s, const struct lookup_result *r)
{
	uint64_t pause = 1;

	if (!r->status) {
		s->failed = 0;
		return MIN(MAX(r->ttl, RESOLVER_TTL_MIN), RESOLVER_TTL_MAX);
	}
	for (unsigned int i = 0; i < s->failed && pause < RESOLVER_RETRY_MAX;
	     i++)
		pause *= 2;
	s->failed++;
	return MIN(pause, RESOLVER_RETRY_MAX);
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

	memcpy(a.why, r->why, sizeof(a.why));
	s->busy = false;
	s->due = now_ns() + pause * NSEC_PER_SEC;
	/* Without memory, the next look-up may have some. */
	(void)lnet_name_answer(s->r->node, s->feed, &a, pause * 1000000);
}

static void host_of(const struct name_text *name, struct lookup_host *host)
{
	*host = (struct lookup_host){ .port = name->port, .net = name->net };
	snprintf(host->host, sizeof(host->host), "%.*s", NAME_HOST_MAX,
		 name->what);
}

static void look_list(struct source *s)
{
	struct lookup_host *hosts = calloc(LOOKUP_HOSTS, sizeof(*hosts));
	const char *next = s->name.what;
	struct name_text name;
	unsigned int n = 0;

	/* names.c has parsed it: there is nothing wrong with it */
	while (hosts && next && n < LOOKUP_HOSTS &&
	       !target_next(&next, &name, NULL))
		host_of(&name, &hosts[n++]);
	if (hosts)
		lookup_hosts(&s->r->lookups, hosts, n, on_found, s);
	else
		on_found(s, &no_memory);
	free(hosts);
}

static void source_look(struct source *s)
{
	struct lookups *x = &s->r->lookups;
	struct lookup_host host;

	s->busy = true;
	if (!strcmp(s->name.scheme, "srv")) {
		lookup_srv(x, s->name.what, s->name.net, on_found, s);
		return;
	}
	if (!strcmp(s->name.scheme, "list")) {
		look_list(s);
		return;
	}
	host_of(&s->name, &host);
	lookup_hosts(x, &host, 1, on_found, s);
}

/* ---- the thread ---- */

/* Takes new sources, frees closed ones. False: the thread has to end. */
static bool take_changes(struct resolver *r)
{
	struct source *s, *next;
	bool go_on;

	pthread_mutex_lock(&r->lock);
	list_splice_tail(&r->sources, &r->fresh);
	list_for_each_entry_safe (s, next, &r->sources, link)
		if (s->closed && !s->busy) {
			list_del(&s->link);
			free(s);
		}
	go_on = !r->stopping;
	pthread_mutex_unlock(&r->lock);
	return go_on;
}

/* Begins what is due. Returns ms until something is; -1: nothing will be. */
static int look_at_sources(struct resolver *r)
{
	uint64_t now = now_ns(), next = UINT64_MAX;
	struct source *s;

	list_for_each_entry (s, &r->sources, link) {
		if (!s->busy && s->due <= now)
			source_look(s);
		if (!s->busy)
			next = MIN(next, s->due);
	}
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / NSEC_PER_MSEC) + 1;
}

static void resolver_main(void *arg)
{
	struct resolver *r = arg;
	struct pollfd fds[1 + LOOKUP_FDS];
	uint64_t woken;

	while (take_changes(r)) {
		int timeout = look_at_sources(r);
		unsigned int n = lookups_fds(&r->lookups, fds + 1, &timeout);

		fds[0] = (struct pollfd){ .fd = r->wake, .events = POLLIN };
		if (poll(fds, n + 1, timeout) < 0)
			continue; /* a signal */
		if (fds[0].revents && read(r->wake, &woken, sizeof(woken)) < 0)
			abort();
		lookups_run(&r->lookups, fds + 1, n);
	}
	lookups_fini(&r->lookups);
}

/* ---- for others ---- */

bool resolver_knows(const struct name_text *name)
{
	static const char *const known[] = { "host", "dns", "srv", "list" };

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
	list_init(&r->fresh);
	list_init(&r->sources);
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

void resolver_stop(struct resolver *r)
{
	struct source *s;

	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_mutex_unlock(&r->lock);
	resolver_wake(r);
	lnet_thread_join(r->thread);
	while ((s = list_pop(&r->sources, struct source, link)))
		free(s);
	pthread_mutex_destroy(&r->lock);
	close(r->wake);
	free(r);
}

int resolver_open(struct resolver *r, uint64_t feed,
		  const struct name_text *name, uint64_t wait)
{
	struct source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->r = r;
	s->feed = feed;
	s->name = *name;
	s->due = now_ns() + wait;
	pthread_mutex_lock(&r->lock);
	list_add_tail(&r->fresh, &s->link);
	pthread_mutex_unlock(&r->lock);
	resolver_wake(r);
	return 0;
}

static struct source *source_find(struct list *sources, uint64_t feed)
{
	struct source *s;

	list_for_each_entry (s, sources, link)
		if (s->feed == feed)
			return s;
	return NULL;
}

void resolver_close(struct resolver *r, uint64_t feed)
{
	struct source *s;

	pthread_mutex_lock(&r->lock);
	s = source_find(&r->fresh, feed);
	if (!s)
		s = source_find(&r->sources, feed);
	if (s)
		s->closed = true;
	pthread_mutex_unlock(&r->lock);
	resolver_wake(r);
}
