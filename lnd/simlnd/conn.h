/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of simulated NIs, on links that need them
 * (ulnet_sim_link.connect). An attempt takes its time, is refused where nobody
 * is, and meets silence where the network is cut: then it is repeated until the
 * LND's timeout. Pauses after failures follow the same law as over TCP. A
 * connection ends when the peer is gone, or when it is cut: LNet is told, and
 * the connection is made anew for the next message. Each direction has a
 * connection of its own, which is opened and cut with the other one.
 *
 * Silence: what was sent is lost, or its acknowledgement is, and still would be
 * a while later. LNet is told, messages that have not left are given back, and
 * a new connection is tried. What was lost stays lost, which TCP would repeat:
 * to those above it is late for ever.
 *
 * As over TCP, a process that only calls can be reached over a connection that
 * it has opened, and is never found silent. Inside simlnd only.
 */
#ifndef LND_SIMLND_CONN_H
#define LND_SIMLND_CONN_H

#include "lnd/simlnd/net.h"

enum sim_conn_state {
	SIM_CONN_NONE,
	SIM_CONN_TRYING, /* an attempt is under way */
	SIM_CONN_PAUSED, /* one has failed; the next is not before the timer */
	SIM_CONN_OPEN,
	SIM_CONN_STATES
};

void sim_conn_init(struct sim_path *p);

/* As send(), lnd.h. */
int sim_conn_ready(struct sim_path *p);

/* Is the way cut such that nobody answers, not even with a refusal? */
bool sim_conn_is_cut(const struct sim_path *p);
/* Something leaves on the connection, and is lost for that reason. */
void sim_conn_lost(struct sim_path *p);

/* Something came in from where @p leads, over a connection that can be answered
 * on. */
void sim_conn_heard(struct sim_path *p);

/* Can it go to another CPT (sim_can_move())? */
bool sim_conn_is_quiet(const struct sim_path *p);
/* It leaves this CPT, and nobody is told; it comes to another one. */
void sim_conn_leave(struct sim_path *p);
void sim_conn_arrive(struct sim_path *p);
/* It has ended in between. */
void sim_conn_lapse(struct sim_cpt *sc, const struct ulnet_nid *nid);

/* An open connection ends. Under virtual time any thread that has it. */
void sim_conn_end(struct sim_path *p);
/* The same, and what is on its way, either way, is lost. */
void sim_conn_cut(struct sim_path *p);
/* The NI has failed hard: its connections end. What is still on its way here
 * over them is lost. */
void sim_conns_fail(struct sim_cpt *sc);
/* Tells LNet of all that have ended. */
void sim_conns_tell(struct sim_cpt *sc);

/* The CPT goes down: no upcall any more. */
void sim_conns_stop(struct sim_cpt *sc);

/* ---- to another CPT ---- */

/*
 * Connections that go to another CPT, with the NID that they lead to (lnd.h,
 * can_move() and move()). The connection leaves its path here, and comes to the
 * path there in a turn of that CPT's. What is on its way to this CPT meanwhile
 * is passed on when it arrives, and what was sent later may overtake it then.
 * Inside simlnd only.
 */

/* As lnd.h. */
bool sim_can_move(struct lnd_ni *ni, unsigned int cpt,
		  const struct ulnet_nid *nid);
void sim_move(struct lnd_ni *ni, unsigned int cpt, const struct ulnet_nid *nid);

#endif
