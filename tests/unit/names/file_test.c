/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that list servers: what they say, and what is wrong with them. */
#include "names/file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct server_list list;

static void has(unsigned int i, const char *host, unsigned int port,
		unsigned int weight)
{
	cr_assert_str_eq(list.host[i].host, host);
	cr_assert_eq(list.host[i].port, port, "%s: %u", host,
		     list.host[i].port);
	cr_assert_eq(list.host[i].weight, weight, "%s: %u", host,
		     list.host[i].weight);
}

static void parse(const char *text, unsigned int n)
{
	cr_assert_eq(server_list_parse(text, strlen(text), &list), 0, "%s: %s",
		     text, list.why);
	cr_assert_eq(list.n, n, "%s: %u", text, list.n);
}

Test(file, servers_and_weights)
{
	parse("a\nb:7000\n10.0.0.1@tcp1\n", 3);
	has(0, "a", 0, 0);
	has(1, "b", 7000, 0);
	has(2, "10.0.0.1", 0, 0);
	cr_assert_eq(list.host[2].net, LNET_NET(LNET_TYPE_SOCK, 1));
	parse("# all\n\n \t a 5#five\r\nb\n\tc:1  0 # none\nd\t65535 \n#\n", 4);
	has(0, "a", 0, 5);
	has(1, "b", 0, 1);
	has(2, "c", 1, 0);
	has(3, "d", 0, 65535);
}

static void is_wrong(const char *text, const char *why)
{
	cr_assert_eq(server_list_parse(text, strlen(text), &list), -EBADMSG,
		     "%s", text);
	cr_assert_str_eq(list.why, why, "%s: %s", text, list.why);
}

Test(file, what_is_wrong)
{
	static const char zero[] = "a\nb\0c\n";
	char many[257 * 2 + 1] = "", longer[2000];

	is_wrong("", "the list has no server");
	is_wrong("# nothing\n\n", "the list has no server");
	is_wrong("a\nb", "line 2: 'b': the line does not end: is the file "
			 "being written?");
	is_wrong("a\nb c\n", "line 2: 'c': no weight: a number was expected");
	is_wrong("a -1\n", "line 1: '-1': no weight: a number was expected");
	is_wrong("a 65536\n",
		 "line 1: '65536': the weight is not within 0..65535");
	is_wrong("a 99999999999999999999\n",
		 "line 1: '99999999999999999999': the weight is not within "
		 "0..65535");
	is_wrong("a 1 2\n", "line 1: '2': a server and its weight are "
			    "expected, and nothing else");
	is_wrong("\n\na,b\n",
		 "line 3: 'a,b': each server has a line of its own");
	is_wrong("a:0\n", "line 1: 'a:0': number is not within 1..65535");
	is_wrong("7-10.0.0.1@tcp\n", "line 1: '7-10.0.0.1@tcp': a process id "
				     "is for the NIDs of one server");
	is_wrong("\x01\xff/\n",
		 "line 1: '?\?/': a NID, or the name of a host, is expected");
	cr_assert_eq(server_list_parse(zero, sizeof(zero) - 1, &list),
		     -EBADMSG);
	cr_assert_str_eq(list.why, "line 2: 'b?c': a NID, or the name of a "
				   "host, is expected");
	for (int i = 0; i < 256; i++)
		strcat(many, "a\n");
	parse(many, 256);
	strcat(many, "a\n");
	is_wrong(many, "line 257: 'a': further servers than the 256 that a "
		       "list may have");
	memset(longer, 'a', sizeof(longer));
	strcpy(longer + sizeof(longer) - 2, "\n");
	cr_assert_eq(server_list_parse(longer, strlen(longer), &list),
		     -EBADMSG);
	cr_assert_not_null(strstr(list.why, "aaa...': a NID, or the name"));
}

Test(file, files)
{
	char path[] = "/tmp/ulnet-list.XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "a\n", 2), 2);
	cr_assert_eq(server_list_read(path, &list), 0, "%s", list.why);
	has(0, "a", 0, 0);
	cr_assert_eq(ftruncate(fd, FILE_BYTES + 1), 0);
	cr_assert_eq(server_list_read(path, &list), -EBADMSG);
	cr_assert_str_eq(list.why, "more than 262144 bytes");
	close(fd);
	unlink(path);
	cr_assert_eq(server_list_read(path, &list), -ENOENT);
	cr_assert_str_eq(list.why, strerror(ENOENT));
	cr_assert_eq(server_list_read("/", &list), -EBADMSG);
	cr_assert_str_eq(list.why, "it is no regular file");
	/* Nobody writes to it, and nobody waits for that. */
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(server_list_read(path, &list), -EBADMSG);
	unlink(path);
}
