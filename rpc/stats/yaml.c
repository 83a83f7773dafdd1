/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stats/yaml.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/util.h"
#include "rpc/stats/stats.h"

#define INDENT 4

void yaml_line(struct yaml *y, const char *fmt, ...)
{
	int indent = (int)(y->depth * INDENT);
	va_list ap;

	if (y->item)
		fprintf(y->out, "%*s%-*s", indent - INDENT, "", INDENT, "-");
	else
		fprintf(y->out, "%*s", indent, "");
	y->item = false;
	va_start(ap, fmt);
	vfprintf(y->out, fmt, ap);
	va_end(ap);
	fputc('\n', y->out);
}

void yaml_item(struct yaml *y)
{
	y->depth++;
	y->item = true;
}

/* Quotes text that may not be UTF-8: prints other bytes than ASCII as \xNN. */
static void quote_bytes(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < ' ' || c > '~' || c == '"' || c == '\\')
			fprintf(out, "\\x%02X", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

void yaml_name(struct yaml *y, const char *key, const char *name)
{
	char *quoted = NULL, *bytes = NULL;
	size_t size;
	FILE *f;

	/* Without libulnetctl there is no lnet_ctl_quote(); such a program can
	 * print its statistics, too. */
	if (lnet_ctl_quote && !lnet_ctl_quote(name, &quoted)) {
		yaml_line(y, "%s: %s", key, quoted);
	} else if ((f = open_memstream(&bytes, &size))) {
		quote_bytes(name, f);
		fclose(f);
		yaml_line(y, "%s: %s", key, bytes ? bytes : "");
	} else {
		yaml_line(y, "%s:", key);
	}
	free(quoted);
	free(bytes);
}

void yaml_count(struct yaml *y, const char *key, uint64_t n)
{
	yaml_line(y, "%s: %" PRIu64, key, n);
}

void yaml_time(struct yaml *y, const char *key, uint64_t ns)
{
	yaml_line(y, "%s: %" PRIu64 ".%03" PRIu64, key, ns / NSEC_PER_USEC,
		  ns % NSEC_PER_USEC);
}
