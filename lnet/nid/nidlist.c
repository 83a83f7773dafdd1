/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of NID ranges: parsed into terms grouped by net, matched, printed, and
 * expanded into NIDs.
 */
#include "ulnet/nid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lnet/nid/nid_priv.h"

/* Bounded, because matching a NID looks at all of them. */
#define NIDRANGES_MAX 1024

enum term_kind {
	TERM_ALL,    /* all NIDs of the net */
	TERM_PREFIX, /* IP addresses with the same first bits */
	/* a set for each of the four bytes of an IPv4 address, or one set of
	 * numeric addresses */
	TERM_SETS,
};

/* The addresses of one nidrange. */
struct term {
	enum term_kind kind;
	unsigned int bits; /* TERM_PREFIX */
	/* TERM_PREFIX: the address; only .size and .addr are used */
	struct ulnet_nid prefix;
	unsigned int nsets; /* number of sets; TERM_SETS: 4 or 1 */
	struct lnet_ranges set[4];
};

/* The terms of one or more nidranges that name the same nets. */
struct net_terms {
	const struct lnet_net_type *type;
	struct lnet_ranges nums;
	struct term *term;
	unsigned int count;
};

struct ulnet_nidlist {
	struct net_terms *net;
	unsigned int count;
};

static void term_fini(struct term *term)
{
	for (size_t i = 0; i < ARRAY_SIZE(term->set); i++)
		lnet_ranges_free(&term->set[i]);
}

static void net_drop_terms(struct net_terms *net)
{
	while (net->count)
		term_fini(&net->term[--net->count]);
	free(net->term);
	net->term = NULL;
}

static void net_fini(struct net_terms *net)
{
	net_drop_terms(net);
	lnet_ranges_free(&net->nums);
}

void lnet_nidlist_free(struct ulnet_nidlist *list)
{
	if (!list)
		return;
	while (list->count)
		net_fini(&list->net[--list->count]);
	free(list->net);
	free(list);
}

static bool term_eq(const struct term *a, const struct term *b)
{
	if (a->kind != b->kind || a->bits != b->bits ||
	    !lnet_nid_eq(&a->prefix, &b->prefix))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(a->set); i++)
		if (!lnet_ranges_eq(&a->set[i], &b->set[i]))
			return false;
	return true;
}

static bool net_has_term(const struct net_terms *net, const struct term *term)
{
	for (unsigned int i = 0; i < net->count; i++)
		if (net->term[i].kind == TERM_ALL ||
		    term_eq(&net->term[i], term))
			return true;
	return false;
}

/* On success, takes over the memory of @term; on error, leaves it to the
 * caller. */
static int net_add_term(struct net_terms *net, struct term *term)
{
	struct term *grown;

	if (net_has_term(net, term)) {
		term_fini(term);
		return 0;
	}
	if (term->kind == TERM_ALL)
		net_drop_terms(net);
	grown = realloc(net->term, (net->count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	net->term = grown;
	net->term[net->count++] = *term;
	return 0;
}

/* Finds or creates the group of @type and @nums. Takes over the memory of
 * @nums, except when it returns NULL because there is no memory. */
static struct net_terms *list_net(struct ulnet_nidlist *list,
				  const struct lnet_net_type *type,
				  struct lnet_ranges *nums)
{
	struct net_terms *grown;

	for (unsigned int i = 0; i < list->count; i++) {
		if (list->net[i].type == type &&
		    lnet_ranges_eq(&list->net[i].nums, nums)) {
			lnet_ranges_free(nums);
			return &list->net[i];
		}
	}
	grown = realloc(list->net, (list->count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	list->net = grown;
	list->net[list->count] =
		(struct net_terms){ .type = type, .nums = *nums };
	return &list->net[list->count++];
}

/* Takes over the memory of @nums and @term, also on error. */
static int nidlist_list_add(struct ulnet_nidlist *list,
			    const struct lnet_net_type *type,
			    struct lnet_ranges *nums, struct term *term)
{
	struct net_terms *net;
	int rc;

	net = list_net(list, type, nums);
	if (!net) {
		lnet_ranges_free(nums);
		term_fini(term);
		return -ENOMEM;
	}
	rc = net_add_term(net, term);
	if (rc)
		term_fini(term);
	return rc;
}

static int parse_net_nums(struct lnet_text *t, struct lnet_ranges *nums)
{
	uint32_t num = 0;
	int rc;

	if (lnet_text_peek(t) == '[')
		return lnet_ranges_parse_list(t, 0, LNET_NET_NUM_MAX, nums);
	if (lnet_text_peek(t) == '*') /* as in "o2ib*" */
		return lnet_ranges_parse(t, 0, LNET_NET_NUM_MAX, nums);
	if (lnet_text_is_digit(lnet_text_peek(t))) {
		rc = lnet_text_number(t, 0, LNET_NET_NUM_MAX, &num);
		if (rc)
			return rc;
	}
	return lnet_ranges_one(0, LNET_NET_NUM_MAX, num, nums);
}

/* Takes the net numbers that follow the name of a type. The caller must free
 * @nums, also on error. */
static int take_net_nums(struct lnet_text *t, const struct lnet_net_type *type,
			 struct lnet_ranges *nums)
{
	int rc;

	if (type->numbered)
		rc = parse_net_nums(t, nums);
	else
		rc = lnet_ranges_one(0, LNET_NET_NUM_MAX, 0, nums);
	if (rc)
		return rc;
	if (lnet_text_at_end(t) || lnet_text_is_blank(lnet_text_peek(t)))
		return 0;
	return lnet_text_fail(t, t->p,
			      type->numbered ? "bad character behind a net"
					     : "this net has no number");
}

/* Is the next address an IPv6 address, or an IP prefix? (A '/' in brackets
 * begins a stride, not the length of a prefix.) */
static bool looks_like_prefix(const struct lnet_text *t)
{
	bool inside = false;
	const char *p;

	for (p = t->p; p < t->end; p++) {
		if (*p == '[')
			inside = true;
		else if (*p == ']')
			inside = false;
		else if (*p == ':' || (*p == '/' && !inside))
			return true;
	}
	return false;
}

static void clear_host_bits(uint8_t *addr, size_t len, unsigned int bits)
{
	for (size_t i = 0; i < len; i++) {
		if (bits >= (i + 1) * 8)
			continue;
		if (bits <= i * 8)
			addr[i] = 0;
		else
			addr[i] &= (uint8_t)(0xff << ((i + 1) * 8 - bits));
	}
}

/* Takes an IPv4 or IPv6 address, which ends at '/' or at the end of the text.
 */
static int take_ip(struct lnet_text *t, struct ulnet_nid *prefix)
{
	const char *start = t->p;

	while (!lnet_text_at_end(t) && lnet_text_peek(t) != '/' &&
	       !lnet_text_is_blank(lnet_text_peek(t)))
		t->p++;
	if (!lnet_ip_parse(start, (size_t)(t->p - start), prefix))
		return lnet_text_fail(t, start, "bad IP address");
	lnet_text_skip_blanks(t);
	return 0;
}

static int parse_prefix(struct lnet_text *t, struct term *term)
{
	size_t len;
	int rc;

	term->kind = TERM_PREFIX;
	rc = take_ip(t, &term->prefix);
	if (rc)
		return rc;
	len = (size_t)term->prefix.size + 4;
	term->bits = (unsigned int)len * 8;
	if (lnet_text_take(t, '/')) {
		lnet_text_skip_blanks(t);
		rc = lnet_text_number(t, 1, term->bits, &term->bits);
		if (rc)
			return rc;
		lnet_text_skip_blanks(t);
	}
	clear_host_bits(term->prefix.addr, len, term->bits);
	return 0;
}

/* If each set has only one number, the term is a single address: turns it into
 * the equal prefix, so that equal terms are written alike. */
static void simplify_ip(struct term *term)
{
	uint32_t byte[4];

	for (size_t i = 0; i < 4; i++)
		if (!lnet_ranges_is_one(&term->set[i], &byte[i]))
			return;
	for (size_t i = 0; i < 4; i++)
		term->prefix.addr[i] = (uint8_t)byte[i];
	term_fini(term);
	term->kind = TERM_PREFIX;
	term->nsets = 0;
	term->bits = 32;
}

static int parse_ip_ranges(struct lnet_text *t, struct term *term)
{
	int rc;

	term->kind = TERM_SETS;
	term->nsets = 4;
	for (size_t i = 0; i < 4; i++) {
		if (i && !lnet_text_take(t, '.'))
			return lnet_text_fail(t, t->p, "'.' was expected");
		rc = lnet_ranges_parse(t, 0, 255, &term->set[i]);
		if (rc)
			return rc;
	}
	simplify_ip(term);
	return 0;
}

static int parse_numbers(struct lnet_text *t, struct term *term)
{
	int rc;

	term->kind = TERM_SETS;
	term->nsets = 1;
	rc = lnet_ranges_parse(t, 0, UINT32_MAX, &term->set[0]);
	if (rc)
		return rc;
	if (lnet_ranges_is_all(&term->set[0])) {
		term_fini(term);
		*term = (struct term){ .kind = TERM_ALL };
	}
	return 0;
}

/* Takes the rest of the text, and returns true, if it is "*", with or without
 * blanks around it. */
static bool take_all(struct lnet_text *t)
{
	struct lnet_text copy = *t;

	if (!lnet_text_take(&copy, '*'))
		return false;
	lnet_text_skip_blanks(&copy);
	if (!lnet_text_at_end(&copy))
		return false;
	*t = copy;
	return true;
}

/* Is the term 255.255.255.255@net, which means the same as "*@net"? */
static bool is_broadcast(const struct term *term)
{
	return term->kind == TERM_PREFIX && term->bits == 32 &&
	       term->prefix.size == 0 &&
	       get_be32(term->prefix.addr) == UINT32_MAX;
}

/* The caller must call term_fini(), also on error. */
static int term_parse(struct lnet_text *t, enum lnet_addr_kind kind,
		      struct term *term)
{
	int rc;

	lnet_text_skip_blanks(t);
	if (take_all(t)) {
		term->kind = TERM_ALL;
		return 0;
	}
	if (kind == LNET_ADDR_NUMBER)
		rc = parse_numbers(t, term);
	else if (looks_like_prefix(t))
		rc = parse_prefix(t, term);
	else
		rc = parse_ip_ranges(t, term);
	if (rc)
		return rc;
	if (!lnet_text_at_end(t))
		return lnet_text_fail(t, t->p, "'@' was expected");
	if (is_broadcast(term))
		*term = (struct term){ .kind = TERM_ALL };
	return 0;
}

/* Parses the net before the addresses, since the net decides what addresses
 * look like. */
static int parse_nidrange(struct lnet_text *t, struct ulnet_nidlist *list)
{
	const char *at = memchr(t->p, '@', (size_t)(t->end - t->p));
	const struct lnet_net_type *type;
	struct lnet_ranges nums = { 0 };
	struct lnet_text addr = *t;
	struct term term = { 0 };
	int rc;

	if (!at)
		return lnet_text_fail(t, t->p, "'@' and a net are missing");
	addr.end = at;
	t->p = at + 1;
	type = lnet_net_type_take(t);
	if (!type)
		return lnet_text_fail(t, t->p, "unknown type of net");
	rc = take_net_nums(t, type, &nums);
	if (rc)
		goto err_free_nums;
	rc = term_parse(&addr, type->kind, &term);
	if (rc)
		goto err_fini_term;
	return nidlist_list_add(list, type, &nums, &term);

err_fini_term:
	term_fini(&term);
err_free_nums:
	lnet_ranges_free(&nums);
	return rc;
}

static int parse_list(struct lnet_text *t, struct ulnet_nidlist *list)
{
	unsigned int count = 0;
	int rc;

	lnet_text_skip_blanks(t);
	if (lnet_text_at_end(t))
		return lnet_text_fail(t, t->p, "the list is empty");
	while (!lnet_text_at_end(t)) {
		if (count++ == NIDRANGES_MAX)
			return lnet_text_fail(t, t->p,
					      "more than %d NID ranges",
					      NIDRANGES_MAX);
		rc = parse_nidrange(t, list);
		if (rc)
			return rc;
		lnet_text_skip_blanks(t);
	}
	return 0;
}

int lnet_nidlist_parse(const char *text, struct ulnet_nidlist **list_p,
		       struct ulnet_text_error *err)
{
	struct lnet_text t = lnet_text_of(text, strlen(text), err);
	struct ulnet_nidlist *list;
	int rc;

	list = calloc(1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	rc = parse_list(&t, list);
	if (rc) {
		lnet_nidlist_free(list);
		return rc;
	}
	*list_p = list;
	return 0;
}

static bool prefix_match(const struct term *term, const struct ulnet_nid *nid)
{
	uint8_t addr[sizeof(nid->addr)];

	if (nid->size != term->prefix.size)
		return false;
	memcpy(addr, nid->addr, sizeof(addr));
	clear_host_bits(addr, sizeof(addr), term->bits);
	return memcmp(addr, term->prefix.addr, sizeof(addr)) == 0;
}

static bool sets_match(const struct term *term, const struct ulnet_nid *nid)
{
	if (!lnet_nid_is_nid4(nid))
		return false;
	for (size_t i = 0; i < term->nsets; i++)
		if (!lnet_ranges_match(&term->set[i],
				       term->nsets == 1 ? get_be32(nid->addr)
							: nid->addr[i]))
			return false;
	return true;
}

static bool term_match(const struct term *term, const struct ulnet_nid *nid)
{
	switch (term->kind) {
	case TERM_ALL:
		return true;
	case TERM_PREFIX:
		return prefix_match(term, nid);
	case TERM_SETS:
		return sets_match(term, nid);
	}
	return false;
}

static bool net_match(const struct net_terms *net, const struct ulnet_nid *nid)
{
	if (nid->type != net->type->type ||
	    !lnet_ranges_match(&net->nums, LNET_NET_NUM(lnet_nid_net(nid))))
		return false;
	for (unsigned int i = 0; i < net->count; i++)
		if (term_match(&net->term[i], nid))
			return true;
	return false;
}

bool lnet_nidlist_match(const struct ulnet_nidlist *list,
			const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < list->count; i++)
		if (net_match(&list->net[i], nid))
			return true;
	return false;
}

static void format_prefix(const struct term *term, struct lnet_text_out *out)
{
	unsigned int all = (term->prefix.size + 4U) * 8;

	lnet_ip_print(out, &term->prefix);
	if (term->bits != all)
		lnet_text_printf(out, "/%u", term->bits);
}

static void format_term(const struct term *term, struct lnet_text_out *out)
{
	switch (term->kind) {
	case TERM_ALL:
		lnet_text_printf(out, "*");
		break;
	case TERM_PREFIX:
		format_prefix(term, out);
		break;
	case TERM_SETS:
		for (size_t i = 0; i < term->nsets; i++) {
			if (i)
				lnet_text_printf(out, ".");
			lnet_ranges_format(&term->set[i], out);
		}
		break;
	}
}

static void format_net(const struct net_terms *net, struct lnet_text_out *out)
{
	uint32_t num;

	lnet_text_printf(out, "@%s", net->type->name);
	if (lnet_ranges_is_one(&net->nums, &num)) {
		if (num)
			lnet_text_printf(out, "%u", num);
	} else if (lnet_ranges_is_all(&net->nums)) {
		lnet_text_printf(out, "[*]");
	} else {
		lnet_ranges_format(&net->nums, out);
	}
}

size_t lnet_nidlist_format(const struct ulnet_nidlist *list, char *buf,
			   size_t size)
{
	struct lnet_text_out out = { buf, size, 0 };
	const struct net_terms *net;

	for (net = list->net; net < list->net + list->count; net++) {
		for (unsigned int i = 0; i < net->count; i++) {
			if (out.len)
				lnet_text_printf(&out, " ");
			format_term(&net->term[i], &out);
			format_net(net, &out);
		}
	}
	return out.len;
}

/* ---- expanding a list into NIDs ---- */

struct expansion {
	const struct ulnet_nidlist *list;
	struct ulnet_nid *nids;
	size_t max, n;
	/* The term that is being expanded: */
	const struct net_terms *net;
	const struct term *term;
	/* The sets whose numbers make up its NIDs: net numbers, then addresses
	 * or the bytes of addresses. */
	const struct lnet_ranges *set[5];
	unsigned int nsets;
};

/* Does a term before the current one contain @nid? Then the result has @nid
 * already. */
static bool nidlist_is_there(const struct expansion *x,
			     const struct ulnet_nid *nid)
{
	const struct net_terms *net;
	const struct term *term;

	for (net = x->list->net; net < x->net; net++)
		if (net_match(net, nid))
			return true;
	for (term = x->net->term; term < x->term; term++)
		if (term_match(term, nid))
			return true;
	return false;
}

static int expand_nid(struct expansion *x, const struct ulnet_nid *nid)
{
	/* No interface has the address 255.255.255.255. */
	if (lnet_nid_is_net(nid) || nidlist_is_there(x, nid))
		return 0;
	if (x->n == x->max)
		return -E2BIG;
	x->nids[x->n++] = *nid;
	return 0;
}

/* Puts @v, a number of set @i, into @nid, where the numbers of that set belong.
 */
static void put_number(const struct expansion *x, struct ulnet_nid *nid,
		       unsigned int i, uint32_t v)
{
	const struct ulnet_nid *prefix = &x->term->prefix;

	if (i == 0) {
		nid->num[0] = (uint8_t)(v >> 8);
		nid->num[1] = (uint8_t)v;
	} else if (x->term->nsets == 4) {
		nid->addr[i - 1] = (uint8_t)v;
	} else {
		put_be32(nid->addr + prefix->size,
			 get_be32(prefix->addr + prefix->size) | v);
	}
}

static bool is_in_ranges(const struct lnet_range *r, unsigned int n, uint32_t v)
{
	while (n && !lnet_range_match(&r[n - 1], v))
		n--;
	return n;
}

/* Adds all NIDs that begin with the numbers that @nid has for the first @i
 * sets, each NID once, in the order of the numbers. */
static int expand_sets(struct expansion *x, struct ulnet_nid *nid,
		       unsigned int i)
{
	const struct lnet_ranges *set;
	int rc = 0;

	if (i == x->nsets)
		return expand_nid(x, nid);
	set = x->set[i];
	for (unsigned int k = 0; k < set->count && !rc; k++) {
		const struct lnet_range *r = &set->range[k];

		for (uint64_t v = r->lo; v <= r->hi && !rc; v += r->stride) {
			if (is_in_ranges(set->range, k, (uint32_t)v))
				continue;
			put_number(x, nid, i, (uint32_t)v);
			rc = expand_sets(x, nid, i + 1);
		}
	}
	return rc;
}

static int expand_term(struct expansion *x)
{
	const struct term *term = x->term;
	unsigned int host = (term->prefix.size + 4u) * 8 - term->bits;
	struct lnet_range hosts = { 0, 0, 1 };
	const struct lnet_ranges low = { .count = 1, .range = &hosts };
	struct ulnet_nid nid = term->prefix;

	if (term->kind == TERM_ALL || (term->kind == TERM_PREFIX && host >= 32))
		return -E2BIG;
	nid.type = (uint8_t)x->net->type->type;
	x->set[0] = &x->net->nums;
	x->nsets = 1 + MAX(term->nsets, 1);
	for (unsigned int i = 0; i < term->nsets; i++)
		x->set[i + 1] = &term->set[i];
	if (term->kind == TERM_PREFIX) {
		hosts.hi = (UINT32_C(1) << host) - 1;
		x->set[1] = &low;
	}
	return expand_sets(x, &nid, 0);
}

int lnet_nidlist_expand(const struct ulnet_nidlist *list,
			struct ulnet_nid *nids, size_t max, size_t *n_p)
{
	struct expansion x = { .list = list, .nids = nids, .max = max };
	const struct net_terms *end = list->net + list->count;
	int rc = 0;

	for (x.net = list->net; x.net < end && !rc; x.net++)
		for (x.term = x.net->term;
		     x.term < x.net->term + x.net->count && !rc; x.term++)
			rc = expand_term(&x);
	if (!rc)
		*n_p = x.n;
	return rc;
}
