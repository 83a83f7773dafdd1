/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/handshake_priv.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/crypto.h>

#include "secure/tickets.h"

/* ALPN protocols of handshakes that handshake_new() begins: for a client that
 * proves itself by TLS, and for one that proves itself by MUNGE */
#define PROTOCOL       "ulnet-rpc"
#define PROTOCOL_MUNGE "ulnet-rpc-munge"

/* The server's verdict on a credential begins with one of these letters; behind
 * REFUSED comes a text that says why. */
#define BELIEVED '+'
#define REFUSED	 '-'

static struct handshake *of(SSL *ssl)
{
	struct keys_user *user = SSL_get_app_data(ssl);

	return container_of(user, struct handshake, user);
}

/* ---- a cluster's key, as a pre-shared key of TLS ---- */

/* Returns a TLS session whose pre-shared key is @key. NULL: no memory. */
static SSL_SESSION *cluster_session(SSL *ssl, const uint8_t *key)
{
	static const uint8_t aes_128_gcm_sha256[] = { 0x13, 0x01 };
	const char *protocol = of(ssl)->user.protocol;
	SSL_SESSION *s = SSL_SESSION_new();

	if (s && SSL_SESSION_set1_master_key(s, key, CLUSTER_KEY_SIZE) == 1 &&
	    SSL_SESSION_set_cipher(
		    s, SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) == 1 &&
	    SSL_SESSION_set1_id_context(s, (const uint8_t *)protocol,
					(unsigned int)strlen(protocol)) == 1 &&
	    SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1)
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

static int on_psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **id,
		      size_t *n, SSL_SESSION **session)
{
	const uint8_t *key;
	const char *name = keys_cluster(of(ssl)->user.keys, &key);

	*session = NULL;
	/* @md is set once a hash was agreed on: OpenSSL then wants a key for
	 * that hash */
	if (!name || (md && !EVP_MD_is_a(md, "SHA256")))
		return 1;
	*id = (const unsigned char *)name;
	*n = strlen(name);
	*session = cluster_session(ssl, key);
	return *session != NULL;
}

static int on_psk_find(SSL *ssl, const unsigned char *id, size_t n,
		       SSL_SESSION **session)
{
	struct handshake *h = of(ssl);
	const uint8_t *key = keys_cluster_find(h->user.keys, id, n);

	*session = NULL;
	/* @name may be the id of a ticket instead, which OpenSSL looks up
	 * itself */
	if (!key)
		return 1;
	*session = cluster_session(ssl, key);
	if (!*session)
		return 0;
	memcpy(h->cluster, id, n);
	h->cluster[n] = '\0';
	/* Peers with a cluster's key get no tickets: a ticket would not say
	 * which key its owner had. */
	SSL_set_num_tickets(ssl, 0);
	return 1;
}

/* ---- tickets ---- */

/* When the first of the peer's certificates ends. */
static int64_t until_of(const struct handshake *h)
{
	return keys_until(h->user.keys, SSL_get0_peer_certificate(h->ssl),
			  SSL_get_peer_cert_chain(h->ssl));
}

bool handshake_ticket(const struct handshake *h, struct ticket *t)
{
	if (!h->done || h->rc || !h->user.session ||
	    !SSL_SESSION_is_resumable(h->user.session))
		return false;
	SSL_SESSION_up_ref(h->user.session);
	t->session = h->user.session;
	t->keys = keys_ref(h->user.keys);
	t->until = until_of(h);
	return true;
}

void ticket_drop(struct ticket *t)
{
	SSL_SESSION_free(t->session);
	keys_put(t->keys);
	*t = (struct ticket){ 0 };
}

/* ---- life ---- */

static bool use_ticket(struct handshake *h, const struct ticket *t)
{
	/* A ticket that is too old, or was got with other keys, is not used:
	 * the full handshake that follows says why if the peer is not believed
	 * any more. */
	if (t->keys != h->user.keys || t->until <= time(NULL))
		return true;
	return SSL_set_session(h->ssl, t->session) == 1;
}

static bool take_protocol(struct handshake *h)
{
	size_t n = strlen(h->user.protocol);
	uint8_t list[64];

	BUG_ON(n > SSL_MAX_SID_CTX_LENGTH);
	list[0] = (uint8_t)n;
	memcpy(list + 1, h->user.protocol, n);
	/* SSL_set_alpn_protos() returns 0 for success */
	return SSL_set_alpn_protos(h->ssl, list, (unsigned int)n + 1) == 0 &&
	       SSL_set_session_id_context(h->ssl, list + 1, (unsigned int)n) ==
		       1;
}

static void take_side(struct handshake *h)
{
	SSL_set_app_data(h->ssl, &h->user);
	if (h->side == HANDSHAKE_SERVER) {
		SSL_set_psk_find_session_callback(h->ssl, on_psk_find);
		SSL_set_accept_state(h->ssl);
	} else {
		SSL_set_psk_use_session_callback(h->ssl, on_psk_use);
		SSL_set_connect_state(h->ssl);
	}
}

static bool start(struct handshake *h, const struct ticket *ticket)
{
	h->ssl = SSL_new(
		keys_context(h->user.keys, h->side == HANDSHAKE_SERVER));
	h->in = BIO_new(BIO_s_mem());
	h->out = BIO_new(BIO_s_mem());
	if (!h->ssl || !h->in || !h->out) {
		BIO_free(h->in);
		BIO_free(h->out);
		return false;
	}
	BIO_set_mem_eof_return(h->in, -1);
	SSL_set_bio(h->ssl, h->in, h->out);
	take_side(h);
	if (!take_protocol(h))
		return false;
	return !ticket || !ticket->session || use_ticket(h, ticket);
}

struct handshake *handshake_begin(enum handshake_side side, struct keys *keys,
				  const struct ticket *ticket,
				  const char *protocol)
{
	struct handshake *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->side = side;
	h->user.keys = keys_ref(keys);
	h->user.protocol = protocol;
	if (start(h, ticket))
		return h;
	ERR_clear_error();
	handshake_free(h);
	return NULL;
}

struct handshake *handshake_new(enum handshake_side side, struct keys *keys,
				const struct ticket *ticket)
{
	bool show = side == HANDSHAKE_CLIENT && keys_show_munge(keys);
	struct handshake *h =
		show ? handshake_begin(side, keys, NULL, PROTOCOL_MUNGE)
		     : handshake_begin(side, keys, ticket, PROTOCOL);

	if (!h)
		return NULL;
	h->user.by_munge = show;
	if (side == HANDSHAKE_SERVER && keys_take_munge(keys))
		h->user.munge = PROTOCOL_MUNGE;
	return h;
}

void handshake_free(struct handshake *h)
{
	if (!h)
		return;
	/* Without this, SSL_free() makes the session invalid, with its ticket.
	 * After a handshake that failed, that is what is wanted. */
	if (h->ssl && h->shaken && !h->rc)
		SSL_set_shutdown(h->ssl,
				 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(h->ssl);
	SSL_SESSION_free(h->user.session);
	identity_put(h->user.known);
	identity_put(h->user.met);
	identity_put(h->peer);
	free(h->credential);
	keys_put(h->user.keys);
	free(h);
}

/* ---- going on ---- */

static const struct {
	int reason;
	int rc;
	const char *text;
} refusals[] = {
	{ SSL_R_TLSV1_ALERT_UNKNOWN_CA, -EACCES,
	  "the peer does not know this node's authority" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, -EACCES,
	  "the peer says that this node's certificate is not valid (any more, "
	  "or yet)" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, -EACCES,
	  "the peer says that this node's certificate was revoked" },
	{ SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, -EACCES,
	  "the peer does not believe this node's certificate" },
	{ SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, -EACCES,
	  "the peer does not believe this node's certificate" },
	{ SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, -EACCES,
	  "the peer says that this node's certificate is for something "
	  "else" },
	{ SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, -EACCES,
	  "the peer wants a certificate, or has another cluster's key" },
	{ SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, -EACCES,
	  "the peer shows no certificate, and does not know the cluster's "
	  "key" },
	{ SSL_R_BINDER_DOES_NOT_VERIFY, -EACCES,
	  "the peer has another key under the name of the cluster's key" },
	{ SSL_R_TLSV1_ALERT_DECRYPT_ERROR, -EACCES,
	  "the peer has another key" },
	{ SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, -EACCES,
	  "the peer does not know the cluster's key, and this node has no "
	  "certificate" },
	{ SSL_R_NO_SHARED_CIPHER, -EACCES,
	  "the peer does not know the cluster's key, and this node has no "
	  "certificate" },
	{ SSL_R_NO_APPLICATION_PROTOCOL, -EPROTO,
	  "the peer wants something else than this handshake is for" },
	{ SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, -EPROTO,
	  "the peer wants something else than this handshake is for" },
	{ SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, -EACCES,
	  "the peer has no certificate, and does not know the cluster's key" },
};

/* Remembers why OpenSSL has given up. */
int handshake_give_up(struct handshake *h)
{
	long verified = SSL_get_verify_result(h->ssl);
	unsigned long first = ERR_peek_error();
	int why = ERR_GET_LIB(first) == ERR_LIB_SSL ? ERR_GET_REASON(first) : 0;
	const char *text = ERR_reason_error_string(first);

	h->rc = -EPROTO;
	if (why == SSL_R_CERTIFICATE_VERIFY_FAILED) {
		h->rc = -EACCES;
		snprintf(h->error, sizeof(h->error),
			 "the peer's certificate is not believed: %s",
			 X509_verify_cert_error_string(verified));
	} else {
		snprintf(h->error, sizeof(h->error), "TLS: %s",
			 text ? text : "the peer breaks off");
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (refusals[i].reason != why)
			continue;
		h->rc = refusals[i].rc;
		snprintf(h->error, sizeof(h->error), "%s", refusals[i].text);
		break;
	}
	if (why == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL &&
	    h->user.by_munge)
		handshake_fail(h, -EACCES, "the peer does not take MUNGE");
	ERR_clear_error();
	return h->rc;
}

int handshake_fail(struct handshake *h, int rc, const char *text)
{
	h->rc = rc;
	snprintf(h->error, sizeof(h->error), "%s", text);
	ERR_clear_error();
	return rc;
}

/* Has the peer agreed to the protocol of this handshake? A peer without ALPN
 * has agreed to none. */
static bool proto_is_right(const struct handshake *h)
{
	const char *wanted =
		h->user.by_munge ? PROTOCOL_MUNGE : h->user.protocol;
	const unsigned char *agreed;
	unsigned int n;

	SSL_get0_alpn_selected(h->ssl, &agreed, &n);
	return n == strlen(wanted) && !memcmp(agreed, wanted, n);
}

static int fail_expired(struct handshake *h)
{
	return handshake_fail(h, -EACCES,
			      "the peer's certificate is not believed: "
			      "certificate has expired");
}

static int meet_known(struct handshake *h)
{
	/* use_ticket() has checked that the keys are still those of the
	 * session. That its certificates are still valid OpenSSL does not check
	 * again. */
	if (h->user.known_until <= time(NULL))
		return fail_expired(h);
	h->peer = identity_ref(h->user.known);
	return 0;
}

/* Sets h->peer to who the peer has proved to be. */
static int meet(struct handshake *h)
{
	X509 *certificate = SSL_get0_peer_certificate(h->ssl);
	const char *name = h->cluster;
	const uint8_t *key;

	if (!proto_is_right(h))
		return handshake_fail(h, -EPROTO,
				      "the peer has not said what "
				      "the handshake is for");

	if (h->side == HANDSHAKE_SERVER && h->user.by_munge)
		return 0; /* MUNGE will say who the client is */
	if (h->side == HANDSHAKE_SERVER && tickets_known(h->ssl))
		return meet_known(h);
	if (certificate) {
		/* A session that is resumed brings the certificate from the
		 * first handshake, which OpenSSL does not check again. */
		if (SSL_session_reused(h->ssl) && until_of(h) <= time(NULL))
			return fail_expired(h);
		h->peer = h->user.met ? identity_ref(h->user.met)
				      : keys_identity(certificate,
						      SSL_get0_verified_chain(
							      h->ssl));
		return h->peer ? 0
			       : handshake_fail(h, -EACCES,
						"the peer's certificate has no "
						"name that "
						"can be used");
	}
	if (h->side == HANDSHAKE_CLIENT)
		name = keys_cluster(h->user.keys, &key);
	if (!name || !name[0] || !SSL_session_reused(h->ssl))
		return handshake_fail(h, -EACCES,
				      "the peer has proved nothing");
	h->peer = keys_cluster_identity(h->user.keys, name);
	return h->peer ? 0 : handshake_fail(h, -ENOMEM, "no memory");
}

/* ---- MUNGE ---- */

/* Is @text printable ASCII? Text of the peer may get to a terminal. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* Sends @text to the peer through TLS, after the handshake. */
static bool send_text(struct handshake *h, const char *text)
{
	int n = (int)strlen(text);

	ERR_clear_error();
	return SSL_write(h->ssl, text, n) == n;
}

/* Takes the credential @text that a client has sent. */
static int take_credential(struct handshake *h, const char *text)
{
	if (strncmp(text, "MUNGE:", 6) != 0)
		return handshake_fail(h, -EPROTO,
				      "what the peer shows is no credential of "
				      "MUNGE");
	h->credential = strdup(text);
	if (!h->credential)
		return handshake_fail(h, -ENOMEM, "no memory");
	h->munge = HANDSHAKE_MUNGE_ASK;
	return 0;
}

/* Takes @text, the server's verdict on this client's credential. */
static int take_verdict(struct handshake *h, const char *text)
{
	char why[MUNGE_WHY + 64];

	if (text[0] == BELIEVED && !text[1]) {
		h->munge = HANDSHAKE_NO_MUNGE;
		h->done = true;
		return 0;
	}
	if (text[0] != REFUSED)
		return handshake_fail(h, -EPROTO,
				      "what the peer says of the credential "
				      "means nothing");
	snprintf(why, sizeof(why), "the peer does not believe the user: %.*s",
		 MUNGE_WHY, text + 1);
	return handshake_fail(h, -EACCES, why);
}

/* Takes the @n bytes of @text that the peer has sent through TLS. */
static int take_text(struct handshake *h, const char *text, size_t n)
{
	if (h->munge != HANDSHAKE_MUNGE_WAIT)
		return handshake_fail(h, -EPROTO,
				      "the peer sends data, and must not");
	if (n == MUNGE_CREDENTIAL - 1 || strlen(text) != n || !is_plain(text))
		return handshake_fail(h, -EPROTO,
				      "the peer sends something else than "
				      "MUNGE's");
	return h->side == HANDSHAKE_SERVER ? take_credential(h, text)
					   : take_verdict(h, text);
}

/* Fills in what a credential of this handshake has to carry: its purpose, and a
 * value that only this handshake has (an exporter, as in RFC 9266). */
static bool payload_of(const struct handshake *h, struct munge_payload *p)
{
	static const char label[] = "EXPORTER-ulnet-rpc-munge";
	bool good = SSL_export_keying_material(h->ssl, p->binding,
					       MUNGE_BINDING, label,
					       strlen(label), NULL, 0, 0) == 1;

	memcpy(p->purpose, MUNGE_PURPOSE, sizeof(p->purpose));
	if (!good)
		ERR_clear_error();
	return good;
}

struct keys *handshake_keys(const struct handshake *h)
{
	return h->user.keys;
}

bool handshake_question(const struct handshake *h, struct munge_question *q)
{
	if (h->rc || h->munge != HANDSHAKE_MUNGE_ASK)
		return false;
	if (!q)
		return true;
	*q = (struct munge_question){ 0 };
	if (h->side == HANDSHAKE_CLIENT) {
		q->what = MUNGE_MAKE;
		return payload_of(h, &q->payload);
	}
	q->what = MUNGE_READ;
	text_copy(q->credential, sizeof(q->credential), h->credential);
	return true;
}

/* Refuses the client. @told: the reason that is sent to the client, which does
 * not learn @why, as that may name things of this node. */
static int refuse_user(struct handshake *h, const char *told, const char *why)
{
	char text[1 + MUNGE_WHY] = { REFUSED };

	text_copy(text + 1, sizeof(text) - 1, told);
	(void)send_text(h, text);
	return handshake_fail(h, -EACCES, why);
}

static int judge(struct handshake *h, const struct munge_answer *a)
{
	static const char believed[] = { BELIEVED, '\0' };
	struct munge_payload payload;

	if (a->rc == -EACCES)
		return refuse_user(h, a->why, a->why);
	if (a->rc)
		return refuse_user(h, "its munged does not answer", a->why);
	if (!payload_of(h, &payload))
		return refuse_user(h, "no memory", "no memory");
	if (a->carried != sizeof(payload) ||
	    CRYPTO_memcmp(&a->payload, &payload, sizeof(payload)) != 0)
		return refuse_user(h,
				   "the credential was made for something else",
				   "MUNGE: the credential was made for "
				   "something else");
	h->peer = keys_munge_identity(h->user.keys, a, h->cluster);
	if (!h->peer || !send_text(h, believed))
		return handshake_fail(h, -ENOMEM, "no memory");
	h->munge = HANDSHAKE_NO_MUNGE;
	h->done = true;
	return 0;
}

static int show(struct handshake *h, const struct munge_answer *a)
{
	if (a->rc) {
		(void)SSL_shutdown(h->ssl);
		return handshake_fail(h, -EACCES, a->why);
	}
	if (!send_text(h, a->credential))
		return handshake_fail(h, -ENOMEM, "no memory");
	h->munge = HANDSHAKE_MUNGE_WAIT;
	return 0;
}

int handshake_answer(struct handshake *h, const struct munge_answer *a)
{
	if (h->rc)
		return h->rc;
	BUG_ON(h->munge != HANDSHAKE_MUNGE_ASK);
	return h->side == HANDSHAKE_CLIENT ? show(h, a) : judge(h, a);
}

/* ---- going on, behind TLS ---- */

/* Lets OpenSSL take what the peer has sent after the handshake: tickets,
 * MUNGE's messages, and the alert of a server that does not believe the client
 * after all. */
static int read_behind(struct handshake *h)
{
	char text[MUNGE_CREDENTIAL];
	int n, rc;

	ERR_clear_error();
	while ((n = SSL_read(h->ssl, text, sizeof(text) - 1)) > 0) {
		text[n] = '\0';
		rc = take_text(h, text, (size_t)n);
		if (rc)
			return rc;
	}
	if (SSL_get_error(h->ssl, n) != SSL_ERROR_WANT_READ)
		return handshake_give_up(h);
	return 0;
}

int handshake_shake(struct handshake *h)
{
	int n, rc;

	ERR_clear_error();
	n = SSL_do_handshake(h->ssl);
	if (n != 1)
		return SSL_get_error(h->ssl, n) == SSL_ERROR_WANT_READ
			       ? 0
			       : handshake_give_up(h);
	rc = meet(h);
	h->shaken = !rc;
	h->done = h->shaken && !h->user.by_munge;
	if (h->shaken && h->user.by_munge)
		h->munge = h->side == HANDSHAKE_CLIENT ? HANDSHAKE_MUNGE_ASK
						       : HANDSHAKE_MUNGE_WAIT;
	return rc;
}

static int go_on(struct handshake *h)
{
	int rc = h->shaken ? 0 : handshake_shake(h);

	return rc || !h->shaken ? rc : read_behind(h);
}

int handshake_feed(struct handshake *h, const void *bytes, size_t n)
{
	if (h->rc)
		return h->rc;
	if (n > HANDSHAKE_MAX - h->fed)
		return handshake_fail(h, -EMSGSIZE,
				      "the peer's handshake is too long");
	h->fed += n;
	if (n && BIO_write(h->in, bytes, (int)n) != (int)n)
		return handshake_fail(h, -ENOMEM, "no memory");
	return go_on(h);
}

const uint8_t *handshake_bytes(const struct handshake *h, size_t *n_p)
{
	char *bytes;
	long n = BIO_get_mem_data(h->out, &bytes);

	*n_p = n > 0 ? (size_t)n : 0;
	return (const uint8_t *)bytes;
}

bool handshake_is_done(const struct handshake *h)
{
	return h->done && !h->rc;
}

const char *handshake_error(const struct handshake *h)
{
	return h->error;
}

/* ---- when it is done ---- */

struct identity *handshake_peer(const struct handshake *h)
{
	return h->peer;
}

bool handshake_was_resumed(const struct handshake *h)
{
	return SSL_session_reused(h->ssl) &&
	       h->peer->kind == IDENTITY_CERTIFICATE;
}

int handshake_secrets(const struct handshake *h, enum handshake_use use,
		      const void *context, size_t n,
		      uint8_t to_server[SEAL_SECRET],
		      uint8_t to_client[SEAL_SECRET])
{
	static const char *const labels[] = {
		[HANDSHAKE_RECORDS] = "EXPORTER-ulnet-rpc",
		[HANDSHAKE_PIECES] = "EXPORTER-ulnet-rpc-bulk",
	};
	uint8_t both[2 * SEAL_SECRET];

	BUG_ON(!handshake_is_done(h));
	if (SSL_export_keying_material(h->ssl, both, sizeof(both), labels[use],
				       strlen(labels[use]), context, n,
				       1) != 1) {
		ERR_clear_error();
		return -ENOMEM;
	}
	memcpy(to_server, both, SEAL_SECRET);
	memcpy(to_client, both + SEAL_SECRET, SEAL_SECRET);
	OPENSSL_cleanse(both, sizeof(both));
	return 0;
}

enum seal_cipher handshake_cipher(const struct handshake *h)
{
	const SSL_CIPHER *c = SSL_get_current_cipher(h->ssl);

	return SSL_CIPHER_get_id(c) == TLS1_3_CK_CHACHA20_POLY1305_SHA256
		       ? SEAL_CHACHA20_POLY1305
		       : SEAL_AES_128_GCM;
}
