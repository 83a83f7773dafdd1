/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/setting.h"

#include <errno.h>
#include <string.h>

#include "config/scope.h"

int settings_read(struct lnet *node, struct settings *s)
{
	int n = lnet_settings(node, s->all, SETTINGS_MAX);

	BUG_ON(n > SETTINGS_MAX);
	s->n = n < 0 ? 0 : (unsigned int)n;
	return n < 0 ? n : 0;
}

const struct ulnet_setting *settings_find(const struct settings *s,
					  const char *name)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (!strcmp(s->all[i].name, name))
			return &s->all[i];
	return NULL;
}

const char *settings_near(const struct settings *s, const char *name)
{
	const char *names[SETTINGS_MAX + 1];

	for (unsigned int i = 0; i < s->n; i++)
		names[i] = s->all[i].name;
	names[s->n] = NULL;
	return key_near(name, names);
}

int setting_check(const struct ulnet_setting *setting, int64_t value)
{
	if (!setting)
		return -ENOENT;
	if (setting->derived)
		return -EPERM;
	if (value == setting->value ||
	    (value >= setting->min && value <= setting->max))
		return 0;
	return setting->min == setting->max ? -EOPNOTSUPP : -EINVAL;
}

bool setting_is_on(struct lnet *node, const char *name)
{
	const struct ulnet_setting *setting;
	struct settings all;

	if (settings_read(node, &all))
		return false;
	setting = settings_find(&all, name);
	return setting && setting->value != 0;
}
