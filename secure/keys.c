/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"

#include "secure/tickets.h"

/* bytes of a line in a file with a cluster's keys */
#define LINE_SIZE (IDENTITY_NAME_SIZE + 2 * CLUSTER_KEY_SIZE + 64)

struct cluster_key {
	char name[IDENTITY_NAME_SIZE];
	uint8_t key[CLUSTER_KEY_SIZE];
};

struct keys {
	_Atomic unsigned int refs;
	SSL_CTX *client, *server;
	struct tickets *tickets; /* what the server keeps of its tickets */
	X509_STORE *authorities; /* NULL: no certificate is believed */
	uint64_t *roots;	 /* digests of the authorities' keys */
	unsigned int nroots;
	/* s since 1970: when the first of these ends: the authorities'
	 * certificates, the revocation lists, this node's certificate */
	int64_t until;
	X509 *certificate; /* NULL: none */
	/* the certificates between @certificate and the authority */
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
	bool munge_take, munge_show;
	munge_fn munge_ask;
	char *munge_socket; /* NULL: where libmunge looks for it */
	unsigned int ncluster;
	struct cluster_key cluster[CLUSTER_KEYS_MAX];
};

static __attribute__((format(printf, 3, 4))) int refuse(struct keys_error *err,
							int rc, const char *fmt,
							...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	ERR_clear_error();
	return rc;
}

/* Returns the reason of OpenSSL's last error. */
static const char *reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_last_error());

	return text ? text : "not understood";
}

/* Returns s since 1970; 0 if @t is no time. */
static int64_t seconds_of(const ASN1_TIME *t)
{
	struct tm tm;

	return t && ASN1_TIME_to_tm(t, &tm) ? timegm(&tm) : 0;
}

/* Moves k->until back to @end, if that is earlier. An @end in the past is not
 * taken. */
static void keys_end(struct keys *k, const ASN1_TIME *end)
{
	int64_t at = seconds_of(end);

	if (at > time(NULL))
		k->until = MIN(k->until, at);
}

/* ---- files ---- */

/* Checks that only the owner can read or change the file, and that the owner is
 * root or the user of this process. Returns 0, or -EACCES with @err. */
static int check_secret(int fd, const char *path, struct keys_error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return refuse(err, -errno, "%s: %s", path, strerror(errno));
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return refuse(err, -EACCES,
			      "%s: others may read or change it (mode %03o), "
			      "and there is a key in it: chmod 600",
			      path, (unsigned int)st.st_mode & 0777);
	if (st.st_uid && st.st_uid != geteuid())
		return refuse(err, -EACCES,
			      "%s: it belongs to user %u, and not to this one "
			      "or root",
			      path, (unsigned int)st.st_uid);
	return 0;
}

/* Opens @path for reading. @secret: the file has to pass check_secret(). */
static int file_open(const char *path, bool secret, BIO **bio_p,
		     struct keys_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int rc = 0;

	if (fd < 0)
		return refuse(err, -errno, "%s: %s", path, strerror(errno));
	if (secret)
		rc = check_secret(fd, path, err);
	if (!rc) {
		*bio_p = BIO_new_fd(fd, BIO_CLOSE);
		if (*bio_p)
			return 0;
		rc = refuse(err, -ENOMEM, "%s: no memory", path);
	}
	close(fd);
	return rc;
}

/* PEM_read_bio_X() has found nothing more: has it reached the end of the file?
 */
static bool is_end(void)
{
	unsigned long e = ERR_peek_last_error();
	bool end = ERR_GET_LIB(e) == ERR_LIB_PEM &&
		   ERR_GET_REASON(e) == PEM_R_NO_START_LINE;

	if (end)
		ERR_clear_error();
	return end;
}

int keys_check_file(const char *path, struct keys_error *err)
{
	BIO *bio;
	int rc = file_open(path, true, &bio, err);

	if (!rc)
		BIO_free(bio);
	return rc;
}

/* Reads all certificates of @path. */
static int read_certificates(const char *path, STACK_OF(X509) * to,
			     struct keys_error *err)
{
	X509 *c;
	BIO *bio;
	int rc = file_open(path, false, &bio, err);

	if (rc)
		return rc;
	while ((c = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		if (sk_X509_push(to, c) > 0)
			continue;
		X509_free(c);
		rc = refuse(err, -ENOMEM, "%s: no memory", path);
		break;
	}
	BIO_free(bio);
	if (!rc && !is_end())
		rc = refuse(err, -EINVAL, "%s: %s", path, reason());
	if (!rc && !sk_X509_num(to))
		rc = refuse(err, -EINVAL,
			    "%s: there is no certificate in it (PEM)", path);
	return rc;
}

static int read_key(struct keys *k, const char *path, struct keys_error *err)
{
	BIO *bio;
	int rc = file_open(path, true, &bio, err);

	if (rc)
		return rc;
	k->key = PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"");
	BIO_free(bio);
	if (!k->key)
		return refuse(err, -EINVAL, "%s: no key without a password: %s",
			      path, reason());
	if (X509_check_private_key(k->certificate, k->key) != 1)
		return refuse(err, -EINVAL,
			      "%s: it is not the key of the certificate", path);
	return 0;
}

static int read_certificate(struct keys *k, const char *path,
			    struct keys_error *err)
{
	int rc;

	k->chain = sk_X509_new_null();
	if (!k->chain)
		return refuse(err, -ENOMEM, "%s: no memory", path);
	rc = read_certificates(path, k->chain, err);
	if (!rc)
		k->certificate = sk_X509_shift(k->chain);
	return rc;
}

/* Returns the first 8 bytes of @digest as a number; 0 if !@good. */
static uint64_t id_of(const uint8_t *digest, bool good)
{
	return good ? load_le64(digest) : 0;
}

static uint64_t key_id(const X509 *c)
{
	uint8_t digest[EVP_MAX_MD_SIZE] = { 0 };

	return id_of(digest,
		     X509_pubkey_digest(c, EVP_sha256(), digest, NULL) == 1);
}

static uint64_t name_id(const X509_NAME *name)
{
	uint8_t digest[EVP_MAX_MD_SIZE] = { 0 };

	return id_of(digest,
		     X509_NAME_digest(name, EVP_sha256(), digest, NULL) == 1);
}

static int read_authorities(struct keys *k, const char *path,
			    struct keys_error *err)
{
	STACK_OF(X509) *all = sk_X509_new_null();
	int rc;

	k->authorities = X509_STORE_new();
	if (!all || !k->authorities) {
		sk_X509_free(all);
		return refuse(err, -ENOMEM, "%s: no memory", path);
	}
	rc = read_certificates(path, all, err);
	k->roots = calloc((size_t)sk_X509_num(all) + 1, sizeof(*k->roots));
	if (!rc && !k->roots)
		rc = refuse(err, -ENOMEM, "%s: no memory", path);
	for (int i = 0; !rc && i < sk_X509_num(all); i++) {
		X509 *c = sk_X509_value(all, i);

		k->roots[k->nroots++] = key_id(c);

		if (X509_check_ca(c) == 0)
			rc = refuse(err, -EINVAL,
				    "%s: certificate %d in it is not an "
				    "authority's",
				    path, i + 1);
		else if (X509_STORE_add_cert(k->authorities, c) != 1)
			rc = refuse(err, -ENOMEM, "%s: no memory", path);
		keys_end(k, X509_get0_notAfter(c));
	}
	sk_X509_pop_free(all, X509_free);
	return rc;
}

static int read_revoked(struct keys *k, const char *path,
			struct keys_error *err)
{
	X509_CRL *crl;
	unsigned int n = 0;
	BIO *bio;
	int rc = file_open(path, false, &bio, err);

	if (rc)
		return rc;
	while (!rc && (crl = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL))) {
		n++;
		if (X509_STORE_add_crl(k->authorities, crl) != 1)
			rc = refuse(err, -ENOMEM, "%s: no memory", path);
		keys_end(k, X509_CRL_get0_nextUpdate(crl));
		X509_CRL_free(crl);
	}
	BIO_free(bio);
	if (rc)
		return rc;
	if (!is_end() || !n)
		return refuse(err, -EINVAL,
			      "%s: there is no list of what was revoked in it "
			      "(PEM), or it is damaged",
			      path);
	X509_STORE_set_flags(k->authorities,
			     X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return 0;
}

/* ---- a cluster's keys ---- */

/* Reads a line "NAME HEX". */
static bool cluster_parse(struct cluster_key *c, char *line)
{
	char *at, *name = strtok_r(line, " \t\r\n", &at);
	char *hex = strtok_r(NULL, " \t\r\n", &at);
	size_t n;

	if (!hex || strtok_r(NULL, " \t\r\n", &at) ||
	    strlen(name) >= sizeof(c->name) ||
	    strspn(hex, "0123456789abcdefABCDEF") != strlen(hex))
		return false;
	text_copy(c->name, sizeof(c->name), name);
	return OPENSSL_hexstr2buf_ex(c->key, sizeof(c->key), &n, hex, '\0') ==
		       1 &&
	       n == sizeof(c->key);
}

static int cluster_add(struct keys *k, char *line, const char *path,
		       unsigned int at, struct keys_error *err)
{
	const uint8_t *key;

	line[strcspn(line, "#")] = '\0';
	if (!line[strspn(line, " \t\r\n")])
		return 0;
	if (k->ncluster == CLUSTER_KEYS_MAX)
		return refuse(err, -EINVAL, "%s:%u: more than %u keys", path,
			      at, CLUSTER_KEYS_MAX);
	if (!cluster_parse(&k->cluster[k->ncluster], line))
		return refuse(err, -EINVAL,
			      "%s:%u: not a name and a key of %u hexadecimal "
			      "digits",
			      path, at, 2 * CLUSTER_KEY_SIZE);
	key = keys_cluster_find(k, k->cluster[k->ncluster].name,
				strlen(k->cluster[k->ncluster].name));
	if (key)
		return refuse(err, -EINVAL, "%s:%u: '%s' comes twice", path, at,
			      k->cluster[k->ncluster].name);
	k->ncluster++;
	return 0;
}

static int read_cluster(struct keys *k, const char *path,
			struct keys_error *err)
{
	char line[LINE_SIZE];
	unsigned int at = 0;
	BIO *bio, *lines;
	int rc = file_open(path, true, &bio, err);

	if (rc)
		return rc;
	lines = BIO_new(BIO_f_buffer());
	if (!lines)
		rc = refuse(err, -ENOMEM, "%s: no memory", path);
	else
		bio = BIO_push(lines, bio);
	while (!rc && BIO_gets(bio, line, sizeof(line)) > 0)
		rc = cluster_add(k, line, path, ++at, err);
	OPENSSL_cleanse(line, sizeof(line));
	BIO_free_all(bio);
	if (!rc && !k->ncluster)
		rc = refuse(err, -EINVAL, "%s: there is no key in it", path);
	return rc;
}

const char *keys_cluster(const struct keys *k, const uint8_t **key_p)
{
	if (!k->ncluster)
		return NULL;
	*key_p = k->cluster[0].key;
	return k->cluster[0].name;
}

/* Returns a digest of a cluster's key: it tells apart two keys of the same
 * name. */
static uint64_t cluster_id(const uint8_t *key)
{
	uint8_t digest[EVP_MAX_MD_SIZE] = { 0 };

	return id_of(digest, EVP_Digest(key, CLUSTER_KEY_SIZE, digest, NULL,
					EVP_sha256(), NULL) == 1);
}

const char *keys_cluster_name(const struct keys *k, unsigned int i)
{
	return i < k->ncluster ? k->cluster[i].name : NULL;
}

const uint8_t *keys_cluster_find(const struct keys *k, const void *name,
				 size_t n)
{
	for (unsigned int i = 0; i < k->ncluster; i++)
		if (strlen(k->cluster[i].name) == n &&
		    !memcmp(k->cluster[i].name, name, n))
			return k->cluster[i].key;
	return NULL;
}

/* ---- certificates ---- */

/* May the certificate be used by a client or server? An authority's may not. */
static bool is_for_nodes(X509 *certificate)
{
	return X509_check_purpose(certificate, X509_PURPOSE_SSL_CLIENT, 0) ||
	       X509_check_purpose(certificate, X509_PURPOSE_SSL_SERVER, 0);
}

/* Do nodes with the same authorities believe @certificate? If not, @err gets
 * the reason. */
static bool is_believed(const struct keys *k, X509 *certificate,
			struct keys_error *err)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	bool good = false;
	int why = X509_V_ERR_OUT_OF_MEM;

	if (ctx && k->authorities &&
	    X509_STORE_CTX_init(ctx, k->authorities, certificate, k->chain)) {
		good = X509_verify_cert(ctx) == 1;
		why = X509_STORE_CTX_get_error(ctx);
	}
	X509_STORE_CTX_free(ctx);
	if (good && !is_for_nodes(certificate)) {
		good = false;
		why = X509_V_ERR_INVALID_PURPOSE;
	}
	if (!good)
		refuse(err, 0, "%s", X509_verify_cert_error_string(why));
	ERR_clear_error();
	return good;
}

int64_t keys_until(const struct keys *k, X509 *certificate,
		   STACK_OF(X509) * chain)
{
	int64_t until = seconds_of(X509_get0_notAfter(certificate));

	for (int i = 0; i < sk_X509_num(chain); i++)
		until = MIN(until, seconds_of(X509_get0_notAfter(
					   sk_X509_value(chain, i))));
	return MIN(until, k->until);
}

/* May the letter @c be in a name? Letters that mean something in rules, on
 * terminals or in logs may not. */
static bool is_name(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("._-@:/", c));
}

static bool is_printable(unsigned char c)
{
	return c >= ' ' && c < 0x7f;
}

/* Copies @from, which may come from a stranger, to @to. Returns false if it has
 * a letter that a name may not have. */
static bool text_take(char *to, const ASN1_STRING *from,
		      bool (*is_good)(unsigned char))
{
	unsigned char *utf8 = NULL;
	int n = from ? ASN1_STRING_to_UTF8(&utf8, from) : -1;
	bool good = n > 0 && n < IDENTITY_NAME_SIZE;

	for (int i = 0; good && i < n; i++)
		good = is_good(utf8[i]);
	if (good)
		memcpy(to, utf8, (size_t)n + 1);
	OPENSSL_free(utf8);
	return good;
}

static bool common_name(char *to, const X509_NAME *name,
			bool (*is_good)(unsigned char))
{
	int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);

	return at >= 0 && text_take(to,
				    X509_NAME_ENTRY_get_data(
					    X509_NAME_get_entry(name, at)),
				    is_good);
}

#define NID_PREFIX "lnet:"

/* Adds the NIDs of an alternative name "lnet:NIDS" to @id. */
static bool nids_add(struct identity *id, const ASN1_STRING *uri)
{
	const char *text = (const char *)ASN1_STRING_get0_data(uri);
	size_t n = (size_t)ASN1_STRING_length(uri);
	size_t prefix = strlen(NID_PREFIX), have = 0;
	char *all;

	if (n <= prefix || strncmp(text, NID_PREFIX, prefix))
		return true; /* another kind of alternative name */
	for (size_t i = prefix; i < n; i++)
		if (!is_printable((unsigned char)text[i]))
			return true; /* not a list of NIDs: it is left out */
	for (unsigned int i = 0; i < id->nnids; i++)
		have += strlen(id->nids + have) + 1;
	n -= prefix;
	all = realloc(id->nids, have + n + 1);
	if (!all)
		return false;
	memcpy(all + have, text + prefix, n);
	all[have + n] = '\0';
	id->nids = all;
	id->nnids++;
	return true;
}

static bool nids_of(struct identity *id, X509 *certificate)
{
	GENERAL_NAMES *names =
		X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	bool good = true;

	for (int i = 0; i < sk_GENERAL_NAME_num(names) && good; i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);

		if (g->type == GEN_URI)
			good = nids_add(id, g->d.uniformResourceIdentifier);
	}
	GENERAL_NAMES_free(names);
	return good;
}

/* Writes the certificate's first DNS name, or else its common name, to @name.
 */
static bool name_of(char *name, X509 *certificate)
{
	GENERAL_NAMES *names =
		X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	bool found = false;

	for (int i = 0; i < sk_GENERAL_NAME_num(names) && !found; i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);

		found = g->type == GEN_DNS &&
			text_take(name, g->d.dNSName, is_name);
	}
	GENERAL_NAMES_free(names);
	return found ||
	       common_name(name, X509_get_subject_name(certificate), is_name);
}

/* Keeps in @id what keys_doubt() looks at when other keys are to judge it. */
static void trace_of(struct identity *id, X509 *certificate,
		     STACK_OF(X509) * chain)
{
	const ASN1_INTEGER *serial = X509_get0_serialNumber(certificate);
	int n = ASN1_STRING_length(serial), depth = sk_X509_num(chain);

	if (n > 0 && (size_t)n <= sizeof(id->serial)) {
		memcpy(id->serial, ASN1_STRING_get0_data(serial), (size_t)n);
		id->nserial = (uint8_t)n;
	}
	id->issuer_id = name_id(X509_get_issuer_name(certificate));
	if (depth > 0)
		id->root_id = key_id(sk_X509_value(chain, depth - 1));
}

struct identity *keys_cluster_identity(const struct keys *k, const char *name)
{
	const uint8_t *key = keys_cluster_find(k, name, strlen(name));
	struct identity *id =
		key ? identity_new(IDENTITY_CLUSTER_KEY, name, "") : NULL;

	if (id)
		id->root_id = cluster_id(key);
	return id;
}

bool keys_take_munge(const struct keys *k)
{
	return k->munge_take;
}

bool keys_show_munge(const struct keys *k)
{
	return k->munge_show;
}

void keys_munge(const struct keys *k, const struct munge_question *q,
		struct munge_answer *a)
{
	k->munge_ask(k->munge_socket, q, a);
}

struct identity *keys_munge_identity(const struct keys *k,
				     const struct munge_answer *a,
				     const char *cluster)
{
	const uint8_t *key = keys_cluster_find(k, cluster, strlen(cluster));
	struct identity *id =
		identity_user_new(a->user, a->uid, a->group, a->gid);

	if (id && identity_set_groups(id, a->groups)) {
		identity_put(id);
		return NULL;
	}
	if (id && key)
		id->root_id = cluster_id(key);
	return id;
}

struct identity *keys_identity(X509 *certificate, STACK_OF(X509) * chain)
{
	char name[IDENTITY_NAME_SIZE], issuer[IDENTITY_NAME_SIZE] = "";
	struct identity *id = NULL;

	(void)common_name(issuer, X509_get_issuer_name(certificate),
			  is_printable);
	if (name_of(name, certificate))
		id = identity_new(IDENTITY_CERTIFICATE, name, issuer);
	if (id && !nids_of(id, certificate)) {
		identity_put(id);
		id = NULL;
	}
	if (id)
		trace_of(id, certificate, chain);
	ERR_clear_error();
	if (id)
		id->until = seconds_of(X509_get0_notAfter(certificate));
	return id;
}

/* ---- whom other keys have believed ---- */

static bool is_on_list(X509_CRL *crl, const struct identity *id)
{
	ASN1_INTEGER *serial;
	X509_REVOKED *entry;
	bool there;

	if (name_id(X509_CRL_get_issuer(crl)) != id->issuer_id)
		return false;
	serial = ASN1_INTEGER_new();
	there = !serial || !ASN1_STRING_set(serial, id->serial, id->nserial) ||
		X509_CRL_get0_by_serial(crl, &entry, serial) == 1;
	ASN1_INTEGER_free(serial);
	return there;
}

static bool is_revoked(const struct keys *k, const struct identity *id)
{
	STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(k->authorities);

	for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
		X509_CRL *crl =
			X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(all, i));

		if (crl && is_on_list(crl, id))
			return true;
	}
	return false;
}

static bool has_root(const struct keys *k, uint64_t root_id)
{
	for (unsigned int i = 0; i < k->nroots; i++)
		if (k->roots[i] == root_id)
			return true;
	return false;
}

/* Returns why @k does not believe a user of MUNGE; NULL: it does. */
static const char *doubt_user(const struct keys *k, const struct identity *id)
{
	bool has_key = !id->root_id;

	if (!k->munge_take)
		return "MUNGE is not believed any more";
	for (unsigned int i = 0; i < k->ncluster; i++)
		has_key |= cluster_id(k->cluster[i].key) == id->root_id;
	return has_key ? NULL : "its cluster's key is not believed any more";
}

const char *keys_doubt(const struct keys *k, const struct identity *id)
{
	const uint8_t *key;

	if (id->kind == IDENTITY_MUNGE)
		return doubt_user(k, id);
	if (id->kind == IDENTITY_CLUSTER_KEY) {
		key = keys_cluster_find(k, id->name, strlen(id->name));
		return key && cluster_id(key) == id->root_id
			       ? NULL
			       : "its cluster's key is not believed any more";
	}
	if (id->until <= time(NULL))
		return "its certificate has ended";
	if (!has_root(k, id->root_id))
		return "its authority is not believed any more";
	return is_revoked(k, id) ? "its certificate was revoked" : NULL;
}

/* ---- contexts of TLS ---- */

/* Returns the cipher suites, the preferred one first: AES where the processor
 * has instructions for it. All use SHA-256, as pre-shared keys of a cluster
 * need. */
static const char *ciphers(void)
{
#if defined(__x86_64__)
	if (!__builtin_cpu_supports("aes"))
		return "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
#endif
	return "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
}

static bool context_shows(SSL_CTX *ctx, const struct keys *k)
{
	if (!k->certificate)
		return true;
	return SSL_CTX_use_certificate(ctx, k->certificate) == 1 &&
	       SSL_CTX_use_PrivateKey(ctx, k->key) == 1 &&
	       SSL_CTX_set1_chain(ctx, k->chain) == 1;
}

/* Looks for @protocol in the list of ALPN protocols @in, of @nin bytes. If it
 * is there, sets *@out to it and returns true. */
static bool alpn_find(const char *protocol, const unsigned char **out,
		      unsigned char *nout, const unsigned char *in,
		      unsigned int nin)
{
	size_t n = strlen(protocol);

	for (unsigned int at = 0; at < nin; at += 1U + in[at]) {
		if (in[at] != n || at + 1 + n > nin ||
		    memcmp(in + at + 1, protocol, n) != 0)
			continue;
		*out = in + at + 1;
		*nout = in[at];
		return true;
	}
	return false;
}

/* OpenSSL calls this when a client names ALPN protocols. A client that does not
 * name the server's protocol is refused; proto_is_right() refuses clients
 * without ALPN. A client that proves itself by MUNGE is not asked for a
 * certificate, and gets no ticket, by which it could come back without a
 * credential. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *nout,
		   const unsigned char *in, unsigned int nin, void *arg)
{
	struct keys_user *user = SSL_get_app_data(ssl);

	(void)arg;
	if (user->munge && alpn_find(user->munge, out, nout, in, nin)) {
		user->by_munge = true;
		SSL_set_verify(ssl, SSL_VERIFY_NONE, NULL);
		SSL_set_num_tickets(ssl, 0);
		return SSL_TLSEXT_ERR_OK;
	}
	if (alpn_find(user->protocol, out, nout, in, nin))
		return SSL_TLSEXT_ERR_OK;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* OpenSSL calls this when the server has sent a ticket. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct keys_user *user = SSL_get_app_data(ssl);

	SSL_SESSION_free(user->session);
	user->session = session;
	/* @session's reference now belongs to @user */
	return 1;
}

static void context_tickets(SSL_CTX *ctx, const struct keys *k, bool server)
{
	if (server) {
		tickets_serve(k->tickets, ctx);
		return;
	}
	SSL_CTX_set_timeout(ctx, TICKET_SECONDS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT |
						    SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
}

static SSL_CTX *context_new(const struct keys *k, bool server)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());

	if (!ctx)
		return NULL;
	SSL_CTX_set_verify(
		ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION |
					 SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_PRIORITIZE_CHACHA);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	context_tickets(ctx, k, server);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	if (k->authorities)
		SSL_CTX_set1_cert_store(ctx, k->authorities);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
	    SSL_CTX_set_ciphersuites(ctx, ciphers()) == 1 &&
	    SSL_CTX_set1_groups_list(ctx, "X25519:P-256") == 1 &&
	    context_shows(ctx, k))
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

SSL_CTX *keys_context(struct keys *k, bool server)
{
	return server ? k->server : k->client;
}

struct identity *keys_self(const struct keys *k)
{
	X509 *certificate = SSL_CTX_get0_certificate(k->server);

	return certificate ? keys_identity(certificate, NULL) : NULL;
}

/* ---- all together ---- */

static int check_conf(const struct keys_conf *c, struct keys_error *err)
{
	if (!c->certificate && !c->cluster && c->munge_take)
		return refuse(err, -EINVAL,
			      "MUNGE proves who users are: a server has to "
			      "have a certificate or a cluster's key");
	if (!c->certificate && !c->cluster && c->munge_show && !c->authority)
		return refuse(err, -EINVAL,
			      "MUNGE proves who this user is: whom to believe "
			      "says an authority, or a cluster's key");
	if (!c->certificate && !c->cluster && !c->munge_show)
		return refuse(err, -EINVAL,
			      "neither a certificate nor a cluster's key");
	if (!c->certificate != !c->key)
		return refuse(err, -EINVAL,
			      c->key ? "%s: a key without a certificate"
				     : "%s: a certificate without its key",
			      c->key ? c->key : c->certificate);
	if (c->certificate && !c->authority)
		return refuse(err, -EINVAL,
			      "%s: a certificate without an authority to "
			      "believe",
			      c->certificate);
	if (c->revoked && !c->authority)
		return refuse(err, -EINVAL, "%s: of which authority?",
			      c->revoked);
	return 0;
}

/* Checks that other nodes would believe this node's own certificate. */
static int check_own(struct keys *k, const struct keys_conf *c,
		     struct keys_error *err)
{
	struct keys_error why = { "" };
	struct identity *id = keys_identity(k->certificate, NULL);
	int rc = -EINVAL;

	if (!id)
		return refuse(err, -EINVAL,
			      "%s: the certificate has no name of at most %u "
			      "letters, digits and ._-@:/",
			      c->certificate, IDENTITY_NAME_SIZE - 1);
	identity_put(id);
	if (is_believed(k, k->certificate, &why)) {
		keys_end(k, X509_get0_notAfter(k->certificate));
		return 0;
	}
	if (X509_cmp_current_time(X509_get0_notAfter(k->certificate)) < 0 ||
	    X509_cmp_current_time(X509_get0_notBefore(k->certificate)) > 0)
		rc = -EKEYEXPIRED;
	return refuse(err, rc, "%s: those who believe %s do not believe it: %s",
		      c->certificate, c->authority, why.text);
}

static int take_munge(struct keys *k, const struct keys_conf *c,
		      struct keys_error *err)
{
	if (!c->munge_take && !c->munge_show)
		return 0;
	k->munge_take = c->munge_take;
	k->munge_show = c->munge_show;
	k->munge_ask = c->munge_ask ? c->munge_ask : munge_real();
	if (!k->munge_ask)
		return refuse(err, -EOPNOTSUPP,
			      "this program was built without MUNGE "
			      "(--with-munge)");
	if (!c->munge_socket)
		return 0;
	if (strlen(c->munge_socket) >=
	    sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return refuse(err, -EINVAL,
			      "%s: too long for the path of a socket",
			      c->munge_socket);
	k->munge_socket = strdup(c->munge_socket);
	return k->munge_socket ? 0 : refuse(err, -ENOMEM, "no memory");
}

static int read_all(struct keys *k, const struct keys_conf *c,
		    struct keys_error *err)
{
	int rc = check_conf(c, err);

	if (!rc && c->certificate)
		rc = read_certificate(k, c->certificate, err);
	if (!rc && c->key)
		rc = read_key(k, c->key, err);
	if (!rc && c->authority)
		rc = read_authorities(k, c->authority, err);
	if (!rc && c->revoked)
		rc = read_revoked(k, c->revoked, err);
	if (!rc && c->certificate)
		rc = check_own(k, c, err);
	if (!rc && c->cluster)
		rc = read_cluster(k, c->cluster, err);
	if (!rc)
		rc = take_munge(k, c, err);
	return rc;
}

int keys_load(const struct keys_conf *conf, struct keys **keys_p,
	      struct keys_error *err)
{
	struct keys *k = calloc(1, sizeof(*k));
	int rc;

	if (!k)
		return refuse(err, -ENOMEM, "no memory");
	k->refs = 1;
	k->until = INT64_MAX;
	rc = read_all(k, conf, err);
	if (!rc) {
		k->tickets = tickets_new();
		k->client = context_new(k, false);
		k->server = k->tickets ? context_new(k, true) : NULL;
		if (k->client && k->server) {
			*keys_p = k;
			return 0;
		}
		rc = refuse(err, -EINVAL, "OpenSSL: %s", reason());
	}
	keys_put(k);
	return rc;
}

struct keys *keys_ref(struct keys *k)
{
	atomic_fetch_add(&k->refs, 1);
	return k;
}

void keys_put(struct keys *k)
{
	if (!k || atomic_fetch_sub(&k->refs, 1) > 1)
		return;
	SSL_CTX_free(k->client);
	SSL_CTX_free(k->server);
	tickets_free(k->tickets);
	X509_STORE_free(k->authorities);
	free(k->roots);
	free(k->munge_socket);
	X509_free(k->certificate);
	sk_X509_pop_free(k->chain, X509_free);
	EVP_PKEY_free(k->key);
	OPENSSL_cleanse(k, sizeof(*k));
	free(k);
}
