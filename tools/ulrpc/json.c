/* SPDX-License-Identifier: BSD-3-Clause */
#include "json.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void json_init(struct json *j, const char *text, size_t length)
{
	*j = (struct json){ .begin = text, .at = text, .end = text + length };
}

void json_fini(struct json *j)
{
	free(j->text);
}

bool json_wrong(struct json *j, const char *what)
{
	unsigned int line = 1, column = 1;

	if (j->why[0])
		return false;
	for (const char *p = j->begin; p < j->at; p++) {
		column = *p == '\n' ? 1 : column + 1;
		line += *p == '\n';
	}
	snprintf(j->why, sizeof(j->why), "line %u, column %u: %s", line, column,
		 what);
	return false;
}

/* ---- structure ---- */

static void skip_blanks(struct json *j)
{
	while (j->at < j->end && *j->at && strchr(" \t\r\n", *j->at))
		j->at++;
}

char json_next(struct json *j)
{
	skip_blanks(j);
	if (j->at == j->end)
		return 0;
	return *j->at == '-' || isdigit((unsigned char)*j->at) ? '0' : *j->at;
}

bool json_enter(struct json *j, char bracket)
{
	if (json_next(j) != bracket)
		return json_wrong(j, bracket == '{' ? "'{' is expected"
						    : "'[' is expected");
	j->at++;
	j->first = true;
	return true;
}

bool json_member(struct json *j, char closing)
{
	bool first = j->first;
	char next = j->why[0] ? 0 : json_next(j);

	j->first = false;
	if (j->why[0])
		return false;
	if (next == closing) {
		j->at++;
		return false;
	}
	if (first)
		return true;
	if (next != ',')
		return json_wrong(j, closing == '}' ? "',' or '}' is expected"
						    : "',' or ']' is expected");
	j->at++;
	return true;
}

bool json_colon(struct json *j)
{
	if (json_next(j) != ':')
		return json_wrong(j, "':' is expected");
	j->at++;
	return true;
}

bool json_end(struct json *j)
{
	return !j->why[0] &&
	       (!json_next(j) && j->at == j->end
			? true
			: json_wrong(j, "there is more behind the value"));
}

/* ---- strings ---- */

size_t json_utf8(const char *p, const char *end)
{
	const uint8_t *u = (const uint8_t *)p;
	size_t n = *u < 0x80   ? 1
		   : *u < 0xc2 ? 0
		   : *u < 0xe0 ? 2
		   : *u < 0xf0 ? 3
		   : *u < 0xf5 ? 4
			       : 0;

	if (n > (size_t)(end - p))
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	/* too long, or a surrogate, or beyond the last character */
	if ((*u == 0xe0 && u[1] < 0xa0) || (*u == 0xed && u[1] > 0x9f) ||
	    (*u == 0xf0 && u[1] < 0x90) || (*u == 0xf4 && u[1] > 0x8f))
		return 0;
	return n;
}

static bool keep(struct json *j, const char *bytes, size_t n)
{
	if (j->length + n + 1 > j->size) {
		size_t size = 2 * (j->length + n) + 64;
		char *more = realloc(j->text, size);

		if (!more)
			return json_wrong(j, "no memory");
		j->text = more;
		j->size = size;
	}
	memcpy(j->text + j->length, bytes, n);
	j->length += n;
	j->text[j->length] = '\0';
	return true;
}

static bool keep_character(struct json *j, uint32_t c)
{
	char b[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t heads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; c >>= 6)
		b[i] = (char)(0x80 | (c & 0x3f));
	b[0] = (char)(heads[n == 1 ? 0 : n] | c);
	return keep(j, b, n);
}

static bool hex4(struct json *j, uint32_t *value_p)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++, j->at++) {
		static const char digits[] = "0123456789abcdef";
		const char *d =
			j->at < j->end && *j->at
				? strchr(digits, tolower((unsigned char)*j->at))
				: NULL;

		if (!d)
			return json_wrong(j, "four hexadecimal digits are "
					     "expected behind \\u");
		value = value << 4 | (uint32_t)(d - digits);
	}
	*value_p = value;
	return true;
}

/* Behind "\u". */
static bool read_unicode(struct json *j)
{
	uint32_t high, low;

	if (!hex4(j, &high))
		return false;
	if (high < 0xd800 || high > 0xdfff)
		return keep_character(j, high);
	if (high < 0xdc00 && j->end - j->at >= 2 && j->at[0] == '\\' &&
	    j->at[1] == 'u') {
		j->at += 2;
		if (!hex4(j, &low))
			return false;
		if (low >= 0xdc00 && low <= 0xdfff)
			return keep_character(
				j, 0x10000 + ((high - 0xd800) << 10) +
					   (low - 0xdc00));
	}
	return json_wrong(j, "half of a pair of surrogates");
}

static bool read_escape(struct json *j)
{
	static const char names[] = "\"\\/bfnrt";
	static const char values[] = "\"\\/\b\f\n\r\t";
	const char *name;

	if (j->at == j->end || !*j->at)
		return json_wrong(j, "the string does not end");
	if (*j->at == 'u') {
		j->at++;
		return read_unicode(j);
	}
	name = strchr(names, *j->at);
	if (!name)
		return json_wrong(j, "there is no such escape sequence");
	j->at++;
	return keep(j, &values[name - names], 1);
}

bool json_string(struct json *j)
{
	size_t n;

	if (json_next(j) != '"')
		return json_wrong(j, "a string is expected");
	j->at++;
	j->length = 0;
	if (!keep(j, "", 0))
		return false;
	while (j->at < j->end && *j->at != '"') {
		if ((unsigned char)*j->at < 0x20)
			return json_wrong(j, "a control character in a string");
		if (*j->at == '\\') {
			j->at++;
			if (!read_escape(j))
				return false;
			continue;
		}
		n = json_utf8(j->at, j->end);
		if (!n)
			return json_wrong(j, "not UTF-8");
		if (!keep(j, j->at, n))
			return false;
		j->at += n;
	}
	if (j->at == j->end)
		return json_wrong(j, "the string does not end");
	j->at++;
	return true;
}

/* ---- other values ---- */

static const char *digits(const char *p, const char *end)
{
	while (p < end && isdigit((unsigned char)*p))
		p++;
	return p;
}

/* The end of the number at @p; NULL: it is none. */
static const char *number_end(const char *p, const char *end)
{
	const char *from;

	p += p < end && *p == '-';
	from = p;
	p = digits(p, end);
	if (p == from || (*from == '0' && p > from + 1))
		return NULL;
	if (p < end && *p == '.') {
		from = ++p;
		p = digits(p, end);
		if (p == from)
			return NULL;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		p += p < end && (*p == '+' || *p == '-');
		from = p;
		p = digits(p, end);
		if (p == from)
			return NULL;
	}
	return p;
}

static const char *name_end(const char *p, const char *end)
{
	static const char *const names[] = { "true", "false", "null" };

	for (size_t i = 0; i < 3; i++) {
		size_t n = strlen(names[i]);

		if ((size_t)(end - p) >= n && !strncmp(p, names[i], n))
			return p + n;
	}
	return NULL;
}

bool json_word(struct json *j)
{
	char next = json_next(j);
	const char *from = j->at, *to;

	to = next == '0' ? number_end(from, j->end) : name_end(from, j->end);
	if (!to || (to < j->end && (isalnum((unsigned char)*to) || *to == '.')))
		return json_wrong(j, next == '0' ? "not a number of JSON"
						 : "a value is expected");
	j->length = 0;
	if (!keep(j, from, (size_t)(to - from)))
		return false;
	j->at = to;
	return true;
}

/* ---- output ---- */

static void print_character(FILE *out, unsigned char c)
{
	static const char names[] = "\"\\\b\f\n\r\t";
	static const char values[] = "\"\\bfnrt";
	const char *name = c ? strchr(names, c) : NULL;

	if (name)
		fprintf(out, "\\%c", values[name - names]);
	else if (c < 0x20 || c == 0x7f)
		fprintf(out, "\\u%04x", c);
	else
		fputc(c, out);
}

/* Of the controls of Unicode, those that have two bytes in UTF-8 (U+0080 to
 * U+009F): terminals obey them, too. */
static bool is_control(const char *text, size_t n)
{
	return n == 2 && (uint8_t)text[0] == 0xc2 && (uint8_t)text[1] < 0xa0;
}

void json_print_string(FILE *out, const char *text, size_t length)
{
	const char *end = text + length;

	fputc('"', out);
	while (text < end) {
		size_t n = json_utf8(text, end);

		if (n == 1)
			print_character(out, (unsigned char)*text);
		else if (is_control(text, n))
			fprintf(out, "\\u%04x", (uint8_t)text[1]);
		else if (n)
			fwrite(text, 1, n, out);
		else
			fputs("\\ufffd", out);
		text += n ? n : 1;
	}
	fputc('"', out);
}
