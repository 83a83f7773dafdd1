/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/core/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct slot {
	uint64_t hash;
	struct directory_entry entry;
};

struct directory_shard {
	/* the next shard in change.made or change.gone */
	struct directory_shard *next;
	unsigned int index;
	unsigned int n;
	struct slot slots[]; /* sorted by hash */
};

void directory_init(struct directory *d, unsigned int cpts,
		    struct loop *const *loops, uint64_t seed,
		    const struct directory_users *users)
{
	d->cpts = cpts;
	d->loops = loops;
	d->seed = seed;
	d->users = users;
	atomic_init(&d->count, 0);
	atomic_init(&d->version, 0);
	atomic_init(&d->shards, NULL);
	atomic_init(&d->telling, 0);
	pthread_mutex_init(&d->lock, NULL);
}

void directory_fini(struct directory *d)
{
	_Atomic(struct directory_shard *) *shards = atomic_load(&d->shards);

	BUG_ON(!directory_is_idle(d));
	for (unsigned int i = 0; shards && i < DIRECTORY_SHARDS; i++)
		free(atomic_load(&shards[i]));
	free((void *)shards);
	pthread_mutex_destroy(&d->lock);
}

static uint64_t directory_hash(const struct directory *d,
			       const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), d->seed);
}

/* ---- looking ---- */

/* Index of the first slot whose hash is not below @hash. */
static unsigned int shard_lower(const struct directory_shard *s, uint64_t hash)
{
	unsigned int low = 0, high = s->n;

	while (low < high) {
		unsigned int mid = low + (high - low) / 2;

		if (s->slots[mid].hash < hash)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const struct slot *shard_find(const struct directory_shard *s,
				     const struct ulnet_nid *nid, uint64_t hash)
{
	if (!s)
		return NULL;
	for (unsigned int i = shard_lower(s, hash);
	     i < s->n && s->slots[i].hash == hash; i++)
		if (lnet_nid_eq(&s->slots[i].entry.nid, nid))
			return &s->slots[i];
	return NULL;
}

/* Is this a turn of one of the node's loops? */
static bool in_own_turn(const struct directory *d)
{
	const struct loop *here = loop_current();

	for (unsigned int i = 0; here && i < d->cpts; i++)
		if (d->loops[i] == here)
			return true;
	return false;
}

static bool shards_find(struct directory *d, const struct ulnet_nid *nid,
			struct directory_entry *e)
{
	/* Both loads acquire: what the pointers point to was written before
	 * them. */
	_Atomic(struct directory_shard *) *shards =
		atomic_load_explicit(&d->shards, memory_order_acquire);
	uint64_t hash = directory_hash(d, nid);
	const struct slot *slot;

	if (!shards)
		return false;
	slot = shard_find(atomic_load_explicit(&shards[hash % DIRECTORY_SHARDS],
					       memory_order_acquire),
			  nid, hash);
	if (slot)
		*e = slot->entry;
	return slot != NULL;
}

bool directory_seek(struct directory *d, const struct ulnet_nid *nid,
		    struct directory_entry *e)
{
	bool found;

	if (likely(in_own_turn(d)))
		return shards_find(d, nid, e);
	pthread_mutex_lock(&d->lock);
	found = shards_find(d, nid, e);
	pthread_mutex_unlock(&d->lock);
	return found;
}

bool directory_compare(struct directory *d, const struct ulnet_nid *a,
		       const struct ulnet_nid *b)
{
	for (;;) {
		unsigned int version = atomic_load(&d->version);
		struct ulnet_nid x = directory_primary(d, a);
		struct ulnet_nid y = directory_primary(d, b);

		if (!(version & 1) && atomic_load(&d->version) == version)
			return lnet_nid_eq(&x, &y);
		/* A change is under way: waits until it is done. */
		pthread_mutex_lock(&d->lock);
		pthread_mutex_unlock(&d->lock);
	}
}

/* ---- changing: with the lock held ---- */

struct change {
	struct directory *directory;
	struct directory_shard *made; /* list of the new shards */
	struct directory_shard *gone; /* list of the old shards, to be freed */
	struct work work;
	unsigned int told; /* number of CPTs that were told, from CPT 0 on */
	unsigned int n;
	struct directory_entry to[];
};

/* Makes a new version of shard @index, with room for all entries of the change.
 * Returns NULL if there is no memory. */
static struct directory_shard *change_shard(struct change *c,
					    unsigned int index)
{
	const struct directory_shard *old =
		atomic_load(&atomic_load(&c->directory->shards)[index]);
	unsigned int n = old ? old->n : 0;
	struct directory_shard *s;

	for (s = c->made; s; s = s->next)
		if (s->index == index)
			return s;
	s = malloc(sizeof(*s) + (n + c->n) * sizeof(s->slots[0]));
	if (!s)
		return NULL;
	s->index = index;
	s->n = n;
	if (n)
		memcpy(s->slots, old->slots, n * sizeof(s->slots[0]));
	s->next = c->made;
	c->made = s;
	return s;
}

/* Is the entry superfluous, because the same holds for its NID without an
 * entry? */
static bool says_default(const struct directory *d,
			 const struct directory_entry *e)
{
	return !e->several && lnet_nid_eq(&e->nid, &e->primary) &&
	       e->cpt == directory_default_cpt(d, &e->nid);
}

static void shard_remove(struct directory_shard *s, struct slot *slot)
{
	memmove(slot, slot + 1,
		(size_t)(s->slots + s->n - (slot + 1)) * sizeof(*slot));
	s->n--;
}

static void shard_insert(struct directory_shard *s,
			 const struct directory_entry *e, uint64_t hash)
{
	struct slot *slot = &s->slots[shard_lower(s, hash)];

	memmove(slot + 1, slot,
		(size_t)(s->slots + s->n - slot) * sizeof(*slot));
	slot->hash = hash;
	slot->entry = *e;
	s->n++;
}

/* Puts @e into the new version of its shard. If @e is superfluous, only removes
 * the old entry of its NID. */
static int change_add(struct change *c, const struct directory_entry *e)
{
	uint64_t hash = directory_hash(c->directory, &e->nid);
	struct directory_shard *s = change_shard(c, hash % DIRECTORY_SHARDS);
	struct slot *slot;

	if (!s)
		return -ENOMEM;
	slot = (struct slot *)shard_find(s, &e->nid, hash);
	if (slot && says_default(c->directory, e))
		shard_remove(s, slot);
	else if (slot)
		slot->entry = *e;
	else if (!says_default(c->directory, e))
		shard_insert(s, e, hash);
	return 0;
}

static void shards_free(struct directory_shard *s)
{
	struct directory_shard *next;

	for (; s; s = next) {
		next = s->next;
		free(s);
	}
}

static void change_free(struct change *c)
{
	shards_free(c->made);
	shards_free(c->gone);
	free(c);
}

/* Puts @s on the list of shards that are freed when all CPTs were told of the
 * change. */
static void change_drop(struct change *c, struct directory_shard *s)
{
	if (!s)
		return;
	s->next = c->gone;
	c->gone = s;
}

/* Publishes @s in place of the old shard, or nothing if @s is empty. */
static void change_replace(struct change *c, struct directory_shard *s)
{
	struct directory *d = c->directory;
	_Atomic(struct directory_shard *) *at =
		&atomic_load(&d->shards)[s->index];
	struct directory_shard *old = atomic_load(at);
	unsigned int had = old ? old->n : 0;

	/* Readers look at the count before they look for an entry, so it is
	 * increased before they can find the new ones. */
	if (s->n > had)
		atomic_fetch_add(&d->count, s->n - had);
	atomic_store(at, s->n ? s : NULL);
	if (s->n < had)
		atomic_fetch_sub(&d->count, had - s->n);
	change_drop(c, old);
	if (!s->n)
		change_drop(c, s);
}

static void change_publish(struct change *c)
{
	struct directory_shard *s, *next;

	atomic_fetch_add(&c->directory->version, 1);
	for (s = c->made; s; s = next) {
		next = s->next;
		change_replace(c, s);
	}
	c->made = NULL;
	atomic_fetch_add(&c->directory->version, 1);
}

/* Runs in a turn of each loop, one loop after the other. */
static void change_tell(struct work *w)
{
	struct change *c = container_of(w, struct change, work);
	struct directory *d = c->directory;

	if (d->users->changed)
		d->users->changed(d, c->told, c->to, c->n);
	if (++c->told < d->cpts) {
		loop_post(d->loops[c->told], &c->work);
		return;
	}
	change_free(c);
	if (atomic_fetch_sub(&d->telling, 1) == 1 && d->users->idled)
		d->users->idled(d);
}

static _Atomic(struct directory_shard *) *shards_get(struct directory *d)
{
	_Atomic(struct directory_shard *) *shards = atomic_load(&d->shards);

	if (shards)
		return shards;
	shards = malloc(DIRECTORY_SHARDS * sizeof(*shards));
	if (!shards)
		return NULL;
	for (unsigned int i = 0; i < DIRECTORY_SHARDS; i++)
		atomic_init(&shards[i], NULL);
	atomic_store(&d->shards, shards);
	return shards;
}

static int change_all(struct directory *d, const struct directory_entry *to,
		      unsigned int n)
{
	struct change *c = malloc(sizeof(*c) + n * sizeof(c->to[0]));
	int rc = c && shards_get(d) ? 0 : -ENOMEM;

	if (!c)
		return rc;
	c->directory = d;
	c->made = NULL;
	c->gone = NULL;
	c->n = n;
	memcpy(c->to, to, n * sizeof(to[0]));
	for (unsigned int i = 0; i < n && !rc; i++)
		rc = change_add(c, &to[i]);
	if (rc) {
		change_free(c);
		return rc;
	}
	change_publish(c);
	c->told = 0;
	c->work.fn = change_tell;
	atomic_fetch_add(&d->telling, 1);
	loop_post(d->loops[0], &c->work);
	return 0;
}

/* Do all entries already say what @to says? Then the change needs no memory. */
static bool changes_nothing(struct directory *d,
			    const struct directory_entry *to, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct directory_entry e;
		bool found = atomic_load(&d->count) &&
			     shards_find(d, &to[i].nid, &e);

		if (found && lnet_nid_eq(&e.primary, &to[i].primary) &&
		    e.cpt == to[i].cpt && e.several == to[i].several)
			continue;
		if (found || !says_default(d, &to[i]))
			return false;
	}
	return true;
}

int directory_change(struct directory *d, const struct directory_entry *to,
		     unsigned int n)
{
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	if (!changes_nothing(d, to, n))
		rc = change_all(d, to, n);
	pthread_mutex_unlock(&d->lock);
	return rc;
}
