/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the golden frames of tests/wire/. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "lnd/lnd.h"
#include "tests/source.h"

struct golden {
	size_t hdr_len;
	size_t len; /* of header and payload */
	uint8_t bytes[512];
};

static inline FILE *golden_open(const char *name)
{
	char file[128];
	FILE *f;

	snprintf(file, sizeof(file), "tests/wire/%s.hex", name);
	f = source_open(file);
	cr_assert(f, "no golden frame %s", name);
	return f;
}

static inline struct golden golden(const char *name)
{
	FILE *f = golden_open(name);
	struct golden g = { 0 };
	char line[256];

	while (fgets(line, sizeof(line), f)) {
		char *p = line;
		unsigned int byte;
		int n;

		line[strcspn(line, "#\n")] = '\0';
		while (sscanf(p, " %2x%n", &byte, &n) == 1) {
			cr_assert_lt(g.len, sizeof(g.bytes));
			g.bytes[g.len++] = (uint8_t)byte;
			p += n;
		}
	}
	fclose(f);
	g.hdr_len = strstr(name, "large") ? LNET_HDR_LARGE_SIZE : LNET_HDR_SIZE;
	cr_assert_geq(g.len, g.hdr_len, "%s is too short", name);
	return g;
}

static inline const uint8_t *golden_payload(const struct golden *g)
{
	return g->bytes + g->hdr_len;
}

static inline size_t golden_payload_len(const struct golden *g)
{
	return g->len - g->hdr_len;
}

#endif
