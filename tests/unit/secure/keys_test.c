/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#include "tests/unit/secure/folder.h"

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	cr_assert(file);
	cr_assert(fputs(text, file) >= 0);
	cr_assert_eq(fclose(file), 0);
	cr_assert_eq(chmod(path, mode), 0);
}

static void refused(const struct keys_conf *conf, int rc, const char *text)
{
	struct keys_error err = { "" };
	struct keys *k;

	cr_expect_eq(keys_load(conf, &k, &err), rc, "%s", err.text);
	cr_expect(strstr(err.text, text), "'%s' is not in '%s'", text,
		  err.text);
}

Test(keys, of_a_node)
{
	struct folder *f = folder_of_two();
	struct keys *k = keys_of(f, "a", "authority.crt", "revoked.crl");

	keys_put(keys_ref(k));
	keys_put(k);
	folder_end(f);
}

Test(keys, that_others_can_read)
{
	struct folder *f = folder_of_two();
	struct keys_conf conf = { .certificate = in(f, "a.crt"),
				  .key = in(f, "a.key"),
				  .authority = in(f, "authority.crt") };

	cr_assert_eq(chmod(conf.key, 0640), 0);
	refused(&conf, -EACCES, "others may read or change it (mode 640)");
	cr_assert_eq(chmod(conf.key, 0600), 0);
	keys_put(load(&conf));
	folder_end(f);
}

Test(keys, files_that_do_not_fit)
{
	struct folder *f = folder_of_two();
	const char *a = in(f, "a.crt"), *key = in(f, "a.key");
	const char *authority = in(f, "authority.crt");

	refused(&(struct keys_conf){ 0 }, -EINVAL,
		"neither a certificate nor a cluster's key");
	refused(&(struct keys_conf){ .certificate = a, .authority = authority },
		-EINVAL, "a.crt: a certificate without its key");
	refused(&(struct keys_conf){ .key = key, .cluster = "x" }, -EINVAL,
		"a.key: a key without a certificate");
	refused(&(struct keys_conf){ .certificate = a, .key = key }, -EINVAL,
		"a.crt: a certificate without an authority");
	refused(&(struct keys_conf){ .certificate = a,
				     .key = in(f, "b.key"),
				     .authority = authority },
		-EINVAL, "b.key: it is not the key of the certificate");
	refused(&(struct keys_conf){ .certificate = a,
				     .key = key,
				     .authority = in(f, "b.crt") },
		-EINVAL, "b.crt: certificate 1 in it is not an authority's");
	refused(&(struct keys_conf){ .certificate = a,
				     .key = key,
				     .authority = authority,
				     .revoked = a },
		-EINVAL, "a.crt: there is no list of what was revoked");
	refused(&(struct keys_conf){ .certificate = in(f, "c.crt"),
				     .key = key,
				     .authority = authority },
		-ENOENT, "c.crt: No such file");
	folder_end(f);
}

/* Whoever believes the authority would not believe the node. */
Test(keys, of_another_authority)
{
	struct folder *f = folder_of_two(), *other = folder_of_two();

	refused(&(struct keys_conf){ .certificate = in(f, "a.crt"),
				     .key = in(f, "a.key"),
				     .authority = in(other, "authority.crt") },
		-EINVAL, "do not believe it");
	folder_end(other);
	folder_end(f);
}

Test(keys, not_valid_now)
{
	struct folder *f = folder_new();
	struct make then = f->make, later = f->make;

	then.now -= 60 * 24 * 3600;
	later.now += 60 * 24 * 3600;
	f->make.days = 300;
	cr_assert_eq(make_authority(&f->make, "site"), 0);
	cr_assert_eq(make_node(&then, "a"), 0);
	cr_assert_eq(make_node(&later, "b"), 0);
	refused(&(struct keys_conf){ .certificate = in(f, "a.crt"),
				     .key = in(f, "a.key"),
				     .authority = in(f, "authority.crt") },
		-EKEYEXPIRED, "expired");
	refused(&(struct keys_conf){ .certificate = in(f, "b.crt"),
				     .key = in(f, "b.key"),
				     .authority = in(f, "authority.crt") },
		-EKEYEXPIRED, "not yet valid");
	folder_end(f);
}

Test(keys, revoked)
{
	struct folder *f = folder_of_two();

	cr_assert_eq(make_revoked(&f->make, "a"), 0);
	cr_assert_eq(make_revoked(&f->make, "a"), 0);
	refused(&(struct keys_conf){ .certificate = in(f, "a.crt"),
				     .key = in(f, "a.key"),
				     .authority = in(f, "authority.crt"),
				     .revoked = in(f, "revoked.crl") },
		-EINVAL, "revoked");
	keys_put(keys_of(f, "b", "authority.crt", "revoked.crl"));
	folder_end(f);
}

Test(keys, of_a_cluster)
{
	struct folder *f = folder_new();
	struct keys_conf conf = { .cluster = in(f, "cluster.key") };
	const uint8_t *key, *old;
	struct keys *k;

	cr_assert_eq(make_cluster(&f->make, "old", false), 0);
	cr_assert_eq(make_cluster(&f->make, "new", false), 0);
	cr_assert_eq(make_cluster(&f->make, "used", true), 0);
	k = load(&conf);
	cr_expect_str_eq(keys_cluster(k, &key), "used");
	cr_expect_eq(keys_cluster_find(k, "used", 4), key);
	old = keys_cluster_find(k, "old", 3);
	cr_expect(old && memcmp(old, key, CLUSTER_KEY_SIZE));
	cr_expect(keys_cluster_find(k, "new", 3));
	cr_expect(!keys_cluster_find(k, "use", 3));
	cr_expect(!keys_cluster_find(k, "used\0", 5));
	keys_put(k);
	folder_end(f);
}

#define HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

Test(keys, lines_of_a_cluster)
{
	struct folder *f = folder_new();
	struct keys_conf conf = { .cluster = in(f, "cluster.key") };
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "there is no key in it" },
		{ "# nothing\n\n", "there is no key in it" },
		{ "name\n", "cluster.key:1: not a name and a key" },
		{ "\nname 0011\n", "cluster.key:2: not a name and a key" },
		{ "name " HEX "00\n", "cluster.key:1: not a name and a key" },
		{ "name " HEX " more\n", "cluster.key:1: not a name and" },
		{ "a " HEX "\na " HEX "\n", "cluster.key:2: 'a' comes twice" },
	};
	struct keys *k;
	const uint8_t *key;

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		write_file(conf.cluster, bad[i].text, 0600);
		refused(&conf, -EINVAL, bad[i].why);
	}
	write_file(conf.cluster, "  a\t" HEX " # the one\n", 0600);
	k = load(&conf);
	cr_expect_str_eq(keys_cluster(k, &key), "a");
	cr_expect_eq(key[31], 0x1f);
	keys_put(k);
	write_file(conf.cluster, "a " HEX "\n", 0644);
	refused(&conf, -EACCES, "chmod 600");
	folder_end(f);
}

/* ---- names that authorities of others may sign ---- */

/* A certificate, which nobody has signed: the common name, and an alternative
 * name of @type, or -1. */
static X509 *certificate_of(const char *cn, size_t ncn, int type,
			    const char *alternative, size_t n)
{
	X509 *c = X509_new();
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	GENERAL_NAME *g = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();

	cr_assert(c && names && g && text);
	cr_assert_eq(X509_NAME_add_entry_by_NID(
			     X509_get_subject_name(c), NID_commonName,
			     V_ASN1_UTF8STRING, (const uint8_t *)cn, (int)ncn,
			     -1, 0),
		     1);
	cr_assert(X509_gmtime_adj(X509_getm_notAfter(c), 60));
	if (type >= 0) {
		cr_assert_eq(ASN1_STRING_set(text, alternative, (int)n), 1);
		GENERAL_NAME_set0_value(g, type, text);
		cr_assert(sk_GENERAL_NAME_push(names, g) > 0);
		cr_assert_eq(
			X509_add1_ext_i2d(c, NID_subject_alt_name, names, 0, 0),
			1);
	} else {
		GENERAL_NAME_free(g);
		ASN1_IA5STRING_free(text);
	}
	sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free);
	return c;
}

static void named(const char *want, X509 *c)
{
	struct identity *id = keys_identity(c, NULL);

	if (want) {
		cr_assert(id, "%s", want);
		cr_expect_str_eq(id->name, want);
	} else {
		cr_expect(!id, "%s", id ? id->name : "");
	}
	identity_put(id);
	X509_free(c);
}

#define TEXT(text)   text, sizeof(text) - 1
#define COMMON(text) certificate_of(TEXT(text), -1, NULL, 0)
#define DNS(text)    certificate_of(TEXT("common"), GEN_DNS, TEXT(text))

Test(keys, names)
{
	static char longest[IDENTITY_NAME_SIZE + 1];

	named("a.example-1_x", COMMON("a.example-1_x"));
	named("user@host:80/x", COMMON("user@host:80/x"));
	named(NULL, COMMON("a b"));
	named(NULL, COMMON("*"));
	named(NULL, COMMON("admin\0.evil"));
	named(NULL, COMMON("a\n"));
	named(NULL, COMMON("\xc3\xa4"));
	named(NULL, COMMON("a,b"));
	named("b.example", DNS("b.example"));
	/* What cannot be a name does not count. */
	named("common", DNS("*.example"));
	named("common", DNS("b\0.example"));
	named("common", DNS(""));
	memset(longest, 'x', sizeof(longest) - 1);
	named("common", certificate_of(TEXT("common"), GEN_DNS, longest,
				       IDENTITY_NAME_SIZE));
	longest[IDENTITY_NAME_SIZE - 1] = '\0';
	named(longest, certificate_of(TEXT("common"), GEN_DNS, longest,
				      IDENTITY_NAME_SIZE - 1));
}

static void speaks_for(const char *want, const char *uri, size_t n)
{
	X509 *c = certificate_of(TEXT("common"), GEN_URI, uri, n);
	struct identity *id = keys_identity(c, NULL);

	cr_assert(id);
	cr_expect_eq(id->nnids, want ? 1 : 0);
	if (want && id->nnids)
		cr_expect_str_eq(id->nids, want);
	identity_put(id);
	X509_free(c);
}

Test(keys, nids)
{
	speaks_for("10.0.0.1@tcp", TEXT("lnet:10.0.0.1@tcp"));
	speaks_for(NULL, TEXT("lnet:"));
	speaks_for(NULL, TEXT("http://10.0.0.1@tcp"));
	speaks_for(NULL, TEXT("lnet:10.0.0.1@tcp\0"));
	speaks_for(NULL, TEXT("lnet:\033[2J10.0.0.1@tcp"));
}
