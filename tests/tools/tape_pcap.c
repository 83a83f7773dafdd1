/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tape_pcap NAME SEGMENT [SPOIL]: what is on the tape, as a capture of TCP over
 * IPv4 or IPv6, to stdout.
 * tape_pcap NAME fields: what ulnet's own codec reads there, a line for each
 * frame, as the test asks tshark to print it.
 *
 * SEGMENT: the most bytes of a segment. Frames that follow each other in one
 * direction are cut into such segments wherever that is; 0: a frame is a
 * segment. SPOIL: a seed; bytes here and there are others then.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/lnet.h>

#include "base/buf.h"
#include "lnd/socklnd/proto.h"
#include "lnet/message/wire.h"
#include "tests/lnd/tape.h"

#define TCP_HEADER  20u
#define HEADERS_MAX (40u + TCP_HEADER)
#define SEGMENT_MAX 60000u

struct capture {
	const struct tape *tape;
	uint32_t sent[TAPE_CONNS_MAX][2]; /* bytes, by direction */
	uint32_t packets;
	/* state of the random numbers; 0: nothing is spoiled */
	unsigned int spoil;
};

static void put(const void *bytes, size_t len)
{
	if (fwrite(bytes, 1, len, stdout) != len) {
		perror("stdout");
		exit(1);
	}
}

/* Writes pcap's file header: times in microseconds, packets that begin with the
 * IP header. */
static void put_file_header(void)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, digits, snaplen, link;
	} h = { 0xa1b2c3d4, 2, 4, 0, 0, 262144, 101 };

	put(&h, sizeof(h));
}

static void put_be16(uint8_t *p, size_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static void put_be32(uint8_t *p, uint32_t value)
{
	put_be16(p, value >> 16);
	put_be16(p + 2, value & 0xffff);
}

/* Writes an IP header for @len bytes behind it. Returns its length. */
static size_t fill_ip(const union netif_addr *from, const union netif_addr *to,
		      size_t len, uint8_t *p)
{
	if (from->any.sa_family == AF_INET) {
		p[0] = 0x45;
		put_be16(p + 2, 20 + len);
		p[8] = 64;
		p[9] = IPPROTO_TCP;
		memcpy(p + 12, &from->v4.sin_addr, 4);
		memcpy(p + 16, &to->v4.sin_addr, 4);
		return 20;
	}
	p[0] = 0x60;
	put_be16(p + 4, len);
	p[6] = IPPROTO_TCP;
	p[7] = 64;
	memcpy(p + 8, &from->v6.sin6_addr, 16);
	memcpy(p + 24, &to->v6.sin6_addr, 16);
	return 40;
}

/* Writes all headers. Returns the number of bytes before the payload. */
static size_t fill_headers(const struct capture *c, const struct tape_frame *f,
			   size_t len, uint8_t *p)
{
	const struct tape_conn *conn = &c->tape->conn[f->conn];
	const union netif_addr *from = f->back ? &conn->to : &conn->from;
	const union netif_addr *to = f->back ? &conn->from : &conn->to;
	size_t ip;

	memset(p, 0, HEADERS_MAX);
	ip = fill_ip(from, to, TCP_HEADER + len, p);
	p += ip;
	put_be16(p, sock_port_of(from));
	put_be16(p + 2, sock_port_of(to));
	put_be32(p + 4, 1 + c->sent[f->conn][f->back]);
	put_be32(p + 8, 1 + c->sent[f->conn][!f->back]);
	p[12] = 5 << 4;
	p[13] = 0x18; /* PSH, ACK */
	put_be16(p + 14, 65535);
	return ip + TCP_HEADER;
}

static void spoil(struct capture *c, uint8_t *bytes, size_t len)
{
	if (!c->spoil)
		return;
	for (unsigned int n = 0; n < 3; n++) {
		size_t at = (size_t)rand_r(&c->spoil) % len;

		bytes[at] = (uint8_t)rand_r(&c->spoil);
	}
}

static void put_segment(struct capture *c, const struct tape_frame *f,
			const uint8_t *bytes, size_t len)
{
	static uint8_t packet[HEADERS_MAX + SEGMENT_MAX];
	size_t head = fill_headers(c, f, len, packet);
	const uint32_t record[4] = { c->packets / 1000, c->packets % 1000,
				     (uint32_t)(head + len),
				     (uint32_t)(head + len) };

	memcpy(packet + head, bytes, len);
	spoil(c, packet + head, len);
	put(record, sizeof(record));
	put(packet, head + len);
	c->sent[f->conn][f->back] += (uint32_t)len;
	c->packets++;
}

static void put_bytes(struct capture *c, const struct tape_frame *f,
		      const uint8_t *bytes, size_t len, size_t segment)
{
	for (size_t n; len; bytes += n, len -= n) {
		n = len < segment ? len : segment;
		put_segment(c, f, bytes, n);
	}
}

/* Writes the frames from @i on that follow each other in one direction. Returns
 * the index of the next one. */
static unsigned int put_run(struct capture *c, unsigned int i, size_t segment)
{
	const struct tape_frame *f = &c->tape->frame[i];
	uint8_t *all = NULL;
	size_t len = 0;

	do {
		const struct tape_frame *g = &c->tape->frame[i];

		all = realloc(all, len + g->len);
		if (!all)
			abort();
		memcpy(all + len, g->bytes, g->len);
		len += g->len;
		i++;
	} while (segment && i < c->tape->nframes &&
		 c->tape->frame[i].conn == f->conn &&
		 c->tape->frame[i].back == f->back);
	put_bytes(c, f, all, len, segment ? segment : SEGMENT_MAX);
	free(all);
	return i;
}

static const char *nid_text(const struct ulnet_nid *nid)
{
	static char text[4][LNET_NIDSTR_SIZE];
	static unsigned int next;

	return lnet_nid_format(nid, text[next++ % 4], LNET_NIDSTR_SIZE);
}

static bool print_hello(const struct tape_frame *f)
{
	struct sock_hello h = { 0 };

	if (sock_hello_size(&h, f->bytes) < 0 ||
	    sock_hello_decode(&h, f->bytes, f->len) < 0)
		return false;
	printf("hello %" PRIu32 " %s %s %" PRIu32 " 0x%016" PRIx64 " %" PRIu32
	       "\n",
	       h.version, nid_text(&h.src_nid), nid_text(&h.dst_nid), h.src_pid,
	       h.src_incarnation, (uint32_t)h.type);
	return true;
}

static bool print_request(const struct tape_frame *f)
{
	struct ulnet_nid target;

	if (sock_request_decode(f->bytes, f->len, &target))
		return false;
	printf("request %" PRIu32 " %s\n", load_le32(f->bytes + 4),
	       nid_text(&target));
	return true;
}

static void print_union(const struct lnet_hdr *h)
{
	switch (h->type) {
	case LNET_MSG_PUT:
		printf(" 0x%016" PRIx64 " %" PRIu32 " %" PRIu32 " -",
		       h->match_bits, h->portal, h->offset);
		break;
	case LNET_MSG_GET:
		printf(" 0x%016" PRIx64 " %" PRIu32 " %" PRIu32 " %" PRIu32,
		       h->match_bits, h->portal, h->offset, h->length);
		break;
	case LNET_MSG_ACK:
		printf(" 0x%016" PRIx64 " - - %" PRIu32, h->match_bits,
		       h->length);
		break;
	default:
		printf(" - - - -");
		break;
	}
}

static bool print_message(const struct tape_frame *f, size_t hdr_size)
{
	struct sock_hdr ksm;
	struct lnet_hdr h;

	if (sock_hdr_decode(&ksm, f->bytes, false))
		return false;
	if (ksm.type == SOCK_MSG_NOOP) {
		printf("noop %" PRIu64 " %" PRIu64 "\n", ksm.cookie[0],
		       ksm.cookie[1]);
		return true;
	}
	if (hdr_decode(&h, f->bytes + SOCK_HDR_SIZE, hdr_size))
		return false;
	printf("lnet %" PRIu64 " %" PRIu64 " %s %s %" PRIu32 " %" PRIu32
	       " %" PRIu32,
	       ksm.cookie[0], ksm.cookie[1], nid_text(&h.src_nid),
	       nid_text(&h.dest_nid), h.src_pid, h.type, h.payload_length);
	print_union(&h);
	putchar('\n');
	return true;
}

static int print_fields(const struct tape *t)
{
	size_t hdr_size = LNET_HDR_SIZE;

	for (unsigned int i = 0; i < t->nframes; i++) {
		const struct tape_frame *f = &t->frame[i];
		bool ok = f->kind == TAPE_REQUEST ? print_request(f)
			  : f->kind == TAPE_HELLO ? print_hello(f)
						  : print_message(f, hdr_size);

		if (!ok) {
			fprintf(stderr, "%s.tape:%u: not understood\n", t->name,
				f->line);
			return 1;
		}
		if (f->kind == TAPE_HELLO)
			hdr_size = f->bytes[4] == 4 ? LNET_HDR_LARGE_SIZE
						    : LNET_HDR_SIZE;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct tape tape;
	struct capture c = { .tape = &tape };
	size_t segment;

	if (argc < 3 || !tape_load(&tape, argv[1]))
		return 1;
	if (strcmp(argv[2], "fields") == 0)
		return print_fields(&tape);
	segment = strtoul(argv[2], NULL, 10);
	if (segment > SEGMENT_MAX)
		return 1;
	c.spoil = argc > 3 ? (unsigned int)atoi(argv[3]) : 0;
	put_file_header();
	for (unsigned int i = 0; i < tape.nframes;)
		i = put_run(&c, i, segment);
	tape_free(&tape);
	return fflush(stdout) ? 1 : 0;
}
