/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Callers: the addresses from which peers have connected to a listener and not
 * said yet who they are. TCP's own handshake has confirmed them.
 *
 *	- Each has its share (base/share.h) of the accept_max handshakes. One
 *	  beyond it takes the place of that caller's which has been silent
 *	  longest, so that one address cannot take the places of others.
 *	- TLS takes processor time, of which those who have proved who they are
 *	  may take more than strangers (base/door.h). Handshakes for which there
 *	  is none wait, and callers take turns: one with many handshakes gets no
 *	  more of them than one with a single handshake. Time-outs go on
 *	  meanwhile, so nobody waits for longer than accept_timeout.
 *
 * A caller exists as long as it has a handshake. Thread: CPT 0's.
 */
#ifndef LND_SOCKLND_CALLER_H
#define LND_SOCKLND_CALLER_H

#include "base/door.h"
#include "base/hash.h"
#include "lnd/socklnd/conn.h"

struct sock_caller {
	struct hash_node by_addr; /* sock_callers.by_addr */
	struct ulnet_nid addr;	  /* an address only: its net is 0 */
	/* sock_conn_caller.of; the one that has been silent longest is
	 * first */
	struct list handshakes;
	uint32_t n;	/* number of handshakes */
	uint32_t begun; /* of these: TLS has begun */
	/* sock_conn_caller.waits: for processor time, who came first is first
	 */
	struct list waiting;
	struct list turn; /* sock_callers.turns while some are waiting */
};

struct sock_callers {
	struct hash by_addr;
	struct door door;
	struct list turns[DOOR_CLASSES]; /* sock_caller.turn */
	uint32_t n;			 /* handshakes of all */
};

void sock_callers_init(struct sock_callers *cs, uint64_t seed, uint64_t now);
/* All handshakes must have left. */
void sock_callers_fini(struct sock_callers *cs);

/* May one more handshake of the address @from begin, of @max in all? If not,
 * sets *@instead_p to the one of that address that has been silent longest;
 * NULL: it has none. */
bool sock_callers_allow(const struct sock_callers *cs,
			const union netif_addr *from, uint32_t max,
			struct sock_conn **instead_p);
/* Adds @conn, whose remote is set, to its caller. 0 or -ENOMEM. */
int sock_callers_enter(struct sock_callers *cs,
		       struct sock_conn *conn) must_check;
/* @conn was heard. */
void sock_callers_heard(struct sock_conn *conn);
void sock_callers_leave(struct sock_callers *cs, struct sock_conn *conn);

/* ---- processor time, for TLS ---- */

/* May the handshake of @conn go on now? */
bool sock_callers_may(const struct sock_callers *cs, struct sock_conn *conn,
		      uint64_t now);
/* sock_callers_may() has said yes, and TLS begins on @conn. */
void sock_callers_begin(struct sock_conn *conn);
/* The handshake of @conn has taken @ns. */
void sock_callers_pay(struct sock_callers *cs, struct sock_conn *conn,
		      uint64_t ns, uint64_t now);
/* The peer of @conn has proved who it is. */
void sock_callers_proved(struct sock_callers *cs, const struct sock_conn *conn);

/* sock_callers_may() has said no: @conn waits. */
void sock_callers_wait(struct sock_callers *cs, struct sock_conn *conn,
		       uint64_t now);
bool sock_callers_any_waits(const struct sock_callers *cs);
/* Ends the wait of the next handshake of @class that may go on; NULL: none.
 * Looks at one caller, which has had its turn then. */
struct sock_conn *sock_callers_next(struct sock_callers *cs,
				    enum door_class class, uint64_t now);

#endif
