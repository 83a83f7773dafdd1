/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/door.h"

#include <string.h>

#include "base/util.h"

/* A host whose clients have proved who they are. */
struct door_host {
	struct hash_node by_name;
	struct list link; /* door.order */
	uint64_t paid;	  /* ns: what this host took is paid for up to then */
	uint8_t name[DOOR_NAME];
};

void door_init(struct door *d, size_t size, uint64_t seed, uint64_t now)
{
	BUG_ON(size > DOOR_NAME);
	*d = (struct door){
		.paid = { now, now }, .started = now, .size = size, .seed = seed
	};
	hash_init(&d->by_name);
	list_init(&d->order);
	pool_init(&d->pool, sizeof(struct door_host), DOOR_HOSTS);
}

static uint64_t host_hash(const struct door *d, const void *host)
{
	return hash_bytes(host, d->size, d->seed);
}

static struct door_host *host_find(const struct door *d, const void *host)
{
	struct door_host *h;

	hash_for_each_equal (h, &d->by_name, host_hash(d, host), by_name)
		if (!memcmp(h->name, host, d->size))
			return h;
	return NULL;
}

static void host_forget(struct door *d, struct door_host *h)
{
	hash_del(&d->by_name, &h->by_name);
	list_del(&h->link);
	pool_put(&d->pool, h);
}

void door_fini(struct door *d)
{
	while (!list_empty(&d->order))
		host_forget(d, list_first(&d->order, struct door_host, link));
	hash_fini(&d->by_name);
	pool_fini(&d->pool);
}

void door_proved(struct door *d, const void *host)
{
	struct door_host *h = host_find(d, host);

	if (h) {
		list_del(&h->link);
		list_add_tail(&d->order, &h->link);
		return;
	}
	if (d->by_name.count == DOOR_HOSTS)
		host_forget(d, list_first(&d->order, struct door_host, link));
	h = pool_get(&d->pool);
	if (!h)
		return;
	memcpy(h->name, host, d->size);
	h->paid = 0;
	if (hash_add(&d->by_name, &h->by_name, host_hash(d, host))) {
		pool_put(&d->pool, h);
		return;
	}
	list_add_tail(&d->order, &h->link);
}

/* ---- what they take ---- */

enum door_class door_class(const struct door *d, const void *host, uint64_t now)
{
	return host_find(d, host) || now - d->started < DOOR_START
		       ? DOOR_KNOWN
		       : DOOR_STRANGER;
}

bool door_begin(const struct door *d, const void *host, bool busy, bool crowded,
		uint64_t now, enum door_class *class_p)
{
	const struct door_host *known = host_find(d, host);
	enum door_class class = door_class(d, host, now);

	if (d->paid[class] > now)
		return false;
	crowded |= d->paid[class] + DOOR_SPARE / 2 > now;
	if (crowded && (known ? known->paid > now : busy))
		return false;
	*class_p = class;
	return true;
}

bool door_go_on(const struct door *d, enum door_class class, uint64_t now)
{
	return d->paid[class] <= now + DOOR_SPARE;
}

/* Adds @ns to the time up to which something is paid for. */
static void pay(uint64_t *paid, uint64_t ns, uint64_t now)
{
	uint64_t least = now > DOOR_SPARE ? now - DOOR_SPARE : 0;

	*paid = MAX(*paid, least) + ns;
}

void door_take(struct door *d, const void *host, enum door_class class,
	       uint64_t ns, uint64_t now)
{
	uint64_t of = class == DOOR_KNOWN ? DOOR_KNOWN_OF : DOOR_STRANGER_OF;
	struct door_host *known = host_find(d, host);

	pay(&d->paid[class], of * ns, now);
	if (known)
		pay(&known->paid, DOOR_HOST_OF * ns, now);
}

bool door_answer(struct door *d, const void *host, uint64_t now)
{
	if (host_find(d, host))
		return true;
	if (d->answered > now)
		return false;
	pay(&d->answered, DOOR_ANSWER, now);
	return true;
}
