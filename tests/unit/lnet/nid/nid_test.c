/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NIDs, nets, process ids: values, wire bytes, text both ways.
 */
#include "ulnet/nid.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"

static struct ulnet_nid nid_of(const char *text)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(text, &nid), 0, "%s", text);
	return nid;
}

static void check_bytes(const char *text, const uint8_t *bytes)
{
	struct ulnet_nid nid = nid_of(text);

	cr_assert_eq(memcmp(&nid, bytes, sizeof(nid)), 0, "%s", text);
}

Test(nid, wire_bytes)
{
	static const uint8_t tcp[20] = { 0, 2, 0, 0, 0x0a, 0x4d, 0x00, 0x29 };
	static const uint8_t tcp3[20] = { 0, 2, 0, 3, 0x0a, 0x4d, 0x02, 0x29 };
	static const uint8_t tcp6[20] = {
		0x0c, 2, 0, 0, 0xfd, 0x77, [19] = 0x02
	};

	cr_assert_eq(sizeof(struct ulnet_nid), 20);
	check_bytes("10.77.0.41@tcp", tcp);
	check_bytes("10.77.0.41@tcp0", tcp);
	check_bytes("10.77.0.41", tcp);
	check_bytes("10.77.2.41@tcp3", tcp3);
	check_bytes("fd77::2@tcp", tcp6);
	check_bytes("fd77:0::0:0002", tcp6);
}

Test(nid, nid4)
{
	struct ulnet_nid tcp = nid_of("10.77.0.41@tcp");
	struct ulnet_nid tcp3 = nid_of("10.77.2.41@tcp3");
	struct ulnet_nid v6 = nid_of("fd77::2@tcp");
	struct ulnet_nid any = LNET_NID_ANY;
	struct ulnet_nid lo = LNET_NID_LO;
	struct ulnet_nid got;

	cr_assert_eq(lnet_nid_to_nid4(&tcp), UINT64_C(0x000200000a4d0029));
	cr_assert_eq(lnet_nid_to_nid4(&tcp3), UINT64_C(0x000200030a4d0229));
	cr_assert_eq(lnet_nid_to_nid4(&lo), UINT64_C(0x0009000000000000));
	cr_assert_eq(lnet_nid_to_nid4(&any), UINT64_MAX);
	cr_assert_eq(lnet_nid_to_nid4(&v6), 0);
	got = lnet_nid_from_nid4(UINT64_C(0x000200030a4d0229));
	cr_assert(lnet_nid_eq(&got, &tcp3));
	got = lnet_nid_from_nid4(UINT64_MAX);
	cr_assert(lnet_nid_eq(&got, &any));
	/* a type above 8 bits is not cut to another one */
	got = lnet_nid_from_nid4(UINT64_C(0x010200000a4d0029));
	cr_assert(lnet_nid_eq(&got, &any));
}

Test(nid, predicates)
{
	struct ulnet_nid tcp3 = nid_of("10.77.2.41@tcp3");
	struct ulnet_nid v6 = nid_of("fd77::2@tcp");
	struct ulnet_nid lo = nid_of("0@lo");
	struct ulnet_nid any = nid_of("<?>");

	cr_assert(lnet_nid_is_lo(&lo) && lnet_nid_eq(&lo, &LNET_NID_LO));
	cr_assert(lnet_nid_is_any(&any) && lnet_nid_eq(&any, &LNET_NID_ANY));
	cr_assert(lnet_nid_is_nid4(&tcp3) && !lnet_nid_is_nid4(&v6));
	cr_assert_eq(lnet_nid_net(&tcp3), LNET_NET(LNET_TYPE_SOCK, 3));
	cr_assert_eq(lnet_nid_net(&any), LNET_NET_ANY);
}

Test(nid, order)
{
	static const char *const sorted[] = {
		"9.255.255.255@tcp", "10.0.0.1@tcp",
		"10.0.0.2@tcp",	     "10.0.0.1@tcp1",
		"10.0.0.1@tcp256",   "10.0.0.1@o2ib",
		"::1@tcp",	     "<?>",
	};
	struct ulnet_nid a;
	struct ulnet_nid b;
	size_t i;

	for (i = 1; i < ARRAY_SIZE(sorted); i++) {
		a = nid_of(sorted[i - 1]);
		b = nid_of(sorted[i]);
		cr_assert_lt(lnet_nid_cmp(&a, &b), 0, "%s", sorted[i]);
		cr_assert_gt(lnet_nid_cmp(&b, &a), 0, "%s", sorted[i]);
		cr_assert_eq(lnet_nid_cmp(&a, &a), 0, "%s", sorted[i]);
	}
}

Test(nid, make)
{
	struct ulnet_nid want = nid_of("10.0.0.1@o2ib7");
	struct ulnet_nid got;

	got = lnet_nid_make(LNET_NET(LNET_TYPE_O2IB, 7), 0x0a000001);
	cr_assert(lnet_nid_eq(&got, &want));
	got = lnet_nid_make(LNET_NET_ANY, 1);
	cr_assert(lnet_nid_eq(&got, &LNET_NID_ANY));
	got = lnet_nid_make(LNET_NET(0xff, 0), 1);
	cr_assert(lnet_nid_eq(&got, &LNET_NID_ANY));
}

Test(nid, net_text)
{
	static const struct {
		const char *in;
		uint32_t net;
		const char *out;
	} good[] = {
		{ "tcp", LNET_NET(2, 0), "tcp" },
		{ "tcp0", LNET_NET(2, 0), "tcp" },
		{ "tcp3", LNET_NET(2, 3), "tcp3" },
		{ "tcp65535", LNET_NET(2, 65535), "tcp65535" },
		{ "o2ib", LNET_NET(5, 0), "o2ib" },
		{ "o2ib12", LNET_NET(5, 12), "o2ib12" },
		{ "lo", LNET_NET(9, 0), "lo" },
		{ "gni1", LNET_NET(13, 1), "gni1" },
		{ "gip1", LNET_NET(14, 1), "gip1" },
		{ "ptlf", LNET_NET(15, 0), "ptlf" },
		{ "kfi2", LNET_NET(16, 2), "kfi2" },
		{ "efa", LNET_NET(18, 0), "efa" },
		{ "bxi3f", LNET_NET(19, 0), "bxi3f" },
		{ "bxi3f3", LNET_NET(19, 3), "bxi3f3" },
		{ "shm9", LNET_NET(64, 9), "shm9" },
		{ "<17:0>", LNET_NET(17, 0), "<17:0>" },
		{ "<2:3>", LNET_NET(2, 3), "tcp3" },
		{ "<9:1>", LNET_NET(9, 1), "<9:1>" },
		{ "<65535:65535>", LNET_NET_ANY, "<65535:65535>" },
	};
	char buf[LNET_NIDSTR_SIZE];
	uint32_t net;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		cr_assert_eq(lnet_net_parse(good[i].in, &net), 0, "%s",
			     good[i].in);
		cr_assert_eq(net, good[i].net, "%s", good[i].in);
		cr_assert_str_eq(lnet_net_format(net, buf, sizeof(buf)),
				 good[i].out);
	}
}

Test(nid, net_text_bad)
{
	static const char *const bad[] = {
		"",
		" ",
		"tc",
		"TCP",
		"tcp ",
		" tcp",
		"tcp 3",
		"tcp-1",
		"tcp+1",
		"tcp65536",
		"tcp0x3",
		"tcp3a",
		"tcp03",
		"tcp00",
		"lo0",
		"lo1",
		"ib",
		"3",
		"tcp4294967296",
		"o2ib-",
		"bxi3",
		"<",
		"<17",
		"<17>",
		"<17:",
		"<17:0",
		"<:0>",
		"<17:>",
		"<17:0> ",
		"<65536:0>",
		"<0:65536>",
		"<017:0>",
		"*",
		"<?>",
		"tcp\x80",
		"tcp99999999999999999999999999999999999999",
		"<-1:0>",
	};
	uint32_t net = 77;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_eq(lnet_net_parse(bad[i], &net), -EINVAL, "%s",
			     bad[i]);
	cr_assert_eq(net, 77);
}

Test(nid, text)
{
	static const struct {
		const char *in;
		const char *out;
	} good[] = {
		{ "10.0.0.1@tcp", "10.0.0.1@tcp" },
		{ "10.0.0.1", "10.0.0.1@tcp" },
		{ "0.0.0.0@o2ib3", "0.0.0.0@o2ib3" },
		{ "255.255.255.254@tcp", "255.255.255.254@tcp" },
		{ "2001:DB8:0:0:0:0:0:1@tcp3", "2001:db8::1@tcp3" },
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1@tcp" },
		{ "::@o2ib", "::@o2ib" },
		{ "::ffff:10.0.0.1@tcp", "::ffff:10.0.0.1@tcp" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff@tcp",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff@tcp" },
		{ "10.0.0.1@gip", "10.0.0.1@gip" },
		{ "10.0.0.1@efa2", "10.0.0.1@efa2" },
		{ "5@kfi", "5@kfi" },
		{ "0x1F@kfi1", "31@kfi1" },
		{ "4294967295@gni", "4294967295@gni" },
		{ "0xffffffff@ptlf", "4294967295@ptlf" },
		{ "7@shm", "7@shm" },
		{ "1@bxi3f", "1@bxi3f" },
		{ "0@lo", "0@lo" },
		{ "<?>", "<?>" },
		{ "5@<17:0>", "5@<17:0>" },
		{ "A4D0029:1@<200:3>", "a4d0029:1@<200:3>" },
		{ "1:2:3:ffffffff@<1:65535>", "1:2:3:ffffffff@<1:65535>" },
		{ "5@<16:3>", "5@kfi3" },
		{ "5:6@<2:0>", "5:6@<2:0>" },
		{ "a000001@<2:0>", "10.0.0.1@tcp" },
	};
	char buf[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		nid = nid_of(good[i].in);
		cr_assert_str_eq(lnet_nid_format(&nid, buf, sizeof(buf)),
				 good[i].out);
	}
}

Test(nid, text_bad)
{
	static const char *const bad[] = {
		"",
		"@",
		"@tcp",
		"*",
		"*@tcp",
		"10.0.0.1@",
		"10.0.0.1@lo",
		"10.0.0.1@kfi",
		"10.0.0.1@tcp@tcp",
		"10.0.0.1@@tcp",
		" 10.0.0.1@tcp",
		"10.0.0.1 @tcp",
		"10.0.0.1@ tcp",
		"10.0.0.1@tcp ",
		"10.0.0.1@tcp\n",
		"10.0.0@tcp",
		"10.0.0.1.2@tcp",
		"10.0.0.256@tcp",
		"10.0.0.01@tcp",
		"010.0.0.1@tcp",
		"0x0a000001@tcp",
		"167772161@tcp",
		"10.0.0.*@tcp",
		"10.0.0.[1-3]@tcp",
		"255.255.255.255@tcp",
		"255.255.255.255",
		"255.255.255.255@o2ib3",
		"ffffffff@<2:0>",
		"fd77::2@kfi",
		"fd77::2@gni",
		"fd77::2%eth0@tcp",
		"fd77:::2@tcp",
		"[fd77::2]@tcp",
		"fd77::2/64@tcp",
		"1@lo0",
		"0@lo1",
		"-1@kfi",
		"+1@kfi",
		"01@kfi",
		"0x@kfi",
		"0x100000000@kfi",
		"4294967296@kfi",
		"18446744073709551616@kfi",
		"1 @kfi",
		"5@<255:0>",
		"5@<256:0>",
		"5@<65535:65535>",
		"0x5@<17:0>",
		"5:@<17:0>",
		":5@<17:0>",
		"1:2:3:4:5@<17:0>",
		"100000000@<17:0>",
		"g@<17:0>",
		"host@tcp",
		"<?>@tcp",
		"<?> ",
		"10.0.0.1\x01@tcp",
		"\xff\xfe@tcp",
	};
	struct ulnet_nid before = LNET_NID_LO;
	struct ulnet_nid nid = before;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_eq(lnet_nid_parse(bad[i], &nid), -EINVAL, "%s",
			     bad[i]);
	cr_assert(lnet_nid_eq(&nid, &before));
}

Test(nid, id_text)
{
	static const struct {
		const char *text;
		uint32_t pid;
	} good[] = {
		{ "12345-10.0.0.1@tcp", LNET_PID_LUSTRE },
		{ "0-0@lo", 0 },
		{ "2147483647-fd77::2@tcp3", 0x7fffffff },
		{ "U1-10.0.0.1@tcp", LNET_PID_USERFLAG | 1 },
		{ "U2147483646-5@kfi", 0xfffffffe },
		{ "LNET_PID_ANY-10.0.0.1@tcp", LNET_PID_ANY },
		{ "LNET_PID_ANY-<?>", LNET_PID_ANY },
	};
	char buf[LNET_NIDSTR_SIZE];
	struct ulnet_id id;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		cr_assert_eq(lnet_id_parse(good[i].text, &id), 0, "%s",
			     good[i].text);
		cr_assert_eq(id.pid, good[i].pid, "%s", good[i].text);
		cr_assert_str_eq(lnet_id_format(&id, buf, sizeof(buf)),
				 good[i].text);
	}
}

Test(nid, id_text_bad)
{
	static const char *const bad[] = {
		"",
		"-",
		"12345",
		"12345-",
		"10.0.0.1@tcp",
		"-10.0.0.1@tcp",
		"U-10.0.0.1@tcp",
		"u1-10.0.0.1@tcp",
		"UU1-10.0.0.1@tcp",
		" 1-10.0.0.1@tcp",
		"1 -10.0.0.1@tcp",
		"1- 10.0.0.1@tcp",
		"1--10.0.0.1@tcp",
		"01-10.0.0.1@tcp",
		"0x1-10.0.0.1@tcp",
		"2147483648-10.0.0.1@tcp",
		"U2147483647-10.0.0.1@tcp",
		"99999999999999999999-10.0.0.1@tcp",
		"LNET_PID_ANY10.0.0.1@tcp",
		"*-10.0.0.1@tcp",
		"1-*@tcp",
	};
	struct ulnet_id id = { .nid = LNET_NID_LO, .pid = 9 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_eq(lnet_id_parse(bad[i], &id), -EINVAL, "%s", bad[i]);
	cr_assert(id.pid == 9 && lnet_nid_eq(&id.nid, &LNET_NID_LO));
}

Test(nid, longest_text_fits)
{
	struct ulnet_id id = { .pid = LNET_PID_ANY };
	char small[LNET_NIDSTR_SIZE];
	char big[256];

	id.nid = nid_of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe@o2ib65535");
	cr_assert_str_eq(lnet_id_format(&id, small, sizeof(small)),
			 lnet_id_format(&id, big, sizeof(big)));
	id.nid = nid_of("ffffffff:ffffffff:ffffffff:ffffffff@<254:65535>");
	cr_assert_str_eq(lnet_id_format(&id, small, sizeof(small)),
			 lnet_id_format(&id, big, sizeof(big)));
}

Test(nid, small_buffers)
{
	struct ulnet_nid nid = nid_of("10.0.0.1@tcp3");
	char buf[LNET_NIDSTR_SIZE];
	size_t size;

	for (size = 1; size < sizeof("10.0.0.1@tcp3"); size++) {
		memset(buf, 'x', sizeof(buf));
		lnet_nid_format(&nid, buf, size);
		cr_assert_eq(strlen(buf), size - 1);
		cr_assert_eq(strncmp(buf, "10.0.0.1@tcp3", size - 1), 0);
		cr_assert_eq(buf[size], 'x');
	}
	buf[0] = 'x';
	cr_assert_eq(lnet_nid_format(&nid, buf, 0), buf);
	cr_assert_eq(buf[0], 'x');
}

Test(nid, any_bytes_print)
{
	char buf[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid;
	unsigned int size;

	memset(&nid, 0xfe, sizeof(nid));
	for (size = 0; size < 256; size++) {
		nid.size = (uint8_t)size;
		lnet_nid_format(&nid, buf, sizeof(buf));
		cr_assert_lt(strlen(buf), sizeof(buf) - 1);
	}
}

Test(nid, very_long_texts)
{
	static char text[100000];
	struct ulnet_nid nid;
	struct ulnet_id id;
	uint32_t net;
	size_t i;

	for (i = 0; i < 5; i++) {
		memset(text, "1:.@U"[i], sizeof(text) - 1);
		cr_assert_eq(lnet_nid_parse(text, &nid), -EINVAL);
		cr_assert_eq(lnet_id_parse(text, &id), -EINVAL);
		cr_assert_eq(lnet_net_parse(text, &net), -EINVAL);
		memcpy(text + sizeof(text) - 5, "@kfi", 4);
		cr_assert_eq(lnet_nid_parse(text, &nid), -EINVAL);
	}
}

static struct ulnet_nid random_nid(unsigned int *seed)
{
	static const uint8_t sizes[] = { 0, 0, 0, 4, 8, 12, 12 };
	struct ulnet_nid nid = { 0 };
	size_t len;
	size_t i;

	nid.size = sizes[(size_t)rand_r(seed) % ARRAY_SIZE(sizes)];
	nid.type = (uint8_t)(rand_r(seed) % (rand_r(seed) % 2 ? 20 : 255));
	nid.num[0] = (uint8_t)(rand_r(seed) % 2 ? 0 : rand_r(seed));
	nid.num[1] = (uint8_t)(rand_r(seed) % 2 ? 0 : rand_r(seed));
	len = (size_t)nid.size + 4;
	for (i = 0; i < len; i++)
		nid.addr[i] = (uint8_t)(rand_r(seed) % 3 ? 0 : rand_r(seed));
	return nid;
}

Test(nid, random_round_trip)
{
	unsigned int seed = 20240229;
	char buf[LNET_NIDSTR_SIZE];
	char again[LNET_NIDSTR_SIZE];
	struct ulnet_id id;
	struct ulnet_id got;
	int i;

	for (i = 0; i < 100000; i++) {
		id.nid = random_nid(&seed);
		id.pid = (uint32_t)rand_r(&seed) << (i % 2);
		lnet_id_format(&id, buf, sizeof(buf));
		cr_assert_eq(lnet_id_parse(buf, &got), 0, "%s", buf);
		cr_assert(got.pid == id.pid && lnet_nid_eq(&got.nid, &id.nid),
			  "%s", buf);
		cr_assert_str_eq(lnet_id_format(&got, again, sizeof(again)),
				 buf);
	}
}
