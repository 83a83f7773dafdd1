/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits for sending: they limit how many messages the LND has at a time, for
 * each peer NI and for each local NI.
 *
 * A message takes a credit of its peer NI, then one of its NI, and gives them
 * back in the opposite order. If one is missing, it waits, first come first
 * served; but answers and urgent messages come before the rest, so these wait
 * only until a message gives a credit back, not behind others that wait. A
 * negative count says how many wait. There are no credits for 0@lo.
 *
 * A message for which the LND has no connection yet gives both back, and waits
 * in lpni->connecting until the LND says how the attempt to connect has ended:
 * peers that cannot be reached hold nothing that others need.
 *
 * All functions are for msg->cpt, which owns the peer NI and has credits of the
 * NI of its own. Credits that come back go to those who wait: the LND's send()
 * is called for them before return.
 */
#ifndef LNET_CREDIT_H
#define LNET_CREDIT_H

struct msg_out;

/* @msg, which has a path, takes both credits, and is given to the LND; or it
 * waits for what is missing. */
void credit_take(struct msg_out *msg);

/* Gives back the credits that @msg has in its state; if @msg waits for one, it
 * leaves that queue. The caller changes the state. */
void credit_return(struct msg_out *msg);

/* @msg, which has a path, and credits or no need of them, goes to the LND. */
void credit_transmit(struct msg_out *msg);

/* The timer of @msg has gone off before its try was over: @msg takes another
 * path, if it still waits for a connection and that path has one. */
void credit_connect_late(struct msg_out *msg);

#endif
