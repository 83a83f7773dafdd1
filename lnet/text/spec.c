/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/text/spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define FOREIGN_MAX 16 /* bytes of the type of a foreign net */

const char *spec_blanks(const char *s)
{
	return s + strspn(s, " \t\n\r");
}

char *spec_join(const char *text)
{
	char *copy = strdup(text), *s = copy;

	while (s && (s = strstr(s, "\\\n")))
		memset(s, ' ', 2);
	return copy;
}

const char *spec_comment_end(const char *s)
{
	return s + strcspn(s, ";\n");
}

int spec_wrong(struct ulnet_text_error *err, const char *text, const char *at,
	       int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	err->offset = (size_t)(at - text);
	va_start(ap, fmt);
	vsnprintf(err->what, sizeof(err->what), fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- CPTs ---- */

static bool cpts_number(const char **pos, unsigned long *v)
{
	char *end;

	*pos = spec_blanks(*pos);
	if (!isdigit((unsigned char)**pos))
		return false;
	errno = 0;
	*v = strtoul(*pos, &end, 10);
	*pos = spec_blanks(end);
	return !errno;
}

/* Reads "*", "a", "a-b" or "a-b/s" at *@pos, and adds the CPTs to @have. */
static bool cpts_range(const char **pos, unsigned int cpts, uint32_t *have)
{
	unsigned long low = 0, high = cpts, step = 1;

	*pos = spec_blanks(*pos);
	if (**pos == '*') {
		*pos = spec_blanks(*pos + 1);
	} else {
		if (!cpts_number(pos, &low))
			return false;
		high = low;
		if (**pos == '-' && (++*pos, !cpts_number(pos, &high)))
			return false;
		if (**pos == '/' && (++*pos, !cpts_number(pos, &step)))
			return false;
	}
	if (high < low || !step)
		return false;
	for (; low <= high && low < cpts; low += MIN(step, (unsigned long)cpts))
		*have |= UINT32_C(1) << low;
	return true;
}

int spec_cpts(const char *text, unsigned int cpts)
{
	uint32_t have = 0, all = UINT32_MAX >> (32 - cpts);
	const char *s = spec_blanks(text);
	bool brackets = *s == '[';

	s += brackets;
	do {
		if (!cpts_range(&s, cpts, &have))
			return -EINVAL;
	} while (*s++ == ',');
	s--;
	if (brackets && *s++ != ']')
		return -EINVAL;
	return *spec_blanks(s) ? -EINVAL : have == all ? 0 : -EOPNOTSUPP;
}

/* ---- interfaces ---- */

const char *spec_cpts_end(const char *s, char cpts[SPEC_CPTS_SIZE])
{
	size_t len = strcspn(s, "]");

	if (!s[len] || len + 1 >= SPEC_CPTS_SIZE)
		return NULL;
	memcpy(cpts, s, len + 1);
	cpts[len + 1] = '\0';
	if (spec_cpts(cpts, 1) == -EINVAL)
		return NULL;
	return spec_blanks(s + len + 1);
}

int spec_interface(const char **pos, char name[LNET_INTERFACE_SIZE],
		   char cpts[SPEC_CPTS_SIZE])
{
	const char *start = spec_blanks(*pos),
		   *end = start + strcspn(start, ",[");
	size_t len = (size_t)(end - start);

	if (!*start)
		return 0;
	while (len && isspace((unsigned char)start[len - 1]))
		len--;
	*pos = start;
	*cpts = '\0';
	if (*end == '[')
		end = spec_cpts_end(end, cpts);
	if (!end || !len || len >= LNET_INTERFACE_SIZE ||
	    (*end && (*end != ',' || !*spec_blanks(end + 1))))
		return -EINVAL;
	memcpy(name, start, len);
	name[len] = '\0';
	*pos = end + (*end == ',');
	return 1;
}

/* ---- nets of other implementations ---- */

/* Does one change of a letter, or a swap of two, make @b of the @alen bytes at
 * @a? */
static bool letter_apart(const char *a, size_t alen, const char *b)
{
	size_t blen = strlen(b), head = 0, tail = 0, most = MIN(alen, blen);

	while (head < most && a[head] == b[head])
		head++;
	while (tail < most - head && a[alen - 1 - tail] == b[blen - 1 - tail])
		tail++;
	a += head;
	b += head;
	alen -= head + tail;
	blen -= head + tail;
	return (alen <= 1 && blen <= 1) ||
	       (alen == 2 && blen == 2 && a[0] == b[1] && a[1] == b[0]);
}

/* Is one of the types of nets that NIDs can be on called @name, or nearly so?
 */
static bool type_is_near(const char *name, size_t len)
{
	char type[LNET_NIDSTR_SIZE];

	for (uint32_t i = 0; i < 0xff; i++) {
		lnet_net_format(LNET_NET(i, 0), type, sizeof(type));
		if (isalpha((unsigned char)*type) &&
		    letter_apart(name, len, type))
			return true;
	}
	return false;
}

bool spec_is_foreign(const char *name, size_t len)
{
	while (len && isdigit((unsigned char)name[len - 1]))
		len--;
	if (!len || len > FOREIGN_MAX || !isalpha((unsigned char)*name))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]))
			return false;
	return !type_is_near(name, len);
}
