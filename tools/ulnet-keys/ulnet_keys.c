/* SPDX-License-Identifier: BSD-3-Clause */
/* ulnet-keys(8): makes keys and certificates, shows and checks them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "make.h"
#include "show.h"
#include "tools/common/names.h"
#include "tools/common/option.h"

#define WHO "ulnet-keys"

struct ulnet_keys {
	const char *folder; /* folder of the files; NULL: the default */
	/* how long certificates are valid; 0: the default */
	unsigned int days;
	bool first, renew;
	const char *nids[MAKE_NIDS + 1];
	unsigned int nnids;
};

struct command {
	const char *name, *arg;
	int (*run)(const struct ulnet_keys *u, struct make *m,
		   const char *name);
	/* days for which what the command makes is valid, by default */
	unsigned int days;
	bool many; /* the command takes more than one argument */
};

static int run_authority(const struct ulnet_keys *u, struct make *m,
			 const char *name)
{
	int rc = make_authority(m, name);

	(void)u;
	if (!rc)
		printf("%s/authority.crt and revoked.crl are for every node; "
		       "authority.key stays here\n",
		       m->folder);
	return rc;
}

static int run_node(const struct ulnet_keys *u, struct make *m,
		    const char *name)
{
	int rc = make_node(m, name);

	(void)u;
	if (!rc)
		printf("%s/%s.crt and %s.key are for the node, with "
		       "authority.crt and revoked.crl\n",
		       m->folder, name, name);
	return rc;
}

static int run_cluster(const struct ulnet_keys *u, struct make *m,
		       const char *name)
{
	int rc = make_cluster(m, name, u->first);

	if (!rc)
		printf("%s/cluster.key is for every node\n", m->folder);
	return rc;
}

/* If @name has no certificate, calls names_say(), after the error was printed.
 * Returns @rc. */
static int explain(int rc, const struct make *m, const char *name)
{
	char *path = NULL;

	if (rc && asprintf(&path, "%s/%s.crt", m->folder, name) >= 0 &&
	    access(path, F_OK))
		names_say(m->folder, name, stderr);
	free(path);
	return rc;
}

static int run_revoke(const struct ulnet_keys *u, struct make *m,
		      const char *name)
{
	int rc = make_revoked(m, name);

	(void)u;
	if (!rc)
		printf("%s/revoked.crl is for every node\n", m->folder);
	return explain(rc, m, name);
}

static int run_show(const struct ulnet_keys *u, struct make *m,
		    const char *path)
{
	(void)u;
	return show_file(m->who, path);
}

static int run_check(const struct ulnet_keys *u, struct make *m,
		     const char *name)
{
	(void)u;
	return explain(check_node(m->who, m->folder, name), m, name);
}

#define YEARS_10 3652

static const struct command commands[] = {
	{ "authority", "NAME", run_authority, YEARS_10, false },
	{ "node", "NAME", run_node, 398, true },
	{ "revoke", "NAME", run_revoke, 0, true },
	{ "cluster", "NAME", run_cluster, 0, false },
	{ "show", "FILE", run_show, 0, true },
	{ "check", "NAME", run_check, 0, true },
};

/* ---- the command line ---- */

static int take_nids(const struct option_at *at)
{
	struct ulnet_keys *u = at->object;

	if (u->nnids == MAKE_NIDS)
		return option_bad(at, "is given too often");
	if (nids_check(at->text))
		return option_bad(at, "is no list of NIDs, such as "
				      "10.0.0.[1-9]@tcp");
	u->nids[u->nnids++] = at->text;
	return 0;
}

#define AT(field) .at = offsetof(struct ulnet_keys, field)

static const struct option_row rows[] = {
	{ .help = "Options:", .kind = OPTION_TITLE },
	{ .name = "dir",
	  .letter = 'd',
	  .arg = "DIR",
	  .help = "the folder of all files (default: .)",
	  .kind = OPTION_TEXT,
	  AT(folder),
	  .min = 1 },
	{ .name = "days",
	  .letter = 'D',
	  .arg = "DAYS",
	  .help = "for how long (default: 398 for a node, 10 years for an "
		  "authority)",
	  .kind = OPTION_NUMBER,
	  AT(days),
	  .min = 1,
	  .max = 36525 },
	{ .name = "nids",
	  .letter = 'n',
	  .arg = "NIDS",
	  .help = "node: NIDs that it may speak for (may be given several "
		  "times)",
	  .kind = OPTION_CALL,
	  .take = take_nids },
	{ .name = "renew",
	  .letter = 'r',
	  .help = "node: its files are replaced; the old ones are kept as "
		  "NAME.old.crt, NAME.old.key",
	  .kind = OPTION_FLAG,
	  AT(renew) },
	{ .name = "first",
	  .letter = 'f',
	  .help = "cluster: the new key is used from now on; without it it is "
		  "only believed",
	  .kind = OPTION_FLAG,
	  AT(first) },
	{ 0 },
};

static const char tail[] =
	"\nCommands:\n"
	"  authority NAME    make an authority, which signs certificates\n"
	"  node NAME...      make nodes' certificates, and their keys\n"
	"  revoke NAME...    declare nodes' certificates invalid\n"
	"  cluster NAME      make a key that all nodes of a cluster have\n"
	"  show FILE...      show what is in files\n"
	"  check NAME...     check whether nodes could use their files\n";

static const struct command *command_find(const char *word)
{
	struct nearest near;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, word))
			return &commands[i];
	option_wrong(WHO, "%s: no such command; see " WHO " --help", word);
	nearest_init(&near, word);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		nearest_try(&near, commands[i].name);
	nearest_say(&near, "", stderr);
	return NULL;
}

/* Refuses options that do not belong to @c, since they would change nothing. */
static int check_options(const struct ulnet_keys *u, const struct command *c)
{
	if (u->days && !c->days)
		return option_wrong(WHO, "%s has no --days", c->name);
	if (u->nnids && c->run != run_node)
		return option_wrong(WHO, "%s has no --nids", c->name);
	if (u->renew && c->run != run_node)
		return option_wrong(WHO, "%s has no --renew", c->name);
	if (u->first && c->run != run_cluster)
		return option_wrong(WHO, "%s has no --first", c->name);
	return 0;
}

static int run(const struct ulnet_keys *u, const struct option_set *s)
{
	const struct command *c = command_find(s->args[0]);
	struct make m = { .who = WHO,
			  .folder = u->folder ? u->folder : ".",
			  .now = time(NULL),
			  .nids = u->nids };
	int rc;

	if (!c)
		return OPTION_USAGE;
	rc = check_options(u, c);
	if (rc)
		return rc;
	if (s->nargs < 2 || (s->nargs > 2 && !c->many))
		return option_wrong(WHO, "%s %s%s is expected", c->name, c->arg,
				    c->many ? "..." : "");
	m.renew = u->renew;
	m.days = u->days ? u->days : c->days;
	for (int i = 1; i < s->nargs && !rc; i++)
		rc = c->run(u, &m, s->args[i]);
	return rc;
}

int main(int argc, char **argv)
{
	struct ulnet_keys u = { 0 };
	struct option_set s = {
		.who = WHO,
		.see = WHO " --help",
		.head = "usage: " WHO " [OPTION...] COMMAND ARGUMENT...\n"
			"Makes keys and certificates for nodes; shows and "
			"checks them.\n",
		.tail = tail,
		.parts = { { rows, &u }, { option_rows, NULL } },
		.words = "a command and its argument",
		.min = 2,
		.max = -1,
	};
	int rc = options_parse(&s, argc, argv);

	if (!rc)
		rc = run(&u, &s);
	return rc < 0 ? 0 : rc;
}
