/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A door: who may go on with a handshake on a CPT, and who waits outside. What
 * handshakes cost is processor time, of which those begun by
 *
 *	known hosts	may take half
 *	strangers	may take an eighth
 *
 * A host is known if one of its clients has proved who it is: such clients come
 * back all at once after an outage, while strangers may knock as they like. A
 * door that is new knows nobody, so for DOOR_START all hosts count as known.
 *
 * While strangers use what they have, or are very many, a host of theirs has
 * one handshake under way at a time, so that a host with one client gets its
 * turn among those that have very many. Likewise, while known hosts use what
 * they have, one of them begins no more handshakes than take an eighth of that.
 * What names a host is up to the user, but a
 * connection has to confirm it, so that nobody has more of them than addresses
 * at which he receives: a NID, or an address.
 *
 * Each class has a time up to which what it took is paid for: taking n ns moves
 * it by n times the inverse of the share, and it is never more than DOOR_SPARE
 * ago.
 *
 * This file does not know what a handshake is. Thread: owner.
 */
#ifndef BASE_DOOR_H
#define BASE_DOOR_H

#include "base/hash.h"
#include "base/list.h"
#include "base/pool.h"

/* known hosts of a CPT, at most; another one replaces the oldest */
#define DOOR_HOSTS 8192u
/* ns: what handshakes may take beyond their share, if nothing was taken for
 * that long, is DOOR_SPARE divided by the inverse share. Handshakes that are
 * under way already may take as much once more. */
#define DOOR_SPARE (100 * NSEC_PER_MSEC)
#define DOOR_START (10 * NSEC_PER_SEC)
#define DOOR_NAME  24u /* bytes of the name of a host, at most */

enum door_class { DOOR_KNOWN, DOOR_STRANGER, DOOR_CLASSES };
/* inverse shares of the processor time */
#define DOOR_KNOWN_OF	 2u
#define DOOR_STRANGER_OF 8u
/* the inverse share of one known host while known hosts use up theirs */
#define DOOR_HOST_OF (8u * DOOR_KNOWN_OF)

/* ns: the average time between two answers to unknown hosts whose messages do
 * not get further: that they have to wait, or what they were told before. Other
 * messages get no answer, and are repeated sooner. */
#define DOOR_ANSWER (500 * NSEC_PER_USEC)

struct door {
	/* ns: up to when the time that each class took is paid for */
	uint64_t paid[DOOR_CLASSES];
	/* ns: up to when the answers are paid for */
	uint64_t answered;
	uint64_t started;    /* ns: when the door was made */
	struct hash by_name; /* the known hosts */
	/* the known hosts, in the order of their proofs, the oldest first */
	struct list order;
	struct pool pool;
	size_t size; /* bytes of the name of a host */
	uint64_t seed;
};

/* Hosts have names of @size bytes, to which @host points below. @seed: random,
 * so that nobody can choose names that hash to one bucket. */
void door_init(struct door *d, size_t size, uint64_t seed, uint64_t now);
void door_fini(struct door *d);

/* Returns the class of @host at @now: is it known, or do all hosts count as
 * known? */
enum door_class door_class(const struct door *d, const void *host,
			   uint64_t now);
/* May a client of the host @host begin a handshake now? @busy: another
 * handshake of that host is under way. @crowded: very many handshakes are under
 * way. Sets *@class_p, which is valid for the whole handshake. */
bool door_begin(const struct door *d, const void *host, bool busy, bool crowded,
		uint64_t now, enum door_class *class_p);
/* May a client of the host @host be answered whose message does not get
 * further? */
bool door_answer(struct door *d, const void *host, uint64_t now);
/* May a handshake that is under way go on now? */
bool door_go_on(const struct door *d, enum door_class class, uint64_t now);
/* Charges @ns of processor time that a handshake of a client of the host @host
 * has taken. */
void door_take(struct door *d, const void *host, enum door_class class,
	       uint64_t ns, uint64_t now);
/* Notes that a client of the host @host has proved who it is. Without memory,
 * the host does not become known. */
void door_proved(struct door *d, const void *host);

#endif
