/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a store holds, in memory: entries with a key and a value. A record and a
 * user's entry may have equal keys: they are two entries.
 *
 * This file also knows how entries are written in a frame, one behind the
 * other; little endian:
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
 * The table is ordered by the number of the change that made each entry: an
 * entry that is put goes to the end. So a walk over all entries up to some
 * change can be interrupted and continued, whatever is changed meanwhile.
 *
 * Owner: whoever embeds it. Thread: one at a time.
 */
#ifndef RPC_STORE_TABLE_H
#define RPC_STORE_TABLE_H

#include "base/hash.h"
#include "base/list.h"

#define ENTRY_HEAD 16 /* bytes of an entry in front of its key, in a frame */

enum entry_kind { ENTRY_USER = 1, ENTRY_RECORD, ENTRY_DELETED };

struct entry {
	struct hash_node hash; /* node in table.part[] */
	struct list link;      /* node in table.order */
	uint64_t change;       /* number of the change that has put the entry */
	/* of a record: when it may be deleted, in seconds of time() */
	uint64_t expires;
	size_t length; /* bytes of the value */
	uint16_t key_length;
	uint8_t kind;	 /* enum entry_kind */
	uint8_t bytes[]; /* the key, and the value */
};

/* Parts of the table. A single hash table that doubles would move all its
 * entries while the store is locked, which takes 0.28 s for a million of them,
 * and 1.9 s for eight millions. Each part doubles by itself, which takes a
 * 256th of that. */
#define TABLE_PARTS 256

struct table {
	/* the parts; part_of() the hash of a key is the index */
	struct hash part[TABLE_PARTS];
	struct list order; /* of entry.link, by their change */
	/* the link of the entry that the walk visits next; NULL: no walk is
	 * under way */
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
/* Reads an entry from the @length bytes at @p. Returns 0; -EBADMSG: they are no
 * entry; -ENOMEM. */
int entry_read(const uint8_t *p, size_t length, struct entry **e_p) must_check;

/* Makes an empty table. @seed: random, so that nobody can choose keys that hash
 * to one bucket. Returns 0 or -ENOMEM. */
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

/* Begins a walk at the first entry. One walk at a time. */
void table_walk_begin(struct table *t);
/*
 * Continues the walk: writes entries of changes up to @change to @to, of @room
 * bytes, in the form that they have in frames, and sets *@length_p to the bytes
 * written. Stops after so many entries that nobody waits long. Frees records
 * that expired before @now. Returns 0: these were the last entries; else the
 * bytes that the next entry needs.
 */
size_t table_walk(struct table *t, uint64_t change, uint64_t now, uint8_t *to,
		  size_t room, size_t *length_p);
void table_walk_end(struct table *t);

#endif
