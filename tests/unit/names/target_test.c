/* SPDX-License-Identifier: BSD-3-Clause */
/* The texts of targets: what they say, and what is wrong with those that are
 * none. */
#include "names/target.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void is_nids(const char *text, unsigned int n, uint32_t pid,
		    const char *last)
{
	struct ulnet_target target;
	struct ulnet_text_error err;
	struct ulnet_nid nid;

	cr_assert_eq(lnet_target_parse(text, &target, &err), 0, "%s: %s", text,
		     err.what);
	cr_assert(!target.is_name, "%s", text);
	cr_assert_eq(target.nnids, n, "%s: %u", text, target.nnids);
	cr_assert_eq(target.pid, pid, "%s: %u", text, target.pid);
	cr_assert_eq(lnet_nid_parse(last, &nid), 0);
	cr_assert(lnet_nid_eq(&target.nids[n - 1], &nid), "%s", text);
}

Test(target, nids)
{
	char many[16 * 20] = "10.0.0.1@tcp";

	is_nids("10.0.0.1@tcp", 1, LNET_PID_LUSTRE, "10.0.0.1@tcp");
	is_nids("10.0.0.1", 1, LNET_PID_LUSTRE, "10.0.0.1@tcp");
	is_nids("fd00::1", 1, LNET_PID_LUSTRE, "fd00::1@tcp");
	is_nids("fd00::1@tcp1", 1, LNET_PID_LUSTRE, "fd00::1@tcp1");
	is_nids("0@lo", 1, LNET_PID_LUSTRE, "0@lo");
	is_nids("7-10.0.0.1@tcp", 1, 7, "10.0.0.1@tcp");
	is_nids("10.0.0.1@tcp,10.0.1.1@tcp1", 2, LNET_PID_LUSTRE,
		"10.0.1.1@tcp1");
	is_nids("7-10.0.0.1@tcp,7-10.1.0.1@o2ib", 2, 7, "10.1.0.1@o2ib");
	for (int i = 2; i <= LNET_TARGET_NIDS; i++)
		sprintf(many + strlen(many), ",10.0.0.%d@tcp", i);
	is_nids(many, LNET_TARGET_NIDS, LNET_PID_LUSTRE, "10.0.0.16@tcp");
}

static void is_name(const char *text, const char *scheme, const char *what,
		    unsigned int port, uint32_t net)
{
	struct ulnet_target target;
	struct ulnet_text_error err;
	struct name_text name;

	cr_assert_eq(target_parse(text, &target, &name, &err), 0, "%s: %s",
		     text, err.what);
	cr_assert(target.is_name, "%s", text);
	cr_assert_eq(target.nnids, 0, "%s", text);
	cr_assert_str_eq(name.scheme, scheme, "%s", text);
	cr_assert_str_eq(name.what, what, "%s", text);
	cr_assert_eq(name.port, port, "%s: %u", text, name.port);
	cr_assert_eq(name.net, net, "%s: %x", text, name.net);
}

Test(target, names)
{
	const uint32_t tcp1 = LNET_NET(LNET_TYPE_SOCK, 1);
	const uint32_t o2ib = LNET_NET(LNET_TYPE_O2IB, 0);
	char longest[NAME_HOST_MAX + 1];

	memset(longest, 'a', NAME_HOST_MAX);
	longest[NAME_HOST_MAX] = '\0';
	is_name("host", "host", "host", 0, LNET_NET_ANY);
	is_name("a.b-c_d.example.", "host", "a.b-c_d.example.", 0,
		LNET_NET_ANY);
	is_name("7host", "host", "7host", 0, LNET_NET_ANY);
	is_name(longest, "host", longest, 0, LNET_NET_ANY);
	is_name("host:7000", "host", "host", 7000, LNET_NET_ANY);
	is_name("host:65535@tcp1", "host", "host", 65535, tcp1);
	is_name("host@o2ib", "host", "host", 0, o2ib);
	is_name("10.0.0.1:7000", "host", "10.0.0.1", 7000, LNET_NET_ANY);
	is_name("[fd00::1]", "host", "fd00::1", 0, LNET_NET_ANY);
	is_name("[fd00::1]:7000@tcp1", "host", "fd00::1", 7000, tcp1);
	is_name("dns:///host", "dns", "host", 0, LNET_NET_ANY);
	is_name("dns:///host:7000@tcp1", "dns", "host", 7000, tcp1);
	is_name("srv:///_rpc._tcp.example", "srv", "_rpc._tcp.example", 0,
		LNET_NET_ANY);
	is_name("srv:///_rpc._tcp.example@tcp1", "srv", "_rpc._tcp.example", 0,
		tcp1);
	is_name("file:///etc/list", "file", "/etc/list", 0, LNET_NET_ANY);
	is_name("etcd://h:1/a,b@c", "etcd", "h:1/a,b@c", 0, LNET_NET_ANY);
}

/* Compares what target_next() says of each server: "host port net;..." */
static void list_is(const char *list, const char *servers)
{
	char one[NAME_WHAT_SIZE + 64], net[LNET_NIDSTR_SIZE];
	struct ulnet_text_error err;
	struct name_text name;
	const char *next;

	is_name(list, "list", list, 0, LNET_NET_ANY);
	for (next = list; next; servers += strlen(one)) {
		cr_assert_eq(target_next(&next, &name, &err), 0, "%s", list);
		cr_assert_str_eq(name.scheme, "host");
		snprintf(one, sizeof(one), "%s %u %s;", name.what, name.port,
			 name.net == LNET_NET_ANY
				 ? "-"
				 : lnet_net_format(name.net, net, sizeof(net)));
		cr_assert_eq(strncmp(servers, one, strlen(one)), 0,
			     "%s: %s: %s", list, servers, one);
	}
	cr_assert_str_eq(servers, "", "%s", list);
}

Test(target, lists)
{
	char many[NAME_WHAT_SIZE] = "a";

	list_is("a,b:988,10.0.0.1@tcp", "a 0 -;b 988 -;10.0.0.1 0 tcp;");
	list_is("10.0.0.1@tcp,host", "10.0.0.1 0 tcp;host 0 -;");
	list_is("10.0.0.1,10.0.0.2:7000", "10.0.0.1 0 -;10.0.0.2 7000 -;");
	list_is("fd00::1@tcp1,[fd00::2]:7000@tcp1,x@o2ib",
		"fd00::1 0 tcp1;fd00::2 7000 tcp1;x 0 o2ib;");
	list_is("[fd00::2],a", "fd00::2 0 -;a 0 -;");
	while (strlen(many) < NAME_WHAT_SIZE - 2)
		strcat(many, ",a");
	cr_assert_eq(strlen(many), NAME_WHAT_SIZE - 1);
	is_name(many, "list", many, 0, LNET_NET_ANY);
}

static void is_wrong(const char *text, size_t offset, const char *what)
{
	struct ulnet_target target = { .pid = 99 };
	struct ulnet_text_error err;

	cr_assert_eq(lnet_target_parse(text, &target, &err), -EINVAL, "%s",
		     text);
	cr_assert_eq(target.pid, 99, "%s", text);
	cr_assert_str_eq(err.what, what, "%s: %s", text, err.what);
	cr_assert_eq(err.offset, offset, "%s: at %zu", text, err.offset);
	cr_assert_eq(lnet_target_parse(text, &target, NULL), -EINVAL);
}

#define NO_HOST "a NID, or the name of a host, is expected"

Test(target, what_is_wrong)
{
	char long_host[NAME_HOST_MAX + 2], many[17 * 20] = "10.0.0.1@tcp";
	char long_list[NAME_WHAT_SIZE + 1];

	memset(long_host, 'a', NAME_HOST_MAX + 1);
	long_host[NAME_HOST_MAX + 1] = '\0';
	for (int i = 2; i <= LNET_TARGET_NIDS + 1; i++)
		sprintf(many + strlen(many), ",10.0.0.%d@tcp", i);
	is_wrong("", 0, "a NID, or the name of a host, is expected");
	is_wrong(" host", 0, "a NID, or the name of a host, is expected");
	is_wrong("*@tcp", 0, "a NID, or the name of a host, is expected");
	is_wrong("host ", 4, "':' and a port, or '@' and a net, is expected");
	is_wrong("ho/st", 2, "':' and a port, or '@' and a net, is expected");
	is_wrong("a..b", 0, "no name of a host");
	is_wrong("-a", 0, "no name of a host");
	is_wrong(".a", 0, "no name of a host");
	is_wrong(long_host, 0, "a name of more than 253 bytes");
	is_wrong("10.0.0.300", 0, "no IPv4 address");
	is_wrong("10.0.0", 0, "no IPv4 address");
	is_wrong("12", 0, "no IPv4 address");
	is_wrong("10.0.0.1@", 9, "no net");
	is_wrong("10.0.0.1@nonet", 9, "no net");
	is_wrong("host@kfi", 5, "a net whose NIDs are not addresses of IP");
	is_wrong("host:", 5, "a number was expected");
	is_wrong("host:0", 5, "number is not within 1..65535");
	is_wrong("host:65536", 5, "number is not within 1..65535");
	is_wrong("host:70x", 7,
		 "':' and a port, or '@' and a net, is expected");
	is_wrong("[fd00::1", 0, "']' is missing");
	is_wrong("[host]", 1, "no IPv6 address");
	is_wrong("[10.0.0.1]", 1, "no IPv6 address");
	is_wrong("10.0.0.1@tcp,", 13, NO_HOST);
	is_wrong("a,b,", 4, NO_HOST);
	is_wrong(",a", 0, NO_HOST);
	is_wrong("a, b", 2, NO_HOST);
	is_wrong("a,b:x", 4, "a number was expected");
	is_wrong("a,b@nonet", 4, "no net");
	is_wrong("a,0@lo", 2, "a net whose NIDs are not addresses of IP");
	is_wrong("a,7-10.0.0.1@tcp", 2,
		 "a process id is for the NIDs of one server");
	is_wrong("a,10.0.0.300", 2, "no IPv4 address");
	memset(long_list, 'a', NAME_WHAT_SIZE);
	for (int i = 100; i < NAME_WHAT_SIZE; i += 100)
		long_list[i] = ',';
	long_list[NAME_WHAT_SIZE] = '\0';
	is_wrong(long_list, 0, "more than 1023 bytes");
	is_wrong("10.0.0.1@tcp,10.0.0.1@tcp", 13, "this NID comes twice");
	is_wrong("7-10.0.0.1@tcp,10.0.0.2@tcp", 15,
		 "another pid: these are NIDs of one server");
	is_wrong(many, strrchr(many, ',') + 1 - many, "more than 16 NIDs");
	is_wrong("://x", 0, "no scheme: dns, srv or file, for example");
	is_wrong("host://x", 0, "this needs no scheme");
	is_wrong("list://x", 0, "this needs no scheme");
	is_wrong("DNS:///x", 0, "no scheme: dns, srv or file, for example");
	is_wrong("dns://x", 6, "dns:///, with three '/', is expected");
	is_wrong("srv://x", 6, "srv:///, with three '/', is expected");
	is_wrong("dns:///", 7, "a NID, or the name of a host, is expected");
	is_wrong("srv:///rpc.example", 7, "_service._tcp.name is expected");
	is_wrong("srv:///_rpc._tcp.x:1", 18, "'@' and a net is expected");
	is_wrong("file://x", 7, "file:/// and a path is expected");
	is_wrong("etcd://", 7, "nothing behind '://'");
}
