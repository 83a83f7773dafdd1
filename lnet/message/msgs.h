/* SPDX-License-Identifier: BSD-3-Clause */
/* All operations and messages of a CPT. */
#ifndef LNET_MSGS_H
#define LNET_MSGS_H

#include "lnd/lnd.h"
#include "lnet/message/forward.h"
#include "lnet/message/hold.h"
#include "lnet/message/in.h"
#include "lnet/path/path.h"

/*
 * What becomes of messages by rules that lie in another room (lnet/fault/):
 * each function returns whether it has taken the message. On the CPT of the
 * message.
 */
struct msg_faults {
	/* @msg has come in and was admitted, and nobody was told yet. */
	bool (*arrive)(struct msg_in *msg);
	/* @msg is about to go out, and has its path. Not through 0@lo. */
	bool (*depart)(struct msg_out *msg);
	/* @msg is a GET that has come in. Its REPLY, which has a payload but
	 * no path of its own, is about to be given to the LND as the answer
	 * (in_answer()), and so will not depart. If taken, request.h says how
	 * @msg goes on. */
	bool (*answer)(struct msg_in *msg);
};

struct msg_cpt {
	struct path_cpt path;
	struct id_table ops;
	struct pool msg_pool, op_pool, query_pool;
	/* msg_out.active: of all messages in life, in msg_in or lnet_op: */
	struct list active_in, active_out;
	struct list refunds; /* msg_out.lnd.link: messages that are about to
			      * give their credits back (credit.c) */
	bool refunding;	     /* ... one after the other, just now */
	struct msg_in *receiving; /* being given to recv() just now */
	uint64_t next_complaint;  /* ns: not before, about headers */

	const struct msg_discovery *discovery; /* NULL: it is off (out.h) */
	const struct msg_faults *faults;       /* NULL: there are no rules */
	struct list delayed_in, delayed_out;   /* msg_out.link */
	struct list paused;		       /* msg_out.link (end.h) */

	struct lnet_holdings has; /* what came through 0@lo */
	struct lnet_holdings has_all;
	uint64_t arrivals; /* numbers msg_in.arrival */
	struct hold holds[LNET_PORTALS];
	struct router router;
	struct list parked; /* msg_in.out.link (park.h) */
	struct work unpark;
	bool unparking; /* @unpark is under way */
	uint64_t unpark_round;
	struct timer park_timer; /* armed while some are parked */
};

static inline struct msg_cpt *msg_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct msg_cpt, path.peer.portal.cpt);
}

/* The peer NI's holdings that @msg counts in, and whose share it uses. */
static inline struct lnet_holdings *in_quota(const struct msg_in *msg)
{
	return msg->sender ? &msg->sender->has : &msg_cpt(msg->out.home)->has;
}

/* What operations and messages do for portals. */
extern const struct portal_users msgs_users;

void msgs_init(struct lnet_cpt *cpt);
void msgs_fini(struct lnet_cpt *cpt);

/* As lnd_upcalls has them; parse.c's, credit.c's and msgs.c's. */
int upcall_parse(struct lnd_ni *lnd, const void *bytes, size_t hdr_len,
		 const struct ulnet_id *sender, void *rx);
void upcall_finalize(struct lnd_msg *lnd, int status, enum ulnet_cause cause);
void upcall_peer_connected(struct lnd_ni *lnd, const struct ulnet_id *peer,
			   int status, enum ulnet_cause cause);
void upcall_send_again(struct lnd_msg *lnd);
void upcall_msg_header(const struct lnd_msg *lnd, void *hdr, size_t hdr_len);
uint32_t upcall_msg_asks(const struct lnd_msg *lnd);
bool upcall_msg_sink(const struct lnd_msg *lnd, const struct iovec **iov,
		     unsigned int *niov, const struct span **mem);
void upcall_msg_reply_header(const struct lnd_msg *lnd, uint32_t length,
			     void *hdr, size_t hdr_len);

/* The CPT closes: all that waits ends, operations are given up. */
void msgs_abandon(struct lnet_cpt *cpt);
/* Is there neither an operation nor a message? */
bool msgs_idle(const struct lnet_cpt *cpt);

#endif
