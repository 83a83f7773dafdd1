/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/tickets.h"

#include <openssl/ssl.h>
#include <pthread.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"
#include "secure/keys.h"

#define ID_SIZE SSL_MAX_SSL_SESSION_ID_LENGTH
/* bytes of a session's secret: a hash, which is SHA-256 in all ciphers of
 * keys.c */
#define SECRET_SIZE 32

struct given {
	struct hash_node by_id;
	struct list link; /* node in tickets.order */
	uint8_t id[ID_SIZE];
	uint8_t secret[SECRET_SIZE];
	/* the ALPN protocol of the connection, a literal */
	const char *protocol;
	uint8_t cipher[2];
	int64_t at;    /* s since 1970: when the ticket was given */
	int64_t until; /* s since 1970: when the client's certificate ends */
	struct identity *who;
};

struct tickets {
	pthread_mutex_t lock;
	struct hash by_id;
	struct list order; /* the oldest first */
};

/* An id is random, and the server alone chooses it, so its bytes are a hash. */
static uint64_t id_hash(const uint8_t id[ID_SIZE])
{
	struct reader r = reader_of(id, ID_SIZE);

	return read_le64(&r);
}

static struct given *given_find(const struct tickets *ts,
				const uint8_t id[ID_SIZE])
{
	struct given *g;

	hash_for_each_equal (g, &ts->by_id, id_hash(id), by_id)
		if (!memcmp(g->id, id, ID_SIZE))
			return g;
	return NULL;
}

static void given_free(struct given *g)
{
	identity_put(g->who);
	OPENSSL_cleanse(g, sizeof(*g));
	free(g);
}

static void given_drop(struct tickets *ts, struct given *g)
{
	if (!g)
		return;
	hash_del(&ts->by_id, &g->by_id);
	list_del(&g->link);
	given_free(g);
}

static void drop_old(struct tickets *ts, int64_t now)
{
	while (!list_empty(&ts->order)) {
		struct given *g = list_first(&ts->order, struct given, link);

		if (ts->by_id.count < TICKETS_MAX &&
		    now <= g->at + TICKET_SECONDS)
			return;
		given_drop(ts, g);
	}
}

/* ---- a client gets a ticket ---- */

/* Was @s made by the ticket that the client has shown last? */
static bool is_shown(SSL_SESSION *s, const struct keys_user *user)
{
	void *id;
	size_t n;

	return user->known && SSL_SESSION_get0_ticket_appdata(s, &id, &n) &&
	       n == ID_SIZE && !memcmp(id, user->shown, ID_SIZE);
}

struct identity *tickets_known(const SSL *ssl)
{
	const struct keys_user *user = SSL_get_app_data(ssl);
	SSL_SESSION *s = SSL_get_session(ssl);

	return SSL_session_reused(ssl) && is_shown(s, user) ? user->known
							    : NULL;
}

/* Returns the client that the session names: that of the ticket by which the
 * session was resumed, or else that of the client's certificate. The caller
 * owes identity_put(). */
static struct identity *whose(SSL *ssl, SSL_SESSION *s, int64_t *until_p)
{
	struct keys_user *user = SSL_get_app_data(ssl);
	X509 *certificate = SSL_get0_peer_certificate(ssl);

	*until_p = user->known_until;
	if (is_shown(s, user))
		return identity_ref(user->known);
	if (!certificate)
		return NULL;
	*until_p = keys_until(user->keys, certificate,
			      SSL_get_peer_cert_chain(ssl));
	if (!user->met)
		user->met = keys_identity(certificate,
					  SSL_get0_verified_chain(ssl));
	return user->met ? identity_ref(user->met) : NULL;
}

/* Copies what a server needs of @s. NULL: no memory, or @s cannot be kept. */
static struct given *given_new(SSL *ssl, SSL_SESSION *s)
{
	const struct keys_user *user = SSL_get_app_data(ssl);
	const SSL_CIPHER *cipher = SSL_SESSION_get0_cipher(s);
	struct given *g = calloc(1, sizeof(*g));
	unsigned int n;
	const uint8_t *id = SSL_SESSION_get_id(s, &n);

	if (!g)
		return NULL;
	g->protocol = user->protocol;
	g->at = time(NULL);
	g->who = whose(ssl, s, &g->until);
	if (g->who && n == ID_SIZE && cipher &&
	    SSL_SESSION_get_master_key(s, NULL, 0) == SECRET_SIZE) {
		memcpy(g->id, id, ID_SIZE);
		(void)SSL_SESSION_get_master_key(s, g->secret, SECRET_SIZE);
		g->cipher[0] =
			(uint8_t)(SSL_CIPHER_get_protocol_id(cipher) >> 8);
		g->cipher[1] = (uint8_t)SSL_CIPHER_get_protocol_id(cipher);
		return g;
	}
	given_free(g);
	return NULL;
}

/* OpenSSL calls this for each ticket that the server gives. Without memory the
 * ticket is not kept: the client makes a full handshake the next time. */
static int on_give(SSL *ssl, SSL_SESSION *s)
{
	struct tickets *ts = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	const struct keys_user *user = SSL_get_app_data(ssl);
	struct given *g = given_new(ssl, s);

	if (!g)
		return 0;
	pthread_mutex_lock(&ts->lock);
	drop_old(ts, g->at);
	/* The ticket that the client has shown is used up: OpenSSL's clients
	 * use none twice. */
	if (is_shown(s, user))
		given_drop(ts, given_find(ts, user->shown));
	if (hash_add(&ts->by_id, &g->by_id, id_hash(g->id)))
		given_free(g);
	else
		list_add_tail(&ts->order, &g->link);
	pthread_mutex_unlock(&ts->lock);
	return 0; /* 0: OpenSSL keeps the reference to @s */
}

/* ---- a client shows a ticket ---- */

static SSL_SESSION *session_of(SSL *ssl, const struct given *g)
{
	SSL_SESSION *s = SSL_SESSION_new();

	if (s && SSL_SESSION_set1_master_key(s, g->secret, SECRET_SIZE) == 1 &&
	    SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, g->cipher)) == 1 &&
	    SSL_SESSION_set1_id(s, g->id, ID_SIZE) == 1 &&
	    SSL_SESSION_set1_id_context(s, (const uint8_t *)g->protocol,
					(unsigned int)strlen(g->protocol)) ==
		    1 &&
	    SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1 &&
	    SSL_SESSION_set1_ticket_appdata(s, g->id, ID_SIZE) == 1) {
		(void)SSL_SESSION_set_time(s, g->at);
		(void)SSL_SESSION_set_timeout(s, TICKET_SECONDS);
		return s;
	}
	SSL_SESSION_free(s);
	return NULL;
}

/* OpenSSL calls this when a client shows the ticket @id. OpenSSL checks
 * afterwards whether the client has the ticket's secret. */
static SSL_SESSION *on_show(SSL *ssl, const unsigned char *id, int n, int *copy)
{
	struct tickets *ts = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct keys_user *user = SSL_get_app_data(ssl);
	SSL_SESSION *s = NULL;
	const struct given *g;

	*copy = 0; /* 0: OpenSSL gets the reference that is returned */
	if (n != ID_SIZE)
		return NULL;
	pthread_mutex_lock(&ts->lock);
	g = given_find(ts, id);
	if (g)
		s = session_of(ssl, g);
	if (s) {
		identity_put(user->known);
		user->known = identity_ref(g->who);
		user->known_until = g->until;
		memcpy(user->shown, id, ID_SIZE);
	}
	pthread_mutex_unlock(&ts->lock);
	return s;
}

/* ---- life ---- */

struct tickets *tickets_new(void)
{
	struct tickets *ts = calloc(1, sizeof(*ts));

	if (!ts)
		return NULL;
	pthread_mutex_init(&ts->lock, NULL);
	hash_init(&ts->by_id);
	list_init(&ts->order);
	return ts;
}

void tickets_free(struct tickets *ts)
{
	if (!ts)
		return;
	while (!list_empty(&ts->order))
		given_drop(ts, list_first(&ts->order, struct given, link));
	hash_fini(&ts->by_id);
	pthread_mutex_destroy(&ts->lock);
	free(ts);
}

void tickets_serve(struct tickets *ts, SSL_CTX *ctx)
{
	_Static_assert(sizeof(((struct keys_user *)NULL)->shown) == ID_SIZE,
		       "an id of a session");

	SSL_CTX_set_app_data(ctx, ts);
	SSL_CTX_set_timeout(ctx, TICKET_SECONDS);
	SSL_CTX_set_num_tickets(ctx, 1);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER |
						    SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_give);
	SSL_CTX_sess_set_get_cb(ctx, on_show);
}
