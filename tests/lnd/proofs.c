/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/proofs.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef WITH_TLS

#include "secure/keys.h"
#include "tools/ulnet-keys/make.h"

#define DAY INT64_C(86400)

static char folder[64];
static pid_t maker;
/* so that nobody takes them for leaks */
static struct kept {
	struct keys *keys;
	char node[32]; /* whose certificate; "": none */
} kept[64];
static unsigned int nkept;

bool proofs_can(void)
{
	return true;
}

static void folder_remove(void)
{
	char command[128];

	/* Tests that run in processes of their own share the folder. */
	if (getpid() != maker)
		return;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	(void)!system(command);
}

static const char *folder_get(void)
{
	if (*folder)
		return folder;
	strcpy(folder, "/tmp/ulnet-proofs-XXXXXX");
	BUG_ON(!mkdtemp(folder));
	maker = getpid();
	atexit(folder_remove);
	return folder;
}

static struct ulrpc_keys *load(const struct keys_conf *conf)
{
	struct keys_error err = { "" };
	struct keys *keys = NULL;
	int rc = keys_load(conf, &keys, &err);

	if (rc)
		fprintf(stderr, "proofs: %s\n", err.text);
	BUG_ON(rc || nkept == ARRAY_SIZE(kept));
	kept[nkept++].keys = keys;
	return (struct ulrpc_keys *)keys;
}

/* In a folder of each authority. */
static struct make make_in(const char *name, char path[128])
{
	snprintf(path, 128, "%s/%s", folder_get(), name);
	(void)mkdir(path, 0700);
	return (struct make){
		.who = "proofs", .folder = path, .days = 30, .now = time(NULL)
	};
}

/* @revoked: the node has the authority's list. */
static struct ulrpc_keys *node_new(const char *authority, const char *nids,
				   unsigned int days_ago, bool revoked)
{
	const char *list[] = { nids, NULL };
	char path[128], file[4][192], *node = kept[nkept].node;
	struct make m = make_in(authority, path);
	struct stat st;

	snprintf(file[0], sizeof(file[0]), "%s/authority.crt", path);
	if (stat(file[0], &st)) {
		m.now -= 20 * DAY;
		BUG_ON(make_authority(&m, authority));
		m.now += 20 * DAY;
	}
	snprintf(node, sizeof(kept->node), "node%u", nkept);
	m.nids = list;
	m.now -= days_ago * DAY;
	BUG_ON(make_node(&m, node));
	snprintf(file[1], sizeof(file[1]), "%s/%s.crt", path, node);
	snprintf(file[2], sizeof(file[2]), "%s/%s.key", path, node);
	snprintf(file[3], sizeof(file[3]), "%s/revoked.crl", path);
	return load(&(struct keys_conf){ .certificate = file[1],
					 .key = file[2],
					 .authority = file[0],
					 .revoked = revoked ? file[3] : NULL });
}

struct ulrpc_keys *proofs_node(const char *authority, const char *nids,
			       unsigned int days_ago)
{
	return node_new(authority, nids, days_ago, false);
}

const char *proofs_name(const struct ulrpc_keys *keys)
{
	unsigned int i = 0;

	while (kept[i].keys != (const struct keys *)keys)
		BUG_ON(++i == nkept);
	return kept[i].node;
}

struct ulrpc_keys *proofs_revoking(const char *authority, const char *nids,
				   const struct ulrpc_keys *revoked)
{
	char path[128];
	struct make m = make_in(authority, path);

	BUG_ON(make_revoked(&m, proofs_name(revoked)));
	return node_new(authority, nids, 0, true);
}

struct ulrpc_keys *proofs_cluster(const char *name)
{
	char path[128], file[192];
	struct make m = make_in(name, path);
	struct stat st;

	snprintf(file, sizeof(file), "%s/cluster.key", path);
	if (stat(file, &st))
		BUG_ON(make_cluster(&m, name, false));
	return load(&(struct keys_conf){ .cluster = file });
}

#else

bool proofs_can(void)
{
	return false;
}

struct ulrpc_keys *proofs_node(const char *authority, const char *nids,
			       unsigned int days_ago)
{
	(void)authority;
	(void)nids;
	(void)days_ago;
	return NULL;
}

struct ulrpc_keys *proofs_revoking(const char *authority, const char *nids,
				   const struct ulrpc_keys *revoked)
{
	(void)authority;
	(void)nids;
	(void)revoked;
	return NULL;
}

const char *proofs_name(const struct ulrpc_keys *keys)
{
	(void)keys;
	return "";
}

struct ulrpc_keys *proofs_cluster(const char *name)
{
	(void)name;
	return NULL;
}

#endif
