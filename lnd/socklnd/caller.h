/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Callers: the addresses from which peers have connected to a listener and not
 * said yet who they are. TCP's own handshake has confirmed that a caller really
 * has its address.
 *
 * - The accept_max handshakes are shared (base/share.h) between callers. When a
 *   caller has used up its share, its next handshake takes the place of its own
 *   that has been silent longest, so one address cannot take the places of
 *   others.
 * - TLS takes processor time, of which peers that have proved who they are may
 *   take more than strangers (base/door.h). A handshake for which there is no
 *   time left waits, and callers take turns: one with many handshakes gets no
 *   more turns than one with a single handshake. Time-outs run meanwhile, so no
 *   handshake waits for longer than accept_timeout.
 *
 * A caller exists as long as it has a handshake. Thread: CPT 0's.
 */
#ifndef LND_SOCKLND_CALLER_H
#define LND_SOCKLND_CALLER_H

#include "base/door.h"
#include "base/hash.h"
#include "lnd/socklnd/conn.h"

struct sock_caller {
	struct hash_node by_addr; /* node in sock_callers.by_addr */
	struct ulnet_nid addr;	  /* the caller's address, with net 0 */
	/* of sock_conn_caller.of; the handshake that has been silent longest is
	 * first */
	struct list handshakes;
	uint32_t n;	/* how many are in @handshakes */
	uint32_t begun; /* how many of them have begun TLS */
	/* of sock_conn_caller.waits: handshakes that wait for processor time,
	 * in the order in which they came, but those that have begun TLS first
	 */
	struct list waiting;
	/* node in sock_callers.turns while @waiting is not empty */
	struct list turn;
};

struct sock_callers {
	struct hash by_addr;
	struct door door;
	struct list turns[DOOR_CLASSES]; /* of sock_caller.turn */
	uint32_t n;			 /* handshakes of all callers */
};

void sock_callers_init(struct sock_callers *cs, uint64_t seed, uint64_t now);
/* All handshakes have to be gone. */
void sock_callers_fini(struct sock_callers *cs);

/* May the address @from begin one more handshake? @max: how many all addresses
 * may have together. If not, sets *@instead_p to the handshake of @from that
 * has been silent longest; NULL: @from has none. */
bool sock_callers_allow(const struct sock_callers *cs,
			const union netif_addr *from, uint32_t max,
			struct sock_conn **instead_p);
/* Adds @conn to the caller with the address conn->remote. Returns 0 or -ENOMEM.
 */
int sock_callers_enter(struct sock_callers *cs,
		       struct sock_conn *conn) must_check;
/* Called when the peer of @conn was heard. */
void sock_callers_heard(struct sock_conn *conn);
void sock_callers_leave(struct sock_callers *cs, struct sock_conn *conn);

/* ---- processor time, for TLS ---- */

/* May the handshake of @conn go on now? */
bool sock_callers_may(const struct sock_callers *cs, struct sock_conn *conn,
		      uint64_t now);
/* Called when TLS begins on @conn, after sock_callers_may() has said yes. */
void sock_callers_begin(struct sock_conn *conn);
/* Charges @ns of processor time to the caller of @conn. */
void sock_callers_pay(struct sock_callers *cs, struct sock_conn *conn,
		      uint64_t ns, uint64_t now);
/* Called when the peer of @conn has proved who it is. */
void sock_callers_proved(struct sock_callers *cs, const struct sock_conn *conn);

/* Makes @conn wait, after sock_callers_may() has said no. */
void sock_callers_wait(struct sock_callers *cs, struct sock_conn *conn,
		       uint64_t now);
bool sock_callers_any_waits(const struct sock_callers *cs);
/* Returns the handshake of @class that may go on next, which then does not wait
 * any more; NULL: none may. Looks at one caller only, and moves it to the end
 * of the turns. */
struct sock_conn *sock_callers_next(struct sock_callers *cs,
				    enum door_class class, uint64_t now);

#endif
