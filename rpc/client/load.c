/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/load.h"

#include <errno.h>

#include "rpc/bulk/bulk.h"
#include "rpc/bulk/seal.h"
#include "rpc/bulk/transfer.h"
#include "rpc/client/batch.h"
#include "rpc/client/bulks.h"
#include "rpc/client/client.h"
#include "rpc/client/lent.h"
#include "rpc/client/naming.h"
#include "rpc/flavour.h"

/* If so many bytes of bodies wait, and no call is in flight, half of the calls
 * go in a first message, which the server serves while this node copies the
 * rest. */
#define HALF_MIN 32768
/* Bytes of all replies to a batch, at most, unless one call needs more. */
#define REPLIES_MAX (UINT32_C(1) << 20)
/* Bytes in a reply for a sink with checksums, and for each of its segments. */
#define MOVED_BOUND	 32
#define MOVED_EACH_BOUND 10

/* Returns how many bytes a reply to @call may have, in a message of its own. */
static uint32_t reply_need(const struct ulrpc_call *call,
			   const struct wire_segments *segments)
{
	uint32_t need = WIRE_REPLIES_BOUND + WIRE_REPLY_BOUND +
			WIRE_CHECKSUM_BOUND + WIRE_BODIES_BOUND +
			call->reply_max;

	for (unsigned int i = 0; i < call->nbulks; i++)
		if (segments[i].protection)
			need += MOVED_BOUND +
				(MOVED_EACH_BOUND + WIRE_SEAL) * segments[i].n;
		else if (segments[i].checked)
			need += MOVED_BOUND + MOVED_EACH_BOUND * segments[i].n;
	return need;
}

static struct ulrpc_call *load_peek(struct ulrpc_client *c)
{
	if (unlikely(!list_empty(&c->again)))
		return list_first(&c->again, struct ulrpc_call, link);
	if (list_empty(&c->queue))
		return NULL;
	return list_first(&c->queue, struct ulrpc_call, link);
}

/* Seals a slice of the bulks of @call, if its flavour wants that and it was not
 * done before, for example because there was no connection when the call was
 * made. Returns 0; -EINPROGRESS: not all is sealed yet; -EAGAIN: there are no
 * keys, or a bulk is still in use by an earlier message that could not be sent.
 */
static int load_cover(struct ulrpc_call *call)
{
	bool seals = flavour_protection(call->client->flavour);
	uint64_t left = SEAL_SLICE;
	int rc = -EAGAIN;

	if (seals ? !bulks_busy(call) : !bulks_fenced(call))
		rc = bulks_cover(call, &left);
	return rc > 0 ? 0 : rc ? rc : -EINPROGRESS;
}

/* Describes the bulks of @call in l->segments, and sets *@head to the bytes
 * that the call may take in the head of the message. Returns 0; an error of
 * load_cover(); or -EMSGSIZE. */
static int load_head(struct load *l, struct ulrpc_call *call, size_t *head)
{
	struct wire_call w = {
		.bulks = { .n = call->nbulks,
			   .list = &l->segments[l->nsegments] },
		.trace = call_trace_view(call),
	};
	int rc = 0;

	if (call->flags & WIRE_CALL_ANNEX && !l->client->imp->annexes)
		return -EMSGSIZE;
	if (call->flags & CALL_LENT) {
		if (call_size(call) > l->client->request_limit)
			return -EMSGSIZE;
		call->flags &= (uint8_t)~CALL_NAMED;
	} else if (call->flags & WIRE_CALL_ANNEX) {
		naming_choose(l->client->imp, call);
	}
	if (call->nbulks)
		rc = bulks_sealed(call) > TRANSFERS_SEALED_MAX
			     ? -EMSGSIZE
			     : load_cover(call);
	if (rc)
		return rc;
	for (unsigned int i = 0; i < call->nbulks; i++)
		bulk_describe(call->bulks[i], &l->segments[l->nsegments + i]);
	*head = wire_call_bound(&w);
	return 0;
}

/* Attaches the bulks of @call. Returns 0 or -errno. */
static int load_bulks(struct load *l, struct ulrpc_call *call)
{
	struct ulrpc_client *c = l->client;

	for (unsigned int i = 0; i < call->nbulks; i++) {
		int rc = bulk_attach(call->bulks[i], c->shard,
				     import_target(c->imp), &c->imp->heard,
				     &l->segments[l->nsegments + i]);

		if (!rc)
			continue;
		while (i--)
			bulk_detach(call->bulks[i]);
		return rc;
	}
	return 0;
}

/* Has the message room for the fragments and bulks of @call, which has bulks or
 * a borrowed body? */
static bool load_has_room(const struct load *l, const struct ulrpc_call *call)
{
	return l->niov + 2 <= LNET_MAX_IOV - 1 &&
	       l->nsegments + call->nbulks <= LOAD_BULKS_MAX &&
	       (!call->nbulks ||
		l->head + ULRPC_BULKS_MAX * 64 <= WIRE_HEAD_MAX / 2);
}

/* Notes that the body of @call is not just copied. */
static void load_apart(struct load *l, struct ulrpc_call *call)
{
	l->apart = true;
	if (!load_borrows(call))
		return;
	l->niov += 2;
	l->borrowed += load_body(call).length;
}

/* Adds @call to the message. Returns 1: it is added; 0: this message has no
 * room for it; -EMSGSIZE: no message has room for it; other -errno: its bulks
 * cannot be attached. */
static int load_add(struct load *l, struct ulrpc_call *call)
{
	struct ulrpc_client *c = l->client;
	size_t head = WIRE_CALL_BOUND;
	uint32_t length = call->length;
	int rc;

	if (l->n && (l->need + call->reply_max > REPLIES_MAX ||
		     (unlikely(call->nbulks || load_borrows(call)) &&
		      !load_has_room(l, call))))
		return 0;
	if (unlikely(call->nbulks ||
		     call->flags & (CALL_TRACED | WIRE_CALL_ANNEX))) {
		rc = load_head(l, call, &head);
		if (rc)
			return rc;
		length = call_sent_length(call);
	}
	head += l->head;
	if (head > WIRE_HEAD_MAX || head + l->bodies + length > c->message_max)
		return l->n ? 0 : -EMSGSIZE;
	call->reply_need =
		c->sealed_room + reply_need(call, &l->segments[l->nsegments]);
	if (unlikely(call->nbulks)) {
		rc = load_bulks(l, call);
		if (rc)
			return rc;
		l->nsegments += call->nbulks;
	}
	if (likely(call->slot == SLOT_NONE))
		l->slots--;
	else
		l->nagain++;
	l->head = head;
	l->bodies += length;
	l->need += call->reply_need;
	l->until = MAX(l->until, call->deadline);
	if (unlikely(load_borrows(call) || call->flags & CALL_NAMED))
		load_apart(l, call);
	if (unlikely(call->flags & WIRE_CALL_ANNEX))
		naming_chosen(c->imp, call);
	list_del(&call->link);
	l->calls[l->n++] = call;
	return 1;
}

/* Are @n calls in @l enough for a first half (HALF_MIN)? */
static bool load_is_half(const struct load *l, unsigned int n)
{
	return l->bodies >= HALF_MIN && l->n >= n - l->n &&
	       l->client->inflight == 0;
}

/* Does LNet still send the body of @call, from its memory, in a message that
 * waits for no reply any more? Looks through all messages of the CPT. */
static bool body_is_borrowed(const struct ulrpc_call *call)
{
	const struct batch *p;

	list_for_each_entry (p, &call->shard->imports->batches, all)
		for (unsigned int i = 0; i < p->n && p->nborrowed; i++)
			if (!p->record && p->entries[i].borrowed == call)
				return true;
	return false;
}

/* Makes the body of @call, which the service takes no longer in a message, one
 * that is lent. Returns what lent_instead() returns; or -EAGAIN: LNet has not
 * finished with what lent_instead() overwrites. */
static out_of_line int load_lend(struct ulrpc_call *call)
{
	return body_is_borrowed(call) ? -EAGAIN : lent_instead(call);
}

int load_fill(struct load *l, unsigned int n, struct ulrpc_call **call_p)
{
	struct ulrpc_client *c = l->client;
	struct ulrpc_call *call;

	while (l->n < n && !load_is_half(l, n) && (call = load_peek(c))) {
		int rc;

		if (unlikely(call->alone && l->n))
			return 0;
		if (unlikely(!l->slots) && call->slot == SLOT_NONE) {
			c->imp->slots.wanted = true;
			return 0;
		}
		if (likely(call->length <= c->request_max))
			rc = load_add(l, call);
		else
			rc = load_lend(call);
		if (unlikely(rc < 0)) {
			*call_p = call;
			return rc;
		}
		if (rc == 0 || unlikely(call->alone))
			return 0;
	}
	return 0;
}

void load_fill_queries(struct load *l)
{
	struct ulrpc_call *call;

	list_for_each_entry (call, &l->client->ask, link) {
		if (l->n == WIRE_CALLS_MAX ||
		    (l->n && l->need + call->reply_need > REPLIES_MAX) ||
		    l->head + WIRE_CALL_BOUND > WIRE_HEAD_MAX)
			return;
		l->head += WIRE_CALL_BOUND;
		l->need += call->reply_need;
		l->until = MAX(l->until, call->deadline);
		l->nsegments += call->nbulks;
		l->calls[l->n++] = call;
	}
}
