/* SPDX-License-Identifier: BSD-3-Clause */
/* A build without etcd: lnet_etcd_open(3) tells who asks for it. */
#include <errno.h>

#include "ulnet/etcd.h"

int lnet_etcd_open(struct lnet *node)
{
	(void)node;
	return -EOPNOTSUPP;
}

int lnet_etcd_settings(struct lnet *node, const char *path,
		       struct ulnet_text_error *err)
{
	(void)node;
	(void)path;
	(void)err;
	return -ENXIO; /* as lnet_etcd_open() has failed */
}

int lnet_etcd_register(struct lnet *node, const char *text,
		       const struct ulnet_address *address, unsigned int ttl,
		       struct ulnet_etcd_entry **entry_p,
		       struct ulnet_text_error *err)
{
	(void)node;
	(void)text;
	(void)address;
	(void)ttl;
	(void)entry_p;
	(void)err;
	return -ENXIO; /* as lnet_etcd_open() has failed */
}

int lnet_etcd_wait(struct ulnet_etcd_entry *entry, uint64_t timeout)
{
	(void)entry;
	(void)timeout;
	return -ETIMEDOUT;
}

void lnet_etcd_withdraw(struct ulnet_etcd_entry *entry)
{
	(void)entry;
}
