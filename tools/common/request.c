/* SPDX-License-Identifier: BSD-3-Clause */
#include "request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <ulnet/control.h>

void request_begin(struct request *r, const char *command)
{
	*r = (struct request){ 0 };
	r->out = open_memstream(&r->text, &r->size);
	if (!r->out)
		r->error = -ENOMEM;
	else
		fprintf(r->out, "%s: {", command);
}

void request_fail(struct request *r, int error)
{
	if (!r->error)
		r->error = error;
}

/* Writes the key of the next argument. Returns false: there has been an error,
 * and nothing more is written. */
static bool key_begin(struct request *r, const char *key)
{
	if (r->error)
		return false;
	fprintf(r->out, "%s %s: ", r->more ? "," : "", key);
	r->more = true;
	return true;
}

static void quote(struct request *r, const char *text)
{
	char *quoted;
	int rc = lnet_ctl_quote(text, &quoted);

	if (rc) {
		request_fail(r, rc);
		return;
	}
	fputs(quoted, r->out);
	free(quoted);
}

void request_number(struct request *r, const char *key, int64_t value)
{
	if (key_begin(r, key))
		fprintf(r->out, "%" PRId64, value);
}

void request_flag(struct request *r, const char *key)
{
	if (key_begin(r, key))
		fputs("true", r->out);
}

void request_text(struct request *r, const char *key, const char *value)
{
	if (key_begin(r, key))
		quote(r, value);
}

void request_nids(struct request *r, const char *key, char *const *nids,
		  const uint16_t *ports, unsigned int n)
{
	if (!key_begin(r, key))
		return;
	fputc('[', r->out);
	for (unsigned int i = 0; i < n; i++) {
		bool port = ports && ports[i];

		fputs(i ? ", " : "", r->out);
		fputs(port ? "{nid: " : "", r->out);
		quote(r, nids[i]);
		if (port)
			fprintf(r->out, ", port: %u}", ports[i]);
	}
	fputc(']', r->out);
}

void request_list(struct request *r, const char *key, char *const *values,
		  unsigned int n)
{
	request_nids(r, key, values, NULL, n);
}

int request_end(struct request *r)
{
	if (!r->out)
		return -ENOMEM;
	fputs(r->more ? " }\n" : "}\n", r->out);
	if (ferror(r->out))
		request_fail(r, -ENOMEM);
	if (fclose(r->out) || !r->text)
		request_fail(r, -ENOMEM);
	r->out = NULL;
	return r->error;
}

void request_free(struct request *r)
{
	if (r->out)
		fclose(r->out);
	free(r->text);
	*r = (struct request){ 0 };
}
