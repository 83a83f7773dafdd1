/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/durable.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "rpc/bulk/transfer.h"
#include "rpc/server/serve/request.h"
#include "rpc/server/session/export.h"
#include "rpc/wire/wire.h"

/* Sizes in a value (durable.h), in bytes. */
#define HEAD 24u /* what is in front of the sinks */
/* version and checksum; the checksum covers what is behind them */
#define CHECKED	  8u
#define SINK_HEAD 12u /* what is in front of the tables of each sink */
#define WORD	  4u

/* Versions of the format. A reply without an annex has the one that older
 * releases read, too. A reply with an annex has one that they refuse, because
 * they would take the annex for a part of the body. */
#define FORMAT	       2u
#define FORMAT_ANNEXED 3u
/* In FORMAT: a bit of the error, which is below it, that is not set. */
#define NO_ERROR (UINT32_C(1) << 31)

/* ---- writing ---- */

/* What is stored for the segments of a sink: bits. Without seals, checksums are
 * stored, too. */
#define HAS_LENGTHS 1u
#define HAS_SEALS   2u

static uint32_t tables_of(const struct wire_moved *m)
{
	return (m->length ? HAS_LENGTHS : 0) |
	       (view_length(m->seals) ? HAS_SEALS : 0);
}

static size_t tables_size(uint32_t n, uint32_t tables)
{
	size_t each = tables & HAS_SEALS ? WIRE_SEAL : WORD;

	return n * (each + (tables & HAS_LENGTHS ? WORD : 0));
}

static uint8_t *durable_put_words(uint8_t *p, const uint32_t *word, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, p += WORD)
		store_le32(p, word[i]);
	return p;
}

static uint8_t *put_moved(uint8_t *p, const struct wire_moved *m)
{
	const uint32_t head[] = { m->index, m->n, tables_of(m) };

	p = durable_put_words(p, head, ARRAY_SIZE(head));
	if (head[2] & HAS_SEALS)
		p = mempcpy(p, m->seals.p, view_length(m->seals));
	else
		p = durable_put_words(p, m->checksum, m->n);
	return m->length ? durable_put_words(p, m->length, m->n) : p;
}

/* The sum of a value with an annex depends on its version: damage makes none of
 * a value without one. */
static uint32_t sum_of(const uint8_t *value, size_t length, uint32_t format)
{
	return crc32c(format == FORMAT ? 0 : format, value + CHECKED,
		      length - CHECKED);
}

void *stored_new(const struct stored *s, const struct wire_moved *moved,
		 unsigned int nmoved, size_t *length_p)
{
	uint32_t format = s->annexed ? FORMAT_ANNEXED : FORMAT;
	size_t length = HEAD + s->length;
	uint8_t *value, *p;

	for (unsigned int i = 0; i < nmoved; i++)
		length += SINK_HEAD +
			  tables_size(moved[i].n, tables_of(&moved[i]));
	value = malloc(length);
	if (!value)
		return NULL;
	store_le32(value, format);
	store_le32(value + 8, s->error);
	store_le64(value + 12, s->xid);
	store_le32(value + 20, nmoved);
	p = value + HEAD;
	for (unsigned int i = 0; i < nmoved; i++)
		p = put_moved(p, &moved[i]);
	if (s->length)
		memcpy(p, s->body, s->length);
	store_le32(value + 4, sum_of(value, length, format));
	*length_p = length;
	return value;
}

/* ---- reading ---- */

/* Turns the next @n words into this machine's byte order, and returns them.
 * NULL: there are fewer words. */
static const uint32_t *own_words(struct reader *in, uint8_t *value, uint32_t n)
{
	const uint8_t *from = read_skip(in, (size_t)n * WORD);
	uint8_t *p;

	if (!from)
		return NULL;
	p = value + (from - value);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t word = load_le32(p + i * WORD);

		memcpy(p + i * WORD, &word, WORD);
	}
	return (const uint32_t *)(const void *)from;
}

static bool own_sink(struct reader *in, uint8_t *value)
{
	const uint32_t *head = own_words(in, value, SINK_HEAD / WORD);

	if (!head || head[0] >= ULRPC_BULKS_MAX ||
	    head[1] > ULRPC_SEGMENTS_MAX || head[2] > (HAS_LENGTHS | HAS_SEALS))
		return false;
	if (head[2] & HAS_SEALS && !read_skip(in, head[1] * (size_t)WIRE_SEAL))
		return false;
	return own_words(in, value,
			 head[1] * (!(head[2] & HAS_SEALS) +
				    (head[2] & HAS_LENGTHS))) != NULL;
}

int stored_read(void *value, size_t length, struct stored *out)
{
	struct reader in = reader_of(value, length);
	const uint32_t *sinks;
	uint32_t format;

	if (length < HEAD)
		return -EBADMSG;
	format = read_le32(&in);
	if (format != FORMAT && format != FORMAT_ANNEXED)
		return -EPROTONOSUPPORT;
	if (read_le32(&in) != sum_of(value, length, format))
		return -EBADMSG;
	out->annexed = format == FORMAT_ANNEXED;
	out->error = read_le32(&in);
	if (out->error & NO_ERROR)
		return -EBADMSG;
	out->xid = read_le64(&in);
	sinks = own_words(&in, value, 1);
	if (!sinks || *sinks > ULRPC_BULKS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < *sinks; i++)
		if (!own_sink(&in, value))
			return -EBADMSG;
	out->body = in.p;
	out->length = reader_left(&in);
	return 0;
}

unsigned int stored_moved(const void *value, struct wire_moved *out)
{
	const uint32_t *word = value;
	unsigned int n = word[HEAD / WORD - 1];

	word += HEAD / WORD;
	for (unsigned int i = 0; i < n; i++) {
		const uint32_t *at = word + SINK_HEAD / WORD;
		uint32_t tables = word[2];
		uint32_t each = tables & HAS_SEALS ? WIRE_SEAL / WORD : 1;

		out[i] = (struct wire_moved){ .index = word[0], .n = word[1] };
		word = at + out[i].n * each;
		if (tables & HAS_SEALS)
			out[i].seals =
				(struct wire_view){ (const uint8_t *)at,
						    (const uint8_t *)word };
		else
			out[i].checksum = at;
		if (tables & HAS_LENGTHS) {
			out[i].length = word;
			word += out[i].n;
		}
	}
	return n;
}

/* us: a record is kept until so long after its caller's deadline, because an
 * LND may deliver the last message of the call so late. */
#define KEEP_AFTER (60 * UINT64_C(1000000))

/* ---- of a service ---- */

void durables_init(struct durables *d, const struct ulrpc_durable *conf)
{
	if (conf)
		d->conf = *conf;
}

void durables_draw(struct durables *d, struct shard *s)
{
	if (d->conf.lookup)
		memcpy(d->incarnation, d->conf.incarnation, RPC_ID_SIZE);
	else
		lnet_random(s->node, s->cpt, d->incarnation, RPC_ID_SIZE);
}

void durables_tell(const struct durables *d, struct wire_opened *out)
{
	memcpy(out->incarnation, d->incarnation, RPC_ID_SIZE);
	out->durable = d->conf.lookup;
}

static bool is_durable(const struct ulrpc_service *svc,
		       const struct ulrpc_method *m)
{
	return svc->durables.conf.lookup && m->semantics == ULRPC_EXACTLY_ONCE;
}

bool durable_knows(const struct ulrpc_service *svc, const struct wire_call *c)
{
	const struct ulrpc_method *m = service_method(svc, c->method);

	return m && is_durable(svc, m) && c->semantics == ULRPC_EXACTLY_ONCE;
}

/* ---- keys of requests under way ---- */

struct durable_keys {
	/* one reference of RPC, and one for each entry */
	_Atomic unsigned int refs;
	pthread_mutex_t lock;
	struct hash table; /* of durable.hash */
	uint64_t seed;
};

struct durable_keys *durable_keys_new(uint64_t seed)
{
	struct durable_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return NULL;
	if (pthread_mutex_init(&keys->lock, NULL)) {
		free(keys);
		return NULL;
	}
	atomic_init(&keys->refs, 1);
	hash_init(&keys->table);
	keys->seed = seed;
	return keys;
}

void durable_keys_put(struct durable_keys *keys)
{
	if (!keys || atomic_fetch_sub(&keys->refs, 1) > 1)
		return;
	hash_fini(&keys->table);
	pthread_mutex_destroy(&keys->lock);
	free(keys);
}

static bool key_is_taken(const struct durable_keys *keys,
			 const struct durable *x, uint64_t h)
{
	const struct durable *y;

	hash_for_each_equal (y, &keys->table, h, hash)
		if (!memcmp(x->key, y->key, sizeof(x->key)) &&
		    !memcmp(x->store, y->store, sizeof(x->store)))
			return true;
	return false;
}

static int key_take(struct durable_keys *keys, struct durable *x)
{
	uint64_t h = hash_bytes(x->key, sizeof(x->key), keys->seed);
	int rc = -EBUSY;

	pthread_mutex_lock(&keys->lock);
	if (!key_is_taken(keys, x, h))
		rc = hash_add(&keys->table, &x->hash, h);
	pthread_mutex_unlock(&keys->lock);
	if (rc)
		return rc;
	atomic_fetch_add(&keys->refs, 1);
	x->keys = keys;
	return 0;
}

static void key_give_back(struct durable *x)
{
	struct durable_keys *keys = x->keys;

	pthread_mutex_lock(&keys->lock);
	hash_del(&keys->table, &x->hash);
	pthread_mutex_unlock(&keys->lock);
	durable_keys_put(keys);
}

/* ---- of a request ---- */

void durable_again(struct ulrpc_request *r, const struct wire_call *c)
{
	r->resent |=
		c->flags & WIRE_CALL_RESENT && durable_knows(r->sc->service, c);
}

/* A bit of the slot in the key, which is not used since slots are below
 * RECORD_SLOTS: set for clients that have proved who they are. Without it, a
 * client that proves nothing could use another client's id, which is a digest,
 * as its own. */
#define SLOT_PROVED (UINT32_C(1) << 31)

int durable_begin(struct ulrpc_request *r, const struct wire_call *c,
		  const struct client_id *client)
{
	struct ulrpc_service *svc = r->sc->service;
	struct durable *x;
	int rc;

	r->durable = NULL;
	if (!is_durable(svc, r->method))
		return 0;
	x = malloc(sizeof(*x));
	if (!x)
		return -ENOMEM;
	memcpy(x->store, svc->durables.incarnation, RPC_ID_SIZE);
	memcpy(x->key, client->id, RPC_ID_SIZE);
	store_le32(x->key + RPC_ID_SIZE,
		   client->proved ? c->slot | SLOT_PROVED : c->slot);
	x->look = c->flags & WIRE_CALL_RESENT;
	x->replayed = x->proven = false;
	x->value = NULL;
	rc = key_take(svc->rpc->services->durable_keys, x);
	if (rc) {
		free(x);
		return rc;
	}
	r->durable = x;
	r->rare |= REQUEST_DURABLE;
	durable_again(r, c);
	return 0;
}

void durable_end(struct ulrpc_request *r)
{
	struct durable *x = r->durable;

	r->durable = NULL;
	key_give_back(x);
	free(x->value);
	free(x);
}

void durable_finish(struct ulrpc_request *r)
{
	if (r->durable->replayed)
		stat_count(r->sc->shard, RPC_STAT_requests_replayed);
	durable_end(r);
}

/* ---- what the store knows ---- */

enum known {
	KNOWN_NOT, /* the call has not been executed */
	KNOWN,	   /* the call has been executed */
	/* nobody can tell whether the call has been executed; or a later call
	 * has been executed */
	KNOWN_BAD,
};

static enum known value_read(const struct ulrpc_request *r, void *value,
			     size_t length, struct stored *out)
{
	int rc = stored_read(value, length, out);

	if (rc) {
		lnet_log(LNET_LOG_ERR, "rpc",
			 "service %s: a record of %zu bytes %s",
			 r->sc->service->name, length,
			 rc == -EPROTONOSUPPORT
				 ? "is of a version that this release does not "
				   "know"
				 : "cannot be read");
		return KNOWN_BAD;
	}
	if (out->xid == r->xid)
		return KNOWN;
	return out->xid < r->xid ? KNOWN_NOT : KNOWN_BAD;
}

static enum known durable_value_get(const struct ulrpc_request *r,
				    void **value_p, struct stored *out)
{
	const struct ulrpc_durable *conf = &r->sc->service->durables.conf;
	size_t length = 0;
	int rc = conf->lookup(conf->arg, r->durable->key, value_p, &length);

	if (rc == -ENOENT)
		return KNOWN_NOT;
	if (!rc)
		return value_read(r, *value_p, length, out);
	lnet_log(LNET_LOG_ERR, "rpc",
		 "service %s: the record of a call cannot be looked up: %s",
		 r->sc->service->name, strerror(-rc));
	return KNOWN_BAD;
}

static uint32_t stored_status(const struct stored *s)
{
	if (s->annexed)
		return WIRE_ANNEXED;
	return s->error ? WIRE_FAILED : WIRE_OK;
}

bool durable_answers(struct ulrpc_request *r)
{
	struct durable *x = r->durable;
	void *value = NULL;
	struct stored s;
	enum known known;

	if (!x->look)
		return false;
	x->look = false;
	known = durable_value_get(r, &value, &s);
	if (known == KNOWN) {
		x->value = value;
		x->replayed = true;
		request_answer(r, stored_status(&s), s.error, s.body, s.length);
		return true;
	}
	free(value);
	x->proven = known == KNOWN_NOT;
	if (x->proven)
		return false;
	request_answer(r, WIRE_DOUBTFUL, 0, NULL, 0);
	return true;
}

/* ---- what the handler stores ---- */

static uint64_t keep_for(const struct ulrpc_request *r)
{
	struct ulrpc_request_info info;

	ulrpc_request_info(r, &info);
	return info.time_left == ULRPC_NEVER ? ULRPC_NEVER
					     : info.time_left + KEEP_AFTER;
}

int ulrpc_request_record(struct ulrpc_request *r, int status, const void *body,
			 size_t length, struct ulrpc_record *record)
{
	struct wire_moved moved[ULRPC_BULKS_MAX];
	struct durable *x = r->durable;
	unsigned int nmoved;
	size_t size;
	void *value, *annexed = NULL;

	if (!x)
		return -EOPNOTSUPP;
	if (status > 0 || (status && length))
		return -EINVAL;
	if (length > r->reply_max)
		return -EMSGSIZE;
	if (transfer_busy(r->transfers))
		return -EBUSY;
	nmoved = transfer_moved(r->transfers, moved, ULRPC_BULKS_MAX);
	if (r->rare & REQUEST_ADDED) {
		const struct annex_failure failure = {
			.error = (uint32_t)-status
		};

		annexed = annex_body_new(&r->added, &failure, body, length,
					 &length);
		if (!annexed)
			return -ENOMEM;
		body = annexed;
	}
	value = stored_new(&(struct stored){ .xid = r->xid,
					     .error = (uint32_t)-status,
					     .annexed = annexed,
					     .body = body,
					     .length = length },
			   moved, nmoved, &size);
	free(annexed);
	if (!value)
		return -ENOMEM;
	free(x->value);
	x->value = value;
	*record = (struct ulrpc_record){
		.key = x->key,
		.value = value,
		.length = size,
		.keep = keep_for(r),
	};
	return 0;
}
