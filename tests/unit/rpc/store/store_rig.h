/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stores in a directory of the test's own, on a disk that does as it is told:
 * the calls by which a store changes its files come through here
 * (-Wl,--wrap), where they can fail, wait, or be the last thing that a process
 * does. The disk knows what of each file is on it for certain.
 */
#ifndef TESTS_STORE_RIG_H
#define TESTS_STORE_RIG_H

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/types.h>

#include "base/util.h"
#include "rpc/store/store.h"

enum disk_call {
	DISK_WRITE,
	DISK_SNAPSHOT, /* writes to one */
	DISK_SYNC,
	DISK_SYNC_DIR,
	DISK_CUT,
	DISK_RENAME,
	DISK_DELETE,
	DISK_CALLS,
};

struct disk_file {
	ino_t inode;
	off_t synced; /* bytes that are on disk, if the machine fails */
};

/* Shared with children. */
struct disk {
	_Atomic unsigned int calls; /* so far */
	/* the process ends before this one, or, if it writes, in its middle; 0:
	 * never */
	unsigned int last;
	/* the next call of a kind fails so, after half of what it writes; 0: it
	 * does not */
	int error[DISK_CALLS];
	/* such calls wait until this is false, after so many have passed */
	_Atomic bool held[DISK_CALLS];
	_Atomic unsigned int pass[DISK_CALLS];
	_Atomic unsigned int waiting[DISK_CALLS];
	int64_t later; /* s: the clock is set forward by so much */
	struct disk_file file[64];
	unsigned int nfiles;
	unsigned int said; /* whatever a child tells its parent */
};

extern struct disk *disk;
extern char dir[64];  /* the store's */
extern char why[256]; /* of the last opening that failed */

/* For every suite: makes @dir and @disk, and removes @dir. */
void rig_setup(void);
void rig_teardown(void);

/* Opens the store in @dir, or says that it cannot be. */
struct ulrpc_store *rig_open(const struct ulrpc_store_conf *conf);
/* Returns the error of opening @dir, and fills @why. */
int rig_refused(void);
/* Forgets the store, as if its process had been killed. */
void rig_kill(struct ulrpc_store *store);

/* Single transactions. */
int put(struct ulrpc_store *store, const char *key, uint64_t value);
/* The value of @key; UINT64_MAX: there is none. */
uint64_t got(struct ulrpc_store *store, const char *key);
struct ulrpc_store_info info_of(struct ulrpc_store *store);
/* Puts @value as the record under the key that @slot stands for. */
int txn_record(struct ulrpc_txn *txn, unsigned int slot, uint64_t value,
	       uint64_t keep);
/* The record's value by ulrpc_durable.lookup; UINT64_MAX: there is none. */
uint64_t recorded(struct ulrpc_store *store, unsigned int slot);

/* Files of the store. */
const char *path(const char *name);
size_t file_size(const char *name);
void file_cut(const char *name, size_t size);
void file_flip(const char *name, size_t at, uint8_t bits);
uint8_t *file_read(const char *name, size_t *size);
void file_write(const char *name, const void *bytes, size_t size);
bool file_exists(const char *name);

#endif
