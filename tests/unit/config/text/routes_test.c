/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes as one text. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "ulnet/control.h"

/* Parses @text, and puts it together again as "net hops gateway:priority". */
static void good(const char *text, const char *expected)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_route *routes = NULL;
	char all[2048] = "", net[LNET_NIDSTR_SIZE], nid[LNET_NIDSTR_SIZE];
	unsigned int n = 7;

	cr_assert_eq(lnet_routes_parse(text, &routes, &n, &err), 0, "%s: %s",
		     text, err.what);
	for (unsigned int i = 0; i < n; i++)
		sprintf(all + strlen(all), "%s%s %u %s:%u", i ? "; " : "",
			lnet_net_format(routes[i].net, net, sizeof(net)),
			routes[i].hops,
			lnet_nid_format(&routes[i].gateway, nid, sizeof(nid)),
			routes[i].priority);
	cr_assert_str_eq(all, expected);
	free(routes);
}

static void bad(const char *text, size_t offset, const char *what)
{
	struct ulnet_text_error err = { 999, "" };
	struct ulnet_route *routes = NULL;
	unsigned int n = 7;

	cr_assert_eq(lnet_routes_parse(text, &routes, &n, &err), -EINVAL, "%s",
		     text);
	cr_assert(strstr(err.what, what), "%s: %s", text, err.what);
	cr_assert_eq(err.offset, offset, "%s: %zu: %s", text, err.offset,
		     err.what);
	cr_assert_null(routes);
	cr_assert_eq(n, 7);
	cr_assert_eq(lnet_routes_parse(text, &routes, &n, NULL), -EINVAL);
}

Test(route_text, good)
{
	good("", "");
	good(" ;;\n # nothing", "");
	good("tcp1 10.0.0.1@tcp", "tcp1 0 10.0.0.1@tcp:0");
	good("tcp1 10.0.0.1", "tcp1 0 10.0.0.1@tcp:0");
	good("tcp1 3 10.0.0.1@tcp:7", "tcp1 3 10.0.0.1@tcp:7");
	good("tcp1 255 10.0.0.1:7", "tcp1 255 10.0.0.1@tcp:7");
	good("tcp1 10.0.0.[1-2]@tcp 10.0.0.9@tcp",
	     "tcp1 0 10.0.0.1@tcp:0; tcp1 0 10.0.0.2@tcp:0; "
	     "tcp1 0 10.0.0.9@tcp:0");
	good("tcp[1-5/2] 2 10.0.0.1@tcp",
	     "tcp1 2 10.0.0.1@tcp:0; tcp3 2 10.0.0.1@tcp:0; "
	     "tcp5 2 10.0.0.1@tcp:0");
	good("[tcp,o2ib]4 10.0.0.[1,7-8]@tcp:[2]",
	     "tcp4 0 10.0.0.1@tcp:2; o2ib4 0 10.0.0.1@tcp:2; "
	     "tcp4 0 10.0.0.7@tcp:2; o2ib4 0 10.0.0.7@tcp:2; "
	     "tcp4 0 10.0.0.8@tcp:2; o2ib4 0 10.0.0.8@tcp:2");
	good("tcp1 tcp2 10.0.0.1@tcp",
	     "tcp1 0 10.0.0.1@tcp:0; tcp2 0 10.0.0.1@tcp:0");
	good("tcp1 10.0.0.1@tcp; tcp2 4 10.0.0.1@tcp # the same\ntcp3 "
	     "10.0.0.2@tcp;",
	     "tcp1 0 10.0.0.1@tcp:0; tcp2 4 10.0.0.1@tcp:0; "
	     "tcp3 0 10.0.0.2@tcp:0");
	good("tcp1 fd00::1@tcp:3", "tcp1 0 fd00::1@tcp:3");
	good("o2ib 1 10.0.0.[1-1]@tcp", "o2ib 1 10.0.0.1@tcp:0");
}

Test(route_text, bad)
{
	bad("tcp1", 4, "a gateway is expected");
	bad("tcp1;", 4, "a gateway is expected");
	bad("tcp1 tcp2\n", 9, "a gateway is expected");
	bad("tcp1 3", 6, "a gateway is expected");
	bad("tpc 10.0.0.1@tcp", 0, "no such net: tpc");
	bad("tcp tpc 10.0.0.1@tcp", 4, "no such net: tpc");
	bad("3 10.0.0.1@tcp", 0, "no such net: 3");
	bad("lo 10.0.0.1@tcp", 0, "net lo");
	bad("10.0.0.1@tcp", 0, "no such net");
	bad("tcp1 0 10.0.0.1@tcp", 5, "0 hops: not in 1..255");
	bad("tcp1 256 10.0.0.1@tcp", 5, "256 hops: not in 1..255");
	bad("tcp1 99999999999999999999999 10.0.0.1@tcp", 5, "hops: not in");
	bad("tcp1 -1 10.0.0.1@tcp", 5, "not the NID of a gateway: '-1'");
	bad("tcp1 2 3 10.0.0.1@tcp", 7, "not the NID of a gateway: '3'");
	bad("tcp1 2 tcp3 10.0.0.1@tcp", 7, "not the NID of a gateway: 'tcp3'");
	bad("tcp1 10.0.0.1@tcp tcp3", 18, "not the NID of a gateway: 'tcp3'");
	bad("tcp1 10.0.0.1@tpc", 5, "not the NID of a gateway");
	bad("tcp1 0@lo", 5, "not the NID of a gateway");
	bad("tcp1 gw@tcp", 5, "not the NID of a gateway: 'gw@tcp'");
	bad("tcp1 10.0.0.1@tcp:", 5, "priority ''");
	bad("tcp1 10.0.0.1@tcp:-1", 5, "priority '-1'");
	bad("tcp1 10.0.0.1@tcp:2147483648", 5, "not in 0..2147483647");
	bad("tcp1 10.0.0.1@tcp:1x", 5, "priority '1x'");
	bad("tcp1 10.0.0.[3-1]@tcp", 13, "low end");
	bad("tcp1 10.0.0.[1-3/0]@tcp", 13, "steps of 1");
	bad("tcp1 10.0.0.[]@tcp", 13, "a range or a word");
	bad("tcp1 10.0.0.[1,]@tcp", 15, "a range or a word");
	bad("tcp1 10.0.0.[1", 12, "']' is missing");
	bad("tcp1 10.0.0.[1 ,2]@tcp", 12, "']' is missing");
	bad("tcp1 10.0.0.1]@tcp", 13, "']' without");
	bad("tcp1 10.0.0.[[1]]@tcp", 13, "brackets in brackets");
	bad("tcp1 10.0.0.[1-300]@tcp", 5, "gateway: '10.0.0.256@tcp'");
	bad("tcp1 10.0.0.1; tcp2,tcp1 10.0.0.1", 15, "no such net: tcp2,tcp1");
}

/* Of routes that come twice the first counts. */
Test(route_text, twice)
{
	good("tcp1 10.0.0.[1,1]@tcp", "tcp1 0 10.0.0.1@tcp:0");
	good("tcp1 10.0.0.1@tcp:3;\ntcp1 2 10.0.0.[1-2]@tcp",
	     "tcp1 0 10.0.0.1@tcp:3; tcp1 2 10.0.0.2@tcp:0");
	good("[tcp1,tcp1] 10.0.0.1@tcp", "tcp1 0 10.0.0.1@tcp:0");
}

Test(route_text, comments)
{
	good("tcp1 10.0.0.1@tcp # a; tcp2 10.0.0.2@tcp",
	     "tcp1 0 10.0.0.1@tcp:0; tcp2 0 10.0.0.2@tcp:0");
	good("# a; tcp2 10.0.0.2@tcp", "tcp2 0 10.0.0.2@tcp:0");
	good("tcp1 10.0.0.1@tcp; \\\n tcp2 \\\n10.0.0.2@tcp",
	     "tcp1 0 10.0.0.1@tcp:0; tcp2 0 10.0.0.2@tcp:0");
	bad("tcp1 10.0.0.1@tcp # a; or b", 27, "a gateway is expected");
}

/* Nets that only other hosts know are passed over, but not misspelt ones. */
Test(route_text, foreign_nets)
{
	good("tcp 1022@elan; elan 10.0.0.1@tcp", "");
	good("[tcp1,elan1] 2 10.0.0.1@tcp [8-14/2]@elan",
	     "tcp1 2 10.0.0.1@tcp:0");
	good("tcp1 10.0.0.1@vib0:2 10.0.0.2@tcp", "tcp1 0 10.0.0.2@tcp:0");
	bad("elan", 4, "a gateway is expected");
	bad("elan 10.0.0.1@tcp:x", 5, "priority 'x'");
	bad("elan 10.0.0.300@tcp", 5, "not the NID");
	bad("elan 10.0.0.1@tpc", 5, "not the NID");
}

/* A short text that stands for very many routes is refused quickly. */
Test(route_text, too_many)
{
	char text[4096] = "tcp ";

	bad("tcp[1-60000] 10.0.0.1@tcp", 0, "more than 4096 nets");
	bad("tcp[1-64] 10.0.[0-255].[1-255]@tcp", 10, "more than 4096 routes");
	bad("tcp[1-4294967295][1-4294967295] 10.0.0.1@tcp", 0, "more than");
	bad("tcp[1-65536/65535][1-4294967295] 10.0.0.1@tcp", 0, "more than");
	bad("tcp 10.0.0.[1-4294967295/4294967295]@tcp "
	    "10.0.0.[2-4294967295]@tcp",
	    41, "'10.0.0.256@tcp'");
	for (int i = 0; i < 1000; i++)
		strcat(text, "[1]");
	bad(text, 4, "longer than 127 bytes");
	memset(text + 4, '1', 3000);
	bad(text, 4, "hops");
	memset(text + 4, 'a', 3000);
	bad(text, 4, "longer than 127 bytes");
}
