/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/lnd/tape.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "tests/source.h"

#define FRAME_MAX (2u << 20)

static const char *const kinds[] = {
	[TAPE_REQUEST] = "request",
	[TAPE_HELLO] = "hello",
	[TAPE_LNET] = "lnet",
	[TAPE_NOOP] = "noop",
};

const char *tape_kind_name(enum tape_kind kind)
{
	return kinds[kind];
}

static FILE *tape_open(const char *name)
{
	char file[128];

	snprintf(file, sizeof(file), "tests/wire/tcp/%s.tape", name);
	return source_open(file);
}

static bool grow(struct tape_frame *f, const uint8_t *bytes, size_t len,
		 unsigned long times)
{
	uint8_t *to;

	if (times == 0 || times > FRAME_MAX || len > FRAME_MAX / times ||
	    f->len + len * times > FRAME_MAX)
		return false;
	to = realloc(f->bytes, f->len + len * times);
	if (!to)
		return false;
	f->bytes = to;
	for (; times; times--, f->len += len)
		memcpy(f->bytes + f->len, bytes, len);
	return true;
}

/* Applies the count behind ")": the bytes from @from on are there that many
 * times. */
static bool repeat(struct tape_frame *f, size_t from, unsigned long times)
{
	size_t len = f->len - from;
	uint8_t *part;
	bool ok;

	if (times <= 1)
		return times == 1;
	part = malloc(len ? len : 1);
	if (!part)
		return false;
	memcpy(part, f->bytes + from, len);
	ok = grow(f, part, len, times - 1);
	free(part);
	return ok;
}

/* Reads "*N", or nothing, which means once. */
static const char *read_times(const char *p, unsigned long *times)
{
	char *end;

	*times = 1;
	if (*p != '*')
		return p;
	*times = strtoul(p + 1, &end, 10);
	return end;
}

/* Reads "xx", "xx*N", "( ... )*N", separated by blanks. */
static bool read_bytes_line(struct tape_frame *f, const char *p)
{
	size_t group = f->len;
	unsigned long times;
	unsigned int value;
	uint8_t byte;

	while (*p) {
		if (isspace((unsigned char)*p)) {
			p++;
		} else if (*p == '(') {
			group = f->len;
			p++;
		} else if (*p == ')') {
			p = read_times(p + 1, &times);
			if (!repeat(f, group, times))
				return false;
		} else {
			if (!isxdigit((unsigned char)p[0]) ||
			    !isxdigit((unsigned char)p[1]) ||
			    sscanf(p, "%2x", &value) != 1)
				return false;
			byte = (uint8_t)value;
			p = read_times(p + 2, &times);
			if (!grow(f, &byte, 1, times))
				return false;
		}
	}
	return true;
}

/* Reads "10.0.0.1:988" or "[fd77::1]:988". */
static bool read_addr(char *text, union netif_addr *a)
{
	char *colon = strrchr(text, ':');
	in_port_t port;

	if (!colon)
		return false;
	port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	*colon = '\0';
	if (*text != '[') {
		a->any.sa_family = AF_INET;
		a->v4.sin_port = port;
		return inet_pton(AF_INET, text, &a->v4.sin_addr) == 1 && port;
	}
	text[strcspn(text, "]")] = '\0';
	a->any.sa_family = AF_INET6;
	a->v6.sin6_port = port;
	return inet_pton(AF_INET6, text + 1, &a->v6.sin6_addr) == 1 && port;
}

/* Reads "conn N FROM TO"; connections are numbered in order, from 1. */
static bool read_conn(struct tape *t, const char *line)
{
	char from[64], to[64];
	unsigned int n;

	if (sscanf(line, "conn %u %63s %63s", &n, from, to) != 3 ||
	    n != t->nconns + 1 || n > TAPE_CONNS_MAX)
		return false;
	t->nconns = n;
	if (!read_addr(from, &t->conn[n - 1].from) ||
	    !read_addr(to, &t->conn[n - 1].to))
		return false;
	t->large = t->conn[n - 1].to.any.sa_family == AF_INET6;
	return true;
}

/* Reads "N > KIND [made]". */
static bool read_frame(struct tape *t, const char *line)
{
	struct tape_frame *f = &t->frame[t->nframes];
	char dir, kind[16], made[8] = "";
	unsigned int n, k;

	if (sscanf(line, "%u %c %15s %7s", &n, &dir, kind, made) < 3 || n < 1 ||
	    n > t->nconns || t->nframes == TAPE_FRAMES_MAX)
		return false;
	for (k = 0; k < ARRAY_SIZE(kinds) && strcmp(kinds[k], kind) != 0; k++)
		;
	if (k == ARRAY_SIZE(kinds) || (dir != '>' && dir != '<') ||
	    (*made && strcmp(made, "made") != 0))
		return false;
	f->conn = n - 1;
	f->back = dir == '<';
	f->made = *made;
	f->kind = (enum tape_kind)k;
	t->nframes++;
	return true;
}

static bool read_line(struct tape *t, char *line, unsigned int number)
{
	bool bytes = line[0] == '\t';

	line[strcspn(line, "#\n")] = '\0';
	if (line[strspn(line, " \t")] == '\0')
		return true;
	if (bytes)
		return t->nframes &&
		       read_bytes_line(&t->frame[t->nframes - 1], line);
	if (strncmp(line, "conn ", 5) == 0)
		return read_conn(t, line);
	if (!read_frame(t, line))
		return false;
	t->frame[t->nframes - 1].line = number;
	return true;
}

bool tape_load(struct tape *t, const char *name)
{
	FILE *f = tape_open(name);
	unsigned int number = 0;
	char line[256];
	bool ok = true;

	memset(t, 0, sizeof(*t));
	t->name = name;
	if (!f) {
		fprintf(stderr, "no tape %s\n", name);
		return false;
	}
	while (ok && fgets(line, sizeof(line), f)) {
		ok = read_line(t, line, ++number);
		if (!ok)
			fprintf(stderr, "%s.tape:%u: not understood\n", name,
				number);
	}
	fclose(f);
	if (ok && !t->nframes) {
		fprintf(stderr, "%s.tape: nothing in it\n", name);
		ok = false;
	}
	if (!ok)
		tape_free(t);
	return ok;
}

void tape_free(struct tape *t)
{
	for (unsigned int i = 0; i < t->nframes; i++)
		free(t->frame[i].bytes);
	memset(t, 0, sizeof(*t));
}

static void swap_numbers(uint8_t **p, unsigned int n, unsigned int size)
{
	for (; n; n--, *p += size) {
		for (unsigned int i = 0; i < size / 2; i++) {
			uint8_t was = (*p)[i];

			(*p)[i] = (*p)[size - 1 - i];
			(*p)[size - 1 - i] = was;
		}
	}
}

#define INFO_MAGIC UINT32_C(0x70696e67)

/* Swaps the bytes if they are ping information. */
static void swap_info(uint8_t *p, size_t len)
{
	uint32_t n;

	if (len < 16 || load_le32(p) != INFO_MAGIC)
		return;
	n = load_le32(p + 12);
	swap_numbers(&p, 4, 4); /* magic, features, pid, number of NIs */
	for (; n; n--) {
		swap_numbers(&p, 1, 8); /* NID */
		swap_numbers(&p, 2, 4); /* status, size */
	}
}

/* Handles version 1 of requests and 3 of HELLOs. LNet's header is never
 * swapped, but ping information behind it is. */
void tape_swap(enum tape_kind kind, uint8_t *bytes, size_t len)
{
	uint8_t *p = bytes;

	swap_numbers(&p, 2, 4); /* magic, version; type, csum */
	switch (kind) {
	case TAPE_REQUEST:
		swap_numbers(&p, 1, 8); /* target */
		break;
	case TAPE_HELLO:
		swap_numbers(&p, 2, 8); /* NIDs */
		swap_numbers(&p, 2, 4); /* pids */
		swap_numbers(&p, 2, 8); /* incarnations */
		swap_numbers(&p, 2, 4); /* type, nips */
		break;
	default:
		swap_numbers(&p, 2, 8); /* cookies */
		if (len > 24 + 72)
			swap_info(p + 72, len - 24 - 72);
		break;
	}
}
