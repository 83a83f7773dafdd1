/* SPDX-License-Identifier: BSD-3-Clause */
#include "keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "names.h"
#include "ulnet/keys.h"

#define AT(field) offsetof(struct keys_options, field)

const struct option_row keys_rows[] = {
	{ "keys", 0, "DIR", "prove who this is with keys of this folder",
	  .kind = OPTION_TEXT, AT(folder) },
	{ "as", 0, "NAME", "with the certificate NAME (the cluster's key)",
	  .kind = OPTION_TEXT, AT(name) },
	{ 0 },
};

int keys_check(const struct keys_options *o, const char *who)
{
	if (o->name && !o->folder)
		return option_wrong(who, "--as %s: --keys is missing", o->name);
	return 0;
}

enum { CERTIFICATE, KEY, AUTHORITY, REVOKED, CLUSTER, FILES };

/* Makes the paths of the files. Those that are not needed are NULL. */
static int paths_make(const struct keys_options *o, char *paths[FILES])
{
	int n = 0;

	if (!o->name)
		return asprintf(&paths[CLUSTER], "%s/cluster.key", o->folder);
	n |= asprintf(&paths[CERTIFICATE], "%s/%s.crt", o->folder, o->name);
	n |= asprintf(&paths[KEY], "%s/%s.key", o->folder, o->name);
	n |= asprintf(&paths[AUTHORITY], "%s/authority.crt", o->folder);
	n |= asprintf(&paths[REVOKED], "%s/revoked.crl", o->folder);
	if (n >= 0 && access(paths[REVOKED], F_OK)) {
		free(paths[REVOKED]);
		paths[REVOKED] = NULL;
	}
	return n;
}

/* The file that the options name is not there. */
static void explain(const struct keys_options *o)
{
	if (!o->name)
		fprintf(stderr, "Without --as it is the cluster's key that "
				"proves who this is.\n");
	names_say(o->folder, o->name, stderr);
}

int keys_read(const struct keys_options *o, const struct say *out,
	      struct ulrpc_keys **keys_p)
{
	char *paths[FILES] = { NULL }, why[512] = "no memory";
	int rc = -ENOMEM;

	*keys_p = NULL;
	if (!o->folder)
		return 0;
	if (paths_make(o, paths) >= 0)
		rc = ulrpc_keys_load(
			&(struct ulrpc_keys_conf){
				.certificate = paths[CERTIFICATE],
				.key = paths[KEY],
				.authority = paths[AUTHORITY],
				.revoked = paths[REVOKED],
				.cluster = paths[CLUSTER] },
			keys_p, why, sizeof(why));
	if (rc)
		say(out, LNET_LOG_ERR, "--keys: %s", why);
	if (rc == -ENOENT &&
	    access(paths[o->name ? CERTIFICATE : CLUSTER], F_OK))
		explain(o);
	for (unsigned int i = 0; i < FILES; i++)
		free(paths[i]);
	return rc;
}
