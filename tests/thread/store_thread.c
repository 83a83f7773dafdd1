/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store among threads: several of them move amounts between accounts, some
 * read, and the log is so short that compactions run all the time. The sum of
 * all accounts is 0 whenever it is looked at, and afterwards on disk.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/util.h"
#include "ulnet/store.h"

#define WRITERS	 4
#define ROUNDS	 150
#define ACCOUNTS 8

static struct ulrpc_store *store;
static _Atomic unsigned int writing = WRITERS;

static int64_t account_get(struct ulrpc_txn *txn, uint32_t account)
{
	int64_t amount = 0;
	size_t length = sizeof(amount);
	int rc =
		ulrpc_txn_get(txn, &account, sizeof(account), &amount, &length);

	BUG_ON(rc && rc != -ENOENT);
	return amount;
}

static void account_put(struct ulrpc_txn *txn, uint32_t account, int64_t amount)
{
	BUG_ON(ulrpc_txn_put(txn, &account, sizeof(account), &amount,
			     sizeof(amount)));
}

static void *write_main(void *arg)
{
	const unsigned int self = (unsigned int)(uintptr_t)arg;
	uint8_t key[ULRPC_RECORD_KEY] = { (uint8_t)self };
	const struct ulrpc_record record = {
		.key = key, .value = key, .length = sizeof(key), .keep = 1
	};
	struct ulrpc_txn *txn;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		uint32_t from = (i + self) % ACCOUNTS;
		uint32_t to = (i * 3 + self + 1) % ACCOUNTS;

		BUG_ON(ulrpc_txn_begin(store, &txn));
		account_put(txn, from, account_get(txn, from) - i);
		account_put(txn, to, account_get(txn, to) + i);
		BUG_ON(ulrpc_txn_record(txn, &record));
		if (i % 16 == 15)
			ulrpc_txn_abort(txn);
		else
			BUG_ON(ulrpc_txn_commit(txn));
	}
	writing--;
	return NULL;
}

static int add(void *arg, const void *key, size_t key_length, const void *value,
	       size_t length)
{
	int64_t amount;

	(void)key;
	BUG_ON(key_length != sizeof(uint32_t) || length != sizeof(amount));
	memcpy(&amount, value, length);
	*(int64_t *)arg += amount;
	return 0;
}

static int64_t sum(void)
{
	int64_t all = 0;

	BUG_ON(ulrpc_store_each(store, add, &all));
	return all;
}

static void *read_main(void *arg)
{
	const struct ulrpc_durable *d = ulrpc_store_durable(store);
	uint8_t key[ULRPC_RECORD_KEY] = { 1 };
	uint32_t account = 1;
	struct ulrpc_store_info info;
	size_t length;
	int64_t amount;
	void *value;
	int rc;

	(void)arg;
	while (writing) {
		length = sizeof(amount);
		rc = ulrpc_store_read(store, &account, sizeof(account), &amount,
				      &length);
		BUG_ON(rc && rc != -ENOENT);
		rc = d->lookup(d->arg, key, &value, &length);
		BUG_ON(rc && rc != -ENOENT);
		if (!rc)
			free(value);
		BUG_ON(sum());
		BUG_ON(ulrpc_store_info(store, &info) || info.failed);
	}
	return NULL;
}

static void dir_remove(const char *dir)
{
	const struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

int main(void)
{
	const struct ulrpc_store_conf conf = { .log_max = 4000 };
	char dir[] = "/tmp/store_thread.XXXXXX", why[ULRPC_STORE_TEXT];
	pthread_t thread[WRITERS + 1];
	struct ulrpc_store_info info;

	BUG_ON(!mkdtemp(dir) || ulrpc_store_open(dir, &conf, &store, why));
	for (uintptr_t i = 0; i < WRITERS; i++)
		BUG_ON(pthread_create(&thread[i], NULL, write_main, (void *)i));
	BUG_ON(pthread_create(&thread[WRITERS], NULL, read_main, NULL));
	for (unsigned int i = 0; i <= WRITERS; i++)
		pthread_join(thread[i], NULL);
	BUG_ON(ulrpc_store_info(store, &info) || sum());
	BUG_ON(info.commits != WRITERS * (ROUNDS - ROUNDS / 16));
	BUG_ON(info.syncs > info.commits || info.records != WRITERS);
	ulrpc_store_close(store);
	BUG_ON(ulrpc_store_open(dir, &conf, &store, why));
	BUG_ON(sum());
	ulrpc_store_close(store);
	dir_remove(dir);
	printf("%u commits, %u waits for the disk, %u compactions\n",
	       (unsigned int)info.commits, (unsigned int)info.syncs,
	       (unsigned int)info.compactions);
	return 0;
}
