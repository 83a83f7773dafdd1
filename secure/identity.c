/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/identity.h"

#include <errno.h>
#include <inttypes.h>

#define NUMBER_SIZE 11 /* bytes of a decimal uint32_t, with the 0 at its end */
#define USER	    "user="

struct identity *identity_new(enum identity_kind kind, const char *name,
			      const char *issuer)
{
	size_t n = strlen(name) + 1, nissuer = strlen(issuer) + 1;
	struct identity *id = calloc(1, sizeof(*id) + n + nissuer);

	if (!id)
		return NULL;
	id->refs = 1;
	id->kind = kind;
	id->name = memcpy(id->texts, name, n);
	id->issuer = memcpy(id->texts + n, issuer, nissuer);
	return id;
}

struct identity *identity_user_new(const char *user, uint32_t uid,
				   const char *group, uint32_t gid)
{
	char name[IDENTITY_NAME_SIZE], number[sizeof("gid=") + NUMBER_SIZE];
	struct identity *id;

	/* Names of certificates and of clusters' keys have no '=', so a user's
	 * name equals none of them, also for programs that compare only names.
	 */
	if (*user)
		snprintf(name, sizeof(name), USER "%s", user);
	else
		snprintf(name, sizeof(name), "uid=%" PRIu32, uid);
	snprintf(number, sizeof(number), "gid=%" PRIu32, gid);
	id = identity_new(IDENTITY_MUNGE, name, "");
	if (!id)
		return NULL;
	id->uid = uid;
	id->gid = gid;
	id->group = strdup(*group ? group : number);
	if (id->group)
		return id;
	identity_put(id);
	return NULL;
}

int identity_set_groups(struct identity *id, const char *groups)
{
	const char *last = groups;
	size_t n;

	if (!*groups)
		return 0;
	for (const char *text = groups; text; text = identity_next_group(text))
		last = text;
	n = (size_t)(last - groups) + strlen(last) + 2;
	id->groups = malloc(n);
	if (!id->groups)
		return -ENOMEM;
	memcpy(id->groups, groups, n);
	return 0;
}

const char *identity_user_name(const struct identity *id)
{
	size_t n = strlen(USER);

	return strncmp(id->name, USER, n) ? NULL : id->name + n;
}

void identity_put(struct identity *id)
{
	if (!id || atomic_fetch_sub(&id->refs, 1) > 1)
		return;
	free(id->nids);
	free(id->group);
	free(id->groups);
	free(id);
}

bool identity_same(const struct identity *a, const struct identity *b)
{
	if (!a || !b)
		return a == b;
	if (a->kind != b->kind)
		return false;
	/* Users of MUNGE are compared by number: whether the number has a name
	 * here may change. */
	if (a->kind == IDENTITY_MUNGE)
		return a->uid == b->uid && a->gid == b->gid;
	/* All that have the cluster's key are one peer, whatever the key is
	 * called: a key with another name may have replaced it. */
	return a->kind == IDENTITY_CLUSTER_KEY ||
	       (!strcmp(a->name, b->name) && !strcmp(a->issuer, b->issuer));
}

int identity_digest(const struct identity *id, const void *bytes, size_t n,
		    uint8_t digest[DIGEST_SIZE])
{
	char uid[NUMBER_SIZE], gid[NUMBER_SIZE];
	const char *name = id->name, *issuer = id->issuer;
	bool named = id->kind != IDENTITY_CLUSTER_KEY;
	size_t nname, nissuer;
	uint8_t *all;
	int rc;

	if (id->kind == IDENTITY_MUNGE) {
		snprintf(uid, sizeof(uid), "%" PRIu32, id->uid);
		snprintf(gid, sizeof(gid), "%" PRIu32, id->gid);
		name = uid;
		issuer = gid;
	}
	nname = named ? strlen(name) + 1 : 0;
	nissuer = named ? strlen(issuer) + 1 : 0;
	all = malloc(n + 1 + nname + nissuer);
	if (!all)
		return -ENOMEM;
	memcpy(all, bytes, n);
	all[n] = (uint8_t)id->kind;
	memcpy(all + n + 1, name, nname);
	memcpy(all + n + 1 + nname, issuer, nissuer);
	rc = digest_make(all, n + 1 + nname + nissuer, digest);
	free(all);
	return rc;
}
