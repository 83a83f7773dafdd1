/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder of keys and certificates, as ulnet-keys makes them, for tests. */
#ifndef TESTS_UNIT_SECURE_FOLDER_H
#define TESTS_UNIT_SECURE_FOLDER_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "secure/keys.h"
#include "tools/ulnet-keys/make.h"

#define PATHS 8

struct folder {
	char path[64];
	struct make make;
	unsigned int used;
	char paths[PATHS][128];
};

static inline struct folder *folder_new(void)
{
	struct folder *f = calloc(1, sizeof(*f));

	cr_assert(f);
	strcpy(f->path, "/tmp/ulnet-keys-XXXXXX");
	cr_assert(mkdtemp(f->path));
	f->make = (struct make){
		.who = "test", .folder = f->path, .days = 30, .now = time(NULL)
	};
	return f;
}

static inline void folder_end(struct folder *f)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", f->path);
	cr_assert_eq(system(command), 0);
	free(f);
}

/* Valid until it was called PATHS times more. */
static inline const char *in(struct folder *f, const char *name)
{
	char *path = f->paths[f->used++ % PATHS];

	text_copy(path, sizeof(f->paths[0]), f->path);
	strcat(path, "/");
	text_copy(path + strlen(path), sizeof(f->paths[0]) - strlen(path),
		  name);
	return path;
}

/* An authority, and the nodes a and b. */
static inline struct folder *folder_of_two(void)
{
	struct folder *f = folder_new();

	cr_assert_eq(make_authority(&f->make, "site"), 0);
	cr_assert_eq(make_node(&f->make, "a"), 0);
	cr_assert_eq(make_node(&f->make, "b"), 0);
	return f;
}

static inline struct keys *load(const struct keys_conf *conf)
{
	struct keys_error err = { "" };
	struct keys *k;

	cr_assert_eq(keys_load(conf, &k, &err), 0, "%s", err.text);
	return k;
}

/* The keys of the node @name, which believes what @authority of the folder has
 * signed. */
static inline struct keys *keys_of(struct folder *f, const char *name,
				   const char *authority, const char *revoked)
{
	char crt[80], key[80];

	snprintf(crt, sizeof(crt), "%s.crt", name);
	snprintf(key, sizeof(key), "%s.key", name);
	return load(&(struct keys_conf){ .certificate = in(f, crt),
					 .key = in(f, key),
					 .authority = in(f, authority),
					 .revoked = revoked ? in(f, revoked)
							    : NULL });
}

#endif
