/* SPDX-License-Identifier: BSD-3-Clause */
#include "keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "names.h"
#include "ulnet/keys.h"

#define AT(field) offsetof(struct keys_options, field)

static const char *const flavours[] = {
	[ULRPC_FLAVOUR_DEFAULT] = "default",
	[ULRPC_FLAVOUR_NONE] = "none",
	[ULRPC_FLAVOUR_AUTH] = "auth",
	[ULRPC_FLAVOUR_INTEGRITY] = "integrity",
	[ULRPC_FLAVOUR_PRIVACY] = "privacy",
	NULL,
};

const struct option_row keys_rows[] = {
	{ "keys", 0, "DIR", "prove who this is with keys of this folder",
	  .kind = OPTION_PATH, AT(folder) },
	{ "as", 0, "NAME", "with the certificate NAME (the cluster's key)",
	  .kind = OPTION_TEXT, AT(name) },
	{ 0 },
};

const struct option_row flavour_rows[] = {
	{ "flavour", 0, "F",
	  "the least that calls are protected by: none, auth (with --keys), "
	  "integrity or privacy",
	  .kind = OPTION_WORD, AT(flavour), .words = flavours },
	{ 0 },
};

#define SOCKET_ROW                                                         \
	{                                                                  \
		"munge-socket", 0, "PATH", "munged's socket (libmunge's)", \
			.kind = OPTION_TEXT, AT(munge_socket)              \
	}

const struct option_row munge_take_rows[] = {
	{ "munge", 0, NULL, "believe the users whom MUNGE names",
	  .kind = OPTION_FLAG, AT(munge_take) },
	SOCKET_ROW,
	{ 0 },
};

const struct option_row munge_show_rows[] = {
	{ "munge", 0, NULL, "prove by MUNGE which user this is",
	  .kind = OPTION_FLAG, AT(munge_show) },
	SOCKET_ROW,
	{ 0 },
};

void keys_options_free(struct keys_options *o)
{
	free(o->folder);
}

int keys_check(const struct keys_options *o, const char *who)
{
	if (o->name && !o->folder)
		return option_wrong(who, "--as %s: --keys is missing", o->name);
	if (o->flavour > ULRPC_FLAVOUR_NONE && !o->folder)
		return option_wrong(who, "--flavour %s: --keys is missing",
				    flavours[o->flavour]);
	if ((o->munge_take || o->munge_show) && !o->folder)
		return option_wrong(who, "--munge: --keys is missing, whose "
					 "keys prove the server");
	if (o->munge_socket && !o->munge_take && !o->munge_show)
		return option_wrong(who,
				    "--munge-socket %s: --munge is "
				    "missing",
				    o->munge_socket);
	if (o->munge_show && o->name)
		return option_wrong(who,
				    "--as %s: with --munge it is MUNGE that "
				    "proves who this is",
				    o->name);
	return 0;
}

enum { CERTIFICATE, KEY, AUTHORITY, REVOKED, CLUSTER, FILES };

/* Makes the paths of the files. The path of a file that is not needed is NULL.
 * So is that of the list of revoked certificates, if there has never been such
 * a list. */
static int paths_make(const struct keys_options *o, char *paths[FILES])
{
	int n = asprintf(&paths[AUTHORITY], "%s/authority.crt", o->folder);

	/* A program that acts for a user believes the authority, if there is
	 * one. */
	if (!o->name &&
	    (!o->munge_show || (n >= 0 && access(paths[AUTHORITY], F_OK)))) {
		free(paths[AUTHORITY]);
		paths[AUTHORITY] = NULL;
		return asprintf(&paths[CLUSTER], "%s/cluster.key", o->folder);
	}
	if (o->name) {
		n |= asprintf(&paths[CERTIFICATE], "%s/%s.crt", o->folder,
			      o->name);
		n |= asprintf(&paths[KEY], "%s/%s.key", o->folder, o->name);
	}
	n |= asprintf(&paths[REVOKED], "%s/revoked.crl", o->folder);
	if (n >= 0 && !atomic_load(&o->revoked) &&
	    access(paths[REVOKED], F_OK) && errno == ENOENT) {
		free(paths[REVOKED]);
		paths[REVOKED] = NULL;
	}
	return n;
}

/* Tells the user why the file that the options name may be missing. */
static void explain(const struct keys_options *o)
{
	if (!o->name)
		fprintf(stderr, "Without --as it is the cluster's key that "
				"proves who this is.\n");
	names_say(o->folder, o->name, stderr);
}

/* As ulrpc_keys_load(). Sets *@named_p to false if the file that the options
 * name does not exist. */
static int keys_load(struct keys_options *o, struct ulrpc_keys **keys_p,
		     char *why, size_t size, bool *named_p)
{
	char *paths[FILES] = { NULL };
	const char *named;
	int rc = -ENOMEM;

	snprintf(why, size, "no memory");
	if (paths_make(o, paths) >= 0)
		rc = ulrpc_keys_load(
			&(struct ulrpc_keys_conf){
				.certificate = paths[CERTIFICATE],
				.key = paths[KEY],
				.authority = paths[AUTHORITY],
				.revoked = paths[REVOKED],
				.cluster = paths[CLUSTER],
				.munge_take = o->munge_take,
				.munge_show = o->munge_show,
				.munge_socket = o->munge_socket },
			keys_p, why, size);
	if (!rc && paths[REVOKED])
		atomic_store(&o->revoked, true);
	named = paths[o->name ? CERTIFICATE : CLUSTER];
	*named_p = rc != -ENOENT || !named || !access(named, F_OK);
	for (unsigned int i = 0; i < FILES; i++)
		free(paths[i]);
	return rc;
}

int keys_read(struct keys_options *o, const struct say *out,
	      struct ulrpc_keys **keys_p)
{
	char why[KEYS_WHY];
	bool named;
	int rc;

	*keys_p = NULL;
	if (!o->folder)
		return 0;
	rc = keys_load(o, keys_p, why, sizeof(why), &named);
	if (rc)
		say(out, LNET_LOG_ERR, "--keys: %s", why);
	if (!named)
		explain(o);
	return rc;
}

int keys_again(struct keys_options *o, struct ulrpc_keys **keys_p,
	       char why[KEYS_WHY])
{
	bool named;

	if (o->folder)
		return keys_load(o, keys_p, why, KEYS_WHY, &named);
	snprintf(why, KEYS_WHY, "there are no keys: --keys was not given");
	return -ENOKEY;
}
