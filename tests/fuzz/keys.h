/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of certificates, and of a cluster, which two of the targets begin with.
 */
#ifndef TESTS_FUZZ_KEYS_H
#define TESTS_FUZZ_KEYS_H

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "secure/keys.h"
#include "tools/ulnet-keys/make.h"

static const char *const files[] = { "a.crt",	      "a.key",
				     "authority.crt", "authority.key",
				     "revoked.crl",   "cluster.key" };

static inline struct keys *load(char path[][128], bool cluster)
{
	struct keys_conf conf = { 0 };
	struct keys_error err = { "" };
	struct keys *k;

	if (cluster)
		conf.cluster = path[5];
	else
		conf = (struct keys_conf){ .certificate = path[0],
					   .key = path[1],
					   .authority = path[2],
					   .revoked = path[4] };
	BUG_ON(keys_load(&conf, &k, &err) != 0);
	return k;
}

/* Made once. */
static inline struct keys *keys_of(bool cluster)
{
	static struct keys *made[2];
	char dir[] = "/tmp/ulnet-fuzz-XXXXXX", path[6][128];
	struct make m = { .who = "fuzz", .folder = dir, .days = 30 };

	if (made[0])
		return made[cluster];
	BUG_ON(!mkdtemp(dir));
	m.now = time(NULL);
	BUG_ON(make_authority(&m, "site") || make_node(&m, "a") ||
	       make_cluster(&m, "one", false));
	for (unsigned int i = 0; i < 6; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", dir, files[i]);
	made[0] = load(path, false);
	made[1] = load(path, true);
	for (unsigned int i = 0; i < 6; i++)
		unlink(path[i]);
	rmdir(dir);
	return made[cluster];
}

#endif
