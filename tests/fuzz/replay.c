/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target without a fuzzer: fuzz_X reads the files in
 * tests/fuzz/corpus/X/ (below $srcdir), and a few damaged copies of each,
 * damaged in the same way every time. A build with fuzzers does not need this
 * file.
 */
#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define COPIES	   20
#define LARGEST	   (1 << 20)
#define WOUNDS_MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

/* Runs the target on memory of just that length, so that the sanitizer notices
 * a read behind it. */
static void try(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		err(1, "malloc");
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

/* Damages the bytes in a few places. Returns the new size, at most the old one.
 */
static size_t damage(uint8_t *data, size_t size)
{
	static const uint8_t interesting[] = { 0, 1, 0x7f, 0x80, 0xff };

	for (uint64_t n = 1 + random_below(WOUNDS_MAX); n > 0 && size > 0;
	     n--) {
		size_t at = random_below(size);

		switch (random_below(4)) {
		case 0:
			data[at] ^= (uint8_t)(1 << random_below(8));
			break;
		case 1:
			data[at] =
				interesting[random_below(sizeof(interesting))];
			break;
		case 2:
			data[at] = data[random_below(size)];
			break;
		default:
			size = at;
		}
	}
	return size;
}

static void replay(const char *name)
{
	static uint8_t data[LARGEST], copy[LARGEST];
	size_t size;
	FILE *f;

	f = fopen(name, "r");
	if (!f)
		err(1, "%s", name);
	size = fread(data, 1, sizeof(data), f);
	if (ferror(f) || !feof(f))
		errx(1, "%s: cannot be read, or is too large", name);
	fclose(f);

	/* if the program crashes, the last name printed is the input's */
	printf("%s\n", name);
	fflush(stdout);
	try(data, size);
	for (int i = 0; i < COPIES; i++) {
		memcpy(copy, data, size);
		try(copy, damage(copy, size));
	}
}

int main(int argc, char **argv)
{
	const char *target = strrchr(argv[0], '/'), *top = getenv("srcdir");
	struct dirent **names;
	char dir[4096];
	int n, seen = 0;

	(void)argc;
	target = strstr(target ? target : argv[0], "fuzz_");
	if (!target)
		errx(1, "%s: the name of a fuzz target is expected", argv[0]);
	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/%s", top ? top : ".",
		 target + strlen("fuzz_"));
	/* alphasort(): files are read in the same order everywhere */
	if (chdir(dir) != 0)
		err(1, "%s", dir);
	n = scandir(".", &names, NULL, alphasort);
	if (n < 0)
		err(1, "%s", dir);
	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			replay(names[i]->d_name);
			seen++;
		}
		free(names[i]);
	}
	free(names);
	printf("%d files, %d copies of each\n", seen, COPIES);
	return seen > 0 ? 0 : 1;
}
