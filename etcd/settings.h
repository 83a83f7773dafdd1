/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a file says of how etcd is asked over TLS: lnet_etcd_settings(3). Any
 * thread.
 */
#ifndef ETCD_SETTINGS_H
#define ETCD_SETTINGS_H

#include <stdatomic.h>

#include "ulnet/names.h"

struct etcd_settings {
	atomic_uint refs;
	/* Files of certificates and of the key of that of this node; who this
	 * node is for etcd. Each may be NULL: there is none. */
	char *ca, *cert, *key, *user, *password;
};

/* 0; -EINVAL, -EACCES: *@err says why; -ENOMEM, -errno. */
int etcd_settings_read(const char *path, struct etcd_settings **settings_p,
		       struct ulnet_text_error *err);
/* Both return or take NULL, too. */
struct etcd_settings *etcd_settings_get(struct etcd_settings *s);
void etcd_settings_put(struct etcd_settings *s);

#endif
