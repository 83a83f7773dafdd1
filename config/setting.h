/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's settings as they are at one moment, and what they may be set to. */
#ifndef CONFIG_SETTING_H
#define CONFIG_SETTING_H

#include "ulnet/lnet.h"

#define SETTINGS_MAX 64 /* that a node has */

struct settings {
	struct ulnet_setting all[SETTINGS_MAX];
	unsigned int n;
};

/* 0; the errors of lnet_settings(), and there are none then. */
int settings_read(struct lnet *node, struct settings *s);
/* NULL: there is no such setting. */
const struct ulnet_setting *settings_find(const struct settings *s,
					  const char *name);
/* The name of one that @name looks like, as key_near() says; NULL: none. */
const char *settings_near(const struct settings *s, const char *name);
/* 0; -ENOENT: @setting is NULL; -EPERM: it follows from others; -EOPNOTSUPP: it
 * has only one value, and SETTING_FIXED says why; -EINVAL: @value is not in its
 * range. */
int setting_check(const struct ulnet_setting *setting, int64_t value);

/* Of recovery_interval, the only such setting: kernel nodes have it, but only
 * their oldest releases went by it. */
#define SETTING_FIXED                                                  \
	"without effect: the longer an interface is silent, the longer " \
	"is the time between its pings"

/* Is that setting other than 0? */
bool setting_is_on(struct lnet *node, const char *name);

#endif
