/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/text/routes.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lnet/text/spec.h"
#include "ulnet/control.h"

#define ROUTES_MAX 4096 /* nets of an entry, or routes of a text */
/* bytes of a net or a gateway after the expansion of brackets */
#define WORD_SIZE 128

/* What has been read so far. */
struct reader {
	const char *text; /* the whole text */
	struct ulnet_text_error *err;
	struct ulnet_route *routes;
	unsigned int n, room;
	/* Of the current entry: */
	uint32_t nets[ROUTES_MAX];
	unsigned int nnets;
	bool targets;  /* a net has been read, perhaps a foreign one */
	uint32_t hops; /* 0: not given */
	bool gateways; /* a gateway has been read */
};

/* A part of the text. */
struct word {
	const char *at;
	size_t len;
};

#define wrong(r, at, ...) \
	spec_wrong((r)->err, (r)->text, at, -EINVAL, __VA_ARGS__)

/* ---- [1-9/2,x] ---- */

typedef int (*word_fn)(struct reader *r, const char *at, const char *word);

/* The expansion of a word with brackets to several words: fn is called for
 * each. The functions below are told how many bytes of word are filled, @used,
 * and go on with @rest, which is the rest of the word in the text. */
struct expansion {
	struct reader *r;
	word_fn fn;
	/* where the word with brackets begins and ends in the text */
	const char *at, *end;
	char word[WORD_SIZE];
};

static int expand(struct expansion *e, size_t used, const char *rest);

/* Puts @item, of @len bytes, in the place of brackets. */
static int expand_item(struct expansion *e, size_t used, const char *item,
		       size_t len, const char *rest)
{
	if (used + len >= WORD_SIZE)
		return wrong(e->r, e->at, "longer than %d bytes",
			     WORD_SIZE - 1);
	memcpy(e->word + used, item, len);
	return expand(e, used + len, rest);
}

static bool read_number(const char **pos, uint64_t *v)
{
	const char *s = *pos;

	*v = 0;
	while (isdigit((unsigned char)*s) && s - *pos < 11)
		*v = *v * 10 + (uint64_t)(*s++ - '0');
	if (s == *pos || *v > UINT32_MAX)
		return false;
	*pos = s;
	return true;
}

/* Is @item, to @end, "a-b" or "a-b/s"? */
static bool read_range(const char *item, const char *end, uint64_t *low,
		       uint64_t *high, uint64_t *step)
{
	*step = 1;
	if (!read_number(&item, low) || *item++ != '-' ||
	    !read_number(&item, high))
		return false;
	if (*item == '/' && (item++, !read_number(&item, step)))
		return false;
	return item == end;
}

static int expand_range(struct expansion *e, size_t used, const char *item,
			const char *end, const char *rest)
{
	uint64_t low, high, step;
	char number[16];
	int rc = 0;

	if (!read_range(item, end, &low, &high, &step))
		return expand_item(e, used, item, (size_t)(end - item), rest);
	if (low > high)
		return wrong(e->r, item, "range low end is above its high end");
	if (!step)
		return wrong(e->r, item, "a range goes in steps of 1 or more");
	for (; !rc && low <= high; low += step) {
		int len = snprintf(number, sizeof(number), "%" PRIu64, low);

		rc = expand_item(e, used, number, (size_t)len, rest);
	}
	return rc;
}

/* Expands each item of the brackets from @open to @close. */
static int expand_brackets(struct expansion *e, size_t used, const char *open,
			   const char *close)
{
	const char *item = open + 1, *end;
	int rc = 0;

	for (; !rc && item <= close; item = end + 1) {
		end = item + strcspn(item, ",]");
		if (end == item)
			return wrong(e->r, item,
				     "a range or a word is "
				     "expected");
		if (memchr(item, '[', (size_t)(end - item)))
			return wrong(e->r, item, "brackets in brackets");
		rc = expand_range(e, used, item, end, close + 1);
	}
	return rc;
}

/* The depth of recursion is limited: each pair of brackets adds a byte to the
 * word. */
static int expand(struct expansion *e, size_t used, const char *rest)
{
	size_t left = (size_t)(e->end - rest);
	size_t plain = MIN(strcspn(rest, "[]"), left);
	const char *open = rest + plain, *close;

	if (used + plain >= WORD_SIZE)
		return wrong(e->r, e->at, "longer than %d bytes",
			     WORD_SIZE - 1);
	memcpy(e->word + used, rest, plain);
	used += plain;
	if (plain == left) {
		e->word[used] = '\0';
		return e->fn(e->r, e->at, e->word);
	}
	if (*open == ']')
		return wrong(e->r, open, "']' without '['");
	close = memchr(open, ']', (size_t)(e->end - open));
	if (!close)
		return wrong(e->r, open, "']' is missing");
	return expand_brackets(e, used, open, close);
}

static int each_word(struct reader *r, const struct word *w, word_fn fn)
{
	struct expansion e = { r, fn, w->at, w->at + w->len, "" };

	return expand(&e, 0, w->at);
}

/* ---- nets, hops, gateways ---- */

/* Texts that serve a whole cluster may name nets that only other hosts know. */
static void note_foreign(const char *what, const char *word)
{
	lnet_log(LNET_LOG_WARN, "config",
		 "%s %s is passed over: there is no such net here", what, word);
}

static int routes_add_net(struct reader *r, const char *at, const char *word)
{
	uint32_t net;

	r->targets = true;
	if (lnet_net_parse(word, &net)) {
		if (!spec_is_foreign(word, strlen(word)))
			return wrong(r, at, "no such net: %.64s", word);
		note_foreign("route to", word);
		return 0;
	}
	if (LNET_NET_TYPE(net) == LNET_TYPE_LO)
		return wrong(r, at, "no route leads to net lo");
	if (r->nnets == ROUTES_MAX)
		return wrong(r, at, "more than %d nets", ROUTES_MAX);
	r->nets[r->nnets++] = net;
	return 0;
}

/* Is the route there already? Then its first mention counts. */
static bool routes_repeats(const struct reader *r,
			   const struct ulnet_route *route)
{
	char net[LNET_NIDSTR_SIZE], nid[LNET_NIDSTR_SIZE];

	for (unsigned int i = 0; i < r->n; i++) {
		if (r->routes[i].net != route->net ||
		    !lnet_nid_eq(&r->routes[i].gateway, &route->gateway))
			continue;
		lnet_log(LNET_LOG_INFO, "config",
			 "route to %s by %s comes twice: the second one is "
			 "passed over",
			 lnet_net_format(route->net, net, sizeof(net)),
			 lnet_nid_format(&route->gateway, nid, sizeof(nid)));
		return true;
	}
	return false;
}

static int routes_add_route(struct reader *r, const char *at,
			    const struct ulnet_route *route)
{
	unsigned int room = r->room ? r->room * 2 : 16;
	struct ulnet_route *routes = r->routes;

	if (routes_repeats(r, route))
		return 0;
	if (r->n == ROUTES_MAX)
		return wrong(r, at, "more than %d routes", ROUTES_MAX);
	if (r->n == r->room) {
		routes = realloc(routes, room * sizeof(*routes));
		if (!routes)
			return spec_wrong(r->err, r->text, at, -ENOMEM,
					  "no memory");
		r->routes = routes;
		r->room = room;
	}
	routes[r->n++] = *route;
	return 0;
}

/* Returns the ':' before the priority of a gateway, or NULL. An IPv6 address
 * has such characters, too, but is followed by '@' and its net. */
static const char *routes_priority_of(const char *word)
{
	const char *at = strchr(word, '@'), *colon;

	if (at)
		return strchr(at, ':');
	colon = strchr(word, ':');
	return colon && !strchr(colon + 1, ':') ? colon : NULL;
}

static int add_gateway(struct reader *r, const char *at, const char *word)
{
	const char *colon = routes_priority_of(word),
		   *s = colon ? colon + 1 : word;
	struct ulnet_route route = { .hops = r->hops };
	char nid[WORD_SIZE];
	uint64_t v = 0;
	int rc = 0;

	if (colon && (!read_number(&s, &v) || *s || v > INT32_MAX))
		return wrong(r, at, "priority '%.40s' is not in 0..%d",
			     colon + 1, INT32_MAX);
	snprintf(nid, sizeof(nid), "%.*s",
		 (int)(colon ? (size_t)(colon - word) : strlen(word)), word);
	r->gateways = true;
	s = strchr(nid, '@');
	if (s && spec_is_foreign(s + 1, strlen(s + 1))) {
		note_foreign("gateway", nid);
		return 0;
	}
	if (lnet_nid_parse(nid, &route.gateway) ||
	    lnet_nid_is_any(&route.gateway) || lnet_nid_is_lo(&route.gateway))
		return wrong(r, at, "not the NID of a gateway: '%.64s'", nid);
	route.priority = (uint32_t)v;
	for (unsigned int i = 0; !rc && i < r->nnets; i++) {
		route.net = r->nets[i];
		rc = routes_add_route(r, at, &route);
	}
	return rc;
}

static bool routes_is_number(const struct word *w)
{
	return strspn(w->at, "0123456789") >= w->len;
}

/* Is it a net, and not a NID? Nets begin with a letter or a bracket, and have
 * no '@', ':' or '.'. */
static bool is_net(const struct word *w)
{
	return (isalpha((unsigned char)*w->at) || *w->at == '[') &&
	       !memchr(w->at, '@', w->len) && !memchr(w->at, ':', w->len) &&
	       !memchr(w->at, '.', w->len);
}

static int routes_read_hops(struct reader *r, const struct word *w)
{
	const char *s = w->at;
	uint64_t v;

	if (!read_number(&s, &v) || s != w->at + w->len || !v ||
	    v > LNET_HOPS_MAX)
		return wrong(r, w->at, "%.*s hops: not in 1..%d",
			     (int)MIN(w->len, 16), w->at, LNET_HOPS_MAX);
	r->hops = (uint32_t)v;
	return 0;
}

static int routes_read_word(struct reader *r, const struct word *w)
{
	bool nets_end = r->hops || r->gateways;

	if (!r->targets || (!nets_end && is_net(w)))
		return each_word(r, w, routes_add_net);
	if (!nets_end && routes_is_number(w))
		return routes_read_hops(r, w);
	return each_word(r, w, add_gateway);
}

/* ---- entries ---- */

static void entry_begin(struct reader *r)
{
	r->nnets = 0;
	r->targets = false;
	r->hops = 0;
	r->gateways = false;
}

static int entry_end(struct reader *r, const char *at)
{
	if (r->targets && !r->gateways)
		return wrong(r, at, "a gateway is expected");
	entry_begin(r);
	return 0;
}

static int routes_read_all(struct reader *r)
{
	const char *s = r->text;
	int rc = 0;

	entry_begin(r);
	while (!rc) {
		struct word w = { s, strcspn(s, " \t\r\n;#") };

		s += w.len;
		if (w.len)
			rc = routes_read_word(r, &w);
		else if (*s == '#')
			s = spec_comment_end(s);
		else if (!*s)
			return entry_end(r, s);
		else if (*s == ';' || *s == '\n')
			rc = entry_end(r, s++);
		else
			s++;
	}
	return rc;
}

/* Makes a reader for the text of @text with joined lines. The caller frees
 * *@r_p, and *@joined_p, which is that text. Returns 0 or -ENOMEM. */
static int reader_new(const char *text, struct ulnet_text_error *err,
		      struct reader **r_p, char **joined_p)
{
	struct reader *r = calloc(1, sizeof(*r));
	char *joined = spec_join(text);

	if (!r || !joined) {
		free(r);
		free(joined);
		return spec_wrong(err, text, text, -ENOMEM, "no memory");
	}
	r->text = joined;
	r->err = err;
	*r_p = r;
	*joined_p = joined;
	return 0;
}

int lnet_routes_parse(const char *text, struct ulnet_route **routes_p,
		      unsigned int *n_p, struct ulnet_text_error *err)
{
	struct reader *r;
	char *joined;
	int rc = reader_new(text, err, &r, &joined);

	if (rc)
		return rc;
	rc = routes_read_all(r);
	if (rc) {
		free(r->routes);
	} else {
		*routes_p = r->routes;
		*n_p = r->n;
	}
	free(joined);
	free(r);
	return rc;
}

int spec_nets(const char *word, uint32_t **nets_p, unsigned int *n_p,
	      struct ulnet_text_error *err)
{
	struct reader *r;
	char *joined;
	uint32_t *nets;
	int rc = reader_new(word, err, &r, &joined);

	if (rc)
		return rc;
	rc = each_word(r, &(struct word){ joined, strlen(joined) },
		       routes_add_net);
	if (!rc && !r->nnets)
		rc = spec_wrong(err, word, word, -EINVAL, "no such net: %.64s",
				word);
	nets = rc ? NULL : malloc(r->nnets * sizeof(*nets));
	if (!rc && !nets)
		rc = spec_wrong(err, word, word, -ENOMEM, "no memory");
	if (!rc) {
		memcpy(nets, r->nets, r->nnets * sizeof(*nets));
		*nets_p = nets;
		*n_p = r->nnets;
	}
	free(joined);
	free(r);
	return rc;
}
