/* SPDX-License-Identifier: BSD-3-Clause */
/* Long replies: replies for which their callers have no room (reply.h). */
#include "rpc/server/serve/reply.h"

#include <string.h>

#include "rpc/server/session/export.h"
#include "rpc/server/session/session.h"

struct long_reply {
	struct service_cpt *sc;
	struct share *share;
	struct list link; /* node in service_cpt.long_replies */
	struct record_body held;
	struct records *records; /* records of the client */
	/* what state the record gets when the body is let go */
	enum record_state then;
	/* counts as work of the shard, because nobody has fetched the body yet
	 */
	bool work;
	uint32_t length;
	uint32_t pid; /* pid of the client */
	uint64_t match;
	uint8_t *body;
	size_t size; /* bytes that are charged for the body */
	bool taken;  /* the body is from malloc(), and not from the slab */
	/* The NIDs from which the client can GET the body, each with its MD:
	 * one NID of each peer that the client is known as. A client that only
	 * calls, or is not discovered, may be known as several peers. */
	struct {
		struct ulnet_nid nid;
		struct ulnet_md_handle md;
	} way[EXPORT_RAILS_MAX];
	unsigned int nways;
	unsigned int linked;	  /* how many MDs are not unlinked yet */
	struct ulnet_timer timer; /* fires at the caller's deadline */
};

/* ---- the end ---- */

static void body_free(struct long_reply *z)
{
	if (z->taken)
		free(z->body);
	else if (z->body)
		slab_put(&z->sc->slab, z->body, z->length);
}

static void long_reply_free(struct long_reply *z)
{
	struct service_cpt *sc = z->sc;

	list_del(&z->link);
	service_charge(sc, z->share, 0, -(int64_t)z->size);
	body_free(z);
	slab_put(&sc->slab, z, sizeof(*z));
}

/* Makes the service wait no more for @z to be fetched. */
static void long_reply_settle(struct long_reply *z)
{
	struct service_cpt *sc = z->sc;

	if (!z->work)
		return;
	z->work = false;
	sc->answers--;
	service_cpt_settled(sc);
	shard_work_end(sc->shard);
}

/* Unlinks the MDs of the body. The last event of the MDs frees the body. */
void long_reply_let_go(struct record_body *body)
{
	struct long_reply *z = container_of(body, struct long_reply, held);
	unsigned int n = z->nways;

	shard_cancel(z->sc->shard, &z->timer);
	long_reply_settle(z);
	for (unsigned int i = 0; i < n; i++)
		LNetMDUnlink(z->way[i].md);
}

static void long_reply_end(struct long_reply *z)
{
	if (!z->held.of)
		return;
	record_body_remove(z->records, &z->held, z->then);
	long_reply_let_go(&z->held);
}

static void long_reply_on_event(const struct ulnet_event *ev)
{
	struct long_reply *z = ev->user_ptr;
	struct service_cpt *sc = z->sc;
	struct shard *s = sc->shard;

	/* Clients get the pieces of a reply in their order. */
	if (ev->type == LNET_EVENT_GET && !ev->status && ev->mlength &&
	    (uint64_t)ev->offset + ev->mlength == z->length) {
		stat_count(s, RPC_STAT_held_fetched);
		long_reply_settle(z);
	} else if (ev->type == LNET_EVENT_PUT) {
		long_reply_end(z);
	}
	if (!ev->unlinked || --z->linked)
		return;
	if (z->held.of)
		record_body_remove(z->records, &z->held, z->then);
	long_reply_settle(z);
	shard_cancel(s, &z->timer);
	long_reply_free(z);
	service_cpt_settled(sc);
	shard_release(s); /* sc may be freed here */
}

static void long_reply_on_timer(struct ulnet_timer *timer)
{
	long_reply_end(container_of(timer, struct long_reply, timer));
}

/* ---- who may get it ---- */

static int long_reply_attach(struct long_reply *z, const struct ulnet_id *who)
{
	struct lnet *node = z->sc->shard->node;
	struct ulnet_md md = {
		.start = z->body,
		.length = z->length,
		.threshold = LNET_MD_THRESH_INF,
		.options = LNET_MD_MANAGE_REMOTE | LNET_MD_OP_GET |
			   LNET_MD_OP_PUT | LNET_MD_OF_LAYER,
		.user_ptr = z,
		.handler = long_reply_on_event,
	};
	struct ulnet_md_handle handle;
	struct ulnet_me_handle me;
	int rc = LNetMEAttach(node, ULRPC_PORTAL_BULK, *who, z->match, 0,
			      LNET_UNLINK, LNET_INS_LOCAL, &me);

	if (!rc)
		rc = LNetMDAttach(me, &md, LNET_RETAIN, &handle);
	if (rc)
		return rc;
	z->way[z->nways].nid = who->nid;
	z->way[z->nways++].md = handle;
	z->linked++;
	return 0;
}

/* Lets the client fetch @z from @nid, too, unless @nid belongs to a peer that
 * can fetch it already. The match value can be guessed, so @nid has to be a
 * rail of the export (rails.h). */
static void long_reply_add_way(struct long_reply *z,
			       const struct ulnet_nid *nid)
{
	struct ulnet_id who = { *nid, z->pid };

	if (z->nways == EXPORT_RAILS_MAX)
		return;
	for (unsigned int i = 0; i < z->nways; i++)
		if (shard_same_peer(z->sc->shard, &z->way[i].nid, nid))
			return;
	/* if this fails, there are other NIDs */
	(void)long_reply_attach(z, &who);
}

void long_reply_reach(struct record_body *body, const struct ulnet_nid *nid)
{
	long_reply_add_way(container_of(body, struct long_reply, held), nid);
}

static int long_reply_offer(struct long_reply *z, const struct request_batch *b)
{
	const struct export_rail *rail;
	int rc = long_reply_attach(z, &b->client);

	if (rc)
		return rc;
	list_for_each_entry (rail, &b->export->rails, link)
		long_reply_add_way(z, &rail->nid);
	return 0;
}

/* Counts and logs that there was no room for a reply, so that an administrator
 * can allow more. */
static void log_no_room(struct service_cpt *sc, const struct request_batch *b,
			uint32_t length)
{
	char text[LNET_NIDSTR_SIZE];

	stat_count(sc->shard, RPC_STAT_held_refused);
	if (service_may_log(sc))
		lnet_log(
			LNET_LOG_WARN, "rpc",
			"service %s: a reply of %u bytes to %s cannot be held: "
			"the share of this client is used up",
			sc->service->name, length,
			lnet_nid_format(&b->source, text, sizeof(text)));
}

/* Is there room for @size bytes? If there is not, frees replies that nobody
 * will ask for, and looks again. */
static bool long_reply_has_room(const struct request_batch *b, uint64_t size)
{
	if (service_has_bytes(b->sc, b->share, size))
		return true;
	records_trim(&b->export->records, shard_now(b->sc->shard));
	return service_has_bytes(b->sc, b->share, size);
}

/* ---- the proof ---- */

/* A reply that is long has its proof made before its client is told of it:
 * piece by piece, in turns of their own. It stays what ulrpc_request.reply
 * refers to meanwhile. */
struct reply_proof {
	struct ulnet_work work;
	struct ulrpc_request *request;
	long_reply_proved_fn *proved;
	struct body_proof making;
	enum ulrpc_flavour flavour;
	uint32_t done; /* bytes that were gone through */
	int status;    /* -errno: the proof cannot be made */
	struct held_reply held;
};

static enum seal_cipher cipher_of(const struct request_batch *b)
{
	const struct session *session = b->export ? b->export->session : NULL;

	return session && session->sealed ? session->sealed->out.cipher
					  : SEAL_AES_128_GCM;
}

static int proof_begin(struct body_proof *p, const struct request_batch *b)
{
	return body_proof_make(p, batch_flavour(b), cipher_of(b),
			       b->wants & BATCH_WANTS_CHECKSUM);
}

static int proof_end(struct body_proof *p, struct held_reply *held)
{
	int rc = body_proof_made(p, held->bytes, &held->n);

	held->checksum = p->sums && !rc ? wire_checksum(p->crc) : 0;
	return rc;
}

static void on_piece(struct ulnet_work *work)
{
	struct reply_proof *p = container_of(work, struct reply_proof, work);
	struct ulrpc_request *r = p->request;
	struct shard *s = r->sc->shard;
	uint32_t n = MIN(r->reply_length - p->done, ULRPC_BODY_MAX);

	body_proof_next(&p->making, (uint8_t *)r->reply + p->done, n);
	p->done += n;
	if (p->done < r->reply_length && !r->unwanted) {
		shard_post(s, &p->work);
		return;
	}
	p->status = proof_end(&p->making, &p->held);
	p->proved(r);
	free(p);
	shard_release(s);
}

bool long_reply_prove(struct ulrpc_request *r, long_reply_proved_fn *proved)
{
	struct reply_proof *p;

	/* What has metadata becomes another body. */
	if (r->status != WIRE_OK || r->unwanted || r->rare & REQUEST_ADDED)
		return false;
	p = calloc(1, sizeof(*p));
	if (!p)
		return false;
	p->request = r;
	p->proved = proved;
	p->flavour = batch_flavour(r->reply_to);
	p->status = proof_begin(&p->making, r->reply_to);
	if (p->status) {
		free(p);
		return false;
	}
	r->proof = p;
	if (!body_proof_is_wanted(&p->making)) {
		proved(r);
		free(p);
		return true;
	}
	p->work.fn = on_piece;
	shard_hold(r->sc->shard);
	shard_post(r->sc->shard, &p->work);
	return true;
}

/* ---- the beginning ---- */

static void long_reply_init(struct long_reply *z, struct request_batch *b,
			    uint32_t length)
{
	struct service_cpt *sc = b->sc;

	*z = (struct long_reply){
		.sc = sc,
		.share = b->share,
		.records = &b->export->records,
		.work = true,
		.length = length,
		.pid = b->client.pid,
		.match = shard_match_alloc(sc->shard),
	};
	list_init(&z->link);
	list_init(&z->held.link);
	lnet_timer_init(&z->timer, long_reply_on_timer);
}

/* Makes a body of a copy of @body, and proves it, in this turn. */
static bool long_reply_copy(struct long_reply *z, const struct request_batch *b,
			    const void *body, struct held_reply *held)
{
	struct body_proof proof;
	int rc;

	z->body = slab_get(&z->sc->slab, z->length);
	if (!z->body)
		return false;
	z->size = slab_size(z->length);
	memcpy(z->body, body, z->length);
	rc = proof_begin(&proof, b);
	if (!rc) {
		body_proof_next(&proof, z->body, z->length);
		rc = proof_end(&proof, held);
	}
	return !rc;
}

/* Takes the body that was proved for @r. */
static bool long_reply_take(struct long_reply *z, struct ulrpc_request *r,
			    struct held_reply *held)
{
	const struct reply_proof *p = r->proof;

	/* Another attempt may have come from a client that wants more. */
	if (p->status || p->flavour != batch_flavour(r->reply_to))
		return false;
	*held = p->held;
	z->body = *r->kept;
	z->size = z->length;
	z->taken = true;
	*r->kept = NULL;
	return true;
}

/* Makes the body that is held. Returns NULL if there is no room. */
static struct long_reply *long_reply_new(struct ulrpc_request *r,
					 const void *body, uint32_t length,
					 struct held_reply *held)
{
	struct request_batch *b = r->reply_to;
	struct service_cpt *sc = b->sc;
	struct long_reply *z;

	if (!long_reply_has_room(b, slab_size(length))) {
		log_no_room(sc, b, length);
		return NULL;
	}
	z = slab_get(&sc->slab, sizeof(*z));
	if (!z)
		return NULL;
	long_reply_init(z, b, length);
	if (r->reply && r->proof ? long_reply_take(z, r, held)
				 : long_reply_copy(z, b, body, held))
		return z;
	body_free(z);
	slab_put(&sc->slab, z, sizeof(*z));
	return NULL;
}

bool long_reply_hold(struct ulrpc_request *r, const void *body, uint32_t length,
		     enum record_state then, struct held_reply *held)
{
	struct request_batch *b = r->reply_to;
	struct service_cpt *sc = b->sc;
	struct shard *s = sc->shard;
	struct long_reply *z;

	if (!b->export || !b->export->known || service_cpt_ended(sc) ||
	    (batch_flavour(b) == ULRPC_FLAVOUR_PRIVACY && !b->export->session))
		return false;
	z = long_reply_new(r, body, length, held);
	if (!z)
		return false;
	/* There is no record any more if records_trim() has found that the call
	 * is over. */
	if (!r->record || long_reply_offer(z, b)) {
		body_free(z);
		slab_put(&sc->slab, z, sizeof(*z));
		return false;
	}
	held->match = z->match;
	stat_count(s, RPC_STAT_replies_held);
	z->then = then;
	record_body_add(z->records, r->record, &z->held);
	service_charge(sc, z->share, 0, (int64_t)z->size);
	list_add_tail(&sc->long_replies, &z->link);
	sc->answers++;
	shard_work_begin(s);
	shard_hold(s);
	if (r->deadline != TIME_NEVER)
		shard_arm(s, &z->timer, r->deadline);
	return true;
}

void long_replies_abort(struct service_cpt *sc)
{
	struct long_reply *z, *next;

	list_for_each_entry_safe (z, next, &sc->long_replies, link)
		long_reply_end(z);
}
