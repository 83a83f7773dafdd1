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

#define DOOR_HOSTS 8192u /* known hosts of a CPT; others replace the oldest */
/* What handshakes may take beyond the share: DOOR_SPARE / the inverse of the
 * share, if nothing was taken for so long; as much once more by those that are
 * under way already. ns */
#define DOOR_SPARE (100 * NSEC_PER_MSEC)
#define DOOR_START (10 * NSEC_PER_SEC)
#define DOOR_NAME  24u /* most bytes of the name of a host */

enum door_class { DOOR_KNOWN, DOOR_STRANGER, DOOR_CLASSES };
/* inverse shares of the processor time */
#define DOOR_KNOWN_OF	 2u
#define DOOR_STRANGER_OF 8u
#define DOOR_HOST_OF	 (8u * DOOR_KNOWN_OF) /* of a known host among others */

/* ns between two answers to hosts that are not known, on average, to what does
 * not get further: that they wait, or what they were told before. Others hear
 * nothing, and repeat their messages sooner. */
#define DOOR_ANSWER (500 * NSEC_PER_USEC)

struct door {
	uint64_t paid[DOOR_CLASSES]; /* ns */
	uint64_t answered;	     /* ns: likewise, of answers */
	uint64_t started;	     /* ns */
	struct hash by_name;	     /* the known hosts */
	struct list order;	     /* the same, the oldest proof first */
	struct pool pool;
	size_t size; /* of names of hosts */
	uint64_t seed;
};

/* Hosts have names of @size bytes, to which @host points below. @seed: random,
 * so that nobody can choose names that hash to one bucket. */
void door_init(struct door *d, size_t size, uint64_t seed, uint64_t now);
void door_fini(struct door *d);

/* Is @host known at @now, or are all? */
enum door_class door_class(const struct door *d, const void *host,
			   uint64_t now);
/* May a client of the host @host begin a handshake now? @busy: another one of
 * that host is under way; @crowded: so are very many. Sets *@class_p, which
 * holds for all of the handshake. */
bool door_begin(const struct door *d, const void *host, bool busy, bool crowded,
		uint64_t now, enum door_class *class_p);
/* Is a client of the host @host answered, whose message does not get further?
 */
bool door_answer(struct door *d, const void *host, uint64_t now);
/* May a handshake that is under way go on now? */
bool door_go_on(const struct door *d, enum door_class class, uint64_t now);
/* A handshake of a client of the host @host has taken @ns of processor time. */
void door_take(struct door *d, const void *host, enum door_class class,
	       uint64_t ns, uint64_t now);
/* A client of the host @host has proved who it is. Without memory, the host
 * does not get known. */
void door_proved(struct door *d, const void *host);

#endif
