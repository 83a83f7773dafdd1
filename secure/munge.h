/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MUNGE: a credential says which user has made it, and proves that to everybody
 * who has the key of a cluster's munged. A handshake (handshake.h) lets a
 * client prove itself by one, that is bound to the handshake and worth nothing
 * in another.
 *
 * Both kinds of question go to munged, over a UNIX socket, which may take
 * seconds: not on a thread of a CPT. Any other thread.
 */
#ifndef SECURE_MUNGE_H
#define SECURE_MUNGE_H

#include "base/util.h"

#define MUNGE_BINDING	 32   /* bytes of what only one handshake has */
#define MUNGE_CREDENTIAL 1024 /* bytes of a credential, with the 0 at its end */
#define MUNGE_NAME	 64   /* bytes of the name of a user or group */
#define MUNGE_WHY	 256

#define MUNGE_PURPOSE "ulnet rpc client 1"

/* What a credential carries. Whoever can have something else munged as another
 * user has no use for that here. */
struct munge_payload {
	char purpose[sizeof(MUNGE_PURPOSE)];
	uint8_t binding[MUNGE_BINDING];
};

enum munge_what {
	MUNGE_MAKE, /* a credential of this process's user */
	MUNGE_READ, /* who has made this credential? */
};

struct munge_question {
	enum munge_what what;
	struct munge_payload payload;	   /* MUNGE_MAKE */
	char credential[MUNGE_CREDENTIAL]; /* MUNGE_READ */
};

struct munge_answer {
	/* 0; -EACCES: the credential is not good (any more), or was read
	 * before; -EHOSTDOWN: munged does not answer; other -errno */
	int rc;
	char why[MUNGE_WHY]; /* if rc is not 0: a sentence */
	/* of MUNGE_MAKE */
	char credential[MUNGE_CREDENTIAL];
	/* of MUNGE_READ: how many bytes it carries, and if that is the size of
	 * a payload, these. Who has made it, by number and by name; "": nobody
	 * knows one here */
	size_t carried;
	struct munge_payload payload;
	uint32_t uid, gid;
	char user[MUNGE_NAME], group[MUNGE_NAME];
};

/* Asks the munged at @socket; NULL: where libmunge looks for it. @a is all zero
 * at first. */
typedef void (*munge_fn)(const char *socket, const struct munge_question *q,
			 struct munge_answer *a);

/* Asks munged by libmunge. NULL: this was built without it. */
munge_fn munge_real(void);

#endif
