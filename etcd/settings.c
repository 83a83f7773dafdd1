/* SPDX-License-Identifier: BSD-3-Clause */
#include "etcd/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

/* bytes of a line, at most */
#define LINE_MAX_BYTES 4096

static void wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

struct etcd_settings *etcd_settings_get(struct etcd_settings *s)
{
	if (s)
		atomic_fetch_add(&s->refs, 1);
	return s;
}

void etcd_settings_put(struct etcd_settings *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	free(s->ca);
	free(s->cert);
	free(s->key);
	free(s->user);
	wipe(s->password);
	free(s);
}

#define refuse(err, rc, ...) \
	(snprintf((err)->what, sizeof((err)->what), __VA_ARGS__), (rc))

static char **setting_of(struct etcd_settings *s, const char *name)
{
	const struct {
		const char *name;
		char **value;
	} all[] = {
		{ "ca", &s->ca },     { "cert", &s->cert },
		{ "key", &s->key },   { "user", &s->user },
		{ "password", &s->password },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i].name, name))
			return all[i].value;
	return NULL;
}

/* Takes "name: value". */
static int line_take(struct etcd_settings *s, char *line, unsigned int number,
		     struct ulnet_text_error *err)
{
	char *name = line + strspn(line, " \t"), *value = strchr(name, ':');
	char **to;

	line[strcspn(line, "\r\n")] = '\0';
	if (!*name || *name == '#')
		return 0;
	if (!value)
		return refuse(err, -EINVAL, "line %u: 'name: value' is expected",
			      number);
	*value++ = '\0';
	value += strspn(value, " \t");
	name[strcspn(name, " \t")] = '\0';
	to = setting_of(s, name);
	if (!to)
		return refuse(err, -EINVAL,
			      "line %u: not ca, cert, key, user or password",
			      number);
	if (*to || !*value)
		return refuse(err, -EINVAL, "line %u: %s", number,
			      *to ? "it comes twice" : "the value is missing");
	*to = strdup(value);
	return *to ? 0 : -ENOMEM;
}

/* Checks the whole. @f: where it comes from. */
static int settings_check(const struct etcd_settings *s, FILE *f,
			  struct ulnet_text_error *err)
{
	struct stat st;

	if (!s->user != !s->password)
		return refuse(err, -EINVAL, "there is a %s without a %s",
			      s->user ? "user" : "password",
			      s->user ? "password" : "user");
	if (s->key && !s->cert)
		return refuse(err, -EINVAL, "there is a key without a cert");
	if (!s->password)
		return 0;
	if (fstat(fileno(f), &st))
		return -errno;
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return refuse(err, -EACCES,
			      "others may read or change it, and there is a "
			      "password in it: chmod 600");
	if (st.st_uid && st.st_uid != geteuid())
		return refuse(err, -EACCES,
			      "it belongs to neither this user nor root");
	return 0;
}

static int lines_take(struct etcd_settings *s, FILE *f,
		      struct ulnet_text_error *err)
{
	char line[LINE_MAX_BYTES];
	int rc = 0;

	for (unsigned int i = 1; !rc && fgets(line, sizeof(line), f); i++) {
		if (strlen(line) == sizeof(line) - 1)
			rc = refuse(err, -EINVAL, "line %u: it is too long", i);
		else
			rc = line_take(s, line, i, err);
	}
	explicit_bzero(line, sizeof(line));
	if (!rc && ferror(f))
		rc = -EIO;
	return rc ? rc : settings_check(s, f, err);
}

int etcd_settings_read(const char *path, struct etcd_settings **settings_p,
		       struct ulnet_text_error *err)
{
	struct etcd_settings *s = calloc(1, sizeof(*s));
	FILE *f;
	int rc;

	if (!s)
		return -ENOMEM;
	atomic_init(&s->refs, 1);
	f = fopen(path, "re");
	if (!f) {
		rc = -errno;
		snprintf(err->what, sizeof(err->what), "%s", strerror(-rc));
	} else {
		setvbuf(f, NULL, _IONBF, 0); /* keeps no copy of a password */
		rc = lines_take(s, f, err);
		fclose(f);
	}
	if (rc)
		etcd_settings_put(s);
	else
		*settings_p = s;
	return rc;
}
