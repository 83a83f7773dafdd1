/* SPDX-License-Identifier: BSD-3-Clause */
#include "show.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <ulnet/nid.h>

#include "secure/keys.h"

#define FAILED	  1
#define PATH_SIZE 4096

static int complain(const char *who, const char *path, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", who, path, what);
	ERR_clear_error();
	return FAILED;
}

static int complain_of(const char *who, const struct keys_error *err)
{
	fprintf(stderr, "%s: %s\n", who, err->text);
	return FAILED;
}

int nids_check(const char *text)
{
	struct ulnet_nidlist *list;
	int rc = lnet_nidlist_parse(text, &list, NULL);

	if (!rc)
		lnet_nidlist_free(list);
	return rc;
}

static void print_day(const char *before, int64_t at)
{
	char text[32];
	time_t t = (time_t)at;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d", &tm);
	printf("%s%s", before, text);
}

/* ---- certificates ---- */

static void print_nids(const struct identity *id)
{
	const char *nids = id->nids;

	for (unsigned int i = 0; i < id->nnids; i++) {
		printf("%s%s", i ? " " : ", speaks for ", nids);
		nids += strlen(nids) + 1;
	}
}

static void print_certificate(const struct identity *id, X509 *c)
{
	const ASN1_TIME *from = X509_get0_notBefore(c);
	struct tm tm;

	printf("%s, signed by %s", id->name, id->issuer);
	print_nids(id);
	if (X509_cmp_current_time(from) > 0 && ASN1_TIME_to_tm(from, &tm))
		print_day(", not valid before ", timegm(&tm));
	print_day(", valid until ", id->until);
	if (id->until < time(NULL))
		printf(" (over)");
	putchar('\n');
}

static int show_certificate(const char *who, const char *path, X509 *c)
{
	struct identity *id = keys_identity(c, NULL);

	if (!id)
		return complain(who, path, "a certificate without a name");
	printf("%s: %s ", path, X509_check_ca(c) ? "an authority:" : "a node:");
	print_certificate(id, c);
	identity_put(id);
	return 0;
}

/* ---- lists of what was revoked ---- */

static void show_revoked(const char *path, X509_CRL *crl)
{
	STACK_OF(X509_REVOKED) *all = X509_CRL_get_REVOKED(crl);
	int n = sk_X509_REVOKED_num(all);

	printf("%s: a list of what was revoked: %d certificates\n", path,
	       n < 0 ? 0 : n);
	for (int i = 0; i < n; i++) {
		X509_REVOKED *r = sk_X509_REVOKED_value(all, i);
		const ASN1_INTEGER *serial = X509_REVOKED_get0_serialNumber(r);
		BIGNUM *number = ASN1_INTEGER_to_BN(serial, NULL);
		char *hex = number ? BN_bn2hex(number) : NULL;
		struct tm tm;

		printf("\tserial %s", hex ? hex : "?");
		if (ASN1_TIME_to_tm(X509_REVOKED_get0_revocationDate(r), &tm))
			print_day(" on ", timegm(&tm));
		putchar('\n');
		OPENSSL_free(hex);
		BN_free(number);
	}
}

/* ---- files ---- */

/* Shows one object of PEM. Returns 0 or FAILED; < 0: the object is something
 * else. */
static int show_pem(const char *who, const char *path, const char *name,
		    const uint8_t *bytes, long n)
{
	struct keys_error err = { "" };
	X509_CRL *crl = NULL;
	X509 *c = NULL;
	int rc = -1;

	if (!strcmp(name, PEM_STRING_X509)) {
		c = d2i_X509(NULL, &bytes, n);
		rc = c ? show_certificate(who, path, c)
		       : complain(who, path, "a damaged certificate");
	} else if (!strcmp(name, PEM_STRING_X509_CRL)) {
		crl = d2i_X509_CRL(NULL, &bytes, n);
		if (crl)
			show_revoked(path, crl);
		rc = crl ? 0 : complain(who, path, "a damaged list");
	} else if (strstr(name, "PRIVATE KEY")) {
		rc = keys_check_file(path, &err) ? complain_of(who, &err) : 0;
		if (!rc)
			printf("%s: a key\n", path);
	}
	X509_free(c);
	X509_CRL_free(crl);
	return rc;
}

/* Shows the names of the keys if the file has a cluster's keys. */
static int show_cluster(const char *who, const char *path)
{
	struct keys_error err = { "" };
	struct keys *k;
	const char *name;

	if (keys_load(&(struct keys_conf){ .cluster = path }, &k, &err)) {
		fprintf(stderr,
			"%s: %s: nothing in PEM is in it; and not a cluster's "
			"keys either: %s\n",
			who, path, err.text);
		return FAILED;
	}
	for (unsigned int i = 0; (name = keys_cluster_name(k, i)); i++)
		printf("%s: a cluster's key: %s, %s\n", path, name,
		       i ? "believed" : "used");
	keys_put(k);
	return 0;
}

int show_file(const char *who, const char *path)
{
	BIO *bio = NULL;
	struct stat st;
	char *name, *header;
	uint8_t *bytes;
	unsigned int n = 0;
	int rc = 0;
	long length;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return complain(who, path, "a folder, and files are expected");
	bio = BIO_new_file(path, "r");
	if (!bio)
		return complain(who, path, strerror(errno));
	while (!rc && PEM_read_bio(bio, &name, &header, &bytes, &length) == 1) {
		n++;
		rc = show_pem(who, path, name, bytes, length);
		if (rc < 0)
			rc = complain(who, path, name);
		OPENSSL_free(name);
		OPENSSL_free(header);
		OPENSSL_clear_free(bytes, (size_t)length);
	}
	BIO_free(bio);
	if (!rc && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return complain(who, path, "damaged PEM");
	ERR_clear_error();
	return n ? rc : show_cluster(who, path);
}

/* ---- checks ---- */

static void path_of(char *path, const char *folder, const char *name,
		    const char *suffix)
{
	snprintf(path, PATH_SIZE, "%s/%s%s", folder, name, suffix);
}

int check_node(const char *who, const char *folder, const char *name)
{
	char crt[PATH_SIZE], key[PATH_SIZE], authority[PATH_SIZE];
	char revoked[PATH_SIZE], cluster[PATH_SIZE];
	struct keys_conf conf = { .certificate = crt,
				  .key = key,
				  .authority = authority,
				  .revoked = revoked,
				  .cluster = cluster };
	struct keys_error err = { "" };
	struct keys *k;

	path_of(crt, folder, name, ".crt");
	path_of(key, folder, name, ".key");
	path_of(authority, folder, "authority", ".crt");
	path_of(revoked, folder, "revoked", ".crl");
	path_of(cluster, folder, "cluster", ".key");
	if (access(revoked, F_OK))
		conf.revoked = NULL;
	if (access(cluster, F_OK))
		conf.cluster = NULL;
	if (keys_load(&conf, &k, &err))
		return complain_of(who, &err);
	keys_put(k);
	return show_file(who, crt);
}
