/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What passes over an open connection: LNet's messages, in the protocol's three
 * ways. None of these calls tells the user anything before it returns.
 *
 * To send: ib_tx_get(), the LNet header to ib_tx_header() (for IMMEDIATE, the
 * payload to ib_tx_payload()), and one of ib_send_*(), all in one go. What has
 * become of it, done() tells, once.
 *
 *	sent by			done() with OK
 *	ib_send_immediate()	the peer's device has it
 *	ib_send_put()		tx->nob bytes are in the peer's memory, and the
 *				peer's device has the PUT_DONE; or the peer
 *				wanted nothing (0)
 *	ib_send_get()		tx->nob bytes are in our memory
 *
 * What has arrived is to be answered, once, by
 *
 *	ib_rx_end()		whatever it is: it was taken, or is not wanted
 *	ib_rx_accept()		PUT_REQ: into this memory
 *	ib_rx_answer()		GET_REQ: out of this memory
 *
 * The latter two begin a transmit, whose done() tells what has come of it.
 * Nothing more with an LNet header is shown until it is answered or set aside;
 * answers of the peer to what this side has asked are looked at all the time.
 *
 * Memory is the user's: borrowed until done(), and so is the array that lists
 * the pieces of a source. A sink is one registration, as peers get one key.
 */
#ifndef LND_O2IBLND_EXCHANGE_H
#define LND_O2IBLND_EXCHANGE_H

#include "lnd/o2iblnd/conn.h"

/* A transmit to be filled in. NULL: the connection is not open; or there is no
 * buffer just now. */
struct ib_tx *ib_tx_get(struct ib_conn *conn);
/* It is not sent after all. */
void ib_tx_unget(struct ib_tx *tx);

static inline uint8_t *ib_tx_header(const struct ib_tx *tx)
{
	return ib_tx_buf(tx) + IB_LNET_OFFSET;
}

static inline uint8_t *ib_tx_payload(const struct ib_tx *tx)
{
	return ib_tx_buf(tx) + IB_PAYLOAD_OFFSET;
}

/* Each leg of a message may take tx->time, that of a PUT half of it; whose time
 * has passed, ends its connection. */
/* @length: of the payload, at most IB_IMMEDIATE_MAX. */
void ib_send_immediate(struct ib_tx *tx, uint32_t length);
/* A PUT or REPLY, of @length bytes at @source. */
void ib_send_put(struct ib_tx *tx, const struct ib_sge *source,
		 uint32_t length);
/* A GET, of as many bytes as @sink has, which is borrowed until return.
 * -EMSGSIZE: it has more fragments than this connection carries, and @tx is the
 * caller's still. */
int ib_send_get(struct ib_tx *tx, const struct ib_sink *sink) must_check;

/* The user gives up a transmit that is not done; it will be told -ECANCELED, or
 * what has come of it before that. @memory_stays: its memory is good until
 * done() all the same, and the connection goes on. If not, that is neither read
 * nor written on return, and the connection ends if it was. Was anything of it
 * begun, so that the peer may have got it? */
bool ib_tx_abandon(struct ib_tx *tx, bool memory_stays);

/* What has arrived is done with. @status is for the peer: 0 or -errno; of an
 * IMMEDIATE it does not hear. -ENODATA: nothing matches its GET. */
void ib_rx_end(struct ib_rx *rx, int status);
/* The peer is to write its PUT to @sink, borrowed until return: no more than it
 * has. 0: takes @rx, and *@tx_p, with @user, is under way. -errno: @rx is the
 * caller's still; -ENOTCONN, -ENOMEM, -EMSGSIZE (too many fragments, or bytes
 * that the peer does not have). */
int ib_rx_accept(struct ib_rx *rx, const struct ib_sink *sink, void *user,
		 struct ib_tx **tx_p) must_check;
/* @length bytes at @source are what the peer gets. As ib_rx_accept();
 * -EMSGSIZE: it has no room for so many. */
int ib_rx_answer(struct ib_rx *rx, const struct ib_sge *source, uint32_t length,
		 void *user, struct ib_tx **tx_p) must_check;
/* It will take long: others may be shown meanwhile, and the peer may send more.
 * (Not in place of a PUT_REQ: it has D of these at most.) The message is
 * copied: what rx->msg points to is elsewhere on return. Whoever calls this
 * sees to it that the peer does not get too much of it. -ENOMEM: it stands as
 * before. Nothing happens if it is set aside already. */
int ib_rx_set_aside(struct ib_rx *rx) must_check;

#endif
