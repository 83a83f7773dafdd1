/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS_MAX 8192
#define ISOLATED "/sys/devices/system/cpu/isolated"
#define STATUS	 "/proc/thread-self/status"
#define ALLOWED	 "Cpus_allowed_list:"

struct cpus {
	unsigned int n;
	bool has[CPUS_MAX];
};

/* Reads a number at *@p, and moves *@p behind it. Returns false: there is none.
 */
static bool cpus_number(const char **p, unsigned long *number)
{
	char *end;

	if (!isdigit((unsigned char)**p))
		return false;
	*number = strtoul(*p, &end, 10);
	*p = end;
	return *number < CPUS_MAX;
}

static bool cpus_parse(const char *list, struct cpus *cpus)
{
	unsigned long first, last;

	memset(cpus, 0, sizeof(*cpus));
	while (*list && *list != '\n') {
		if (!cpus_number(&list, &first))
			return false;
		last = first;
		if (*list == '-') {
			list++;
			if (!cpus_number(&list, &last))
				return false;
		}
		for (; first <= last; first++) {
			cpus->n += !cpus->has[first];
			cpus->has[first] = true;
		}
		if (*list == ',')
			list++;
	}
	return true;
}

bool cpus_list_has(const char *outer, const char *inner, unsigned int n)
{
	struct cpus all, ours;

	if (!cpus_parse(outer, &all) || !cpus_parse(inner, &ours))
		return false;
	for (unsigned int i = 0; i < CPUS_MAX; i++)
		if (ours.has[i] && !all.has[i])
			return false;
	return ours.n >= n;
}

/* Reads from the file @path what follows @name, in the line that begins with
 * it; @name NULL: the first line. Returns false: there is none. */
static bool cpus_read(const char *path, const char *name, char *text,
		      size_t size)
{
	size_t skip = name ? strlen(name) : 0;
	char line[4096];
	FILE *f = fopen(path, "re");
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		if (skip && strncmp(line, name, skip) != 0)
			continue;
		while (isspace((unsigned char)line[skip]))
			skip++;
		snprintf(text, size, "%s", line + skip);
		found = true;
	}
	fclose(f);
	return found;
}

bool cpus_are_own(unsigned int n)
{
	char isolated[4096], allowed[4096];

	return cpus_read(ISOLATED, NULL, isolated, sizeof(isolated)) &&
	       cpus_read(STATUS, ALLOWED, allowed, sizeof(allowed)) &&
	       cpus_list_has(isolated, allowed, n);
}
