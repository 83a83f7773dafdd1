/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MUNGE: a credential says which user has made it, and proves that to everybody
 * who has the key of a cluster's munged. A client can prove itself in a
 * handshake (handshake.h) by a credential, which is bound to that handshake and
 * is worth nothing in another.
 *
 * Both kinds of question go to munged over a UNIX socket, which may take
 * seconds. Any thread but that of a CPT.
 */
#ifndef SECURE_MUNGE_H
#define SECURE_MUNGE_H

#include "base/util.h"

/* bytes of the value that only one handshake has */
#define MUNGE_BINDING	 32
#define MUNGE_CREDENTIAL 1024 /* bytes of a credential, with the 0 at its end */
#define MUNGE_NAME	 64   /* bytes of the name of a user or group */
#define MUNGE_WHY	 256
/* how many groups are in a list of groups, at most, and its bytes: "gid=NUMBER"
 * and "group=NAME" of each, with a 0 at their ends, and another 0 behind the
 * last one */
#define MUNGE_GROUPS_MAX 64
#define MUNGE_GROUP \
	(sizeof("gid=4294967295") + sizeof("group=") - 1 + MUNGE_NAME)
#define MUNGE_GROUPS (MUNGE_GROUPS_MAX * MUNGE_GROUP + 1)

#define MUNGE_PURPOSE "ulnet rpc client 1"

/* What a credential carries. The purpose keeps credentials out that another
 * program had munged for a user: they carry something else. */
struct munge_payload {
	char purpose[sizeof(MUNGE_PURPOSE)];
	uint8_t binding[MUNGE_BINDING];
};

enum munge_what {
	MUNGE_MAKE, /* make a credential of this process's user */
	MUNGE_READ, /* say who has made @credential */
};

struct munge_question {
	enum munge_what what;
	struct munge_payload payload;	   /* of MUNGE_MAKE */
	char credential[MUNGE_CREDENTIAL]; /* of MUNGE_READ */
};

struct munge_answer {
	/* 0; -EACCES: the credential is not valid (any more), or was read
	 * before; -EHOSTDOWN: munged does not answer; or another -errno */
	int rc;
	char why[MUNGE_WHY]; /* if rc is not 0: a sentence */
	/* of MUNGE_MAKE */
	char credential[MUNGE_CREDENTIAL];
	/* of MUNGE_READ. carried: bytes that the credential carries; only if
	 * they are as many as a payload has, they are in @payload. uid, gid,
	 * user, group: who has made the credential; a name is "" if this
	 * machine knows none */
	size_t carried;
	struct munge_payload payload;
	uint32_t uid, gid;
	char user[MUNGE_NAME], group[MUNGE_NAME];
	/* the other groups of the user, as this machine knows them, whether or
	 * not the process has them: the first MUNGE_GROUPS_MAX of them */
	char groups[MUNGE_GROUPS];
};

/* Asks the munged whose socket is @socket; NULL: the default of libmunge. *@a
 * is zeroed by the caller. */
typedef void (*munge_fn)(const char *socket, const struct munge_question *q,
			 struct munge_answer *a);

/* Returns the function that asks munged by libmunge; NULL: this build has no
 * libmunge. */
munge_fn munge_real(void);

#endif
