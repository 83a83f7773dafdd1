/* SPDX-License-Identifier: BSD-3-Clause */
/* What the messages and operations of a CPT have in common. */
#ifndef LNET_MSGS_H
#define LNET_MSGS_H

#include "lnd/lnd.h"
#include "lnet/message/forward.h"
#include "lnet/message/unexpected.h"
#include "lnet/message/in.h"
#include "lnet/path/path.h"

/* The functions of fault rules (lnet/fault/), called on the CPT of the message.
 * Each returns whether it has taken over the message. */
struct msg_faults {
	/* @msg has come in and was admitted, but has not been handled yet. */
	bool (*arrive)(struct msg_in *msg);
	/* @msg is about to be sent, and has its path. Not called for 0@lo. */
	bool (*depart)(struct msg_out *msg);
	/* @msg is a GET. Its REPLY has a payload but no path, and is about to
	 * be given to the LND as the answer (in_answer()), so depart() is not
	 * called for it. If this function takes @msg over, it later calls
	 * request_send_reply() or request_cancel_reply(). */
	bool (*answer)(struct msg_in *msg);
};

struct msg_cpt {
	struct path_cpt path;
	struct id_table ops; /* operations that are answered */
	uint64_t op_numbers; /* the last number of another operation */
	struct pool msg_pool, op_pool, query_pool;
	/* Of msg_out.active: all messages. Those in active_in are part of a
	 * msg_in, those in active_out are not. */
	struct list active_in, active_out;
	/* of msg_out.lnd.link: messages that are about to return their credits
	 * (credit.c) */
	struct list refunds;
	bool refunding; /* credits are being returned */
	/* the message that is being given to the LND's recv() */
	struct msg_in *receiving;
	/* ns: until this time no bad header is logged */
	uint64_t next_complaint;

	/* NULL: discovery is off (out.h) */
	const struct msg_discovery *discovery;
	/* NULL: the node has no fault rules */
	const struct msg_faults *faults;
	/* of msg_out.link: messages that a fault rule delays */
	struct list delayed_in, delayed_out;
	/* of msg_out.link: messages that pause before another attempt (end.h)
	 */
	struct list paused;

	/* what messages through 0@lo use of the shares */
	struct lnet_quota has;
	/* what all messages together use of the shares */
	struct lnet_quota has_all;
	struct unexpected_queue unexpected[LNET_PORTALS];
	struct router router;
	/* of msg_in.out.link: throttled messages (throttle.h) */
	struct list throttled;
	struct work unthrottle;
	bool unthrottling; /* @unthrottle has been scheduled */
	uint64_t unthrottle_round;
	/* armed as long as @throttled is not empty */
	struct timer throttle_timer;
};

static inline struct msg_cpt *msg_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct msg_cpt, path.peer.portal.cpt);
}

/* Returns the quota in which @msg is counted: that of its sender. */
static inline struct lnet_quota *in_quota(const struct msg_in *msg)
{
	return msg->sender ? &msg->sender->has : &msg_cpt(msg->out.home)->has;
}

extern const struct portal_users msgs_users;

void msgs_init(struct lnet_cpt *cpt);
void msgs_fini(struct lnet_cpt *cpt);

/* Functions of lnd_upcalls; they are in parse.c, take.c, credit.c and msgs.c.
 */
int upcall_parse(struct lnd_ni *lnd, const void *bytes, size_t hdr_len,
		 const struct ulnet_id *sender, void *rx);
bool upcall_take(struct lnd_ni *lnd, const void *bytes, size_t hdr_len,
		 const struct ulnet_id *sender, void *rx, const void *payload);
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

/* Ends all waiting messages, and all operations, because @cpt closes. */
void msgs_abandon(struct lnet_cpt *cpt);
/* Does @cpt have no operations and no messages? */
bool msgs_idle(const struct lnet_cpt *cpt);

#endif
