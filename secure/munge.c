/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/munge.h"

#include <errno.h>
#include <grp.h>
#include <munge.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

/* bytes of the buffer for an entry of passwd or group, at first, and at most */
#define LOOK_UP	    16384
#define LOOK_UP_MAX (1 << 20)

static void fail(struct munge_answer *a, int rc, munge_ctx_t ctx, munge_err_t e)
{
	const char *text = ctx ? munge_ctx_strerror(ctx) : NULL;
	const char *socket = NULL;

	if (!text)
		text = munge_strerror(e);
	a->rc = rc;
	if (ctx && rc == -EHOSTDOWN)
		(void)munge_ctx_get(ctx, MUNGE_OPT_SOCKET, &socket);
	if (socket)
		snprintf(a->why, sizeof(a->why),
			 "MUNGE: no answer from munged at %s: %s", socket,
			 text);
	else
		snprintf(a->why, sizeof(a->why), "MUNGE: %s", text);
}

/* Tells apart a credential that munged refuses (-EACCES) and failures that say
 * nothing about it: munged does not answer, or this machine is out of memory.
 */
static int errno_of(munge_err_t e)
{
	switch (e) {
	case EMUNGE_SOCKET:
	case EMUNGE_TIMEOUT:
	case EMUNGE_SNAFU:
		return -EHOSTDOWN;
	case EMUNGE_NO_MEMORY:
		return -ENOMEM;
	default:
		return -EACCES;
	}
}

/* ---- making one ---- */

static void make(munge_ctx_t ctx, const struct munge_question *q,
		 struct munge_answer *a)
{
	char *credential = NULL;
	munge_err_t e =
		munge_encode(&credential, ctx, &q->payload, sizeof(q->payload));

	if (e)
		fail(a, errno_of(e), ctx, e);
	else if (strlen(credential) >= sizeof(a->credential))
		fail(a, -EMSGSIZE, NULL, EMUNGE_BAD_LENGTH);
	else
		text_copy(a->credential, sizeof(a->credential), credential);
	free(credential);
}

/* ---- reading one ---- */

static bool is_letter(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("._-@", c));
}

/* Copies a name of a user or group. Names with letters that mean something in
 * rules, on terminals or in logs are left out: @to becomes "". */
static void name_take(char to[MUNGE_NAME], const char *name)
{
	size_t n = name ? strlen(name) : 0;
	bool good = n && n < MUNGE_NAME;

	for (size_t i = 0; good && i < n; i++)
		good = is_letter((unsigned char)name[i]);
	if (good)
		text_copy(to, MUNGE_NAME, name);
}

/* The name of a user, or of a group: "" if there is none. */
static void user_name(uid_t uid, char to[MUNGE_NAME], gid_t *gid_p)
{
	struct passwd pwd, *user = NULL;
	char *room = malloc(LOOK_UP);

	if (room && getpwuid_r(uid, &pwd, room, LOOK_UP, &user))
		user = NULL;
	name_take(to, user ? user->pw_name : NULL);
	if (user)
		*gid_p = user->pw_gid;
	free(room);
}

/* An entry with many members takes much room. */
static void group_name(gid_t gid, char to[MUNGE_NAME])
{
	struct group grp, *group = NULL;
	int rc = ERANGE;

	to[0] = '\0';
	for (size_t n = LOOK_UP; rc == ERANGE && n <= LOOK_UP_MAX; n *= 4) {
		char *room = malloc(n);

		rc = room ? getgrgid_r(gid, &grp, room, n, &group) : ENOMEM;
		if (!rc && group)
			name_take(to, group->gr_name);
		free(room);
	}
}

/* Adds a group to the list of @used bytes. Returns the bytes that are used
 * then. */
static size_t group_add(struct munge_answer *a, size_t used, gid_t gid)
{
	char name[MUNGE_NAME], text[2 * MUNGE_NAME];
	size_t n;

	group_name(gid, name);
	n = 1 +
	    (size_t)snprintf(text, sizeof(text), "gid=%u", (unsigned int)gid);
	if (*name)
		n += 1 + (size_t)snprintf(text + n, sizeof(text) - n,
					  "group=%s", name);
	if (n >= sizeof(a->groups) - used)
		return used;
	memcpy(a->groups + used, text, n);
	return used + n;
}

/* @own: the group that the user has in passwd. */
static void groups_look_up(struct munge_answer *a, gid_t own)
{
	gid_t gids[MUNGE_GROUPS_MAX];
	int n = MUNGE_GROUPS_MAX;
	size_t used = 0;

	/* It says -1 if there are more of them. */
	if (getgrouplist(a->user, own, gids, &n) < 0)
		n = MUNGE_GROUPS_MAX;
	for (int i = 0; i < n; i++)
		if (gids[i] != a->gid)
			used = group_add(a, used, gids[i]);
}

static void look_up(struct munge_answer *a)
{
	gid_t own = a->gid;

	user_name(a->uid, a->user, &own);
	group_name(a->gid, a->group);
	if (*a->user)
		groups_look_up(a, own);
}

static void read_it(munge_ctx_t ctx, const struct munge_question *q,
		    struct munge_answer *a)
{
	void *payload = NULL;
	int n = 0;
	uid_t uid;
	gid_t gid;
	munge_err_t e =
		munge_decode(q->credential, ctx, &payload, &n, &uid, &gid);

	if (e) {
		fail(a, errno_of(e), ctx, e);
	} else {
		a->carried = n > 0 ? (size_t)n : 0;
		if (a->carried == sizeof(a->payload))
			memcpy(&a->payload, payload, sizeof(a->payload));
		a->uid = uid;
		a->gid = gid;
		look_up(a);
	}
	free(payload);
}

/* ---- either ---- */

static void ask(const char *socket, const struct munge_question *q,
		struct munge_answer *a)
{
	munge_ctx_t ctx = munge_ctx_create();
	munge_err_t e = EMUNGE_NO_MEMORY;

	if (ctx)
		e = socket ? munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket)
			   : EMUNGE_SUCCESS;
	if (e)
		fail(a, -ENOMEM, NULL, e);
	else if (q->what == MUNGE_MAKE)
		make(ctx, q, a);
	else
		read_it(ctx, q, a);
	if (ctx)
		munge_ctx_destroy(ctx);
}

munge_fn munge_real(void)
{
	return ask;
}
