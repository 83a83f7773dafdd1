/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots: buffers for the requests of other nodes. This file serves the requests
 * of brw and ping tests, passes other requests to frame.c, and sends replies. A
 * request that finds no slot waits in LNet, because the portals are lazy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lst_priv.h"

/* us: time-out for bulk data and replies. Less than the 64 s for which
 * requesters wait. */
#define BULK_US	    UINT64_C(30000000)
#define REPOST_NS   UINT64_C(10000000)
#define FRAME_SLOTS 8 /* slots for each kind of framework request */

static void slot_on_request(struct lst_md *md);

static int slot_post(struct lst_slot *slot)
{
	enum lst_service service = slot->service;
	bool test = service == LST_SERVICE_BRW || service == LST_SERVICE_PING;
	struct lst_address at = {
		.node = slot->cpt->lst->node,
		.peer = { LNET_NID_ANY, LNET_PID_ANY },
		.portal = test ? LST_PORTAL_TEST : LST_PORTAL_FRAME,
		.bits = service,
	};

	slot->request.done = slot_on_request;
	return lst_md_expect(&slot->request, &at, LNET_MD_OP_PUT, slot->in,
			     sizeof(slot->in));
}

/* Posts a slot that is free again. If that fails, the timer tries again. */
static void slot_repost(struct lst_slot *slot)
{
	struct lst_cpt *cpt = slot->cpt;

	if (cpt->closing || slot_post(slot) == 0)
		return;
	slot->next = cpt->unposted;
	cpt->unposted = slot;
	if (!lnet_timer_armed(&cpt->repost))
		lnet_timer_arm(cpt->lst->node, cpt->index, &cpt->repost,
			       lnet_now(cpt->lst->node, cpt->index) +
				       REPOST_NS);
}

static void on_repost(struct ulnet_timer *timer)
{
	struct lst_cpt *cpt = LST_OF(timer, struct lst_cpt, repost);
	struct lst_slot *slot = cpt->unposted, *next;

	cpt->unposted = NULL;
	for (; slot; slot = next) {
		next = slot->next;
		slot_repost(slot);
	}
}

void lst_slot_drop(struct lst_slot *slot)
{
	atomic_fetch_add(&slot->cpt->lst->dropped, 1);
	slot_repost(slot);
}

/* ---- what is sent and fetched for a request ---- */

static void count_error(struct lst_slot *slot, int status)
{
	if (status != -ECANCELED && status != -ESHUTDOWN)
		atomic_fetch_add(&slot->cpt->lst->errors, 1);
}

static struct lst_address slot_address(const struct lst_slot *slot,
				       uint64_t bits)
{
	return (struct lst_address){ .node = slot->cpt->lst->node,
				     .self = slot->request.self,
				     .peer = slot->request.peer,
				     .portal = LST_PORTAL_REPLY,
				     .bits = bits,
				     .timeout = BULK_US };
}

static void slot_on_replied(struct lst_md *md)
{
	struct lst_slot *slot = LST_OF(md, struct lst_slot, reply);

	if (!md->status) {
		slot_repost(slot);
		return;
	}
	count_error(slot, md->status);
	lst_slot_drop(slot);
}

void lst_slot_reply(struct lst_slot *slot, struct lst_msg *reply)
{
	struct lst_address to = slot_address(slot, slot->msg.reply_id);

	reply->type = slot->msg.type + 1;
	slot->reply.done = slot_on_replied;
	if (lst_msg_encode(reply, slot->out) ||
	    lst_md_put(&slot->reply, &to, slot->out, sizeof(slot->out)))
		lst_slot_drop(slot);
}

static void slot_memory_free(struct lst_slot *slot)
{
	if (slot->memory_size)
		munmap(slot->memory, slot->memory_size);
	slot->memory_size = 0;
}

static int slot_memory(struct lst_slot *slot, uint32_t length)
{
	void *memory;

	slot->length = length;
	slot->used = true;
	if (length <= slot->memory_size)
		return 0;
	slot_memory_free(slot);
	/* Pages of its own, which go back to the system when they are freed;
	 * they are zeroed, because less data may come. */
	memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	slot->memory = memory;
	slot->memory_size = length;
	lst_watch(slot->cpt);
	return 0;
}

bool lst_slots_tick(struct lst_cpt *cpt)
{
	bool any = false;

	for (unsigned int i = 0; i < cpt->nslots; i++) {
		struct lst_slot *slot = &cpt->slots[i];

		if (!slot->used && !slot->bulk.busy)
			slot_memory_free(slot);
		slot->used = false;
		any |= slot->memory_size > 0;
	}
	return any;
}

int lst_slot_fetch(struct lst_slot *slot, uint32_t length,
		   void (*done)(struct lst_md *md))
{
	struct lst_address from = slot_address(slot, slot->msg.bulk_id);
	int rc = slot_memory(slot, length);

	slot->bulk.done = done;
	return rc ? rc : lst_md_get(&slot->bulk, &from, slot->memory, length);
}

/* ---- ping ---- */

static void ping_serve(struct lst_slot *slot)
{
	const struct lst_msg *msg = &slot->msg;
	struct lst_msg reply = { .features = msg->features };

	if (msg->ping.magic != LST_PING_MAGIC) {
		lst_slot_drop(slot);
		return;
	}
	if (msg->features & ~LST_BYTES) {
		reply.features = LST_BYTES;
		reply.status = EPROTO;
	} else if (!lst_serves_tests(slot->cpt->lst)) {
		reply.status = ESRCH;
	}
	reply.ping.magic = LST_PING_MAGIC;
	reply.ping.sequence = msg->ping.sequence;
	lst_slot_reply(slot, &reply);
}

/* ---- brw ---- */

static void brw_reply(struct lst_slot *slot, uint32_t status)
{
	struct lst_msg reply = { .features = slot->msg.features,
				 .status = status };

	if (status == EPROTO)
		reply.features = LST_BYTES;
	lst_slot_reply(slot, &reply);
}

static void brw_on_written(struct lst_md *md)
{
	struct lst_slot *slot = LST_OF(md, struct lst_slot, bulk);
	const struct lst_msg *msg = &slot->msg;

	if (md->status || md->length != slot->length) {
		count_error(slot, md->status);
		lst_slot_drop(slot);
		return;
	}
	atomic_fetch_add(&slot->cpt->lst->bulk_got, slot->length);
	brw_reply(slot,
		  lst_data_good(slot->memory, slot->length, 0,
				(enum lst_check)msg->brw.flags, msg->swapped)
			  ? 0
			  : EBADMSG);
}

static void brw_on_read(struct lst_md *md)
{
	struct lst_slot *slot = LST_OF(md, struct lst_slot, bulk);

	if (md->status) {
		count_error(slot, md->status);
		lst_slot_drop(slot);
		return;
	}
	atomic_fetch_add(&slot->cpt->lst->bulk_put, slot->length);
	brw_reply(slot, 0);
}

static int brw_write(struct lst_slot *slot)
{
	const struct lst_brw_params *brw = &slot->msg.brw;
	int rc = slot_memory(slot, brw->length);

	if (rc)
		return rc;
	lst_data_poison(slot->memory, brw->length, 0,
			(enum lst_check)brw->flags);
	return lst_slot_fetch(slot, brw->length, brw_on_written);
}

static int brw_read(struct lst_slot *slot)
{
	const struct lst_brw_params *brw = &slot->msg.brw;
	struct lst_address to = slot_address(slot, slot->msg.bulk_id);
	int rc = slot_memory(slot, brw->length);

	if (rc)
		return rc;
	lst_data_fill(slot->memory, brw->length, 0, (enum lst_check)brw->flags);
	slot->bulk.done = brw_on_read;
	return lst_md_put(&slot->bulk, &to, slot->memory, brw->length);
}

static uint32_t brw_check(const struct lst *lst, const struct lst_msg *msg)
{
	if (msg->features & ~LST_BYTES)
		return EPROTO;
	if (!lst_serves_tests(lst))
		return ESRCH;
	if (!lst_data_valid(msg->brw.opcode, msg->brw.flags, msg->brw.length))
		return EINVAL;
	if (!(msg->features & LST_BYTES) && msg->brw.length % LST_PAGE_SIZE)
		return EINVAL;
	return 0;
}

static void brw_serve(struct lst_slot *slot)
{
	uint32_t status = brw_check(slot->cpt->lst, &slot->msg);

	if (status) {
		brw_reply(slot, status);
		return;
	}
	if (slot->msg.brw.opcode == LST_WRITE ? brw_write(slot)
					      : brw_read(slot))
		lst_slot_drop(slot);
}

/* ---- requests ---- */

/* Answers a request of another version of the protocol. Its sender looks only
 * at the status and the session. */
static void slot_refuse(struct lst_slot *slot)
{
	const struct lst *lst = slot->cpt->lst;
	struct lst_msg reply = { .features = LST_BYTES,
				 .status = EPROTO,
				 .session = LST_SESSION_NONE };

	if (slot->cpt->index == LST_HOME && lst->session)
		reply.session = lst->session->id;
	lst_slot_reply(slot, &reply);
}

static void slot_serve(struct lst_slot *slot)
{
	int rc = lst_msg_decode(&slot->msg, slot->in, slot->request.length);

	atomic_fetch_add(&slot->cpt->lst->received, 1);
	if ((rc && rc != -EPROTONOSUPPORT) ||
	    lst_msg_is_reply(slot->msg.type) ||
	    lst_request_bits(slot->msg.type) != slot->service)
		lst_slot_drop(slot);
	else if (rc)
		slot_refuse(slot);
	else if (slot->service == LST_SERVICE_PING)
		ping_serve(slot);
	else if (slot->service == LST_SERVICE_BRW)
		brw_serve(slot);
	else
		lst_frame_serve(slot);
}

static void slot_on_request(struct lst_md *md)
{
	struct lst_slot *slot = LST_OF(md, struct lst_slot, request);

	if (slot->cpt->closing)
		return;
	if (!md->status)
		slot_serve(slot);
	else
		slot_repost(slot);
}

/* ---- the beginning and the end ---- */

/* There are several slots for each kind of request, so that one that waits for
 * its list of destinations does not hold up others of its kind. */
static const struct {
	enum lst_service service;
	unsigned int slots;
	bool home; /* these requests are served on LST_HOME only */
} kinds[] = {
	{ LST_SERVICE_PING, LST_SLOTS, false },
	{ LST_SERVICE_BRW, LST_SLOTS, false },
	{ LST_SERVICE_DEBUG, FRAME_SLOTS, true },
	{ LST_SERVICE_MAKE, FRAME_SLOTS, true },
	{ LST_SERVICE_REMOVE, FRAME_SLOTS, true },
	{ LST_SERVICE_BATCH, FRAME_SLOTS, true },
	{ LST_SERVICE_TEST, FRAME_SLOTS, true },
	{ LST_SERVICE_STAT, FRAME_SLOTS, true },
	{ LST_SERVICE_JOIN, FRAME_SLOTS, true },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Posts the next @n of cpt->slots, for @service. Returns 0 or -errno. */
static int slots_add(struct lst_cpt *cpt, enum lst_service service,
		     unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct lst_slot *slot = &cpt->slots[cpt->nslots];
		int rc;

		slot->cpt = cpt;
		slot->service = service;
		rc = slot_post(slot);
		if (rc)
			return rc;
		cpt->nslots++;
	}
	return 0;
}

void lst_slots_init(struct lst_cpt *cpt)
{
	lnet_timer_init(&cpt->repost, on_repost);
}

int lst_slots_open(struct lst_cpt *cpt)
{
	unsigned int n = 0;
	int rc = 0;

	for (unsigned int i = 0; i < KINDS; i++)
		n += kinds[i].slots;
	cpt->slots = calloc(n, sizeof(*cpt->slots));
	if (!cpt->slots)
		return -ENOMEM;
	for (unsigned int i = 0; i < KINDS && !rc; i++)
		if (!kinds[i].home || cpt->index == LST_HOME)
			rc = slots_add(cpt, kinds[i].service, kinds[i].slots);
	return rc;
}

void lst_slots_close(struct lst_cpt *cpt)
{
	cpt->closing = true;
	cpt->unposted = NULL;
	lnet_timer_cancel(cpt->lst->node, cpt->index, &cpt->repost);
}

void lst_slots_free(struct lst_cpt *cpt)
{
	for (unsigned int i = 0; i < cpt->nslots; i++)
		slot_memory_free(&cpt->slots[i]);
	free(cpt->slots);
}
