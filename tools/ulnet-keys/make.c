/* SPDX-License-Identifier: BSD-3-Clause */
#include "make.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "secure/keys.h"

#define FAILED	  1
#define PATH_SIZE 4096
#define NAME_SIZE 64 /* bytes of the longest common name in X.509 */
/* s by which a certificate is valid before it is made, since clocks of nodes
 * differ. */
#define BEFORE (24 * 3600)
#define DAY    (24 * 3600)

static __attribute__((format(printf, 2, 3))) int complain(const struct make *m,
							  const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", m->who);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	ERR_clear_error();
	return FAILED;
}

static int openssl_failed(const struct make *m, const char *what)
{
	const char *text = ERR_reason_error_string(ERR_peek_last_error());

	return complain(m, "%s: OpenSSL: %s", what, text ? text : "no memory");
}

/* ---- files ---- */

static int path_of(const struct make *m, const char *name, const char *suffix,
		   char path[PATH_SIZE])
{
	int n = snprintf(path, PATH_SIZE, "%s/%s%s", m->folder, name, suffix);

	if (n < 0 || n >= PATH_SIZE)
		return complain(m, "%s/%s%s: the path is too long", m->folder,
				name, suffix);
	return 0;
}

static bool exists(const char *path)
{
	struct stat st;

	return !stat(path, &st);
}

/* Gives the file @temporary the name @path. */
static int file_name(const char *temporary, const char *path, bool over)
{
	if (over)
		return rename(temporary, path);
	if (link(temporary, path))
		return -1;
	return unlink(temporary);
}

/* Writes the content of @bio to @path, which gets @mode. @path may exist before
 * only if @over. */
static int file_write(const struct make *m, const char *path, mode_t mode,
		      BIO *bio, bool over)
{
	char temporary[PATH_SIZE + 8];
	char *bytes;
	long n = BIO_get_mem_data(bio, &bytes);
	int fd, bad;

	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return complain(m, "%s: %s", path, strerror(errno));
	errno = ENOSPC; /* errno of a write that has written only a part */
	bad = write(fd, bytes, (size_t)n) != n || fchmod(fd, mode) ||
	      fsync(fd) || file_name(temporary, path, over);
	if (bad) {
		bad = errno;
		unlink(temporary);
	}
	close(fd);
	return bad ? complain(m, "%s: %s", path, strerror(bad)) : 0;
}

static int memory_bio(const struct make *m, BIO **bio_p)
{
	*bio_p = BIO_new(BIO_s_secmem());
	return *bio_p ? 0 : complain(m, "no memory");
}

/* If @good is true, writes the object in @bio. Frees @bio in any case. */
static int bio_write(const struct make *m, const char *path, mode_t mode,
		     bool over, BIO *bio, bool good)
{
	int rc = good ? file_write(m, path, mode, bio, over)
		      : openssl_failed(m, path);

	BIO_free(bio);
	return rc;
}

static int key_write(const struct make *m, const char *path, EVP_PKEY *key)
{
	BIO *bio;
	int rc = memory_bio(m, &bio);

	if (rc)
		return rc;
	return bio_write(m, path, 0600, m->renew, bio,
			 PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL,
						  NULL) == 1);
}

static int certificate_write(const struct make *m, const char *path, X509 *c)
{
	BIO *bio;
	int rc = memory_bio(m, &bio);

	if (rc)
		return rc;
	return bio_write(m, path, 0644, m->renew, bio,
			 PEM_write_bio_X509(bio, c) == 1);
}

static int crl_write(const struct make *m, const char *path, X509_CRL *crl)
{
	BIO *bio;
	int rc = memory_bio(m, &bio);

	if (rc)
		return rc;
	return bio_write(m, path, 0644, true, bio,
			 PEM_write_bio_X509_CRL(bio, crl) == 1);
}

/* Waits until other commands that change the folder have ended. Makes the
 * folder if it does not exist and @new allows it. Returns a descriptor, which
 * the caller closes; < 0 after a message. */
static int folder_lock(const struct make *m, bool new)
{
	int fd = -1;

	if (!new || !mkdir(m->folder, 0755) || errno == EEXIST)
		fd = open(m->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && !flock(fd, LOCK_EX))
		return fd;
	complain(m, "%s: %s", m->folder, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Checks that nobody but its owner can read a file with a key in it. */
static int check_secret(const struct make *m, const char *path)
{
	struct keys_error err = { "" };

	return keys_check_file(path, &err) ? complain(m, "%s", err.text) : 0;
}

/* ---- the authority, as it is in the folder ---- */

struct authority {
	X509 *certificate;
	EVP_PKEY *key;
};

static void authority_free(struct authority *a)
{
	X509_free(a->certificate);
	EVP_PKEY_free(a->key);
}

static int certificate_read(const struct make *m, const char *path, X509 **c_p)
{
	BIO *bio = BIO_new_file(path, "r");

	if (!bio)
		return complain(m, "%s: %s", path, strerror(errno));
	*c_p = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	return *c_p ? 0 : openssl_failed(m, path);
}

static int authority_read(const struct make *m, struct authority *a)
{
	char path[PATH_SIZE];
	BIO *bio;
	int rc = path_of(m, "authority", ".crt", path);

	*a = (struct authority){ 0 };
	if (!rc && !exists(path))
		return complain(m,
				"%s: there is no authority: make one by "
				"'ulnet-keys authority NAME'",
				path);
	if (!rc)
		rc = certificate_read(m, path, &a->certificate);
	if (!rc)
		rc = path_of(m, "authority", ".key", path);
	if (!rc)
		rc = check_secret(m, path);
	if (rc)
		return rc;
	bio = BIO_new_file(path, "r");
	if (!bio)
		return complain(m, "%s: %s", path, strerror(errno));
	a->key = PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"");
	BIO_free(bio);
	if (!a->key)
		return openssl_failed(m, path);
	if (X509_check_private_key(a->certificate, a->key) != 1)
		return complain(m, "%s: it is not the key of authority.crt",
				path);
	return 0;
}

/* ---- certificates ---- */

static bool extension(X509V3_CTX *ctx, X509 *c, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, ctx, nid, value);
	bool good = e && X509_add_ext(c, e, -1) == 1;

	X509_EXTENSION_free(e);
	return good;
}

static bool name_add(GENERAL_NAMES *names, int type, const char *before,
		     const char *text)
{
	GENERAL_NAME *g = GENERAL_NAME_new();
	ASN1_IA5STRING *value = ASN1_IA5STRING_new();
	char *both = NULL;
	bool good = g && value && asprintf(&both, "%s%s", before, text) > 0 &&
		    ASN1_STRING_set(value, both, -1) == 1;

	free(both);
	if (good) {
		GENERAL_NAME_set0_value(g, type, value);
		value = NULL;
		good = sk_GENERAL_NAME_push(names, g) > 0;
	}
	if (!good)
		GENERAL_NAME_free(g);
	ASN1_IA5STRING_free(value);
	return good;
}

/* Adds the extension with the node's name, and with the NIDs that the node may
 * speak for. */
static bool alternative_names(X509 *c, const char *name,
			      const char *const *nids)
{
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	bool good = names && name_add(names, GEN_DNS, "", name);

	for (; good && nids && *nids; nids++)
		good = name_add(names, GEN_URI, "lnet:", *nids);
	good = good &&
	       X509_add1_ext_i2d(c, NID_subject_alt_name, names, 0, 0) == 1;
	sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free);
	return good;
}

/* Sets a serial number that nobody can guess, and that hardly comes twice. */
static bool set_serial(X509 *c)
{
	BIGNUM *n = BN_new();
	bool good = n &&
		    BN_rand(n, 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
		    BN_to_ASN1_INTEGER(n, X509_get_serialNumber(c));

	BN_free(n);
	return good;
}

static bool set_common(const struct make *m, X509 *c, const char *name,
		       EVP_PKEY *key)
{
	time_t now = (time_t)m->now;

	return X509_set_version(c, X509_VERSION_3) == 1 && set_serial(c) &&
	       X509_time_adj_ex(X509_getm_notBefore(c), 0, -BEFORE, &now) &&
	       X509_time_adj_ex(X509_getm_notAfter(c), (int)m->days, 0, &now) &&
	       X509_set_pubkey(c, key) == 1 &&
	       X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN",
					  MBSTRING_UTF8, (const uint8_t *)name,
					  -1, -1, 0) == 1;
}

/* Makes a certificate for @key, signed by @a; if @a is NULL, an authority's
 * certificate, which is signed by itself. Returns NULL if OpenSSL has failed,
 * and has the reason. */
static X509 *certificate_new(const struct make *m, const char *name,
			     EVP_PKEY *key, const struct authority *a)
{
	X509 *c = X509_new(), *by = a ? a->certificate : c;
	X509V3_CTX ctx;
	bool good;

	if (!c)
		return NULL;
	X509V3_set_ctx(&ctx, by, c, NULL, NULL, 0);
	good = set_common(m, c, name, key) &&
	       X509_set_issuer_name(c, X509_get_subject_name(by)) == 1 &&
	       extension(&ctx, c, NID_subject_key_identifier, "hash");
	if (!a)
		good = good &&
		       extension(&ctx, c, NID_basic_constraints,
				 "critical,CA:TRUE,pathlen:0") &&
		       extension(&ctx, c, NID_key_usage,
				 "critical,keyCertSign,cRLSign");
	else
		good = good &&
		       extension(&ctx, c, NID_authority_key_identifier,
				 "keyid:always") &&
		       extension(&ctx, c, NID_basic_constraints,
				 "critical,CA:FALSE") &&
		       extension(&ctx, c, NID_key_usage,
				 "critical,digitalSignature") &&
		       extension(&ctx, c, NID_ext_key_usage,
				 "clientAuth,serverAuth") &&
		       alternative_names(c, name, m->nids);
	if (good && X509_sign(c, a ? a->key : key, EVP_sha256()) > 0)
		return c;
	X509_free(c);
	return NULL;
}

/* Reads the NIDs in the certificate @path: an array with NULL at its end. The
 * caller frees *@id_p, to which they belong. */
static int old_nids(const struct make *m, const char *path,
		    const char *nids[MAKE_NIDS + 1], struct identity **id_p)
{
	const char *at;
	X509 *c;
	int rc = certificate_read(m, path, &c);

	if (rc)
		return rc;
	*id_p = keys_identity(c, NULL);
	X509_free(c);
	if (!*id_p)
		return complain(m, "%s: a certificate without a name", path);
	if ((*id_p)->nnids > MAKE_NIDS)
		return complain(m, "%s: more than %d lists of NIDs", path,
				MAKE_NIDS);
	at = (*id_p)->nids;
	for (unsigned int i = 0; i < (*id_p)->nnids; i++) {
		nids[i] = at;
		at += strlen(at) + 1;
	}
	nids[(*id_p)->nnids] = NULL;
	return 0;
}

/* Checks @name, which will be a part of file names, certificates and rules. */
static int check_name(const struct make *m, const char *name)
{
	static const char may[] = "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789._-";

	if (*name && !strchr("._-", *name) &&
	    strspn(name, may) == strlen(name) && strlen(name) <= NAME_SIZE)
		return 0;
	return complain(m,
			"'%s': a name has 1 to %d letters, digits, dots, "
			"underscores and dashes, and begins with none of the "
			"last three",
			name, NAME_SIZE);
}

static int keep_old(const struct make *m, const char *path, const char *old)
{
	if (link(path, old))
		return complain(m, "%s: %s", old, strerror(errno));
	return 0;
}

/* Keeps what is renewed as NAME.old.crt and NAME.old.key, so that it can be
 * revoked. */
static int pair_keep(const struct make *m, const char *name, const char *crt,
		     const char *key)
{
	char old_crt[PATH_SIZE], old_key[PATH_SIZE];
	X509 *c;
	bool over;
	int rc = path_of(m, name, ".old.crt", old_crt);

	if (!rc)
		rc = path_of(m, name, ".old.key", old_key);
	if (!rc && exists(old_crt)) {
		rc = certificate_read(m, old_crt, &c);
		if (rc)
			return rc;
		over = X509_cmp_current_time(X509_get0_notAfter(c)) < 0;
		X509_free(c);
		if (!over)
			return complain(m,
					"%s is still valid: revoke %s.old, or "
					"remove this file",
					old_crt, name);
		unlink(old_crt);
		unlink(old_key);
	}
	if (!rc)
		rc = keep_old(m, crt, old_crt);
	if (!rc)
		rc = keep_old(m, key, old_key);
	return rc;
}

/* Checks that the files of a node or authority may be written. */
static int pair_check(const struct make *m, const char *name, const char *crt,
		      const char *key)
{
	if (m->renew && exists(crt) && exists(key))
		return pair_keep(m, name, crt, key);
	if (m->renew)
		return complain(m, "%s: there is nothing to renew",
				exists(crt) ? key : crt);
	if (exists(crt) || exists(key))
		return complain(m,
				"%s is there already, and is not written over",
				exists(crt) ? crt : key);
	return 0;
}

/* Makes a key and its certificate, and writes them to two files. */
static int pair_make(const struct make *m, const char *name, const char *file,
		     const struct authority *a)
{
	char crt[PATH_SIZE], key_path[PATH_SIZE];
	EVP_PKEY *key = NULL;
	X509 *c = NULL;
	int rc = path_of(m, file, ".crt", crt);

	if (!rc)
		rc = path_of(m, file, ".key", key_path);
	if (!rc)
		rc = pair_check(m, file, crt, key_path);
	if (rc)
		return rc;
	key = EVP_EC_gen("P-256");
	if (key)
		c = certificate_new(m, name, key, a);
	rc = c ? key_write(m, key_path, key) : openssl_failed(m, name);
	if (!rc) {
		rc = certificate_write(m, crt, c);
		if (rc && !m->renew)
			unlink(key_path);
	}
	X509_free(c);
	EVP_PKEY_free(key);
	return rc;
}

/* ---- what was revoked ---- */

/* Reads the list of what the authority @a has revoked. *@crl_p is NULL if there
 * is no file. */
static int crl_read(const struct make *m, const struct authority *a,
		    const char *path, X509_CRL **crl_p)
{
	X509_CRL *more;
	BIO *bio;

	*crl_p = NULL;
	if (!exists(path))
		return 0;
	bio = BIO_new_file(path, "r");
	if (!bio)
		return complain(m, "%s: %s", path, strerror(errno));
	*crl_p = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL);
	if (!*crl_p) {
		BIO_free(bio);
		return openssl_failed(m, path);
	}
	more = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL);
	BIO_free(bio);
	ERR_clear_error();
	X509_CRL_free(more);
	if (!more && !X509_NAME_cmp(X509_CRL_get_issuer(*crl_p),
				    X509_get_subject_name(a->certificate)))
		return 0;
	X509_CRL_free(*crl_p);
	*crl_p = NULL;
	return complain(m,
			"%s: lists of other authorities are in it, which would "
			"be lost",
			path);
}

/* Copies the entries of @from to @to. */
static bool crl_copy(X509_CRL *to, X509_CRL *from)
{
	STACK_OF(X509_REVOKED) *all = from ? X509_CRL_get_REVOKED(from) : NULL;
	bool good = true;

	for (int i = 0; good && i < sk_X509_REVOKED_num(all); i++) {
		X509_REVOKED *r =
			X509_REVOKED_dup(sk_X509_REVOKED_value(all, i));

		good = r && X509_CRL_add0_revoked(to, r) == 1;
	}
	return good;
}

static bool crl_add(X509_CRL *crl, X509 *c, int64_t now)
{
	X509_REVOKED *r = X509_REVOKED_new();
	ASN1_TIME *at = ASN1_TIME_set(NULL, (time_t)now);
	bool good = r && at &&
		    X509_REVOKED_set_serialNumber(
			    r, X509_get_serialNumber(c)) == 1 &&
		    X509_REVOKED_set_revocationDate(r, at) == 1 &&
		    X509_CRL_add0_revoked(crl, r) == 1;

	if (!good)
		X509_REVOKED_free(r);
	ASN1_TIME_free(at);
	return good;
}

/* Adds the extensions of a list (RFC 5280, 5.2): which key has signed it, since
 * two authorities may have the same name; and its number. */
static bool crl_extend(X509_CRL *crl, const struct authority *a, X509_CRL *old)
{
	ASN1_INTEGER *n =
		old ? X509_CRL_get_ext_d2i(old, NID_crl_number, NULL, NULL)
		    : NULL;
	int64_t number = 0;
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	bool good;

	X509V3_set_ctx(&ctx, a->certificate, NULL, NULL, crl, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, NID_authority_key_identifier,
				"keyid:always");
	good = e && X509_CRL_add_ext(crl, e, -1) == 1 &&
	       (!n || ASN1_INTEGER_get_int64(&number, n) == 1);
	X509_EXTENSION_free(e);
	ASN1_INTEGER_free(n);
	n = ASN1_INTEGER_new();
	good = good && n && ASN1_INTEGER_set_int64(n, number + 1) == 1 &&
	       X509_CRL_add1_ext_i2d(crl, NID_crl_number, n, 0, 0) == 1;
	ASN1_INTEGER_free(n);
	return good;
}

/* Makes a list of what was revoked: the entries of @old, and @c; each may be
 * NULL. Returns NULL if OpenSSL has failed, and has the reason. A list is valid
 * for as long as the authority: nodes do not require a recent one. */
static X509_CRL *crl_new(const struct make *m, const struct authority *a,
			 X509_CRL *old, X509 *c)
{
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *from = ASN1_TIME_adj(NULL, (time_t)m->now, 0, -BEFORE);
	bool good = crl && from && X509_CRL_set_version(crl, 1) == 1 &&
		    X509_CRL_set_issuer_name(
			    crl, X509_get_subject_name(a->certificate)) == 1 &&
		    X509_CRL_set1_lastUpdate(crl, from) == 1 &&
		    X509_CRL_set1_nextUpdate(
			    crl, X509_get0_notAfter(a->certificate)) == 1 &&
		    crl_extend(crl, a, old) && crl_copy(crl, old) &&
		    (!c || crl_add(crl, c, m->now)) &&
		    X509_CRL_sort(crl) == 1 &&
		    X509_CRL_sign(crl, a->key, EVP_sha256()) > 0;

	ASN1_TIME_free(from);
	if (good)
		return crl;
	X509_CRL_free(crl);
	return NULL;
}

static int crl_make(const struct make *m, const struct authority *a, X509 *c)
{
	char path[PATH_SIZE];
	X509_CRL *old, *crl;
	X509_REVOKED *r;
	int rc = path_of(m, "revoked", ".crl", path);

	if (!rc)
		rc = crl_read(m, a, path, &old);
	if (rc)
		return rc;
	if (old && c && X509_CRL_get0_by_cert(old, &r, c) == 1) {
		X509_CRL_free(old);
		return 0;
	}
	crl = crl_new(m, a, old, c);
	rc = crl ? crl_write(m, path, crl) : openssl_failed(m, path);
	X509_CRL_free(old);
	X509_CRL_free(crl);
	return rc;
}

/* ---- commands ---- */

int make_authority(const struct make *m, const char *name)
{
	struct authority a = { 0 };
	int lock, rc = check_name(m, name);

	if (rc)
		return rc;
	lock = folder_lock(m, true);
	if (lock < 0)
		return FAILED;
	rc = pair_make(m, name, "authority", NULL);
	if (!rc)
		rc = authority_read(m, &a);
	if (!rc)
		rc = crl_make(m, &a, NULL);
	authority_free(&a);
	close(lock);
	return rc;
}

/* As pair_make(), with the NIDs that the node's certificate has, unless others
 * are given. */
static int node_renew(const struct make *m, const char *name,
		      const struct authority *a)
{
	const char *nids[MAKE_NIDS + 1];
	struct identity *id = NULL;
	struct make with = *m;
	char crt[PATH_SIZE];
	int rc = path_of(m, name, ".crt", crt);

	if (!rc && !exists(crt))
		rc = complain(m, "%s: there is nothing to renew", crt);
	if (!rc && (!m->nids || !*m->nids)) {
		rc = old_nids(m, crt, nids, &id);
		with.nids = nids;
	}
	if (!rc)
		rc = pair_make(&with, name, name, a);
	identity_put(id);
	return rc;
}

int make_node(const struct make *m, const char *name)
{
	struct authority a = { 0 };
	int lock, rc = check_name(m, name);

	if (!rc && (!strcmp(name, "authority") || !strcmp(name, "cluster")))
		rc = complain(m,
			      "a node cannot be called '%s': its files would "
			      "be others'",
			      name);
	if (rc)
		return rc;
	lock = folder_lock(m, false);
	if (lock < 0)
		return FAILED;
	rc = authority_read(m, &a);
	if (!rc)
		rc = m->renew ? node_renew(m, name, &a)
			      : pair_make(m, name, name, &a);
	authority_free(&a);
	close(lock);
	return rc;
}

int make_revoked(const struct make *m, const char *name)
{
	struct authority a = { 0 };
	char path[PATH_SIZE];
	X509 *c = NULL;
	int lock, rc = check_name(m, name);

	if (rc)
		return rc;
	lock = folder_lock(m, false);
	if (lock < 0)
		return FAILED;
	rc = authority_read(m, &a);
	if (!rc)
		rc = path_of(m, name, ".crt", path);
	if (!rc)
		rc = certificate_read(m, path, &c);
	if (!rc && X509_NAME_cmp(X509_get_issuer_name(c),
				 X509_get_subject_name(a.certificate)))
		rc = complain(m, "%s: it is not of this authority", path);
	if (!rc)
		rc = crl_make(m, &a, c);
	X509_free(c);
	authority_free(&a);
	close(lock);
	return rc;
}

/* Adds the content of @path, a file with keys, to @bio. */
static int file_read(const struct make *m, const char *path, BIO *bio)
{
	char bytes[4096];
	BIO *from;
	int n, rc = check_secret(m, path);

	if (rc)
		return rc;
	from = BIO_new_file(path, "r");
	if (!from)
		return complain(m, "%s: %s", path, strerror(errno));
	while ((n = BIO_read(from, bytes, sizeof(bytes))) > 0)
		BIO_write(bio, bytes, n);
	BIO_free(from);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return 0;
}

static int line_add(const struct make *m, const char *name, BIO *bio)
{
	uint8_t key[CLUSTER_KEY_SIZE];
	char hex[2 * CLUSTER_KEY_SIZE + 1];
	size_t n;

	if (RAND_priv_bytes(key, sizeof(key)) != 1 ||
	    OPENSSL_buf2hexstr_ex(hex, sizeof(hex), &n, key, sizeof(key),
				  '\0') != 1)
		return openssl_failed(m, name);
	BIO_printf(bio, "%s %s\n", name, hex);
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(hex, sizeof(hex));
	return 0;
}

/* Refuses to write a file that no node would take: with too many keys, or with
 * a name twice. */
static int check_cluster(const struct make *m, const char *path,
			 const char *name)
{
	struct keys_error err = { "" };
	struct keys *k;
	unsigned int n = 0;
	const char *have;
	int rc = 0;

	if (!exists(path))
		return 0;
	if (keys_load(&(struct keys_conf){ .cluster = path }, &k, &err))
		return complain(m, "%s", err.text);
	for (; !rc && (have = keys_cluster_name(k, n)); n++)
		if (!strcmp(have, name))
			rc = complain(m, "%s: there is a key '%s' already",
				      path, name);
	if (!rc && n == CLUSTER_KEYS_MAX)
		rc = complain(m, "%s: no more than %d keys: remove an old one",
			      path, CLUSTER_KEYS_MAX);
	keys_put(k);
	return rc;
}

static int cluster_make(const struct make *m, const char *name, bool first)
{
	char path[PATH_SIZE];
	BIO *bio;
	int rc = path_of(m, "cluster", ".key", path);

	if (!rc)
		rc = check_cluster(m, path, name);
	if (!rc)
		rc = memory_bio(m, &bio);
	if (rc)
		return rc;
	if (first)
		rc = line_add(m, name, bio);
	if (!rc && exists(path))
		rc = file_read(m, path, bio);
	if (!rc && !first)
		rc = line_add(m, name, bio);
	if (!rc)
		rc = file_write(m, path, 0600, bio, true);
	BIO_free(bio);
	return rc;
}

int make_cluster(const struct make *m, const char *name, bool first)
{
	int lock, rc = check_name(m, name);

	if (rc)
		return rc;
	lock = folder_lock(m, true);
	if (lock < 0)
		return FAILED;
	rc = cluster_make(m, name, first);
	close(lock);
	return rc;
}
