/* SPDX-License-Identifier: BSD-3-Clause */
/* Aliases may make circles and trees without end of a short text, so it is
 * bounded how deep and how far is looked. */
#include "o2ibcalc_yaml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "tools/common/nearest.h"

#define DEPTH_MAX 32
#define NODES_MAX 1000000

struct reader {
	yaml_document_t doc;
	struct complaint *c;
	unsigned int budget; /* nodes that may still be looked at */
};

/* ---- nodes of documents ---- */

static const char *text_of(const yaml_node_t *node)
{
	return (const char *)node->data.scalar.value;
}

static int wrong(struct reader *r, const yaml_node_t *node)
{
	r->c->line = node->start_mark.line + 1;
	return -1;
}

static bool spend(struct reader *r, const yaml_node_t *node, unsigned int depth)
{
	if (r->budget && depth < DEPTH_MAX) {
		r->budget--;
		return true;
	}
	complain(r->c, "too deep, or too much");
	wrong(r, node);
	return false;
}

/* A pair of a mapping; NULL: there are no more. */
static const yaml_node_t *pair_at(struct reader *r, const yaml_node_t *map,
				  size_t i, const yaml_node_t **value_p)
{
	const yaml_node_pair_t *pair = map->data.mapping.pairs.start + i;

	if (pair >= map->data.mapping.pairs.top)
		return NULL;
	*value_p = yaml_document_get_node(&r->doc, pair->value);
	return yaml_document_get_node(&r->doc, pair->key);
}

/* A child of a mapping by its key; NULL: there is none. */
static const yaml_node_t *child(struct reader *r, const yaml_node_t *map,
				const char *name)
{
	const yaml_node_t *key, *value;

	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (size_t i = 0; (key = pair_at(r, map, i, &value)); i++)
		if (key->type == YAML_SCALAR_NODE &&
		    strcmp(text_of(key), name) == 0)
			return value;
	return NULL;
}

static const yaml_node_t *item(struct reader *r, const yaml_node_t *list,
			       size_t i)
{
	if (!list || list->type != YAML_SEQUENCE_NODE ||
	    list->data.sequence.items.start + i >=
		    list->data.sequence.items.top)
		return NULL;
	return yaml_document_get_node(&r->doc,
				      list->data.sequence.items.start[i]);
}

static const char *child_text(struct reader *r, const yaml_node_t *map,
			      const char *name)
{
	const yaml_node_t *value = child(r, map, name);

	return value && value->type == YAML_SCALAR_NODE ? text_of(value) : NULL;
}

static int parse(struct reader *r, const char *text, size_t length)
{
	yaml_parser_t parser;
	int ok;

	r->budget = NODES_MAX;
	r->c->line = 0;
	if (!yaml_parser_initialize(&parser))
		return complain(r->c, "%s", strerror(ENOMEM));
	yaml_parser_set_input_string(&parser, (const unsigned char *)text,
				     length);
	ok = yaml_parser_load(&parser, &r->doc);
	if (!ok) {
		complain(r->c, "no YAML: %s",
			 parser.problem ? parser.problem : strerror(ENOMEM));
		r->c->line = parser.problem_mark.line + 1;
	}
	yaml_parser_delete(&parser);
	if (!ok)
		return -1;
	if (yaml_document_get_root_node(&r->doc))
		return 0;
	yaml_document_delete(&r->doc);
	return complain(r->c, "there is nothing in it");
}

/* ---- a node's inputs ---- */

static int take_value(struct reader *r, const struct input *in,
		      const yaml_node_t *value, struct ulnet_o2ib_conf *conf)
{
	if (value->type != YAML_SCALAR_NODE) {
		complain(r->c, "%s: a value is expected", input_name(in));
		return wrong(r, value);
	}
	return input_set(in, text_of(value), conf, r->c) ? wrong(r, value) : 0;
}

/* What lnetctl shows has much that is not asked for. */
static int take_shown(struct reader *r, const yaml_node_t *map,
		      struct ulnet_o2ib_conf *conf)
{
	const yaml_node_t *key, *value;
	const struct input *in;

	if (!map || map->type != YAML_MAPPING_NODE)
		return 0;
	for (size_t i = 0; (key = pair_at(r, map, i, &value)); i++) {
		in = key->type == YAML_SCALAR_NODE ? input_find(text_of(key))
						   : NULL;
		if (in && take_value(r, in, value, conf))
			return -1;
	}
	return 0;
}

static int take_tunables(struct reader *r, const yaml_node_t *ni,
			 struct ulnet_o2ib_conf *conf)
{
	if (take_shown(r, child(r, ni, "tunables"), conf) ||
	    take_shown(r, child(r, ni, "lnd tunables"), conf))
		return -1;
	return 0;
}

static bool is_o2ib(const char *net)
{
	return net && strncmp(net, "o2ib", 4) == 0;
}

/* The first NI on a net of this type, and how many more there are. */
static const yaml_node_t *find_ni(struct reader *r, const yaml_node_t *nets,
				  struct node_origin *origin)
{
	const yaml_node_t *net, *ni, *nis, *first = NULL;
	const char *nid;

	for (size_t i = 0; (net = item(r, nets, i)); i++) {
		if (!is_o2ib(child_text(r, net, "net type")))
			continue;
		nis = child(r, net, "local NI(s)");
		for (size_t k = 0; (ni = item(r, nis, k)); k++) {
			if (!spend(r, ni, 0))
				return NULL;
			if (first) {
				origin->others++;
				continue;
			}
			first = ni;
			nid = child_text(r, ni, "nid");
			snprintf(origin->nid, sizeof(origin->nid), "%s",
				 nid ? nid : "?");
		}
	}
	return first;
}

static int take_nets(struct reader *r, const yaml_node_t *nets,
		     struct ulnet_o2ib_conf *conf, struct node_origin *origin)
{
	const yaml_node_t *ni = find_ni(r, nets, origin);

	if (ni && !child(r, ni, "lnd tunables")) {
		complain(r->c,
			 "%s has no \"lnd tunables\": show it with "
			 "\"lnetctl net show -v 4\"",
			 origin->nid);
		return wrong(r, ni);
	}
	if (ni)
		return take_tunables(r, ni, conf);
	complain(r->c, "no NI is on an o2ib net");
	return wrong(r, nets);
}

static int no_name(struct reader *r, const yaml_node_t *key, const char *near)
{
	if (key->type == YAML_SCALAR_NODE)
		complain(r->c, "%.80s: there is no such input", text_of(key));
	else
		complain(r->c, "the name of an input is expected");
	r->c->near = near;
	return wrong(r, key);
}

/* An input by its name. @given: what was there already. */
static int take_input(struct reader *r, const yaml_node_t *key,
		      const yaml_node_t *value, bool *given,
		      struct ulnet_o2ib_conf *conf)
{
	const struct input *in;

	if (key->type != YAML_SCALAR_NODE)
		return no_name(r, key, NULL);
	in = input_find(text_of(key));
	if (!in)
		return no_name(r, key, input_near(text_of(key)));
	for (unsigned int i = 0; i < inputs(); i++) {
		if (input_at(i) != in)
			continue;
		if (given[i]) {
			complain(r->c, "%s is there twice", input_name(in));
			return wrong(r, key);
		}
		given[i] = true;
	}
	return take_value(r, in, value, conf);
}

#define INPUTS_MAX 64

static int take_node(struct reader *r, const yaml_node_t *map,
		     struct ulnet_o2ib_conf *conf, struct node_origin *origin)
{
	const yaml_node_t *key, *value;
	bool given[INPUTS_MAX] = { false }, shown;

	/* What lnetctl shows, and inputs beside that, which count more. */
	if (map->type != YAML_MAPPING_NODE) {
		complain(r->c, "inputs such as \"peer_credits: 8\" are "
			       "expected");
		return wrong(r, map);
	}
	shown = child(r, map, "net") || child(r, map, "tunables") ||
		child(r, map, "lnd tunables");
	if ((value = child(r, map, "net")) && take_nets(r, value, conf, origin))
		return -1;
	if (take_tunables(r, map, conf))
		return -1;
	for (size_t i = 0; (key = pair_at(r, map, i, &value)); i++) {
		if (shown && (key->type != YAML_SCALAR_NODE ||
			      !input_find(text_of(key))))
			continue;
		if (take_input(r, key, value, given, conf))
			return -1;
	}
	return 0;
}

/* ---- two nodes ---- */

enum top {
	TOP_A,
	TOP_B,
	TOP_BOTH,
	TOP_INITIATOR,
	TOP_NPEERS,
	TOP_OUTPUT, /* of this program, which may be fed in again */
};

static const struct {
	const char *name;
	enum top top;
} tops[] = {
	{ "a", TOP_A },
	{ "b", TOP_B },
	{ "both", TOP_BOTH },
	{ "initiator", TOP_INITIATOR },
	{ "npeers", TOP_NPEERS },
	{ "result", TOP_OUTPUT },
	{ "what_if", TOP_OUTPUT },
	{ "negotiated", TOP_OUTPUT },
};
#define TOPS (sizeof(tops) / sizeof(tops[0]))

static int take_initiator(struct reader *r, const yaml_node_t *value,
			  struct ulnet_o2ib_pair *pair)
{
	const char *text =
		value->type == YAML_SCALAR_NODE ? text_of(value) : "";

	if (strcasecmp(text, "a") == 0) {
		pair->initiator = LNET_O2IB_A;
	} else if (strcasecmp(text, "b") == 0) {
		pair->initiator = LNET_O2IB_B;
	} else {
		complain(r->c, "initiator: %.80s: A or B is expected", text);
		return wrong(r, value);
	}
	return 0;
}

static int take_npeers(struct reader *r, const yaml_node_t *value,
		       struct ulnet_o2ib_pair *pair)
{
	const char *text =
		value->type == YAML_SCALAR_NODE ? text_of(value) : "";
	unsigned long n;

	if (!number_parse(text, 1, 1000000, &n)) {
		complain(r->c,
			 "npeers: %.80s: a number from 1 to 1000000 is "
			 "expected",
			 text);
		return wrong(r, value);
	}
	pair->npeers = (uint32_t)n;
	return 0;
}

static int no_top(struct reader *r, const yaml_node_t *key)
{
	struct nearest near;

	if (key->type != YAML_SCALAR_NODE)
		return no_name(r, key, NULL);
	/* An input that is not said to be whose. */
	if (input_find(text_of(key))) {
		complain(r->c, "%s: of \"a:\", \"b:\" or \"both:\"?",
			 text_of(key));
		return wrong(r, key);
	}
	nearest_init(&near, text_of(key));
	for (unsigned int i = 0; i < TOPS; i++)
		nearest_try(&near, tops[i].name);
	complain(r->c,
		 "%.80s: there are a, b, both, initiator and npeers, or what "
		 "lnetctl shows",
		 text_of(key));
	r->c->near = near.name;
	return wrong(r, key);
}

static int take_both(struct reader *r, const yaml_node_t *map,
		     struct ulnet_o2ib_pair *pair, struct node_origin *origin)
{
	struct node_origin again = { .nid = "" };

	if (take_node(r, map, &pair->node[LNET_O2IB_A], origin))
		return -1;
	return take_node(r, map, &pair->node[LNET_O2IB_B], &again);
}

static int take_top(struct reader *r, unsigned int i, const yaml_node_t *value,
		    struct ulnet_o2ib_pair *pair, struct node_origin *origin)
{
	switch (tops[i].top) {
	case TOP_A:
		return take_node(r, value, &pair->node[LNET_O2IB_A], origin);
	case TOP_B:
		return take_node(r, value, &pair->node[LNET_O2IB_B], origin);
	case TOP_BOTH:
		return take_both(r, value, pair, origin);
	case TOP_INITIATOR:
		return take_initiator(r, value, pair);
	case TOP_NPEERS:
		return take_npeers(r, value, pair);
	default:
		return 0;
	}
}

static int take_pair(struct reader *r, const yaml_node_t *map,
		     struct ulnet_o2ib_pair *pair, struct node_origin *origin)
{
	const yaml_node_t *key, *value;
	bool given[TOPS] = { false };
	unsigned int top;

	if (map->type != YAML_MAPPING_NODE) {
		complain(r->c, "\"a:\" and \"b:\" are expected");
		return wrong(r, map);
	}
	if (child(r, map, "net") || child(r, map, "lnd tunables"))
		return take_both(r, map, pair, origin);
	/* What one node has comes after what both have. */
	if ((value = child(r, map, "both")) &&
	    take_both(r, value, pair, origin))
		return -1;
	for (size_t i = 0; (key = pair_at(r, map, i, &value)); i++) {
		for (top = 0; top < TOPS; top++)
			if (key->type == YAML_SCALAR_NODE &&
			    strcasecmp(text_of(key), tops[top].name) == 0)
				break;
		if (top == TOPS)
			return no_top(r, key);
		if (given[top]) {
			complain(r->c, "%s is there twice", tops[top].name);
			return wrong(r, key);
		}
		given[top] = true;
		if (tops[top].top != TOP_BOTH &&
		    take_top(r, top, value, pair, origin))
			return -1;
	}
	return 0;
}

int pair_read(const char *text, size_t length, struct ulnet_o2ib_pair *pair,
	      struct node_origin *origin, struct complaint *c)
{
	struct reader r = { .c = c };
	int rc;

	*origin = (struct node_origin){ .nid = "" };
	if (parse(&r, text, length))
		return -1;
	rc = take_pair(&r, yaml_document_get_root_node(&r.doc), pair, origin);
	yaml_document_delete(&r.doc);
	return rc;
}

int node_read(const char *text, size_t length, struct ulnet_o2ib_conf *conf,
	      struct node_origin *origin, struct complaint *c)
{
	struct reader r = { .c = c };
	int rc;

	*origin = (struct node_origin){ .nid = "" };
	if (parse(&r, text, length))
		return -1;
	rc = take_node(&r, yaml_document_get_root_node(&r.doc), conf, origin);
	yaml_document_delete(&r.doc);
	return rc;
}

/* ---- what was negotiated ---- */

static int take_count(struct reader *r, const yaml_node_t *map,
		      const char *name, bool *has, unsigned long *value_p)
{
	const yaml_node_t *value = child(r, map, name);

	if (!value)
		return 0;
	if (value->type != YAML_SCALAR_NODE ||
	    !number_parse(text_of(value), 0, 65535, value_p)) {
		complain(r->c, "%s: a number from 0 to 65535 is expected",
			 name);
		return wrong(r, value);
	}
	*has = true;
	return 0;
}

static int add_conn(struct reader *r, const yaml_node_t *map, const char *nid,
		    struct negotiated_list *list)
{
	struct negotiated conn = { .line = map->start_mark.line + 1 }, *conns;

	if (take_count(r, map, "queue_depth", &conn.has_depth, &conn.depth) ||
	    take_count(r, map, "max_frags", &conn.has_frags, &conn.frags))
		return -1;
	if (!conn.has_depth && !conn.has_frags)
		return 0;
	snprintf(conn.nid, sizeof(conn.nid), "%s", nid);
	conns = realloc(list->conns, (list->n + 1) * sizeof(*conns));
	if (!conns) {
		complain(r->c, "%s", strerror(ENOMEM));
		return wrong(r, map);
	}
	list->conns = conns;
	conns[list->n++] = conn;
	return 0;
}

/* @nid: of what is around. */
static int find_conns(struct reader *r, const yaml_node_t *node,
		      const char *nid, unsigned int depth,
		      struct negotiated_list *list)
{
	const yaml_node_t *value;
	const char *own;

	if (!spend(r, node, depth))
		return -1;
	for (size_t i = 0; (value = item(r, node, i)); i++)
		if (find_conns(r, value, nid, depth + 1, list))
			return -1;
	if (node->type != YAML_MAPPING_NODE)
		return 0;
	own = child_text(r, node, "nid");
	if (!own)
		own = child_text(r, node, "primary nid");
	if (own)
		nid = own;
	if (add_conn(r, node, nid, list))
		return -1;
	for (size_t i = 0; pair_at(r, node, i, &value); i++)
		if (find_conns(r, value, nid, depth + 1, list))
			return -1;
	return 0;
}

int negotiated_read(const char *text, size_t length,
		    struct negotiated_list *list, struct complaint *c)
{
	struct reader r = { .c = c };
	int rc;

	*list = (struct negotiated_list){ NULL, 0 };
	if (parse(&r, text, length))
		return -1;
	rc = find_conns(&r, yaml_document_get_root_node(&r.doc), "", 0, list);
	yaml_document_delete(&r.doc);
	if (!rc && !list->n) {
		c->line = 0;
		rc = complain(c, "no connection: neither queue_depth nor "
				 "max_frags is in it");
	}
	if (rc)
		negotiated_free(list);
	return rc;
}

void negotiated_free(struct negotiated_list *list)
{
	free(list->conns);
	*list = (struct negotiated_list){ NULL, 0 };
}
