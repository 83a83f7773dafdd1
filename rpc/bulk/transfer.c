/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers, as users of transfer.h see them: how they begin, threads that wait
 * for them, later attempts of the call, losses of connections, cancellation.
 * How bytes are moved is in chunk.c. */
#include "rpc/bulk/transfer_priv.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "rpc/bulk/bulk.h"
#include "rpc/stats/stat.h"

/* ---- beginning ---- */

static void transfer_begin(struct transfer *x)
{
	struct transfers *t = x->t;
	uint64_t now = shard_now(t->conf.shard);
	int rc = t->aborted;

	if (list_empty(&t->active))
		t->since = now;
	list_add_tail(&t->active, &x->link);
	if (t->conf.busy && !t->aborted && list_empty(&t->link))
		list_add_tail(t->conf.busy, &t->link);
	shard_hold(t->conf.shard);
	if (!rc && transfer_is_canceled(x))
		rc = -ECANCELED;
	if (!rc && x->crc)
		rc = transfer_sum_begin(x);
	if (!rc && t->conf.deadline <= now)
		rc = -ETIMEDOUT;
	x->status = rc;
	x->deadline = rpc_at(now, x->timeout);
	transfer_arm(x);
	transfer_go(x);
}

static void transfer_begin_posted(struct ulnet_work *w)
{
	struct transfer *x = container_of(w, struct transfer, work);
	struct shard *s = x->t->conf.shard;

	transfer_begin(x);
	shard_taken(s);
}

/* Copies the fragments that are not empty. */
static void span_set_iov(struct span *s, const struct iovec *iov,
			 unsigned int niov)
{
	for (unsigned int i = 0; i < niov; i++)
		if (iov[i].iov_len)
			s->iov[s->niov++] = iov[i];
}

/* Sets the place in the segments where @s begins. Returns how many segments the
 * span touches. */
static unsigned int span_set_offset(struct span *s, uint64_t offset)
{
	uint64_t end;
	unsigned int n = 0;

	while (s->segment < s->nsegments && offset >= s->lengths[s->segment])
		offset -= s->lengths[s->segment++];
	s->in_segment = (uint32_t)offset;
	end = offset + s->length;
	for (unsigned int i = s->segment; s->length && i < s->nsegments; i++) {
		n++;
		if (end <= s->lengths[i])
			break;
		end -= s->lengths[i];
	}
	return n;
}

static struct transfer *transfer_alloc(struct transfers *t, struct remote *r,
				       uint64_t offset, uint64_t length,
				       unsigned int niov)
{
	struct transfer like = { .t = t,
				 .r = r,
				 .span = { .length = length,
					   .lengths = r->lengths,
					   .nsegments = r->n } };
	unsigned int segments = span_set_offset(&like.span, offset);
	/* Each chunk ends a segment, or has as many fragments as an MD may
	 * have. */
	uint64_t chunks = segments + (uint64_t)niov / LNET_MAX_IOV;
	uint64_t timeout = atomic_load(&r->timeout);
	size_t at, iov_at;
	struct transfer *x;

	chunks = MIN(chunks, t->conf.window);
	iov_at = sizeof(*x) + chunks * sizeof(x->chunks[0]);
	at = iov_at + niov * sizeof(struct iovec);
	x = malloc(at + segments * sizeof(uint32_t));
	if (!x)
		return NULL;
	memset(x, 0, iov_at);
	*x = like;
	x->low = UINT64_MAX;
	x->timeout = timeout ? rpc_ns(timeout) : TIME_NEVER;
	x->cancels = atomic_load(&r->cancels);
	x->nchunks = (unsigned int)chunks;
	x->span.iov = (struct iovec *)((char *)x + iov_at);
	if (remote_is_proved(r) && r->access == ULRPC_BULK_SOURCE)
		x->left = (uint32_t *)((char *)x + at);
	else if (remote_is_proved(r))
		x->crc = (uint32_t *)((char *)x + at);
	x->sweep = x->starved = TIME_NEVER;
	x->next = cursor_begin(&x->span);
	list_init(&x->link);
	list_init(&x->slice);
	lnet_timer_init(&x->timer, transfer_on_timer);
	return x;
}

/* Returns how many bytes the first segment of the @length bytes at @offset has
 * in front of them, and how many the last one has behind them. */
static void margins(const struct remote *r, uint64_t offset, uint64_t length,
		    uint32_t *before, uint32_t *after)
{
	uint64_t at = 0;
	unsigned int i = 0;

	while (at + r->lengths[i] <= offset)
		at += r->lengths[i++];
	*before = (uint32_t)(offset - at);
	while (at + r->lengths[i] < offset + length)
		at += r->lengths[i++];
	*after = (uint32_t)(at + r->lengths[i] - (offset + length));
}

/* Sets the memory of @x: @iov, and around it room for the bytes that are not
 * wanted. The owner takes the memory for these later (transfer_seal_pause()).
 */
static void transfer_set_iov(struct transfer *x, const struct iovec *iov,
			     unsigned int niov)
{
	const struct iovec rest[2] = { { NULL, x->skip }, { NULL, x->after } };

	span_set_iov(&x->span, rest, 1);
	span_set_iov(&x->span, iov, niov);
	span_set_iov(&x->span, rest + 1, 1);
}

/* Does what transfer_start() does, for any bulk. */
static int start_any(struct transfers *t, struct remote *r,
		     enum ulrpc_bulk_access access, uint64_t offset,
		     const struct iovec *iov, unsigned int niov,
		     ulrpc_bulk_fn done, void *arg)
{
	uint32_t before = 0, after = 0;
	struct transfer *x;
	uint64_t length;
	int rc;

	if (r->access != access)
		return -EACCES;
	rc = iov_total(iov, niov, -ERANGE, &length);
	if (rc)
		return rc;
	if (!done)
		return -EINVAL;
	if (offset > r->length || length > r->length - offset)
		return -ERANGE;
	if (unlikely(r->protection) && access == ULRPC_BULK_SOURCE && length)
		margins(r, offset, length, &before, &after);
	x = transfer_alloc(t, r, offset - before, before + length + after,
			   niov + 2);
	if (!x)
		return -ENOMEM;
	x->done = done;
	x->arg = arg;
	x->skip = before;
	x->after = after;
	x->wanted = length;
	transfer_set_iov(x, iov, niov);
	if (!transfer_checkable(x)) {
		free(x);
		return -EINVAL;
	}
	transfer_sum(x, shard_owned(t->conf.shard));
	atomic_fetch_add(&t->pending, 1);
	atomic_fetch_add(&t->refs, 1);
	if (shard_owned(t->conf.shard)) {
		transfer_begin(x);
	} else {
		x->work.fn = transfer_begin_posted;
		shard_give(t->conf.shard, &x->work);
	}
	return 0;
}

int transfer_start(struct transfers *t, unsigned int index,
		   enum ulrpc_bulk_access access, uint64_t offset,
		   const struct iovec *iov, unsigned int niov,
		   ulrpc_bulk_fn done, void *arg)
{
	if (index >= transfers_count(t))
		return -ENOENT;
	return start_any(t, &t->remotes[index], access, offset, iov, niov, done,
			 arg);
}

/* ---- the body ---- */

static void on_part(void *arg, int status, uint64_t moved)
{
	(void)arg;
	(void)status;
	(void)moved;
}

int transfers_get_body(struct transfers *t, void *to)
{
	uint8_t *at = to;

	for (unsigned int i = t->n - t->nbody; i < t->n; i++) {
		struct remote *r = &t->remotes[i];
		const struct iovec iov = { at, r->length };
		int rc = start_any(t, r, ULRPC_BULK_SOURCE, 0, &iov, 1, on_part,
				   NULL);

		if (rc && !transfer_busy(t))
			return rc;
		if (rc) {
			/* Those that have begun may all have succeeded. */
			if (!t->failed)
				t->failed = rc;
			transfer_abort(t, rc);
			return 0;
		}
		at += r->length;
	}
	return 0;
}

/* ---- waiting ---- */

static void waiter_done(void *arg, int status, uint64_t moved)
{
	struct transfer_waiter *w = arg;

	(void)moved;
	/* The waiting thread may free *@w as soon as the lock is free. */
	pthread_mutex_lock(&w->lock);
	w->status = status;
	w->done = true;
	lnet_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

int transfer_wait_begin(struct transfers *t, unsigned int index,
			enum ulrpc_bulk_access access, uint64_t offset,
			const struct iovec *iov, unsigned int niov,
			struct transfer_waiter *w)
{
	int rc;

	if (t && lnet_cpt_current(t->conf.shard->node) >= 0)
		return -EDEADLK;
	*w = (struct transfer_waiter){ .lock = PTHREAD_MUTEX_INITIALIZER };
	rc = lnet_cond_init(&w->cond);
	if (rc)
		return rc;
	rc = transfer_start(t, index, access, offset, iov, niov, waiter_done,
			    w);
	if (rc)
		lnet_cond_destroy(&w->cond);
	return rc;
}

bool transfer_wait(struct transfer_waiter *w, uint64_t until)
{
	int rc = 0;
	bool more;

	pthread_mutex_lock(&w->lock);
	while (!rc && !w->done && !w->woken)
		rc = lnet_cond_wait(&w->cond, &w->lock, until);
	w->woken = false;
	more = !w->done && rc != -ECANCELED;
	pthread_mutex_unlock(&w->lock);
	return more;
}

void transfer_wait_wake(struct transfer_waiter *w)
{
	pthread_mutex_lock(&w->lock);
	w->woken = true;
	lnet_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

int transfer_wait_end(struct transfer_waiter *w)
{
	while (transfer_wait(w, TIME_NEVER))
		;
	lnet_cond_destroy(&w->cond);
	return w->done ? w->status : -ECANCELED;
}

const struct bulk_progress *transfers_progress(const struct transfers *t)
{
	return &t->progress;
}

/* ---- later attempts ---- */

/* Does @s describe the same memory as @r? */
static bool remote_is_same(const struct remote *r,
			   const struct wire_segments_in *s)
{
	uint32_t values[ULRPC_SEGMENTS_MAX];
	size_t size = r->n * sizeof(values[0]);
	bool source = s->access != WIRE_ACCESS_SINK;

	if (s->n != r->n || s->protection != r->protection ||
	    (s->access == WIRE_ACCESS_BODY) != r->body ||
	    source != (r->access == ULRPC_BULK_SOURCE) ||
	    (source && r->seals && !view_length(s->seals)) ||
	    (source ? s->has_checksums : s->checked) != r->checked)
		return false;
	wire_segments_lengths(s, values);
	if (size && memcmp(values, r->lengths, size) != 0)
		return false;
	if (!source || !r->checked)
		return true;
	wire_segments_checksums(s, values);
	return !size || memcmp(values, r->crc, size) == 0;
}

/* Repeats the chunks of @x at once, after giving up those that are under way.
 * @by_match: only those with an old match value. */
static void transfer_anew(struct transfer *x, bool by_match)
{
	for (unsigned int i = 0; i < x->nchunks; i++) {
		struct chunk *p = &x->chunks[i];

		if (by_match && p->match == x->r->match)
			continue;
		if (p->fsm.state == CHUNK_WAITING)
			p->again = shard_now(x->t->conf.shard);
		else if (p->fsm.state == CHUNK_FLYING)
			chunk_give_up(p);
	}
	transfer_arm(x);
}

void transfers_follow(struct transfers *t, const struct transfers_conf *conf)
{
	struct transfer *x;
	bool same;

	if (!t)
		return;
	same = shard_same_peer(t->conf.shard, &t->conf.peer.nid,
			       &conf->peer.nid);
	t->conf.self = conf->self;
	t->conf.peer = conf->peer;
	if (same)
		return;
	list_for_each_entry (x, &t->active, link)
		transfer_anew(x, false);
}

/* If the client has connected again, it has sealed what it lends anew, with new
 * keys. */
static void keys_refresh(struct transfers *t, const struct transfers_conf *conf)
{
	struct piece_key *seals = piece_key_ref(conf->seals);
	struct piece_key *opens = piece_key_ref(conf->opens);

	piece_key_put(t->conf.seals);
	piece_key_put(t->conf.opens);
	t->conf.seals = seals;
	t->conf.opens = opens;
}

int transfers_refresh(struct transfers *t, const struct transfers_conf *conf,
		      const struct wire_call *call)
{
	struct wire_view bulks = call->bulks.view;
	struct wire_segments_in s[ULRPC_BULKS_MAX];
	struct transfer *x;

	if (call->bulks.n != (t ? t->n : 0))
		return -EPROTO;
	for (unsigned int i = 0; i < call->bulks.n; i++)
		if (!wire_segments_next(&bulks, &s[i]) ||
		    !remote_is_same(&t->remotes[i], &s[i]))
			return -EPROTO;
	if (!t)
		return 0;
	t->conf.self = conf->self;
	t->conf.peer = conf->peer;
	t->conf.deadline = MAX(t->conf.deadline, conf->deadline);
	keys_refresh(t, conf);
	for (unsigned int i = 0; i < call->bulks.n; i++) {
		t->remotes[i].match = s[i].match;
		remote_seal_refresh(&t->remotes[i], &s[i]);
	}
	list_for_each_entry (x, &t->active, link)
		transfer_anew(x, true);
	return 0;
}

/* ---- the loss of a connection ---- */

static void transfer_on_conn_loss(struct transfer *x,
				  const struct ulnet_nid *rail, uint64_t pause)
{
	uint64_t now = shard_now(x->t->conf.shard);
	bool pending = x->sweep != TIME_NEVER;

	conn_loss_note(&x->conn_loss, rail, now, pending);
	if (pending)
		return;
	x->sweep = now + pause;
	transfer_arm(x);
}

void transfers_on_conn_loss(const struct list *busy, uint64_t rtt,
			    const struct ulnet_nid *rail)
{
	struct transfers *t;
	struct transfer *x;

	list_for_each_entry (t, busy, link) {
		uint64_t pause = conn_loss_pause(
			rtt, 0, ++t->conn_losses,
			shard_random(t->conf.shard, UINT64_MAX));

		list_for_each_entry (x, &t->active, link)
			transfer_on_conn_loss(x, rail, pause);
	}
}

/* ---- cancellation ---- */

int transfer_timeout(struct transfers *t, unsigned int index, uint64_t us)
{
	if (index >= transfers_count(t))
		return -ENOENT;
	atomic_store(&t->remotes[index].timeout, us);
	return 0;
}

/* Has the thread that waits for @x given it up? */
static bool transfer_is_over(const struct transfer *x)
{
	const struct transfer_waiter *w = x->arg;

	return x->done == waiter_done && atomic_load(&w->over);
}

static void transfers_cancel(struct transfers *t)
{
	struct transfer *x;

	list_for_each_entry (x, &t->active, link) {
		if (transfer_is_canceled(x)) {
			transfer_fail(x, -ECANCELED);
		} else if (transfer_is_over(x)) {
			if (!x->status && !x->ending)
				stat_count(t->conf.shard,
					   RPC_STAT_transfers_given_up);
			transfer_fail(x, -ETIMEDOUT);
		}
	}
}

static void transfer_on_cancel(struct ulnet_work *w)
{
	struct transfers *t = container_of(w, struct transfers, cancel);
	struct shard *s = t->conf.shard;

	/* A cancellation that comes after this posts the work again. */
	atomic_store(&t->canceling, false);
	transfers_cancel(t);
	transfers_free(t);
	shard_taken(s);
}

/* Makes the owner cancel the transfers; the calling thread may be another one.
 */
static void transfers_cancel_there(struct transfers *t)
{
	if (atomic_exchange(&t->canceling, true))
		return;
	t->cancel.fn = transfer_on_cancel;
	transfers_get(t);
	shard_give(t->conf.shard, &t->cancel);
}

int transfer_cancel(struct transfers *t, unsigned int index)
{
	if (index >= transfers_count(t))
		return -ENOENT;
	atomic_fetch_add(&t->remotes[index].cancels, 1);
	if (shard_owned(t->conf.shard))
		transfers_cancel(t);
	else
		transfers_cancel_there(t);
	return 0;
}

void transfer_wait_give_up(struct transfers *t, struct transfer_waiter *w)
{
	atomic_store(&w->over, true);
	transfers_cancel_there(t);
}

void transfer_abort(struct transfers *t, int status)
{
	struct transfer *x;

	if (!t || t->aborted)
		return;
	t->conf.heard = NULL;
	t->conf.busy = NULL;
	t->conf.pace = NULL;
	t->conf.other = NULL;
	list_del(&t->link);
	t->aborted = status;
	list_for_each_entry (x, &t->active, link)
		transfer_fail(x, status);
}
