/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a store holds, in memory: entries with a key and a value. The keys of
 * records and those of users do not meet. And how entries are written in
 * frames, one behind the other; little endian:
 *
 *	1  kind: 1 a user's entry; 2 a record; 3 a user's key is deleted
 *	1  0
 *	2  bytes of the key
 *	4  bytes of the value
 *	8  when the record may be deleted, in seconds of time(); all bits set:
 *	   never
 *	   the key
 *	   the value
 *
 * The table is in the order of the changes that made its entries: an entry that
 * is put goes to the end. A walk of all that is older than some change can be
 * interrupted and go on, whatever is changed meanwhile.
 *
 * Owner: whoever embeds it. Thread: one at a time.
 */
#ifndef RPC_STORE_TABLE_H
#define RPC_STORE_TABLE_H

#include "base/hash.h"
#include "base/list.h"

#define ENTRY_HEAD 16 /* bytes in front of key and value in a frame */

enum entry_kind { ENTRY_USER = 1, ENTRY_RECORD, ENTRY_DELETED };

struct entry {
	struct hash_node hash; /* table.part */
	struct list link;      /* table.order */
	uint64_t change;       /* number of the change that put it */
	uint64_t expires;      /* of a record: seconds of time() */
	size_t length;	       /* of the value */
	uint16_t key_length;
	uint8_t kind;	 /* enum entry_kind */
	uint8_t bytes[]; /* the key, and the value */
};

/* A hash table that doubles moves all its entries while the store is locked,
 * which takes 0.28 s for a million of them, and 1.9 s for eight millions. Each
 * of many parts doubles by itself, which takes a 256th of that. */
#define TABLE_PARTS 256

struct table {
	/* indexed by part_of() the hash of the key */
	struct hash part[TABLE_PARTS];
	struct list order; /* entries, by their change */
	/* the link of the entry that the walk comes to next; NULL: there is no
	 * walk */
	struct list *walk;
	uint64_t seed;
	/* how many entries of users, and of records, there are */
	uint64_t keys, records;
	uint64_t bytes; /* bytes of all keys and values */
};

/* Returns an entry with copies of key and value, to be freed by free(). NULL:
 * no memory. */
struct entry *entry_new(enum entry_kind kind, const void *key,
			size_t key_length, const void *value, size_t length);
static inline const uint8_t *entry_value(const struct entry *e)
{
	return e->bytes + e->key_length;
}

/* entry_size() returns how many bytes @e has in a frame; entry_write() writes
 * them. */
static inline size_t entry_size(const struct entry *e)
{
	return ENTRY_HEAD + e->key_length + e->length;
}
void entry_write(const struct entry *e, uint8_t *to);
/* Reads an entry from @p, of @length bytes. 0; -EBADMSG: there is none;
 * -ENOMEM. */
int entry_read(const uint8_t *p, size_t length, struct entry **e_p) must_check;

/* @seed: random. 0 or -ENOMEM. */
int table_init(struct table *t, uint64_t seed) must_check;
/* Frees all entries. */
void table_fini(struct table *t);
/* Returns the entry of a key, borrowed; NULL: there is none. @record: the key
 * is a record's. */
struct entry *table_find(const struct table *t, bool record, const void *key,
			 size_t key_length);
/* Adds @e, whose key must not be in the table. The table owns @e from now on.
 */
void table_add(struct table *t, struct entry *e);
/* Takes @e out of the table. The caller owns it from now on. */
void table_remove(struct table *t, struct entry *e);

/* Begins a walk at the first entry. There can be one walk at a time. */
void table_walk_begin(struct table *t);
/*
 * Goes on with the walk: writes entries of changes up to @change to @to, of
 * @room bytes, as they are in frames, and sets *@length_p to how many bytes
 * they have. Frees records that expired before @now. Returns at most so many
 * entries as may be walked without others waiting long. Returns 0: that was
 * all; otherwise the room that the next entry needs.
 */
size_t table_walk(struct table *t, uint64_t change, uint64_t now, uint8_t *to,
		  size_t room, size_t *length_p);
void table_walk_end(struct table *t);

#endif
