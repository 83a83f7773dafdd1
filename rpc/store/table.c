/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/store/table.h"

#include <errno.h>

#include "base/buf.h"
#include "ulnet/store.h"

/* entries that one step of a walk visits, at most */
#define WALK_MAX 1024

/* ---- entries ---- */

struct entry *entry_new(enum entry_kind kind, const void *key,
			size_t key_length, const void *value, size_t length)
{
	struct entry *e = malloc(sizeof(*e) + key_length + length);

	if (!e)
		return NULL;
	*e = (struct entry){
		.expires = UINT64_MAX,
		.length = length,
		.key_length = (uint16_t)key_length,
		.kind = (uint8_t)kind,
	};
	memcpy(e->bytes, key, key_length);
	if (length)
		memcpy(e->bytes + key_length, value, length);
	return e;
}

void entry_write(const struct entry *e, uint8_t *to)
{
	struct writer out = writer_of(to, entry_size(e));

	write_u8(&out, e->kind);
	write_u8(&out, 0);
	write_le16(&out, e->key_length);
	write_le32(&out, (uint32_t)e->length);
	write_le64(&out, e->expires);
	write_bytes(&out, e->bytes, e->key_length + e->length);
}

int entry_read(const uint8_t *p, size_t length, struct entry **e_p)
{
	struct reader in = reader_of(p, length);
	uint8_t kind = read_u8(&in), zero = read_u8(&in);
	uint16_t key_length = read_u16(&in, htole16(1) != 1);
	uint32_t value_length = read_le32(&in);
	uint64_t expires = read_le64(&in);
	const uint8_t *key = read_skip(&in, key_length);
	const uint8_t *value = read_skip(&in, value_length);
	struct entry *e;

	if (in.bad || zero || kind < ENTRY_USER || kind > ENTRY_DELETED ||
	    !key_length || key_length > ULRPC_STORE_KEY_MAX ||
	    value_length > ULRPC_STORE_VALUE_MAX)
		return -EBADMSG;
	e = entry_new(kind, key, key_length, value, value_length);
	if (!e)
		return -ENOMEM;
	e->expires = expires;
	*e_p = e;
	return 0;
}

/* ---- the table ---- */

int table_init(struct table *t, uint64_t seed)
{
	struct hash_node first;
	int rc = 0;

	*t = (struct table){ .seed = seed };
	list_init(&t->order);
	for (unsigned int i = 0; i < TABLE_PARTS; i++)
		hash_init(&t->part[i]);
	/* hash_add() can run out of memory only for the first entry of a hash.
	 * That is added and removed here, because later entries are added when
	 * their transaction cannot fail any more. */
	for (unsigned int i = 0; i < TABLE_PARTS && !rc; i++) {
		rc = hash_add(&t->part[i], &first, 0);
		if (!rc)
			hash_del(&t->part[i], &first);
	}
	if (rc)
		table_fini(t);
	return rc;
}

void table_fini(struct table *t)
{
	struct hash_node *n;

	for (unsigned int i = 0; i < TABLE_PARTS; i++) {
		while ((n = hash_pop(&t->part[i])))
			free(container_of(n, struct entry, hash));
		hash_fini(&t->part[i]);
	}
}

static unsigned int part_of(uint64_t h)
{
	return (unsigned int)(h >> 32) % TABLE_PARTS;
}

static uint64_t key_hash(const struct table *t, bool record, const void *key,
			 size_t key_length)
{
	return hash_bytes(key, key_length, t->seed + record);
}

struct entry *table_find(const struct table *t, bool record, const void *key,
			 size_t key_length)
{
	uint64_t h = key_hash(t, record, key, key_length);
	struct entry *e;

	hash_for_each_equal (e, &t->part[part_of(h)], h, hash)
		if ((e->kind == ENTRY_RECORD) == record &&
		    e->key_length == key_length &&
		    !memcmp(e->bytes, key, key_length))
			return e;
	return NULL;
}

void table_add(struct table *t, struct entry *e)
{
	bool record = e->kind == ENTRY_RECORD;
	uint64_t h = key_hash(t, record, e->bytes, e->key_length);

	BUG_ON(hash_add(&t->part[part_of(h)], &e->hash, h));
	list_add_tail(&t->order, &e->link);
	*(record ? &t->records : &t->keys) += 1;
	t->bytes += e->key_length + e->length;
}

void table_remove(struct table *t, struct entry *e)
{
	if (t->walk == &e->link)
		t->walk = e->link.next;
	hash_del(&t->part[part_of(e->hash.hash)], &e->hash);
	list_del(&e->link);
	*(e->kind == ENTRY_RECORD ? &t->records : &t->keys) -= 1;
	t->bytes -= e->key_length + e->length;
}

/* ---- walks ---- */

void table_walk_begin(struct table *t)
{
	t->walk = t->order.next;
}

/* Returns the next entry of the walk, if its change is at most @change; NULL:
 * there is none. */
static struct entry *walk_next(const struct table *t, uint64_t change)
{
	struct entry *e = container_of(t->walk, struct entry, link);

	return t->walk != &t->order && e->change <= change ? e : NULL;
}

size_t table_walk(struct table *t, uint64_t change, uint64_t now, uint8_t *to,
		  size_t room, size_t *length_p)
{
	struct entry *e = walk_next(t, change);
	size_t length = 0;

	for (unsigned int n = 0; e && n < WALK_MAX; n++) {
		if (e->expires < now) {
			table_remove(t, e);
			free(e);
		} else if (entry_size(e) <= room - length) {
			entry_write(e, to + length);
			length += entry_size(e);
			t->walk = e->link.next;
		} else {
			break;
		}
		e = walk_next(t, change);
	}
	*length_p = length;
	return e ? entry_size(e) : 0;
}

void table_walk_end(struct table *t)
{
	t->walk = NULL;
}
