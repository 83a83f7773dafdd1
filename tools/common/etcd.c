/* SPDX-License-Identifier: BSD-3-Clause */
#include "etcd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libulnetetcd.so.0"

#ifdef ULNET_SHARED

/* Sets *@function_p to the library's function @name. */
static int function_of(void *handle, const char *name, void *function_p)
{
	void *found = dlsym(handle, name);

	if (!found)
		return -ENOSYS;
	memcpy(function_p, &found, sizeof(found));
	return 0;
}

int etcd_load(struct etcd_library *library, char *why, size_t size)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW);

	if (handle && !function_of(handle, "lnet_etcd_open", &library->open) &&
	    !function_of(handle, "lnet_etcd_settings", &library->settings) &&
	    !function_of(handle, "lnet_etcd_register", &library->reg) &&
	    !function_of(handle, "lnet_etcd_withdraw", &library->withdraw))
		return 0;
	snprintf(why, size, "etcd: %s", dlerror());
	return -ELIBACC;
}

#else

/* The library would bring a second libulnet. */
int etcd_load(struct etcd_library *library, char *why, size_t size)
{
	(void)library;
	snprintf(why, size,
		 "etcd: not by this program, which is linked statically");
	return -EOPNOTSUPP;
}

#endif

int etcd_open(const struct etcd_library *library, struct lnet *node, char *why,
	      size_t size)
{
	const char *path = getenv("ULNET_ETCD");
	struct ulnet_text_error err = { .what = "" };
	int rc = library->open(node);

	if (rc) {
		snprintf(why, size, "etcd: %s",
			 rc == -EOPNOTSUPP ? "this build is without it"
					   : strerror(-rc));
		return rc;
	}
	if (path)
		rc = library->settings(node, path, &err);
	if (rc)
		snprintf(why, size, "etcd: %.100s: %s", path,
			 *err.what ? err.what : strerror(-rc));
	return rc;
}

int etcd_load_for(struct lnet *node, const char *text, char *why, size_t size)
{
	struct etcd_library library;
	int rc;

	if (strncmp(text, "etcd://", 7) != 0 &&
	    strncmp(text, "etcds://", 8) != 0)
		return 0;
	rc = etcd_load(&library, why, size);
	return rc ? rc : etcd_open(&library, node, why, size);
}
