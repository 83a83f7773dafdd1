/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NIDs, networks, process ids; their text forms; ranges and lists of them.
 * Manual: lnet_nid(3), lnet_nidlist(3).
 *
 * Types carry the prefix ulnet_, because Lustre's own headers define struct
 * lnet_nid and its kin; functions carry LNet's.
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
 * A NID: 20 bytes, as they are on the wire, in network byte order, whatever the
 * machine. A value: copied, compared as bytes, unused bytes 0. One that came
 * from elsewhere may have any size: at most 12 before its address is used.
 */
struct ulnet_nid {
	uint8_t size;	  /* address bytes beyond 4: 0 or LNET_NID_IPV6_SIZE */
	uint8_t type;	  /* LNET_TYPE_*; 0xff: any */
	uint8_t num[2];	  /* net number, big endian */
	uint8_t addr[16]; /* big endian; 4-byte addresses use the first 4 */
};

#define LNET_NID_IPV6_SIZE 12 /* ulnet_nid.size of an IPv6 address */

/* A process: one LNet instance has one pid on all its NIDs. Of those that share
 * a NID at most one listens; the pids of the others have LNET_PID_USERFLAG. */
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

/* Has the NID a 4-byte address, and so a 64-bit form? (Not LNET_NID_ANY,
 * although it has one.) */
static inline bool lnet_nid_is_nid4(const struct ulnet_nid *nid)
{
	return nid->size == 0;
}

/* The net a NID is on: type << 16 | number; LNET_NET_ANY for any. */
static inline uint32_t lnet_nid_net(const struct ulnet_nid *nid)
{
	if (lnet_nid_is_any(nid))
		return LNET_NET_ANY;
	return LNET_NET(nid->type, nid->num[0] << 8 | nid->num[1]);
}

/* A NID with a 4-byte address, given as a host integer (10.0.0.1 =
 * 0x0a000001). On a net whose type is 0xff or above: LNET_NID_ANY. */
ULNET_EXPORT struct ulnet_nid lnet_nid_make(uint32_t net, uint32_t addr);

/* From and to the 64-bit form net << 32 | addr. All ones is LNET_NID_ANY, and
 * so is a type of 0xff or above, which no NID has. A large NID has no 64-bit
 * form: 0 (which is no NID). */
ULNET_EXPORT struct ulnet_nid lnet_nid_from_nid4(uint64_t nid4);
ULNET_EXPORT uint64_t lnet_nid_to_nid4(const struct ulnet_nid *nid);

/* Total order: bytewise. <0, 0, >0. */
ULNET_EXPORT int lnet_nid_cmp(const struct ulnet_nid *a,
			      const struct ulnet_nid *b);

/*
 * Text. Printing writes at most @size bytes with the terminator and returns
 * @buf (nothing is cut in LNET_NIDSTR_SIZE bytes); parsing takes the whole of
 * @text and returns 0 or -EINVAL, leaving the result alone on error. What has
 * been printed parses back to the same value, but for 255.255.255.255@net.
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
 * '*@net' is every NID of the net, and so is 255.255.255.255@net; '*.*.*.*@net'
 * every one with an IPv4 address. A list has 1 to 1024 nidranges, brackets have
 * at most 128 ranges: more is an error.
 *
 * Opaque, immutable once parsed: any thread may match at the same time.
 */
struct ulnet_nidlist;

/* What is wrong with a text: where, and in words. */
struct ulnet_text_error {
	size_t offset; /* byte in the text */
	char what[96]; /* "range low end is above its high end" */
};

/*
 * 0; -EINVAL with *@err filled (when not NULL); -ENOMEM.
 * The list is the caller's: lnet_nidlist_free() (NULL is fine).
 */
ULNET_EXPORT int lnet_nidlist_parse(const char *text,
				    struct ulnet_nidlist **list_p,
				    struct ulnet_text_error *err);
ULNET_EXPORT void lnet_nidlist_free(struct ulnet_nidlist *list);
ULNET_EXPORT bool lnet_nidlist_match(const struct ulnet_nidlist *list,
				     const struct ulnet_nid *nid);
/*
 * Canonical text: grouped by net, without what is said twice; parsing it gives
 * a list of the same text. Writes at most @size bytes with the terminator;
 * returns the length it has or would have had (without terminator), as
 * snprintf(); @buf may be NULL if @size is 0.
 */
ULNET_EXPORT size_t lnet_nidlist_format(const struct ulnet_nidlist *list,
					char *buf, size_t size);
/*
 * Every NID of the list, once, in the order of the canonical text; their number
 * is stored in *@n_p. -E2BIG: there are more than @max, as with '*@tcp'; @nids
 * has some of them then.
 */
ULNET_EXPORT int lnet_nidlist_expand(const struct ulnet_nidlist *list,
				     struct ulnet_nid *nids, size_t max,
				     size_t *n_p);

#ifdef __cplusplus
}
#endif

#endif
