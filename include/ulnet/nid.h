/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NIDs, networks, process ids; their text forms; ranges and lists of them.
 * Manual: lnet_nid(3), lnet_nidlist(3).
 *
 * Types have the prefix ulnet_, because Lustre's headers define struct lnet_nid
 * and others; functions have the prefix lnet_.
 */
#ifndef ULNET_NID_H
#define ULNET_NID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ULNET_EXPORT __attribute__((visibility("default")))
#else
#define ULNET_EXPORT
#endif

/* Types of networks (LNDs). */
enum {
	LNET_TYPE_SOCK = 2,   /* tcp */
	LNET_TYPE_O2IB = 5,   /* o2ib */
	LNET_TYPE_LO = 9,     /* lo */
	LNET_TYPE_GNI = 13,   /* gni */
	LNET_TYPE_GNIIP = 14, /* gip */
	LNET_TYPE_PTL4 = 15,  /* ptlf */
	LNET_TYPE_KFI = 16,   /* kfi */
	LNET_TYPE_TOFU = 17,  /* no text form */
	LNET_TYPE_EFA = 18,   /* efa */
	LNET_TYPE_BXI3 = 19,  /* bxi3f */
	LNET_TYPE_SHM = 64,   /* shm: ulnet's own, never leaves the host */
};

#define LNET_NET_ANY	    UINT32_C(0xffffffff)
#define LNET_NET(type, num) ((uint32_t)(type) << 16 | (uint32_t)(num))
#define LNET_NET_TYPE(net)  ((net) >> 16)
#define LNET_NET_NUM(net)   ((net)&0xffff)

#define LNET_PID_ANY	  UINT32_C(0xffffffff)
#define LNET_PID_LUSTRE	  UINT32_C(12345)
#define LNET_PID_USERFLAG UINT32_C(0x80000000)

/* Room for any text below, with its terminator. */
#define LNET_NIDSTR_SIZE 64

/*
 * A NID, 20 bytes as on the wire, in network byte order. NIDs are compared as
 * bytes, so unused bytes must be 0. A NID that comes from outside may have a
 * wrong @size: check that it is at most LNET_NID_IPV6_SIZE before using the
 * address.
 */
struct ulnet_nid {
	/* bytes of the address beyond 4: 0 (IPv4, numbers) or
	 * LNET_NID_IPV6_SIZE */
	uint8_t size;
	uint8_t type;	/* LNET_TYPE_*; 0xff: this is LNET_NID_ANY */
	uint8_t num[2]; /* net number, big endian */
	/* big endian; an address of 4 bytes is in the first 4 */
	uint8_t addr[16];
};

#define LNET_NID_IPV6_SIZE 12 /* ulnet_nid.size of a NID with an IPv6 address */

/* A process, which has the same pid on all its NIDs. If several processes share
 * a NID, at most one of them accepts connections; the pids of the others have
 * LNET_PID_USERFLAG. */
struct ulnet_id {
	struct ulnet_nid nid;
	uint32_t pid;
};

#define LNET_NID_ANY                                                           \
	((struct ulnet_nid){ 0xff,                                             \
			     0xff,                                             \
			     { 0xff, 0xff },                                   \
			     { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, \
			       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,       \
			       0xff } })
/* 0@lo: this node */
#define LNET_NID_LO ((struct ulnet_nid){ 0, LNET_TYPE_LO, { 0, 0 }, { 0 } })

static inline bool lnet_nid_eq(const struct ulnet_nid *a,
			       const struct ulnet_nid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline bool lnet_nid_is_any(const struct ulnet_nid *nid)
{
	return nid->type == 0xff;
}

static inline bool lnet_nid_is_lo(const struct ulnet_nid *nid)
{
	return nid->type == LNET_TYPE_LO;
}

/* Does the NID have a 4-byte address, and so a 64-bit form? (False for
 * LNET_NID_ANY, although that has a 64-bit form.) */
static inline bool lnet_nid_is_nid4(const struct ulnet_nid *nid)
{
	return nid->size == 0;
}

/* Returns the net of a NID, type << 16 | number; LNET_NET_ANY for LNET_NID_ANY.
 */
static inline uint32_t lnet_nid_net(const struct ulnet_nid *nid)
{
	if (lnet_nid_is_any(nid))
		return LNET_NET_ANY;
	return LNET_NET(nid->type, nid->num[0] << 8 | nid->num[1]);
}

/* Makes a NID with the 4-byte address @addr, in host byte order (10.0.0.1 is
 * 0x0a000001). If the type of @net is 0xff or above, returns LNET_NID_ANY. */
ULNET_EXPORT struct ulnet_nid lnet_nid_make(uint32_t net, uint32_t addr);

/* Convert from and to the 64-bit form net << 32 | address. All ones, and a net
 * whose type is 0xff or above, are converted to LNET_NID_ANY. A NID with an
 * IPv6 address has no 64-bit form: it is converted to 0, which is no NID. */
ULNET_EXPORT struct ulnet_nid lnet_nid_from_nid4(uint64_t nid4);
ULNET_EXPORT uint64_t lnet_nid_to_nid4(const struct ulnet_nid *nid);

/* Compares the bytes, as memcmp(): returns < 0, 0 or > 0. */
ULNET_EXPORT int lnet_nid_cmp(const struct ulnet_nid *a,
			      const struct ulnet_nid *b);

/*
 * Text forms. Formatting writes at most @size bytes, including the terminator,
 * and returns @buf; LNET_NIDSTR_SIZE bytes are always enough. Parsing takes the
 * whole of @text, and returns 0 or -EINVAL. Parsing what was formatted gives
 * the same value, except for 255.255.255.255@net.
 *
 *	net	tcp, tcp3, o2ib	(number 0 is not printed; both are parsed);
 *		<17:0> for a type without a name and for lo with a number
 *	nid	10.0.0.1@tcp, 2001:db8::1@tcp3, 5@kfi, 0x1f@kfi, 0@lo,
 *		<?> for any; without '@': on net tcp;
 *		a4d0029:1@<17:0>, words in hex, if nothing else can say it
 *	id	12345-10.0.0.1@tcp; U1-10.0.0.1@tcp with LNET_PID_USERFLAG;
 *		LNET_PID_ANY-10.0.0.1@tcp
 *
 * No blanks, no signs, no leading zeros in decimal numbers. "*" and
 * 255.255.255.255@net stand for many NIDs and are no NID: -EINVAL.
 */
ULNET_EXPORT char *lnet_net_format(uint32_t net, char *buf, size_t size);
ULNET_EXPORT int lnet_net_parse(const char *text, uint32_t *net_p);
ULNET_EXPORT char *lnet_nid_format(const struct ulnet_nid *nid, char *buf,
				   size_t size);
ULNET_EXPORT int lnet_nid_parse(const char *text, struct ulnet_nid *nid_p);
ULNET_EXPORT char *lnet_id_format(const struct ulnet_id *id, char *buf,
				  size_t size);
ULNET_EXPORT int lnet_id_parse(const char *text, struct ulnet_id *id_p);

/*
 * A list of NID ranges, as in "10.0.[1-3].*@tcp fd77::/64@tcp2 *@o2ib[1-4]":
 *
 *	nidlist   := nidrange { ' ' nidrange }
 *	nidrange  := addrrange '@' net
 *	addrrange := '*' | IPv4 '/' prefix | IPv6 [ '/' prefix ]
 *	           | numrange '.' numrange '.' numrange '.' numrange
 *	           | numrange
 *	numrange  := number | '*' | '[' range { ',' range } ']'
 *	range     := number | '*' | number '-' number [ '/' stride ]
 *	net       := name [ number | '[' range { ',' range } ']' ]
 *	number    := decimal | '0x' hex | '0' octal
 *
 * Blanks (space, tab) around numbers are ignored, except in "name number".
 * '*@net' and 255.255.255.255@net stand for all NIDs of the net; '*.*.*.*@net'
 * for those with an IPv4 address. A list has 1 to 1024 nidranges, and brackets
 * at most 128 ranges.
 *
 * A list is immutable: several threads may use it at the same time.
 */
struct ulnet_nidlist;

/* What is wrong with a text, and where. */
struct ulnet_text_error {
	size_t offset; /* offset of the wrong byte in the text */
	char what[96]; /* "range low end is above its high end" */
};

/*
 * Makes a list from @text. *@list_p is to be freed with lnet_nidlist_free(),
 * which ignores NULL. Returns 0; -EINVAL: *@err, unless @err is NULL, says why;
 * -ENOMEM.
 */
ULNET_EXPORT int lnet_nidlist_parse(const char *text,
				    struct ulnet_nidlist **list_p,
				    struct ulnet_text_error *err);
ULNET_EXPORT void lnet_nidlist_free(struct ulnet_nidlist *list);
ULNET_EXPORT bool lnet_nidlist_match(const struct ulnet_nidlist *list,
				     const struct ulnet_nid *nid);
/*
 * Writes the canonical text of a list: grouped by net, without duplicates.
 * Writes at most @size bytes, including the terminator, and returns the length
 * of the whole text, as snprintf(). @buf may be NULL if @size is 0.
 */
ULNET_EXPORT size_t lnet_nidlist_format(const struct ulnet_nidlist *list,
					char *buf, size_t size);
/*
 * Fills @nids with each NID of the list once, in the order of the canonical
 * text, and sets *@n_p to their number. -E2BIG: the list has more than @max
 * NIDs, as "*@tcp" does; @nids then holds some of them.
 */
ULNET_EXPORT int lnet_nidlist_expand(const struct ulnet_nidlist *list,
				     struct ulnet_nid *nids, size_t max,
				     size_t *n_p);

#ifdef __cplusplus
}
#endif

#endif
