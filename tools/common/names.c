/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "option.h"

#define SUFFIX	  ".crt"
#define NAMES_MAX 12 /* a list of more names would be no help */

/* Is the file the certificate of a node? */
static int is_node(const struct dirent *d)
{
	size_t n = strlen(d->d_name), suffix = strlen(SUFFIX);

	return n > suffix && !strcmp(d->d_name + n - suffix, SUFFIX) &&
	       strcmp(d->d_name, "authority" SUFFIX) != 0;
}

static void names_list(const char *folder, struct dirent **files, int n,
		       FILE *to)
{
	if (n < 1 || n > NAMES_MAX)
		return;
	fprintf(to, "Certificates in %s:", folder);
	for (int i = 0; i < n; i++)
		fprintf(to, "%s %s", i ? "," : "", files[i]->d_name);
	fputc('\n', to);
}

void names_say(const char *folder, const char *name, FILE *to)
{
	struct dirent **files = NULL;
	struct nearest near;
	int n = scandir(folder, &files, is_node, alphasort);

	nearest_init(&near, name ? name : "");
	for (int i = 0; i < n; i++) {
		*strrchr(files[i]->d_name, '.') = '\0';
		if (name)
			nearest_try(&near, files[i]->d_name);
	}
	if (near.name)
		nearest_say(&near, "", to);
	else
		names_list(folder, files, n, to);
	for (int i = 0; i < n; i++)
		free(files[i]);
	free(files);
}
