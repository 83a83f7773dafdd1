/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NIDs, nets and process ids as values and as texts. Host names are not
 * resolved.
 */
#include "ulnet/nid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "lnet/nid/nid.h"
#include "lnet/nid/nid_priv.h"

#define PID_ANY_TEXT "LNET_PID_ANY"

/* No name may be a prefix of another one: lnet_net_type_take() takes the first
 * name that fits. */
static const struct lnet_net_type net_types[] = {
	{ LNET_TYPE_SOCK, LNET_ADDR_IP, "tcp", true },
	{ LNET_TYPE_O2IB, LNET_ADDR_IP, "o2ib", true },
	{ LNET_TYPE_LO, LNET_ADDR_NUMBER, "lo", false },
	{ LNET_TYPE_GNI, LNET_ADDR_NUMBER, "gni", true },
	{ LNET_TYPE_GNIIP, LNET_ADDR_IP, "gip", true },
	{ LNET_TYPE_PTL4, LNET_ADDR_NUMBER, "ptlf", true },
	{ LNET_TYPE_KFI, LNET_ADDR_NUMBER, "kfi", true },
	{ LNET_TYPE_TOFU, LNET_ADDR_NONE, NULL, false },
	{ LNET_TYPE_EFA, LNET_ADDR_IP, "efa", true },
	{ LNET_TYPE_BXI3, LNET_ADDR_NUMBER, "bxi3f", true },
	{ LNET_TYPE_SHM, LNET_ADDR_NUMBER, "shm", true },
};

const struct lnet_net_type *lnet_net_type_find(uint32_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(net_types); i++)
		if (net_types[i].type == type)
			return &net_types[i];
	return NULL;
}

const struct lnet_net_type *lnet_net_type_take(struct lnet_text *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(net_types); i++) {
		const char *name = net_types[i].name;
		size_t len = name ? strlen(name) : 0;

		if (!len || len > (size_t)(t->end - t->p) ||
		    memcmp(t->p, name, len) != 0)
			continue;
		t->p += len;
		return &net_types[i];
	}
	return NULL;
}

static struct ulnet_nid nid_on(uint32_t net)
{
	return (struct ulnet_nid){
		.type = (uint8_t)LNET_NET_TYPE(net),
		.num = { (uint8_t)(net >> 8), (uint8_t)net },
	};
}

/* Can NIDs be on @net? The type of a net has 16 bits, that of a NID only 8, and
 * 0xff there stands for LNET_NID_ANY. */
static bool net_has_nids(uint32_t net)
{
	return LNET_NET_TYPE(net) < 0xff;
}

struct ulnet_nid lnet_nid_make(uint32_t net, uint32_t addr)
{
	struct ulnet_nid nid;

	if (!net_has_nids(net))
		return LNET_NID_ANY;
	nid = nid_on(net);
	put_be32(nid.addr, addr);
	return nid;
}

struct ulnet_nid lnet_nid_from_nid4(uint64_t nid4)
{
	return lnet_nid_make((uint32_t)(nid4 >> 32), (uint32_t)nid4);
}

uint64_t lnet_nid_to_nid4(const struct ulnet_nid *nid)
{
	if (lnet_nid_is_any(nid))
		return UINT64_MAX;
	if (!lnet_nid_is_nid4(nid))
		return 0;
	return (uint64_t)lnet_nid_net(nid) << 32 | get_be32(nid->addr);
}

int lnet_nid_cmp(const struct ulnet_nid *a, const struct ulnet_nid *b)
{
	return memcmp(a, b, sizeof(*a));
}

/* The type of @net, or NULL if the net has no name in texts. */
static const struct lnet_net_type *named_type(uint32_t net)
{
	const struct lnet_net_type *t = lnet_net_type_find(LNET_NET_TYPE(net));

	if (!t || t->kind == LNET_ADDR_NONE)
		return NULL;
	return t->numbered || LNET_NET_NUM(net) == 0 ? t : NULL;
}

static void print_words_net(struct lnet_text_out *out, uint32_t net)
{
	lnet_text_printf(out, "<%u:%u>", LNET_NET_TYPE(net), LNET_NET_NUM(net));
}

static void nid_print_net(struct lnet_text_out *out, uint32_t net)
{
	const struct lnet_net_type *t = named_type(net);

	if (!t)
		print_words_net(out, net);
	else if (LNET_NET_NUM(net) == 0)
		lnet_text_printf(out, "%s", t->name);
	else
		lnet_text_printf(out, "%s%u", t->name, LNET_NET_NUM(net));
}

static bool ip_size(const struct ulnet_nid *nid)
{
	return nid->size == 0 || nid->size == LNET_NID_IPV6_SIZE;
}

void lnet_ip_print(struct lnet_text_out *out, const struct ulnet_nid *nid)
{
	char ip[INET6_ADDRSTRLEN];

	lnet_text_printf(out, "%s",
			 inet_ntop(nid->size ? AF_INET6 : AF_INET, nid->addr,
				   ip, sizeof(ip)));
}

static bool print_addr(struct lnet_text_out *out, const struct ulnet_nid *nid)
{
	const struct lnet_net_type *t = named_type(lnet_nid_net(nid));

	if (t && t->kind == LNET_ADDR_IP && ip_size(nid))
		lnet_ip_print(out, nid);
	else if (t && t->kind == LNET_ADDR_NUMBER && nid->size == 0)
		lnet_text_printf(out, "%u", get_be32(nid->addr));
	else
		return false;
	return true;
}

/* Prints a NID that has no other form as hexadecimal words: "a4d0029:1@<17:3>".
 */
static void print_words(struct lnet_text_out *out, const struct ulnet_nid *nid)
{
	size_t len = MIN((size_t)nid->size + 4, sizeof(nid->addr));

	for (size_t i = 0; i < len; i += 4)
		lnet_text_printf(out, "%s%x", i == 0 ? "" : ":",
				 get_be32(nid->addr + i));
	lnet_text_printf(out, "@");
	print_words_net(out, lnet_nid_net(nid));
}

static void print_nid(struct lnet_text_out *out, const struct ulnet_nid *nid)
{
	if (lnet_nid_is_any(nid)) {
		lnet_text_printf(out, "<?>");
	} else if (print_addr(out, nid)) {
		lnet_text_printf(out, "@");
		nid_print_net(out, lnet_nid_net(nid));
	} else {
		print_words(out, nid);
	}
}

static void print_pid(struct lnet_text_out *out, uint32_t pid)
{
	if (pid == LNET_PID_ANY)
		lnet_text_printf(out, PID_ANY_TEXT);
	else
		lnet_text_printf(out, "%s%u",
				 pid & LNET_PID_USERFLAG ? "U" : "",
				 pid & ~LNET_PID_USERFLAG);
}

char *lnet_net_format(uint32_t net, char *buf, size_t size)
{
	struct lnet_text_out out = { buf, size, 0 };

	nid_print_net(&out, net);
	return buf;
}

char *lnet_nid_format(const struct ulnet_nid *nid, char *buf, size_t size)
{
	struct lnet_text_out out = { buf, size, 0 };

	print_nid(&out, nid);
	return buf;
}

char *lnet_id_format(const struct ulnet_id *id, char *buf, size_t size)
{
	struct lnet_text_out out = { buf, size, 0 };

	print_pid(&out, id->pid);
	lnet_text_printf(&out, "-");
	print_nid(&out, &id->nid);
	return buf;
}

/* Refuses leading zeros: some programs would read them as octal. */
static int nid_take_decimal(struct lnet_text *t, uint32_t max,
			    uint32_t *value_p)
{
	if (t->end - t->p >= 2 && t->p[0] == '0' && lnet_text_is_digit(t->p[1]))
		return -EINVAL;
	return lnet_text_digits(t, 10, 0, max, value_p);
}

/* Takes "<type:number>". */
static int take_words_net(struct lnet_text *t, uint32_t *net_p)
{
	uint32_t type, num;

	if (!lnet_text_take(t, '<') || nid_take_decimal(t, UINT16_MAX, &type) ||
	    !lnet_text_take(t, ':') ||
	    nid_take_decimal(t, LNET_NET_NUM_MAX, &num) ||
	    !lnet_text_take(t, '>'))
		return -EINVAL;
	*net_p = LNET_NET(type, num);
	return 0;
}

static int take_named_net(struct lnet_text *t, uint32_t *net_p)
{
	const struct lnet_net_type *type = lnet_net_type_take(t);
	uint32_t num = 0;

	if (!type)
		return -EINVAL;
	if (type->numbered && !lnet_text_at_end(t) &&
	    nid_take_decimal(t, LNET_NET_NUM_MAX, &num))
		return -EINVAL;
	*net_p = LNET_NET(type->type, num);
	return 0;
}

int lnet_net_parse(const char *text, uint32_t *net_p)
{
	struct lnet_text t = lnet_text_of(text, strlen(text), NULL);
	uint32_t net;

	if (lnet_text_peek(&t) == '<' ? take_words_net(&t, &net)
				      : take_named_net(&t, &net))
		return -EINVAL;
	if (!lnet_text_at_end(&t))
		return -EINVAL;
	*net_p = net;
	return 0;
}

bool lnet_ip_parse(const char *text, size_t len, struct ulnet_nid *nid)
{
	char ip[INET6_ADDRSTRLEN];
	bool six = memchr(text, ':', len);

	if (len >= sizeof(ip))
		return false;
	memcpy(ip, text, len);
	ip[len] = '\0';
	nid->size = six ? LNET_NID_IPV6_SIZE : 0;
	return inet_pton(six ? AF_INET6 : AF_INET, ip, nid->addr) == 1;
}

static int parse_number(struct lnet_text *t, struct ulnet_nid *nid)
{
	uint32_t addr;
	int rc;

	if (t->end - t->p > 2 && t->p[0] == '0' &&
	    (t->p[1] == 'x' || t->p[1] == 'X')) {
		t->p += 2;
		rc = lnet_text_digits(t, 16, 0, UINT32_MAX, &addr);
	} else {
		rc = nid_take_decimal(t, UINT32_MAX, &addr);
	}
	if (rc)
		return rc;
	put_be32(nid->addr, addr);
	return lnet_text_at_end(t) ? 0 : -EINVAL;
}

static int parse_words(struct lnet_text *t, struct ulnet_nid *nid)
{
	uint32_t word;
	size_t len = 0;

	do {
		if (len == sizeof(nid->addr) ||
		    lnet_text_digits(t, 16, 0, UINT32_MAX, &word))
			return -EINVAL;
		put_be32(nid->addr + len, word);
		len += sizeof(word);
	} while (lnet_text_take(t, ':'));
	nid->size = (uint8_t)(len - 4);
	return lnet_text_at_end(t) ? 0 : -EINVAL;
}

static int parse_addr(struct lnet_text *t, bool words, struct ulnet_nid *nid)
{
	if (words)
		return parse_words(t, nid);
	if (lnet_net_type_find(nid->type)->kind == LNET_ADDR_IP)
		return lnet_ip_parse(t->p, (size_t)(t->end - t->p), nid)
			       ? 0
			       : -EINVAL;
	return parse_number(t, nid);
}

bool lnet_nid_is_net(const struct ulnet_nid *nid)
{
	const struct lnet_net_type *t = lnet_net_type_find(nid->type);

	return t && t->kind == LNET_ADDR_IP && nid->size == 0 &&
	       get_be32(nid->addr) == UINT32_MAX;
}

int lnet_nid_parse(const char *text, struct ulnet_nid *nid_p)
{
	const char *at = strrchr(text, '@');
	uint32_t net = LNET_NET(LNET_TYPE_SOCK, 0);
	struct ulnet_nid nid;
	struct lnet_text t;

	if (strcmp(text, "<?>") == 0) {
		*nid_p = LNET_NID_ANY;
		return 0;
	}
	if ((at && lnet_net_parse(at + 1, &net)) || !net_has_nids(net))
		return -EINVAL;
	nid = nid_on(net);
	t = lnet_text_of(text, at ? (size_t)(at - text) : strlen(text), NULL);
	if (parse_addr(&t, at && at[1] == '<', &nid) || lnet_nid_is_net(&nid))
		return -EINVAL;
	*nid_p = nid;
	return 0;
}

static int nid_take_pid(struct lnet_text *t, uint32_t *pid_p)
{
	size_t any_len = strlen(PID_ANY_TEXT);
	uint32_t flag = 0;
	uint32_t pid;

	if ((size_t)(t->end - t->p) >= any_len &&
	    memcmp(t->p, PID_ANY_TEXT, any_len) == 0) {
		t->p += any_len;
		*pid_p = LNET_PID_ANY;
		return 0;
	}
	if (lnet_text_take(t, 'U'))
		flag = LNET_PID_USERFLAG;
	/* LNET_PID_ANY is written only as PID_ANY_TEXT. */
	if (nid_take_decimal(t, LNET_PID_USERFLAG - 1, &pid) ||
	    (pid | flag) == LNET_PID_ANY)
		return -EINVAL;
	*pid_p = pid | flag;
	return 0;
}

int lnet_id_parse(const char *text, struct ulnet_id *id_p)
{
	struct lnet_text t = lnet_text_of(text, strlen(text), NULL);
	struct ulnet_id id;

	if (nid_take_pid(&t, &id.pid) || !lnet_text_take(&t, '-') ||
	    lnet_nid_parse(t.p, &id.nid))
		return -EINVAL;
	*id_p = id;
	return 0;
}

bool nid_is_sane(const struct ulnet_nid *nid)
{
	static const uint8_t zero[sizeof(nid->addr) - 4];

	if (nid->size == 0)
		return memcmp(nid->addr + 4, zero, sizeof(zero)) == 0 ||
		       lnet_nid_is_any(nid);
	return nid->size == sizeof(zero) || lnet_nid_is_any(nid);
}

bool nid_is_loopback(const struct ulnet_nid *nid)
{
	static const uint8_t one[16] = { [15] = 1 };

	return lnet_nid_is_nid4(nid) ? nid->addr[0] == 127
				     : !memcmp(nid->addr, one, sizeof(one));
}
