/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of simulated NIs, on links that need them
 * (ulnet_sim_link.connect). An attempt takes its time, is refused where nobody
 * is, and meets silence where the network is cut: then it is repeated until the
 * LND's timeout. Pauses after failures follow the same law as over TCP. A
 * connection ends when the peer is gone, when it is cut, or, with the next
 * message, when the network is. LNet is told, and the connection is made anew
 * for the next message. Each direction has a connection of its own, which is
 * opened and cut with the other one. Inside simlnd only.
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

/* May a message be sent? If not, lnet_peer_connected() will follow. */
bool sim_conn_ready(struct sim_path *p);

/* Something came in from where @p leads, over a connection that can be answered
 * on. */
void sim_conn_heard(struct sim_path *p);

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

#endif
