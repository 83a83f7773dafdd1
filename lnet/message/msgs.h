/* SPDX-License-Identifier: BSD-3-Clause */
/* What the messages and operations of a CPT have in common. */
#ifndef LNET_MSGS_H
#define LNET_MSGS_H

#include "lnd/lnd.h"
#include "lnet/message/forward.h"
#include "lnet/message/unexpected.h"
#include "lnet/message/in.h"
#include "lnet/path/path.h"

/* What fault rules (lnet/fault/) do to messages. Each function returns whether
 * it has taken the message. On the CPT of the message. */
struct msg_faults {
	/* @msg has come in and was admitted, but not handled yet. */
	bool (*arrive)(struct msg_in *msg);
	/* @msg is about to go out, and has its path. Not for 0@lo. */
	bool (*depart)(struct msg_out *msg);
	/* @msg is a GET, whose REPLY has a payload but no path, and is about to
	 * be given to the LND as the answer (in_answer()), so that depart() is
	 * not called. If taken, request_send_reply() or request_cancel_reply()
	 * follows. */
	bool (*answer)(struct msg_in *msg);
};

struct msg_cpt {
	struct path_cpt path;
	struct id_table ops;
	struct pool msg_pool, op_pool, query_pool;
	/* Of msg_out.active: all messages, in msg_in or lnet_op. */
	struct list active_in, active_out;
	struct list refunds; /* of msg_out.lnd.link: messages about to return
			      * their credits (credit.c) */
	bool refunding;	     /* credits are being returned */
	struct msg_in *receiving; /* being given to recv() just now */
	uint64_t next_complaint;  /* ns: no log entry on bad headers before */

	const struct msg_discovery *discovery; /* NULL: it is off (out.h) */
	const struct msg_faults *faults;       /* NULL: no rules */
	struct list delayed_in, delayed_out;   /* of msg_out.link */
	struct list paused;		       /* of msg_out.link (end.h) */

	struct lnet_quota has;	   /* of messages through 0@lo */
	struct lnet_quota has_all; /* of all messages */
	uint64_t arrivals;	   /* numbers msg_in.arrival */
	struct unexpected_queue unexpected[LNET_PORTALS];
	struct router router;
	struct list throttled; /* of msg_in.out.link (throttle.h) */
	struct work unthrottle;
	bool unthrottling; /* @unthrottle is under way */
	uint64_t unthrottle_round;
	struct timer throttle_timer; /* armed unless @throttled is empty */
};

static inline struct msg_cpt *msg_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct msg_cpt, path.peer.portal.cpt);
}

/* The quota in which @msg counts: that of its sender. */
static inline struct lnet_quota *in_quota(const struct msg_in *msg)
{
	return msg->sender ? &msg->sender->has : &msg_cpt(msg->out.home)->has;
}

extern const struct portal_users msgs_users;

void msgs_init(struct lnet_cpt *cpt);
void msgs_fini(struct lnet_cpt *cpt);

/* As lnd_upcalls has them; in parse.c, credit.c and msgs.c. */
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

/* @cpt closes: ends all messages that wait, and all operations. */
void msgs_abandon(struct lnet_cpt *cpt);
/* Has @cpt neither an operation nor a message? */
bool msgs_idle(const struct lnet_cpt *cpt);

#endif
