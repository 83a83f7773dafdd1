/* SPDX-License-Identifier: BSD-3-Clause */
#include "names/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lnet/nid/range.h"

#define PORT_MAX 65535
/* bytes of a server in a list, at most: a host with brackets, port and net */
#define LIST_ITEM_MAX (NAME_HOST_MAX + 2 * LNET_NIDSTR_SIZE)

/* ---- addresses ---- */

bool target_address(const char *text, uint32_t net, struct ulnet_nid *nid)
{
	char name[LNET_NIDSTR_SIZE], full[2 * LNET_NIDSTR_SIZE];

	if (strlen(text) >= LNET_NIDSTR_SIZE || strchr(text, '@') ||
	    (!strchr(text, '.') && !strchr(text, ':')))
		return false;
	snprintf(full, sizeof(full), "%s@%s", text,
		 lnet_net_format(net, name, sizeof(name)));
	return !lnet_nid_parse(full, nid);
}

/* Do addresses of IP make NIDs on @net? */
static bool net_is_ip(uint32_t net)
{
	struct ulnet_nid nid;

	return target_address("192.0.2.1", net, &nid);
}

/* ---- hosts ---- */

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       lnet_text_is_digit(c) || c == '-' || c == '_' || c == '.';
}

/* Does @host consist of digits and dots only? Then it is an address with a
 * mistake, and no name. */
static bool looks_like_address(const char *host)
{
	return host[strspn(host, "0123456789.")] == '\0';
}

static int take_bracketed(struct lnet_text *t, struct name_text *name)
{
	const char *begin = ++t->p,
		   *end = memchr(begin, ']', (size_t)(t->end - begin));
	struct ulnet_nid nid;

	if (!end)
		return lnet_text_fail(t, begin - 1, "']' is missing");
	if ((size_t)(end - begin) > NAME_HOST_MAX)
		return lnet_text_fail(t, begin, "no IPv6 address");
	snprintf(name->what, sizeof(name->what), "%.*s", (int)(end - begin),
		 begin);
	if (!strchr(name->what, ':') ||
	    !target_address(name->what, LNET_NET(LNET_TYPE_SOCK, 0), &nid))
		return lnet_text_fail(t, begin, "no IPv6 address");
	t->p = end + 1;
	return 0;
}

static int take_host(struct lnet_text *t, struct name_text *name)
{
	const char *begin = t->p;
	struct ulnet_nid nid;

	if (lnet_text_peek(t) == '[')
		return take_bracketed(t, name);
	while (is_host_char(lnet_text_peek(t)))
		t->p++;
	if (t->p == begin)
		return lnet_text_fail(t, begin,
				      "a NID, or the name of a host, is "
				      "expected");
	if (t->p - begin > NAME_HOST_MAX)
		return lnet_text_fail(t, begin, "a name of more than %d bytes",
				      NAME_HOST_MAX);
	snprintf(name->what, sizeof(name->what), "%.*s", (int)(t->p - begin),
		 begin);
	if (strstr(name->what, "..") || *begin == '.' || *begin == '-')
		return lnet_text_fail(t, begin, "no name of a host");
	if (looks_like_address(name->what) &&
	    !target_address(name->what, LNET_NET(LNET_TYPE_SOCK, 0), &nid))
		return lnet_text_fail(t, begin, "no IPv4 address");
	return 0;
}

static int take_net(struct lnet_text *t, struct name_text *name)
{
	if (!lnet_text_take(t, '@'))
		return 0;
	if (lnet_net_parse(t->p, &name->net))
		return lnet_text_fail(t, t->p, "no net");
	if (!net_is_ip(name->net))
		return lnet_text_fail(t, t->p,
				      "a net whose NIDs are not addresses of "
				      "IP");
	t->p = t->end;
	return 0;
}

static int host_take(struct lnet_text *t, struct name_text *name)
{
	uint32_t port = 0;
	int rc = take_host(t, name);

	if (!rc && lnet_text_take(t, ':'))
		rc = lnet_text_digits(t, 10, 1, PORT_MAX, &port);
	if (rc)
		return rc;
	name->port = (uint16_t)port;
	rc = take_net(t, name);
	if (!rc && !lnet_text_at_end(t))
		rc = lnet_text_fail(t, t->p,
				    "':' and a port, or '@' and a net, is "
				    "expected");
	return rc;
}

/* ---- schemes ---- */

/* Takes the third '/' of "dns:///". Between the second and the third one other
 * URIs name a server to ask; here only the host's own name servers are asked.
 */
static int take_slash(struct lnet_text *t, const char *scheme)
{
	if (lnet_text_take(t, '/'))
		return 0;
	return lnet_text_fail(t, t->p, "%s:///, with three '/', is expected",
			      scheme);
}

static int take_dns(struct lnet_text *t, struct name_text *name)
{
	int rc = take_slash(t, name->scheme);

	return rc ? rc : host_take(t, name);
}

static int take_srv(struct lnet_text *t, struct name_text *name)
{
	int rc = take_slash(t, name->scheme);
	const char *begin = t->p;

	if (rc)
		return rc;
	rc = take_host(t, name);
	if (rc)
		return rc;
	if (*begin != '_' || !strstr(name->what, "._"))
		return lnet_text_fail(t, begin,
				      "_service._tcp.name is expected");
	rc = take_net(t, name);
	if (!rc && !lnet_text_at_end(t))
		rc = lnet_text_fail(t, t->p, "'@' and a net is expected");
	return rc;
}

/* Takes the rest of the text as it is: of a scheme that a program has added, or
 * of a file. */
static int take_rest(struct lnet_text *t, struct name_text *name)
{
	size_t len = (size_t)(t->end - t->p);

	if (!strcmp(name->scheme, "file") && lnet_text_peek(t) != '/')
		return lnet_text_fail(t, t->p,
				      "file:/// and a path is expected");
	if (!len)
		return lnet_text_fail(t, t->p, "nothing behind '://'");
	if (len >= sizeof(name->what))
		return lnet_text_fail(t, t->p, "more than %zu bytes",
				      sizeof(name->what) - 1);
	memcpy(name->what, t->p, len + 1);
	t->p = t->end;
	return 0;
}

static int take_scheme(struct lnet_text *t, const char *end,
		       struct name_text *name)
{
	size_t len = (size_t)(end - t->p);

	if (!len || len >= sizeof(name->scheme) ||
	    strspn(t->p, "abcdefghijklmnopqrstuvwxyz0123456789+-.") < len)
		return lnet_text_fail(t, t->p,
				      "no scheme: dns, srv or file, for "
				      "example");
	memcpy(name->scheme, t->p, len);
	name->scheme[len] = '\0';
	/* These are the names that name_text.scheme has without a scheme. */
	if (!strcmp(name->scheme, "host") || !strcmp(name->scheme, "list"))
		return lnet_text_fail(t, t->p, "this needs no scheme");
	t->p = end + 3;
	if (!strcmp(name->scheme, "dns"))
		return take_dns(t, name);
	if (!strcmp(name->scheme, "srv"))
		return take_srv(t, name);
	return take_rest(t, name);
}

/* ---- NIDs ---- */

static bool nid_parse(const char *text, size_t len, struct ulnet_id *id)
{
	char copy[2 * LNET_NIDSTR_SIZE];

	if (len >= sizeof(copy))
		return false;
	snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
	id->pid = LNET_PID_LUSTRE;
	if (lnet_nid_parse(copy, &id->nid) && lnet_id_parse(copy, id))
		return false;
	return !lnet_nid_is_any(&id->nid);
}

static bool target_has(const struct ulnet_target *target,
		       const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < target->nnids; i++)
		if (lnet_nid_eq(&target->nids[i], nid))
			return true;
	return false;
}

static int take_nid(struct lnet_text *t, struct ulnet_target *target)
{
	size_t len = strcspn(t->p, ",");
	struct ulnet_id id;

	if (!nid_parse(t->p, len, &id))
		return lnet_text_fail(t, t->p, "no NID");
	if (target->nnids == LNET_TARGET_NIDS)
		return lnet_text_fail(t, t->p, "more than %d NIDs",
				      LNET_TARGET_NIDS);
	if (target->nnids && id.pid != target->pid)
		return lnet_text_fail(t, t->p,
				      "another pid: these are NIDs of one "
				      "server");
	if (target_has(target, &id.nid))
		return lnet_text_fail(t, t->p, "this NID comes twice");
	target->pid = id.pid;
	target->nids[target->nnids++] = id.nid;
	t->p += len;
	return 0;
}

static int take_nids(struct lnet_text *t, struct ulnet_target *target)
{
	int rc;

	do
		rc = take_nid(t, target);
	while (!rc && lnet_text_take(t, ','));
	return rc;
}

/* ---- lists of servers ---- */

/* A NID in a list stands for a host: takes its address and net. */
static int nid_take_host(struct lnet_text *t, const struct ulnet_id *id,
			 struct name_text *name)
{
	const char *at = memchr(t->p, '@', (size_t)(t->end - t->p));

	if (id->pid != LNET_PID_LUSTRE)
		return lnet_text_fail(t, t->p,
				      "a process id is for the NIDs of one "
				      "server");
	if (!net_is_ip(lnet_nid_net(&id->nid)))
		return lnet_text_fail(t, t->p,
				      "a net whose NIDs are not addresses of "
				      "IP");
	if (at)
		name->net = lnet_nid_net(&id->nid);
	snprintf(name->what, sizeof(name->what), "%.*s",
		 (int)((at ? at : t->end) - t->p), t->p);
	return 0;
}

static int server_take(const char *item, size_t len, struct name_text *name,
		       struct ulnet_text_error *err)
{
	struct lnet_text t = lnet_text_of(item, len, err);
	char copy[LIST_ITEM_MAX + 1];
	struct ulnet_id id;

	*name = (struct name_text){ .scheme = "host", .net = LNET_NET_ANY };
	if (nid_parse(item, len, &id))
		return nid_take_host(&t, &id, name);
	if (len > LIST_ITEM_MAX)
		return lnet_text_fail(&t, t.p, "a name of more than %d bytes",
				      NAME_HOST_MAX);
	/* A copy, because the text has to end where the item does. */
	memcpy(copy, item, len);
	copy[len] = '\0';
	t = lnet_text_of(copy, len, err);
	return host_take(&t, name);
}

int target_next(const char **list_p, struct name_text *name,
		struct ulnet_text_error *err)
{
	const char *item = *list_p;
	size_t len = strcspn(item, ",");
	int rc = server_take(item, len, name, err);

	if (!rc)
		*list_p = item[len] ? item + len + 1 : NULL;
	return rc;
}

static int take_list(struct lnet_text *t, struct name_text *name,
		     struct ulnet_text_error *err)
{
	size_t len = (size_t)(t->end - t->p);
	struct name_text server;
	const char *next;

	for (next = t->p; next;) {
		const char *item = next;
		int rc = target_next(&next, &server, err);

		if (rc && err)
			err->offset += (size_t)(item - t->p);
		if (rc)
			return rc;
	}
	if (len >= sizeof(name->what))
		return lnet_text_fail(t, t->p, "more than %zu bytes",
				      sizeof(name->what) - 1);
	strcpy(name->scheme, "list");
	memcpy(name->what, t->p, len + 1);
	return 0;
}

/* Are all items of the list NIDs? Then they are the NIDs of one server. */
static bool is_nids(const char *text)
{
	struct ulnet_id id;
	size_t len;

	for (;; text += len + 1) {
		len = strcspn(text, ",");
		if (!nid_parse(text, len, &id))
			return false;
		if (!text[len])
			return true;
	}
}

/* ---- all of it ---- */

int target_parse(const char *text, struct ulnet_target *target,
		 struct name_text *name, struct ulnet_text_error *err)
{
	struct lnet_text t = lnet_text_of(text, strlen(text), err);
	const char *scheme = strstr(text, "://");
	struct ulnet_target made = { 0 };
	int rc;

	*name = (struct name_text){ .scheme = "host", .net = LNET_NET_ANY };
	if (scheme)
		rc = take_scheme(&t, scheme, name);
	else if (is_nids(text))
		rc = take_nids(&t, &made);
	else if (strchr(text, ','))
		rc = take_list(&t, name, err);
	else
		rc = host_take(&t, name);
	if (rc)
		return rc;
	made.is_name = !made.nnids;
	*target = made;
	return 0;
}

int lnet_target_parse(const char *text, struct ulnet_target *target,
		      struct ulnet_text_error *err)
{
	struct name_text name;

	return target_parse(text, target, &name, err);
}
