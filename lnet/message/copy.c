/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/copy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/iov.h"
#include "base/share.h"
#include "lnet/message/credit.h"
#include "lnet/message/end.h"
#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/net/net.h"

struct msg_copy {
	bool again;
	/* What the message had before: */
	const struct iovec *iov;
	unsigned int niov;
	const struct span *mem;
	uint32_t offset;
	struct iovec own;
	uint8_t data[];
};

/* What a copy of @msg takes, bytes. */
static uint64_t copy_size(const struct lnet_msg *msg)
{
	return sizeof(struct msg_copy) + msg->lnd.length;
}

/* The peer NI that it goes to. */
static struct lnet_peer_ni *copy_party(const struct lnet_msg *msg)
{
	return msg->lpni ? msg->lpni : msg->sender;
}

static void copy_count(struct lnet_msg *msg, uint64_t bytes)
{
	copy_party(msg)->has.copied_bytes += bytes;
	msg_cpt(msg->cpt)->has_all.copied_bytes += bytes;
}

static void copy_lend(struct lnet_msg *msg, struct msg_copy *copy)
{
	msg->copy = copy;
	msg->lnd.iov = &copy->own;
	msg->lnd.niov = 1;
	msg->lnd.mem = NULL;
	msg->lnd.offset = 0;
}

bool copy_make(struct lnet_msg *msg)
{
	const struct lnet_cpt *cpt = msg->cpt;
	uint64_t size = copy_size(msg);
	struct msg_copy *copy;

	if (!share_allows(copy_party(msg)->has.copied_bytes,
			  msg_cpt(cpt)->has_all.copied_bytes,
			  cpt->node->conf.lazy_bytes_max, size))
		return false;
	copy = malloc(size);
	if (!copy)
		return false;
	copy->again = false;
	copy->iov = msg->lnd.iov;
	copy->niov = msg->lnd.niov;
	copy->mem = msg->lnd.mem;
	copy->offset = msg->lnd.offset;
	copy->own = (struct iovec){ copy->data, msg->lnd.length };
	iov_gather(copy->data, copy->iov, copy->niov, copy->offset,
		   msg->lnd.length);
	copy_lend(msg, copy);
	copy_count(msg, size);
	return true;
}

void copy_flip(struct lnet_msg *msg, uint64_t bit)
{
	bit %= UINT64_C(8) * msg->lnd.length;
	msg->copy->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

void copy_again(struct lnet_msg *msg)
{
	msg->copy->again = true;
}

static void copy_go(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	struct lnet_cpt *cpt = msg->cpt;

	if (cpt->closing || msg->ni->cpt[cpt->index].stopped) {
		msg_finalize(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
		return;
	}
	loop_timer_arm(cpt->loop, &msg->timer, msg->lnd.deadline);
	credit_take(msg);
}

/* A message of nobody's, which takes the copy of @msg and goes the same way.
 * NULL: all messages are in use. */
static struct lnet_msg *copy_twin(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct lnet_msg *twin = msg_new(cpt, MSG_AGAIN_OUT);

	if (!twin)
		return NULL;
	twin->done = msg_free_work;
	twin->hdr = msg->hdr;
	twin->flags = MSG_ONCE;
	twin->want_ni = msg->want_ni;
	twin->ni = msg->ni;
	ni_ref(twin->ni, cpt->index);
	twin->lpni = msg->lpni;
	peer_ref(twin->lpni);
	twin->lnd.cpt = cpt->index;
	twin->lnd.next_hop = msg->lnd.next_hop;
	twin->lnd.next_pid = msg->lnd.next_pid;
	twin->lnd.length = msg->lnd.length;
	twin->target = msg->target;
	twin->deadline = msg->deadline;
	twin->lnd.deadline = msg->deadline;
	return twin;
}

static bool copy_send(struct lnet_msg *msg)
{
	struct msg_copy *copy = msg->copy;
	struct lnet_msg *twin = copy_twin(msg);

	if (!twin) {
		cpt_stat(msg->cpt, STAT_faults_skipped);
		return false;
	}
	copy->again = false;
	copy_lend(twin, copy);
	twin->work.fn = copy_go;
	loop_defer(twin->cpt->loop, &twin->work);
	return true;
}

void copy_end(struct lnet_msg *msg, bool sent)
{
	struct msg_copy *copy = msg->copy;

	msg->lnd.iov = copy->iov;
	msg->lnd.niov = copy->niov;
	msg->lnd.mem = copy->mem;
	msg->lnd.offset = copy->offset;
	if (!sent || !copy->again || !copy_send(msg)) {
		copy_count(msg, -copy_size(msg));
		free(copy);
	}
	msg->copy = NULL;
}
